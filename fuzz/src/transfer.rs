//! What the targets of transfer modes check in the same way.

use milieu_transfer::{Event, Limits, Map, Mode, Private, Rights, Span, Time, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the targets accept.
pub const LIMITS: Limits = Limits {
    bytes: 1 << 16,
    depth: 32,
};

/// A type that has one of everything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Everything {
    flag: bool,
    numbers: (i8, i16, i32, i64, u8, u16, u32, u64),
    single: f32,
    double: f64,
    letter: char,
    text: String,
    unit: (),
    option: Option<Box<Choice>>,
    list: Vec<Choice>,
    map: BTreeMap<String, u16>,
    time: Time,
    span: Span,
    any: Value,
    private: Private<Vec<f64>>,
}

/// Variants of every form.
#[derive(Debug, Serialize, Deserialize)]
pub enum Choice {
    /// Nothing.
    Unit,
    /// One value.
    Newtype(i32),
    /// Several.
    Tuple(u8, String),
    /// Several with names.
    Struct {
        /// One of them.
        field: f32,
    },
}

/// One of everything.
#[must_use]
pub fn everything() -> Everything {
    Everything {
        flag: true,
        numbers: (-1, -300, 70_000, i64::MIN, 255, 300, 70_000, u64::MAX),
        single: 0.5,
        double: -1.25,
        letter: 'ß',
        text: "text".to_owned(),
        unit: (),
        option: Some(Box::new(Choice::Newtype(-5))),
        list: vec![
            Choice::Unit,
            Choice::Tuple(1, "x".to_owned()),
            Choice::Struct { field: 0.25 },
        ],
        map: [("a".to_owned(), 1), ("b".to_owned(), 2)].into(),
        time: Time::from_seconds(1_356_998_400),
        span: Span::from_nanoseconds(-5),
        any: Value::from(Map::from_iter([("x", 1.5), ("y", 2.5)])),
        private: Private::new(vec![71.0]),
    }
}

/// Numbers that are none are equal here, and so are whole numbers whether or not
/// they come of a schema that says they have no sign.
fn shown(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").replace("Uint(", "Int(")
}

/// What is read can be written, and is the same when it is read again. Whatever
/// it is, it can be asked to be of a type, by those with and without rights.
///
/// # Panics
/// If that is not so.
pub fn check(mode: &dyn Mode, input: &[u8]) {
    if let Ok(value) = mode.decode_value(input, &LIMITS, Rights::ALL) {
        let mut out = Vec::new();
        let written = mode.encode_value(&value, Rights::ALL, &mut out);
        written.expect("what was read can be written");
        let again = mode.decode_value(&out, &DEEP, Rights::ALL);
        assert_eq!(shown(&again.expect("what was written")), shown(&value));
        let _ = value.to::<Everything>(Rights::ALL);
        let hidden = value.readable(Rights::NONE);
        assert!(mode.encode_value(&hidden, Rights::NONE, &mut out).is_ok());
    }
    if let Ok(event) = mode.decode(input, &LIMITS, Rights::ALL) {
        again(mode, &event);
    }
    let _ = mode.decode(input, &LIMITS, Rights::NONE);
}

/// A little more, because some levels are written as two.
const DEEP: Limits = Limits {
    bytes: 1 << 24,
    depth: 128,
};

/// An event that was read can be written, and is the same when it is read again.
///
/// # Panics
/// If that is not so.
pub fn again(mode: &dyn Mode, event: &Event) {
    let bytes = mode.encode(event, Rights::ALL);
    let bytes = bytes.expect("what was read can be written");
    let again = mode.decode(&bytes, &DEEP, Rights::ALL);
    let again = again.expect("what was written");
    assert_eq!(shown(&again.header()), shown(&event.header()));
    let value = |event: &Event| shown(&event.value(Rights::ALL));
    assert_eq!(value(&again), value(event));
}
