//! A tamper input that is a file.
//!
//! Ordinary files announce changes by `inotify` on their folder, since the
//! file may not exist yet or be replaced by another of its name; the kernel's
//! GPIO value files announce them by `POLLPRI` on the file. Both are watched,
//! so that a profile can name either.

use super::{Failure, Source, State};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, inotify};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The longest content that is looked at.
const LENGTH_MAX: usize = 64;

/// A file that holds `1` or `0`.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    announcements: OwnedFd,
    /// Whether the folder is being watched, as far as we know.
    watched: bool,
    opened: Option<OwnedFd>,
}

impl File {
    pub(super) fn new(path: &Path) -> std::io::Result<File> {
        let announcements =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        Ok(File {
            path: path.to_owned(),
            announcements,
            watched: false,
            opened: None,
        })
    }

    /// Takes what was announced. The announcements say only that something
    /// happened in the folder; what, the file itself says better.
    fn drain(&mut self) {
        let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 1024];
        let mut reader = inotify::Reader::new(&self.announcements, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(inotify::ReadFlags::IGNORED) {
                // The folder is gone; another may take its place.
                self.watched = false;
            }
        }
    }

    fn watch(&mut self) {
        use inotify::WatchFlags as On;
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let on = On::CLOSE_WRITE
            | On::MODIFY
            | On::CREATE
            | On::DELETE
            | On::MOVED_TO
            | On::MOVED_FROM
            | On::ONLYDIR;
        if !self.watched {
            // Without a folder there is nothing to watch; the next read tries again.
            self.watched = inotify::add_watch(&self.announcements, folder, on).is_ok();
        }
    }

    fn failed(&self, reason: impl Into<String>) -> Option<State> {
        Some(State::Failed(Failure {
            place: self.path.display().to_string(),
            reason: reason.into(),
        }))
    }
}

impl Source for File {
    fn read(&mut self) -> Option<State> {
        self.drain();
        // Watch before reading, so that no change falls between the two.
        self.watch();
        // Not blocking: somebody may have put a pipe in the file's place.
        let opened = rustix::fs::open(
            &self.path,
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        );
        let mut content = [0; LENGTH_MAX];
        let read = opened.and_then(|file| {
            let length = rustix::io::read(&file, &mut content)?;
            self.opened = Some(file);
            Ok(length)
        });
        let length = match read {
            Ok(length) => length,
            Err(error) => {
                self.opened = None;
                return match error {
                    Errno::NOENT | Errno::NOTDIR => {
                        self.failed("there is no such file; create it with the content `0`")
                    }
                    error => self.failed(format!(
                        "it cannot be read: {error}; make it a file that this user may read"
                    )),
                };
            }
        };
        match content[..length].trim_ascii() {
            b"1" => Some(State::Tampered),
            b"0" => Some(State::Quiet),
            // Writers empty a file first and fill it then.
            b"" => None,
            other => {
                let other: String = String::from_utf8_lossy(other).chars().take(20).collect();
                self.failed(format!(
                    "`{other}` is neither `1` nor `0`; write one of them"
                ))
            }
        }
    }

    fn poll_on(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let mut on = vec![(self.announcements.as_fd(), PollFlags::IN)];
        on.extend(
            self.opened
                .as_ref()
                .map(|file| (file.as_fd(), PollFlags::PRI)),
        );
        on
    }
}
