//! Properties of all formats that nest, for texts and edits that nobody thought of.

use std::collections::BTreeMap;

use milieu_keys::Name;
use milieu_store::{Document, Format, Kind};
use proptest::prelude::*;

/// Pieces of texts, put together at random.
fn nearly_right(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => proptest::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = Name> {
    let level = prop_oneof![
        8 => proptest::sample::select(&["a", "b", "c", "d"][..]).prop_map(str::to_owned),
        3 => proptest::sample::select(&["#0", "#1", "#2", "#_10"][..]).prop_map(str::to_owned),
        2 => proptest::sample::select(&["%", "\\%", "a%", "\\\\", "\\\\a%", "a\\/b", "\\..", "x y", "x.y", "é", "\"", "'", "\n\t\u{7f}"][..]).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|raw| {
            let mut level = String::new();
            milieu_keys::escape_value(&raw, &mut level);
            level
        }),
    ];
    proptest::collection::vec(level, 0..5).prop_map(|levels| {
        Name::parse(&format!("/{}", levels.join("/"))).expect("levels make a name")
    })
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
                "+1",
                "1.5",
                "1e3",
                "1e999",
                "0x1f",
                "1_000",
                "inf",
                "nan",
                "true",
                "1979-05-27",
                "07:32:00",
                "1979-05-27 07:32:00Z",
                "9223372036854775808",
                "null",
                "a\nb",
                "\"",
                "'''",
                "\\",
                "\u{1b}\u{0}\u{85}\u{2028}\u{feff}"
            ][..]
        )
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&[Kind::Unknown, Kind::Text, Kind::Number][..])
}

#[derive(Debug, Clone)]
enum Edit {
    Set(Name, String, Kind),
    Remove(Name),
    /// The key of this number among those that there are.
    Replace(prop::sample::Index, String),
    Drop(prop::sample::Index),
    /// A new level below that key, or beside it.
    Below(prop::sample::Index, usize, Name, String),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let index = || any::<prop::sample::Index>();
    let edit = prop_oneof![
        1 => (name(), value(), kind()).prop_map(|(name, value, kind)| Edit::Set(name, value, kind)),
        1 => name().prop_map(Edit::Remove),
        1 => (index(), value()).prop_map(|(key, value)| Edit::Replace(key, value)),
        2 => index().prop_map(Edit::Drop),
        2 => (index(), 0..3_usize, name(), value()).prop_map(|(key, up, name, value)| Edit::Below(key, up, name, value)),
    ];
    proptest::collection::vec(edit, 1..8)
}

type Model = BTreeMap<String, String>;

fn contents(document: &dyn Document) -> Model {
    document
        .keys()
        .map(|entry| (entry.name.to_string(), entry.value.into_owned()))
        .collect()
}

/// Reads a text that was written, and checks that it is right.
fn read_back(format: &dyn Format, text: &str) -> Result<Model, TestCaseError> {
    let (document, diagnostics) = format.parse(text);
    prop_assert_eq!(diagnostics, [], "{}", text);
    prop_assert_eq!(document.text(), text);
    Ok(contents(&*document))
}

/// The text without what may change beside an edit.
fn solid(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a text is another one with something taken out.
fn is_part(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|c| rest.any(|other| other == c))
}

fn understood_alike(format: &dyn Format, text: &str) -> Result<(), TestCaseError> {
    let (document, diagnostics) = format.parse(text);
    prop_assert_eq!(document.text(), text);
    for label in diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
        prop_assert!(
            text.get(label.span.start..label.span.end).is_some(),
            "{:?}",
            label
        );
    }
    let mut loaded: Vec<(String, String, u32)> = Vec::new();
    let sound = format.load(text, &mut |name, value, line| {
        let is_new = loaded.iter().all(|(other, ..)| other != name.as_str());
        loaded.push((name.to_string(), value.to_owned(), line));
        is_new
    });
    prop_assert_eq!(
        sound,
        diagnostics.is_empty(),
        "{:?} {:?}",
        text,
        diagnostics
    );
    if sound {
        prop_assert!(format.keys_max(text) >= loaded.len(), "{:?}", text);
        let keys = document
            .keys()
            .map(|entry| (entry.name.to_string(), entry.value.into_owned(), entry.line));
        prop_assert_eq!(keys.collect::<Vec<_>>(), loaded);
        for entry in document.keys() {
            prop_assert_eq!(document.get(entry.name.as_str()), Some(entry.value));
            prop_assert!(entry.span.is_some());
        }
    }
    Ok(())
}

