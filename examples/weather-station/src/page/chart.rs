//! The last hours as a chart and as a table, with remarks on the data.
//!
//! A missing hour is hatched and breaks every curve; a reading that cannot be
//! is marked where it stands, or at the edge if it is beyond, and explained
//! below. Nothing is interpolated.

use super::curve::{Scale, area, line};
use super::format::Words;
use super::html::{Escaped, put};
use super::{HOURS, View};
use crate::replay::weather::{self, Phase};
use crate::replay::{Observation, Quantity, Reading, Slot, Why};
use crate::texts::fill;
use crate::time::new_york;

const HEIGHT: f64 = 460.0;
const TEMPERATURE: (f64, f64) = (34.0, 160.0);
const RAIN: (f64, f64) = (216.0, 44.0);
const WIND: (f64, f64) = (284.0, 64.0);
const PRESSURE: (f64, f64) = (372.0, 58.0);

/// Charts longer than this name no single hours below the pointer.
const POINTABLE: usize = 48;

/// The columns of the table.
const COLUMNS: [Quantity; 7] = [
    Quantity::Temperature,
    Quantity::DewPoint,
    Quantity::Humidity,
    Quantity::WindSpeed,
    Quantity::Precipitation,
    Quantity::Pressure,
    Quantity::Visibility,
];

pub(super) fn panel(view: &View<'_>, words: &Words<'_>) -> String {
    let t = view.texts;
    let slots = view.recording.history(view.airport, view.now, view.hours);
    let mut out = String::with_capacity(32 * 1024);
    put!(
        &mut out,
        r#"<header><h2>{}</h2><nav class="segments" aria-label="{}">"#,
        Escaped(&*t.history),
        Escaped(&*t.history),
    );
    for hours in HOURS {
        let name = match hours {
            24 => &t.range_day,
            48 => &t.range_two_days,
            _ => &t.range_week,
        };
        let current = if hours == view.hours {
            r#" aria-current="page""#
        } else {
            ""
        };
        put!(
            &mut out,
            r#"<a href="/?hours={hours}"{current}>{}</a>"#,
            Escaped(&**name)
        );
    }
    out.push_str("</nav></header>");
    Chart::new(view, words, &slots).draw(&mut out);
    legend(&mut out, words);
    notes(&mut out, view, words, &slots);
    table(&mut out, words, &slots);
    out
}

struct Chart<'a> {
    view: &'a View<'a>,
    words: &'a Words<'a>,
    slots: &'a [Slot<'a>],
    temperature: Scale,
    rain: Scale,
    wind: Scale,
    pressure: Scale,
}

