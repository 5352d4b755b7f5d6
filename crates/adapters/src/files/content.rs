//! What is in a file.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use milieu_stream::{Feed, Source, Wait};
use milieu_transfer::{Span, Time};
use rustix::fs::OFlags;
use rustix::fs::inotify::ReadFlags;

use super::watch::{News, Watch, reason};
use crate::failure::Failure;
use crate::format::Format;

/// No longer file is read.
const LENGTH_MAX: u64 = 1 << 20;

/// A writer that keeps its file open is given so long to finish.
const SETTLING: Span = Span::from_nanoseconds(100_000_000);

/// One that never is quiet is read after so long all the same.
const SETTLING_MAX: Span = Span::from_seconds(1);

/// How often a file is looked at of which the kernel tells.
const LOOK: Duration = Duration::from_secs(30);

/// How often a file is looked at of which it does not.
const LOOK_UNTOLD: Duration = Duration::from_secs(1);

/// A source of what is in a file.
#[derive(Debug)]
pub struct Content {
    path: PathBuf,
    pub(super) watch: Watch,
    format: Format,
    look: Option<Duration>,
    last: Option<Vec<u8>>,
    /// Since when somebody writes, and when that is expected to have finished.
    settling: Option<(Time, Time)>,
    due: Option<Time>,
}

/// What is in a file, now and whenever it has changed: as a
/// [`Text`](crate::Text) without blanks and line ends around it.
#[must_use]
pub fn content(path: impl Into<PathBuf>) -> Content {
    let path = path.into();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Content {
        watch: Watch::new(folder.to_owned()),
        path,
        format: Format::text(),
        look: None,
        last: None,
        settling: None,
        due: None,
    }
}

impl Content {
    /// What the content becomes.
    #[must_use]
    pub fn format(mut self, format: Format) -> Content {
        self.format = format;
        self
    }

    /// Looks at the file every so often, whether the kernel tells of changes or
    /// not. Files of sysfs need that.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Content {
        self.look = Some(interval.max(Duration::from_millis(1)));
        self
    }

    /// How often to look even so.
    fn interval(&self) -> Span {
        let otherwise = match self.watch.is_told() {
            true => LOOK,
            false => LOOK_UNTOLD,
        };
        self.look.unwrap_or(otherwise).into()
    }

    /// Whether to look now, because of what has happened; notes what is still
    /// happening.
    fn is_told(&mut self, news: &News, now: Time) -> bool {
        let done = ReadFlags::CLOSE_WRITE
            | ReadFlags::MOVED_TO
            | ReadFlags::MOVED_FROM
            | ReadFlags::DELETE;
        let name = self.path.file_name().unwrap_or(OsStr::new("")).to_owned();
        let mut is_told = news.is_all_new;
        // Whoever has just made the folder may still write the file, and the
        // beginning of that was not told. Whether the file is there already
        // must not be asked: it may come before it is read.
        if is_told && self.due.is_some() {
            is_told = false;
            self.settle(now);
        }
        // A link may lead through any entry of its folder.
        let is_link = !news.entries.is_empty() && self.path.is_symlink();
        for (_, what) in news.entries.iter().filter(|(of, _)| is_link || *of == name) {
            if what.intersects(done) {
                is_told = true;
                self.settling = None;
            } else {
                is_told = false;
                self.settle(now);
            }
        }
        is_told
    }

    /// Waits until whoever writes is quiet.
    fn settle(&mut self, now: Time) {
        let since = self.settling.map_or(now, |(since, _)| since);
        let settled = (now + SETTLING).min(since + SETTLING_MAX);
        self.settling = Some((since, settled));
    }

    fn look(&mut self, feed: &mut Feed<'_>) {
        let place = self.path.display();
        let bytes = match read(&self.path) {
            Ok(bytes) => bytes,
            Err(why) => {
                self.last = None;
                feed.failing(Failure::new(place, why));
                return;
            }
        };
        if self.last.as_ref() == Some(&bytes) {
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        match self.format.publish(feed, text.trim()) {
            Ok(()) => feed.working(),
            Err(why) => feed.failing(Failure::new(place, why)),
        }
        self.last = Some(bytes);
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut options = OpenOptions::new();
    // A pipe without a writer must not keep all sources waiting.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let open = options.read(true).custom_flags(flags).open(path);
    let file = open.map_err(|error| reason("file", &error))?;
    let metadata = file.metadata().map_err(|error| reason("file", &error))?;
    if !metadata.is_file() {
        return Err("that is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = file.take(LENGTH_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| reason("file", &error))?;
    if bytes.len() as u64 > LENGTH_MAX {
        return Err("it is longer than 1 MiB and is not read; name a shorter file".to_owned());
    }
    Ok(bytes)
}

impl Source for Content {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let now = feed.now();
        let news = self.watch.read();
        let is_told = self.is_told(&news, now);
        let waits = |due: Time| now < due && due - now <= self.interval();
        let settled = self.settling.map(|(_, settled)| settled);
        let is_settled = settled.is_some_and(|settled| settled <= now);
        let is_due = settled.is_none() && !self.due.is_some_and(waits);
        if is_told || is_settled || is_due {
            self.settling = None;
            self.look(feed);
            self.due = Some(now + self.interval());
        }
        let settled = self.settling.map(|(_, settled)| settled);
        Wait::Until(settled.or(self.due).unwrap_or(now))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch.descriptor()
    }
}
