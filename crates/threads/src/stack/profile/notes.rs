//! Notes: what a process has learned so far, in a file beside its profile, for the case
//! that it ends without a word: by a signal, by `_exit`, as another program, or after it
//! has given up the right to write its profile.
//!
//! ```text
//! PROFILE.PID.notes   milieu stacks 1
//!                     # notes of a process that began at TICKS; they are added to …
//!                     module 5f0e1c… /usr/bin/memcached
//!                     thread 5f0e1c…+1a2b0 runs=1 threads=4 peak=20480 given=8388608
//! ```
//!
//! A file in memory, which the kernel keeps however the process ends, of lines of one
//! length, which none but this process writes. A line is handed to the kernel as a whole
//! and within a page, so there is no half of one, and a disk that is full is no signal.
//! Nobody waits for anything, and nothing is left open: a program that becomes a daemon
//! closes what it does not know.
//!
//! Who reads the profile next adds the notes of processes that have ended, and removes
//! them. A process is known by its number and by when it began, or, where numbers are of other
//! processes (in another namespace), by the lock that it has on the file.

use core::ffi::{CStr, c_int};
use core::fmt::Write as _;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::file::{are_of, beside, change, lock, modules_of, whole};
use super::line::{HEADER, thread};
use super::{Entry, FileError, Lines};
use crate::stack::key::{BuildId, Key};
use crate::stack::system::{self, Errno, File, Scratch};
use crate::stack::text::Text;

const LINE: usize = 512;
const LINES: usize = 512;
const END: &[u8] = b".notes";
const BEGAN: &str = "# notes of a process that began at ";
/// Stands between the two numbers that say which process that is.
const AMONG: &str = "; among those of ";
/// Longer files are none of these.
const BYTES_MAX: usize = 4 * LINE * LINES;

/// What is noted of a key: which line that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) struct Note(usize);

impl Note {
    /// As a number that is stored elsewhere, never 0.
    pub(in crate::stack) fn number(self) -> u32 {
        self.0 as u32
    }

    pub(in crate::stack) fn of_number(number: u32) -> Option<Self> {
        (number > 0).then_some(Self(number as usize))
    }
}

/// The notes of this process, which any thread writes.
pub struct Notes {
    /// Where the file is in memory, 0 if it is not.
    start: AtomicUsize,
    /// How many lines are somebody's.
    lines: AtomicUsize,
    /// The beginnings of the build ids of modules that have a line.
    modules: [AtomicU32; 64],
}

impl Default for Notes {
    fn default() -> Self {
        Self::new()
    }
}

