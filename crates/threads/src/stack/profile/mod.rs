//! Profiles: what was learned of threads, in text that people read and merge.
//!
//! ```text
//! milieu stacks 1
//! # a remark, which is kept
//! module 5f0e1c… /usr/bin/memcached
//! thread 5f0e1c…+1a2b0 runs=4 threads=16 peak=20480 given=8388608 role=worker
//! thread 77aa03…+dbad0/5f0e1c…+9d10 runs=4 threads=4 peak=9216 given=131072 set overflow=131072
//! ```
//!
//! A line is a thread's key (see [`Key`]) and what was seen of it, or where a module
//! lies, for symbolizers. `site KEY PLACE …` says where threads of a key were created: to
//! where the calls return that led there, the innermost first. Two profiles are joined line by line: of each number the
//! greater one. That is commutative, associative and idempotent, so files can be
//! merged in any order and more than once; counts are then those of the profile that
//! saw most. What a program itself saw in a run is added to the counts, once.
//!
//! Lines that cannot be understood are reported, do not count, and are kept.
//! Everything works in memory that is handed in.

mod file;
mod line;
mod notes;

pub(super) use file::add_site;
pub use file::{FileError, append, load, update};
pub use line::{Line, LineError, Lines, Module, Problem, Site};
pub(super) use notes::Note;
pub use notes::{Notes, settle};

use core::fmt;

use super::key::{BuildId, Key, Place};
use super::text::Text;
use super::tuner::Learned;

/// What a role or a thread is called; what is beyond 31 bytes is cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    bytes: [u8; Self::BYTES],
}

impl Name {
    pub(super) const BYTES: usize = 32;

    /// The name that says nothing.
    pub const NONE: Self = Self {
        bytes: [0; Self::BYTES],
    };

    /// From any bytes; a zero ends it.
    pub fn new(name: &[u8]) -> Self {
        let mut cut = name
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(name.len());
        if cut >= Self::BYTES {
            cut = Self::BYTES - 1;
            // Not within a character.
            while cut > 0 && name.get(cut).is_some_and(|byte| byte & 0xc0 == 0x80) {
                cut -= 1;
            }
        }
        let mut bytes = [0; Self::BYTES];
        let name = name.get(..cut).unwrap_or_default();
        bytes
            .iter_mut()
            .zip(name)
            .for_each(|(into, byte)| *into = *byte);
        Self { bytes }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.bytes.iter().position(|&byte| byte == 0);
        self.bytes
            .get(..end.unwrap_or(Self::BYTES))
            .unwrap_or_default()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Of two names one, whichever comes first.
    fn join(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (false, true) => self,
            (true, _) => other,
            _ => self.min(other),
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

/// What was seen of the threads of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// What they are known by.
    pub key: Key,
    /// In how many runs of the program they were seen.
    pub runs: u32,
    /// How many were measured.
    pub threads: u64,
    /// The deepest of them.
    pub peak_bytes: u64,
    /// The largest stack that the program gave one of them, or took as the default.
    pub given_bytes: u64,
    /// Whether the program set that size.
    pub is_set: bool,
    /// The largest stack that one of them has overflowed; 0 if none has.
    pub overflow_bytes: u64,
    /// What they are for, or what one of them was named.
    pub role: Name,
}

impl Entry {
    /// Nothing was seen of it.
    pub const fn new(key: Key) -> Self {
        Self {
            key,
            runs: 0,
            threads: 0,
            peak_bytes: 0,
            given_bytes: 0,
            is_set: false,
            overflow_bytes: 0,
            role: Name::NONE,
        }
    }

    /// For memory that waits for entries.
    pub const EMPTY: Self = Self::new(Key {
        start: Place {
            build: BuildId::NONE,
            offset: 0,
        },
        argument: None,
    });

    /// What two profiles say of a key, together.
    pub fn join(&mut self, other: &Self) {
        self.runs = self.runs.max(other.runs);
        self.threads = self.threads.max(other.threads);
        self.see(other);
    }

    /// What was seen since.
    pub fn add(&mut self, since: &Self) {
        self.runs = self.runs.saturating_add(since.runs);
        self.threads = self.threads.saturating_add(since.threads);
        self.see(since);
    }

    fn see(&mut self, other: &Self) {
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.given_bytes = self.given_bytes.max(other.given_bytes);
        self.is_set |= other.is_set;
        self.overflow_bytes = self.overflow_bytes.max(other.overflow_bytes);
        self.role = self.role.join(other.role);
    }

    /// What the tuner wants to know of it.
    pub fn learned(&self) -> Learned {
        Learned {
            runs: self.runs,
            threads: self.threads,
            peak_bytes: self.peak_bytes,
            has_overflowed: self.overflow_bytes > 0,
            was_refused: false,
        }
    }
}

/// How much memory a text needs, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Lines of threads.
    pub entries: usize,
    /// Lines of modules.
    pub modules: usize,
    /// Lines.
    pub lines: usize,
}

impl Room {
    /// For this text.
    pub fn of(text: &[u8]) -> Self {
        let mut room = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            room.lines += 1;
            room.entries += usize::from(line.trim_ascii_start().starts_with(b"thread"));
            room.modules += usize::from(line.trim_ascii_start().starts_with(b"module"));
        }
        room
    }
}

