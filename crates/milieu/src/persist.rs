//! From the key set back into files (CoElektra, III-C and IV-A).

use milieu_keys::{Name, Namespace};
use milieu_store::{Change, Strategy};

use crate::{Error, Milieu};

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// The names of the keys that have changed in the file, or left it.
    pub names: Vec<String>,
}

impl Milieu {
    /// Writes what the program has assigned into the user's file, and takes
    /// out what it has removed. Values that come from files, options or
    /// variables and were not assigned are left alone, defaults are not written.
    ///
    /// Works on a snapshot: nobody waits for the disk.
    ///
    /// # Errors
    ///
    /// Fails where the file cannot be written or another process has changed
    /// the same key; the file is then as it was.
    pub fn persist(&self) -> Result<Persisted, Error> {
        self.persist_below(&["/"])
    }

    /// As [`persist`](Milieu::persist), only what is below these names.
    ///
    /// # Errors
    ///
    /// As [`persist`](Milieu::persist).
    pub fn persist_below(&self, branches: &[&str]) -> Result<Persisted, Error> {
        // One writer at a time; the key set is held only to look at it.
        let mut store = self.store();
        let held = self.coordinator().require_lock();
        let entries = held.entries();
        let chosen = |name: &str| {
            Name::parse(name).is_ok_and(|name| {
                branches
                    .iter()
                    .any(|branch| *branch == "/" || name.is_below_or_same(branch))
            })
        };
        let mut changes = Vec::new();
        for entry in entries.iter().filter(|entry| entry.origin.is_none()) {
            let known = store
                .keys()
                .get(Namespace::User, entry.name)
                .map(|key| key.value());
            if known != Some(entry.text) && chosen(entry.name) {
                changes.push(Change::set(Name::parse(entry.name)?, entry.text));
            }
        }
        let there = |name: &str| {
            entries
                .binary_search_by(|e| e.name.split('/').cmp(name.split('/')))
                .is_ok()
        };
        for key in store
            .keys()
            .iter()
            .filter(|key| key.namespace() == Namespace::User)
        {
            if !there(key.name()) && chosen(key.name()) {
                changes.push(Change::remove(Name::parse(key.name())?));
            }
        }
        drop(entries);
        drop(held);
        let names = changes
            .iter()
            .map(|change| change.name.as_str().to_owned())
            .collect();
        if !changes.is_empty() {
            store.commit(Namespace::User, &changes, Strategy::Refuse)?;
        }
        Ok(Persisted { names })
    }
}
