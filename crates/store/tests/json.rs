//! The JSON document: what editing changes, what is read how, what is refused.
use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_store::json::Json;
use milieu_store::{Document, Format, Kind, Unwritable};

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn parsed(text: &str) -> Box<dyn Document> {
    let (document, diagnostics) = Json.parse(text);
    assert_eq!(diagnostics, [], "{text:?}");
    assert_eq!(document.text(), text);
    document
}

fn after_set(text: &str, key: &str, value: &str) -> String {
    let mut document = parsed(text);
    document.set(&name(key), value, Kind::Unknown).unwrap();
    let edited = document.text();
    assert_eq!(parsed(&edited).get(key).as_deref(), Some(value), "{edited}");
    edited
}

fn after_remove(text: &str, key: &str) -> String {
    let mut document = parsed(text);
    assert!(document.remove(key).unwrap().is_some(), "{key} is there");
    let edited = document.text();
    assert_eq!(parsed(&edited).get(key), None);
    edited
}

fn keys(text: &str) -> Vec<(String, String, u32)> {
    let document = parsed(text);
    let keys = document
        .keys()
        .map(|entry| (entry.name.to_string(), entry.value.into_owned(), entry.line));
    let keys: Vec<_> = keys.collect();
    let mut loaded = Vec::new();
    assert!(Json.load(text, &mut |name, value, line| {
        loaded.push((name.to_string(), value.to_owned(), line));
        true
    }));
    assert_eq!(loaded, keys);
    keys
}

fn key(name: &str, value: &str, line: u32) -> (String, String, u32) {
    (name.to_owned(), value.to_owned(), line)
}

const SETTINGS: &str = r#"{
  // The station's settings.
  "sw": {
    "pi": {
      "anna": {
        "language": "de",
        "volume": 11 // loud
      },
      "%": { "language": "en" }
    }
  },

  "hosts": ["a", "b"]
}
"#;

#[test]
fn members_are_levels_and_elements_have_numbers() {
    assert_eq!(
        keys(SETTINGS),
        [
            key("/sw/pi/anna/language", "de", 6),
            key("/sw/pi/anna/volume", "11", 7),
            key("/sw/pi/%/language", "en", 9),
            key("/hosts/#0", "a", 13),
            key("/hosts/#1", "b", 13),
        ]
    );
    let ten = r#"[0,1,2,3,4,5,6,7,8,9,10,{"x":11}]"#;
    let names: Vec<String> = keys(ten).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names[9..], ["/#9", "/#_10", "/#_11/x"]);
}

#[test]
fn values_are_texts_or_as_they_are_written() {
    let text = r#"{"a": "é\n\u00e9\ud83d\ude00\/", "b": -1.50e+2, "c": true, "d": null, "e": {}, "f": [], "g": ""}"#;
    assert_eq!(
        keys(text),
        [
            key("/a", "é\né😀/", 1),
            key("/b", "-1.50e+2", 1),
            key("/c", "true", 1),
            key("/g", "", 1),
        ]
    );
    assert_eq!(keys("5"), [key("/", "5", 1)]);
    assert_eq!(keys("\u{feff}\n// nothing\n"), []);
    assert_eq!(keys(""), []);
}

#[test]
fn names_that_mean_something_are_told_apart() {
    let text = r##"{"a/b": 1, "..": 2, "50%": 3, "%": 4, "\\": 5, "#0": 6, "x": {"": 7, "y": 8}, "": 9, "z": {"": {"": 10}}}"##;
    assert_eq!(
        keys(text),
        [
            key("/a\\/b", "1", 1),
            key("/\\..", "2", 1),
            key("/50\\%", "3", 1),
            key("/%", "4", 1),
            key("/\\\\", "5", 1),
            key("/#0", "6", 1),
            key("/x", "7", 1),
            key("/x/y", "8", 1),
            key("/", "9", 1),
            key("/z/\\\\", "10", 1),
        ]
    );
}