/// Why a text is no profile, or cannot be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// Its first line is another's.
    Foreign,
    /// It was written by a later version.
    Version,
    /// The memory that was handed in is full.
    Full,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => {
                "this is no profile of stacks: its first line is not `milieu stacks 1`; \
                 name another file, or remove this one"
            }
            Self::Version => {
                "a later version of Milieu wrote this profile; name another file, \
                 or use that version"
            }
            Self::Full => "there is no room for so many threads; remove lines that are of no use",
        })
    }
}

impl core::error::Error for ProfileError {}

/// Items in memory of somebody else.
#[derive(Debug)]
struct Shelf<'m, T> {
    places: &'m mut [T],
    count: usize,
}

impl<T: Copy> Shelf<'_, T> {
    fn push(&mut self, item: T) -> Result<(), ProfileError> {
        let place = self.places.get_mut(self.count);
        *place.ok_or(ProfileError::Full)? = item;
        self.count += 1;
        Ok(())
    }

    fn items(&self) -> &[T] {
        self.places.get(..self.count).unwrap_or_default()
    }

    /// Sorts them and makes one of neighbours that `fold` takes together.
    fn settle(&mut self, by: impl Fn(&T, &T) -> core::cmp::Ordering, fold: impl Fn(&mut T, &T)) {
        let Some(items) = self.places.get_mut(..self.count) else {
            return;
        };
        items.sort_unstable_by(&by);
        let mut kept: usize = 0;
        for next in 0..items.len() {
            let Some(&item) = items.get(next) else { break };
            let last = kept.checked_sub(1).and_then(|last| items.get_mut(last));
            if let Some(last) = last.filter(|last| by(last, &item).is_eq()) {
                fold(last, &item);
                continue;
            }
            if let Some(place) = items.get_mut(kept) {
                *place = item;
            }
            kept += 1;
        }
        self.count = kept;
    }
}

/// One or several profiles, joined.
///
/// ```
/// use milieu_threads::stack::{Entry, Module, Profile, Room};
///
/// let text = b"milieu stacks 1\nthread ab+1 runs=2 threads=5 peak=8192 given=65536\n";
/// let room = Room::of(text);
/// let mut entries = vec![Entry::EMPTY; room.entries];
/// let mut modules = vec![Module::EMPTY; room.modules];
/// let mut kept = vec![&b""[..]; room.lines];
/// let mut profile = Profile::new(&mut entries, &mut modules, &mut kept);
/// profile.read(text, &mut |wrong| panic!("{wrong}"))?;
/// assert_eq!(profile.entries()[0].peak_bytes, 8192);
///
/// let mut written = Vec::new();
/// profile.write(&mut |part| written.extend_from_slice(part));
/// assert_eq!(written, text);
/// # Ok::<(), milieu_threads::stack::ProfileError>(())
/// ```
#[derive(Debug)]
pub struct Profile<'m, 'a> {
    entries: Shelf<'m, Entry>,
    modules: Shelf<'m, Module<'a>>,
    /// Remarks, where threads were created, and lines that nobody understands.
    kept: Shelf<'m, &'a [u8]>,
}

