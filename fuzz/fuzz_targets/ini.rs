//! INI documents: nothing is lost that was not changed.
//!
//! The first text is a document; in the second, the lines are by turns a name
//! and the value it gets. An empty value removes the key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::{can_be_shown, texts};
use milieu_keys::Name;
use milieu_store::ini::{Document, decode_value, encode_value};

fuzz_target!(|input: &str| {
    let [text, edits] = texts(input);
    let (mut document, diagnostics) = Document::parse(text);
    can_be_shown(text, &diagnostics);
    assert_eq!(document.to_string(), text);
    if let Ok(value) = decode_value(text) {
        let written = encode_value(&value);
        assert_eq!(decode_value(&written).as_deref(), Ok(&*value));
    }
    let mut lines = edits.lines();
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        if let Ok(name) = Name::parse(name) {
            edited(&mut document, &name, value, diagnostics.is_empty());
        }
    }
});

/// An edit does what it says, to one key, and to one that is read again.
fn edited(document: &mut Document, name: &Name, value: &str, was_sound: bool) {
    let before: Vec<(String, String)> = contents(document);
    if value.is_empty() {
        document.remove(name.as_str());
        assert_eq!(document.get(name.as_str()), None);
    } else {
        document.set(name, value);
        assert_eq!(document.get(name.as_str()).as_deref(), Some(value));
    }
    let others = |keys: Vec<(String, String)>| -> Vec<(String, String)> {
        let mut keys: Vec<_> = keys
            .into_iter()
            .filter(|(other, _)| other != name.as_str())
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(others(contents(document)), others(before));
    if was_sound {
        let written = document.to_string();
        let (read, diagnostics) = Document::parse(&written);
        assert!(diagnostics.is_empty(), "{diagnostics:?} in {written:?}");
        assert_eq!(contents(&read), contents(document));
    }
}

fn contents(document: &Document) -> Vec<(String, String)> {
    document
        .keys()
        .map(|entry| (entry.name.as_str().to_owned(), entry.value.into_owned()))
        .collect()
}
