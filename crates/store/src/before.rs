//! Keys under the names that they have today, above the files as they are.
//!
//! The store keeps what the files say, and commits to that. Where a program
//! knows old names of its keys, a second view shows the same keys as they are
//! called and written today; it is made anew whenever a file is read.

use std::sync::Arc;

use milieu_keys::migration::Notice;
use milieu_keys::{Key, KeySet, Migration, Name, Namespace, Secrets};

use crate::merge::Change;
use crate::migrate;
use crate::store::Store;

/// What is known of names of before, and of what must not be shown.
#[derive(Debug, Default)]
pub(crate) struct Before {
    pub migration: Migration,
    pub secrets: Secrets,
}

/// The keys of today.
#[derive(Debug, Clone)]
pub(crate) struct Today {
    pub keys: KeySet,
    /// Keys that another file of the same namespace wins over.
    pub shadowed: Vec<Key>,
    pub notices: Vec<Notice>,
}

impl Store {
    /// Reads old names as those of today from now on, and keeps secrets, as a
    /// [`Schema`](crate::Schema) would: for programs that have the metadata of
    /// their keys and no specification at hand.
    ///
    /// Files that hold secrets are readable by their owner alone once they are
    /// written, and the history does not know the values.
    pub fn knowing(mut self, migration: Migration, secrets: Secrets) -> Store {
        self.before = Arc::new(Before { migration, secrets });
        self.look_back();
        self
    }

    /// What became of keys that files have under names of before: what to tell
    /// those who wrote them.
    pub fn notices(&self) -> &[Notice] {
        self.today.as_ref().map_or(&[], |today| &today.notices)
    }

    /// The changes that leave nothing to migrate in the files of a namespace.
    pub fn migration(&self, namespace: Namespace) -> Vec<Change> {
        migrate::changes(self.notices(), namespace)
    }

    /// The keys that another file of the same namespace wins over.
    pub(crate) fn shadowed(&self) -> &[Key] {
        self.today
            .as_ref()
            .map_or(&self.shadowed, |today| &today.shadowed)
    }

    /// Makes the view of today anew.
    pub(crate) fn look_back(&mut self) {
        self.today = None;
        if self.before.migration.is_empty() {
            return;
        }
        let mut of_file: Vec<KeySet> = vec![KeySet::new(); self.files.len()];
        let mut keys = KeySet::new();
        for key in self.keys.iter().chain(&self.shadowed) {
            match self.index_of(key) {
                Some(index) => of_file[index].insert(key.clone()),
                None => keys.insert(key.clone()),
            };
        }
        let mut today = Today {
            keys,
            shadowed: Vec::new(),
            notices: Vec::new(),
        };
        // From the last to the first, so that each key replaces the one it wins over.
        for file in of_file.into_iter().rev() {
            let (file, notices) = self.before.migration.apply(file);
            today.notices.extend(notices);
            for key in file.iter() {
                let replaced = today.keys.insert(key.clone());
                today.shadowed.extend(replaced);
            }
        }
        // Where nobody uses an old name, the files are as they are today.
        if !today.notices.is_empty() {
            self.today = Some(today);
        }
    }

    /// Changes that have to go with these, so that no key comes to light again
    /// under an old name.
    pub(crate) fn completed(&self, changes: &[&Change], namespace: Namespace) -> Vec<Change> {
        if cfg!(not(feature = "checks")) || self.notices().is_empty() {
            return Vec::new();
        }
        let changes: Vec<Change> = changes.iter().map(|change| (*change).clone()).collect();
        migrate::completed(&changes, self.notices(), namespace)
    }

    /// The file in which a key stands, under whichever name.
    pub(crate) fn holder(&self, namespace: Namespace, name: &Name) -> Option<usize> {
        let in_file = self.keys.get(namespace, name.as_str());
        let today = || self.keys().get(namespace, name.as_str());
        self.index_of(in_file.or_else(today)?)
    }

    /// The value that a file is expected to have by one who believes that the
    /// key has this one today.
    pub(crate) fn expected<'a>(
        &'a self,
        namespace: Namespace,
        name: &str,
        believed: Option<&'a str>,
    ) -> Option<&'a str> {
        let value = |keys: &'a KeySet| keys.get(namespace, name).map(Key::value);
        // It may have it under another name.
        match self.today.is_some() && value(self.keys()) == believed {
            true => value(&self.keys),
            false => believed,
        }
    }
}
