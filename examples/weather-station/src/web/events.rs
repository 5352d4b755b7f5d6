//! The stream of news that an open page listens to (server-sent events).
//!
//! A page waits in a context of its own, and subscribes to `/pages/news`.
//! Whenever a layer or a contextual value has changed, a sensor or the recording
//! has news, and every second or so, the panels are rendered for this visitor,
//! and those that differ from what was last sent are sent, in one event `panels`. An event `data` says the same without
//! words, for programs. A change of the visitor's language is an event
//! `reload`: nothing on the page stays as it was.

use super::problem::Problem;
use super::session::SessionId;
use super::{App, Asked, Cx, accepted, wish};
use crate::environment::{Environment, layer};
use crate::page::{PANELS, panels};
use crate::station::data;
use crate::texts::Language;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use milieu::Context;
use milieu::stream::Subscriber;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// One open page.
struct Listener {
    app: App,
    cx: Context<Environment>,
    session: SessionId,
    accepted: String,
    hours: usize,
    language: Option<Language>,
    sent: [String; PANELS.len()],
    sent_data: String,
    waiting: VecDeque<Event>,
    news: Subscriber,
    /// The first look needs no waiting.
    fresh: bool,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn stream(
    State(app): State<App>,
    cx: Cx,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let hours = wish(asked).and_then(|wish| wish.hours())?;
    let (session, _) = SessionId::of(&headers)?;
    let place = app.streams.clone().try_acquire_owned().map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "events",
            "as many pages as this station serves wait for news already",
            "close one, or try again later",
        )
    })?;
    let listener = Listener {
        session,
        accepted: accepted(&headers).to_owned(),
        hours,
        language: None,
        sent: Default::default(),
        sent_data: String::new(),
        waiting: VecDeque::new(),
        news: app.station.streams.news().map_err(unheard)?,
        cx: cx.0,
        fresh: true,
        app,
        _place: place,
    };
    let events = futures_util::stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response())
}

/// A flow of our own that cannot be run.
fn unheard(error: impl std::fmt::Display) -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "events",
        error.to_string(),
        "tell whoever made this station",
    )
}

impl Listener {
    /// The next event; `None` when the station ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if !std::mem::take(&mut self.fresh) {
                let refresh = Duration::from_secs_f64(self.cx.sw.pi.web.refresh);
                tokio::select! {
                    () = self.cx.changed() => {}
                    Some(_) = StreamExt::next(&mut self.news) => {}
                    () = tokio::time::sleep(refresh) => {}
                }
            }
            self.cx.sync();
            if self.cx.layer::<layer::Shutdown>().is_some() {
                return None;
            }
            self.look();
        }
    }

    fn look(&mut self) {
        let (language, panels, data) = self.app.station.look(
            &mut self.cx,
            &self.session,
            &self.accepted,
            self.hours,
            |view| (view.language, panels(view), data(view)),
        );
        if self
            .language
            .replace(language)
            .is_some_and(|before| before != language)
        {
            self.waiting
                .push_back(Event::default().event("reload").data(language.code()));
            return;
        }
        let mut changed = Map::new();
        for ((name, panel), sent) in PANELS.into_iter().zip(panels).zip(&mut self.sent) {
            if *sent != panel {
                changed.insert(name.to_owned(), Value::String(panel.clone()));
                *sent = panel;
            }
        }
        if !changed.is_empty() {
            self.waiting.push_back(
                Event::default()
                    .event("panels")
                    .data(Value::Object(changed).to_string()),
            );
        }
        let data = data.to_string();
        if data != self.sent_data {
            self.waiting
                .push_back(Event::default().event("data").data(data.clone()));
            self.sent_data = data;
        }
    }
}