impl Notes {
    /// With no file.
    pub const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            lines: AtomicUsize::new(0),
            modules: [const { AtomicU32::new(0) }; 64],
        }
    }

    /// Makes the file, beside this profile. Once, until the process has forked.
    ///
    /// # Errors
    /// It cannot be made there, or there is one of this number.
    pub fn open(&self, profile: &CStr) -> Result<(), Errno> {
        let began = system::began(0).ok_or(Errno(libc::ENOENT))?;
        let among = system::processes().unwrap_or(0);
        let path = path_of(profile, system::process());
        let path = path.as_path().ok_or(Errno(libc::ENAMETOOLONG))?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = File::open(path, flags)?;
        // The lock is for those who do not see this process: memory keeps the file, and the
        // file its lock, for as long as the process lives, and children have neither.
        let made = file
            .lock()
            // Not all files can be locked; numbers count then. Somebody who has it just now
            // looks whether this process lives, and thinks that it does not.
            .or_else(|errno| if errno == Errno(libc::EAGAIN) { Err(errno) } else { Ok(()) })
            .and_then(|()| file.extend((LINE * LINES) as u64))
            .and_then(|()| file.share(LINE * LINES))
            .and_then(|start| {
                let mut head = Text::<LINE>::new();
                head.push(HEADER);
                let _ = write!(
                    head,
                    "\n{BEGAN}{began}{AMONG}{among}; they are added to the profile when that is read \
                     next"
                );
                put(start, 0, &head).map(|()| start)
            });
        match made {
            Ok(start) => {
                self.lines.store(1, Ordering::Relaxed);
                self.start.store(start, Ordering::Release);
                Ok(())
            }
            Err(errno) => {
                let _ = system::unlink(path);
                Err(errno)
            }
        }
    }

    /// Whether there is a file.
    pub fn is_open(&self) -> bool {
        self.start.load(Ordering::Acquire) != 0
    }

    /// Removes the file: what it says is in the profile.
    pub fn remove(&self, profile: &CStr) {
        if self.is_open() {
            let path = path_of(profile, system::process());
            if let Some(path) = path.as_path() {
                let _ = system::unlink(path);
            }
        }
    }

    /// In the child of a fork, which has no notes yet; the file is the parent's.
    pub fn forked(&self) {
        self.start.store(0, Ordering::Relaxed);
        for module in &self.modules {
            module.store(0, Ordering::Relaxed);
        }
    }

    /// A line for a key, and lines that say where its modules lie. None if they are full.
    ///
    /// It asks the loader, and so is for who creates a thread, which does that too.
    pub(in crate::stack) fn place(&self, key: Key) -> Option<Note> {
        let start = self.start.load(Ordering::Acquire);
        if start == 0 {
            return None;
        }
        let builds = [Some(key.start), key.argument].map(|it| it.map(|it| it.build));
        if builds.into_iter().flatten().any(|it| self.is_new(it)) {
            self.put_modules(start, key);
        }
        self.free_line()
    }

    fn put_modules(&self, start: usize, key: Key) {
        let Ok(mut memory) = Scratch::new(64 << 10) else {
            return;
        };
        let named = [Entry::new(key)];
        let text = modules_of(&|build| are_of(&named, build), memory.bytes());
        // A path that is too long for a line is left out.
        let lines = text.split(|byte| *byte == b'\n').skip(1);
        for line in lines.filter(|it| !it.is_empty() && it.len() < LINE) {
            let Some(place) = self.free_line() else {
                return;
            };
            let mut text = Text::<LINE>::new();
            text.push(line);
            let _ = put(start, place.0, &text);
        }
    }

    /// Whether a module has no line yet; it is about to have one.
    fn is_new(&self, build: BuildId) -> bool {
        let bytes = build.as_bytes().first_chunk();
        let word = bytes.map_or(1, |it| u32::from_ne_bytes(*it)).max(1);
        let mut known = self.modules.iter();
        // Where there is no room to know it, it has another line.
        !known.any(|it| {
            let taken = it.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                Ok(_) => false,
                Err(other) => other == word,
            }
        })
    }

    fn free_line(&self) -> Option<Note> {
        let next = |it| (it < LINES).then_some(it + 1);
        let (new, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        self.lines.fetch_update(new, failure, next).ok().map(Note)
    }

    /// Writes what is known of a key so far.
    pub(in crate::stack) fn write(&self, place: Note, entry: &Entry) -> bool {
        let start = self.start.load(Ordering::Acquire);
        start != 0 && put(start, place.0, &thread(entry)).is_ok()
    }
}

/// A line, filled up with spaces.
fn put(start: usize, place: usize, text: &Text<LINE>) -> Result<(), Errno> {
    let mut line = [b' '; LINE];
    let pairs = line.iter_mut().zip(text.as_bytes());
    pairs.for_each(|(into, byte)| *into = *byte);
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
    system::poke(start + place * LINE, &line)
}

fn path_of(profile: &CStr, process: c_int) -> Text<1024> {
    let mut path = beside(profile, b"");
    // Texts in place are cut, and are no paths then.
    let _ = write!(path, ".{process}");
    path.push(END);
    path
}

