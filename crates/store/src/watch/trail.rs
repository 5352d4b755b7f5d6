//! The way that a path takes through folders and symbolic links, watched on each step.
//!
//! ```text
//!  /etc/app/app.ini       app.ini ─▶ ..data/app.ini      ..data ─▶ ..2026_07
//!
//!  /etc                   itself: moved, removed, its permissions
//!  /etc/app               itself
//!  /etc/app/app.ini       itself: the link
//!  /etc/app/..data        itself: the link
//!  /etc/app/..2026_07     itself, and the entry `app.ini`: made, moved here, written
//!  …/..2026_07/app.ini    itself, and its content
//! ```
//!
//! A folder that holds what comes next on the way cannot be removed, only moved,
//! and the kernel tells those who watch the folder itself. So entries of a
//! folder matter only at the end of a way; what goes on beside the way in the
//! folders along it (`/tmp`, a home) wakes nobody.
//!
//! | at the end of the way       | watched besides                                  |
//! |-----------------------------|--------------------------------------------------|
//! | a file                      | the entry: whoever makes it anew is still writing |
//! | nothing                     | the entry that is missing, and the folder's own entry in the one above: an empty folder can be removed |
//! | what may not be read        | the entry: its permissions, its removal          |
//!
//! A way is walked until two walks in a row find the same. All that the second
//! one looks at is watched since the first, so whatever changes after the look
//! is told.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use rustix::fs::inotify::WatchFlags;
use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

/// The kernel's number of a watched inode.
pub(super) type Wd = i32;

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;

/// What happens to a file, folder or link itself. Permissions are told as
/// attributes, and so is the removal of a name of a file.
const ITSELF: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::DELETE_SELF);
const CONTENT: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);
/// An entry that is made: with a name that was not there, or anew.
const MADE: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE);
/// The entry of an empty folder, which can be removed while somebody is in it,
/// and then does not tell that itself.
const REMOVED: WatchFlags = WatchFlags::DELETE;
/// The entry of what may not be watched itself.
const HIDDEN: WatchFlags = MADE
    .union(REMOVED)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::ATTRIB);

/// Something that is watched for the sake of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub wd: Wd,
    /// Where it was when it was watched.
    pub at: PathBuf,
    /// What of it concerns the path.
    pub mask: WatchFlags,
    /// The entry of this folder that concerns the path.
    pub entry: Option<OsString>,
}

/// A way that was walked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Trail {
    pub steps: Vec<Step>,
    /// What exists and is nearest to the end: the file, if there is one.
    pub end: PathBuf,
    /// Whether there is something at the end.
    pub found: bool,
    /// Why the kernel does not tell everything that concerns the path.
    pub blind: Option<Errno>,
}

/// What stands at a step.
enum Seen {
    Nothing,
    Hidden,
    File,
    Folder,
    Link(PathBuf),
}

/// Watches an inode for more than it is watched already, without following a link.
pub(super) trait Arm {
    fn arm(&mut self, path: &Path, mask: WatchFlags) -> Result<Wd, Errno>;
}

/// Walks an absolute path to its end, or as far as it goes.
pub(super) fn walk(path: &Path, arm: &mut dyn Arm) -> Trail {
    let mut walk = Walk {
        arm,
        at: PathBuf::from("/"),
        rest: Vec::new(),
        links: 0,
        trail: Trail::default(),
    };
    walk.push(path);
    walk.run();
    walk.trail
}

struct Walk<'a> {
    arm: &'a mut dyn Arm,
    /// The folder that was reached. No part of it is a link.
    at: PathBuf,
    /// What is still to come, the next one last.
    rest: Vec<OsString>,
    links: usize,
    trail: Trail,
}

impl Walk<'_> {
    fn run(&mut self) {
        self.trail.found = true;
        while let Some(name) = self.rest.pop() {
            if name == ".." {
                self.at.pop();
                continue;
            }
            let full = self.at.join(&name);
            match self.look(&full, &name) {
                Seen::Folder => self.at = full,
                Seen::Link(target) if self.links < LINKS_MAX => {
                    self.links += 1;
                    if target.is_absolute() {
                        self.at = PathBuf::from("/");
                    }
                    self.push(&target);
                }
                Seen::File => {
                    match self.step(&full, CONTENT, None) {
                        // What cannot be read need not be watched being written.
                        Ok(()) | Err(Errno::ACCESS) => {}
                        Err(error) => self.blind(error),
                    }
                    self.entry(&name, MADE);
                    self.trail.found = self.rest.is_empty();
                    self.at = full;
                    break;
                }
                nothing => {
                    if matches!(nothing, Seen::Nothing) {
                        self.expect(&name);
                    }
                    self.trail.found = false;
                    break;
                }
            }
        }
        self.trail.end.clone_from(&self.at);
    }

    /// The parts of this path come next.
    fn push(&mut self, path: &Path) {
        let parts = path
            .components()
            .rev()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
            });
        self.rest.extend(parts);
    }

    /// Watches what stands at `full`, then looks what it is.
    fn look(&mut self, full: &Path, name: &OsStr) -> Seen {
        match self.step(full, WatchFlags::empty(), None) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => return Seen::Nothing,
            Err(Errno::ACCESS) => self.entry(name, HIDDEN),
            Err(error) => self.blind(error),
        }
        let kind = rustix::fs::statat(CWD, full, AtFlags::SYMLINK_NOFOLLOW)
            .map(|status| FileType::from_raw_mode(status.st_mode));
        match kind {
            Ok(FileType::Directory) => Seen::Folder,
            Ok(FileType::Symlink) => match std::fs::read_link(full) {
                Ok(target) => Seen::Link(target),
                // It was replaced this moment, which its watch tells.
                Err(_) => Seen::Nothing,
            },
            Ok(_) => Seen::File,
            Err(Errno::NOENT | Errno::NOTDIR) => Seen::Nothing,
            Err(Errno::ACCESS) => Seen::Hidden,
            Err(error) => {
                self.blind(error);
                Seen::Hidden
            }
        }
    }

    /// Waits in the folder that was reached for an entry that is missing.
    fn expect(&mut self, name: &OsStr) {
        let at = self.at.clone();
        if let (Some(parent), Some(own)) = (at.parent(), at.file_name()) {
            if let Err(error) = self.step(parent, REMOVED, Some(own)) {
                self.blind(error);
            }
        }
        self.entry(name, MADE);
    }

    /// Watches an entry of the folder that was reached.
    fn entry(&mut self, name: &OsStr, mask: WatchFlags) {
        let at = self.at.clone();
        if let Err(error) = self.step(&at, mask, Some(name)) {
            self.blind(error);
        }
    }

    fn step(&mut self, at: &Path, mask: WatchFlags, entry: Option<&OsStr>) -> Result<(), Errno> {
        let mask = mask | ITSELF;
        let wd = self.arm.arm(at, mask)?;
        self.trail.steps.push(Step {
            wd,
            at: at.to_owned(),
            mask,
            entry: entry.map(OsStr::to_owned),
        });
        Ok(())
    }

    fn blind(&mut self, error: Errno) {
        // What has vanished between two looks is found missing by the next walk.
        if !matches!(error, Errno::NOENT | Errno::NOTDIR) {
            self.trail.blind.get_or_insert(error);
        }
    }
}
