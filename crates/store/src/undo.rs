//! Looking back: the last commits, and taking them back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::{Namespace, sort};

use crate::commit::Base;
use crate::disk::SystemDisk;
use crate::error::StoreError;
use crate::history::{self, Changed, Record};
use crate::ini;
use crate::merge::{Change, Commit, Resolve};
use crate::read;
use crate::replace;
use crate::store::Store;

/// A record and the file whose history it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The file.
    pub path: PathBuf,
    /// Its namespace.
    pub namespace: Namespace,
    /// What was committed.
    pub record: Record,
    /// The record that has taken it back since.
    pub undone_by: Option<u64>,
}

impl Store {
    /// The commits that the histories of all files still know, the last one last.
    ///
    /// # Errors
    /// Where a file or its history cannot be read.
    pub fn log(&self) -> Result<Vec<Logged>, StoreError> {
        self.logged().map_err(|error| self.redact(error))
    }

    fn logged(&self) -> Result<Vec<Logged>, StoreError> {
        let mut log = Vec::new();
        for file in &self.files {
            let path = replace::follow(&file.place.path)?;
            let text = read::text(&path)?.map_or_else(String::new, |content| content.text);
            let mut records = history::read(&path, &text)?;
            for change in records.iter_mut().flat_map(|record| &mut record.changes) {
                change.secret |= self.before.secrets.contains(change.name.as_str());
            }
            let undone = undone(&records);
            // A clock may go back; within a file the numbers count.
            let mut latest = SystemTime::UNIX_EPOCH;
            log.extend(records.iter().map(|record| {
                latest = latest.max(record.time);
                let logged = Logged {
                    path: file.place.path.clone(),
                    namespace: file.place.namespace,
                    undone_by: undone.get(&record.id).copied(),
                    record: record.clone(),
                };
                (latest, logged)
            }));
        }
        sort::by(&mut log, |a, b| a.0.cmp(&b.0));
        Ok(log.into_iter().map(|(_, logged)| logged).collect())
    }

    /// Takes back a commit, or the last one that is neither taken back nor
    /// takes one back: every key gets the value that it had before. A key that
    /// has changed since is a conflict, which `resolve` decides.
    ///
    /// # Errors
    /// Where there is no such commit, where a secret's value is not known, and
    /// those of [`commit`](Store::commit).
    pub fn undo(
        &mut self,
        namespace: Namespace,
        id: Option<u64>,
        resolve: impl Resolve,
    ) -> Result<(Logged, Commit), StoreError> {
        let logged = self.undoable(namespace, id)?;
        let commit = self.undo_logged(&logged, resolve)?;
        Ok((logged, commit))
    }

    /// The commit that [`undo`](Store::undo) would take back.
    ///
    /// # Errors
    /// Where there is no such commit.
    pub fn undoable(&self, namespace: Namespace, id: Option<u64>) -> Result<Logged, StoreError> {
        let mut of_namespace = self.log()?.into_iter().filter(|l| l.namespace == namespace);
        let found = match id {
            Some(id) => of_namespace.find(|logged| logged.record.id == id),
            None => of_namespace
                .rfind(|logged| logged.undone_by.is_none() && logged.record.undoes.is_none()),
        };
        found.ok_or_else(|| {
            let path = self.files.iter().find(|f| f.place.namespace == namespace);
            let path = path.map_or(Path::new(""), |file| &file.place.path);
            nothing_to_undo(path, id)
        })
    }

    /// As [`undo`](Store::undo), of a commit that [`log`](Store::log) has
    /// listed: numbers alone are those of one file.
    ///
    /// # Errors
    /// As [`undo`](Store::undo); also where the commit has left the history, and
    /// where its file is not one of this store.
    pub fn undo_logged(
        &mut self,
        logged: &Logged,
        mut resolve: impl Resolve,
    ) -> Result<Commit, StoreError> {
        let Logged { path, record, .. } = logged;
        let mut log = self.log()?.into_iter();
        let Some(logged) = log.find(|now| now.path == *path && now.record == *record) else {
            return Err(nothing_to_undo(path, Some(record.id)));
        };
        if let Some(by) = logged.undone_by {
            let message = format!("change {} is taken back by {by} already", record.id);
            return Err(wrong(path, Diagnostic::error(message)));
        }
        let is_unknown = |change: &&Changed| change.secret && change.noted() == **change;
        if let Some(secret) = logged.record.changes.iter().find(is_unknown) {
            let name = ini::encode_name(secret.name.as_str());
            let message = format!("`{name}` is secret, so nobody noted what it was");
            return Err(wrong(path, Diagnostic::error(message).help("set it anew")));
        }
        let back = |change: &Changed| Change {
            name: change.name.clone(),
            value: change.old.clone(),
        };
        let changes: Vec<Change> = logged.record.changes.iter().map(back).collect();
        let base = Base::Undone(&logged.record);
        self.commit_as(&SystemDisk, logged.namespace, &changes, base, &mut resolve)
    }
}

/// There is no such commit.
fn nothing_to_undo(path: &Path, id: Option<u64>) -> StoreError {
    let what = id.map_or_else(|| "no change".to_owned(), |id| format!("no change {id}"));
    let diagnostic = Diagnostic::error(format!("there is {what} to take back"));
    let diagnostic = diagnostic.help("`milieu key log` lists those that can be");
    wrong(path, diagnostic)
}

fn wrong(path: &Path, diagnostic: Diagnostic) -> StoreError {
    StoreError::Text {
        source: Source::new(path.display().to_string(), ""),
        diagnostics: vec![diagnostic],
    }
}

/// The records that others have taken back and that are not in force again.
fn undone(records: &[Record]) -> HashMap<u64, u64> {
    let mut undone = HashMap::new();
    for record in records.iter().rev() {
        if let (Some(id), false) = (record.undoes, undone.contains_key(&record.id)) {
            undone.insert(id, record.id);
        }
    }
    undone
}
