//! What a subscriber's expressions see of an event.

use std::collections::BTreeMap;
use std::sync::Arc;

use milieu_keys::Name;
use milieu_transfer::{
    Body, Event, Header, Map, Origin, Quality, Row, Selection, Slot, Stream, Time, Value,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Reading {
    room: String,
    temperature: f64,
    humidity: f32,
    samples: Vec<i16>,
    position: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    battery: Option<u8>,
    state: State,
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Position {
    lat: f64,
    lon: f64,
}

#[derive(Clone, Serialize, Deserialize)]
enum State {
    Idle,
    Moving { speed: f64 },
}

fn reading() -> Reading {
    Reading {
        room: "kitchen".into(),
        temperature: 21.5,
        humidity: 0.5,
        samples: vec![1, -2, 3],
        position: Some(Position {
            lat: 48.2,
            lon: 16.4,
        }),
        battery: Some(80),
        state: State::Idle,
        labels: BTreeMap::from([("floor".into(), "2".into())]),
    }
}

fn header() -> Header {
    Header {
        stream: Arc::new(Stream {
            name: Name::parse("/weather/kitchen").unwrap(),
            origin: Origin("station".into()),
            incarnation: 1,
        }),
        time: Time::from_seconds(5),
        sequence: 7,
        quality: Some(Box::new(Quality {
            age: None,
            accuracy: Some(0.25),
            ..Quality::default()
        })),
    }
}

fn event<T: Body>(body: T) -> Event {
    Event::new(header(), body)
}

/// Reads the paths of each event twice with one row, as the second time goes
/// another way, and shows what is in the slots.
fn read<T: Body + Clone>(paths: &[&str], bodies: &[T]) -> Vec<String> {
    let mut selection = Selection::default();
    for path in paths {
        selection.add(path).unwrap();
    }
    let mut row = Row::default();
    let mut seen = Vec::new();
    for body in bodies {
        let mut shown = Vec::new();
        for round in 0..3 {
            event(body.clone()).read(&selection, &mut row);
            let slots = (0..paths.len()).map(|slot| format!("{:?}", row.slot(slot)));
            let slots = slots.collect::<Vec<_>>().join(" ");
            if round > 0 {
                assert_eq!(shown.last(), Some(&slots), "round {round} differs");
            }
            shown.push(slots);
        }
        seen.extend(shown.pop());
    }
    seen
}

#[test]
fn fields_are_found_by_their_paths() {
    let paths = [
        "temperature",
        "room",
        "samples[1]",
        "samples[3]",
        "position.lon",
        "battery",
        "state",
        "labels.floor",
        "humidity",
        "nothing",
    ];
    assert_eq!(
        read(&paths, &[reading()]),
        [
            r#"Double(21.5) Text("kitchen") Int(-2) Missing Double(16.4) Uint(80) Text("Idle") Text("2") Double(0.5) Missing"#
        ]
    );
}

#[test]
fn events_of_one_type_may_differ() {
    let without = Reading {
        position: None,
        battery: None,
        state: State::Moving { speed: 3.0 },
        samples: vec![],
        ..reading()
    };
    assert_eq!(
        read(
            &[
                "position.lat",
                "battery",
                "state.Moving.speed",
                "samples[0]"
            ],
            &[without.clone(), reading(), without]
        ),
        [
            "Missing Missing Double(3.0) Missing",
            "Double(48.2) Uint(80) Missing Int(1)",
            "Missing Missing Double(3.0) Missing",
        ]
    );
}

#[test]
fn the_order_of_asking_does_not_matter() {
    let paths = ["position.lon", "temperature", "position.lat", "room"];
    assert_eq!(
        read(&paths, &[reading()]),
        [r#"Double(16.4) Double(21.5) Double(48.2) Text("kitchen")"#]
    );
}

#[test]
fn a_whole_and_its_parts_can_both_be_wanted() {
    let seen = read(
        &["position", "position.lat", "samples", "samples[2]"],
        &[reading()],
    );
    assert_eq!(
        seen,
        [
            r#"Value(Map(Map([(Text("lat"), Double(48.2)), (Text("lon"), Double(16.4))]))) Double(48.2) Value(List([Int(1), Int(-2), Int(3)])) Int(3)"#
        ]
    );
}

#[test]
fn value_is_the_body_unless_it_has_such_a_field() {
    #[derive(Clone, Serialize, Deserialize)]
    struct Named {
        before: bool,
        value: i64,
    }
    #[derive(Clone, Serialize, Deserialize)]
    struct Celsius(f64);

    assert_eq!(read(&["value"], &[33.5]), ["Double(33.5)"]);
    assert_eq!(read(&["value"], &[Celsius(3.0)]), ["Double(3.0)"]);
    assert_eq!(
        read(&["value[1]", "value"], &[[1_u8, 2]]),
        ["Uint(2) Value(List([Uint(1), Uint(2)]))"]
    );
    let named = Named {
        before: true,
        value: 3,
    };
    assert_eq!(read(&["value", "before"], &[named]), ["Int(3) Bool(true)"]);
    assert_eq!(
        read(
            &["value.temperature", "temperature", "value.position.lat"],
            &[reading()]
        ),
        ["Double(21.5) Double(21.5) Double(48.2)"]
    );
}

#[test]
fn names_of_a_map_are_read_anew_each_time() {
    let one = BTreeMap::from([("a".to_owned(), 1)]);
    let two = BTreeMap::from([("value".to_owned(), 2)]);
    assert_eq!(
        read(&["a", "value"], &[one.clone(), two, one]),
        [
            r#"Int(1) Value(Map(Map([(Text("a"), Int(1))])))"#,
            "Missing Int(2)",
            r#"Int(1) Value(Map(Map([(Text("a"), Int(1))])))"#,
        ]
    );
}

#[test]
fn untagged_alternatives_with_one_name_are_told_apart() {
    #[derive(Clone, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Both { x: i64, y: i64 },
        One { y: i64 },
    }
    let bodies = [
        Either::Both { x: 1, y: 2 },
        Either::One { y: 3 },
        Either::Both { x: 4, y: 5 },
    ];
    assert_eq!(read(&["y"], &bodies), ["Int(2)", "Int(3)", "Int(5)"]);
    assert_eq!(
        read(&["y", "x"], &bodies),
        ["Int(2) Int(1)", "Int(3) Missing", "Int(5) Int(4)"]
    );
}

#[test]
fn a_row_serves_several_types_and_selections() {
    let mut selection = Selection::default();
    selection.add("value").unwrap();
    let mut other = selection.clone();
    other.add("event.sequence").unwrap();
    let mut row = Row::default();
    event(1_i64).read(&selection, &mut row);
    assert_eq!(row.slot(0), Slot::Int(1));
    event("a".to_owned()).read(&other, &mut row);
    assert_eq!((row.slot(0), row.slot(1)), (Slot::Text("a"), Slot::Int(7)));
    event(true).read(&selection, &mut row);
    assert_eq!(
        (row.slot(0), row.slot(1)),
        (Slot::Bool(true), Slot::Missing)
    );
}

#[test]
fn the_header_stands_below_event() {
    let paths = [
        "event.name",
        "event.time",
        "event.sequence",
        "event.origin",
        "event.age",
        "event.accuracy",
        "event.failure",
    ];
    assert_eq!(
        read(&paths, &[1]),
        [
            r#"Text("/weather/kitchen") Time(5000000000ns) Int(7) Text("station") Span(0ns) Double(0.25) Missing"#
        ]
    );
}

#[test]
fn nothing_of_an_event_stays_for_the_next_one() {
    let mut selection = Selection::default();
    let paths = [
        "event.failure",
        "value.battery",
        "battery",
        "samples",
        "position.lat",
    ];
    for path in paths {
        selection.add(path).unwrap();
    }
    let mut row = Row::default();
    let failed = Some(Box::new(Quality {
        failure: Some("frozen".into()),
        ..Quality::default()
    }));
    let mut seen = Vec::new();
    for round in 0..6 {
        let is_even = round % 2 == 0;
        let quality = failed.clone().filter(|_| is_even);
        let body = Reading {
            position: reading().position.filter(|_| round % 3 == 0),
            ..reading()
        };
        Event::new(
            Header {
                quality,
                ..header()
            },
            body,
        )
        .read(&selection, &mut row);
        assert_eq!(
            row.slot(0) == Slot::Text("frozen"),
            is_even,
            "round {round}"
        );
        assert_eq!(row.slot(0) == Slot::Missing, !is_even, "round {round}");
        assert_eq!(row.slot(1), Slot::Uint(80));
        assert_eq!(row.slot(1), row.slot(2));
        seen.push(row.slot(4) == Slot::Double(48.2));
        assert_eq!(row.slot(4) == Slot::Missing, round % 3 != 0);
    }
    assert_eq!(seen, [true, false, false, true, false, false]);
}

#[test]
fn what_is_private_is_missing() {
    /// As a private field makes itself known.
    #[derive(Clone, Serialize, Deserialize)]
    #[serde(rename = "milieu::Private")]
    struct Private(u8);
    /// As a point in time does.
    #[derive(Clone, Serialize, Deserialize)]
    #[serde(rename = "milieu::Time")]
    struct Nanoseconds(i64);
    #[derive(Clone, Serialize, Deserialize)]
    struct Pulse {
        at: Nanoseconds,
        pulse: Private,
        room: String,
    }
    let pulse = Pulse {
        at: Nanoseconds(5),
        pulse: Private(70),
        room: "hall".into(),
    };
    assert_eq!(
        read(&["pulse", "room", "at", "value"], &[pulse]),
        [
            r#"Missing Text("hall") Time(5ns) Value(Map(Map([(Text("at"), Time(5ns)), (Text("pulse"), Null), (Text("room"), Text("hall"))])))"#
        ]
    );
}

#[test]
fn bodies_without_a_type_are_read_in_the_same_way() {
    let mut selection = Selection::default();
    for path in ["temperature", "value.rooms[1].name", "value"] {
        selection.add(path).unwrap();
    }
    let room = |name: &str| Value::from(Map::from_iter([("name", name)]));
    let rooms = Value::from(vec![room("kitchen"), room("hall")]);
    let body = Map::from_iter([("temperature", Value::from(3.5)), ("rooms", rooms)]);
    let body = Value::from(body);
    let mut row = Row::default();
    row.read_value(&selection, &body);
    assert_eq!(row.slot(0), Slot::Double(3.5));
    assert_eq!(row.slot(1), Slot::Text("hall"));
    assert_eq!(row.slot(2), Slot::Value(&body));
}

#[test]
fn wrong_paths_are_refused_with_a_way_out() {
    let mut selection = Selection::default();
    let error =
        |path: &str, selection: &mut Selection| selection.add(path).unwrap_err().to_string();
    assert_eq!(
        error("a..b", &mut selection),
        "\"a..b\" is no path of a field; write it as `position.lat` or `samples[3]`"
    );
    for wrong in [
        "",
        ".",
        "a[",
        "a[]",
        "a[-1]",
        "a[1]b",
        "1a",
        "a b",
        "a[99999999999]",
    ] {
        assert!(selection.add(wrong).is_err(), "{wrong:?} is a path");
    }
    assert_eq!(
        error("event.tim", &mut selection),
        "`event.tim` is no part of an event's header; there are `event.name`, `event.time`, \
         `event.sequence`, `event.origin`, `event.age`, `event.accuracy`, `event.failure`; a field \
         of the body that is named `event` is `value.event`"
    );
    assert!(selection.is_empty());
}