fn edits_are_those_of_a_map(
    format: &dyn Format,
    text: &str,
    edits: Vec<Edit>,
) -> Result<(), TestCaseError> {
    let (mut document, diagnostics) = format.parse(text);
    if !diagnostics.is_empty() {
        return Ok(());
    }
    let mut model = contents(&*document);
    for edit in edits {
        let names: Vec<Name> = model
            .keys()
            .map(|name| Name::parse(name).unwrap())
            .collect();
        let (name, value, kind) = match edit {
            Edit::Set(name, value, kind) => (name, Some(value), kind),
            Edit::Remove(name) => (name, None, Kind::Unknown),
            _ if names.is_empty() => continue,
            Edit::Replace(key, value) => (key.get(&names).clone(), Some(value), Kind::Unknown),
            Edit::Drop(key) => (key.get(&names).clone(), None, Kind::Unknown),
            Edit::Below(key, up, name, value) => {
                let ancestors = std::iter::successors(Some(key.get(&names).clone()), Name::parent);
                let base = ancestors.take(up + 1).last().unwrap();
                let name = Name::parse(&format!("{base}/{name}")).unwrap();
                (name, Some(value), Kind::Unknown)
            }
        };
        let before = document.text();
        let (replaced, expected) = match &value {
            Some(value) => (
                document.set(&name, value, kind),
                model.get(name.as_str()).cloned(),
            ),
            None => (
                document.remove(name.as_str()),
                model.get(name.as_str()).cloned(),
            ),
        };
        let after = document.text();
        match replaced {
            Err(_) => {
                prop_assert_eq!(&after, &before);
                continue;
            }
            Ok(replaced) => prop_assert_eq!(&replaced, &expected),
        }
        match &value {
            Some(value) if expected.as_ref() == Some(value) => prop_assert_eq!(&after, &before),
            Some(_) if expected.is_some() => {}
            Some(_) => prop_assert!(
                is_part(&solid(&before).replace("null", ""), &solid(&after)),
                "{} {}\n--\n{}\n--\n{}",
                name,
                before,
                after,
                solid(&before)
            ),
            None => prop_assert!(is_part(&after, &before), "{name}\n{before}\n--\n{after}"),
        }
        match value {
            Some(value) => drop(model.insert(name.to_string(), value)),
            None => drop(model.remove(name.as_str())),
        }
        prop_assert_eq!(
            &contents(&*document),
            &model,
            "{}\n--\n{}\n--\n{}",
            name,
            before,
            after
        );
        prop_assert_eq!(
            &read_back(format, &after)?,
            &model,
            "{}\n--\n{}\n--\n{}",
            name,
            before,
            after
        );
    }
    Ok(())
}

/// Keys that get other names, as a migration gives them.
fn moves_are_those_of_a_map(
    format: &dyn Format,
    text: &str,
    moves: &[(prop::sample::Index, Name)],
) -> Result<(), TestCaseError> {
    let (mut document, diagnostics) = format.parse(text);
    let mut model = contents(&*document);
    let names: Vec<String> = model.keys().cloned().collect();
    if !diagnostics.is_empty() || names.is_empty() {
        return Ok(());
    }
    let moves: Vec<(&str, &Name)> = moves
        .iter()
        .map(|(from, to)| (from.get(&names).as_str(), to))
        .collect();
    for (from, to) in &moves {
        document.moving(from, to);
    }
    for (from, to) in moves {
        let Some(value) = model.get(from).cloned() else {
            continue;
        };
        if document.set(to, &value, Kind::Unknown).is_ok() {
            model.insert(to.to_string(), value);
        }
        if document.remove(from).is_ok() {
            model.remove(from);
        }
    }
    let before = document.text();
    document.moved();
    let after = document.text();
    prop_assert_eq!(&contents(&*document), &model, "{}\n--\n{}", before, after);
    prop_assert_eq!(
        read_back(format, &after)?,
        model,
        "{}\n--\n{}",
        before,
        after
    );
    Ok(())
}

