//! Commits: from changes of keys to new texts of files.
//!
//! ```text
//!  lock ─ read ─ merge by key ─ prepare ─ note in the history ─ put in force ─ take over ─ unlock
//! ```
//!
//! Whoever decides conflicts does so between two attempts, while nothing is
//! locked.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use milieu_keys::key_set::compare;
use milieu_keys::migration::{Fate, Notice};
use milieu_keys::{Key, KeySet, Name, Namespace, Type, sort};

use crate::disk::{Disk, SystemDisk};
use crate::error::{Conflict, StoreError};
use crate::format::{Document, Entry, Kind};
use crate::history::{self, Changed, Record};
use crate::locations::Place;
use crate::lock::{Lock, PAUSE};
use crate::merge::{self, Change, Commit, Decisions, Edit, Resolve, Unapplied};
use crate::read;
use crate::replace::{self, Audience};
use crate::store::{FileOf, Store};

impl Store {
    /// Writes changes of single keys into the files of a namespace.
    ///
    /// A key that has a value already is changed in the file that gives it; a
    /// new one goes to [`Store::target`]. Each file is changed whole or not at
    /// all, and holds everything that other processes wrote meanwhile. Of keys
    /// in several files those of the first are written first. When this
    /// returns, the changes survive a loss of power, and the keys of this store
    /// are what the files hold.
    ///
    /// `resolve` decides about keys that others have changed as well: a
    /// [`Strategy`](crate::Strategy), or a function.
    ///
    /// # Errors
    /// The files are as they were, except for [`StoreError::Unsettled`], and
    /// for files that come before the one that failed.
    pub fn commit(
        &mut self,
        namespace: Namespace,
        changes: &[Change],
        resolve: impl Resolve,
    ) -> Result<Commit, StoreError> {
        self.commit_on(&SystemDisk, namespace, changes, resolve)
    }

    pub(crate) fn commit_on(
        &mut self,
        disk: &dyn Disk,
        namespace: Namespace,
        changes: &[Change],
        mut resolve: impl Resolve,
    ) -> Result<Commit, StoreError> {
        self.commit_as(disk, namespace, changes, Base::Store, &mut resolve)
    }

    /// As [`commit`](Store::commit), for one who has known the keys for longer
    /// than this store: what differs from `known` has been changed by others.
    ///
    /// # Errors
    /// As [`commit`](Store::commit).
    pub fn commit_since(
        &mut self,
        known: &KeySet,
        namespace: Namespace,
        changes: &[Change],
        mut resolve: impl Resolve,
    ) -> Result<Commit, StoreError> {
        let base = Base::Known(known);
        self.commit_as(&SystemDisk, namespace, changes, base, &mut resolve)
    }

    /// As [`commit`](Store::commit), from another state of the keys.
    pub(crate) fn commit_as(
        &mut self,
        disk: &dyn Disk,
        namespace: Namespace,
        changes: &[Change],
        base: Base<'_>,
        resolve: &mut dyn Resolve,
    ) -> Result<Commit, StoreError> {
        let commit = self.commit_all(disk, namespace, changes, base, resolve);
        commit.map_err(|error| self.redact(error))
    }

