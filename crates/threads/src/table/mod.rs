//! The thread information table: what each thread is for and where it stands, 64
//! bytes a thread in memory that other processes can read.
//!
//! - [`Lines`] is the table itself over memory of any origin: found by open
//!   addressing, each line behind a sequence lock of its own. Nobody who reads
//!   waits for anybody; who writes waits only for others that write to the same
//!   thread's line.
//! - [`Table`] is one in shared memory, of this process; [`View`] is that of
//!   another, which can neither be harmed by what it finds there nor harm it.
//!
//! A thread is known by its *identity*: a number that no other living thread of
//! the process has and that is not 0, as `pthread_self()` is one. Its line is
//! there from [`Lines::insert`] until [`Lines::remove`]. A line that its thread
//! left behind, because it ended unseen, is taken over by the next thread of the
//! same identity, and by [`Table::sweep`].
//!
//! Lines lie in segments, each as large as all before it. A thread's line is in
//! the first segment that has a free one within 16 lines of where its identity
//! belongs, so few threads share few pages, nothing ever moves, and looking for
//! a thread is bounded.
//!
//! ```
//! use milieu_threads::attributes::{Attributes, Role};
//! use milieu_threads::kernel;
//! use milieu_threads::table::{Entry, Table};
//!
//! let table = Table::new(1024)?;
//! let identity = 0x7f00_1234_0000; // pthread_self()
//! let probe = Attributes::of(Role::new("gas-detection")?);
//! let lines = table.lines();
//! lines.insert(Entry::of(identity, kernel::thread_id(), probe))?;
//! assert_eq!(lines.get(identity)?.role().as_str(), "gas-detection");
//! assert_eq!(lines.with_role(probe.role()).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod line;
#[cfg(all(test, loom))]
pub(crate) mod models;
#[cfg(not(loom))]
mod shared;

use core::fmt;

use crate::attributes::{Attributes, Role};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use line::{Bits, Held, Line};

#[cfg(not(loom))]
pub use shared::{AttachError, Table, View};

/// What a thread takes.
pub const LINE_BYTES: usize = 64;

/// How far from where it belongs a line may be.
const WINDOW: u32 = 16;

/// Lines of the first segment.
const FIRST: u32 = 1024;

/// The most lines of a table: more threads than Linux has by default.
pub const LINES_MAX: u32 = 1 << 20;

/// The place of a thread's line; stays the same while the thread lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Where the CPU mediator has put a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Region {
    /// Where the program, or the system, wants it.
    #[default]
    Own,
    /// Where time-critical threads are.
    Fast,
    /// Where the others wait for them.
    Lazy,
}

/// How the program wants the kernel to schedule a thread: what it returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scheduling {
    /// `SCHED_OTHER`, `SCHED_RR`, … as the kernel numbers them.
    pub policy: u8,
    /// Counts for `SCHED_OTHER` and `SCHED_BATCH`, and is kept in the others.
    pub nice: i8,
    /// Counts for `SCHED_FIFO` and `SCHED_RR`.
    pub realtime_priority: u8,
    /// Whether new threads and processes do not inherit it.
    pub is_reset_on_fork: bool,
}

impl Scheduling {
    /// What the kernel gives a thread whose creator is scheduled so.
    #[must_use]
    pub fn handed_on(self) -> Scheduling {
        let is_realtime = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&self.policy.into());
        match self.is_reset_on_fork {
            false => self,
            true if is_realtime => Scheduling::default(),
            true => Scheduling {
                nice: self.nice.max(0),
                is_reset_on_fork: false,
                ..self
            },
        }
    }

    /// Whether a thread that has just begun so, by one that was scheduled like this, may have
    /// it of a mediator that had put its creator elsewhere: it is what mediators give, or not
    /// what a creator hands on.
    #[must_use]
    pub fn is_doubtful_from(self, creator: Scheduling) -> bool {
        let is_idle = i32::from(self.policy) == libc::SCHED_IDLE;
        is_idle || self.nice == 19 || self.nice < 0 || self != creator.handed_on()
    }
}