#[test]
fn setting_a_key_changes_its_value_and_nothing_else() {
    assert_eq!(
        after_set(SETTINGS, "/sw/pi/anna/language", "fr"),
        SETTINGS.replace("\"de\"", "\"fr\"")
    );
    assert_eq!(
        after_set(SETTINGS, "/sw/pi/anna/volume", "3"),
        SETTINGS.replace("11", "3")
    );
    assert_eq!(
        after_set(SETTINGS, "/hosts/#0", "c"),
        SETTINGS.replace("\"a\"", "\"c\"")
    );
    assert_eq!(
        after_set(r#"{"a": "\u0041"}"#, "/a", "A"),
        r#"{"a": "\u0041"}"#
    );
    assert_eq!(
        after_set("\u{feff}{\"a\":1}", "/a", "2"),
        "\u{feff}{\"a\":2}"
    );
    assert_eq!(after_set("5", "/", "6"), "6");
    assert_eq!(after_set(r#"{"a": null}"#, "/a", "x"), r#"{"a": "x"}"#);
    assert_eq!(
        after_set(r#"{"a": null}"#, "/a/b", "x"),
        r#"{"a": {"b": "x"}}"#
    );
}

#[test]
fn a_value_keeps_its_kind_where_it_can() {
    for (before, value, after) in [
        ("\"1\"", "2", "\"2\""),
        ("1", "2.5", "2.5"),
        ("1", "many", "\"many\""),
        ("1", "007", "\"007\""),
        ("1", "true", "true"),
        ("true", "false", "false"),
        ("true", "yes", "\"yes\""),
        ("null", "1e3", "1e3"),
        ("null", "1e999", "\"1e999\""),
        ("null", "18446744073709551615", "18446744073709551615"),
        ("null", "18446744073709551616", "\"18446744073709551616\""),
        ("null", "null", "\"null\""),
    ] {
        assert_eq!(after_set(before, "/", value), after, "{before} {value}");
    }
    for (value, kind, after) in [
        ("1", Kind::Text, "\"1\""),
        ("1", Kind::Number, "1"),
        ("inf", Kind::Number, "\"inf\""),
        ("1", Kind::Boolean, "true"),
        ("0", Kind::Boolean, "false"),
        ("false", Kind::Boolean, "false"),
        ("2", Kind::Boolean, "\"2\""),
    ] {
        let mut document = parsed("null");
        document.set(&name("/"), value, kind).unwrap();
        assert_eq!(document.text(), after, "{value} {kind:?}");
    }
}

#[test]
fn a_new_key_joins_its_siblings_and_is_written_as_they_are() {
    assert_eq!(
        after_set(SETTINGS, "/sw/pi/anna/name", "Anna"),
        SETTINGS.replace("11 // loud\n", "11, // loud\n        \"name\": \"Anna\"\n")
    );
    assert_eq!(
        after_set(SETTINGS, "/sw/pi/%/volume", "5"),
        SETTINGS.replace("\"en\" }", "\"en\", \"volume\": 5 }")
    );
    assert_eq!(
        after_set(SETTINGS, "/hosts/#2", "c"),
        SETTINGS.replace("\"b\"]", "\"b\", \"c\"]")
    );
    assert_eq!(after_set(r#"{"a":1}"#, "/b", "2"), r#"{"a":1,"b":2}"#);
    assert_eq!(after_set(r#"{"a":[1]}"#, "/a/#1", "2"), r#"{"a":[1,2]}"#);
    assert_eq!(after_set(r#"{"a": [1]}"#, "/a/#1", "2"), r#"{"a": [1, 2]}"#);
    assert_eq!(after_set("[\n1,\n]", "/#1", "2"), "[\n1,\n2,\n]");
    assert_eq!(after_set("[1, ]", "/#1", "2"), "[1, 2, ]");
    assert_eq!(after_set("[1 // one\n]", "/#1", "2"), "[1, 2 // one\n]");
    assert_eq!(
        after_set("{\r\n\t\"a\": 1\r\n}", "/b", "2"),
        "{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}"
    );
    assert_eq!(
        after_set("[\n  {\"a\": 1},\n  {\"a\": 2}\n]\n", "/#2/a", "3"),
        "[\n  {\"a\": 1},\n  {\"a\": 2},\n  {\"a\": 3}\n]\n"
    );
}

#[test]
fn a_new_key_brings_the_objects_that_lead_to_it() {
    assert_eq!(
        after_set("", "/sw/pi/language", "de"),
        "{\n  \"sw\": {\n    \"pi\": {\n      \"language\": \"de\"\n    }\n  }\n}\n"
    );
    assert_eq!(after_set("", "/", "de"), "\"de\"\n");
    assert_eq!(
        after_set("// mine", "/a", "1"),
        "// mine\n{\n  \"a\": 1\n}\n"
    );
    assert_eq!(
        after_set("", "/a/#0/b", "1"),
        "{\n  \"a\": [\n    {\n      \"b\": 1\n    }\n  ]\n}\n"
    );
    assert_eq!(after_set("{}", "/a", "1"), "{\n  \"a\": 1\n}");
    assert_eq!(after_set("{\"a\":{}}", "/a/b", "1"), "{\"a\":{\"b\":1}}");
    assert_eq!(
        after_set("{\n    \"a\": {}\n}", "/a/b", "1"),
        "{\n    \"a\": {\n        \"b\": 1\n    }\n}"
    );
    assert_eq!(
        after_set("{\n  // nothing yet\n}", "/a", "1"),
        "{\n  // nothing yet\n  \"a\": 1\n}"
    );
    assert_eq!(
        after_set("{ /* none */ }", "/a", "1"),
        "{ /* none */ \"a\": 1 }"
    );
}

#[test]
fn a_value_with_keys_below_it_becomes_an_object() {
    assert_eq!(
        after_set(r#"{"a":1}"#, "/a/b", "2"),
        r#"{"a":{"":1,"b":2}}"#
    );
    assert_eq!(
        after_set(r#"{"a": {"b": 2}}"#, "/a", "1"),
        r#"{"a": {"b": 2, "": 1}}"#
    );
    assert_eq!(
        after_set(r#"{"a": {"": 1}}"#, "/a", "3"),
        r#"{"a": {"": 3}}"#
    );
    assert_eq!(
        after_set("{\n  \"a\": 1\n}\n", "/a/b", "2"),
        "{\n  \"a\": {\n    \"\": 1,\n    \"b\": 2\n  }\n}\n"
    );
    assert_eq!(after_set("1", "/a", "2"), "{\n  \"\": 1,\n  \"a\": 2\n}");
    assert_eq!(
        after_remove(r#"{"a": {"": 1, "b": 2}}"#, "/a"),
        r#"{"a": {"b": 2}}"#
    );
}

#[test]
fn removing_takes_the_item_with_its_comma_its_line_and_its_comment() {
    assert_eq!(
        after_remove(SETTINGS, "/sw/pi/anna/volume"),
        SETTINGS.replace("\"de\",\n        \"volume\": 11 // loud\n", "\"de\"\n")
    );
    assert_eq!(
        after_remove(SETTINGS, "/sw/pi/anna/language"),
        SETTINGS.replace("        \"language\": \"de\",\n", "")
    );
    assert_eq!(
        after_remove(SETTINGS, "/sw/pi/%/language"),
        SETTINGS.replace(
            "      },\n      \"%\": { \"language\": \"en\" }\n",
            "      }\n"
        )
    );
    assert_eq!(
        after_remove(SETTINGS, "/hosts/#1"),
        SETTINGS.replace("[\"a\", \"b\"]", "[\"a\"]")
    );
    assert_eq!(after_remove("[1, 2, ]", "/#1"), "[1, ]");
    assert_eq!(after_remove("[\n  1,\n  2,\n]", "/#1"), "[\n  1,\n]");
    assert_eq!(after_remove("[\n  1 // one\n]", "/#0"), "[]");
    assert_eq!(after_remove("[ 1, // one\n  2 ]", "/#1"), "[ 1 // one\n ]");
    assert_eq!(after_remove("{ \"a\": 1, \"b\": 2 }", "/a"), "{ \"b\": 2 }");
    assert_eq!(after_remove("{ \"a\": 1, \"b\": 2 }", "/b"), "{ \"a\": 1 }");
    assert_eq!(after_remove("{ \"a\": 1 }", "/a"), "{}");
    assert_eq!(after_remove("5 // five", "/"), " // five");
    assert_eq!(
        after_remove(
            "{\n  \"a\": 1,\n\n  // b and c\n\n  \"b\": 2,\n\n  \"c\": 3\n}",
            "/b"
        ),
        "{\n  \"a\": 1,\n\n  // b and c\n\n  \"c\": 3\n}"
    );
    assert_eq!(
        after_remove("{\n  \"a\": 1,\n\n  \"b\": 2\n}", "/b"),
        "{\n  \"a\": 1\n}"
    );
}

#[test]
fn what_holds_nothing_any_more_goes_as_well_unless_somebody_would_miss_it() {
    assert_eq!(
        after_remove(r#"{"a": {"b": [{"c": 1}]}, "d": 2}"#, "/a/b/#0/c"),
        r#"{"d": 2}"#
    );
    assert_eq!(
        after_remove("{\"a\": {\n  // about b\n  \"b\": 1\n}}", "/a/b"),
        "{\"a\": {\n  // about b\n}}"
    );
    assert_eq!(
        after_remove(r#"[{"a": 1}, {"a": 2}]"#, "/#0/a"),
        r#"[{}, {"a": 2}]"#
    );
    assert_eq!(after_remove(r#"[{}, {"a": 2}]"#, "/#1/a"), "[{}]");
    assert_eq!(
        after_remove(r#"{"a": {"b": 1, "c": null}}"#, "/a/b"),
        r#"{"a": {"c": null}}"#
    );
}

#[test]
fn what_cannot_be_written_is_refused_and_changes_nothing() {
    let long = "/x".repeat(129);
    let cases: &[(&str, &str, &str)] = &[
        (
            "/hosts",
            "`/hosts` is an array, which has no value of its own",
            "set one of its elements, or remove them first",
        ),
        (
            "/hosts/#3",
            "`/hosts/#3` is not the next element of the array `/hosts`",
            "set `/hosts/#2`",
        ),
        (
            "/hosts/x/y",
            "`/hosts/x` is not the next element of the array `/hosts`",
            "set `/hosts/#2`",
        ),
        (
            &long,
            "the name has more than 128 levels",
            "use a shorter one",
        ),
    ];
    for (key, message, help) in cases {
        let mut document = parsed(SETTINGS);
        let Unwritable {
            message: found,
            help: way_out,
        } = document.set(&name(key), "x", Kind::Unknown).unwrap_err();
        assert_eq!((&*found, &*way_out), (*message, *help));
        assert_eq!(document.text(), SETTINGS);
    }
    let mut document = parsed(SETTINGS);
    let refused = document.remove("/hosts/#0").unwrap_err();
    assert_eq!(
        refused.message,
        "`/hosts/#0` is not the last element of its array, and those behind it would get other names"
    );
    assert_eq!(refused.help, "remove `/hosts/#1` first");
    assert_eq!(document.text(), SETTINGS);

    let (mut broken, _) = Json.parse("{");
    assert_eq!(
        broken
            .set(&name("/a"), "1", Kind::Unknown)
            .unwrap_err()
            .message,
        "the text has errors"
    );
    assert_eq!(broken.text(), "{");
}

#[test]
fn many_edits_leave_the_rest_alone() {
    let mut document = parsed(SETTINGS);
    for number in 0..50 {
        let key = name(&format!("/sw/pi/session{}/visit{number}", number % 7));
        assert_eq!(document.set(&key, "x", Kind::Unknown), Ok(None));
    }
    for number in 0..50 {
        let key = format!("/sw/pi/session{}/visit{number}", number % 7);
        assert_eq!(document.remove(&key).unwrap().as_deref(), Some("x"));
    }
    assert_eq!(document.remove("/nowhere"), Ok(None));
    assert_eq!(document.text(), SETTINGS);
}

#[test]
fn values_know_where_they_stand() {
    let text = "\u{feff}{\r\n\"x\": \"one\"}";
    let document = parsed(text);
    let span = document.keys().next().unwrap().span.unwrap();
    assert_eq!(&text[span.start..span.end], "\"one\"");
}

/// All messages, each with the text that it points at.
fn refused(text: &str) -> Vec<(String, String)> {
    let (document, diagnostics) = Json.parse(text);
    assert_eq!(document.text(), text);
    assert!(!Json.load(text, &mut |_, _, _| true), "{text:?}");
    let shown = |diagnostic: Diagnostic| {
        assert!(!diagnostic.help.is_empty(), "{diagnostic:?}");
        let span = diagnostic.span().unwrap();
        (diagnostic.message, text[span.start..span.end].to_owned())
    };
    diagnostics.into_iter().map(shown).collect()
}

#[test]
fn what_cannot_be_understood_is_reported_at_its_place() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("{", &[("the object is not closed", "{")]),
        ("[1", &[("the array is not closed", "[")]),
        ("[1}", &[("`[` is closed by `}`", "}")]),
        ("]", &[("nothing is open that this could close", "]")]),
        ("{\"a\" 1}", &[("no colon stands behind the name", "1")]),
        ("{\"a\": 1 \"b\": 2}", &[("a comma is missing", "\"b\"")]),
        (
            "{\"a\": 1,, \"b\": 2}",
            &[("nothing stands before the comma", ",")],
        ),
        (
            "{\"a\": , \"b\"}",
            &[
                ("the member has no value", ","),
                ("the member has no value", "}"),
            ],
        ),
        (
            "{a: 1, 'b': 2}",
            &[
                ("the name of a member stands in double quotes", "a"),
                ("the name of a member stands in double quotes", "'b'"),
            ],
        ),
        ("{{}}", &[("a member has no name", "{")]),
        ("1 2 3", &[("there is text behind the end", "2")]),
        ("1,", &[("a comma outside of any object or array", ",")]),
        ("[:]", &[("no name stands before the colon", ":")]),
        (
            "[tru, 'x', 01, .5, +1, 0x1, NaN]",
            &[
                ("this is no value", "tru"),
                ("this is no value", "'x'"),
                ("this is no value", "01"),
                ("this is no value", ".5"),
                ("this is no value", "+1"),
                ("this is no value", "0x1"),
                ("this is no value", "NaN"),
            ],
        ),
        (
            "[\"\\q\", \"\\u12\", \"\\ud800\", \"\\udc00x\", \"\t\"]",
            &[
                ("`\\q` is no escape", "\\q"),
                ("`\\u` needs four hexadecimal digits", "\\u"),
                ("`\\ud800` is half of a character", "\\ud800"),
                ("`\\udc00` is half of a character", "\\udc00"),
                (
                    "the control character \\u0009 stands in the text as it is",
                    "\t",
                ),
            ],
        ),
        (
            "{\"a\": \"half\n}",
            &[("the quotes are not closed on their line", "\"")],
        ),
        ("/* {}", &[("the comment is not closed", "/*")]),
        (
            "// \u{1b}[0m",
            &[(
                "the control character \\u001b stands in the text as it is",
                "\u{1b}",
            )],
        ),
        ("\0", &[("this is no value", "\0")]),
        (
            "{\"a\": 1, \"b\": {\"c\": 1, \"c\": {}}, \"\\u0061\": null}",
            &[
                ("the object has the member `c` twice", "\"c\""),
                ("the object has the member `a` twice", "\"\\u0061\""),
            ],
        ),
        (
            "{\"\": 1, \"\": {}}",
            &[("the object has the member `` twice", "\"\"")],
        ),
        (
            "{\"\": {}, \"\": {}}",
            &[("the object has the member `` twice", "\"\"")],
        ),
    ];
    for (text, expected) in cases {
        let found = refused(text);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(message, place)| (&**message, &**place))
            .collect();
        assert_eq!(found, *expected, "{text:?}");
    }
}

#[test]
fn hostile_texts_cost_little() {
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let (_, diagnostics) = Json.parse(&open.repeat(100_000));
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(
            diagnostics[0].message,
            "the text nests deeper than 128 levels"
        );
    }
    let (_, diagnostics) = Json.parse(&"]".repeat(100_000));
    assert_eq!(diagnostics.len(), 101);
    assert_eq!(diagnostics[100].message, "99900 more mistakes");
    let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(keys(&deep).len(), 1);
}
