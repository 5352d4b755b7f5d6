//! The replay: how far the year has got, how fast it runs, where to go.

use super::format::Words;
use super::html::{Escaped, put};
use super::{SPEEDS, View};
use crate::texts::fill;
use crate::time::Time;

pub(super) fn panel(view: &View<'_>, words: &Words<'_>) -> String {
    let t = view.texts;
    let mut out = String::with_capacity(2 * 1024);
    put!(
        &mut out,
        r#"<header><h2>{}</h2><p class="more">{}</p></header>"#,
        Escaped(&*t.replay),
        Escaped(&*t.replay_detail),
    );
    if let Some(failure) = view.replay_failure {
        put!(
            &mut out,
            r#"<ul class="notes"><li class="doubt"><bdi>{}</bdi></li></ul>"#,
            Escaped(failure)
        );
    }
    let progress = view.recording.progress(view.now);
    let percent = words.unit(&t.percent, progress * 100.0, 1);
    put!(
        &mut out,
        r#"<div class="year"><progress max="1" value="{progress:.5}" aria-label="{label}"></progress><p class="more"><bdi>{label}</bdi></p></div>"#,
        label = Escaped(fill(&t.progress, &[("value", &percent)])),
    );
    put!(
        &mut out,
        r#"<form action="/speed" method="post" class="segments" data-quiet role="group" aria-label="{}"><input type="hidden" name="hours" value="{}">"#,
        Escaped(&*t.speed),
        view.hours,
    );
    // A speed that was chosen elsewhere has a button, too.
    let own = (!SPEEDS.contains(&view.speed)).then_some(view.speed);
    for speed in SPEEDS.into_iter().chain(own) {
        put!(
            &mut out,
            r#"<button name="speed" value="{speed}" aria-pressed="{}">{}</button>"#,
            speed == view.speed,
            Escaped(label(words, speed)),
        );
    }
    out.push_str("</form>");
    let first = view.recording.first();
    let last = Time(view.recording.end().0 - 60);
    put!(
        &mut out,
        r#"<form action="/time" method="post" class="jump" data-quiet><input type="hidden" name="hours" value="{}"><label>{} <input type="datetime-local" name="time" required value="{}" min="{}" max="{}"></label><button>{}</button></form>"#,
        view.hours,
        Escaped(&*t.jump),
        field(view.now.floor_hour()),
        field(first),
        field(last),
        Escaped(&*t.go),
    );
    out
}

fn label(words: &Words<'_>, speed: u32) -> String {
    let t = words.texts;
    let count = |count: u32| words.numerals(&count.to_string());
    match speed {
        0 => t.pause.to_string(),
        1 => t.real_time.to_string(),
        s if s % 3600 == 0 => fill(&t.hours_a_second, &[("count", &count(s / 3600))]),
        s if s % 60 == 0 => fill(&t.minutes_a_second, &[("count", &count(s / 60))]),
        s => format!("{}×", count(s)),
    }
}

/// A time as a browser's date input writes it.
fn field(time: Time) -> String {
    let c = time.civil();
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}",
        c.year, c.month, c.day, c.hour, c.minute
    )
}