/// What the table says of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Who: no other living thread of the process has this number; never 0.
    pub identity: u64,
    /// The kernel's number of the thread.
    pub tid: u32,
    /// What the thread is for.
    pub attributes: Attributes,
    /// Where the mediator has put it.
    pub region: Region,
    /// Whether the mediator leaves it alone, by the exclusion list.
    pub is_excluded: bool,
    /// Whether it was critical and kept the processor for too long.
    pub is_demoted: bool,
    /// Whether it has, or waits for, the mediator's lock, and is not lazy meanwhile.
    pub is_visiting: bool,
    /// Whether it is about to make itself lazy, as the mediator has told it to.
    pub is_going: bool,
    /// What it returns to.
    pub own: Scheduling,
    /// When it began, in microseconds since the machine started.
    pub created_us: u64,
    /// Its stack in KiB; 0 where it was not measured.
    pub stack_kib: u32,
    /// The most of it that was ever used, in KiB; 0 where it was not measured.
    pub stack_kib_peak: u32,
}

impl Entry {
    /// A thread that has just begun.
    #[must_use]
    pub fn of(identity: u64, tid: u32, attributes: Attributes) -> Entry {
        Entry {
            identity,
            tid,
            attributes,
            region: Region::Own,
            is_excluded: false,
            is_demoted: false,
            is_visiting: false,
            is_going: false,
            own: Scheduling::default(),
            created_us: 0,
            stack_kib: 0,
            stack_kib_peak: 0,
        }
    }

    fn bits(&self) -> Bits {
        let mut bits = Bits {
            tid: self.tid,
            identity: self.identity,
            words: [0; 6],
        };
        let own = self.own;
        let policy = (own.policy & 0x7f) | u8::from(own.is_reset_on_fork) << 7;
        bits.words[0] = self.created_us << 16 | u64::from(own.nice as u8) << 8 | u64::from(policy);
        bits.words[1] = u64::from(self.stack_kib_peak) << 32 | u64::from(self.stack_kib);
        let flags = if self.is_demoted { DEMOTED } else { 0 }
            | u8::from(self.is_excluded) << 2
            | u8::from(self.is_visiting) << 4
            | u8::from(self.is_going) << 5;
        let region = match self.region {
            Region::Own => 0,
            Region::Fast => 1,
            Region::Lazy => 2,
        };
        bits.words[2..].copy_from_slice(&self.attributes.words());
        bits.words[2] |= u64::from(u32::from_le_bytes([
            flags,
            0,
            region,
            own.realtime_priority,
        ]));
        bits
    }

    /// What the bits say; `None` if nobody of ours wrote them.
    fn checked(bits: &Bits) -> Option<Entry> {
        let [.., state, a, b, c] = bits.words;
        let attributes = Attributes::checked([state, a, b, c])?;
        let [flags, _, region, realtime_priority] = (state as u32).to_le_bytes();
        let [policy, nice] = (bits.words[0] as u16).to_le_bytes();
        let nice = nice as i8;
        // Of the marks one is nobody's.
        let is_valid = flags & 64 == 0
            && (-20..=19).contains(&nice)
            && realtime_priority < 100
            && bits.identity != 0;
        if !is_valid {
            return None;
        }
        Some(Entry {
            identity: bits.identity,
            tid: bits.tid,
            attributes,
            region: match region {
                0 => Region::Own,
                1 => Region::Fast,
                2 => Region::Lazy,
                _ => return None,
            },
            is_excluded: flags & 4 != 0,
            is_demoted: flags & DEMOTED != 0,
            is_visiting: flags & 16 != 0,
            is_going: flags & 32 != 0,
            own: Scheduling {
                policy: policy & 0x7f,
                nice,
                realtime_priority,
                is_reset_on_fork: policy & 0x80 != 0,
            },
            created_us: bits.words[0] >> 16,
            stack_kib: bits.words[1] as u32,
            stack_kib_peak: (bits.words[1] >> 32) as u32,
        })
    }
}

/// Among the marks of a line: that its thread was demoted.
const DEMOTED: u8 = 2;

impl Bits {
    /// What a thread is for. Its region, exclusion, demotion, its own real-time priority, and
    /// what it is about to do stay.
    #[inline]
    fn set(&mut self, to: &Attributes) {
        let kept = self.words[2] & !Attributes::STATE;
        self.words[2..].copy_from_slice(&to.words());
        self.words[2] |= kept;
    }
}

/// Why the table has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableError {
    /// No line is about a thread of this identity.
    Unknown,
    /// No line is free where this thread's could be; it is counted.
    Full,
    /// Somebody has been writing to this line for a tenth of a second: a thread
    /// that does not get the processor, or that was stopped in a debugger.
    Busy,
    /// The identity 0 is that of free lines.
    NoIdentity,
    /// What stands there is no entry; somebody wrote to the memory.
    Damaged,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TableError::Unknown => "no such thread in the thread information table",
            TableError::Full => {
                "the thread information table is full; make it with more lines, or sweep it"
            }
            TableError::Busy => "a thread has stopped in the middle of writing; try again",
            TableError::NoIdentity => "a thread's identity is not 0; hand in pthread_self()",
            TableError::Damaged => "a line of the thread information table was overwritten",
        })
    }
}

