//! What programs in C and Rust make of each other's events.

use std::{ffi::CStr, mem::offset_of, ptr, sync::Arc};

use milieu::transfer::{
    Cbor, DataStream, Delta, Event, Header, Kind, Limits, Mode, Name, Origin, Private, Rights,
    Stream,
};
use serde::{Deserialize, Serialize};

use super::*;
use crate::abi::{MILIEU_ABI, milieu_entry};

#[repr(C)]
#[derive(Clone, Copy)]
struct Maybe<T> {
    value: T,
    is_there: bool,
}

/// As a program in C has them.
#[repr(C)]
struct Base {
    degrees: f64,
    humidity: Maybe<f32>,
}

#[repr(C)]
struct Child {
    base: Base,
    room: milieu_text,
    pulse: Maybe<u16>,
}

/// The same as a program in Rust has them.
mod rust {
    use super::{Deserialize, Event, Private, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
    #[event(crate = milieu::transfer)]
    pub struct Base {
        #[event(id = 1)]
        pub celsius: f64,
        pub humidity: Option<f32>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
    #[event(crate = milieu::transfer)]
    pub struct Child {
        #[event(extends)]
        pub base: Base,
        pub room: String,
        pub pulse: Private<u16>,
    }
}

const fn field(name: &'static CStr, offset: usize, kind: u32) -> milieu_event_field {
    milieu_event_field {
        name: name.as_ptr(),
        offset,
        kind,
        metadata_count: 0,
        metadata: ptr::null(),
        layout: ptr::null(),
    }
}

fn with(
    field: milieu_event_field,
    said: &milieu_entry,
    layout: *const milieu_event_layout,
) -> milieu_event_field {
    milieu_event_field {
        metadata_count: 1,
        metadata: said,
        layout,
        ..field
    }
}

const fn entry(key: &'static CStr, text: &'static CStr) -> milieu_entry {
    milieu_entry {
        key: key.as_ptr(),
        text: text.as_ptr(),
    }
}

fn layout<T>(name: &'static CStr, fields: &[milieu_event_field]) -> milieu_event_layout {
    milieu_event_layout {
        abi: MILIEU_ABI,
        count: u32::try_from(fields.len()).expect("few"),
        name: name.as_ptr(),
        fields: fields.as_ptr(),
        size: size_of::<T>(),
        align: align_of::<T>(),
    }
}

/// The types of `Base` and `Child`.
fn types() -> (&'static EventType, &'static EventType) {
    let (id, extends, private) = (
        entry(c"id", c"1"),
        entry(c"extends", c""),
        entry(c"private", c""),
    );
    let of_base = [
        with(
            field(c"degrees", offset_of!(Base, degrees), 9),
            &id,
            ptr::null(),
        ),
        field(c"humidity", offset_of!(Base, humidity), 8 | MILIEU_OPTIONAL),
    ];
    let base = layout::<Base>(c"base", &of_base);
    let of_child = [
        with(
            field(c"base", offset_of!(Child, base), MILIEU_STRUCT),
            &extends,
            &raw const base,
        ),
        field(c"room", offset_of!(Child, room), 10),
        with(
            field(c"pulse", offset_of!(Child, pulse), 5 | MILIEU_OPTIONAL),
            &private,
            ptr::null(),
        ),
    ];
    let child = layout::<Child>(c"child", &of_child);
    // SAFETY: the layouts describe these structs.
    unsafe {
        let base = defined(&base, 0).ok().expect("a good layout").1;
        (base, defined(&child, 0).ok().expect("a good layout").1)
    }
}

fn header() -> Header {
    let stream = Stream {
        name: Name::parse("/t").expect("a name"),
        origin: Origin("here".into()),
        incarnation: 1,
    };
    Header {
        stream: Arc::new(stream),
        time: milieu::transfer::Time::from_nanoseconds(0),
        sequence: 1,
        quality: None,
    }
}

fn of_c() -> Event {
    let child = Child {
        base: Base {
            degrees: 21.5,
            humidity: Maybe {
                value: 0.5,
                is_there: true,
            },
        },
        room: milieu_text::of("005"),
        pulse: Maybe {
            value: 71,
            is_there: true,
        },
    };
    let (_, of) = types();
    // SAFETY: the type describes the struct.
    let record = unsafe { Record::copy(of, (&raw const child).cast()) };
    of.kind().event(header(), record.ok().expect("a good body"))
}

fn of_rust() -> rust::Child {
    rust::Child {
        base: rust::Base {
            celsius: 21.5,
            humidity: Some(0.5),
        },
        room: "005".to_owned(),
        pulse: Private::new(71),
    }
}

/// The event in another program.
fn travelled(event: &Event, mode: &dyn Mode, rights: Rights) -> Event {
    let bytes = mode.encode(event, rights).expect("it can be written");
    let read = mode.decode(&bytes, &Limits::default(), Rights::ALL);
    read.expect("it can be read")
}

/// Those that find renamed fields by their ids.
fn modes() -> [Box<dyn Mode>; 2] {
    [Box::new(DataStream::default()), Box::new(Delta::default())]
}

/// # Safety
///
/// The event has a record of `of`, which describes a `T`.
unsafe fn body<'a, T>(event: &'a Event, of: &EventType) -> &'a T {
    let record = event.get::<Record>().expect("it has become one");
    let at = record.seen_as(of).expect("it is one of these");
    // SAFETY: as the caller vouches.
    unsafe { &*at.cast::<T>() }
}

