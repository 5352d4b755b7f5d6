//! The modes that name everything: JSON, XML, CBOR and MessagePack.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sample::{Everything, Shape, event, everything, header, values};
use milieu_transfer::{
    Cbor, Error, Event, Json, Kind, Limits, Map, MessagePack, Mode, Private, Rights, Span, Time,
    Value, Xml,
};
use serde::{Deserialize, Serialize};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 64,
};

fn modes() -> [&'static dyn Mode; 4] {
    [&Json, &Xml, &Cbor { identity: true }, &MessagePack]
}

fn encoded(mode: &dyn Mode, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    mode.encode_value(value, Rights::ALL, &mut out).unwrap();
    out
}

fn back(mode: &dyn Mode, value: &Value) -> Value {
    let bytes = encoded(mode, value);
    let result = mode.decode_value(&bytes, &LIMITS, Rights::ALL);
    result.unwrap_or_else(|error| panic!("{}: {error}: {bytes:?}", mode.name()))
}

#[test]
fn typed_events_come_back_as_they_were() {
    for mode in modes() {
        let bytes = mode.encode(&event(), Rights::ALL).unwrap();
        let back = mode.decode(&bytes, &LIMITS, Rights::ALL).unwrap();
        assert_eq!(back.header(), event().header(), "{}", mode.name());
        let back = Kind::<Everything>::new().adopt(&back, Rights::ALL).unwrap();
        assert_eq!(back.get(), Some(&everything()), "{}", mode.name());
    }
}

#[test]
fn what_is_private_needs_rights_at_both_ends() {
    for mode in modes() {
        let name = mode.name();
        let hidden = mode.encode(&event(), Rights::NONE).unwrap();
        let has = |bytes: &[u8]| bytes.windows(6).any(|it| it == b"secret");
        assert!(!has(&hidden), "{name}");
        let back = mode.decode(&hidden, &LIMITS, Rights::NONE).unwrap();
        let back = Kind::<Everything>::new()
            .adopt(&back, Rights::NONE)
            .unwrap();
        let inner = &back.get::<Everything>().unwrap().inner;
        assert_eq!(inner.secret, Private::absent(), "{name}");

        let shown = mode.encode(&event(), Rights::READ).unwrap();
        assert!(has(&shown), "{name}");
        let refused = mode.decode(&shown, &LIMITS, Rights::READ).unwrap_err();
        assert_eq!(refused, Error::Private, "{name}");
        let between = mode.decode(&shown, &LIMITS, Rights::SET).unwrap();
        let end = mode.encode(&between, Rights::NONE).unwrap();
        assert!(!has(&end), "{name}");
    }
}

#[test]
fn values_come_back() {
    for mode in modes() {
        assert_eq!(back(mode, &values()), values(), "{}", mode.name());
        let private = Value::Private(Value::from(vec![Value::Int(1)]).into());
        assert_eq!(back(mode, &private), private, "{}", mode.name());
    }
}

#[test]
fn all_but_json_keep_the_kinds_of_values() {
    let kinds = [
        Value::Bytes([0, 1, 255].as_slice().into()),
        Value::Time(Time::from_seconds(7)),
        Value::Time(Time::from_seconds(1 << 33)),
        Value::Time(Time::from_seconds(-7)),
        Value::Time(Time::from_nanoseconds(1_356_998_400_250_000_001)),
        Value::Time(Time::from_nanoseconds(-1_500_000_001)),
        Value::Span(Span::from_nanoseconds(-1_500_000_001)),
        Value::Span(Span::from_nanoseconds(i64::MAX)),
        Value::Span(Span::from_nanoseconds(i64::MIN)),
        Value::Double(f64::INFINITY),
        Value::Double(f64::NEG_INFINITY),
        Value::Double(-0.0),
        Value::Double(5e-324),
        Value::Double(1e300),
    ];
    for mode in &modes()[1..] {
        for value in &kinds {
            assert_eq!(back(*mode, value), *value, "{}", mode.name());
            let map = Map::new(vec![(value.clone(), value.clone())]).unwrap();
            assert_eq!(
                back(*mode, &map.clone().into()),
                map.into(),
                "{}",
                mode.name()
            );
        }
        assert!(matches!(back(*mode, &Value::Double(f64::NAN)), Value::Double(it) if it.is_nan()));
    }
}