impl core::error::Error for TableError {}

impl From<Held> for TableError {
    fn from(_: Held) -> TableError {
        TableError::Busy
    }
}

/// What stands before the lines, one line itself.
#[repr(C, align(64))]
pub(crate) struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    line_bytes: AtomicU32,
    lines: AtomicU32,
    /// The process whose threads these are.
    process: AtomicU32,
    /// How many segments have had a line.
    segments: AtomicU32,
    /// How many threads found no line.
    unlisted: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() == LINE_BYTES);

#[cfg(any(test, loom))]
impl Header {
    fn new() -> Header {
        Header {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            line_bytes: AtomicU32::new(0),
            lines: AtomicU32::new(0),
            process: AtomicU32::new(0),
            segments: AtomicU32::new(0),
            unlisted: AtomicU32::new(0),
        }
    }
}

/// The table over memory of any origin, of which nothing is believed that could
/// lead out of it.
#[derive(Clone, Copy)]
pub struct Lines<'m> {
    header: &'m Header,
    lines: &'m [Line],
}

impl<'m> Lines<'m> {
    /// How many threads have a place at most.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.lines.len() as u32
    }

    /// How many threads found no line.
    #[must_use]
    pub fn unlisted(&self) -> u32 {
        self.header.unlisted.load(Ordering::Relaxed)
    }

    /// Gives a thread its line, in the moment before it begins or when it does.
    /// What stands there of an earlier thread of this identity is overwritten.
    ///
    /// At most one thread may insert the same identity at a time.
    ///
    /// # Errors
    /// If there is no line for it.
    pub fn insert(&self, entry: Entry) -> Result<Slot, TableError> {
        let bits = entry.bits();
        if bits.identity == 0 {
            return Err(TableError::NoIdentity);
        }
        if let Some((slot, line)) = self.find(bits.identity) {
            line.write(|it| *it = bits)?;
            return Ok(slot);
        }
        for segment in 0.. {
            let Some((start, mask)) = self.segment(segment) else {
                break;
            };
            // Before the line is taken: who sees the line sees the segment.
            self.header
                .segments
                .fetch_max(segment + 1, Ordering::Relaxed);
            for (slot, line) in self.window(start, mask, bits.identity) {
                if line.identity_hint() != 0 {
                    continue;
                }
                let take = |it: &mut Bits| {
                    let is_free = it.identity == 0;
                    if is_free {
                        *it = bits;
                    }
                    is_free
                };
                if line.write(take) == Ok(true) {
                    return Ok(slot);
                }
            }
        }
        self.header.unlisted.fetch_add(1, Ordering::Relaxed);
        Err(TableError::Full)
    }

    /// Frees the line of a thread that ends.
    ///
    /// # Errors
    /// If there is none, or if its line is being written to.
    pub fn remove(&self, identity: u64) -> Result<Slot, TableError> {
        self.write(identity, |bits| *bits = Bits::default())
    }

    /// Sets what a thread is for.
    ///
    /// # Errors
    /// If it has no line, or if its line is being written to.
    #[inline]
    pub fn set(&self, identity: u64, to: &Attributes) -> Result<Slot, TableError> {
        self.write(identity, |bits| bits.set(to))
    }

    /// As [`Lines::set`]; says too what the thread was for before, and whether it was demoted.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn exchange(
        &self,
        identity: u64,
        to: &Attributes,
    ) -> Result<(Slot, Attributes, bool), TableError> {
        let mut before = None;
        let slot = self.write(identity, |bits| {
            let [.., state, a, b, c] = bits.words;
            let was_demoted = state & u64::from(DEMOTED) != 0;
            before = Attributes::of_words([state, a, b, c]).map(|it| (it, was_demoted));
            bits.set(to);
        })?;
        let (before, was_demoted) = before.ok_or(TableError::Damaged)?;
        Ok((slot, before, was_demoted))
    }

    /// What a thread is for.
    ///
    /// # Errors
    /// If it has no line, or if its line is being written to.
    #[inline]
    pub fn get(&self, identity: u64) -> Result<Attributes, TableError> {
        // Where it is in nearly all cases, and in one go. Only free lines have the identity 0,
        // and those say nothing.
        let read = |line: &Line| (line.identity_hint(), line.last_words());
        let said = self
            .home(identity)
            .and_then(|(_, line)| line.try_read(read));
        let said = said.filter(|(found, _)| *found == identity);
        match said.and_then(|(_, words)| Attributes::of_words(words)) {
            Some(attributes) => Ok(attributes),
            None => self.get_further(identity),
        }
    }

    #[cold]
    fn get_further(&self, identity: u64) -> Result<Attributes, TableError> {
        let words = self.read(identity, Line::last_words)?;
        Attributes::of_words(words).ok_or(TableError::Damaged)
    }

    /// All that is known of a thread.
    ///
    /// # Errors
    /// If it has no line, or if its line is being written to.
    pub fn entry(&self, identity: u64) -> Result<Entry, TableError> {
        Entry::checked(&self.read(identity, Line::bits)?).ok_or(TableError::Damaged)
    }

    /// Changes what is known of a thread, but neither identity nor role's owner:
    /// the change sees one moment, and others see all of it or nothing.
    ///
    /// # Errors
    /// If it has no line, or if its line is being written to.
    pub fn update(
        &self,
        identity: u64,
        change: impl FnOnce(&mut Entry),
    ) -> Result<Slot, TableError> {
        let mut result = Ok(());
        let slot = self.write(identity, |bits| match Entry::checked(bits) {
            Some(mut entry) => {
                change(&mut entry);
                *bits = Entry { identity, ..entry }.bits();
            }
            None => result = Err(TableError::Damaged),
        })?;
        result.map(|()| slot)
    }

    /// Notes how much stack a thread has and has used; the peak only grows.
    ///
    /// # Errors
    /// If it has no line, or if its line is being written to.
    pub fn note_stack(&self, identity: u64, kib: u32, peak: u32) -> Result<Slot, TableError> {
        self.write(identity, |bits| {
            let before = (bits.words[1] >> 32) as u32;
            bits.words[1] = u64::from(before.max(peak)) << 32 | u64::from(kib);
        })
    }

    /// Notes how deep the thread was that has this number of the kernel's; whether that is
    /// deeper than what stands there. Where it is not, nothing is written. A stack that was
    /// smaller has grown.
    ///
    /// # Errors
    /// If it has no line, or if its line is being written to.
    pub fn note_peak(&self, identity: u64, tid: u32, peak: u32) -> Result<bool, TableError> {
        let is_deeper = |it: &Bits| it.tid == tid && ((it.words[1] >> 32) as u32) < peak;
        let is_news = is_deeper(&self.read(identity, Line::bits)?);
        if is_news {
            self.write(identity, |bits| {
                if is_deeper(bits) {
                    let kib = peak.max(bits.words[1] as u32);
                    bits.words[1] = u64::from(peak) << 32 | u64::from(kib);
                }
            })?;
        }
        Ok(is_news)
    }

    /// The place of a thread's line.
    #[must_use]
    pub fn slot(&self, identity: u64) -> Option<Slot> {
        self.find(identity).map(|(slot, _)| slot)
    }

    /// What stands in a place, if it is about a thread.
    ///
    /// # Errors
    /// [`TableError::Unknown`] if it is free, or why it cannot be told.
    pub fn at(&self, slot: Slot) -> Result<Entry, TableError> {
        let line = self.lines.get(slot.0 as usize);
        let bits = line.ok_or(TableError::Unknown)?.read(Line::bits)?;
        if bits.identity == 0 {
            return Err(TableError::Unknown);
        }
        Entry::checked(&bits).ok_or(TableError::Damaged)
    }

    /// All threads, each as of one moment. Lines that are damaged, or that somebody
    /// holds, are left out.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Entry)> + use<'m> {
        let lines = *self;
        (0..self.used()).filter_map(move |slot| {
            let line = lines.lines.get(slot as usize)?;
            if line.identity_hint() == 0 {
                return None;
            }
            let slot = Slot(slot);
            lines.at(slot).ok().map(|it| (slot, it))
        })
    }

    /// The threads of a role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = (Slot, Entry)> + use<'m> {
        self.iter()
            .filter(move |(_, it)| it.attributes.role() == role)
    }

    /// The thread that the kernel gives this number.
    #[must_use]
    pub fn by_thread_id(&self, tid: u32) -> Option<(Slot, Entry)> {
        let used = self.lines.get(..self.used() as usize).unwrap_or_default();
        let found = (0..).zip(used).filter(|(_, it)| it.tid_hint() == tid);
        found
            .filter_map(|(slot, _)| Some((Slot(slot), self.at(Slot(slot)).ok()?)))
            .find(|(_, entry)| entry.tid == tid)
    }

    /// Frees the lines of which this is told.
    pub fn retain(&self, mut keep: impl FnMut(Slot, &Entry) -> bool) {
        for (slot, entry) in self.iter() {
            if keep(slot, &entry) {
                continue;
            }
            let Some(line) = self.lines.get(slot.0 as usize) else {
                continue;
            };
            // Unless another thread has got it since.
            let _ = line.write(|bits| {
                if *bits == entry.bits() {
                    *bits = Bits::default();
                }
            });
        }
    }

    #[inline]
    fn read<R>(&self, identity: u64, what: impl Fn(&Line) -> R) -> Result<R, TableError> {
        let (_, line) = self.find(identity).ok_or(TableError::Unknown)?;
        let (found, said) = line.read(|line| (line.identity_hint(), what(line)))?;
        if found == identity {
            Ok(said)
        } else {
            Err(TableError::Unknown)
        }
    }

    #[inline]
    fn write(&self, identity: u64, change: impl FnOnce(&mut Bits)) -> Result<Slot, TableError> {
        let (slot, line) = self.find(identity).ok_or(TableError::Unknown)?;
        let is_it = line.write(|bits| {
            let is_it = bits.identity == identity;
            if is_it {
                change(bits);
            }
            is_it
        })?;
        if is_it {
            Ok(slot)
        } else {
            Err(TableError::Unknown)
        }
    }

    #[inline]
    fn find(&self, identity: u64) -> Option<(Slot, &'m Line)> {
        // Free lines have the identity 0, so nobody is found by it.
        if identity == 0 {
            return None;
        }
        // Where it is in nearly all cases.
        let (slot, line) = self.home(identity)?;
        if line.identity_hint() == identity {
            return Some((slot, line));
        }
        self.find_further(identity)
    }

    /// The line that a thread has unless it is another's.
    #[inline]
    fn home(&self, identity: u64) -> Option<(Slot, &'m Line)> {
        let mask = FIRST.min(self.capacity()).wrapping_sub(1);
        let home = home(identity, mask);
        Some((Slot(home), self.lines.get(home as usize)?))
    }

    #[inline(never)]
    fn find_further(&self, identity: u64) -> Option<(Slot, &'m Line)> {
        let used = self.header.segments.load(Ordering::Relaxed);
        for segment in 0..used {
            let (start, mask) = self.segment(segment)?;
            let mut window = self.window(start, mask, identity);
            if let Some(found) = window.find(|(_, line)| line.identity_hint() == identity) {
                return Some(found);
            }
        }
        None
    }

    /// The lines of a segment in which a thread's may be, the likeliest first.
    #[inline]
    fn window(
        &self,
        start: u32,
        mask: u32,
        identity: u64,
    ) -> impl Iterator<Item = (Slot, &'m Line)> + use<'m> {
        let home = home(identity, mask);
        let lines = self.lines;
        (0..WINDOW.min(mask + 1)).filter_map(move |step| {
            let slot = start + (home.wrapping_add(step) & mask);
            Some((Slot(slot), lines.get(slot as usize)?))
        })
    }

    /// Where a segment begins, and its length less one, which is all ones.
    #[inline]
    fn segment(&self, number: u32) -> Option<(u32, u32)> {
        let first = FIRST.min(self.capacity());
        let start = match number {
            0 => 0,
            1..20 => first << (number - 1),
            _ => return None,
        };
        let length = start.max(first);
        (start < self.capacity()).then(|| (start, length - 1))
    }

    /// How many lines, from the first, may be in use.
    fn used(&self) -> u32 {
        match self.header.segments.load(Ordering::Relaxed) {
            0 => 0,
            count => {
                let last = self.segment(count.min(20) - 1);
                last.map_or(self.capacity(), |(start, mask)| start + mask + 1)
            }
        }
    }
}

/// Where in a segment an identity belongs. Identities are addresses a power of two
/// apart, more or less: the upper bits of the product depend on all of theirs.
#[inline]
fn home(identity: u64, mask: u32) -> u32 {
    let mixed = identity.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (mixed >> mask.leading_zeros()) as u32
}

#[cfg(all(test, not(loom)))]
mod tests;
