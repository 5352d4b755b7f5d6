//! Types that extend others, and types of which there are several versions.

mod sample;

use milieu_macros::Event;
use milieu_transfer::{
    Cbor, DataStream, Delta, Described, Event, Kind, Limits, Mode, Rights, Type,
};
use sample::header;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Reading {
    #[event(id = 1)]
    quality: u8,
    #[serde(skip)]
    cached: Option<u8>,
    #[event(id = 2)]
    sensor: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Temperature {
    #[event(extends)]
    reading: Reading,
    #[event(id = 1)]
    degrees: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct UnitTemperature {
    #[event(id = 1)]
    unit: String,
    #[event(extends)]
    temperature: Temperature,
}

fn reading() -> Reading {
    Reading {
        quality: 7,
        cached: None,
        sensor: "bme280".to_owned(),
    }
}

fn child() -> UnitTemperature {
    UnitTemperature {
        unit: "°C".to_owned(),
        temperature: Temperature {
            reading: reading(),
            degrees: 21.5,
        },
    }
}

fn modes() -> Vec<Box<dyn Mode>> {
    vec![
        Box::new(DataStream::default()),
        Box::new(Delta::default()),
        Box::new(Cbor::default()),
        #[cfg(feature = "json")]
        Box::new(milieu_transfer::Json),
    ]
}

fn travelled(event: &Event, mode: &dyn Mode) -> Event {
    let bytes = mode.encode(event, Rights::NONE).unwrap();
    mode.decode(&bytes, &Limits::default(), Rights::NONE)
        .unwrap()
}

#[test]
fn a_subscriber_to_the_parent_receives_the_child() {
    let event = Kind::<UnitTemperature>::described().event(header(), child());
    assert_eq!(event.get::<UnitTemperature>(), Some(&child()));
    assert_eq!(event.get::<Temperature>(), Some(&child().temperature));
    assert_eq!(event.get::<Reading>(), Some(&reading()));
    let reading = Kind::<Reading>::new().of();
    assert!(event.of().is(reading) && !reading.is(event.of()));
    let adopted = reading.adopt(&event, Rights::NONE).unwrap();
    assert!(adopted.is(&event));
}

#[test]
fn so_does_one_that_knows_only_the_parent_in_every_mode() {
    let event = Kind::<UnitTemperature>::described().event(header(), child());
    for mode in modes() {
        let event = travelled(&event, &*mode);
        let name = mode.name();
        let adopt = |of: &'static Type| of.adopt(&event, Rights::NONE).unwrap();
        let whole = adopt(Type::of::<UnitTemperature>());
        assert_eq!(whole.get(), Some(&child()), "{name}");
        let middle = adopt(Type::of::<Temperature>());
        assert_eq!(middle.get(), Some(&child().temperature), "{name}");
        let first = adopt(Type::of::<Reading>());
        assert_eq!(first.get(), Some(&reading()), "{name}");
    }
}

/// The parent in a later version: a field has another name, another is new, and
/// the first two changed places.
mod later {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
    #[event(crate = milieu_transfer)]
    pub struct Reading {
        #[event(id = 2)]
        pub device: String,
        #[event(id = 1)]
        pub quality: u8,
        #[event(id = 3)]
        #[serde(default)]
        pub place: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
    #[event(crate = milieu_transfer)]
    pub struct Temperature {
        #[event(extends)]
        pub reading: Reading,
        #[event(id = 1)]
        pub celsius: f64,
    }
}

#[test]
fn versions_of_a_type_find_each_others_fields_by_their_ids() {
    let new = later::Temperature {
        reading: later::Reading {
            device: "bme280".to_owned(),
            quality: 7,
            place: String::new(),
        },
        celsius: 21.5,
    };
    let (old_kind, new_kind) = (
        Kind::<Temperature>::described(),
        Kind::<later::Temperature>::described(),
    );
    for mode in [&DataStream::default() as &dyn Mode, &Delta::default()] {
        let sent = old_kind.event(header(), child().temperature);
        let read = new_kind.adopt(&travelled(&sent, mode), Rights::NONE);
        assert_eq!(read.unwrap().get(), Some(&new));
        let sent = new_kind.event(header(), new.clone());
        let read = old_kind.adopt(&travelled(&sent, mode), Rights::NONE);
        assert_eq!(read.unwrap().get(), Some(&child().temperature));
    }
}

#[test]
fn a_type_that_is_no_relative_is_refused() {
    let event = Kind::<UnitTemperature>::described().event(header(), child());
    let other = Kind::<(u8, u8)>::new();
    for mode in modes() {
        assert!(
            other
                .adopt(&travelled(&event, &*mode), Rights::NONE)
                .is_err()
        );
    }
}

#[test]
fn a_type_is_described_whoever_knew_it_before() {
    #[derive(Serialize, Deserialize, Event)]
    #[event(crate = milieu_transfer)]
    struct Late {
        #[event(extends)]
        reading: Reading,
    }
    let before = Kind::<Late>::new();
    assert!(!before.of().is(Type::of::<Reading>()));
    let after = Kind::<Late>::described();
    assert!(after.of().is(Type::of::<Reading>()) && after.of().is(before.of()));
    assert!(Kind::<Late>::new().of().is(Type::of::<Reading>()));
    fn is_described<T: Described>() {}
    is_described::<Late>();
}
