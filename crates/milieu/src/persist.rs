//! From the key set back into files (CoElektra, III-C and IV-A).
//!
//! Three values of a key count: the one that this program has read or written
//! last, the one that it has now, and the one in the file. Only keys whose
//! first two differ are written; where another process has changed the third
//! meanwhile, it is a conflict. Everything else in the file is left alone, keys
//! of other processes included, and nothing at all is written where nothing has
//! changed.

use std::{
    collections::HashSet,
    sync::{MutexGuard, PoisonError, TryLockError},
};

use milieu_context::Held;
use milieu_keys::{Key, KeySet, Name, Namespace};
use milieu_store::{Change, Conflict, Store, StoreError, Strategy};

use crate::{Error, Milieu};

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// The names of the keys that have changed in the file, or left it.
    pub names: Vec<String>,
    /// The conflicts that the strategy has decided.
    pub conflicts: Vec<Conflict>,
}

impl Milieu {
    /// Writes what the program has assigned into the user's file, and takes
    /// out what it has removed. Values that come from files, options or
    /// variables and were not assigned are left alone, defaults are not written.
    ///
    /// Works on a snapshot: nobody waits for the disk but others who persist.
    /// The paper's idiom, persisting under [`require_lock`], works as well.
    ///
    /// [`require_lock`]: milieu_context::Coordinator::require_lock
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
    /// As [`persist`](Milieu::persist), and where a name is not one.
    pub fn persist_below(&self, branches: &[&str]) -> Result<Persisted, Error> {
        self.persist_with(branches, Strategy::Refuse)
    }

    /// As [`persist_below`](Milieu::persist_below), with the decision where
    /// another process has changed the same key. With [`Strategy::Theirs`] the
    /// other's value becomes this program's too: contexts see it at their next
    /// synchronization.
    ///
    /// # Errors
    ///
    /// As [`persist_below`](Milieu::persist_below); and where a value of the
    /// other process breaks the rules of its key, which is then still ours.
    pub fn persist_with(&self, branches: &[&str], strategy: Strategy) -> Result<Persisted, Error> {
        let branches: Vec<Name> = branches
            .iter()
            .map(|branch| Name::parse(branch))
            .collect::<Result<_, _>>()?;
        let (mut known, held) = self.hold();
        let mut changes = changes(&held, &known, &branches)?;
        drop(held);
        if changes.is_empty() {
            return Ok(Persisted::default());
        }
        let mut store = Store::read(self.files.clone())?;
        let mut conflicts = conflicts(&changes, &known, store.keys());
        match strategy {
            Strategy::Refuse if !conflicts.is_empty() => {
                let path = store.target(Namespace::User).unwrap_or("".as_ref());
                return Err(Error::Store(StoreError::Conflict {
                    path: path.to_owned(),
                    conflicts,
                }));
            }
            Strategy::Theirs => {
                changes.retain(|change| conflicts.iter().all(|c| c.name != change.name));
            }
            _ => {}
        }
        let written = match store.commit(Namespace::User, &changes, strategy) {
            Ok(commit) => {
                // Those that came up between reading and locking the file.
                conflicts.extend(commit.conflicts);
                Ok(())
            }
            Err(error @ StoreError::Unsettled { .. }) => Err(error),
            Err(error) => return Err(error.into()),
        };
        if strategy == Strategy::Theirs {
            changes.retain(|change| conflicts.iter().all(|c| c.name != change.name));
        }
        for change in &changes {
            take_over(&mut known, store.keys(), &change.name);
        }
        written?;
        if strategy == Strategy::Theirs {
            self.yield_to(&conflicts, &mut known, store.keys())?;
        }
        Ok(Persisted {
            names: changes.iter().map(|c| c.name.as_str().to_owned()).collect(),
            conflicts,
        })
    }

    /// The user's keys as known, and the key set held still. Whoever writes
    /// has the first without the second, so it must not be waited for with the
    /// second: others wait for that.
    fn hold(&self) -> (MutexGuard<'_, KeySet>, Held) {
        loop {
            let held = self.coordinator().require_lock();
            match self.known.try_lock() {
                Ok(known) => return (known, held),
                Err(TryLockError::Poisoned(poisoned)) => return (poisoned.into_inner(), held),
                Err(TryLockError::WouldBlock) => drop(held),
            }
            drop(self.known.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Gives up this program's values for those of another process.
    fn yield_to(
        &self,
        conflicts: &[Conflict],
        known: &mut KeySet,
        theirs: &KeySet,
    ) -> Result<(), Error> {
        let mut refused = None;
        for conflict in conflicts {
            let name = conflict.name.as_str();
            let taken = match theirs.get(Namespace::User, name) {
                Some(key) => {
                    let origin = Some(key.origin().clone());
                    self.coordinator().assign(name, key.value(), origin)
                }
                None => self.coordinator().remove(name),
            };
            match taken {
                Ok(()) => take_over(known, theirs, &conflict.name),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        refused.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// What the program has assigned and removed since it has read and written.
fn changes(held: &Held, known: &KeySet, branches: &[Name]) -> Result<Vec<Change>, Error> {
    let chosen = |name: &Name| {
        let mut branches = branches.iter();
        branches.any(|branch| name.is_below_or_same(branch.as_str()))
    };
    let entries = held.entries();
    let mut changes = Vec::new();
    for entry in entries.iter().filter(|entry| entry.origin.is_none()) {
        if value_of(known, entry.name) != Some(entry.text) {
            changes.push(Change::set(Name::parse(entry.name)?, entry.text));
        }
    }
    let there: HashSet<&str> = entries.iter().map(|entry| entry.name).collect();
    for key in known.iter().filter(|key| !there.contains(key.name())) {
        changes.push(Change::remove(Name::parse(key.name())?));
    }
    changes.retain(|change| chosen(&change.name));
    Ok(changes)
}

/// The changes of keys that another process has changed as well, and differently.
fn conflicts(changes: &[Change], known: &KeySet, theirs: &KeySet) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for change in changes {
        let name = change.name.as_str();
        let (base, theirs) = (value_of(known, name), value_of(theirs, name));
        if theirs != base && theirs != change.value.as_deref() {
            conflicts.push(Conflict {
                name: change.name.clone(),
                base: base.map(str::to_owned),
                ours: change.value.clone(),
                theirs: theirs.map(str::to_owned),
            });
        }
    }
    conflicts
}

fn value_of<'k>(keys: &'k KeySet, name: &str) -> Option<&'k str> {
    keys.get(Namespace::User, name).map(Key::value)
}

/// Notes what the file holds now.
fn take_over(known: &mut KeySet, file: &KeySet, name: &Name) {
    match file.get(Namespace::User, name.as_str()) {
        Some(key) => {
            known.insert(key.clone());
        }
        None => {
            known.remove(Namespace::User, name.as_str());
        }
    }
}