fn one_value_changes_one_place(
    format: &dyn Format,
    text: &str,
    which: prop::sample::Index,
    value: &str,
) -> Result<(), TestCaseError> {
    let (mut document, diagnostics) = format.parse(text);
    let keys: Vec<_> = document
        .keys()
        .map(|entry| (entry.name.into_owned(), entry.span))
        .collect();
    if !diagnostics.is_empty() || keys.is_empty() {
        return Ok(());
    }
    let lines: Vec<u32> = document.keys().map(|entry| entry.line).collect();
    let line = *which.get(&lines);
    let (name, Some(span)) = which.get(&keys) else {
        return Err(TestCaseError::fail("a value that was read has a place"));
    };
    document.set(name, value, Kind::Unknown).unwrap();
    let edited = document.text();
    let replace = |line| format.replace(text, line, name, value, Kind::Unknown);
    let keeps_lines = edited.lines().count() == text.lines().count();
    prop_assert_eq!(replace(line), keeps_lines.then(|| edited.clone()));
    prop_assert_eq!(replace(line + 1), None);
    prop_assert!(edited.starts_with(&text[..span.start]), "{edited}");
    prop_assert!(edited.ends_with(&text[span.end..]), "{edited}");
    Ok(())
}

/// The properties of one format, whose texts a strategy makes.
macro_rules! properties {
    ($feature:literal, $module:ident, $texts:ident, $format:expr) => {
        #[cfg(feature = $feature)]
        mod $module {
            use super::*;

            proptest! {
                #[test]
                fn loading_and_editing_understand_the_same(text in prop_oneof![super::$texts::nearly(), super::$texts::right()]) {
                    understood_alike(&$format, &text)?;
                }

                #[test]
                fn edits_are_those_of_a_map(text in super::$texts::right(), edits in edits()) {
                    super::edits_are_those_of_a_map(&$format, &text, edits)?;
                }

                #[test]
                fn edits_of_new_documents_are_those_of_a_map(edits in edits()) {
                    super::edits_are_those_of_a_map(&$format, "", edits)?;
                }

                #[test]
                fn moves_are_those_of_a_map(
                    text in super::$texts::right(),
                    moves in proptest::collection::vec((any::<prop::sample::Index>(), name()), 1..5),
                ) {
                    super::moves_are_those_of_a_map(&$format, &text, &moves)?;
                }

                #[test]
                fn one_value_changes_one_place(text in super::$texts::right(), which in any::<prop::sample::Index>(), value in value()) {
                    super::one_value_changes_one_place(&$format, &text, which, &value)?;
                }
            }
        }
    };
}

properties!("json", json, json_texts, milieu_store::json::Json);

/// Others read what we read, and read nothing else.
#[cfg(feature = "json")]
fn json_is_read_as_others_do(text: &str) -> Result<(), TestCaseError> {
    let (document, diagnostics) = milieu_store::json::Json.parse(text);
    let dense = solid(text);
    let beyond = text.contains(['/', '\u{feff}']) || dense.contains(",}") || dense.contains(",]");
    match serde_json::from_str::<serde_json::Value>(text) {
        // They take the last of two members.
        Ok(_) => prop_assert!(
            diagnostics
                .iter()
                .all(|found| found.message.ends_with("twice")),
            "{:?}",
            diagnostics
        ),
        Err(error) => prop_assert!(
            !diagnostics.is_empty() || beyond || dense.is_empty(),
            "{error} in {text}"
        ),
    }
    if let (Ok(value), true) = (
        serde_json::from_str::<BTreeMap<String, String>>(text),
        diagnostics.is_empty(),
    ) {
        let values = document.keys().map(|entry| entry.value.into_owned());
        let (mut ours, mut theirs): (Vec<_>, Vec<_>) =
            (values.collect(), value.into_values().collect());
        ours.sort();
        theirs.sort();
        prop_assert_eq!(ours, theirs);
    }
    Ok(())
}

/// Others read what we read, and read nothing else.
#[cfg(feature = "toml")]
fn toml_is_read_as_others_do(text: &str) -> Result<(), TestCaseError> {
    let (_, diagnostics) = milieu_store::toml::Toml.parse(text);
    match text.parse::<::toml::Table>() {
        // A backslash and nothing are one level, where both are tables.
        Ok(_) => prop_assert!(
            diagnostics.is_empty() || text.contains('\\'),
            "{:?} in {}",
            diagnostics,
            text
        ),
        Err(error) => prop_assert!(!diagnostics.is_empty(), "{error} in {text}"),
    }
    Ok(())
}

