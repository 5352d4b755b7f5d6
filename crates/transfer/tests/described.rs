//! Types that extend others, and types of which there are several versions.
//!
//! Nobody says here which types derive `Event`, but where a test is about that.

// What the derive writes needs no unsafe code of the crate that uses it.
#![forbid(unsafe_code)]

mod sample;

use milieu_macros::Event;
use milieu_transfer::{
    Cbor, DataStream, Delta, Described, Error, Event, Kind, Limits, Mode, Private, Rights, Type,
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
    let mut modes: Vec<Box<dyn Mode>> = vec![
        Box::new(DataStream::default()),
        Box::new(Delta::default()),
        Box::new(Cbor::default()),
        #[cfg(feature = "json")]
        Box::new(milieu_transfer::Json),
        #[cfg(feature = "messagepack")]
        Box::new(milieu_transfer::MessagePack),
        #[cfg(feature = "xml")]
        Box::new(milieu_transfer::Xml),
    ];
    if cfg!(miri) {
        // What is unsafe is the same for all, and an interpreter takes long.
        modes.truncate(2);
    }
    modes
}

fn travelled(event: &Event, mode: &dyn Mode) -> Event {
    let bytes = mode.encode(event, Rights::NONE).unwrap();
    mode.decode(&bytes, &Limits::default(), Rights::NONE)
        .unwrap()
}

#[test]
fn a_subscriber_to_the_parent_receives_the_child() {
    let event = Kind::<UnitTemperature>::new().event(header(), child());
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
    let event = Kind::<UnitTemperature>::new().event(header(), child());
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
        Kind::<Temperature>::new(),
        Kind::<later::Temperature>::new(),
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
    let event = Kind::<UnitTemperature>::new().event(header(), child());
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
fn modes_that_say_names_know_no_ids() {
    let new = Kind::<later::Temperature>::new();
    let sent = Kind::<Temperature>::new().event(header(), child().temperature);
    for mode in modes() {
        let has_ids = matches!(mode.name(), "data-stream" | "delta");
        let read = new.adopt(&travelled(&sent, &*mode), Rights::NONE);
        assert_eq!(read.is_ok(), has_ids, "{}", mode.name());
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Person {
    #[event(id = 1)]
    room: u16,
    #[event(id = 2)]
    name: Private<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Patient {
    #[event(extends)]
    person: Person,
    #[event(id = 1)]
    pulse: Private<u16>,
}

fn patient() -> Patient {
    Patient {
        person: Person {
            room: 12,
            name: Private::new("Ann".to_owned()),
        },
        pulse: Private::new(71),
    }
}

#[test]
fn private_fields_of_child_and_parent_need_rights_in_every_mode() {
    let event = Kind::<Patient>::new().event(header(), patient());
    let may = Rights::READ.may_read().unwrap();
    for mode in modes() {
        let name = mode.name();
        let read = |sent: Rights, received: Rights| {
            let bytes = mode.encode(&event, sent)?;
            let event = mode.decode(&bytes, &Limits::default(), received)?;
            let whole = Type::of::<Patient>().adopt(&event, received)?;
            let parent = Type::of::<Person>().adopt(&event, received)?;
            let whole = whole.get::<Patient>().expect("its type").clone();
            Ok((whole, parent.get::<Person>().expect("its type").clone()))
        };
        let (whole, parent) = read(Rights::NONE, Rights::NONE).unwrap();
        assert_eq!((whole.person.room, parent.room), (12, 12), "{name}");
        assert_eq!(whole.pulse.open(may), None, "{name}");
        assert_eq!(whole.person.name.open(may), None, "{name}");
        assert_eq!(parent.name.open(may), None, "{name}");
        let (whole, parent) = read(Rights::READ, Rights::SET).unwrap();
        assert_eq!((&whole, &parent), (&patient(), &patient().person), "{name}");
        // To read private fields is not to set them.
        let refused: Result<_, Error> = read(Rights::READ, Rights::READ);
        assert_eq!(refused.unwrap_err(), Error::Private, "{name}");
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Measured<T> {
    #[event(extends)]
    reading: Reading,
    #[event(id = 1)]
    value: T,
}

#[test]
fn a_type_with_parameters_is_made_known_whoever_knew_it_before() {
    let before = Kind::<Measured<f64>>::new();
    assert!(!before.of().is(Type::of::<Reading>()));
    let after = Kind::<Measured<f64>>::described();
    assert!(after.of().is(Type::of::<Reading>()) && after.of().is(before.of()));
    assert!(Kind::<Measured<f64>>::new().of().is(Type::of::<Reading>()));
    fn is_described<T: Described>() {}
    is_described::<Measured<u8>>();
}
