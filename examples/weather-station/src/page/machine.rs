//! This machine's own sensors. What it has not is not shown; what it has and
//! cannot be read says why.

use super::View;
use super::curve::spark;
use super::format::Words;
use super::html::{Escaped, put};
use crate::sensors::{
    BatteryStatus, CURVE, Channel, Failure, Interface, Kind, Reading, Resource, SupplyState,
};
use crate::texts::fill;

pub(super) fn panel(view: &View<'_>, words: &Words<'_>) -> String {
    let t = view.texts;
    let machine = view.machine;
    let mut tiles = Tiles {
        out: String::with_capacity(6 * 1024),
        view,
        words,
    };
    put!(
        &mut tiles.out,
        r#"<h2 class="heading">{}</h2><div class="sensors">"#,
        Escaped(&*t.machine)
    );
    tiles.tamper();
    if let Some(load) = &machine.load {
        tiles.reading(&t.load, Some(("load", 1.0)), load, |load| {
            let number = |n| words.number(n, 2);
            let mut more = fill(
                &t.load_detail,
                &[
                    ("five", &number(load.five)),
                    ("fifteen", &number(load.fifteen)),
                ],
            );
            if let Some(processors) = load.processors {
                let count = words.numerals(&processors.to_string());
                more = format!("{more}\n{}", fill(&t.processors, &[("count", &count)]));
            }
            (number(load.one), more)
        });
    }
    for (resource, pressure) in &machine.pressure {
        let name = match resource {
            Resource::Cpu => &t.stall_cpu,
            Resource::Io => &t.stall_io,
            Resource::Memory => &t.stall_memory,
        };
        tiles.reading(name, Some((resource.curve(), 20.0)), pressure, |p| {
            let percent = |p| words.unit(&t.percent, p, 1);
            (
                percent(p.ten_seconds),
                fill(&t.stall_detail, &[("minute", &percent(p.minute))]),
            )
        });
    }
    if let Some(memory) = &machine.memory {
        tiles.reading(&t.memory, Some(("memory", 1.0)), memory, |m| {
            let (total, available) = (words.bytes(m.total as f64), words.bytes(m.available as f64));
            let share = 100.0 * (m.total - m.available) as f64 / m.total.max(1) as f64;
            let more = fill(
                &t.memory_detail,
                &[("available", &available), ("total", &total)],
            );
            (words.unit(&t.percent, share, 0), more)
        });
    }
    match &machine.network {
        Some(Ok(interfaces)) => interfaces
            .iter()
            .for_each(|interface| tiles.interface(interface)),
        Some(Err(failure)) => tiles.failure(&fill(&t.network, &[("name", "")]), failure),
        None => {}
    }
    machine
        .channels
        .iter()
        .for_each(|channel| tiles.channel(channel));
    for supply in &machine.supplies {
        let text = match supply.state {
            Ok(SupplyState::Adapter { .. }) => &t.adapter,
            Ok(SupplyState::Battery { .. }) | Err(_) => &t.battery,
        };
        tiles.reading(
            &fill(text, &[("name", &supply.name)]),
            None,
            &supply.state,
            |state| match state {
                SupplyState::Adapter { online } => (
                    if *online { &t.plugged } else { &t.unplugged }.to_string(),
                    String::new(),
                ),
                SupplyState::Battery { percent, status } => {
                    let status = match status {
                        BatteryStatus::Charging => &t.charging,
                        BatteryStatus::Discharging => &t.discharging,
                        BatteryStatus::Full => &t.full,
                        BatteryStatus::Idle => &t.idle,
                    };
                    (
                        words.unit(&t.percent, f64::from(*percent), 0),
                        status.to_string(),
                    )
                }
            },
        );
    }
    let mut out = tiles.out;
    out.push_str("</div>");
    let silent = machine.load.is_none() && machine.memory.is_none() && machine.channels.is_empty();
    if silent
        && machine.pressure.is_empty()
        && machine.network.is_none()
        && machine.supplies.is_empty()
    {
        put!(
            &mut out,
            r#"<p class="more">{}</p>"#,
            Escaped(&*t.no_sensors)
        );
    }
    out
}

