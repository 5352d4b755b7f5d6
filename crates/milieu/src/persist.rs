//! From the key set back into files (CoElektra, III-C and IV-A).
//!
//! Three values of a key count: the one that this program has read or written
//! last, the one that it has now, and the one in the file. Only keys whose
//! first two differ are written; where another process has changed the third
//! meanwhile, it is a conflict. Everything else in the file is left alone, keys
//! of other processes included, and nothing at all is written where nothing has
//! changed.

use std::sync::{MutexGuard, PoisonError, TryLockError};

use milieu_context::{Held, KeyError};
use milieu_keys::{Key, KeySet, Name, Namespace, sort};
use milieu_store::{Change, Commit, Conflict, Resolve, StoreError, Strategy};

use crate::{
    Error, Milieu,
    decide::{Decided, Decisions},
};

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// The names of the keys that have changed in the file, or left it.
    pub names: Vec<String>,
    /// The conflicts that were decided.
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
    /// another process has changed the same key: a
    /// [`Strategy`](milieu_store::Strategy), or a function, which is called
    /// while nothing is locked: it may assign, persist, or make contexts. Where
    /// it decides for another value than this program's, that becomes this
    /// program's too: contexts see it at their next synchronization.
    ///
    /// # Errors
    ///
    /// As [`persist_below`](Milieu::persist_below); where the function decides
    /// for a value that breaks the rules of its key: the file is then as it
    /// was; and where a value of the other process breaks them, which is then
    /// still ours.
    pub fn persist_with(
        &self,
        branches: &[&str],
        resolve: impl Resolve,
    ) -> Result<Persisted, Error> {
        let branches: Vec<Name> = branches
            .iter()
            .map(|branch| Name::parse(branch))
            .collect::<Result<_, _>>()?;
        let mut decisions = Decisions::new(resolve, self.coordinator());
        let names = decisions.settle(|decided| self.write(&branches, decided))?;
        Ok(Persisted {
            names,
            conflicts: decisions.into_conflicts(),
        })
    }

    /// Writes what is below these names, and says what has changed in the file.
    fn write(&self, branches: &[Name], decided: Decided<'_>) -> Result<Vec<String>, Error> {
        // Dropped when nothing is locked any more.
        let _watches;
        let (mut known, held) = self.hold();
        let changes = changes(&held, &known, branches)?;
        drop(held);
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let mut store = self.files.store_of_user()?;
        let since = decided.since(&known);
        let committed = store.commit_since(&since, Namespace::User, &changes, decided);
        // Even a commit that fails may have written.
        _watches = self.files.written();
        let (_, unsettled) = in_force(committed)?;
        let before = known.clone();
        let mut names = Vec::new();
        let mut refused = None;
        for change in &changes {
            let name = change.name.as_str();
            let now = store.keys().get(Namespace::User, name);
            let is_ours = now.map(Key::value) == change.value.as_deref();
            let taken = match is_ours {
                true => Ok(()),
                false => self.yield_to(name, now),
            };
            if is_ours {
                names.push(name.to_owned());
            }
            match taken {
                Ok(()) => take_over(&mut known, store.keys(), &change.name),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        // What is in the file is the file's from now on: whoever changes it there
        // means this program as well. It has the rules' consent already.
        let replaced = self.coordinator().replace(Namespace::User, &before, &known);
        debug_assert!(replaced.is_ok() || refused.is_some(), "{replaced:?}");
        let failed = unsettled.map(Error::from);
        match failed.or(refused.map(Error::from)) {
            Some(error) => Err(error),
            None => Ok(names),
        }
    }

    /// Gives up this program's value for what the file has.
    pub(crate) fn yield_to(&self, name: &str, theirs: Option<&Key>) -> Result<(), KeyError> {
        match theirs {
            Some(key) => {
                let origin = Some(key.origin().clone());
                self.coordinator().assign(name, key.value(), origin)
            }
            None => self.coordinator().remove(name),
        }
    }

    /// The user's keys as known, and the key set held still. Whoever writes
    /// has the first without the second, so it must not be waited for with the
    /// second: others wait for that.
    fn hold(&self) -> (MutexGuard<'_, KeySet>, Held) {
        loop {
            let held = self.coordinator().require_lock();
            match self.files.known.user.try_lock() {
                Ok(known) => return (known, held),
                Err(TryLockError::Poisoned(poisoned)) => return (poisoned.into_inner(), held),
                Err(TryLockError::WouldBlock) => drop(held),
            }
            drop(
                self.files
                    .known
                    .user
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
    }
}

/// A commit that is in force, and why a loss of power may undo it, if it may.
pub(crate) fn in_force(
    committed: Result<Commit, StoreError>,
) -> Result<(Commit, Option<StoreError>), StoreError> {
    match committed {
        Ok(commit) => Ok((commit, None)),
        Err(error @ StoreError::Unsettled { .. }) => Ok((Commit::default(), Some(error))),
        Err(error) => Err(error),
    }
}

/// What the program has assigned and removed since it has read and written.
fn changes(held: &Held, known: &KeySet, branches: &[Name]) -> Result<Vec<Change>, Error> {
    let chosen = |name: &Name| {
        let mut branches = branches.iter();
        branches.any(|branch| name.is_below_or_same(branch.as_str()))
    };
    let ours = held.in_namespace(Namespace::User);
    let mut changes = Vec::new();
    for entry in ours.iter().filter(|entry| entry.origin.is_none()) {
        if value_of(known, entry.name) != Some(entry.text) {
            changes.push(Change::set(Name::parse(entry.name)?, entry.text));
        }
    }
    // A name alone says nothing: another namespace may have surfaced.
    let mut there: Vec<&str> = ours.iter().map(|entry| entry.name).collect();
    sort::by(&mut there, Ord::cmp);
    let gone = |key: &&Key| there.binary_search(&key.name()).is_err();
    for key in known.iter().filter(gone) {
        changes.push(Change::remove(Name::parse(key.name())?));
    }
    changes.retain(|change| chosen(&change.name));
    Ok(changes)
}

fn value_of<'k>(keys: &'k KeySet, name: &str) -> Option<&'k str> {
    keys.get(Namespace::User, name).map(Key::value)
}

/// Notes what the file holds now.
pub(crate) fn take_over(known: &mut KeySet, file: &KeySet, name: &Name) {
    match file.get(Namespace::User, name.as_str()) {
        Some(key) => {
            known.insert(key.clone());
        }
        None => {
            known.remove(Namespace::User, name.as_str());
        }
    }
}
