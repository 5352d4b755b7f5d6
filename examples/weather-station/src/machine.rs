//! What this machine says of itself: the last event of each thing, and the last
//! values of each number that is worth a curve.

use milieu::transfer::{Event, Span, Time};
use milieu_adapters::machine::{
    self, Battery, Load, Mains, Memory, Network, Pressure, Sampler, Sensor, Thermal,
};
use std::collections::{BTreeMap, VecDeque};

type Make = fn() -> Sampler;

/// Where the sources publish, in the order of the page.
pub(crate) const SOURCES: [(&str, Make); 8] = [
    ("/machine/load", machine::load),
    ("/machine/pressure", machine::pressure),
    ("/machine/memory", machine::memory),
    ("/machine/network", machine::network),
    ("/machine/thermal", machine::thermal),
    ("/machine/hwmon", machine::hwmon),
    ("/machine/battery", machine::battery),
    ("/machine/mains", machine::mains),
];

/// How many values a curve keeps.
pub(crate) const CURVE: usize = 60;

/// A network interface, a battery, the memory: whatever has events of its own.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) event: Event,
    /// The last values, oldest first.
    pub(crate) curve: VecDeque<f64>,
}

/// All things, by source and by what they are called.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    things: BTreeMap<(usize, String), Thing>,
    /// What has said nothing for so long is gone.
    lifetime: Span,
}

impl Machine {
    pub(crate) fn new(lifetime: Span) -> Machine {
        Machine {
            things: BTreeMap::new(),
            lifetime,
        }
    }

    pub(crate) fn things(&self) -> impl Iterator<Item = &Thing> {
        self.things.values()
    }

    pub(crate) fn heard(&mut self, event: &Event) {
        let name = event.header().stream.name.as_str();
        let source = SOURCES.iter().position(|(known, _)| *known == name);
        let (Some(source), Some((thing, number))) = (source, said(event)) else {
            return;
        };
        let since: Time = event.time() - self.lifetime;
        self.things.retain(|_, thing| thing.event.time() >= since);
        let thing = self.things.entry((source, thing)).or_insert_with(|| Thing {
            event: event.clone(),
            curve: VecDeque::new(),
        });
        thing.event = event.clone();
        if let Some(number) = number {
            if thing.curve.len() == CURVE {
                thing.curve.pop_front();
            }
            thing.curve.push_back(number);
        }
    }
}

/// What the event is about, and its number that is worth a curve.
fn said(event: &Event) -> Option<(String, Option<f64>)> {
    let alone = String::new;
    Some(if let Some(load) = event.get::<Load>() {
        (alone(), Some(load.one_minute))
    } else if let Some(pressure) = event.get::<Pressure>() {
        let resource = format!("{:?}", pressure.resource);
        (resource, Some(pressure.some.ten_seconds_percent))
    } else if let Some(memory) = event.get::<Memory>() {
        (alone(), Some(memory.used_percent))
    } else if let Some(network) = event.get::<Network>() {
        (network.interface.clone(), network.received_bytes_per_second)
    } else if let Some(thermal) = event.get::<Thermal>() {
        (thermal.zone.clone(), Some(thermal.temperature_celsius))
    } else if let Some(sensor) = event.get::<Sensor>() {
        let Sensor { chip, channel, .. } = sensor;
        (format!("{chip} {channel}"), Some(sensor.value))
    } else if let Some(battery) = event.get::<Battery>() {
        (battery.supply.clone(), None)
    } else {
        (event.get::<Mains>()?.supply.clone(), None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use milieu::stream::drive::Stepped;
    use milieu::transfer::{Name, Origin, Stream};

    #[test]
    fn curves_are_bounded_and_what_is_silent_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join("proc").join(name);
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(file("loadavg"), "0.5 0 0 1/2 3\n").unwrap();
        std::fs::write(file("meminfo"), "MemTotal: 9 kB\nMemAvailable: 3 kB\n").unwrap();
        let mut sources = Stepped::new(Time::from_seconds(0));
        for (name, make) in SOURCES {
            let stream = Stream {
                name: Name::parse(name).unwrap(),
                origin: Origin("test".into()),
                incarnation: 1,
            };
            let second = std::time::Duration::from_secs(1);
            sources.add(stream, make().every(second).below(folder.path()));
        }
        let mut machine = Machine::new(Span::from_seconds(3));
        let mut lengths = |sources: &mut Stepped, until: i64| -> Vec<usize> {
            sources.run(Time::from_seconds(until), |_, events, _| {
                events.iter().for_each(|event| machine.heard(event));
            });
            machine.things().map(|thing| thing.curve.len()).collect()
        };
        assert_eq!(lengths(&mut sources, 9), [10, 10]);
        assert_eq!(lengths(&mut sources, 99), [CURVE, CURVE]);
        std::fs::remove_file(file("meminfo")).unwrap();
        assert_eq!(lengths(&mut sources, 102), [CURVE, CURVE]);
        assert_eq!(lengths(&mut sources, 103), [CURVE]);
    }
}
