//! Events that several tests send.
#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use milieu_transfer::{
    Event, Header, Map, Name, Origin, Private, Quality, Span, Stream, Time, Value,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    Point,
    Circle(f64),
    Line(i32, i32),
    Box { width: u8, height: u8 },
}

/// One of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Everything {
    pub flag: bool,
    pub small: i8,
    pub whole: i64,
    pub large: u64,
    pub single: f32,
    pub double: f64,
    pub letter: char,
    pub text: String,
    pub unit: Unit,
    pub nothing: Option<u16>,
    pub something: Option<u16>,
    pub pair: (u32, String),
    pub shapes: Vec<Shape>,
    pub by_name: BTreeMap<String, i32>,
    pub by_number: BTreeMap<u32, bool>,
    pub time: Time,
    pub span: Span,
    pub any: Value,
    pub inner: Inner,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inner {
    pub name: String,
    pub secret: Private<f64>,
}

pub fn everything() -> Everything {
    Everything {
        flag: true,
        small: -7,
        whole: i64::MIN,
        large: u64::MAX,
        single: 0.1,
        double: f64::INFINITY,
        letter: 'ß',
        text: "a \"quoted\" <text> & more\n".to_owned(),
        unit: Unit,
        nothing: None,
        something: Some(300),
        pair: (1, "zwei".to_owned()),
        shapes: vec![
            Shape::Point,
            Shape::Circle(1.5),
            Shape::Line(-3, 4),
            Shape::Box {
                width: 1,
                height: 2,
            },
        ],
        by_name: [("$a".to_owned(), 1), ("b c".to_owned(), -2)].into(),
        by_number: [(7, true), (8, false)].into(),
        time: Time::from_nanoseconds(1_356_998_400_250_000_001),
        span: Span::from_nanoseconds(-1_500_000_000),
        any: Value::from(vec![Value::Int(1), Value::from("x")]),
        inner: Inner {
            name: "Anna".to_owned(),
            secret: Private::new(71.5),
        },
    }
}

pub fn header() -> Header {
    Header {
        stream: Arc::new(Stream {
            name: Name::parse("/weather/temperature").unwrap(),
            origin: Origin("station-1".into()),
            incarnation: 3,
        }),
        time: Time::from_nanoseconds(1_356_998_400_250_000_000),
        sequence: 7,
        quality: Some(Box::new(Quality {
            age: Some(Span::from_nanoseconds(250_000_000)),
            accuracy: Some(0.5),
            failure: Some("stuck".into()),
        })),
    }
}

/// A value of every kind but shared ones.
pub fn values() -> Value {
    let map = Map::from_iter([
        ("null", Value::Null),
        ("bool", Value::Bool(true)),
        ("int", Value::Int(-5)),
        ("large", Value::Uint(u64::MAX)),
        ("double", Value::Double(0.25)),
        ("text", Value::from("Wärme")),
        ("list", Value::from(vec![Value::Int(1), Value::Null])),
        ("map", Value::from(Map::from_iter([("$", Value::Int(1))]))),
        ("empty", Value::from(Map::default())),
    ]);
    Value::from(map)
}

pub fn event() -> Event {
    Event::new(header(), everything())
}
