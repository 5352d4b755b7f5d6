//! The page: what a visitor sees, as HTML in the visitor's language.
//!
//! It is whole without a script. It is made of panels, each a function of a
//! [`View`]; the stream of events sends a panel again when it has changed, so
//! that page and news can never disagree.

mod chart;
mod curve;
mod format;
pub(crate) mod html;
mod machine;
mod now;
mod replay;

use crate::machine::Machine;
use crate::replay::{Airport, Recording};
use crate::streams::TamperInput;
use crate::texts::{Language, Texts};
use crate::time::Time;
use format::Words;
use html::{Escaped, put};

/// How many hours the chart may show.
pub const HOURS: [usize; 3] = [24, 48, 168];

/// How many hours it shows unless asked.
pub const HOURS_DEFAULT: usize = 48;

/// How fast the replay may be set on the page: a button for each.
pub const SPEEDS: [u32; 6] = [0, 1, 60, 600, 3600, 21_600];

/// Everything that a page depends on.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// The texts of the visitor's language.
    pub(crate) texts: &'a Texts,
    /// The visitor's language.
    pub(crate) language: Language,
    /// The airport that the visitor looks at.
    pub(crate) airport: Airport,
    /// How many hours the chart shows.
    pub(crate) hours: usize,
    /// The recording.
    pub(crate) recording: &'a Recording,
    /// The replayed time.
    pub(crate) now: Time,
    /// How fast it is replayed.
    pub(crate) speed: u32,
    /// What this machine's sensors say.
    pub(crate) machine: &'a Machine,
    /// Which sensors say nothing, and why.
    pub(crate) failures: &'a [String],
    /// Why the recording is replayed no more, or not whole.
    pub(crate) replay_failure: Option<&'a str>,
    /// Whether somebody tampers.
    pub(crate) tamper: bool,
    /// What is known of the tamper input.
    pub(crate) input: &'a TamperInput,
}

/// The names of the panels, which are their elements' `id`s.
pub const PANELS: [&str; 6] = ["alarm", "stations", "now", "chart", "replay", "machine"];

/// The inner HTML of every panel, in the order of [`PANELS`].
#[must_use]
pub(crate) fn panels(view: &View<'_>) -> [String; 6] {
    let words = Words::new(view.texts);
    [
        alarm(view),
        stations(view),
        now::panel(view, &words),
        chart::panel(view, &words),
        replay::panel(view, &words),
        machine::panel(view, &words),
    ]
}

/// The whole page.
#[must_use]
pub(crate) fn document(view: &View<'_>) -> String {
    let t = view.texts;
    let [alarm, stations, now, chart, replay, machine] = panels(view);
    let mut out = String::with_capacity(64 * 1024);
    put!(
        &mut out,
        r##"<!doctype html>
<html lang="{lang}" dir="{dir}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{tagline}">
<title>{title}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">
<script src="/assets/live.js" defer></script>
</head>
<body data-events="/events?hours={hours}" data-live="{live}" data-offline="{offline}">
<a class="skip" href="#now">{skip}</a>
<header class="bar">
<a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="32" height="32"><span>{title}</span></a>
<p id="connection" class="connection" data-state="still"><span class="lamp" aria-hidden="true"></span><span class="words">{still}</span></p>
<form action="/station" method="post" class="segments" data-quiet role="group" aria-label="{station}">
<input type="hidden" name="hours" value="{hours}">
<span id="stations" class="segments">{stations}</span>
</form>
<form action="/language" method="post" class="language">
<input type="hidden" name="hours" value="{hours}">
<label><span class="unseen">{language}</span><select name="language" data-submits>"##,
        lang = view.language.code(),
        dir = Escaped(&*t.direction),
        tagline = Escaped(&*t.tagline),
        title = Escaped(&*t.title),
        hours = view.hours,
        live = Escaped(&*t.live),
        offline = Escaped(&*t.offline),
        skip = Escaped(&*t.skip),
        still = Escaped(&*t.still),
        station = Escaped(&*t.station),
        language = Escaped(&*t.language),
    );
    for language in Language::ALL {
        put!(
            &mut out,
            r#"<option value="{code}" lang="{code}"{selected}>{name}</option>"#,
            code = language.code(),
            selected = if language == view.language {
                " selected"
            } else {
                ""
            },
            name = language.name(),
        );
    }
    put!(
        &mut out,
        r#"</select></label>
<button class="choose">{choose}</button>
</form>
</header>
<div id="alarm" role="alert">{alarm}</div>
<main>
<section id="now" aria-label="{station}">{now}</section>
<section id="chart" class="card">{chart}</section>
<section id="replay" class="card">{replay}</section>
<section id="machine">{machine}</section>
</main>
<footer><p>{source}</p><p>{made}</p></footer>
</body>
</html>
"#,
        choose = Escaped(&*t.choose),
        station = Escaped(&*t.station),
        source = Escaped(&*t.source),
        made = Escaped(&*t.made_with),
    );
    out
}

/// The alarm: nothing, or what everybody must know.
fn alarm(view: &View<'_>) -> String {
    let mut out = String::new();
    if view.tamper {
        put!(
            &mut out,
            r#"<div class="alarm"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 3 1.8 20.5h20.4z"/><path class="sign" d="M12 9.5v5M12 17.3v.4"/></svg><div><strong>{}</strong><span>{}</span></div></div>"#,
            Escaped(&*view.texts.tamper_alarm),
            Escaped(&*view.texts.tamper_detail),
        );
    }
    out
}

/// A button for each airport.
fn stations(view: &View<'_>) -> String {
    let mut out = String::new();
    for airport in Airport::ALL {
        put!(
            &mut out,
            r#"<button name="station" value="{code}" aria-pressed="{pressed}" title="{name}">{code}</button>"#,
            code = airport.code(),
            pressed = airport == view.airport,
            name = airport.name(),
        );
    }
    out
}
