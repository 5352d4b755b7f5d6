//! One page that has everything in it and needs nothing else.
//!
//! Its policy lets no script run but the one of this file, by its hash, and lets
//! nothing be loaded. It is well-formed XML, too.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::scale::short;
use super::table::table;
use super::{Options, Report, chart};
use crate::description::{Language, escaped, write};
use crate::result::Results;

/// A page in HTML.
pub(super) struct Page;

/// Sorts a table by the column whose head is clicked, or chosen with the keyboard.
/// It has nothing that would need escaping.
const SORT: &str = r#"
const number = text => text.trim() === "" ? NaN : Number(text);
const order = (a, b) => {
  const [x, y] = [number(a), number(b)];
  return isNaN(x) || isNaN(y) ? isNaN(x) - isNaN(y) || a.localeCompare(b) : x - y;
};
const sort = head => {
  const place = head.cellIndex;
  const body = head.closest("table").tBodies[0];
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const text = row => row.cells[place].textContent;
  const rows = [...body.rows].sort((a, b) => order(text(a), text(b)) * (up ? 1 : -1));
  body.append(...rows);
};
for (const head of document.querySelectorAll("thead th")) {
  head.tabIndex = 0;
  head.onclick = () => sort(head);
  head.onkeydown = event => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      sort(head);
    }
  };
}
"#;

impl Report for Page {
    fn name(&self) -> &'static str {
        "html"
    }

    fn summary(&self) -> &'static str {
        "one page with charts, all numbers, the hosts and the description"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        let title = escaped(&results.group.name);
        let hash = STANDARD.encode(Sha256::digest(SORT));
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'sha256-{hash}'\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{title}</title>\n\
             <style>\nbody {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; \
             max-width: 75em; padding: 0 1em }}\ntable {{ border-collapse: collapse; \
             font-variant-numeric: tabular-nums; display: block; overflow-x: auto }}\n\
             td, th {{ border-bottom: 1px solid #ddd; padding: .2em .6em; text-align: right }}\n\
             th {{ cursor: pointer }}\nth[aria-sort=ascending]::after {{ content: \"\u{2191}\" }}\n\
             th[aria-sort=descending]::after {{ content: \"\u{2193}\" }}\n\
             svg {{ width: 100%; max-width: 60em; height: auto }}\npre {{ background: #f6f6f6; padding: 1em; \
             overflow-x: auto }}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        match chart::suitable(results, options) {
            Ok(svg) => out.push_str(&svg),
            Err(why) => _ = writeln!(out, "<p>No chart: {}</p>", escaped(&why)),
        }
        let table = table(results, options, short)?;
        out.push_str("<h2>Numbers</h2>\n<table>\n<thead>\n");
        let row = |out: &mut String, cells: &[String], tag: &str| {
            out.push_str("<tr>");
            for cell in cells {
                let _ = write!(out, "<{tag}>{}</{tag}>", escaped(cell));
            }
            out.push_str("</tr>\n");
        };
        row(&mut out, &table.head, "th");
        out.push_str("</thead>\n<tbody>\n");
        for cells in &table.rows {
            row(&mut out, cells, "td");
        }
        out.push_str("</tbody>\n</table>\n");
        let found = results.tests.iter().flat_map(|test| &test.found);
        for found in found {
            let _ = writeln!(out, "<p>Found: {}</p>", escaped(&found.to_string()));
        }
        out.push_str("<h2>Failures</h2>\n<ul>\n");
        let points = results.tests.iter().flat_map(|test| &test.points);
        let mut failures = points.flat_map(|point| &point.failures).peekable();
        if failures.peek().is_none() {
            out.push_str("<li>none</li>\n");
        }
        for failure in failures {
            let (who, why) = (escaped(&failure.application), escaped(&failure.message));
            let _ = writeln!(out, "<li>{who}, round {}: {why}</li>", failure.round);
        }
        out.push_str("</ul>\n<h2>Hosts</h2>\n<ul>\n");
        for (name, host) in &results.hosts {
            let _ = writeln!(
                out,
                "<li>{}: {}, {} cores, {} bytes of memory, {}, Linux {}{}</li>",
                escaped(name),
                escaped(&host.processor),
                host.cores,
                host.memory_bytes,
                escaped(&host.system),
                escaped(&host.kernel),
                escaped(&host.more())
            );
        }
        let _ = writeln!(
            out,
            "</ul>\n<p>Measured from {} to {} by milieu {}.</p>\n<h2>Description</h2>\n\
             <pre>{}</pre>\n<script>{SORT}</script>\n</body>\n</html>",
            escaped(&results.started),
            escaped(&results.ended),
            escaped(&results.milieu),
            escaped(&write(Language::Toml, &results.group))
        );
        Ok(out.into_bytes())
    }
}