#[test]
fn rust_reads_what_c_has_made() {
    for mode in modes() {
        let event = travelled(&of_c(), &*mode, Rights::ALL);
        let child = Kind::<rust::Child>::new().adopt(&event, Rights::ALL);
        let child = child.expect("it has what is needed");
        assert_eq!(child.get(), Some(&of_rust()), "{}", mode.name());
        // Whoever knows the parent alone finds it.
        let base = Kind::<rust::Base>::new().adopt(&event, Rights::ALL);
        let base = base.expect("it has what is needed");
        assert_eq!(base.get(), Some(&of_rust().base), "{}", mode.name());
        // Without the right to it, the private field is not there.
        let event = travelled(&of_c(), &*mode, Rights::NONE);
        let child = Kind::<rust::Child>::new().adopt(&event, Rights::ALL);
        let child = child.expect("it has what is needed");
        let child: &rust::Child = child.get().expect("it is one");
        assert!(!child.pulse.is_present(), "{}", mode.name());
    }
}

#[test]
fn c_reads_what_rust_has_made() {
    let (base, child) = types();
    let event = Kind::<rust::Child>::new().event(header(), of_rust());
    for mode in modes() {
        let arrived = travelled(&event, &*mode, Rights::ALL);
        let whole = child.kind().adopt(&arrived, Rights::ALL);
        let whole = whole.expect("it has what is needed");
        // SAFETY: the types describe these structs, and texts are the record's.
        unsafe {
            let seen: &Child = body(&whole, child);
            assert_eq!(seen.base.degrees.to_bits(), 21.5_f64.to_bits());
            assert!(seen.base.humidity.is_there && seen.pulse.is_there);
            assert_eq!(seen.pulse.value, 71);
            assert!(matches!(seen.room.read("room"), Ok("005")));
            let part = base.kind().adopt(&arrived, Rights::ALL);
            let part = part.expect("it has what is needed");
            let seen: &Base = body(&part, base);
            assert_eq!(seen.degrees.to_bits(), 21.5_f64.to_bits());
        }
        let arrived = travelled(&event, &*mode, Rights::NONE);
        let whole = child.kind().adopt(&arrived, Rights::ALL);
        let whole = whole.expect("it has what is needed");
        // SAFETY: as above.
        let seen: &Child = unsafe { body(&whole, child) };
        assert!(!seen.pulse.is_there);
    }
}

#[test]
fn what_c_has_made_comes_back_in_modes_with_names() {
    let (_, child) = types();
    let arrived = travelled(&of_c(), &Cbor::default(), Rights::ALL);
    let whole = child.kind().adopt(&arrived, Rights::ALL);
    let whole = whole.expect("it has what is needed");
    // SAFETY: the type describes this struct.
    let seen: &Child = unsafe { body(&whole, child) };
    assert_eq!(seen.base.degrees.to_bits(), 21.5_f64.to_bits());
    assert!(seen.pulse.is_there && seen.pulse.value == 71);
}
