//! Files whose keys have other names today: what they say, and how to mend them.
//!
//! A [`Migration`](milieu_keys::Migration) turns the keys of a file into those
//! of today and says in [`Notice`]s what it did; nothing here reads or writes a
//! file. The keys of each file are migrated before those of several files
//! become one key set, so that the cascade stays what it is.
//!
//! | the program               | the file has `/old = 1`                            |
//! |---------------------------|----------------------------------------------------|
//! | reads `/new`              | gets `1`, with the line of `/old` as its origin    |
//! | sets or removes `/new`    | loses `/old` in the same commit ([`completed`])    |
//! | is asked to migrate       | gets `/new = 1` in place of `/old` ([`changes`])   |

use std::collections::HashMap;

use milieu_keys::migration::{Fate, Notice, Outcome, Target};
use milieu_keys::{Key, KeySet, Name, Namespace};

use crate::merge::Change;
use crate::schema::Schema;

impl Schema {
    /// The keys of one file under their names of today, and what became of
    /// those that had others. A notice that [is an error](Notice::is_error)
    /// means that a value is missing which somebody gave.
    pub fn migrate(&self, keys: KeySet) -> (KeySet, Vec<Notice>) {
        self.old_names().apply(keys)
    }

    /// What a commit has to change so that the keys of a namespace have their
    /// names of today, as they are in its files: see [`changes`].
    pub fn migration(&self, keys: &KeySet, namespace: Namespace) -> Vec<Change> {
        let (_, notices) = self.migrate(keys.clone());
        changes(&notices, namespace)
    }
}

/// What a commit to a namespace has to change so that there is nothing left to
/// migrate: old keys go, those of today come, and keys that are no more go. A
/// key whose value is not allowed today stays, with all that depends on it.
pub fn changes(notices: &[Notice], namespace: Namespace) -> Vec<Change> {
    let mut changes = Vec::new();
    for Notice { key, fate, .. } in of_namespace(notices, namespace) {
        let targets = match fate {
            Fate::Renamed(targets) => targets,
            Fate::Removed(_) => {
                changes.extend(removal(key));
                continue;
            }
            Fate::Deprecated(_) => continue,
        };
        if targets.iter().all(Target::is_settled) {
            changes.extend(removal(key));
        }
        changes.extend(targets.iter().filter_map(assignment));
    }
    changes
}

/// What a commit has to change as well, when it makes these changes in a
/// namespace whose files gave these notices: the old names of the keys go, or
/// they would come to light again where the new ones are removed. An old key
/// that stands for other keys too becomes those; where one of them does not
/// allow its value it stays, unless that would undo a removal.
pub fn completed(changes: &[Change], notices: &[Notice], namespace: Namespace) -> Vec<Change> {
    let changed: HashMap<&Name, &Change> = changes
        .iter()
        .map(|change| (&change.name, change))
        .collect();
    let mut more = Vec::new();
    for Notice { key, fate, .. } in of_namespace(notices, namespace) {
        let Fate::Renamed(targets) = fate else {
            continue;
        };
        let (touched, rest): (Vec<&Target>, Vec<&Target>) = targets
            .iter()
            .partition(|target| changed.contains_key(&target.name));
        let removes = touched
            .iter()
            .any(|target| changed[&target.name].value.is_none());
        let settled = rest.iter().all(|target| target.is_settled());
        if removes || (settled && !touched.is_empty()) {
            more.extend(removal(key));
            more.extend(rest.into_iter().filter_map(assignment));
        }
    }
    more.retain(|change| !changed.contains_key(&change.name));
    more
}

fn of_namespace(notices: &[Notice], namespace: Namespace) -> impl Iterator<Item = &Notice> {
    let is_it = move |notice: &&Notice| notice.key.namespace() == namespace;
    notices.iter().filter(is_it)
}

fn removal(key: &Key) -> Option<Change> {
    Name::parse(key.name()).ok().map(Change::remove)
}

/// The key of today, where it has its value from the old one.
fn assignment(target: &Target) -> Option<Change> {
    match &target.outcome {
        Outcome::Taken(key) => Some(Change::set(target.name.clone(), key.value())),
        Outcome::Outranked(_) | Outcome::Refused(_) => None,
    }
}
