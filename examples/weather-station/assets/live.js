// Keeps an open page up to date. Without this script the page is whole; it
// only grows old. The server sends panels as HTML, so that nothing is worded
// twice; what is equal is left alone, so that focus, selection, open details
// and running transitions stay.
"use strict";

(() => {
  const body = document.body;
  const connection = document.getElementById("connection");

  function state(name) {
    connection.dataset.state = name;
    connection.querySelector(".words").textContent = body.dataset[name];
  }

  // Makes `old` equal to `fresh` by the fewest changes.
  function morph(old, fresh) {
    const now = [...old.childNodes];
    const then = [...fresh.childNodes];
    for (let i = 0; i < then.length; i++) {
      if (i >= now.length) {
        old.append(then[i]);
      } else if (now[i].nodeType !== then[i].nodeType || now[i].nodeName !== then[i].nodeName || now[i].id !== then[i].id) {
        now[i].replaceWith(then[i]);
      } else if (now[i].nodeType === Node.TEXT_NODE) {
        if (now[i].data !== then[i].data) now[i].data = then[i].data;
      } else {
        attributes(now[i], then[i]);
        morph(now[i], then[i]);
      }
    }
    for (let i = then.length; i < now.length; i++) now[i].remove();
  }

  function attributes(old, fresh) {
    for (const { name, value } of fresh.attributes) {
      // What a visitor is typing is the visitor's.
      if (name === "value" && old === document.activeElement && old.tagName === "INPUT") continue;
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      // Whether details are open is the visitor's, too.
      if (!fresh.hasAttribute(name) && !(name === "open" && old.tagName === "DETAILS")) old.removeAttribute(name);
    }
  }

  function listen() {
    const source = new EventSource(body.dataset.events);
    source.addEventListener("open", () => state("live"));
    source.addEventListener("panels", (event) => {
      for (const [name, html] of Object.entries(JSON.parse(event.data))) {
        const panel = document.getElementById(name);
        const fresh = document.createElement(panel.tagName);
        fresh.innerHTML = html;
        morph(panel, fresh);
      }
    });
    source.addEventListener("reload", () => location.reload());
    source.addEventListener("error", () => {
      state("offline");
      // The browser tries again by itself unless the server refused.
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    });
    window.addEventListener("pagehide", () => source.close(), { once: true });
  }

  // A page that comes back from the browser's memory has an old stream.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  // Forms whose effect the stream brings need no new page.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!("quiet" in form.dataset) || connection.dataset.state !== "live") return;
    event.preventDefault();
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(form, event.submitter)),
        redirect: "manual",
      });
      if (answer.type !== "opaqueredirect") throw new Error(await answer.text());
    } catch {
      form.submit();
    }
  });

  document.addEventListener("change", (event) => {
    if ("submits" in event.target.dataset) event.target.form.requestSubmit();
  });

  document.documentElement.classList.add("scripted");
  if ("EventSource" in window) listen();
})();