impl<'m, 'a> Profile<'m, 'a> {
    /// With nothing in it, in memory that has the [`Room`] of what is to come.
    pub fn new(
        entries: &'m mut [Entry],
        modules: &'m mut [Module<'a>],
        kept: &'m mut [&'a [u8]],
    ) -> Self {
        fn shelf<T>(places: &mut [T]) -> Shelf<'_, T> {
            Shelf { places, count: 0 }
        }
        Self {
            entries: shelf(entries),
            modules: shelf(modules),
            kept: shelf(kept),
        }
    }

    /// Joins what a text says. Lines that it cannot understand are told and kept.
    ///
    /// # Errors
    /// The text is no profile, or there is no room; what was read until then is there.
    pub fn read(
        &mut self,
        text: &'a [u8],
        wrong: &mut dyn FnMut(LineError<'a>),
    ) -> Result<(), ProfileError> {
        let others = self.kept.count;
        for line in Lines::of(text)? {
            match line {
                Ok(Line::Thread(entry)) => self.entries.push(entry)?,
                Ok(Line::Module(module)) => self.modules.push(module)?,
                Ok(Line::Remark(text)) => self.keep(text, others)?,
                Ok(Line::Site(site)) => self.keep(site.line, others)?,
                Err(error) => {
                    wrong(error);
                    self.keep(error.line, others)?;
                }
            }
        }
        self.entries.settle(|a, b| a.key.cmp(&b.key), Entry::join);
        // The paths of a module are those of all machines; one of each.
        self.modules.settle(Module::cmp, |_, _| ());
        Ok(())
    }

    /// Keeps a line, unless a text that was read before has the same.
    fn keep(&mut self, line: &'a [u8], others: usize) -> Result<(), ProfileError> {
        let before = self.kept.places.get(..others).unwrap_or_default();
        if before.contains(&line) {
            return Ok(());
        }
        self.kept.push(line)
    }

    /// Adds what a run of the program has seen.
    ///
    /// # Errors
    /// There is no room.
    pub fn add(&mut self, since: &Entry) -> Result<(), ProfileError> {
        match self
            .entries
            .items()
            .binary_search_by(|it| it.key.cmp(&since.key))
        {
            Ok(at) => {
                if let Some(entry) = self.entries.places.get_mut(at) {
                    entry.add(since);
                }
            }
            Err(at) => {
                self.entries.push(*since)?;
                let count = self.entries.count;
                if let Some(moved) = self.entries.places.get_mut(at..count) {
                    moved.rotate_right(1);
                }
            }
        }
        Ok(())
    }

    /// Adds what a process has noted. What it did not come to write, and what others have
    /// written there, does not count.
    ///
    /// # Errors
    /// It is no profile, or there is no room.
    pub(super) fn take_in(&mut self, notes: &'a [u8]) -> Result<(), ProfileError> {
        for line in Lines::of(notes)?.flatten() {
            match line {
                Line::Thread(entry) => self.add(&entry)?,
                Line::Module(module) => self.modules.push(module)?,
                Line::Remark(_) | Line::Site(_) => {}
            }
        }
        self.modules.settle(Module::cmp, |_, _| ());
        Ok(())
    }

    /// What is known of threads, by key.
    pub fn entries(&self) -> &[Entry] {
        self.entries.items()
    }

    /// Where modules lie, by build id; one may lie in several places.
    pub fn modules(&self) -> &[Module<'a>] {
        self.modules.items()
    }

    /// What is known of a key.
    pub fn find(&self, key: &Key) -> Option<&Entry> {
        let found = self.entries().binary_search_by(|it| it.key.cmp(key));
        self.entries().get(found.ok()?)
    }

    /// The text that says all of it, in parts: remarks and where threads were created first,
    /// in the order in which they were read, then modules and threads in theirs.
    pub fn write(&self, put: &mut dyn FnMut(&[u8])) {
        put(line::HEADER);
        put(b"\n");
        for line in self.kept.items() {
            put(line);
            put(b"\n");
        }
        for module in self.modules() {
            put(Text::<64>::of(format_args!("module {} ", module.build)).as_bytes());
            put(module.encoded_path);
            put(b"\n");
        }
        for entry in self.entries() {
            put(line::thread(entry).as_bytes());
            put(b"\n");
        }
    }
}