/// Adds to a profile what processes have noted that have ended, and removes the notes. It
/// waits for others who change the profile, so long at most.
///
/// A process that calls this has no notes: those of its number are of who had that before,
/// or its own of before `exec`.
///
/// # Errors
/// Notes are left for who comes next.
pub fn settle(profile: &CStr, patience_milliseconds: u32) -> Result<(), FileError> {
    let mut result = Ok(());
    let found = each_ended(profile, &mut |path| {
        if result.is_ok() {
            result = lock(profile, patience_milliseconds).and_then(|_lock| add(profile, path));
        }
    });
    found.map_err(FileError::Read).and(result)
}

/// Adds the notes of a process that has ended, unless somebody else has done it meanwhile.
fn add(profile: &CStr, path: &CStr) -> Result<(), FileError> {
    let Some(process) = process_of(path.to_bytes()) else {
        return Ok(());
    };
    if !has_ended(path, process) {
        return Ok(());
    }
    let mut memory = None;
    let notes = whole(path, &mut memory)?;
    // Lines that nobody has taken yet are zeros, and at the end.
    let mut lines = notes.chunks(LINE);
    let taken = lines.rposition(|it| it.iter().any(|byte| *byte != 0));
    let taken = taken.map_or(0, |last| (last + 1) * LINE);
    let notes = notes.get(..taken).unwrap_or(notes);
    if notes.len() > BYTES_MAX || Lines::of(notes).is_err() {
        // Somebody else's, whatever it is called.
        return Ok(());
    }
    change(profile, b"", notes, &[], &mut |_| ())?;
    system::unlink(path).map_err(FileError::Write)
}

/// Calls with the notes beside a profile whose processes have ended.
fn each_ended(profile: &CStr, one: &mut dyn FnMut(&CStr)) -> Result<(), Errno> {
    let bytes = profile.to_bytes();
    let cut = bytes.iter().rposition(|byte| *byte == b'/');
    let (folder, name) = match cut {
        Some(cut) => bytes.split_at(cut + 1),
        None => (&b"."[..], bytes),
    };
    let mut path = Text::<1024>::new();
    path.push(folder);
    let path = path.as_path().ok_or(Errno(libc::ENAMETOOLONG))?;
    let folder = File::open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    folder.each_name(&mut |found| {
        let rest = found.strip_prefix(name).filter(|it| it.starts_with(b"."));
        let Some(process) = rest.and_then(process_of) else {
            return;
        };
        let path = path_of(profile, process);
        // A number may be written in several ways; what is meant is what is written here.
        let is_meant = path.as_bytes().ends_with(found);
        if let Some(path) = path
            .as_path()
            .filter(|it| is_meant && has_ended(it, process))
        {
            one(path);
        }
    })
}

/// Whose notes these are: the number before the end of the name.
fn process_of(name: &[u8]) -> Option<c_int> {
    let name = name.strip_suffix(END)?;
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    let number = core::str::from_utf8(name.get(dot + 1..)?).ok()?;
    number.parse().ok().filter(|it| *it > 0)
}

/// Whether the notes are ours, and nobody writes them any more.
fn has_ended(path: &CStr, process: c_int) -> bool {
    let Ok(file) = File::open(path, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK) else {
        return false;
    };
    if !file.is_trusted() {
        return false;
    }
    let mut head = [0; LINE];
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    let head = core::str::from_utf8(head.get(..read).unwrap_or_default()).unwrap_or("");
    let number = |before: &str| {
        let (_, rest) = head.split_once(before)?;
        let end = rest.find(|it: char| !it.is_ascii_digit())?;
        rest.get(..end)?.parse::<u64>().ok()
    };
    let is_known = |it: &u64| *it != 0;
    let among = number(AMONG).filter(is_known);
    match (among, system::processes().filter(is_known)) {
        (Some(theirs), Some(ours)) if theirs != ours => return file.lock().is_ok(),
        // It has just been made.
        _ if number(BEGAN).is_none() && file.lock() == Err(Errno(libc::EAGAIN)) => return false,
        _ => {}
    }
    if process == system::process() || !system::is_there(process) {
        return true;
    }
    match (number(BEGAN), system::began(process)) {
        (Some(noted), Some(began)) => noted != began,
        // It has just been made, or nobody says when its process began.
        _ => false,
    }
}
