//! Data-stream and delta mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sample::{self, Everything, event, everything, header, values};
use milieu_transfer::{
    DataStream, Decode, Delta, Encode, Error, Event, Header, Kind, Limits, Map, Mode, Private,
    Receiver, Rights, Schema, Sender, Span, Time, Type, Value,
};
use serde::{Deserialize, Serialize};

fn frame(sender: &mut Sender, event: &Event) -> Vec<u8> {
    let mut frame = Vec::new();
    sender.encode(event, &mut frame).unwrap();
    frame
}

fn at(sequence: u64) -> Header {
    Header {
        sequence,
        time: Time::from_seconds(1_356_998_400 + i64::try_from(sequence).unwrap()),
        ..header()
    }
}

fn all(receiver: &mut Receiver, frame: &[u8]) -> Event {
    receiver.decode(frame).unwrap()
}

/// Sends an event and returns its body as a value and as its type.
fn sent<T>(body: T) -> (Value, T)
where
    T: Clone + Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let bytes = DataStream::default()
        .encode(&Event::new(header(), body), Rights::ALL)
        .unwrap();
    let mut receiver = DataStream::default().receiver(Limits::default(), Rights::ALL);
    let event = receiver.decode(&bytes).unwrap();
    let value = event.value(Rights::ALL).unwrap();
    receiver.expect(Type::of::<T>());
    let event = receiver.decode(&bytes).unwrap();
    let event = Kind::<T>::new().adopt(&event, Rights::ALL).unwrap();
    (value, event.get::<T>().unwrap().clone())
}

#[test]
fn types_come_back_as_they_were() {
    assert!(Type::of::<Everything>().schema().is_some());
    let (value, body) = sent(everything());
    assert_eq!(body, everything());
    assert_eq!(value, Value::of(&everything(), Rights::ALL).unwrap());
}

#[test]
fn values_come_back_and_keep_their_kinds() {
    let mut entries: Vec<(Value, Value)> = vec![
        (Value::Int(1), Value::Time(header().time)),
        (Value::Int(2), Value::Time(Time::from_seconds(-7))),
        (Value::Int(3), Value::Span(Span::from_nanoseconds(-1))),
        (Value::Int(4), Value::Bytes([1, 2].as_slice().into())),
        (Value::Int(5), Value::Private(Value::Int(1).into())),
    ];
    entries.push((Value::from("rest"), values()));
    let value = Value::from(Map::new(entries).unwrap());
    assert_eq!(sent(value.clone()), (value.clone(), value));
}