    fn commit_all(
        &mut self,
        disk: &dyn Disk,
        namespace: Namespace,
        changes: &[Change],
        base: Base<'_>,
        resolve: &mut dyn Resolve,
    ) -> Result<Commit, StoreError> {
        let changes = merge::last_of_each(changes);
        self.check_rules(&changes, base)?;
        let more = self.completed(&changes, namespace);
        let mut of_file: Vec<Vec<&Change>> = vec![Vec::new(); self.files.len()];
        for change in changes.into_iter().chain(&more) {
            let holder = self.holder(namespace, &change.name);
            let index = holder
                .or_else(|| self.target_index(namespace, &change.name))
                .ok_or(StoreError::NoFile { namespace })?;
            of_file[index].push(change);
        }
        let mut commit = Commit::default();
        let mut decisions = Decisions::default();
        for (index, changes) in of_file.iter().enumerate() {
            if changes.is_empty() {
                continue;
            }
            // Decisions are taken while nothing is locked.
            let part = loop {
                match self.commit_file(disk, index, changes, base, &decisions) {
                    Err(StoreError::Conflict { path, conflicts }) => {
                        let conflicts = decisions.ask(conflicts, resolve);
                        if !conflicts.is_empty() {
                            return Err(StoreError::Conflict { path, conflicts });
                        }
                        let values = decisions.values();
                        self.check_rules(&values.iter().collect::<Vec<_>>(), base)?;
                    }
                    part => break part?,
                }
            };
            commit.extend(part);
        }
        Ok(commit)
    }

    /// Whether the specification, if there is one, allows these changes.
    fn check_rules(&self, changes: &[&Change], base: Base<'_>) -> Result<(), StoreError> {
        let Some(schema) = &self.schema else {
            return Ok(());
        };
        // What is taken back may be from a time when names were others.
        let undoes = matches!(base, Base::Undone(_));
        let known = |change: &&&Change| !undoes || schema.find(change.name.as_str()).is_some();
        let checked: Vec<&Change> = changes.iter().filter(known).copied().collect();
        schema.check_all(&checked)
    }

    fn commit_file(
        &mut self,
        disk: &dyn Disk,
        index: usize,
        changes: &[&Change],
        base: Base<'_>,
        decisions: &Decisions,
    ) -> Result<Commit, StoreError> {
        let undoes = match base {
            Base::Undone(record) => Some(record.id),
            _ => None,
        };
        self.rewrite(disk, index, undoes, &mut |store, place, text| {
            let edits = store.edits(place, changes);
            if matches!(base, Base::Store) {
                if let Some(draft) = store.in_place(index, text, &edits) {
                    return Ok(draft);
                }
            }
            let mut document = read::document(place, text)?;
            let base = |name: &str| match base {
                Base::Undone(record) => record.value(name),
                Base::Store => store.keys.get(place.namespace, name).map(Key::value),
                Base::Known(known) => {
                    let believed = known.get(place.namespace, name).map(Key::value);
                    store.expected(place.namespace, name, believed)
                }
            };
            let applied = merge::apply(&mut *document, &edits, base, decisions);
            let mut commit = applied.map_err(|why| store.unapplied(why, &place.path, text))?;
            store.mark(&mut commit.conflicts);
            Ok(Draft::new(place, document, commit))
        })
    }

