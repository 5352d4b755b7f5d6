//! Looking back: who has changed what in the files, and taking it back.

use milieu_keys::{KeySet, Name, Namespace};
use milieu_store::{Conflict, Logged, Resolve};

use crate::{
    Error, Milieu,
    decide::{Decided, Decisions},
    open::lock,
    persist::{in_force, take_over},
};

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The commit.
    pub commit: Logged,
    /// The names of the keys that have changed in the file, or left it.
    pub names: Vec<String>,
    /// The conflicts that were decided.
    pub conflicts: Vec<Conflict>,
}

impl Milieu {
    /// The commits that the histories of this program's files still know, the
    /// last one last: what programs and `milieu key` have written, and not what
    /// was written by hand. Secrets are named by the environments, so that
    /// nobody knows of any before the first context.
    ///
    /// # Errors
    ///
    /// Fails where a file or its history cannot be read.
    pub fn log(&self) -> Result<Vec<Logged>, Error> {
        Ok(self.files.store()?.log()?)
    }

    /// Takes back a commit in the user's file that [`log`](Milieu::log) has
    /// listed, or the last one that is neither taken back nor takes one back:
    /// every key gets the value that it had before. It is in force here as well:
    /// contexts see it at their next synchronization, and a
    /// [watch](Milieu::watch) does not tell it as news. What this program has
    /// assigned and not yet persisted stays in force.
    ///
    /// A key that has changed in the file since is a conflict. Who decides it, a
    /// strategy or a function, is asked as by
    /// [`persist_with`](Milieu::persist_with); what was before is this program's
    /// side of it.
    ///
    /// # Errors
    ///
    /// Fails where there is no such commit, where it is taken back already, where
    /// a secret's value is not known, where a value of before breaks the rules of
    /// its key today, and as [`persist_with`](Milieu::persist_with).
    pub fn undo(&self, commit: Option<&Logged>, resolve: impl Resolve) -> Result<Undone, Error> {
        let mut decisions = Decisions::new(resolve, self.coordinator());
        // The last one stays the one that it was when it was asked for.
        let mut found = commit.cloned();
        let (commit, names) = decisions.settle(|decided| self.take_back(&mut found, decided))?;
        Ok(Undone {
            commit,
            names,
            conflicts: decisions.into_conflicts(),
        })
    }

    /// Takes a commit back, and says what has changed in the file.
    fn take_back(
        &self,
        found: &mut Option<Logged>,
        decided: Decided<'_>,
    ) -> Result<(Logged, Vec<String>), Error> {
        // Dropped when nothing is locked any more.
        let _watches;
        let mut known = lock(&self.files.known.user);
        let mut store = self.files.store_of_user()?;
        let logged = match found {
            Some(logged) => logged.clone(),
            None => found.insert(store.undoable(Namespace::User, None)?).clone(),
        };
        let changes = &logged.record.changes;
        // An array is right or wrong as a whole, and so when it is all there.
        let is_alone = |name: &Name| !name.levels().any(|level| level.starts_with('#'));
        for change in changes.iter().filter(|change| is_alone(&change.name)) {
            let (name, old) = (change.name.as_str(), change.old.as_deref());
            self.coordinator().check(name, old)?;
        }
        let before = store.keys().clone();
        let undone = store.undo_logged(&logged, decided);
        _watches = self.files.written();
        let (commit, unsettled) = in_force(undone)?;
        let refused = self.go_back(&mut known, &before, store.keys());
        let failed = unsettled.map(Error::from);
        if let Some(error) = failed.or(refused.err()) {
            return Err(error);
        }
        let names = commit.replaced.iter();
        let names = names.map(|(name, _)| name.as_str().to_owned()).collect();
        Ok((logged, names))
    }

    /// Gives this program's keys the values that were written into the file.
    fn go_back(&self, known: &mut KeySet, before: &KeySet, after: &KeySet) -> Result<(), Error> {
        let was = known.clone();
        let value = |keys: &KeySet, name: &str| {
            let key = keys.get(Namespace::User, name);
            key.map(|key| key.value().to_owned())
        };
        for key in before.iter().chain(after) {
            let name = key.name();
            if key.namespace() == Namespace::User && value(before, name) != value(after, name) {
                take_over(known, after, &Name::parse(name)?);
            }
        }
        let replaced = self.coordinator().replace(Namespace::User, &was, known);
        if replaced.is_err() {
            *known = was;
        }
        replaced?;
        Ok(())
    }
}
