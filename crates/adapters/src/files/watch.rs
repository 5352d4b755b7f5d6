//! Watching a folder by inotify, also while it does not exist.
//!
//! What is watched is the folder, or else the nearest one on the way to it that
//! exists, whose changes may bring the next.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// So many readings, of some hundred changes each, before others have their
/// turn.
const READS_MAX: usize = 16;

/// A folder that is watched, or waited for.
#[derive(Debug)]
pub(super) struct Watch {
    folder: PathBuf,
    inotify: Option<OwnedFd>,
    watched: Option<i32>,
    is_there: bool,
}

/// What has happened since the last time.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Entries of the folder, and what happened to each.
    pub(super) entries: Vec<(OsString, ReadFlags)>,
    /// The folder came, went, or more happened than the kernel remembers:
    /// anything may be different.
    pub(super) is_all_new: bool,
}

impl Watch {
    /// Watches a folder; a relative one, from here.
    pub(super) fn new(folder: PathBuf) -> Watch {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Watch {
            folder: std::path::absolute(&folder).unwrap_or(folder),
            inotify: inotify::init(flags).ok(),
            watched: None,
            is_there: false,
        }
    }

    /// As where the kernel has no room for another watch.
    #[cfg(test)]
    pub(super) fn blind() -> Watch {
        Watch {
            folder: PathBuf::new(),
            inotify: None,
            watched: None,
            is_there: false,
        }
    }

    /// Whether the kernel tells of changes.
    pub(super) fn is_told(&self) -> bool {
        self.watched.is_some()
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// What has happened. Without inotify, that is not known.
    pub(super) fn read(&mut self) -> News {
        let mut news = News::default();
        if let Some(inotify) = &self.inotify {
            read(inotify, &mut news);
        }
        // Whatever happened further up may have brought the folder.
        if !self.is_there || news.is_all_new {
            let was_there = self.is_there;
            self.renew();
            news.is_all_new |= self.is_there || was_there;
            news.entries.clear();
        }
        news
    }

    /// Watches what is now the nearest to the folder.
    fn renew(&mut self) {
        let Some(inotify) = &self.inotify else {
            return;
        };
        loop {
            let before = self.watched;
            let mut found = None;
            for folder in self.folder.ancestors() {
                match inotify::add_watch(inotify, folder, flags()) {
                    Ok(watched) => {
                        found = Some((folder, watched));
                        break;
                    }
                    Err(Errno::NOENT | Errno::NOTDIR) => {}
                    // Without right, or without room for another watch.
                    Err(_) => break,
                }
            }
            self.watched = found.map(|(_, watched)| watched);
            self.is_there = found.is_some_and(|(folder, _)| folder == self.folder);
            if let Some(before) = before.filter(|before| Some(*before) != self.watched) {
                // It may be gone already, with what it watched.
                let _ = inotify::remove_watch(inotify, before);
            }
            // The next folder may have come before this one was watched.
            let next = found.and_then(|(folder, _)| next(folder, &self.folder));
            if !next.is_some_and(|next| next.is_dir()) {
                return;
            }
        }
    }
}

fn flags() -> WatchFlags {
    WatchFlags::ONLYDIR
        | WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
}

/// The folder below `folder` on the way to `goal`.
fn next(folder: &Path, goal: &Path) -> Option<PathBuf> {
    let first = goal.strip_prefix(folder).ok()?.components().next()?;
    Some(folder.join(first))
}

fn read(inotify: &OwnedFd, news: &mut News) {
    let lost = ReadFlags::QUEUE_OVERFLOW
        | ReadFlags::DELETE_SELF
        | ReadFlags::MOVE_SELF
        | ReadFlags::UNMOUNT
        | ReadFlags::IGNORED;
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    let mut reads = 0;
    loop {
        if reader.is_buffer_empty() {
            reads += 1;
            if reads > READS_MAX {
                return;
            }
        }
        match reader.next() {
            Ok(event) => {
                news.is_all_new |= event.events().intersects(lost);
                if let Some(name) = event.file_name().map(CStr::to_bytes) {
                    let name = OsStr::from_bytes(name).to_owned();
                    news.entries.push((name, event.events()));
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Why a file cannot be had, and what to do about it.
pub(super) fn reason(what: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no such {what}; it is seen when it comes"),
        io::ErrorKind::PermissionDenied => {
            format!("this user may not read it ({error}); give the user the right to")
        }
        _ => format!("it cannot be read: {error}"),
    }
}