struct Tiles<'a> {
    out: String,
    view: &'a View<'a>,
    words: &'a Words<'a>,
}

impl Tiles<'_> {
    /// A tile with a value, a line or two below it, and a curve by its name,
    /// with the least that its height stands for.
    fn tile(
        &mut self,
        class: &str,
        name: &str,
        value: &str,
        more: &str,
        curve: Option<(&str, f64)>,
    ) {
        let out = &mut self.out;
        put!(
            out,
            r#"<article class="card sensor{class}"><h3><bdi>{}</bdi></h3><p class="value">{}</p>"#,
            Escaped(name),
            Escaped(value),
        );
        if let Some((curve, span)) = curve {
            if let Some(curve) = self.view.machine.curves.get(curve) {
                // A curve that has just begun is at the right, where now is.
                let nothing_yet = std::iter::repeat_n(None, CURVE.saturating_sub(curve.len()));
                let values: Vec<Option<f64>> =
                    nothing_yet.chain(curve.iter().map(|v| Some(*v))).collect();
                spark(out, &values, Some(0.0), span, "");
            }
        }
        for line in more.lines() {
            put!(out, r#"<p class="more"><bdi>{}</bdi></p>"#, Escaped(line));
        }
        out.push_str("</article>");
    }

    fn reading<T>(
        &mut self,
        name: &str,
        curve: Option<(&str, f64)>,
        reading: &Reading<T>,
        describe: impl FnOnce(&T) -> (String, String),
    ) {
        match reading {
            Ok(reading) => {
                let (value, more) = describe(reading);
                self.tile("", name, &value, &more, curve);
            }
            Err(failure) => self.failure(name, failure),
        }
    }

    fn failure(&mut self, name: &str, failure: &Failure) {
        let failed = self.view.texts.sensor_failed.to_string();
        self.tile(" failed", name, &failed, &failure.to_string(), None);
    }

    fn tamper(&mut self) {
        let t = self.view.texts;
        let input = self.view.input;
        let profile = match &input.profile {
            Some(name) => fill(&t.profile, &[("name", name)]),
            None => t.profile_none.to_string(),
        };
        let (class, value) = match input {
            _ if self.view.tamper => (" alarming", &t.tamper_active),
            input if input.failure.is_some() => (" failed", &t.sensor_failed),
            input if input.place.is_some() => ("", &t.tamper_quiet),
            _ => ("", &t.tamper_none),
        };
        let place = match (&input.failure, &input.place) {
            (Some(failure), _) => failure.to_string(),
            (None, Some(place)) => place.clone(),
            (None, None) => String::new(),
        };
        let more = format!("{profile}\n{place}");
        let (name, value) = (t.tamper_input.to_string(), value.to_string());
        self.tile(class, &name, &value, &more, None);
    }

    fn interface(&mut self, interface: &Interface) {
        let (t, words) = (self.view.texts, self.words);
        let value = match interface.rates {
            Some((received, sent)) => format!("↓ {}  ↑ {}", words.rate(received), words.rate(sent)),
            None => t.measuring.to_string(),
        };
        let more = fill(
            &t.network_detail,
            &[
                ("received", &words.bytes(interface.received as f64)),
                ("sent", &words.bytes(interface.sent as f64)),
            ],
        );
        let name = fill(&t.network, &[("name", &interface.name)]);
        let received = format!("received {}", interface.name);
        self.tile(" wide", &name, &value, &more, Some((&received, 10e3)));
    }

    fn channel(&mut self, channel: &Channel) {
        let (t, words) = (self.view.texts, self.words);
        let curve = format!("channel {}", channel.label);
        self.reading(
            &channel.label,
            Some((&curve, 1.0)),
            &channel.value,
            |value| {
                let (unit, decimals) = match channel.kind {
                    Kind::Temperature => (&t.celsius, 1),
                    Kind::Fan => (&t.turns_a_minute, 0),
                    Kind::Voltage => (&t.volts, 2),
                    Kind::Current => (&t.amperes, 2),
                    Kind::Power => (&t.watts, 1),
                    Kind::Humidity => (&t.percent, 0),
                };
                (words.unit(unit, *value, decimals), String::new())
            },
        );
    }
}
