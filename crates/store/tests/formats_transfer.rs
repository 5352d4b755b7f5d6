//! Sets of keys in every format and back, and YAML as others read it.

use std::collections::BTreeMap;

use milieu_keys::Name;
use milieu_store::transfer::{Target, import};
use milieu_store::{Kind, format};
use proptest::prelude::*;
use serde_yaml_ng::Value;

type Keys = BTreeMap<Name, String>;

fn keys(pairs: &[(&str, &str)]) -> Keys {
    pairs
        .iter()
        .map(|(name, value)| (Name::parse(name).unwrap(), (*value).to_owned()))
        .collect()
}

fn export(target: Target, keys: &Keys, kind: Kind) -> String {
    let keys = keys.iter().map(|(name, value)| (name, &**value, kind));
    target.export(keys).unwrap()
}

fn named(name: &str) -> Target {
    Target::by_name(name).unwrap()
}

#[test]
fn every_target_has_a_name() {
    for target in Target::all() {
        assert_eq!(Target::by_name(target.name()), Some(target));
    }
    assert_eq!(Target::by_name("xml"), None);
}

fn settings() -> Keys {
    keys(&[
        ("/station", "roof"),
        ("/sw/pi", "on"),
        ("/sw/pi/%/language", "en"),
        ("/sw/pi/anna/language", "de"),
        ("/sw/pi/anna/volume", "11"),
        ("/sw/pi/hosts/#0/name", "a"),
        ("/sw/pi/hosts/#0/ports/#0", "80"),
        ("/sw/pi/hosts/#0/ports/#1", "443"),
        ("/sw/pi/hosts/#1/name", "b"),
        ("/sw/sparse/#1", "1"),
    ])
}

#[test]
#[cfg(feature = "toml")]
fn toml_has_tables() {
    assert_eq!(
        export(named("toml"), &settings(), Kind::Unknown),
        r##"station = "roof"

[sw.pi]
"" = "on"

[sw.pi."%"]
language = "en"

[sw.pi.anna]
language = "de"
volume = 11

[[sw.pi.hosts]]
name = "a"
ports = [80, 443]

[[sw.pi.hosts]]
name = "b"

[sw.sparse]
"#1" = 1
"##
    );
}

#[test]
#[cfg(feature = "json")]
fn json_has_objects() {
    assert_eq!(
        export(named("json"), &settings(), Kind::Unknown),
        r##"{
  "station": "roof",
  "sw": {
    "pi": {
      "%": {
        "language": "en"
      },
      "anna": {
        "language": "de",
        "volume": 11
      },
      "hosts": [
        {
          "name": "a",
          "ports": [
            80,
            443
          ]
        },
        {
          "name": "b"
        }
      ],
      "": "on"
    },
    "sparse": {
      "#1": 1
    }
  }
}
"##
    );
}

#[test]
fn yaml_quotes_what_could_be_misread() {
    assert_eq!(
        export(named("yaml"), &settings(), Kind::Unknown),
        r##"station: roof
sw:
  pi:
    "": "on"
    "%":
      language: en
    anna:
      language: de
      volume: 11
    hosts:
      - name: a
        ports:
          - 80
          - 443
      - name: b
  sparse:
    "#1": 1
"##
    );
    for (value, written) in [
        ("", "\"\""),
        ("two words", "two words"),
        ("/dev/ttyUSB0", "/dev/ttyUSB0"),
        ("no", "\"no\""),
        ("Off", "\"Off\""),
        ("y", "\"y\""),
        ("~", "\"~\""),
        ("null", "\"null\""),
        ("1e3", "\"1e3\""),
        ("1.0e+3", "1.0e+3"),
        ("007", "\"007\""),
        ("0x1f", "\"0x1f\""),
        ("1:30", "\"1:30\""),
        ("1_000", "\"1_000\""),
        (".5", "\".5\""),
        (".inf", "\".inf\""),
        ("1979-05-27", "\"1979-05-27\""),
        (" a", "\" a\""),
        ("a ", "\"a \""),
        ("a: b", "\"a: b\""),
        ("a #b", "\"a #b\""),
        ("- a", "\"- a\""),
        ("é\n\u{85}\u{feff}", "\"é\\n\\u0085\\ufeff\""),
        ("12345678901234567890", "\"12345678901234567890\""),
    ] {
        let text = export(named("yaml"), &keys(&[("/a", value)]), Kind::Unknown);
        assert_eq!(text, format!("a: {written}\n"));
    }
    let typed = |kind, value| export(named("yaml"), &keys(&[("/a", value)]), kind);
    assert_eq!(typed(Kind::Text, "5"), "a: \"5\"\n");
    assert_eq!(typed(Kind::Boolean, "1"), "a: true\n");
    assert_eq!(export(named("yaml"), &keys(&[]), Kind::Unknown), "{}\n");
    assert_eq!(
        export(named("yaml"), &keys(&[("/", "x")]), Kind::Unknown),
        "x\n"
    );
    assert_eq!(
        export(
            named("yaml"),
            &keys(&[("/#0/#0", "1"), ("/#0/#1/a", "2")]),
            Kind::Unknown
        ),
        "- - 1\n  - a: 2\n"
    );
}

