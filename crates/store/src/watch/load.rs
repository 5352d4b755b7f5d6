//! One file of a store as keys, on its own: what is wrong with it stays with it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use milieu_keys::{Key, KeySet, Name, Origin, SourceOf};

use super::news::same;
use crate::before::Before;
use crate::error::StoreError;
use crate::locations::Place;
use crate::read;
use crate::schema::Schema;

/// The text of a file, none if there is no file, or why it cannot be had.
pub(super) type Text = Result<Option<String>, StoreError>;

/// Reads the text of a file.
pub(super) fn text(place: &Place) -> Text {
    Ok(read::text(&place.path)?.map(|content| content.text))
}

/// A number that tells texts, and reasons for having none, from each other.
pub(super) fn print(hasher: &RandomState, text: &Text) -> u64 {
    match text {
        Ok(text) => hasher.hash_one((true, text)),
        Err(error) => hasher.hash_one((false, error.to_string())),
    }
}

/// The keys of a text under the names of today.
pub(super) fn keys(
    place: &Place,
    hides: &[Name],
    source: &Arc<SourceOf>,
    text: Text,
    before: &Before,
) -> Result<KeySet, StoreError> {
    let Some(text) = text? else {
        return Ok(KeySet::new());
    };
    let mut keys = KeySet::with_capacity(place.format.keys_max(&text));
    read::keys(place, &text, |name, value, line| {
        // What stands below the mount point of another file does not count.
        if hides
            .iter()
            .any(|mount| name.is_below_or_same(mount.as_str()))
        {
            return true;
        }
        let key = Key::new(place.namespace, name, value, Origin::at(source, line));
        keys.insert(key).is_none()
    })?;
    Ok(before.migration.apply(keys).0)
}

/// Gives the keys back if the specification allows every value that is not in
/// force already.
///
/// # Errors
/// All that it refuses, in one error.
pub(super) fn check(
    keys: KeySet,
    schema: Option<&Schema>,
    in_force: &KeySet,
) -> Result<KeySet, StoreError> {
    let Some(schema) = schema else {
        return Ok(keys);
    };
    let is_new = |key: &&Key| !same(Some(key), in_force.get(key.namespace(), key.name()));
    let new = keys.iter().filter(is_new);
    let refused = new.filter_map(|key| schema.check(key).err());
    let all = refused.reduce(|mut first, other| {
        if let (
            StoreError::Refused {
                source,
                diagnostics,
            },
            StoreError::Refused {
                source: of_other,
                diagnostics: others,
            },
        ) = (&mut first, other)
        {
            // The places are those in one text. If the file has changed in
            // between, there will be another look at it.
            if source.text == of_other.text {
                diagnostics.extend(others);
            }
        }
        first
    });
    all.map_or(Ok(keys), Err)
}