impl<'a> Chart<'a> {
    fn new(view: &'a View<'a>, words: &'a Words<'a>, slots: &'a [Slot<'a>]) -> Chart<'a> {
        let of = |quantity: Quantity| {
            slots
                .iter()
                .filter_map(move |s| s.observation?.value(quantity))
        };
        let warm = of(Quantity::Temperature).chain(of(Quantity::DewPoint));
        let most = of(Quantity::Precipitation).fold(2.0, f64::max);
        let gale = of(Quantity::WindSpeed).fold(8.0, f64::max);
        Chart {
            view,
            words,
            slots,
            temperature: Scale::around(warm, 2.0, 10.0, TEMPERATURE.0, TEMPERATURE.1),
            rain: Scale::from_nothing(most, RAIN.0, RAIN.1),
            wind: Scale::from_nothing(gale, WIND.0, WIND.1),
            pressure: Scale::around(of(Quantity::Pressure), 5.0, 10.0, PRESSURE.0, PRESSURE.1),
        }
    }

    fn values(&self, quantity: Quantity) -> Vec<Option<f64>> {
        self.slots
            .iter()
            .map(|s| s.observation?.value(quantity))
            .collect()
    }

    /// The left edge of an index's column, in percent.
    fn percent(&self, index: f64) -> f64 {
        index * 100.0 / self.slots.len() as f64
    }

    fn draw(&self, out: &mut String) {
        let t = self.view.texts;
        let (low, high) = self
            .values(Quantity::Temperature)
            .into_iter()
            .flatten()
            .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        let summary = if low <= high {
            let value = |v| self.words.quantity(Quantity::Temperature, v);
            fill(
                &t.chart_summary,
                &[("lowest", &value(low)), ("highest", &value(high))],
            )
        } else {
            t.no_data.to_string()
        };
        put!(
            out,
            r##"<svg class="chart" width="100%" height="{HEIGHT}" role="img" aria-label="{}"><defs><linearGradient id="warmth" x1="0" y1="0" x2="0" y2="1"><stop offset="0" class="from"/><stop offset="1" class="to"/></linearGradient><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V7"/></pattern></defs>"##,
            Escaped(summary),
        );
        self.nights(out);
        self.axes(out);
        self.curves(out);
        self.gaps(out);
        self.doubts(out);
        if self.slots.len() <= POINTABLE {
            self.pointer(out);
        }
        out.push_str("</svg>");
    }

    fn nights(&self, out: &mut String) {
        let night = |slot: &Slot<'_>| weather::phase(self.view.airport, slot.time) == Phase::Night;
        self.stretches(night, |x, width| {
            put!(
                out,
                r#"<rect class="night" x="{x:.3}%" y="24" width="{width:.3}%" height="{}"/>"#,
                HEIGHT - 24.0 - 24.0
            );
        });
    }

    fn gaps(&self, out: &mut String) {
        self.stretches(
            |slot| slot.observation.is_none(),
            |x, width| {
                put!(
                    out,
                    r#"<rect class="gap" x="{x:.3}%" y="24" width="{width:.3}%" height="{}"><title>{}</title></rect>"#,
                    HEIGHT - 24.0 - 24.0,
                    Escaped(&*self.view.texts.no_data),
                );
            },
        );
    }

    /// Calls `each` with left edge and width, in percent, of every stretch of
    /// columns that `is`.
    fn stretches(&self, is: impl Fn(&Slot<'_>) -> bool, mut each: impl FnMut(f64, f64)) {
        let mut index = 0;
        while index < self.slots.len() {
            let length = self.slots[index..]
                .iter()
                .take_while(|slot| is(slot))
                .count();
            if length > 0 {
                each(self.percent(index as f64), self.percent(length as f64));
            }
            index += length.max(1);
        }
    }

    fn axes(&self, out: &mut String) {
        let (t, words) = (self.view.texts, self.words);
        let (rain, wind) = (self.rain.highest, self.wind.highest);
        for (scale, quantity, ticks) in [
            (
                &self.temperature,
                Quantity::Temperature,
                self.temperature.ticks(4.0),
            ),
            (&self.rain, Quantity::Precipitation, vec![0.0, rain]),
            (&self.wind, Quantity::WindSpeed, vec![0.0, wind / 2.0, wind]),
            (&self.pressure, Quantity::Pressure, self.pressure.ticks(2.0)),
        ] {
            for (index, tick) in ticks.iter().enumerate() {
                let y = scale.y(*tick);
                let label = match quantity {
                    Quantity::Temperature => words.unit(&t.degrees, *tick, 0),
                    _ if index + 1 == ticks.len() => match quantity {
                        Quantity::WindSpeed => words.unit(&t.metres_a_second, *tick, 0),
                        Quantity::Precipitation => words.unit(&t.millimetres, *tick, 0),
                        _ => words.unit(&t.hectopascal, *tick, 0),
                    },
                    _ => words.number(*tick, 0),
                };
                put!(
                    out,
                    r#"<line class="grid" x1="0" x2="100%" y1="{y:.1}" y2="{y:.1}"/><text class="tick" x="2" y="{:.1}">{}</text>"#,
                    y - 4.0,
                    Escaped(label),
                );
            }
        }
        let days_only = self.slots.len() > POINTABLE;
        for (index, slot) in self.slots.iter().enumerate() {
            let (civil, _) = new_york(slot.time);
            let midnight = civil.hour == 0;
            if !midnight && (days_only || civil.hour % 6 != 0) {
                continue;
            }
            let x = self.percent(index as f64 + 0.5);
            let bottom = HEIGHT - 24.0;
            let kind = match civil.hour {
                0 => "midnight",
                12 => "noon",
                _ => "minor",
            };
            put!(
                out,
                r#"<line class="hour-line {kind}" x1="{x:.3}%" x2="{x:.3}%" y1="24" y2="{bottom}"/>"#
            );
            // A label at the very edge would be cut off.
            if (4.0..=96.0).contains(&x) {
                let label = if midnight {
                    words.short_date(slot.time)
                } else {
                    words.clock(slot.time)
                };
                put!(
                    out,
                    r#"<text class="axis {kind}" x="{x:.3}%" y="{}">{}</text>"#,
                    HEIGHT - 7.0,
                    Escaped(label)
                );
            }
        }
    }

    fn curves(&self, out: &mut String) {
        let warm = self.values(Quantity::Temperature);
        put!(
            out,
            r#"<svg x="0" y="0" width="100%" height="{HEIGHT}" viewBox="0 0 {} {HEIGHT}" preserveAspectRatio="none">"#,
            self.slots.len(),
        );
        put!(
            out,
            r#"<path class="warmth" d="{}"/>"#,
            area(&warm, &self.temperature)
        );
        for (index, millimetres) in self.values(Quantity::Precipitation).into_iter().enumerate() {
            if let Some(millimetres) = millimetres.filter(|m| *m > 0.0) {
                let y = self.rain.y(millimetres).min(self.rain.bottom() - 1.5);
                put!(
                    out,
                    r#"<rect class="rain" x="{index}.12" width=".76" y="{y:.1}" height="{:.1}"/>"#,
                    self.rain.bottom() - y,
                );
            }
        }
        for (class, quantity, scale) in [
            ("dew", Quantity::DewPoint, &self.temperature),
            ("temperature", Quantity::Temperature, &self.temperature),
            ("wind", Quantity::WindSpeed, &self.wind),
            ("pressure", Quantity::Pressure, &self.pressure),
        ] {
            let values = self.values(quantity);
            if class == "wind" {
                put!(out, r#"<path class="gusts" d="{}"/>"#, area(&values, scale));
            }
            put!(
                out,
                r#"<path class="curve {class}" d="{}"/>"#,
                line(&values, scale)
            );
        }
        out.push_str("</svg>");
    }

    /// A mark at each reading that cannot be.
    fn doubts(&self, out: &mut String) {
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(observation) = slot.observation else {
                continue;
            };
            for (quantity, scale) in [
                (Quantity::Temperature, &self.temperature),
                (Quantity::DewPoint, &self.temperature),
                (Quantity::WindSpeed, &self.wind),
                (Quantity::Precipitation, &self.rain),
                (Quantity::Pressure, &self.pressure),
            ] {
                let Reading::Implausible(value, why) = observation.get(quantity) else {
                    continue;
                };
                put!(
                    out,
                    r#"<svg class="doubt" x="{:.3}%" y="{:.1}"><title>{}</title><path d="M0-9 9 7H-9z"/><path class="sign" d="M0-3V2M0 4.4v.2"/></svg>"#,
                    self.percent(index as f64 + 0.5),
                    scale.y(value),
                    Escaped(doubt(self.words, observation, quantity, value, why)),
                );
            }
        }
    }

    /// For each hour a column that shows its numbers while it is pointed at.
    fn pointer(&self, out: &mut String) {
        for (index, slot) in self.slots.iter().enumerate() {
            let (x, middle) = (self.percent(index as f64), self.percent(index as f64 + 0.5));
            let (anchor, at) = match middle {
                m if m < 35.0 => ("start", 0.0),
                m if m > 65.0 => ("end", 100.0),
                m => ("middle", m),
            };
            put!(
                out,
                r#"<g class="pointed"><rect x="{x:.3}%" y="0" width="{:.3}%" height="{HEIGHT}"/><line x1="{middle:.3}%" x2="{middle:.3}%" y1="24" y2="{}"/><text x="{at:.3}%" y="14" text-anchor="{anchor}">{}</text></g>"#,
                self.percent(1.0),
                HEIGHT - 24.0,
                Escaped(self.readout(slot)),
            );
        }
    }

    fn readout(&self, slot: &Slot<'_>) -> String {
        let mut text = self.words.moment(slot.time);
        let Some(observation) = slot.observation else {
            return format!("{text} · {}", &*self.view.texts.no_data);
        };
        for quantity in [
            Quantity::Temperature,
            Quantity::WindSpeed,
            Quantity::Precipitation,
            Quantity::Pressure,
        ] {
            match observation.get(quantity) {
                Reading::Missing => {}
                Reading::Plausible(value) => {
                    text.push_str(" · ");
                    text.push_str(&self.words.quantity(quantity, value));
                }
                Reading::Implausible(value, _) => {
                    text.push_str(" · ⚠ ");
                    text.push_str(&self.words.quantity(quantity, value));
                }
            }
        }
        text
    }
}