#[test]
fn shared_values_and_cycles_survive_where_that_is_wanted() {
    let cycle = Value::Shared(0, Arc::new(vec![Value::Link(0), Value::Int(1)].into()));
    assert_eq!(sent(cycle.clone()).0, cycle);
    let without = DataStream {
        identity: false,
        ..DataStream::default()
    };
    let event = Event::of_value(header(), cycle);
    assert_eq!(without.encode(&event, Rights::NONE), Err(Error::Cycle));
    let twice = vec![Value::Shared(3, Arc::new("x".into())), Value::Link(3)];
    let event = Event::of_value(header(), twice.into());
    let bytes = without.encode(&event, Rights::NONE).unwrap();
    let back = without
        .decode(&bytes, &Limits::default(), Rights::NONE)
        .unwrap();
    let both: Vec<Value> = vec!["x".into(), "x".into()];
    assert_eq!(back.get(), Some(&Value::from(both)));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    before: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i32),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Skipping {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<u8>,
    second: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Renamed {
    #[serde(rename(serialize = "out", deserialize = "in"), alias = "out")]
    first: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Partly {
    Known,
    #[serde(skip)]
    Internal,
    Last,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tree {
    below: Vec<Tree>,
}

#[test]
fn types_that_do_not_tell_what_they_look_like_travel_with_names() {
    let rest = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
    let flat = Flat { before: 0, rest };
    assert_eq!(sent(flat.clone()).1, flat);
    let untagged = vec![Untagged::Number(-1), Untagged::Text("x".into())];
    assert_eq!(sent(untagged.clone()).1, untagged);
    let renamed = Renamed { first: 3 };
    assert_eq!(sent(renamed.clone()).1, renamed);
    let leaf = Tree { below: Vec::new() };
    let tree = Tree {
        below: vec![leaf.clone(), leaf],
    };
    assert_eq!(sent(tree.clone()).1, tree);
    assert!(Type::of::<Tree>().schema().is_none());
}

#[test]
fn types_that_begin_to_skip_fields_go_on_with_names() {
    let mut sender = DataStream::default().sender(Rights::NONE);
    let mut receiver = DataStream::default().receiver(Limits::default(), Rights::NONE);
    for first in [Some(1), None, Some(2)] {
        let body = Skipping { first, second: 7 };
        let frame = frame(&mut sender, &Event::new(header(), body.clone()));
        let event = all(&mut receiver, &frame);
        let event = Kind::<Skipping>::new().adopt(&event, Rights::NONE).unwrap();
        assert_eq!(event.get(), Some(&body));
    }
}

#[test]
fn variants_that_are_skipped_confuse_nobody() {
    let mut sender = DataStream::default().sender(Rights::NONE);
    let mut receiver = DataStream::default().receiver(Limits::default(), Rights::NONE);
    receiver.expect(Type::of::<Partly>());
    for body in [Partly::Known, Partly::Last, Partly::Known] {
        let frame = frame(&mut sender, &Event::new(header(), body.clone()));
        let event = all(&mut receiver, &frame);
        let event = Kind::<Partly>::new().adopt(&event, Rights::NONE).unwrap();
        assert_eq!(event.get(), Some(&body));
    }
    let internal = Event::new(header(), Partly::Internal);
    assert!(sender.encode(&internal, &mut Vec::new()).is_err());
}

#[test]
fn numbers_that_are_none_are_no_disagreement() {
    let (_, body) = sent((f64::NAN, f32::NAN));
    assert!(body.0.is_nan() && body.1.is_nan());
    let frame = DataStream::default()
        .encode(&Event::new(header(), (f64::NAN, f32::NAN)), Rights::NONE)
        .unwrap();
    assert!(frame.ends_with(&f32::NAN.to_le_bytes()), "it has no schema");
}

#[test]
fn only_the_first_frame_says_names() {
    let mut sender = DataStream::default().sender(Rights::NONE);
    let first = frame(&mut sender, &event());
    let second = frame(&mut sender, &event());
    let has = |frame: &[u8], text: &str| frame.windows(text.len()).any(|it| it == text.as_bytes());
    for name in ["/weather/temperature", "station-1", "by_number", "Circle"] {
        assert!(has(&first, name) && !has(&second, name), "{name}");
    }
    let mut receiver = DataStream::default().receiver(Limits::default(), Rights::NONE);
    let lost = receiver.decode(&second);
    assert_eq!(lost.unwrap_err(), Error::Lost { needed: None });
    let events = [&first, &second].map(|frame| all(&mut receiver, frame));
    assert_eq!(events.each_ref().map(Event::header), [&header(), &header()]);
    assert_eq!(events[0].get::<Value>(), events[1].get::<Value>());
}

#[test]
fn what_is_private_needs_rights_at_both_ends() {
    let bytes = DataStream::default()
        .encode(&event(), Rights::NONE)
        .unwrap();
    let pulse = 71.5_f64.to_le_bytes();
    assert!(!bytes.windows(8).any(|it| it == pulse));
    let mut receiver = DataStream::default().receiver(Limits::default(), Rights::NONE);
    receiver.expect(Type::of::<Everything>());
    let inner = |event: &Event| event.get::<Everything>().unwrap().inner.clone();
    assert_eq!(inner(&all(&mut receiver, &bytes)).secret, Private::absent());

    let bytes = DataStream::default()
        .encode(&event(), Rights::READ)
        .unwrap();
    assert_eq!(receiver.decode(&bytes).unwrap_err(), Error::Private);
    let mut untyped = DataStream::default().receiver(Limits::default(), Rights::READ);
    assert_eq!(untyped.decode(&bytes).unwrap_err(), Error::Private);
    let mut trusted = DataStream::default().receiver(Limits::default(), Rights::SET);
    trusted.expect(Type::of::<Everything>());
    assert_eq!(inner(&all(&mut trusted, &bytes)), everything().inner);
}

#[test]
fn schemas_are_asked_for_where_they_do_not_travel() {
    let named = DataStream {
        schemas: false,
        ..DataStream::default()
    };
    let bytes = named.encode(&event(), Rights::NONE).unwrap();
    let schema = Type::of::<Everything>().schema().unwrap();
    let mut receiver = named.receiver(Limits::default(), Rights::NONE);
    let unknown = receiver.decode(&bytes).unwrap_err();
    assert_eq!(unknown, Error::UnknownSchema(schema.id()));
    receiver.learn(Schema::read(schema.bytes()).unwrap());
    assert!(receiver.decode(&bytes).is_ok());
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Readings {
    station: u32,
    celsius: f64,
    pressure: f64,
    humidity: f64,
    count: i32,
    measured: Time,
}

fn readings() -> Readings {
    Readings {
        station: 100,
        celsius: 21.5,
        pressure: 1013.25,
        humidity: 0.45,
        count: 1000,
        measured: Time::from_seconds(1_356_998_400),
    }
}

#[test]
fn a_delta_says_only_what_changed() {
    let mut sender = Delta::default().sender(Rights::NONE);
    let mut full = DataStream::default().sender(Rights::NONE);
    let mut receiver = Delta::default().receiver(Limits::default(), Rights::NONE);
    receiver.expect(Type::of::<Readings>());
    let mut body = readings();
    let mut send = |body: &Readings, sequence| {
        let event = Event::new(at(sequence), body.clone());
        let frame = frame(&mut sender, &event);
        assert_eq!(all(&mut receiver, &frame).get(), Some(body));
        let full = self::frame(&mut full, &event);
        (frame.len(), full.len())
    };
    send(&body, 1);
    let (same, _) = send(&body, 2);
    body.celsius = 22.0;
    let (double, full) = send(&body, 3);
    body.count = 1001;
    let (integer, _) = send(&body, 4);
    // Beside the header, which an unchanged event has too.
    assert_eq!((double - same, integer - same), (8, 2));
    assert!(full > 40);
}

type Step = Box<dyn FnOnce(&mut Everything)>;

#[test]
fn parts_of_lists_maps_and_variants_change_alone() {
    let mut sender = Delta::default().sender(Rights::ALL);
    let mut receiver = Delta::default().receiver(Limits::default(), Rights::ALL);
    let mut body = everything();
    let mut steps: Vec<Step> = Vec::new();
    steps.push(Box::new(|_| {}));
    steps.push(Box::new(|it| it.shapes[1] = sample::Shape::Circle(2.5)));
    steps.push(Box::new(|it| it.shapes[1] = sample::Shape::Point));
    steps.push(Box::new(|it| it.shapes.truncate(2)));
    steps.push(Box::new(|it| it.nothing = Some(4)));
    steps.push(Box::new(|it| it.nothing = Some(5)));
    steps.push(Box::new(|it| it.nothing = None));
    steps.push(Box::new(|it| *it.by_name.get_mut("b c").unwrap() = 9));
    steps.push(Box::new(|it| it.by_name = [("z".to_owned(), 1)].into()));
    steps.push(Box::new(|it| it.any = values()));
    steps.push(Box::new(|it| it.inner.secret = Private::new(1.0)));
    steps.push(Box::new(|it| it.inner.secret = Private::absent()));
    let mut sequence = 0;
    for step in steps {
        sequence += 1;
        step(&mut body);
        let frame = frame(&mut sender, &Event::new(at(sequence), body.clone()));
        let event = all(&mut receiver, &frame);
        assert_eq!(event.header(), &at(sequence));
        let event = Kind::<Everything>::new()
            .adopt(&event, Rights::ALL)
            .unwrap();
        assert_eq!(event.get(), Some(&body), "after step {sequence}");
    }
}

#[test]
fn one_member_of_a_value_changes_alone() {
    let mut sender = Delta::default().sender(Rights::NONE);
    let mut receiver = Delta::default().receiver(Limits::default(), Rights::NONE);
    let mut map = Map::from_iter((0..20).map(|n| (format!("member-{n}"), Value::Int(n))));
    let value = |map: &Map| Value::from(Map::from_iter([("inner", Value::from(map.clone()))]));
    let opening = frame(&mut sender, &Event::of_value(at(1), value(&map)));
    map.set("member-7".into(), Value::Int(23));
    let patch = frame(&mut sender, &Event::of_value(at(2), value(&map)));
    assert!(patch.len() < 24 && opening.len() > 200, "{}", patch.len());
    all(&mut receiver, &opening);
    assert_eq!(all(&mut receiver, &patch).get(), Some(&value(&map)));
}

#[test]
fn who_loses_something_goes_on_with_a_key_frame() {
    let mode = Delta {
        key_every: 4,
        ..Delta::default()
    };
    let mut sender = mode.sender(Rights::NONE);
    let mut frames = Vec::new();
    for sequence in 1..=10 {
        let body = Readings {
            count: i32::try_from(sequence).unwrap(),
            ..readings()
        };
        frames.push(frame(&mut sender, &Event::new(at(sequence), body)));
    }
    let mut late = mode.receiver(Limits::default(), Rights::NONE);
    let understood: Vec<Result<u64, Error>> = frames[1..]
        .iter()
        .map(|frame| late.decode(frame).map(|event| event.header().sequence))
        .collect();
    let lost = |needed| Err(Error::Lost { needed });
    let expected = [
        lost(None),
        lost(None),
        lost(None),
        Ok(5),
        Ok(6),
        Ok(7),
        Ok(8),
        Ok(9),
        Ok(10),
    ];
    assert_eq!(understood, expected);

    let mut skips = mode.receiver(Limits::default(), Rights::NONE);
    all(&mut skips, &frames[0]);
    let skipped = skips.decode(&frames[2]).unwrap_err();
    assert_eq!(Err(skipped), lost(Some(2)));
    // Asked for, a key frame mends it at once, and disturbs nobody else.
    let last = Event::new(
        at(10),
        Readings {
            count: 10,
            ..readings()
        },
    );
    let mut key = Vec::new();
    sender.key_frame(&last, &mut key).unwrap();
    all(&mut skips, &key);
    let next = frame(&mut sender, &Event::new(at(11), readings()));
    for receiver in [&mut skips, &mut late] {
        assert_eq!(
            all(receiver, &next)
                .value(Rights::NONE)
                .unwrap()
                .to(Rights::NONE),
            Ok(readings())
        );
    }
}

#[test]
fn a_patch_is_not_applied_to_another_event_of_the_same_number() {
    let bodies = [0, 1, 2].map(|count| Readings {
        count,
        ..readings()
    });
    let mut sender = Delta::default().sender(Rights::NONE);
    let [first, second, third] = bodies.map(|body| frame(&mut sender, &Event::new(at(0), body)));
    let mut receiver = Delta::default().receiver(Limits::default(), Rights::NONE);
    all(&mut receiver, &first);
    assert!(matches!(receiver.decode(&third), Err(Error::Lost { .. })));
    all(&mut receiver, &second);
    all(&mut receiver, &third);
}

#[test]
fn whatever_is_changed_in_a_frame_nothing_panics() {
    let mut sender = Delta::default().sender(Rights::ALL);
    let mut other = everything();
    other.shapes.push(sample::Shape::Point);
    other.any = values();
    let frames = [everything(), other].map(|body| frame(&mut sender, &Event::new(at(1), body)));
    let limits = Limits {
        bytes: 1 << 16,
        depth: 16,
    };
    for (index, whole) in frames.iter().enumerate() {
        for at in 0..whole.len() {
            for change in [0, 1, 0x7f, 0x80, 0xff] {
                let mut receiver = Delta::default().receiver(limits, Rights::ALL);
                receiver.expect(Type::of::<Everything>());
                let mut untyped = Delta::default().receiver(limits, Rights::ALL);
                let mut changed = whole.clone();
                changed[at] = change;
                for receiver in [&mut receiver, &mut untyped] {
                    if index == 1 {
                        all(receiver, &frames[0]);
                    }
                    let _ = receiver.decode(&changed);
                    let short = receiver.decode(&whole[..at]);
                    assert!(short.is_err(), "{at} bytes are no frame");
                }
            }
        }
    }
}

#[test]
fn hostile_schemas_are_refused() {
    // A list of nothing, and one of much nothing and a byte.
    let list_of_units = [22, 0];
    assert!(matches!(
        Schema::read(&list_of_units),
        Err(Error::Malformed { .. })
    ));
    let mut wide = vec![22, 23, 10];
    wide.extend([0; 9]);
    wide.push(1);
    assert!(matches!(Schema::read(&wide), Err(Error::Malformed { .. })));
    let deep = vec![20; 1000];
    assert_eq!(Schema::read(&deep), Err(Error::TooDeep { limit: 64 }));
    let many = [23, 0xff, 0xff, 0xff, 0x7f];
    assert!(matches!(Schema::read(&many), Err(Error::Malformed { .. })));
}