proptest! {
    #[test]
    #[cfg(feature = "json")]
    fn json_is_json(text in prop_oneof![json_texts::nearly(), json_texts::right()]) {
        json_is_read_as_others_do(&text)?;
    }

    #[test]
    #[cfg(feature = "toml")]
    fn toml_is_toml(text in prop_oneof![toml_texts::nearly(), toml_texts::right()]) {
        toml_is_read_as_others_do(&text)?;
    }
}

#[cfg(feature = "json")]
mod json_texts {
    use super::*;

    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"a\"",
        "\"b\"",
        "\"\"",
        "\"\\u0061\"",
        "\"%\"",
        "\"#0\"",
        "\"\\\\\"",
        "1",
        "-1.5e3",
        "true",
        "null",
        "nul",
        " ",
        "\n",
        "\r\n",
        "\t",
        "// c\n",
        "/* c */",
        "/*",
        "\"",
        "\\",
        "\u{feff}",
        "{\"a\": 1}",
        "{\"b\": [1, 2]}",
        "\"c\": 3,",
        "\"d\": {}",
        "\0",
        "\r",
    ];

    pub fn nearly() -> impl Strategy<Value = String> {
        nearly_right(PIECES)
    }

    /// A gap where the grammar allows one: blanks, ends of lines, comments.
    fn gap() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(
            &[
                "",
                "",
                "",
                " ",
                " ",
                "\n",
                "\n  ",
                "\r\n\t",
                "\n\n",
                " // c\n",
                " /* c */ ",
                "\n  // c\n  ",
            ][..],
        )
    }

    fn scalar() -> impl Strategy<Value = String> {
        proptest::sample::select(
            &[
                "1",
                "-2.50",
                "true",
                "false",
                "null",
                "null",
                "\"x\"",
                "\"\"",
                "\"\\n\\u00e9\"",
                "\"1\"",
            ][..],
        )
        .prop_map(str::to_owned)
    }

    /// Items with gaps and commas, in the style of one line or of many.
    fn items(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
        let loose = (item, gap(), gap());
        (
            proptest::collection::vec(loose, 0..4),
            any::<bool>(),
            any::<bool>(),
            gap(),
        )
            .prop_map(|(items, trailing, lines, last)| {
                let mut text = String::new();
                let count = items.len();
                for (index, (item, before, after)) in items.into_iter().enumerate() {
                    let comma = if index + 1 < count || trailing {
                        ","
                    } else {
                        ""
                    };
                    text.push_str(&match lines {
                        true => format!(
                            "\n  {item}{comma}{}",
                            if after.contains("//") { " // d" } else { "" }
                        ),
                        false => format!("{before}{item}{after}{comma}"),
                    });
                }
                text + if lines { "\n" } else { last }
            })
    }

    pub fn right() -> impl Strategy<Value = String> {
        let value = scalar().prop_recursive(4, 24, 4, |inner| {
            let key = proptest::sample::select(
                &["a", "b", "c", "d", "", "%", "#0", "#1", "a/b", "\\\\"][..],
            );
            let member = (
                key,
                prop_oneof![Just(": "), Just(":"), Just(" :\n ")],
                inner.clone(),
            )
                .prop_map(|(key, colon, value)| format!("\"{key}\"{colon}{value}"));
            prop_oneof![
                3 => items(member).prop_map(|items| format!("{{{items}}}")),
                1 => items(inner).prop_map(|items| format!("[{items}]")),
            ]
        });
        (gap(), value, gap()).prop_map(|(before, value, after)| format!("{before}{value}{after}"))
    }
}

#[cfg(feature = "toml")]
properties!("toml", toml, toml_texts, milieu_store::toml::Toml);

#[cfg(feature = "toml")]
mod toml_texts {
    use super::*;

    const PIECES: &[&str] = &[
        "a",
        "b",
        "c",
        "\"\"",
        "\"%\"",
        "'x y'",
        "\"#0\"",
        ".",
        "=",
        " = ",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        ",",
        "\n",
        "\n",
        "\r\n",
        "\t",
        " ",
        "# c\n",
        "1",
        "1_0",
        "0x1F",
        "+1.5e3",
        "true",
        "1979-05-27",
        "07:32",
        "inf",
        "\"x\"",
        "'y'",
        "\"\"\"\nz\"\"\"",
        "'''z'''",
        "\"\\u00e9\"",
        "\\",
        "[a]\n",
        "[a.b]\n",
        "[[c]]\n",
        "a = 1\n",
        "b.c = 2\n",
        "d = {e = 1}\n",
        "f = [1, 2]\n",
        "\u{feff}",
        "\0",
        "\r",
        "a.b.c = 1\n",
        "[a.b.c]\n",
        "\"\" = 3\n",
        "[\"\"]\n",
    ];