    /// The short way for new values of keys that this store knows: where the
    /// text is the one that it has read, it knows their lines as well, and
    /// nobody else can have changed them. It costs a look at the text instead
    /// of a document with an index.
    fn in_place(&self, index: usize, text: &str, edits: &[Edit<'_>]) -> Option<Draft> {
        let FileOf { place, seen, .. } = &self.files[index];
        let [edit] = edits else {
            return None;
        };
        let name = &edit.change.name;
        let value = edit.change.value.as_deref()?;
        let key = self.keys.get(place.namespace, name.as_str())?;
        let known = self.index_of(key) == Some(index) && *seen == Some(history::fingerprint(text));
        if !known || key.value() == value {
            return None;
        }
        let line = key.origin().line;
        let text = place
            .format
            .replace(text, line, &edit.inner, value, edit.kind)?;
        let old = key.value().to_owned();
        Some(Draft {
            text,
            changed: vec![Changed {
                name: name.clone(),
                old: Some(old.clone()),
                new: Some(value.to_owned()),
                secret: false,
            }],
            commit: Commit {
                replaced: vec![(name.clone(), Some(old))],
                ..Commit::default()
            },
            document: None,
        })
    }

    /// Replaces a file, while it is locked, by what `make` makes of its text.
    /// Where somebody who does not heed the lock has changed the file
    /// meanwhile, everything is done once more with what it holds now.
    fn rewrite(
        &mut self,
        disk: &dyn Disk,
        index: usize,
        undoes: Option<u64>,
        make: &mut dyn FnMut(&Store, &Place, &str) -> Result<Draft, StoreError>,
    ) -> Result<Commit, StoreError> {
        let mut waited = Duration::ZERO;
        while waited <= self.patience {
            if let Some(commit) = self.rewrite_once(disk, index, undoes, make)? {
                return Ok(commit);
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        Err(StoreError::Locked {
            path: replace::follow(&self.files[index].place.path)?,
            holder: None,
            waited,
        })
    }

    /// As [`rewrite`](Store::rewrite); nothing if the file is to be read again.
    fn rewrite_once(
        &mut self,
        disk: &dyn Disk,
        index: usize,
        undoes: Option<u64>,
        make: &mut dyn FnMut(&Store, &Place, &str) -> Result<Draft, StoreError>,
    ) -> Result<Option<Commit>, StoreError> {
        let place = self.files[index].place.clone();
        let audience = if place.namespace == Namespace::System {
            Audience::Public
        } else {
            Audience::Private
        };
        let (target, _lock) = self.lock(disk, &place.path, audience)?;
        let place = Place {
            path: target,
            ..place
        };
        let old = read::text(&place.path)?;
        let old_text = old.as_ref().map_or("", |content| &content.text);
        let Draft {
            text,
            mut changed,
            mut commit,
            document,
        } = make(self, &place, old_text)?;
        let secrets = &self.before.secrets;
        for change in &mut changed {
            change.secret = secrets.contains(change.name.as_str());
        }
        let private = changed
            .iter()
            .any(|change| change.secret && change.new.is_some());
        let seen = history::fingerprint(&text);
        let mut settled = Ok(());
        if text != old_text {
            let metadata = old.as_ref().map(|content| &content.metadata);
            let rights = if private { Audience::Owner } else { audience };
            let prepared =
                replace::Prepared::new(disk, &place.path, text.as_bytes(), metadata, rights)?;
            let Some(prepared) = prepared else {
                return Ok(None);
            };
            if !prepared.is_current(old.as_ref())? {
                return Ok(None);
            }
            let author = self.author.as_ref().filter(|_| HISTORY);
            if let Some((author, clock)) = author {
                let mut record = Record {
                    id: 0,
                    time: clock(),
                    author: author.clone(),
                    undoes,
                    changes: changed.iter().map(Changed::noted).collect(),
                    before: history::fingerprint(old_text),
                    after: seen,
                };
                let mode = metadata.map_or(audience.file_mode(), |metadata| {
                    metadata.permissions().mode() & 0o777
                });
                let logged = history::append(disk, &place.path, &mut record, mode);
                commit.unlogged = logged.err().map(|error| error.to_string());
            }
            settled = prepared.put();
            match settled {
                Ok(()) | Err(StoreError::Unsettled { .. }) => {}
                Err(error) => return Err(error),
            }
            self.files[index].exists = true;
        } else if old.is_some() {
            settled = replace::settle(disk, &place.path);
        }
        self.files[index].seen = Some(seen);
        match document {
            Some(document) => self.refresh(index, &*document),
            None => self.refresh_values(place.namespace, &changed),
        }
        settled.map(|()| Some(commit))
    }

    /// Replaces the text of a file by one that a person has made of it.
    ///
    /// Where nobody else has changed the file since, it becomes the new text,
    /// comments and all. Elsewhere the keys that differ between `before` and
    /// `after` are committed, as by [`commit`](Store::commit), to what the
    /// others made of it; the result says so.
    ///
    /// # Errors
    /// As [`commit`](Store::commit), and where `after` cannot be understood.
    pub fn edit(
        &mut self,
        path: &Path,
        before: &str,
        after: &str,
        resolve: impl Resolve,
    ) -> Result<Edited, StoreError> {
        let index = self.files.iter().position(|file| file.place.path == path);
        let Some(index) = index else {
            let cause = io::Error::new(io::ErrorKind::NotFound, "it is not a file of this store");
            return Err(StoreError::io("edit the file", path, cause));
        };
        let edited = self.edit_file(index, before, after, resolve);
        edited.map_err(|error| self.redact(error))
    }

    fn edit_file(
        &mut self,
        index: usize,
        before: &str,
        after: &str,
        resolve: impl Resolve,
    ) -> Result<Edited, StoreError> {
        let place = self.files[index].place.clone();
        let changes = differences(&place, before, after)?;
        if let Some(schema) = &self.schema {
            schema.check_all(&changes.iter().collect::<Vec<_>>())?;
        }
        let mut as_written = false;
        let whole = self.rewrite(&SystemDisk, index, None, &mut |_, place, text| {
            as_written = text == before;
            let document = read::document(place, if as_written { after } else { text })?;
            let old = read::document(place, text)?;
            let replaced = |change: &Change| {
                let inner = change.name.below(&place.mount).unwrap_or_else(Name::root);
                let value = old.get(inner.as_str()).map(String::from);
                (change.name.clone(), value)
            };
            let mut commit = Commit::default();
            if as_written {
                commit.replaced = changes.iter().map(replaced).collect();
            }
            Ok(Draft::new(place, document, commit))
        })?;
        let commit = match as_written {
            true => whole,
            false => self.commit(place.namespace, &changes, resolve)?,
        };
        Ok(Edited { commit, as_written })
    }

    /// Why changes could not be applied, with who is to blame for conflicts.
    fn unapplied(&self, why: Unapplied, path: &Path, text: &str) -> StoreError {
        let path = path.to_owned();
        match why {
            Unapplied::Unwritable(name, cause) => StoreError::Unwritable { path, name, cause },
            Unapplied::Conflicts(mut conflicts) => {
                // That it cannot be read takes nothing from the conflicts.
                let history = HISTORY.then(|| history::read(&path, text).unwrap_or_default());
                let history = history.unwrap_or_default();
                for conflict in &mut conflicts {
                    conflict.by =
                        history::author_of(&history, &conflict.name, conflict.theirs.as_deref());
                }
                self.mark(&mut conflicts);
                StoreError::Conflict { path, conflicts }
            }
        }
    }

    /// Marks the conflicts of secrets.
    fn mark(&self, conflicts: &mut [Conflict]) {
        for conflict in conflicts {
            conflict.secret = self.before.secrets.contains(conflict.name.as_str());
        }
    }

    /// The changes as they concern one file, in their order, but of an array the
    /// last element goes first: the others would have to be numbered anew.
    fn edits<'a>(&self, place: &Place, changes: &[&'a Change]) -> Vec<Edit<'a>> {
        let moves = self.moves(place, changes);
        let edit = |change: &&'a Change| Edit {
            change,
            // Where it stands decided that it goes into this file.
            inner: change.name.below(&place.mount).unwrap_or_else(Name::root),
            from: moves
                .iter()
                .find(|(name, _)| *name == &change.name)
                .map(|(_, from)| from.clone()),
            kind: self.kind_of(&change.name),
        };
        let is_removal = |change: &&'a Change| change.value.is_none();
        let mut removals: Vec<&Change> = changes.iter().copied().filter(is_removal).collect();
        sort::by(&mut removals, |a, b| {
            compare(b.name.as_str(), a.name.as_str())
        });
        let mut removals = removals.into_iter();
        let next = |change: &&'a Change| match is_removal(change) {
            true => removals.next().map(|removal| edit(&removal)),
            false => Some(edit(change)),
        };
        changes.iter().filter_map(next).collect()
    }

    /// Of keys that have their values from others, which go with these changes:
    /// the names of those in the file. The first of a name counts.
    fn moves(&self, place: &Place, changes: &[&Change]) -> Vec<(&Name, Name)> {
        let mut moves = Vec::new();
        if cfg!(not(feature = "checks")) || self.notices().is_empty() {
            return moves;
        }
        let removed = changes.iter().filter(|change| change.value.is_none());
        let removed: HashMap<&str, &Name> = removed
            .map(|change| (change.name.as_str(), &change.name))
            .collect();
        for Notice { key, fate, .. } in self.notices() {
            let (Some(old), Fate::Renamed(targets)) = (removed.get(key.name()), fate) else {
                continue;
            };
            for target in targets {
                if let Some(inner) = old.below(&place.mount) {
                    moves.push((&target.name, inner));
                }
            }
        }
        moves
    }

    /// How the specification wants a value to be written.
    pub fn kind_of(&self, name: &Name) -> Kind {
        let spec = self
            .schema
            .as_ref()
            .and_then(|schema| schema.type_of(name.as_str()));
        match spec {
            None => Kind::Unknown,
            Some(Type::Boolean) => Kind::Boolean,
            Some(Type::String | Type::Enum) => Kind::Text,
            Some(_) => Kind::Number,
        }
    }

    /// Locks the file that the path leads to.
    fn lock(
        &self,
        disk: &dyn Disk,
        path: &Path,
        audience: Audience,
    ) -> Result<(PathBuf, Lock), StoreError> {
        loop {
            let target = replace::follow(path)?;
            // Where a symbolic link leads to a folder that is missing, something
            // is not mounted, and a folder made here would only hide that.
            if target == path {
                replace::make_folders(disk, replace::folder(&target), audience)?;
            }
            let lock = Lock::take(disk, &target, audience.file_mode(), self.patience)?;
            // The link may have been turned to another file meanwhile.
            if replace::follow(path)? == target {
                return Ok((target, lock));
            }
        }
    }
}