#[test]
fn what_is_too_deep_is_refused() {
    let deep = keys(&[(&"/a".repeat(1000), "1")]);
    for target in Target::all().filter(|target| target.name() != "ini") {
        let keys = deep
            .iter()
            .map(|(name, value)| (name, &**value, Kind::Unknown));
        let refused = target.export(keys).unwrap_err();
        assert!(
            refused.message.ends_with("has more than 128 levels"),
            "{refused}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_not_imported() {
    for format in format::all() {
        assert!(!import(*format, "[/a\n").unwrap_err().is_empty());
    }
}

fn level() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => proptest::sample::select(&["a", "b", "c", "no", "1", "x.y"][..]).prop_map(str::to_owned),
        6 => proptest::sample::select(&["#0", "#0", "#1", "#2", "#10", "#_10"][..]).prop_map(str::to_owned),
        2 => proptest::sample::select(&["%", "\\%", "a%", "\\\\", "\\\\a%", "a\\/b", "\\..", " ", "é", "\"", "'", "\n\t\u{7f}", ": ", "- "][..]).prop_map(str::to_owned),
        1 => proptest::collection::vec(any::<char>(), 1..4).prop_map(|raw| {
            let mut level = String::new();
            milieu_keys::escape_value(&raw.into_iter().collect::<String>(), &mut level);
            level
        }),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(
            &[
                "",
                "x",
                "1",
                "-0",
                "007",
                "1.5",
                "1e3",
                "true",
                "null",
                "~",
                "yes",
                "1979-05-27",
                "a\nb",
                " ",
                "\"'\\",
                "\u{1b}\u{0}\u{85}\u{2028}\u{feff}\r\n"
            ][..]
        )
        .prop_map(str::to_owned),
        any::<String>(),
        Just("long ".repeat(1000)),
    ]
}

fn some_keys() -> impl Strategy<Value = Keys> {
    let name = proptest::collection::vec(level(), 0..5).prop_map(|levels| {
        Name::parse(&format!("/{}", levels.join("/"))).expect("levels make a name")
    });
    proptest::collection::btree_map(name, value(), 0..12)
}

proptest! {
    #[test]
    fn what_was_exported_is_imported(keys in some_keys(), kind in proptest::sample::select(&[Kind::Unknown, Kind::Text, Kind::Number][..])) {
        for format in format::all() {
            let mut keys = keys.clone();
            if format.name() == "ini" {
                // The root of an INI file has no value.
                keys.remove("/");
            }
            let text = export(Target::Format(*format), &keys, kind);
            let read = import(*format, &text);
            prop_assert!(read.is_ok(), "{text}\n{read:?}");
            prop_assert_eq!(read.unwrap().into_iter().collect::<Keys>(), keys, "{}", text);
        }
    }

    #[test]
    fn yaml_means_the_same_to_others(keys in some_keys(), kind in proptest::sample::select(&[Kind::Unknown, Kind::Text][..])) {
        let text = export(named("yaml"), &keys, kind);
        let value: Value = serde_yaml_ng::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        for (name, expected) in &keys {
            let found = at(&value, name);
            let right = match found {
                Some(Value::String(text)) => text == expected,
                Some(Value::Bool(truth)) => truth.to_string() == *expected && kind == Kind::Unknown,
                Some(Value::Number(number)) => kind == Kind::Unknown && number.as_f64() == expected.parse().ok(),
                _ => false,
            };
            prop_assert!(right, "{name} is {found:?} in\n{text}");
        }
        prop_assert_eq!(count(&value), keys.len());
    }
}

/// The value of a key in what a reader of YAML made.
fn at<'v>(value: &'v Value, name: &Name) -> Option<&'v Value> {
    let mut here = value;
    for level in name.levels() {
        here = match here {
            Value::Sequence(elements) => elements.get(milieu_keys::rules::array_index(level)?)?,
            other => member(other, level)?,
        };
    }
    match here {
        Value::Mapping(members) => members.get(""),
        value => Some(value),
    }
}

/// The member that a level is written as.
fn member<'v>(object: &'v Value, level: &str) -> Option<&'v Value> {
    let escaped = format!("\\{level}");
    let has_percent = level.contains('%') && level != "%";
    let plain = milieu_keys::name::unescape(level);
    let written = has_percent.then(|| object.get(&*escaped)).flatten();
    written.or_else(|| object.get(&*plain))
}

fn count(value: &Value) -> usize {
    match value {
        Value::Sequence(elements) => elements.iter().map(count).sum(),
        Value::Mapping(members) => members.values().map(count).sum(),
        _ => 1,
    }
}
