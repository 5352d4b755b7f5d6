//! The TOML document: what editing changes, what is read how, what is refused.
use milieu_keys::Name;
use milieu_store::toml::Toml;
use milieu_store::{Document, Format, Kind};

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn parsed(text: &str) -> Box<dyn Document> {
    let (document, diagnostics) = Toml.parse(text);
    assert_eq!(diagnostics, [], "{text}");
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
    assert!(Toml.load(text, &mut |name, value, line| {
        loaded.push((name.to_string(), value.to_owned(), line));
        true
    }));
    assert_eq!(loaded, keys);
    keys
}

fn key(name: &str, value: &str, line: u32) -> (String, String, u32) {
    (name.to_owned(), value.to_owned(), line)
}

const SETTINGS: &str = r#"# The station's settings.
station = "roof"

[sw.pi.anna]
language = "de" # not "en"
display.volume = 11
display.colour = 'red'

# Nobody in particular.
[sw.pi."%"]
language = "en"

[[hosts]]
name = "a"
ports = [80, 443]

[[hosts]]
name = "b"
limits = { files = 1_024, "" = "many" }

[hosts.owner]
name = "Ben"
"#;

#[test]
fn tables_are_levels_and_elements_have_numbers() {
    assert_eq!(
        keys(SETTINGS),
        [
            key("/station", "roof", 2),
            key("/sw/pi/anna/language", "de", 5),
            key("/sw/pi/anna/display/volume", "11", 6),
            key("/sw/pi/anna/display/colour", "red", 7),
            key("/sw/pi/%/language", "en", 11),
            key("/hosts/#0/name", "a", 14),
            key("/hosts/#0/ports/#0", "80", 15),
            key("/hosts/#0/ports/#1", "443", 15),
            key("/hosts/#1/name", "b", 18),
            key("/hosts/#1/limits/files", "1024", 19),
            key("/hosts/#1/limits", "many", 19),
            key("/hosts/#1/owner/name", "Ben", 22),
        ]
    );
}

