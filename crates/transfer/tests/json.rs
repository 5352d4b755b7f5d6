//! Events as JSON.

use crate::sample::{self, Everything, event, everything, header, values};
use milieu_transfer::{Error, Event, Json, Kind, Limits, Map, Mode, Private, Rights, Value};

fn decode(text: &str) -> Result<Event, Error> {
    Json.decode(text.as_bytes(), &Limits::default(), Rights::NONE)
}

fn text(value: &Value) -> String {
    let mut out = Vec::new();
    Json.encode_value(value, Rights::ALL, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn value(text: &str) -> Result<Value, Error> {
    Json.decode_value(text.as_bytes(), &Limits::default(), Rights::ALL)
}

#[test]
fn the_envelope_is_as_documented() {
    let body = Map::from_iter([("celsius", 21.5)]);
    let event = Event::of_value(header(), body.into());
    let json = Json.encode(&event, Rights::NONE).unwrap();
    assert_eq!(
        String::from_utf8(json).unwrap(),
        r#"{"name":"/weather/temperature","time":"2013-01-01T00:00:00.250Z","#.to_owned()
            + r#""origin":"station-1","incarnation":3,"sequence":7,"#
            + r#""quality":{"age":"PT0.250S","accuracy":0.5,"failure":"stuck"},"#
            + r#""value":{"celsius":21.5}}"#
    );
}

#[test]
fn a_typed_event_comes_back_as_it_was() {
    let json = Json.encode(&event(), Rights::ALL).unwrap();
    let back = Json.decode(&json, &Limits::default(), Rights::ALL).unwrap();
    assert_eq!(back.header(), event().header());
    let back = Kind::<Everything>::new().adopt(&back, Rights::ALL).unwrap();
    assert_eq!(back.get(), Some(&everything()));
}

#[test]
fn what_is_private_is_left_out_without_the_right() {
    let json = Json.encode(&event(), Rights::NONE).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(!json.contains("secret") && !json.contains("71.5"), "{json}");
    let back = Kind::<Everything>::new().adopt(&decode(&json).unwrap(), Rights::NONE);
    let inner = back.unwrap().get::<Everything>().unwrap().inner.clone();
    assert_eq!(inner.secret, Private::absent());
}

#[test]
fn what_is_private_is_not_set_without_the_right() {
    let json = Json.encode(&event(), Rights::READ).unwrap();
    let refused = Json.decode(&json, &Limits::default(), Rights::READ);
    assert_eq!(refused.unwrap_err(), Error::Private);
    // Nor by leaving out the mark.
    let json = String::from_utf8(json).unwrap();
    let plain = json.replace(r#"{"$private":71.5}"#, "71.5");
    let untyped = decode(&plain).unwrap();
    let kind = Kind::<Everything>::new();
    assert_eq!(
        kind.adopt(&untyped, Rights::NONE).unwrap_err(),
        Error::Private
    );
    assert!(kind.adopt(&untyped, Rights::SET).is_ok());
}

#[test]
fn what_stays_private_on_the_way_is_private_at_the_end() {
    let json = Json.encode(&event(), Rights::READ).unwrap();
    let between = Json.decode(&json, &Limits::default(), Rights::SET).unwrap();
    let end = Json.encode(&between, Rights::NONE).unwrap();
    assert!(!String::from_utf8(end).unwrap().contains("71.5"));
}

#[test]
fn serializers_that_know_nothing_of_rights_reveal_nothing() {
    let json = serde_json::to_string(&everything().inner).unwrap();
    assert_eq!(json, r#"{"name":"Anna","secret":null}"#);
    let set = serde_json::from_str::<sample::Inner>(r#"{"name":"Anna","secret":1.0}"#);
    assert!(set.is_err());
}

#[test]
fn values_come_back() {
    assert_eq!(value(&text(&values())), Ok(values()));
    assert_eq!(
        value(r#"{"$private":1}"#),
        Ok(Value::Private(Value::Int(1).into()))
    );
}

#[test]
fn an_event_needs_a_name_and_a_time() {
    for (json, member) in [
        (r#"{"time":"2013-01-01T00:00:00Z"}"#, "name"),
        (r#"{"name":"/a"}"#, "time"),
        (r#"{"name":"a//..","time":"2013-01-01T00:00:00Z"}"#, "name"),
        (r#"{"name":"/a","time":"yesterday"}"#, "time"),
        (
            r#"{"name":"/a","time":"2013-01-01T00:00:00Z","sequence":-1}"#,
            "sequence",
        ),
        (
            r#"{"name":"/a","time":"2013-01-01T00:00:00Z","quality":{"age":1}}"#,
            "age",
        ),
        ("7", "name"),
    ] {
        match decode(json) {
            Err(Error::Envelope { member: found, .. }) => assert_eq!(found, member, "{json}"),
            other => panic!("{json} gave {other:?}"),
        }
    }
}

#[test]
fn what_is_malformed_is_refused_where_it_is() {
    for (json, at) in [
        ("", 0),
        ("[1,]", 3),
        ("[\n1,\n}", 5),
        ("1 2", 2),
        (r#"{"a":1,"a":2}"#, 12),
    ] {
        match value(json) {
            Err(Error::Malformed { at: found, .. }) => assert_eq!(found, at, "{json}"),
            other => panic!("{json} gave {other:?}"),
        }
    }
    for json in [r#"{"$private":1,"b":2}"#, r#"{"b":2,"$private":1}"#] {
        assert!(
            matches!(value(json), Err(Error::Malformed { .. })),
            "{json}"
        );
    }
    let deep = "[".repeat(100_000);
    assert_eq!(value(&deep), Err(Error::TooDeep { limit: 128 }));
    let limits = Limits { bytes: 3, depth: 1 };
    let large = Json.decode_value(b"[1]", &limits, Rights::NONE);
    assert!(large.is_ok());
    let large = Json.decode_value(b"[10]", &limits, Rights::NONE);
    assert_eq!(large, Err(Error::TooLarge { limit: 3 }));
}

#[test]
fn shared_values_are_written_out() {
    let shared = Value::Shared(0, Value::from("x").into());
    let both = Value::from(vec![shared, Value::Link(0)]);
    assert_eq!(text(&both), r#"["x","x"]"#);
    let mut out = Vec::new();
    let cycle = Value::Shared(0, Value::from(vec![Value::Link(0)]).into());
    let refused = Json.encode_value(&cycle, Rights::NONE, &mut out);
    assert_eq!((refused, out.len()), (Err(Error::Cycle), 0));
}

#[test]
fn a_link_to_something_private_says_nothing() {
    let shared = Value::Shared(0, Value::from("x").into());
    let both = Value::from(vec![Value::Private(shared.into()), Value::Link(0)]);
    let event = Event::of_value(header(), both);
    let json = Json.encode(&event, Rights::NONE).unwrap();
    assert!(
        String::from_utf8(json)
            .unwrap()
            .ends_with(r#""value":[null,null]}"#)
    );
}