/// What became of an edited text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The keys that have changed.
    pub commit: Commit,
    /// Whether the file has the text as it was written, comments and all. It
    /// has not where others changed the file meanwhile: then its keys are
    /// merged.
    pub as_written: bool,
}

/// The changes that make the keys of one text those of another.
pub(crate) fn differences(
    place: &Place,
    before: &str,
    after: &str,
) -> Result<Vec<Change>, StoreError> {
    let keys = |text| -> Result<BTreeMap<Name, String>, StoreError> {
        let document = read::document(place, text)?;
        let keys = document.keys();
        let whole = |entry: Entry<'_>| (place.mount.mounted(&entry.name), entry.value.into_owned());
        Ok(keys.map(whole).collect())
    };
    let (before, after) = (keys(before)?, keys(after)?);
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let removed = removed.map(|name| Change::remove(name.clone()));
    let set = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value));
    let set = set.map(|(name, value)| Change::set(name.clone(), value.clone()));
    Ok(removed.chain(set).collect())
}

/// Whether commits are noted beside the file.
const HISTORY: bool = cfg!(feature = "history");

/// What the keys were when the changes were made.
#[derive(Clone, Copy)]
pub(crate) enum Base<'a> {
    /// As the store has them.
    Store,
    Known(&'a KeySet),
    /// As the commit left them that is taken back.
    Undone(&'a Record),
}

/// A file as it is to be.
struct Draft {
    text: String,
    /// Its keys, where they are known.
    document: Option<Box<dyn Document>>,
    /// What differs from the file as it is, for the history.
    changed: Vec<Changed>,
    commit: Commit,
}

impl Draft {
    fn new(place: &Place, document: Box<dyn Document>, commit: Commit) -> Draft {
        let changed = |(name, old): &(Name, Option<String>)| Changed {
            name: name.clone(),
            old: old.clone(),
            new: name
                .below(&place.mount)
                .and_then(|inner| document.get(inner.as_str()).map(String::from)),
            secret: false,
        };
        Draft {
            text: document.text(),
            changed: commit.replaced.iter().map(changed).collect(),
            document: Some(document),
            commit,
        }
    }
}