#[test]
fn values_are_texts_or_canonical() {
    for (written, value) in [
        (r#""é\n\u00e9\U0001F600\e\x41""#, "é\né😀\u{1b}A"),
        ("'C:\\x'", "C:\\x"),
        ("\"\"\"\na\n  b\\\n   c\"\"\"", "a\n  bc"),
        ("'''\na'b\n'''", "a'b\n"),
        ("1_000", "1000"),
        ("+7", "7"),
        ("-0", "-0"),
        ("0xFf", "255"),
        ("0o17", "15"),
        ("0b1_1", "3"),
        ("9223372036854775807", "9223372036854775807"),
        ("6.5e+1_0", "6.5e+10"),
        ("+1.5", "1.5"),
        ("-inf", "-inf"),
        ("+nan", "nan"),
        ("true", "true"),
        ("1979-05-27", "1979-05-27"),
        ("1979-05-27 07:32:00.5+01:00", "1979-05-27 07:32:00.5+01:00"),
        ("07:32:00", "07:32:00"),
    ] {
        assert_eq!(
            keys(&format!("a = {written}")),
            [key("/a", value, 1)],
            "{written}"
        );
    }
    assert_eq!(keys("\u{feff}# nothing\n"), []);
    assert_eq!(keys(""), []);
    assert_eq!(keys("[a]\n[b.c]\nd = {}\ne = []\n"), []);
}

#[test]
fn names_that_mean_something_are_told_apart() {
    let text = r##""a/b" = 1
".." = 2
"50%" = 3
"%" = 4
'\' = 5
"#0" = 6
x."" = 7
"" = 8
[z.""]
"" = 9
"##;
    assert_eq!(
        keys(text),
        [
            key("/a\\/b", "1", 1),
            key("/\\..", "2", 2),
            key("/50\\%", "3", 3),
            key("/%", "4", 4),
            key("/\\\\", "5", 5),
            key("/#0", "6", 6),
            key("/x", "7", 7),
            key("/", "8", 8),
            key("/z/\\\\", "9", 10),
        ]
    );
}

#[test]
fn setting_a_key_changes_its_value_and_nothing_else() {
    for (key, value, before, after) in [
        ("/station", "cellar", "\"roof\"", "\"cellar\""),
        ("/sw/pi/anna/language", "fr", "\"de\"", "\"fr\""),
        ("/sw/pi/anna/display/volume", "3", "= 11", "= 3"),
        ("/sw/pi/anna/display/colour", "blue", "'red'", "'blue'"),
        (
            "/sw/pi/anna/display/colour",
            "Anna's",
            "'red'",
            "\"Anna's\"",
        ),
        ("/hosts/#0/ports/#1", "8443", "443", "8443"),
        ("/hosts/#1/limits/files", "2", "1_024", "2"),
        ("/hosts/#1/limits", "few", "\"many\"", "\"few\""),
        ("/hosts/#1/owner/name", "Eva", "\"Ben\"", "\"Eva\""),
    ] {
        assert_eq!(
            after_set(SETTINGS, key, value),
            SETTINGS.replace(before, after)
        );
    }
    assert_eq!(after_set("a = 1_000", "/a", "1000"), "a = 1_000");
    assert_eq!(after_set("a = 0x10", "/a", "16"), "a = 0x10");
    assert_eq!(
        after_set("\u{feff}a=1\r\nb = 2", "/b", "3"),
        "\u{feff}a=1\r\nb = 3"
    );
}

#[test]
fn a_value_keeps_its_kind_and_its_quotes_where_it_can() {
    for (before, value, after) in [
        ("\"1\"", "2", "\"2\""),
        ("1", "2.5", "2.5"),
        ("1", "many", "\"many\""),
        ("1", "1_000", "\"1_000\""),
        ("1", "0x10", "\"0x10\""),
        ("1", "9223372036854775808", "\"9223372036854775808\""),
        ("1", "true", "true"),
        ("true", "yes", "\"yes\""),
        ("1.5", "inf", "inf"),
        ("1.5", "1e999", "\"1e999\""),
        ("1", "nan", "\"nan\""),
        ("1979-05-27", "1980-01-01", "1980-01-01"),
        ("1979-05-27", "1979-02-30", "\"1979-02-30\""),
        ("\"x\"", "1980-01-01", "\"1980-01-01\""),
        ("'x'", "a\nb", "\"a\\nb\""),
        (
            "\"\"\"\nx\n\"\"\"",
            "a\n\"b\"\n",
            "\"\"\"\na\n\\\"b\\\"\n\"\"\"",
        ),
        ("\"\"\"x\"\"\"", "\na", "\"\"\"\n\na\"\"\""),
        ("'''x'''", "a'\\\nb", "'''a'\\\nb'''"),
        ("'''x'''", "a'''", "\"\"\"a'''\"\"\""),
        ("'''x'''", "a\u{1b}", "\"\"\"a\\u001b\"\"\""),
    ] {
        assert_eq!(
            after_set(&format!("a = {before}"), "/a", value),
            format!("a = {after}")
        );
    }
    for (value, kind, after) in [
        ("1", Kind::Text, "\"1\""),
        ("inf", Kind::Number, "inf"),
        ("inf", Kind::Unknown, "\"inf\""),
        ("1", Kind::Boolean, "true"),
        ("1979-05-27", Kind::Unknown, "\"1979-05-27\""),
    ] {
        let mut document = parsed("");
        document.set(&name("/a"), value, kind).unwrap();
        assert_eq!(document.text(), format!("a = {after}\n"));
    }
}

#[test]
fn a_new_value_needs_no_document_where_all_else_stays() {
    let text = "[a]\nx = 1 # one\ny = \"\"\"\nz\"\"\"\n";
    let replace = |line, key, value, kind| Toml.replace(text, line, &name(key), value, kind);
    assert_eq!(
        replace(2, "/a/x", "2", Kind::Unknown),
        Some(text.replace('1', "2"))
    );
    assert_eq!(
        replace(2, "/a/x", "1", Kind::Boolean),
        Some(text.to_owned())
    );
    assert_eq!(
        replace(2, "/a/x", "0", Kind::Boolean),
        None,
        "it becomes `false`"
    );
    assert_eq!(replace(3, "/a/x", "2", Kind::Unknown), None, "not its line");
    assert_eq!(replace(2, "/x", "2", Kind::Unknown), None, "not its name");
    assert_eq!(
        replace(3, "/a/y", "p\nq", Kind::Unknown),
        None,
        "one more line"
    );
    assert_eq!(
        Toml.replace("a = 1\nb", 1, &name("/a"), "2", Kind::Unknown),
        None
    );
}

#[test]
fn a_new_key_joins_its_siblings_and_is_written_as_they_are() {
    for (key, value, before, after) in [
        ("/floor", "5", "\"roof\"\n", "\"roof\"\nfloor = 5\n"),
        (
            "/sw/pi/anna/name",
            "Anna",
            "'red'\n",
            "'red'\nname = \"Anna\"\n",
        ),
        (
            "/sw/pi/anna/display/x y",
            "1",
            "'red'\n",
            "'red'\ndisplay.\"x y\" = 1\n",
        ),
        (
            "/sw/pi/anna/display/size/x",
            "1",
            "'red'\n",
            "'red'\ndisplay.size.x = 1\n",
        ),
        (
            "/sw/pi/%/volume",
            "5",
            "\"en\"\n\n[",
            "\"en\"\nvolume = 5\n\n[",
        ),
        ("/hosts/#0/ports/#2", "1", "443]", "443, 1]"),
        (
            "/hosts/#1/limits/time",
            "9",
            "\"many\" }",
            "\"many\", time = 9 }",
        ),
        (
            "/hosts/#1/limits/time/max",
            "9",
            "\"many\" }",
            "\"many\", time = { max = 9 } }",
        ),
        (
            "/hosts/#1/size",
            "9",
            "\"many\" }\n",
            "\"many\" }\nsize = 9\n",
        ),
        (
            "/hosts/#1/owner/age",
            "9",
            "\"Ben\"\n",
            "\"Ben\"\nage = 9\n",
        ),
        (
            "/hosts/#2/name",
            "c",
            "\"Ben\"\n",
            "\"Ben\"\n\n[[hosts]]\nname = \"c\"\n",
        ),
        (
            "/hosts/#2",
            "c",
            "\"Ben\"\n",
            "\"Ben\"\n\n[[hosts]]\n\"\" = \"c\"\n",
        ),
        (
            "/hosts/#0/owner/name",
            "Eva",
            "443]\n",
            "443]\n\n[hosts.owner]\nname = \"Eva\"\n",
        ),
        (
            "/sw/pi/ben/language",
            "it",
            "\"en\"\n\n[",
            "\"en\"\n\n[sw.pi.ben]\nlanguage = \"it\"\n\n[",
        ),
        (
            "/sw/pi",
            "x",
            "[sw.pi.anna]",
            "[sw.pi]\n\"\" = \"x\"\n\n[sw.pi.anna]",
        ),
        (
            "/station/height",
            "9",
            "= \"roof\"",
            "= { \"\" = \"roof\", height = 9 }",
        ),
    ] {
        assert_eq!(
            after_set(SETTINGS, key, value),
            SETTINGS.replacen(before, after, 1),
            "{key}"
        );
    }
    assert_eq!(after_set("[a]\r\nx=1", "/a/y", "2"), "[a]\r\nx=1\r\ny=2");
    assert_eq!(
        after_set("[a]\n  x = 1 # one\n", "/a/y", "2"),
        "[a]\n  x = 1 # one\n  y = 2\n"
    );
    assert_eq!(
        after_set("a = {b.c = 1}", "/a/b/d", "2"),
        "a = {b.c = 1, b.d = 2}"
    );
    assert_eq!(
        after_set("a = [\n    1, # one\n    2,\n]\n", "/a/#2", "3"),
        "a = [\n    1, # one\n    2,\n    3,\n]\n"
    );
}

#[test]
fn a_new_key_without_siblings_gets_a_table() {
    assert_eq!(
        after_set("", "/sw/pi/language", "de"),
        "[sw.pi]\nlanguage = \"de\"\n"
    );
    assert_eq!(after_set("", "/language", "de"), "language = \"de\"\n");
    assert_eq!(after_set("", "/", "de"), "\"\" = \"de\"\n");
    assert_eq!(after_set("", "/a/#0", "1"), "a = [1]\n");
    assert_eq!(after_set("", "/a/b/#0", "1"), "[a]\nb = [1]\n");
    assert_eq!(after_set("", "/a/b/#0/c/d", "1"), "[[a.b]]\nc.d = 1\n");
    assert_eq!(after_set("", "/a/#0/#0/c", "1"), "[[a]]\n\"#0\".c = 1\n");
    assert_eq!(
        after_set("", "/a/#0/c/#0/#0/d", "1"),
        "[[a]]\nc = [[{ d = 1 }]]\n"
    );
    assert_eq!(
        after_set("# mine\r\n", "/a/b", "1"),
        "# mine\r\n\r\n[a]\r\nb = 1\r\n"
    );
    assert_eq!(after_set("# mine", "/b", "1"), "# mine\nb = 1");
    assert_eq!(after_set("x=1", "/b/y", "2"), "x=1\n\n[b]\ny=2");
    assert_eq!(
        after_set("[a]\nx = 1\n", "/y", "2"),
        "y = 2\n\n[a]\nx = 1\n"
    );
    assert_eq!(
        after_set("# all\n\n# about a\n[a]\nx = 1\n", "/y", "2"),
        "# all\n\ny = 2\n\n# about a\n[a]\nx = 1\n"
    );
    assert_eq!(
        after_set("[a]\n# about a\n\n[b]\n", "/a/x", "1"),
        "[a]\n# about a\nx = 1\n\n[b]\n"
    );
    assert_eq!(
        after_set("[a]\n# about b\n[b]\n", "/a/x", "1"),
        "[a]\nx = 1\n# about b\n[b]\n"
    );
    assert_eq!(
        after_set("[a.b]\nx = 1\n\n[c]\n", "/a/y", "2"),
        "[a]\ny = 2\n\n[a.b]\nx = 1\n\n[c]\n"
    );
    assert_eq!(
        after_set("[x]\n\n  # about b\n  [a.b]\n  x = 1\n", "/a/y", "2"),
        "[x]\n\n  [a]\n  y = 2\n\n  # about b\n  [a.b]\n  x = 1\n"
    );
    assert_eq!(
        after_set("[[a]]\n[a.b.c]\nx = 1\n[[a]]\n", "/a/#0/b/y", "2"),
        "[[a]]\n[a.b]\ny = 2\n\n[a.b.c]\nx = 1\n[[a]]\n"
    );
}

#[test]
fn removing_takes_the_line_and_what_holds_nothing_more() {
    for (key, before, after) in [
        ("/station", "station = \"roof\"\n\n", "\n"),
        (
            "/sw/pi/anna/language",
            "language = \"de\" # not \"en\"\n",
            "",
        ),
        ("/sw/pi/anna/display/colour", "display.colour = 'red'\n", ""),
        ("/hosts/#0/ports/#1", "80, 443", "80"),
        ("/hosts/#1/limits", ", \"\" = \"many\"", ""),
        ("/hosts/#1/limits/files", " files = 1_024,", ""),
        (
            "/hosts/#1/owner/name",
            "\n[hosts.owner]\nname = \"Ben\"\n",
            "",
        ),
    ] {
        assert_eq!(
            after_remove(SETTINGS, key),
            SETTINGS.replacen(before, after, 1),
            "{key}"
        );
    }
    assert_eq!(
        after_remove(SETTINGS, "/sw/pi/%/language"),
        SETTINGS.replace("language = \"en\"\n", ""),
        "a comment describes it"
    );
    assert_eq!(
        after_remove("[a]\nx=1\n\n[b]\ny=2\n\n[c]\nz=3\n", "/b/y"),
        "[a]\nx=1\n\n[c]\nz=3\n"
    );
    assert_eq!(after_remove("[a]\nx=1\n\n[b]\ny=2\n", "/b/y"), "[a]\nx=1\n");
    assert_eq!(after_remove("[a]\nx=1\n\n[b]\ny=2", "/b/y"), "[a]\nx=1");
    assert_eq!(after_remove("[a]\nx=1\n\n[b]\ny=2\n", "/a/x"), "[b]\ny=2\n");
    assert_eq!(
        after_remove("[[a]]\nx=1\n[[a]]\nx=2\n", "/a/#0/x"),
        "[[a]]\n[[a]]\nx=2\n"
    );
    assert_eq!(
        after_remove("[[a]]\nx=1\n[[a]]\nx=2\n", "/a/#1/x"),
        "[[a]]\nx=1\n"
    );
    assert_eq!(
        after_remove("a = [\n  1,\n  2\n]\n", "/a/#1"),
        "a = [\n  1\n]\n"
    );
    assert_eq!(after_remove("a = { b = 1 }\nc = 2\n", "/a/b"), "c = 2\n");
    assert_eq!(
        after_remove("a = 1\nb = \"\"\"\nx\n\"\"\"\nc = 2\n", "/b"),
        "a = 1\nc = 2\n"
    );
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
fn what_cannot_be_written_is_refused_and_changes_nothing() {
    for (key, message) in [
        (
            "/hosts",
            "`/hosts` is an array, which has no value of its own",
        ),
        (
            "/hosts/#3/name",
            "`/hosts/#3` is not the next element of the array `/hosts`",
        ),
        (
            "/hosts/#0/ports/x",
            "`/hosts/#0/ports/x` is not the next element of the array `/hosts/#0/ports`",
        ),
    ] {
        let mut document = parsed(SETTINGS);
        let refused = document.set(&name(key), "x", Kind::Unknown).unwrap_err();
        assert_eq!(refused.message, message);
        assert_eq!(document.text(), SETTINGS);
    }
    let mut document = parsed(SETTINGS);
    let refused = document.remove("/hosts/#0/ports/#0").unwrap_err();
    assert_eq!(refused.help, "remove `/hosts/#0/ports/#1` first");
    assert_eq!(document.text(), SETTINGS);
}

/// All messages, each with the text that it points at.
fn refused(text: &str) -> Vec<(String, String)> {
    let (document, diagnostics) = Toml.parse(text);
    assert_eq!(document.text(), text);
    assert!(!Toml.load(text, &mut |_, _, _| true), "{text:?}");
    let shown = |diagnostic: milieu_diagnostics::Diagnostic| {
        assert!(!diagnostic.help.is_empty(), "{diagnostic:?}");
        let span = diagnostic.span().unwrap();
        (diagnostic.message, text[span.start..span.end].to_owned())
    };
    diagnostics.into_iter().map(shown).collect()
}

#[test]
fn what_cannot_be_understood_is_reported_at_its_place() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("a = 1\na = 2\n", &[("`/a` has a value already", "a")]),
        ("a = 1\n[a]\nb = 1\n", &[("`/a` has a value already", "a")]),
        ("[a]\n[a]\n", &[("the table `/a` is given already", "a")]),
        (
            "[a]\nb.c = 1\n[a.b]\n",
            &[("the table `/a/b` is given already", "b")],
        ),
        (
            "[a.b.c]\n[a]\nb.c.d = 1\n",
            &[("the table `/a/b/c` is given already", "c")],
        ),
        (
            "a = {}\na.b = 1\n",
            &[("`/a` is complete already, and cannot be added to", "a")],
        ),
        (
            "a = []\n[[a]]\n",
            &[("`/a` is complete already, and cannot be added to", "a")],
        ),
        ("[[a]]\n[a]\n", &[("the table `/a` is given already", "a")]),
        (
            "a = {b = 1, b = 2}\n",
            &[("`/a/b` has a value already", "b")],
        ),
        ("\"\" = 1\n[\"\"]\n", &[("`/` has a value already", "\"\"")]),
        (
            "a = 1979-02-30\n",
            &[("there is no such date or time", "1979-02-30")],
        ),
        (
            "a = de\nb = 01\n",
            &[
                ("string values must be quoted", "de"),
                ("unexpected leading zero", "0"),
            ],
        ),
        (
            "a\nb = \n[c\n",
            &[
                ("key with no value", "\n"),
                ("missing value", "\n"),
                ("unclosed table", "\n"),
            ],
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
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("a = {}", "-".repeat(100_000)),
    ] {
        let (_, diagnostics) = Toml.parse(&text);
        assert!(!diagnostics.is_empty() && diagnostics.len() <= 101);
        assert!(!Toml.load(&text, &mut |_, _, _| true));
    }
}

#[test]
fn a_new_table_comes_behind_all_keys_of_the_one_before() {
    // What one dotted key begins, another one continues behind `c`.
    let text = "[[d.a]]\nb.b = 1\nc = []\nb.a = [1, 1]\n";
    assert_eq!(
        after_set(text, "/d/b/x", "1"),
        format!("{text}\n[d.b]\nx = 1\n")
    );
    let text =
        "[t]\na.x = 1\nb = 2\na.y.z = { u = 3 }\na.w = [\n[1],\n]\na.v = 0\n\n[s]\na.x = 4\n";
    assert_eq!(
        after_set(text, "/t/c", "5"),
        text.replace("\n\n", "\nc = 5\n\n")
    );
}