fn legend(out: &mut String, words: &Words<'_>) {
    out.push_str(r#"<ul class="legend">"#);
    let t = words.texts;
    for (class, name) in [
        ("temperature", &t.temperature),
        ("dew", &t.dew_point),
        ("rain", &t.precipitation),
        ("wind", &t.wind),
        ("pressure", &t.pressure),
        ("gap", &t.no_data),
        ("doubt", &t.implausible),
    ] {
        put!(
            out,
            r#"<li class="{class}"><i aria-hidden="true"></i>{}</li>"#,
            Escaped(&**name)
        );
    }
    out.push_str("</ul>");
}

/// Why a reading cannot be, in words.
fn doubt(
    words: &Words<'_>,
    observation: &Observation,
    quantity: Quantity,
    value: f64,
    why: Why,
) -> String {
    let t = words.texts;
    let of = |value: f64| words.quantity(quantity, value);
    let (time, value) = (words.moment(observation.time), of(value));
    let common = [
        ("time", time.as_str()),
        ("quantity", words.name(quantity)),
        ("value", value.as_str()),
    ];
    match why {
        Why::OutOfRange { lowest, highest } => {
            let (lowest, highest) = (of(lowest), of(highest));
            let [a, b, c] = common;
            fill(
                &t.implausible_range,
                &[a, b, c, ("lowest", &lowest), ("highest", &highest)],
            )
        }
        Why::Spike { before, after } => {
            let (before, after) = (of(before), of(after));
            let [a, b, c] = common;
            fill(
                &t.implausible_spike,
                &[a, b, c, ("before", &before), ("after", &after)],
            )
        }
    }
}

/// What is to be said of the data that the chart shows.
fn notes(out: &mut String, view: &View<'_>, words: &Words<'_>, slots: &[Slot<'_>]) {
    let t = view.texts;
    let mut notes: Vec<(&str, String)> = Vec::new();
    for observation in slots.iter().filter_map(|slot| slot.observation) {
        for quantity in Quantity::ALL {
            if let Reading::Implausible(value, why) = observation.get(quantity) {
                notes.push(("doubt", doubt(words, observation, quantity, value, why)));
            }
        }
    }
    let missing = slots
        .iter()
        .filter(|slot| slot.observation.is_none())
        .count();
    if missing > 0 {
        let number = |n: usize| words.numerals(&n.to_string());
        let text = fill(
            &t.hours_without,
            &[("count", &number(missing)), ("hours", &number(slots.len()))],
        );
        notes.push(("gap", text));
    }
    if let Some(skipped) = &view.recording.skipped {
        notes.push(("doubt", skipped.clone()));
    }
    // It has its place even when it is empty, so that what follows keeps its own.
    let hidden = if notes.is_empty() { " hidden" } else { "" };
    put!(
        out,
        r#"<div class="notes"{hidden}><h3>{}</h3><ul>"#,
        Escaped(&*t.notes)
    );
    for (class, note) in notes {
        put!(out, r#"<li class="{class}">{}</li>"#, Escaped(note));
    }
    out.push_str("</ul></div>");
}

fn table(out: &mut String, words: &Words<'_>, slots: &[Slot<'_>]) {
    let t = words.texts;
    put!(
        out,
        r#"<details><summary>{}</summary><div class="scroll" tabindex="0" role="region" aria-label="{}"><table><thead><tr><th scope="col">{}</th>"#,
        Escaped(&*t.table),
        Escaped(&*t.table),
        Escaped(&*t.time),
    );
    for quantity in COLUMNS {
        put!(
            out,
            r#"<th scope="col">{}</th>"#,
            Escaped(words.name(quantity))
        );
    }
    out.push_str("</tr></thead><tbody>");
    for slot in slots.iter().rev() {
        put!(
            out,
            r#"<tr><th scope="row">{}</th>"#,
            Escaped(words.moment(slot.time))
        );
        match slot.observation {
            None => {
                put!(
                    out,
                    r#"<td class="gap" colspan="{}">{}</td>"#,
                    COLUMNS.len(),
                    Escaped(&*t.no_data)
                );
            }
            Some(observation) => {
                for quantity in COLUMNS {
                    match observation.get(quantity) {
                        Reading::Missing => out.push_str("<td>–</td>"),
                        Reading::Plausible(value) => {
                            put!(out, "<td>{}</td>", Escaped(words.quantity(quantity, value)));
                        }
                        Reading::Implausible(value, _) => {
                            put!(
                                out,
                                r#"<td class="doubt" title="{}"><s>{}</s></td>"#,
                                Escaped(&*t.implausible),
                                Escaped(words.quantity(quantity, value)),
                            );
                        }
                    }
                }
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></details>");
}
