//! Properties of the INI document for texts, names and values that nobody thought of.

use std::collections::BTreeMap;
use std::path::Path;

use milieu_keys::{Name, Namespace};
use milieu_store::Kind;
use milieu_store::format::Format;
use milieu_store::ini::Ini;
use milieu_store::ini::{self, Document};
use milieu_store::{Place, Store};
use proptest::prelude::*;

/// A level of a name: any text, with the characters that mean something made frequent.
fn level() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => proptest::char::range('a', 'e'),
        3 => proptest::sample::select(" \t\n\r=;#[]\\/%.\u{0}\u{7f}\u{85}\u{2028}\u{feff}é".chars().collect::<Vec<_>>()),
        1 => any::<char>(),
    ];
    proptest::collection::vec(character, 1..6).prop_map(|characters| {
        let raw: String = characters.into_iter().collect();
        let mut level = String::new();
        milieu_keys::escape_value(&raw, &mut level);
        level
    })
}

fn name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(level(), 0..4).prop_map(|levels| {
        Name::parse(&format!("/{}", levels.join("/"))).expect("escaped levels make a name")
    })
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9 ]{0,8}",
        proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(" \t\n\r=;#[]\\\"u{}".chars().collect::<Vec<_>>()),
                any::<char>()
            ],
            0..8
        )
        .prop_map(|characters| characters.into_iter().collect()),
    ]
}

/// Lines that are nearly right, so that every path of the parser is taken often.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[/a]".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("=".to_owned()),
        Just(" ".to_owned()),
        Just("\t".to_owned()),
        Just("\r".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("\\".to_owned()),
        Just("\\u{".to_owned()),
        Just("#".to_owned()),
        Just("\"".to_owned()),
        Just(";".to_owned()),
        Just("/".to_owned()),
        Just("..".to_owned()),
        Just("%".to_owned()),
        Just("\0".to_owned()),
        Just("\u{feff}".to_owned()),
        "[a-c]{1,2}",
        "[a-c] = [a-c]\n",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn contents(document: &Document) -> BTreeMap<String, String> {
    document
        .keys()
        .map(|entry| (entry.name.as_str().to_owned(), entry.value.into_owned()))
        .collect()
}

/// Loads a text the way a store does: value and line of each key, or nothing if it is refused.
fn loaded(text: &str) -> Option<BTreeMap<String, (String, u32)>> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ini_properties.ini");
    std::fs::write(&path, text).unwrap();
    let store = Store::read(vec![Place::new(Namespace::User, path)]).ok()?;
    let keys = store.keys().iter();
    Some(
        keys.map(|key| {
            (
                key.name().to_owned(),
                (key.value().to_owned(), key.origin().line),
            )
        })
        .collect(),
    )
}

proptest! {
    #[test]
    fn loading_and_editing_understand_the_same(text in text()) {
        let (document, diagnostics) = Document::parse(&text);
        let keys = document.keys().map(|entry| (entry.name.as_str().to_owned(), (entry.value.into_owned(), entry.line)));
        prop_assert_eq!(loaded(&text), diagnostics.is_empty().then(|| keys.collect()));
    }

    #[test]
    fn any_text_round_trips_byte_for_byte(text in text()) {
        let (document, _) = Document::parse(&text);
        prop_assert_eq!(document.to_string(), text);
    }

    #[test]
    fn diagnostics_point_into_the_text(text in text()) {
        let (_, diagnostics) = Document::parse(&text);
        for label in diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
            prop_assert!(text.get(label.span.start..label.span.end).is_some(), "{:?}", label);
        }
    }

    #[test]
    fn any_value_is_written_on_one_line_and_read_back(value in any::<String>()) {
        let written = ini::encode_value(&value);
        prop_assert!(!written.chars().any(char::is_control), "{written:?}");
        prop_assert_eq!(ini::decode_value(&written).unwrap(), value.as_str());
    }

    #[test]
    fn any_name_is_written_on_one_line_and_read_back(name in name()) {
        let written = ini::encode_name(name.as_str());
        prop_assert!(!written.chars().any(char::is_control), "{written:?}");
        prop_assert_eq!(ini::decode_name(&written).unwrap(), name.as_str());
    }

    #[test]
    fn edits_are_those_of_a_map(
        text in text(),
        edits in proptest::collection::vec((name(), proptest::option::of(value())), 0..12),
    ) {
        let (mut document, diagnostics) = Document::parse(&text);
        let mut model = contents(&document);
        for (name, value) in &edits {
            let (replaced, expected) = match value {
                Some(value) => (document.set(name, value), model.insert(name.as_str().to_owned(), value.clone())),
                None => (document.remove(name.as_str()), model.remove(name.as_str())),
            };
            prop_assert_eq!(replaced, expected);
        }
        prop_assert_eq!(&contents(&document), &model);
        prop_assert_eq!(document.len(), model.len());
        if diagnostics.is_empty() {
            let written = document.to_string();
            let (read, diagnostics) = Document::parse(&written);
            prop_assert_eq!(diagnostics, [], "{:?}", written);
            prop_assert_eq!(contents(&read), model, "{:?}", written);
        }
    }

    #[test]
    fn one_edit_changes_one_place(
        text in (text(), text()).prop_map(|(before, after)| format!("{before}\nkey = old\n{after}")),
        which in any::<prop::sample::Index>(),
        value in value(),
    ) {
        let (mut document, _) = Document::parse(&text);
        let names: Vec<Name> = document.keys().map(|entry| entry.name.into_owned()).collect();
        // A broken section makes keys out of nothing below it.
        if names.is_empty() {
            return Ok(());
        }
        let name = &names[which.index(names.len())];
        let line = document.keys().find(|entry| *entry.name == *name).map(|entry| entry.line as usize).unwrap();
        let replaced = document.set(name, &value);
        let edited = document.to_string();
        let short = Ini.replace(&text, line as u32, name, &value, Kind::Unknown);
        // A name that is written in a roundabout way takes the long way.
        if let Some(short) = short.filter(|_| replaced.as_deref() != Some(&*value)) {
            prop_assert_eq!(short, edited.as_str());
        }
        let before: Vec<&str> = text.split_inclusive('\n').collect();
        let after: Vec<&str> = edited.split_inclusive('\n').collect();
        prop_assert_eq!(before.len(), after.len());
        for (number, (before, after)) in before.iter().zip(&after).enumerate() {
            prop_assert!(before == after || number + 1 == line, "line {} changed as well", number + 1);
        }
    }
}
