//! Old files with a new specification: checked, migrated once and twice.
//!
//! The first text is the specification, the second one the file.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use milieu_diagnostics::Source;
use milieu_fuzz::{can_be_shown, texts};
use milieu_keys::rules::REDACTED;
use milieu_keys::{Key, KeySet, Namespace, Origin, SourceOf};
use milieu_store::{Entry, Schema, ini, migrate};

fuzz_target!(|input: &str| {
    let [specification, text] = texts(input);
    let Ok(schema) = Schema::parse(Source::new("fuzz.spec.ini", specification)) else {
        return;
    };
    let (mut document, found) = ini::Document::parse(text);
    if !found.is_empty() {
        return;
    }
    checked(&schema, text, &document);
    let (before, notices) = schema.migrate(keys(&document));
    for change in migrate::changes(&notices, Namespace::User) {
        match &change.value {
            Some(value) => drop(document.set(&change.name, value)),
            None => drop(document.remove(change.name.as_str())),
        }
    }
    let (after, notices) = schema.migrate(keys(&document));
    assert_eq!(read(&schema, &after), read(&schema, &before));
    let more = migrate::changes(&notices, Namespace::User);
    assert!(more.is_empty(), "{more:?}");
});

/// Every diagnostic can be shown, and none shows a secret.
fn checked(schema: &Schema, text: &str, document: &ini::Document) {
    let (source, found) = schema.check_file(&Source::new("fuzz.ini", text), document.keys());
    can_be_shown(&source.text, &found);
    for entry in document
        .keys()
        .filter(|entry| schema.is_secret(entry.name.as_str()))
    {
        let line = source.text.lines().nth(entry.line as usize - 1);
        assert!(line.is_some_and(|line| line.contains(REDACTED)), "{line:?}");
    }
}

fn keys(document: &ini::Document) -> KeySet {
    let origin = Origin::new(SourceOf::File("fuzz.ini".to_owned()));
    let key =
        |entry: Entry<'_>| Key::new(Namespace::User, &entry.name, &entry.value, origin.clone());
    document.keys().map(key).collect()
}

/// What a program reads.
fn read(schema: &Schema, keys: &KeySet) -> BTreeMap<String, String> {
    keys.iter()
        .filter(|key| schema.find(key.name()).is_some())
        .map(|key| (key.name().to_owned(), key.value().to_owned()))
        .collect()
}