#[test]
fn numbers_and_lengths_of_every_size_come_back() {
    let around = |bits: u32| {
        let power = 1_u64 << bits;
        [power - 1, power, power + 1].map(|number| i64::try_from(number).unwrap_or(i64::MAX))
    };
    let numbers = (0..63)
        .flat_map(around)
        .flat_map(|number| [number, -number, !number]);
    let numbers: Value = numbers.map(Value::Int).collect();
    let lengths: Value = [0, 1, 15, 16, 23, 24, 31, 32, 255, 256, 65_535, 65_536]
        .into_iter()
        .flat_map(|length| {
            let list: Value = (0..length / 8).map(|_| Value::Null).collect();
            let map = Map::from_iter((0..length / 64).map(|key| (key.to_string(), Value::Int(1))));
            [Value::from("x".repeat(length)), list, map.into()]
        })
        .collect();
    for mode in modes() {
        assert_eq!(back(mode, &numbers), numbers, "{}", mode.name());
        assert_eq!(back(mode, &lengths), lengths, "{}", mode.name());
    }
}

#[test]
fn texts_and_keys_of_every_kind_come_back() {
    let texts = [
        "",
        " ",
        "\n",
        "\r\n",
        "\t",
        "\0",
        "\u{1b}[31m",
        "<a>&amp;</a>",
        "]]>",
        "\"'",
        "ä€𝄞",
        "\u{fffe}",
        "entry",
        "xmlns",
        "a b",
        "1a",
        "-",
        "$private",
        "$$private",
        "$",
        "$ref",
        "a:b",
    ];
    let values: Value = texts.into_iter().map(Value::from).collect();
    let map = Map::from_iter(texts.into_iter().map(|text| (text, Value::from(text))));
    for mode in modes() {
        assert_eq!(back(mode, &values), values, "{}", mode.name());
        assert_eq!(
            back(mode, &map.clone().into()),
            map.clone().into(),
            "{}",
            mode.name()
        );
    }
}

#[test]
fn only_cbor_keeps_identity() {
    let cycle = Value::Shared(0, Arc::new(vec![Value::Link(0), Value::Int(1)].into()));
    assert_eq!(back(&Cbor { identity: true }, &cycle), cycle);
    let twice = vec![Value::Shared(9, Arc::new("x".into())), Value::Link(9)];
    let plain = Value::from(vec![Value::from("x"), Value::from("x")]);
    for mode in [
        &Json as &dyn Mode,
        &Xml,
        &Cbor { identity: false },
        &MessagePack,
    ] {
        let mut out = b"before".to_vec();
        let refused = mode.encode_value(&cycle, Rights::ALL, &mut out);
        assert_eq!((refused, &*out), (Err(Error::Cycle), &b"before"[..]));
        assert_eq!(back(mode, &twice.clone().into()), plain);
    }
    let dangling = mode_error(&Cbor { identity: true }, &[0xd8, 29, 0]);
    assert_eq!(dangling, Error::Dangling(0));
    let forward = Value::from(vec![
        Value::Link(0),
        Value::Shared(0, Arc::new(Value::Null)),
    ]);
    let mut out = Vec::new();
    let refused = Cbor { identity: true }.encode_value(&forward, Rights::ALL, &mut out);
    assert_eq!((refused, out.len()), (Err(Error::Dangling(0)), 0));
}

fn mode_error(mode: &dyn Mode, bytes: &[u8]) -> Error {
    mode.decode_value(bytes, &LIMITS, Rights::ALL).unwrap_err()
}

#[test]
fn what_lies_too_deep_is_refused() {
    let deep = |levels: usize| (0..levels).fold(Value::Null, |value, _| vec![value].into());
    for mode in modes() {
        assert_eq!(back(mode, &deep(64)), deep(64), "{}", mode.name());
        let bytes = encoded(mode, &deep(65));
        assert_eq!(
            mode_error(mode, &bytes),
            Error::TooDeep { limit: 64 },
            "{}",
            mode.name()
        );
        let mut out = Vec::new();
        let refused = mode.encode_value(&deep(200), Rights::ALL, &mut out);
        assert_eq!(
            refused,
            Err(Error::TooDeep { limit: 128 }),
            "{}",
            mode.name()
        );
    }
    for (mode, bytes) in [
        (
            &Xml as &dyn Mode,
            "<a type=\"list\">".repeat(10_000).into_bytes(),
        ),
        (&Xml, "<a>".repeat(10_000).into_bytes()),
        (&Cbor { identity: true }, vec![0x81; 100_000]),
        (&Cbor { identity: true }, vec![0xc1; 100_000]),
        (&MessagePack, vec![0x91; 100_000]),
    ] {
        assert_eq!(mode_error(mode, &bytes), Error::TooDeep { limit: 64 });
    }
}