    pub fn nearly() -> impl Strategy<Value = String> {
        nearly_right(PIECES)
    }

    fn key() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(
            &[
                "a", "b", "c", "d", "\"\"", "\"%\"", "'#0'", "\"x y\"", "'\\'",
            ][..],
        )
    }

    fn keys() -> impl Strategy<Value = String> {
        (proptest::collection::vec(key(), 1..4), any::<bool>())
            .prop_map(|(keys, loose)| keys.join(if loose { " . " } else { "." }))
    }

    fn gap() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(&["", "", " ", "  "][..])
    }

    fn value() -> impl Strategy<Value = String> {
        let scalar = proptest::sample::select(
            &[
                "1",
                "-2.50",
                "true",
                "\"x\"",
                "''",
                "'y'",
                "\"\"\"\nq\n\"\"\"",
                "'''a\r\nb'''",
                "1_000",
                "0xff",
                "inf",
                "1979-05-27",
                "07:32:00",
                "\"\\n\\u00e9\"",
            ][..],
        );
        scalar
            .prop_map(str::to_owned)
            .prop_recursive(3, 12, 3, |inner| {
                let member = (keys(), gap(), inner.clone())
                    .prop_map(|(key, gap, value)| format!("{key}{gap}={gap}{value}"));
                let lines = prop_oneof![3 => Just(false), 1 => Just(true)];
                let items = |items: Vec<String>, lines: bool, trailing: bool, gap: &str| {
                    if items.is_empty() {
                        return gap.to_owned();
                    }
                    match lines {
                        false => format!("{gap}{}{gap}", items.join(", ")),
                        true => format!(
                            "\n  {}{} # d\n",
                            items.join(", # c\n  "),
                            if trailing { "," } else { "" }
                        ),
                    }
                };
                let array = (
                    proptest::collection::vec(inner, 0..4),
                    lines.clone(),
                    any::<bool>(),
                    gap(),
                )
                    .prop_map(move |(values, lines, trailing, gap)| {
                        format!("[{}]", items(values, lines, trailing, gap))
                    });
                let table = (
                    proptest::collection::vec(member, 0..4),
                    lines,
                    any::<bool>(),
                    gap(),
                )
                    .prop_map(move |(members, lines, trailing, gap)| {
                        format!("{{{}}}", items(members, lines, trailing, gap))
                    });
                prop_oneof![array, table]
            })
    }

    pub fn right() -> impl Strategy<Value = String> {
        let end = || {
            prop_oneof![
                Just("\n"),
                Just("\n"),
                Just(" # c\n"),
                Just("\n\n"),
                Just("\r\n"),
                Just("\n# c\n"),
                Just("\n\n  # c\n\n")
            ]
        };
        let expression = (gap(), keys(), gap(), value(), end()).prop_map(
            |(indentation, keys, gap, value, end)| {
                format!("{indentation}{keys}{gap}={gap}{value}{end}")
            },
        );
        let table = (keys(), gap(), end())
            .prop_map(|(keys, gap, end)| format!("{gap}[{gap}{keys}{gap}]{end}"));
        let element = (key(), end()).prop_map(|(key, end)| format!("[[{key}]]{end}"));
        let sub = (key(), key(), end())
            .prop_map(|(first, second, end)| format!("[[{first}.{second}]]{end}"));
        let line = prop_oneof![4 => expression, 2 => table, 1 => element, 1 => sub];
        // A line that contradicts those before it is left out.
        (proptest::collection::vec(line, 0..8), any::<bool>()).prop_map(|(lines, open)| {
            let mut text = String::new();
            for line in lines {
                let longer = format!("{text}{line}");
                if milieu_store::toml::Toml.parse(&longer).1.is_empty() {
                    text = longer;
                }
            }
            if open {
                text.trim_end_matches('\n')
                    .trim_end_matches('\r')
                    .to_owned()
            } else {
                text
            }
        })
    }
}
