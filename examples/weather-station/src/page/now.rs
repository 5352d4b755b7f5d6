//! The current weather: the sky with the temperature, and a tile for each
//! other quantity.

use super::View;
use super::curve::spark;
use super::format::Words;
use super::html::{Escaped, put};
use crate::replay::weather::{self, Condition, Phase};
use crate::replay::{Current, Quantity, Reading, Slot};
use crate::texts::fill;

/// A change of pressure below this within three hours is none.
const STEADY_HECTOPASCAL: f64 = 1.0;

pub(super) fn panel(view: &View<'_>, words: &Words<'_>) -> String {
    let current = view.recording.current(view.airport, view.now);
    let day = view.recording.history(view.airport, view.now, 24);
    let mut out = String::with_capacity(8 * 1024);
    sky(&mut out, view, words, current, &day);
    let stale = if current.is_some_and(|c| c.is_fresh()) {
        ""
    } else {
        " stale"
    };
    put!(&mut out, r#"<div class="tiles{stale}">"#);
    wind(&mut out, view, words, current);
    pressure(&mut out, view, words, current, &day);
    precipitation(&mut out, words, current, &day);
    humidity(&mut out, words, current);
    visibility(&mut out, words, current);
    out.push_str("</div>");
    out
}

/// The big picture: where, when, how warm.
fn sky(
    out: &mut String,
    view: &View<'_>,
    words: &Words<'_>,
    current: Option<Current<'_>>,
    day: &[Slot<'_>],
) {
    let t = view.texts;
    let phase = weather::phase(view.airport, view.now);
    let condition = current
        .filter(Current::is_fresh)
        .and_then(|c| weather::condition(c.observation));
    put!(
        out,
        r#"<div class="sky {phase} {weather}"><div class="place"><h1><bdi>{name}</bdi> <small><bdi>{code}</bdi></small></h1><p><time datetime="{utc}">{date} · <b>{clock}</b> {zone}</time></p></div>"#,
        phase = match phase {
            Phase::Night => "night",
            Phase::Dawn => "dawn",
            Phase::Day => "day",
            Phase::Dusk => "dusk",
        },
        weather = condition.map_or("unknown", class),
        name = Escaped(view.airport.name()),
        code = view.airport.code(),
        utc = view.now,
        date = Escaped(words.date(view.now)),
        clock = words.clock(view.now),
        zone = Escaped(words.zone(view.now)),
    );
    picture(out, phase, condition);
    out.push_str(r#"<div class="reading">"#);
    temperature(out, words, current);
    match current {
        Some(c) if c.is_fresh() => {
            put!(
                out,
                r#"<p class="condition">{}</p>"#,
                Escaped(condition_name(words, condition))
            );
        }
        Some(c) => {
            let since = fill(
                &t.no_observation,
                &[("time", &words.moment(c.observation.time))],
            );
            put!(out, r#"<p class="badge">{}</p>"#, Escaped(since));
        }
        None => {
            put!(
                out,
                r#"<p class="badge">{}</p>"#,
                Escaped(&*t.no_observation_yet)
            );
        }
    }
    out.push_str(r#"<ul class="facts">"#);
    if let Some(feels) = current
        .filter(Current::is_fresh)
        .and_then(|c| weather::feels_like(c.observation))
    {
        let feels = words.unit(&t.celsius, feels, 0);
        put!(
            out,
            "<li>{}</li>",
            Escaped(fill(&t.feels_like, &[("value", &feels)]))
        );
    }
    let temperatures = || {
        day.iter()
            .filter_map(|s| s.observation?.value(Quantity::Temperature))
    };
    let (low, high) = temperatures().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    if low <= high {
        put!(
            out,
            r#"<li><span title="{within}">↑ {high_name} {high} · ↓ {low_name} {low}</span></li>"#,
            within = Escaped(&*t.within_day),
            high_name = Escaped(&*t.high),
            high = Escaped(words.unit(&t.celsius, high, 0)),
            low_name = Escaped(&*t.low),
            low = Escaped(words.unit(&t.celsius, low, 0)),
        );
    }
    out.push_str("</ul>");
    out.push_str("</div></div>");
}

/// The temperature, big; one that cannot be is struck through.
fn temperature(out: &mut String, words: &Words<'_>, current: Option<Current<'_>>) {
    let t = words.texts;
    let unit = fill(&t.celsius, &[("value", "")]);
    let stale = if current.is_some_and(|c| c.is_fresh()) {
        ""
    } else {
        " stale"
    };
    put!(
        out,
        r#"<p class="temperature{stale}" id="temperature"><span class="unseen">{}</span>"#,
        Escaped(&*t.temperature)
    );
    match current.map(|c| c.observation.get(Quantity::Temperature)) {
        Some(Reading::Plausible(value)) => {
            put!(
                out,
                r#"<bdi>{}</bdi><span class="unit">{}</span>"#,
                words.number(value, 1),
                Escaped(unit.trim())
            );
        }
        Some(Reading::Implausible(value, _)) => {
            put!(
                out,
                r#"<s><bdi>{}</bdi><span class="unit">{}</span></s><span class="badge doubt">{}</span>"#,
                words.number(value, 1),
                Escaped(unit.trim()),
                Escaped(&*t.implausible),
            );
        }
        Some(Reading::Missing) | None => {
            put!(
                out,
                r#"<span aria-hidden="true">–</span><span class="badge">{}</span>"#,
                Escaped(&*t.not_reported)
            );
        }
    }
    out.push_str("</p>");
}

/// The value of a tile: plain, struck through, or the word that it is missing.
fn value(out: &mut String, words: &Words<'_>, quantity: Quantity, current: Option<Current<'_>>) {
    match current.map_or(Reading::Missing, |c| c.observation.get(quantity)) {
        Reading::Plausible(value) => {
            put!(
                out,
                r#"<p class="value">{}</p>"#,
                Escaped(words.quantity(quantity, value))
            );
        }
        Reading::Implausible(value, _) => {
            put!(
                out,
                r#"<p class="value"><s>{}</s> <span class="badge doubt">{}</span></p>"#,
                Escaped(words.quantity(quantity, value)),
                Escaped(&*words.texts.implausible),
            );
        }
        Reading::Missing => {
            put!(
                out,
                r#"<p class="value missing">{}</p>"#,
                Escaped(&*words.texts.not_reported)
            );
        }
    }
}

fn open(out: &mut String, name: &str, id: &str) {
    put!(
        out,
        r#"<article class="card tile" id="tile-{id}"><h2>{}</h2>"#,
        Escaped(name)
    );
}

/// The compass: an arrow that flies with the wind.
fn wind(out: &mut String, view: &View<'_>, words: &Words<'_>, current: Option<Current<'_>>) {
    let t = view.texts;
    open(out, &t.wind, "wind");
    let speed = current.and_then(|c| c.observation.value(Quantity::WindSpeed));
    let direction = current.and_then(|c| c.observation.value(Quantity::WindDirection));
    let calm = speed == Some(0.0);
    out.push_str(
        r#"<svg class="compass" viewBox="-60 -60 120 120" aria-hidden="true"><circle r="46"/>"#,
    );
    for step in 0..36 {
        let (class, from) = if step % 9 == 0 {
            ("main", 39)
        } else {
            ("tick", 43)
        };
        put!(
            out,
            r#"<path class="{class}" transform="rotate({})" d="M0-{from}V-46"/>"#,
            step * 10
        );
    }
    for (name, (x, y)) in
        words
            .main_points()
            .into_iter()
            .zip([(0, -50), (53, 4), (0, 58), (-53, 4)])
    {
        put!(out, r#"<text x="{x}" y="{y}">{}</text>"#, Escaped(name));
    }
    match direction {
        Some(degrees) if !calm => {
            put!(
                out,
                r#"<g class="needle" transform="rotate({degrees})"><path d="M0 34 9 12 0 17-9 12z"/><path class="tail" d="M0 17V-34"/></g>"#
            );
        }
        _ => {
            put!(out, r#"<circle class="still" r="7"/>"#);
        }
    }
    out.push_str("</svg>");
    value(out, words, Quantity::WindSpeed, current);
    out.push_str(r#"<p class="more">"#);
    if calm {
        put!(out, "{}", Escaped(&*t.calm));
    } else if let Some(speed) = speed {
        let from = match direction {
            Some(degrees) => fill(&t.from_direction, &[("direction", words.compass(degrees))]),
            None => t.variable.to_string(),
        };
        put!(
            out,
            "{} · {}",
            Escaped(from),
            Escaped(words.unit(&t.kilometres_an_hour, speed * 3.6, 0))
        );
    }
    out.push_str("</p></article>");
}

fn pressure(
    out: &mut String,
    view: &View<'_>,
    words: &Words<'_>,
    current: Option<Current<'_>>,
    day: &[Slot<'_>],
) {
    let t = view.texts;
    open(out, &t.pressure, "pressure");
    let values: Vec<Option<f64>> = day
        .iter()
        .map(|s| s.observation?.value(Quantity::Pressure))
        .collect();
    spark(out, &values, None, 6.0, "pressure");
    value(out, words, Quantity::Pressure, current);
    if let Some(change) = view.recording.pressure_change(view.airport, view.now) {
        let (arrow, word) = match change {
            c if c >= STEADY_HECTOPASCAL => ("↗", &*t.rising),
            c if c <= -STEADY_HECTOPASCAL => ("↘", &*t.falling),
            _ => ("→", &*t.steady),
        };
        let change = fill(&t.hectopascal, &[("value", &words.change(change, 1))]);
        put!(
            out,
            r#"<p class="more"><span aria-hidden="true" class="arrow">{arrow}</span> {}<br>{}</p>"#,
            Escaped(word),
            Escaped(fill(&t.within_three_hours, &[("value", &change)])),
        );
    }
    out.push_str("</article>");
}

fn precipitation(
    out: &mut String,
    words: &Words<'_>,
    current: Option<Current<'_>>,
    day: &[Slot<'_>],
) {
    let t = words.texts;
    open(out, &t.precipitation, "precipitation");
    let hours: Vec<Option<f64>> = day
        .iter()
        .map(|s| s.observation?.value(Quantity::Precipitation))
        .collect();
    let most = hours.iter().flatten().fold(2.0f64, |most, v| most.max(*v));
    put!(
        out,
        r#"<svg class="spark rain" viewBox="0 0 {} 36" preserveAspectRatio="none" aria-hidden="true">"#,
        hours.len()
    );
    for (index, millimetres) in hours.iter().enumerate() {
        if let Some(millimetres) = millimetres {
            let height = (millimetres / most * 32.0).max(0.8);
            put!(
                out,
                r#"<rect x="{index}.15" y="{:.1}" width=".7" height="{height:.1}"/>"#,
                36.0 - height
            );
        }
    }
    out.push_str("</svg>");
    value(out, words, Quantity::Precipitation, current);
    let sum: f64 = hours.iter().flatten().sum();
    put!(
        out,
        r#"<p class="more">{}<br>{}</p></article>"#,
        Escaped(&*t.last_hour),
        Escaped(fill(
            &t.sum_of_day,
            &[("value", &words.quantity(Quantity::Precipitation, sum))]
        )),
    );
}

fn humidity(out: &mut String, words: &Words<'_>, current: Option<Current<'_>>) {
    let t = words.texts;
    open(out, &t.humidity, "humidity");
    let percent = current.and_then(|c| c.observation.value(Quantity::Humidity));
    put!(
        out,
        r#"<svg class="ring" viewBox="-40 -40 80 80" aria-hidden="true"><circle r="32"/><circle class="share" r="32" pathLength="100" stroke-dasharray="{:.0} 100" transform="rotate(-90)"/><path class="drop" d="M0-15C6-6 10-1 10 5A10 10 0 0 1-10 5C-10-1-6-6 0-15z"/></svg>"#,
        percent.unwrap_or(0.0),
    );
    value(out, words, Quantity::Humidity, current);
    let word = match percent {
        Some(p) if p < 35.0 => &*t.humidity_dry,
        Some(p) if p < 70.0 => &*t.humidity_pleasant,
        Some(_) => &*t.humidity_damp,
        None => "",
    };
    put!(out, r#"<p class="more">{}<br>"#, Escaped(word));
    match current.map_or(Reading::Missing, |c| c.observation.get(Quantity::DewPoint)) {
        Reading::Missing => {}
        Reading::Plausible(dew) => {
            put!(
                out,
                "{} {}",
                Escaped(&*t.dew_point),
                Escaped(words.quantity(Quantity::DewPoint, dew))
            );
        }
        Reading::Implausible(dew, _) => {
            put!(
                out,
                "{} <s>{}</s>",
                Escaped(&*t.dew_point),
                Escaped(words.quantity(Quantity::DewPoint, dew))
            );
        }
    }
    out.push_str("</p></article>");
}

fn visibility(out: &mut String, words: &Words<'_>, current: Option<Current<'_>>) {
    let t = words.texts;
    open(out, &t.visibility, "visibility");
    let sight = current.and_then(|c| c.observation.value(Quantity::Visibility));
    // Hills that disappear one behind the other.
    out.push_str(r#"<svg class="hills" viewBox="0 0 120 60" aria-hidden="true">"#);
    for (needed, path) in [
        (16.0, "M0 34 22 14 44 32 66 8 92 30 120 18V60H0z"),
        (8.0, "M0 40 30 24 58 42 84 22 120 40V60H0z"),
        (3.0, "M0 46 26 38 60 50 92 36 120 46V60H0z"),
        (0.0, "M0 54 40 46 80 55 120 50V60H0z"),
    ] {
        let seen = sight.is_some_and(|s| s >= needed);
        put!(
            out,
            r#"<path class="{}" d="{path}"/>"#,
            if seen { "seen" } else { "hidden" }
        );
    }
    out.push_str("</svg>");
    value(out, words, Quantity::Visibility, current);
    let word = match sight {
        Some(s) if s >= 10.0 => &*t.sight_clear,
        Some(s) if s >= 4.0 => &*t.sight_fair,
        Some(_) => &*t.sight_poor,
        None => "",
    };
    put!(out, r#"<p class="more">{}</p></article>"#, Escaped(word));
}

fn condition_name<'a>(words: &Words<'a>, condition: Option<Condition>) -> &'a str {
    let t = words.texts;
    match condition {
        Some(Condition::Dry) => &t.dry,
        Some(Condition::Mist) => &t.mist,
        Some(Condition::Fog) => &t.fog,
        Some(Condition::Rain) => &t.rain,
        Some(Condition::HeavyRain) => &t.heavy_rain,
        Some(Condition::Snow) => &t.snow,
        None => &t.unknown_condition,
    }
}

fn class(condition: Condition) -> &'static str {
    match condition {
        Condition::Dry => "dry",
        Condition::Mist => "mist",
        Condition::Fog => "fog",
        Condition::Rain => "rain",
        Condition::HeavyRain => "heavy-rain",
        Condition::Snow => "snow",
    }
}

/// Sun or moon, and what falls or hangs before it.
fn picture(out: &mut String, phase: Phase, condition: Option<Condition>) {
    out.push_str(r#"<svg class="picture" viewBox="0 0 240 200" aria-hidden="true">"#);
    let clouded = matches!(
        condition,
        Some(Condition::Rain | Condition::HeavyRain | Condition::Snow)
    );
    if phase == Phase::Night {
        if !clouded {
            stars(out);
        }
        out.push_str(r#"<path class="moon" d="M178 30a44 44 0 1 0 26 76 36 36 0 0 1-26-76z"/>"#);
    } else {
        let height = if phase == Phase::Day { 72 } else { 118 };
        put!(
            out,
            r#"<g class="sun"><circle class="glow" cx="160" cy="{height}" r="66"/><circle class="glow" cx="160" cy="{height}" r="50"/><circle cx="160" cy="{height}" r="34"/></g>"#
        );
    }
    if clouded {
        out.push_str(r#"<path class="cloud far" d="M128 118a26 26 0 0 1 10-50 38 38 0 0 1 70 6 24 24 0 0 1 2 44z"/><path class="cloud" d="M62 140a30 30 0 0 1 6-59 44 44 0 0 1 82-8 34 34 0 0 1 16 67z"/>"#);
    }
    match condition {
        Some(Condition::Rain) => drops(out, &[(70, 152), (100, 160), (130, 152), (158, 160)]),
        Some(Condition::HeavyRain) => {
            drops(
                out,
                &[
                    (62, 150),
                    (82, 160),
                    (102, 150),
                    (122, 162),
                    (142, 150),
                    (162, 160),
                    (182, 150),
                ],
            );
        }
        Some(Condition::Snow) => {
            out.push_str(r#"<g class="flakes">"#);
            for (x, y) in [(72, 158), (98, 170), (124, 156), (150, 172), (172, 158)] {
                put!(out, r#"<circle cx="{x}" cy="{y}" r="3.4"/>"#);
            }
            out.push_str("</g>");
        }
        Some(Condition::Mist | Condition::Fog) => {
            out.push_str(
                r#"<g class="haze"><path d="M60 104h132M84 124h136M44 144h128M96 164h104"/></g>"#,
            );
        }
        Some(Condition::Dry) | None => {}
    }
    out.push_str("</svg>");
}

fn stars(out: &mut String) {
    out.push_str(r#"<g class="stars"><circle cx="40" cy="44" r="1.6"/><circle cx="86" cy="22" r="1.2"/><circle cx="60" cy="92" r="1.3"/><circle cx="206" cy="120" r="1.5"/><circle cx="222" cy="36" r="1.2"/><circle cx="112" cy="60" r="1"/><circle cx="28" cy="132" r="1.1"/></g>"#);
}

fn drops(out: &mut String, places: &[(u32, u32)]) {
    out.push_str(r#"<g class="drops">"#);
    for (x, y) in places {
        put!(out, r#"<path d="M{x} {y}l-7 20"/>"#);
    }
    out.push_str("</g>");
}
