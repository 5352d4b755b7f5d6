//! What holds for every format that can be edited in place.

use std::collections::BTreeMap;

use milieu_keys::Name;
use milieu_store::{Document, Format, Kind};

use crate::{can_be_shown, texts};

type Keys = BTreeMap<String, String>;

/// Loading, reading and editing agree.
///
/// The first text is a document; in the second, the lines are by turns a name
/// and the value it gets. An empty value removes the key.
///
/// # Panics
/// If that is not so.
pub fn check(format: &dyn Format, input: &str) {
    let [text, edits] = texts(input);
    let (mut document, diagnostics) = format.parse(text);
    can_be_shown(text, &diagnostics);
    assert_eq!(document.text(), text);
    let mut loaded = Keys::new();
    let sound = format.load(text, &mut |name, value, _| {
        loaded.insert(name.to_string(), value.to_owned()).is_none()
    });
    assert_eq!(sound, diagnostics.is_empty(), "{diagnostics:?}");
    if !sound {
        return;
    }
    assert_eq!(contents(&*document), loaded);
    assert!(format.keys_max(text) >= loaded.len());
    let mut lines = edits.lines();
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        if let Ok(name) = Name::parse(name) {
            edited(format, &mut *document, &name, value);
        }
    }
}

/// An edit does what it says, to one key, and to one that is read again.
fn edited(format: &dyn Format, document: &mut dyn Document, name: &Name, value: &str) {
    let (mut keys, before) = (contents(document), document.text());
    let value = (!value.is_empty()).then_some(value);
    let done = match value {
        Some(value) => document.set(name, value, Kind::Unknown),
        None => document.remove(name.as_str()),
    };
    let after = document.text();
    let Ok(replaced) = done else {
        assert_eq!(after, before);
        return;
    };
    let expected = match value {
        Some(value) => keys.insert(name.to_string(), value.to_owned()),
        None => keys.remove(name.as_str()),
    };
    assert_eq!(replaced, expected);
    assert_eq!(contents(document), keys);
    let (read, diagnostics) = format.parse(&after);
    assert!(diagnostics.is_empty(), "{diagnostics:?} in {after:?}");
    assert_eq!(contents(&*read), keys, "{after:?}");
}

fn contents(document: &dyn Document) -> Keys {
    document
        .keys()
        .map(|entry| (entry.name.to_string(), entry.value.into_owned()))
        .collect()
}
