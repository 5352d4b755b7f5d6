//! What changes in a folder.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use milieu_stream::{Feed, Source, Wait};
use milieu_transfer::{Span, Time};
use rustix::fs::inotify::ReadFlags;
use serde::{Deserialize, Serialize};

use super::watch::{Watch, reason};
use crate::failure::Failure;

/// Folders with more entries are not followed.
const ENTRIES_MAX: usize = 10_000;

/// How often a folder is looked at of which the kernel tells.
const LOOK: Duration = Duration::from_secs(60);

/// How often a folder is looked at of which it does not.
const LOOK_UNTOLD: Duration = Duration::from_secs(1);

/// Something in a folder is new, different or gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderChange {
    /// Its name in the folder; what is no UTF-8 in it is replaced.
    pub name: String,
    /// What happened to it.
    pub change: Change,
    /// Whether it is itself a folder.
    pub is_folder: bool,
    /// How long it is, or was.
    pub length_bytes: u64,
}

/// What happened to something in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new; somebody may still be writing it.
    Created,
    /// It was replaced, or somebody has finished writing it.
    Changed,
    /// It is gone.
    Removed,
}

/// A source of what changes in a folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    pub(super) watch: Watch,
    known: HashMap<OsString, Stamp>,
    /// Whether what is there at first is told as new.
    tells_first: bool,
    has_looked: bool,
    due: Option<Time>,
}

/// By what a change is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    length_bytes: u64,
    is_folder: bool,
}

/// What changes in a folder from now on, as one [`FolderChange`] each. What
/// changes in the folders in it is not told.
#[must_use]
pub fn folder(path: impl Into<PathBuf>) -> Folder {
    let path = path.into();
    Folder {
        watch: Watch::new(path.clone()),
        path,
        known: HashMap::new(),
        tells_first: false,
        has_looked: false,
        due: None,
    }
}

impl Folder {
    /// Tells of what is there already, as if it were new.
    #[must_use]
    pub fn with_existing(mut self) -> Folder {
        self.tells_first = true;
        self
    }

    fn interval(&self) -> Span {
        let told = self.watch.is_told();
        Span::from(if told { LOOK } else { LOOK_UNTOLD })
    }

    /// Compares all that is there with what was.
    fn look(&mut self, feed: &mut Feed<'_>) {
        let found = match self.list() {
            Ok(found) => {
                feed.working();
                found
            }
            Err(error) => {
                let why = reason("folder", &error);
                feed.failing(Failure::new(self.path.display(), why));
                if error.kind() != io::ErrorKind::NotFound {
                    return;
                }
                HashMap::new()
            }
        };
        if self.has_looked || self.tells_first {
            let gone = self
                .known
                .iter()
                .filter(|(name, _)| !found.contains_key(*name));
            for (name, stamp) in gone {
                tell(feed, name, Change::Removed, stamp);
            }
            for (name, stamp) in &found {
                match self.known.get(name) {
                    None => tell(feed, name, Change::Created, stamp),
                    Some(before) if before != stamp => tell(feed, name, Change::Changed, stamp),
                    Some(_) => {}
                }
            }
        }
        self.has_looked = true;
        self.known = found;
    }

    fn list(&self) -> io::Result<HashMap<OsString, Stamp>> {
        let mut found = HashMap::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // What is gone by now is not there.
            if let Ok(metadata) = entry.metadata() {
                found.insert(entry.file_name(), Stamp::of(&metadata));
            }
            if found.len() > ENTRIES_MAX {
                return Err(io::Error::other(format!(
                    "it has more than {ENTRIES_MAX} entries, too many to be followed; \
                     move some of them elsewhere"
                )));
            }
        }
        Ok(found)
    }

    /// Compares one entry with what it was.
    fn check(&mut self, name: &OsStr, feed: &mut Feed<'_>) {
        let stamp = match fs::symlink_metadata(self.path.join(name)) {
            Ok(metadata) => Some(Stamp::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // It is there, and nothing is known of it.
            Err(_) => return,
        };
        let before = match stamp {
            Some(stamp) => self.known.insert(name.to_owned(), stamp),
            None => self.known.remove(name),
        };
        match (before, stamp) {
            (None, Some(stamp)) => tell(feed, name, Change::Created, &stamp),
            (Some(before), Some(stamp)) if before != stamp => {
                tell(feed, name, Change::Changed, &stamp);
            }
            (Some(before), None) => tell(feed, name, Change::Removed, &before),
            _ => {}
        }
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        let is_folder = metadata.is_dir();
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            // A folder in the folder changes with what is in it.
            modified: match is_folder {
                true => (0, 0),
                false => (metadata.mtime(), metadata.mtime_nsec()),
            },
            length_bytes: if is_folder { 0 } else { metadata.size() },
            is_folder,
        }
    }
}

fn tell(feed: &mut Feed<'_>, name: &OsStr, change: Change, stamp: &Stamp) {
    let change = FolderChange {
        name: name.to_string_lossy().into_owned(),
        change,
        is_folder: stamp.is_folder,
        length_bytes: stamp.length_bytes,
    };
    feed.publish(feed.now(), change);
}

impl Source for Folder {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let now = feed.now();
        let news = self.watch.read();
        let waits = |due: Time| now < due && due - now <= self.interval();
        if news.is_all_new || !self.due.is_some_and(waits) {
            self.look(feed);
            self.due = Some(now + self.interval());
        } else {
            // While somebody writes, it is not told: the end of it will be.
            let is_done = |what: &ReadFlags| *what != ReadFlags::MODIFY;
            for (name, _) in news.entries.iter().filter(|(_, what)| is_done(what)) {
                self.check(name, feed);
            }
            if self.known.len() > ENTRIES_MAX {
                self.look(feed);
            }
        }
        Wait::Until(self.due.unwrap_or(now))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.descriptor()
    }
}