#[test]
fn announcements_are_not_believed() {
    for bytes in [
        &[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
        &[0xbb, 0, 0, 0, 1, 0, 0, 0, 0],
        &[0x7b, 0, 0, 0, 1, 0, 0, 0, 0],
        &[0x5f, 0x41],
        &[0x82, 0xc1, 0x60],
    ] {
        let error = mode_error(&Cbor { identity: true }, bytes);
        assert!(matches!(error, Error::Malformed { .. }), "{bytes:?}");
    }
    for bytes in [
        &[0xdd, 0xff, 0xff, 0xff, 0xff][..],
        &[0xdf, 0, 1, 0, 0],
        &[0xdb, 0, 1, 0, 0],
        &[0xc9, 0, 1, 0, 0, 2],
        &[0xd4, 7, 0],
        &[0xc1],
    ] {
        let error = mode_error(&MessagePack, bytes);
        assert!(matches!(error, Error::Malformed { .. }), "{bytes:?}");
    }
}

#[test]
fn xml_expands_nothing_and_reads_what_others_write() {
    let read = |text: &str| Xml.decode_value(text.as_bytes(), &LIMITS, Rights::ALL);
    for text in [
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
        "<a>&b;</a>",
        "<a>&#0;</a>",
        "<a b=\"&c;\"/>",
        "<a/><b/>",
        "<a><b></a></b>",
        "<a type=\"int\">x</a>",
        "<a type=\"thing\"/>",
        "<a type=\"null\">x</a>",
        "<a type=\"list\">x</a>",
        "<a>x<b/></a>",
        "<a><b/><b/></a>",
        "<a",
        "",
    ] {
        assert!(matches!(read(text), Err(Error::Malformed { .. })), "{text}");
    }
    let text = "<?xml version=\"1.0\"?>\n<!-- by hand -->\n<reading xmlns=\"urn:x\">\n  \
        <celsius type=\"double\">21.5</celsius>\n  <place><![CDATA[<roof>]]> &amp; more</place>\n  \
        <none type=\"null\"/>\n</reading>\n";
    let expected = Map::from_iter([
        ("celsius", Value::Double(21.5)),
        ("place", "<roof> & more".into()),
        ("none", Value::Null),
    ]);
    assert_eq!(read(text), Ok(expected.into()));
}

/// What every library for these formats can read and write.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Plain {
    flag: bool,
    numbers: (i8, u16, i32, u64, i64),
    single: f32,
    double: f64,
    text: String,
    shapes: Vec<Shape>,
    by_name: BTreeMap<String, i32>,
    nothing: Option<u8>,
}

fn plain() -> Plain {
    let Everything {
        text,
        shapes,
        by_name,
        ..
    } = everything();
    Plain {
        flag: true,
        numbers: (-7, 300, -70_000, u64::MAX, i64::MIN),
        single: 0.1,
        double: 1e300,
        text,
        shapes,
        by_name,
        nothing: None,
    }
}

#[test]
fn other_libraries_read_and_write_the_same() {
    let value = Value::of(&plain(), Rights::NONE).unwrap();
    let read = |mode: &dyn Mode, bytes: &[u8]| -> Plain {
        let value = mode.decode_value(bytes, &LIMITS, Rights::NONE).unwrap();
        value.to(Rights::NONE).unwrap()
    };
    let cbor = Cbor::default();
    let mut theirs = Vec::new();
    ciborium::into_writer(&plain(), &mut theirs).unwrap();
    assert_eq!(read(&cbor, &theirs), plain());
    let ours = encoded(&cbor, &value);
    assert_eq!(ciborium::from_reader::<Plain, _>(&*ours).unwrap(), plain());

    let theirs = rmp_serde::to_vec_named(&plain()).unwrap();
    assert_eq!(read(&MessagePack, &theirs), plain());
    let ours = encoded(&MessagePack, &value);
    assert_eq!(rmp_serde::from_slice::<Plain>(&ours).unwrap(), plain());

    let theirs = serde_json::to_vec(&plain()).unwrap();
    assert_eq!(read(&Json, &theirs), plain());
    let mut ours = Vec::new();
    Json.encode_value(&value, Rights::NONE, &mut ours).unwrap();
    assert_eq!(serde_json::from_slice::<Plain>(&ours).unwrap(), plain());
}

#[test]
fn whatever_is_changed_nothing_panics() {
    for mode in modes() {
        let whole = mode.encode(&event(), Rights::ALL).unwrap();
        for at in 0..whole.len() {
            for change in [0, 0x3c, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = change;
                let _ = mode.decode(&changed, &LIMITS, Rights::ALL);
            }
            let short = mode.decode(&whole[..at], &LIMITS, Rights::ALL);
            assert!(short.is_err(), "{}: {at} bytes are no event", mode.name());
        }
    }
}

#[test]
fn an_event_without_a_type_goes_from_mode_to_mode() {
    let mut value = values();
    let mut event = Event::of_value(header(), value.clone());
    for mode in modes().into_iter().cycle().take(8) {
        let bytes = mode.encode(&event, Rights::NONE).unwrap();
        event = mode.decode(&bytes, &LIMITS, Rights::NONE).unwrap();
        value = event.value(Rights::NONE).unwrap();
    }
    assert_eq!((value, event.header()), (values(), &header()));
}
