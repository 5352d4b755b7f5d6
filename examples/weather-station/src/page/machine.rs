//! This machine's own sensors: a tile for each thing, by the type of its event.
//! What it has not has no tile; why, stands below.

use super::View;
use super::curve::spark;
use super::format::Words;
use super::html::{Escaped, put};
use crate::machine::{CURVE, Thing};
use crate::texts::fill;
use milieu_adapters::machine::{
    Battery, Charge, Load, Mains, Memory, Network, Pressure, Quantity, Resource, Sensor, Thermal,
};

pub(super) fn panel(view: &View<'_>, words: &Words<'_>) -> String {
    let t = view.texts;
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
    view.machine.things().for_each(|thing| tiles.thing(thing));
    let mut out = tiles.out;
    out.push_str("</div>");
    if view.machine.things().next().is_none() {
        put!(
            &mut out,
            r#"<p class="more">{}</p>"#,
            Escaped(&*t.no_sensors)
        );
    }
    if !view.failures.is_empty() {
        let count = words.numerals(&view.failures.len().to_string());
        put!(
            &mut out,
            r#"<details class="more"><summary>{}: {count}</summary><ul>"#,
            Escaped(&*t.no_reading)
        );
        for failure in view.failures {
            put!(&mut out, "<li><bdi>{}</bdi></li>", Escaped(failure));
        }
        out.push_str("</ul></details>");
    }
    out
}

struct Tiles<'a> {
    out: String,
    view: &'a View<'a>,
    words: &'a Words<'a>,
}

impl Tiles<'_> {
    /// A tile with a value, a line or two below it, and a curve with the least
    /// that its height stands for.
    fn tile(
        &mut self,
        class: &str,
        name: &str,
        value: &str,
        more: &str,
        curve: Option<(&Thing, f64)>,
    ) {
        let out = &mut self.out;
        put!(
            out,
            r#"<article class="card sensor{class}"><h3><bdi>{}</bdi></h3><p class="value">{}</p>"#,
            Escaped(name),
            Escaped(value),
        );
        if let Some((Thing { curve, .. }, span)) = curve {
            // A curve that has just begun is at the right, where now is.
            let nothing_yet = std::iter::repeat_n(None, CURVE.saturating_sub(curve.len()));
            let values: Vec<Option<f64>> =
                nothing_yet.chain(curve.iter().map(|v| Some(*v))).collect();
            spark(out, &values, Some(0.0), span, "");
        }
        for line in more.lines() {
            put!(out, r#"<p class="more"><bdi>{}</bdi></p>"#, Escaped(line));
        }
        out.push_str("</article>");
    }

    fn thing(&mut self, thing: &Thing) {
        let (t, words, event) = (self.view.texts, self.words, &thing.event);
        let percent = |share: f64, decimals| words.unit(&t.percent, share, decimals);
        if let Some(load) = event.get::<Load>() {
            let number = |n| words.number(n, 2);
            let (five, fifteen) = (number(load.five_minutes), number(load.fifteen_minutes));
            let mut more = fill(&t.load_detail, &[("five", &five), ("fifteen", &fifteen)]);
            if let Some(processors) = load.processors {
                let count = words.numerals(&processors.to_string());
                more = format!("{more}\n{}", fill(&t.processors, &[("count", &count)]));
            }
            self.tile(
                "",
                &t.load,
                &number(load.one_minute),
                &more,
                Some((thing, 1.0)),
            );
        } else if let Some(pressure) = event.get::<Pressure>() {
            let name = match pressure.resource {
                Resource::Cpu => &t.stall_cpu,
                Resource::Io => &t.stall_io,
                Resource::Memory => &t.stall_memory,
            };
            let minute = percent(pressure.some.one_minute_percent, 1);
            let more = fill(&t.stall_detail, &[("minute", &minute)]);
            let value = percent(pressure.some.ten_seconds_percent, 1);
            self.tile("", name, &value, &more, Some((thing, 20.0)));
        } else if let Some(memory) = event.get::<Memory>() {
            let total = words.bytes(memory.total_bytes as f64);
            let available = words.bytes(memory.available_bytes as f64);
            let values = [("available", &*available), ("total", &*total)];
            let more = fill(&t.memory_detail, &values);
            let value = percent(memory.used_percent, 0);
            self.tile("", &t.memory, &value, &more, Some((thing, 100.0)));
        } else if let Some(network) = event.get::<Network>() {
            self.network(thing, network);
        } else if let Some(thermal) = event.get::<Thermal>() {
            let value = words.unit(&t.celsius, thermal.temperature_celsius, 1);
            self.tile("", &thermal.label, &value, "", Some((thing, 1.0)));
        } else if let Some(sensor) = event.get::<Sensor>() {
            let (unit, decimals) = match sensor.quantity {
                Quantity::TemperatureCelsius => (&t.celsius, 1),
                Quantity::FanTurnsPerMinute => (&t.turns_a_minute, 0),
                Quantity::VoltageVolts => (&t.volts, 2),
                Quantity::CurrentAmperes => (&t.amperes, 2),
                Quantity::PowerWatts => (&t.watts, 1),
                Quantity::HumidityPercent => (&t.percent, 0),
            };
            let name = format!("{} {}", sensor.chip, sensor.label);
            let value = words.unit(unit, sensor.value, decimals);
            self.tile("", &name, &value, "", Some((thing, 1.0)));
        } else if let Some(battery) = event.get::<Battery>() {
            let charge = match battery.charge {
                Charge::Charging => &t.charging,
                Charge::Discharging => &t.discharging,
                Charge::Full => &t.full,
                Charge::NotCharging | Charge::Unknown => &t.idle,
            };
            let name = fill(&t.battery, &[("name", &battery.supply)]);
            self.tile("", &name, &percent(battery.level_percent, 0), charge, None);
        } else if let Some(mains) = event.get::<Mains>() {
            let online = if mains.is_online {
                &t.plugged
            } else {
                &t.unplugged
            };
            let name = fill(&t.adapter, &[("name", &mains.supply)]);
            self.tile("", &name, online, "", None);
        }
    }

    fn network(&mut self, thing: &Thing, network: &Network) {
        let (t, words) = (self.view.texts, self.words);
        let rates = (network.received_bytes_per_second).zip(network.sent_bytes_per_second);
        let value = match rates {
            Some((received, sent)) => format!("↓ {}  ↑ {}", words.rate(received), words.rate(sent)),
            None => t.measuring.to_string(),
        };
        let received = words.bytes(network.received_bytes as f64);
        let sent = words.bytes(network.sent_bytes as f64);
        let values = [("received", &*received), ("sent", &*sent)];
        let more = fill(&t.network_detail, &values);
        let name = fill(&t.network, &[("name", &network.interface)]);
        self.tile(" wide", &name, &value, &more, Some((thing, 10e3)));
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
            (Some(failure), _) => failure.clone(),
            (None, Some(place)) => place.clone(),
            (None, None) => String::new(),
        };
        let more = format!("{profile}\n{place}");
        let (name, value) = (t.tamper_input.to_string(), value.to_string());
        self.tile(class, &name, &value, &more, None);
    }
}
