//! What is known of the threads of this process, by key: what the profile said, and
//! what was seen since.
//!
//! A fixed table that any thread reads and writes without a lock, and a signal
//! handler too. Places are taken and never given back, so a seat stays one's own. A
//! key that two threads enter at the same moment can have two seats; what they say
//! is put together when it is taken.

use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use super::key::Key;
use super::measure::Peak;
use super::profile::{Entry, Name};
use super::tuner::{Asked, Learned};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const READY: u32 = 2;

const IS_SET: u32 = 1;
const WAS_REFUSED: u32 = 2;
const IS_COUNTED: u32 = 4;
const HAS_OVERFLOWED: u32 = 8;

const NAME_WORDS: usize = Name::BYTES / 4;

/// Where a key has its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(usize);

impl Seat {
    /// As a number that is stored elsewhere.
    pub(super) fn number(self) -> usize {
        self.0
    }

    pub(super) fn of_number(number: usize) -> Self {
        Self(number)
    }
}

struct Slot {
    state: AtomicU32,
    /// These are written once, before the state says that they are ready.
    key: [AtomicU32; Key::WORDS],
    role: [AtomicU32; NAME_WORDS],
    /// What the profile said.
    runs: AtomicU32,
    threads: AtomicUsize,
    peak_before: AtomicUsize,
    given_before: AtomicUsize,
    was_set: AtomicBool,
    /// How many threads the profile knows.
    threads_before: AtomicUsize,
    /// The deepest ever, and the deepest that is not yet in the profile.
    peak: AtomicUsize,
    flags: AtomicU32,
    peak_since: AtomicUsize,
    threads_since: AtomicUsize,
    given_since: AtomicUsize,
    overflow_since: AtomicUsize,
    /// How many were created.
    created: AtomicUsize,
    /// How many have ended since, and were there when somebody looked.
    seen_since: AtomicUsize,
    /// Its line in the notes, 0 if it has none yet.
    place: AtomicU32,
}

impl Slot {
    #[allow(clippy::declare_interior_mutable_const)]
    const FREE: Self = Self {
        state: AtomicU32::new(FREE),
        key: [const { AtomicU32::new(0) }; Key::WORDS],
        role: [const { AtomicU32::new(0) }; NAME_WORDS],
        runs: AtomicU32::new(0),
        threads: AtomicUsize::new(0),
        peak_before: AtomicUsize::new(0),
        given_before: AtomicUsize::new(0),
        was_set: AtomicBool::new(false),
        threads_before: AtomicUsize::new(0),
        peak: AtomicUsize::new(0),
        flags: AtomicU32::new(0),
        peak_since: AtomicUsize::new(0),
        threads_since: AtomicUsize::new(0),
        given_since: AtomicUsize::new(0),
        overflow_since: AtomicUsize::new(0),
        created: AtomicUsize::new(0),
        seen_since: AtomicUsize::new(0),
        place: AtomicU32::new(0),
    };

    fn has(&self, key: &[u32; Key::WORDS]) -> bool {
        let words = self.key.iter().zip(key);
        words.fold(true, |is_same, (mine, word)| {
            is_same & (mine.load(Ordering::Relaxed) == *word)
        })
    }

    fn key(&self) -> Option<Key> {
        let words = self.key.each_ref().map(|word| word.load(Ordering::Relaxed));
        Key::from_words(&words)
    }

    fn role(&self) -> Name {
        let mut bytes = [0; Name::BYTES];
        for (into, word) in bytes.chunks_exact_mut(4).zip(&self.role) {
            into.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        Name::new(&bytes)
    }

    /// What was seen, but for what is counted.
    fn entry(&self, key: Key, flags: u32) -> Entry {
        Entry {
            runs: u32::from(flags & IS_COUNTED == 0),
            peak_bytes: self.peak_since.load(Ordering::Relaxed) as u64,
            given_bytes: self.given_since.load(Ordering::Relaxed) as u64,
            is_set: flags & IS_SET != 0,
            role: self.role(),
            ..Entry::new(key)
        }
    }

    fn set_role(&self, role: Name) {
        let mut bytes = [0; Name::BYTES];
        bytes
            .iter_mut()
            .zip(role.as_bytes())
            .for_each(|(into, byte)| *into = *byte);
        for (word, bytes) in self.role.iter().zip(bytes.chunks_exact(4)) {
            let value = bytes.try_into().map_or(0, u32::from_le_bytes);
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// The table; a `static` takes 200 KB of memory that is not touched before it is used.
pub struct Live {
    slots: [Slot; Self::SEATS],
    /// Which seats are taken, one more than each: who looks at all of them touches no memory
    /// but theirs.
    taken: [AtomicU16; Self::SEATS],
    count: AtomicUsize,
    /// Threads whose key found no place.
    left_out: AtomicUsize,
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Live {
    /// How many keys it knows at most.
    pub const SEATS: usize = 1024;
    /// So many threads of a key are measured when they end, all of the first,
    const ALL_OF: usize = 64;
    /// and one of so many from then on. Those that run are, all the time.
    const ONE_OF: usize = 16;

    /// With nothing in it.
    pub const fn new() -> Self {
        Self {
            slots: [Slot::FREE; Self::SEATS],
            taken: [const { AtomicU16::new(0) }; Self::SEATS],
            count: AtomicUsize::new(0),
            left_out: AtomicUsize::new(0),
        }
    }

    /// The seat of a key, which it takes if it has none; the role is that of the first
    /// who has one. None if the table is full.
    pub fn enter(&self, key: &Key, role: Name) -> Option<Seat> {
        let words = key.to_words();
        // Fowler, Noll and Vo: files differ in all bytes of their ids, so one word is enough.
        let telling = Key::TELLING.map(|at| words.get(at).copied().unwrap_or(0));
        let hash = telling.iter().fold(0x811c_9dc5_u32, |hash, word| {
            let mixed = (hash ^ word).wrapping_mul(0x0100_0193);
            mixed ^ mixed >> 15
        });
        for step in 0..Self::SEATS {
            let place = (hash as usize).wrapping_add(step) % Self::SEATS;
            let slot = self.slots.get(place)?;
            let state = slot.state.load(Ordering::Acquire);
            if state == READY && slot.has(&words) {
                return Some(Seat(place));
            }
            let is_mine = state == FREE
                && slot
                    .state
                    .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok();
            if is_mine {
                let pairs = slot.key.iter().zip(words);
                pairs.for_each(|(into, word)| into.store(word, Ordering::Relaxed));
                slot.set_role(role);
                self.lists(place);
                slot.state.store(READY, Ordering::Release);
                return Some(Seat(place));
            }
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// A seat is being taken. What a fork finds half done stays so in the child: a seat that
    /// is nobody's.
    fn lists(&self, place: usize) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.taken.get(number) {
            entry.store(place as u16 + 1, Ordering::Release);
        }
    }

    /// All seats that are somebody's.
    pub(super) fn seats(&self) -> impl Iterator<Item = Seat> {
        self.ready().map(|(seat, _)| seat)
    }

    fn ready(&self) -> impl Iterator<Item = (Seat, &Slot)> {
        let count = self.count.load(Ordering::Acquire);
        let taken = self.taken.iter().take(count);
        taken.filter_map(|it| {
            let seat = Seat(it.load(Ordering::Acquire).checked_sub(1)?.into());
            let slot = self.slots.get(seat.0)?;
            let is_ready = slot.state.load(Ordering::Acquire) == READY;
            is_ready.then_some((seat, slot))
        })
    }

    /// How many threads it could not take in.
    pub fn left_out(&self) -> usize {
        self.left_out.load(Ordering::Relaxed)
    }

    /// What the profile says of a key.
    pub fn load(&self, entry: &Entry) {
        let Some(slot) = self.slot_of(&entry.key, entry.role) else {
            return;
        };
        slot.runs.fetch_max(entry.runs, Ordering::Relaxed);
        slot.threads
            .fetch_max(size(entry.threads), Ordering::Relaxed);
        slot.peak
            .fetch_max(size(entry.peak_bytes), Ordering::Relaxed);
        for (before, bytes) in [
            (&slot.threads_before, entry.threads),
            (&slot.peak_before, entry.peak_bytes),
            (&slot.given_before, entry.given_bytes),
        ] {
            before.fetch_max(size(bytes), Ordering::Relaxed);
        }
        slot.was_set.fetch_or(entry.is_set, Ordering::Relaxed);
        if entry.overflow_bytes > 0 {
            slot.flags.fetch_or(HAS_OVERFLOWED, Ordering::Relaxed);
        }
    }

    /// What is known of the key of this seat, all in all.
    pub fn learned(&self, seat: Seat) -> Learned {
        let Some(slot) = self.slots.get(seat.0) else {
            return Learned::default();
        };
        let flags = slot.flags.load(Ordering::Relaxed);
        Learned {
            // This run counts when it is over.
            runs: slot.runs.load(Ordering::Relaxed),
            threads: slot.threads.load(Ordering::Relaxed) as u64,
            peak_bytes: slot.peak.load(Ordering::Relaxed) as u64,
            has_overflowed: flags & HAS_OVERFLOWED != 0,
            was_refused: flags & WAS_REFUSED != 0,
        }
    }

    /// The key of a seat, and what its threads are for.
    pub fn key(&self, seat: Seat) -> Option<(Key, Name)> {
        let slot = self.slots.get(seat.0)?;
        Some((slot.key()?, slot.role()))
    }

    /// A thread is created, and the program asked for this.
    pub fn creates(&self, seat: Seat, asked: Asked) {
        let Some(slot) = self.slots.get(seat.0) else {
            return;
        };
        let (bytes, flags) = match asked {
            Asked::Default(bytes) => (bytes, 0),
            Asked::Set(bytes) => (bytes, IS_SET),
            Asked::Memory => (0, IS_SET),
        };
        slot.given_since.fetch_max(size(bytes), Ordering::Relaxed);
        slot.flags.fetch_or(flags, Ordering::Relaxed);
    }

    /// A thread is created; whether it is one of those that are measured when they end.
    pub fn is_in_turn(&self, seat: Seat) -> bool {
        let Some(slot) = self.slots.get(seat.0) else {
            return false;
        };
        let before = slot.created.fetch_add(1, Ordering::Relaxed);
        before < Self::ALL_OF || before % Self::ONE_OF == 0
    }

    /// A smaller stack was refused, and the thread has the program's.
    pub fn refuses(&self, seat: Seat) {
        self.flag(seat, WAS_REFUSED);
    }

    /// A thread has been measured, as at its end. Whether that is worth a note: it was
    /// deeper than all before, or they are twice as many as when it was last.
    pub fn measures(&self, seat: Seat, peak: Peak) -> bool {
        let (Some(slot), Some(bytes)) = (self.slots.get(seat.0), peak.bytes()) else {
            return false;
        };
        let deepest = self.reaches(seat, bytes);
        slot.threads.fetch_add(1, Ordering::Relaxed);
        let count = slot.threads_since.fetch_add(1, Ordering::Release) + 1;
        deepest || count.is_power_of_two()
    }

    /// A thread was so deep, which may still run; whether that is deeper than all before.
    pub(super) fn reaches(&self, seat: Seat, bytes: u64) -> bool {
        let Some(slot) = self.slots.get(seat.0) else {
            return false;
        };
        slot.peak.fetch_max(size(bytes), Ordering::Relaxed);
        slot.peak_since.fetch_max(size(bytes), Ordering::Relaxed) < size(bytes)
    }

    /// So many threads of a key were measured and still run; whether that are more than
    /// was known of. They count in notes, and for the profile when they end.
    pub(super) fn runs_now(&self, seat: Seat, threads: usize) -> bool {
        let Some(slot) = self.slots.get(seat.0) else {
            return false;
        };
        let ended = slot.threads_since.load(Ordering::Acquire);
        let seen = ended.saturating_add(threads);
        slot.seen_since.fetch_max(seen, Ordering::Relaxed) < seen
    }

    /// What was seen since anything was taken, for a note; none if there was nothing.
    pub(super) fn so_far(&self, seat: Seat) -> Option<Entry> {
        let slot = self.slots.get(seat.0)?;
        let threads = slot.threads_since.load(Ordering::Acquire);
        let threads = threads.max(slot.seen_since.load(Ordering::Relaxed));
        let overflow = slot.overflow_since.load(Ordering::Relaxed);
        let key = slot.key().filter(|_| threads > 0 || overflow > 0)?;
        let flags = slot.flags.load(Ordering::Relaxed);
        Some(Entry {
            threads: threads as u64,
            overflow_bytes: overflow as u64,
            ..slot.entry(key, flags)
        })
    }

    /// The line in the notes that a key has, or is given, unless it has none.
    pub(super) fn place(&self, seat: Seat) -> Option<&AtomicU32> {
        self.slots.get(seat.0).map(|it| &it.place)
    }

    /// A thread has overflowed a stack of so many bytes.
    pub fn overflows(&self, seat: Seat, bytes: u64) {
        if let Some(slot) = self.slots.get(seat.0) {
            slot.overflow_since
                .fetch_max(size(bytes).max(1), Ordering::Relaxed);
        }
        self.flag(seat, HAS_OVERFLOWED);
    }

    /// Whether anything was seen since that the profile does not say. One more run of threads
    /// that were in so many runs, and so many of them, is nothing.
    pub fn has_news(&self, runs_enough: u32, threads_enough: u64) -> bool {
        self.ready().any(|(_, slot)| {
            let number = |it: &AtomicUsize| it.load(Ordering::Relaxed);
            let is_seen = number(&slot.threads_since) > 0 || number(&slot.overflow_since) > 0;
            let is_set = slot.flags.load(Ordering::Relaxed) & IS_SET != 0;
            let is_known = slot.runs.load(Ordering::Relaxed) >= runs_enough
                && number(&slot.threads_before) >= size(threads_enough)
                && number(&slot.peak_since) <= number(&slot.peak_before)
                && number(&slot.given_since) <= number(&slot.given_before)
                && number(&slot.overflow_since) == 0
                && (!is_set || slot.was_set.load(Ordering::Relaxed));
            is_seen && !is_known
        })
    }

    /// Calls with everything that was seen since this was called last; what cannot be
    /// kept elsewhere is put back by [`put_back`](Self::put_back).
    pub fn take(&self, mut one: impl FnMut(Entry)) {
        for (_, slot) in self.ready() {
            let threads = slot.threads_since.swap(0, Ordering::Acquire);
            slot.seen_since.store(0, Ordering::Relaxed);
            let overflow = slot.overflow_since.swap(0, Ordering::Relaxed);
            let Some(key) = slot.key().filter(|_| threads > 0 || overflow > 0) else {
                continue;
            };
            let flags = slot.flags.fetch_or(IS_COUNTED, Ordering::Relaxed);
            one(Entry {
                threads: threads as u64,
                peak_bytes: slot.peak_since.swap(0, Ordering::Relaxed) as u64,
                overflow_bytes: overflow as u64,
                ..slot.entry(key, flags)
            });
        }
    }

    /// What was taken, and could not be kept.
    pub fn put_back(&self, entry: &Entry) {
        let Some(slot) = self.slot_of(&entry.key, entry.role) else {
            return;
        };
        slot.peak_since
            .fetch_max(size(entry.peak_bytes), Ordering::Relaxed);
        slot.overflow_since
            .fetch_max(size(entry.overflow_bytes), Ordering::Relaxed);
        if entry.runs > 0 {
            slot.flags.fetch_and(!IS_COUNTED, Ordering::Relaxed);
        }
        slot.threads_since
            .fetch_add(size(entry.threads), Ordering::Release);
    }

    /// In the child of a fork: what was seen before is the parent's to keep.
    pub fn forked(&self) {
        self.take(|_| ());
        for (_, slot) in self.ready() {
            slot.flags.fetch_and(!IS_COUNTED, Ordering::Relaxed);
            slot.peak_since.store(0, Ordering::Relaxed);
            slot.place.store(0, Ordering::Relaxed);
            slot.created.store(0, Ordering::Relaxed);
        }
    }

    fn slot_of(&self, key: &Key, role: Name) -> Option<&Slot> {
        self.slots.get(self.enter(key, role)?.0)
    }

    fn flag(&self, seat: Seat, flag: u32) {
        if let Some(slot) = self.slots.get(seat.0) {
            slot.flags.fetch_or(flag, Ordering::Relaxed);
        }
    }
}

/// More than an address space has is all of it.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::format;
    use std::vec::Vec;

    use super::*;

    fn key(offset: usize) -> Key {
        Key::parse(format!("ab+{offset:x}").as_bytes()).unwrap()
    }

    fn taken(live: &Live) -> Vec<Entry> {
        let mut taken = Vec::new();
        live.take(|entry| taken.push(entry));
        taken.sort();
        taken
    }

    #[test]
    fn the_first_threads_are_measured_and_then_one_of_several() {
        let live = Box::new(Live::new());
        let seat = live.enter(&key(1), Name::NONE).unwrap();
        let other = live.enter(&key(2), Name::NONE).unwrap();
        let all = (0..Live::ALL_OF).filter(|_| live.is_in_turn(seat)).count();
        // Miri looks at all places whenever one is looked at.
        let turns = if cfg!(miri) { 2 } else { 100 };
        let later = (0..turns * Live::ONE_OF).filter(|_| live.is_in_turn(seat));
        assert_eq!((all, later.count()), (Live::ALL_OF, turns));
        assert!(live.is_in_turn(other));
        live.forked();
        assert!(live.is_in_turn(seat) && live.is_in_turn(seat));
    }

    #[test]
    fn what_the_profile_says_already_is_no_news() {
        let known = Entry {
            runs: 16,
            threads: 20,
            peak_bytes: 4096,
            given_bytes: 8 << 20,
            ..Entry::new(key(1))
        };
        // What the profile says, whether the size was set, how deep the thread was.
        let news = |known: &Entry, asked, peak| {
            let live = Box::new(Live::new());
            live.load(known);
            assert!(!live.has_news(16, 16), "nothing was seen");
            let seat = live.enter(&key(1), Name::NONE).unwrap();
            live.creates(seat, asked);
            assert!(!live.has_news(16, 16), "nobody has ended");
            live.measures(seat, Peak::Exact(peak));
            live.has_news(16, 16)
        };
        let asked = Asked::Default(8 << 20);
        assert!(!news(&known, asked, 4096));
        assert!(news(&known, asked, 4097));
        assert!(news(&known, Asked::Default(9 << 20), 4096));
        assert!(news(&known, Asked::Set(8 << 20), 4096));
        assert!(news(&Entry { runs: 15, ..known }, asked, 4096));
        assert!(news(
            &Entry {
                threads: 15,
                ..known
            },
            asked,
            4096
        ));
        let set = Entry {
            is_set: true,
            ..known
        };
        assert!(!news(&set, Asked::Set(1 << 20), 100));

        let live = Box::new(Live::new());
        live.load(&known);
        live.overflows(live.enter(&key(1), Name::NONE).unwrap(), 4096);
        assert!(live.has_news(16, 16));
    }

    #[test]
    fn what_was_seen_is_taken_once_and_a_run_counts_once() {
        let live = Box::new(Live::new());
        let seat = live.enter(&key(1), Name::new(b"worker")).unwrap();
        assert_eq!(live.enter(&key(1), Name::NONE), Some(seat));
        live.creates(seat, Asked::Set(65536));
        assert_eq!(taken(&live), []);
        live.measures(seat, Peak::Exact(9000));
        live.measures(seat, Peak::AtMost(7000));
        live.measures(seat, Peak::Unknown);
        let expected = Entry {
            runs: 1,
            threads: 2,
            peak_bytes: 9000,
            given_bytes: 65536,
            is_set: true,
            overflow_bytes: 0,
            role: Name::new(b"worker"),
            ..Entry::new(key(1))
        };
        assert_eq!(taken(&live), [expected]);
        assert_eq!(taken(&live), []);
        live.put_back(&expected);
        assert_eq!(taken(&live), [expected]);
        live.measures(seat, Peak::Exact(100));
        let later = Entry {
            runs: 0,
            threads: 1,
            peak_bytes: 100,
            ..expected
        };
        assert_eq!(taken(&live), [later]);
        live.measures(seat, Peak::Exact(100));
        live.forked();
        assert_eq!(taken(&live), []);
        live.measures(seat, Peak::Exact(100));
        // The child is a run of its own.
        assert_eq!(taken(&live), [Entry { runs: 1, ..later }]);
    }

    #[test]
    fn notes_say_what_was_seen_so_far_of_who_ended_and_who_runs() {
        let live = Box::new(Live::new());
        let seat = live.enter(&key(1), Name::NONE).unwrap();
        live.creates(seat, Asked::Default(65536));
        assert_eq!(live.so_far(seat), None);
        // The first, one that is deeper, and whenever they are twice as many.
        let peaks = [5000, 4000, 4000, 6000, 6000, 1, 1, 1, 1];
        let is_worth = peaks.map(|it| live.measures(seat, Peak::Exact(it)));
        let expected = [true, true, false, true, false, false, false, true, false];
        assert_eq!(is_worth, expected);
        let noted = Entry {
            runs: 1,
            threads: 9,
            peak_bytes: 6000,
            given_bytes: 65536,
            ..Entry::new(key(1))
        };
        assert_eq!(live.so_far(seat), Some(noted));
        // Three of them run, one of which is deeper, and they count once.
        assert!(live.reaches(seat, 7000) && !live.reaches(seat, 7000));
        assert!(live.runs_now(seat, 3) && !live.runs_now(seat, 3));
        live.measures(seat, Peak::Exact(7000));
        let noted = Entry {
            threads: 12,
            peak_bytes: 7000,
            ..noted
        };
        assert_eq!(live.so_far(seat), Some(noted));
        // For the profile each counts when it is measured at its end, or that of the process.
        assert_eq!(
            taken(&live),
            [Entry {
                threads: 10,
                ..noted
            }]
        );
        assert_eq!(live.so_far(seat), None);
        assert_eq!(live.learned(seat).peak_bytes, 7000);
    }

    #[test]
    fn what_the_profile_said_and_what_was_seen_is_known_together() {
        let live = Box::new(Live::new());
        let said = Entry {
            runs: 4,
            threads: 7,
            peak_bytes: 5000,
            ..Entry::new(key(1))
        };
        live.load(&said);
        let seat = live.enter(&key(1), Name::NONE).unwrap();
        live.measures(seat, Peak::Exact(6000));
        let learned = Learned {
            runs: 4,
            threads: 8,
            peak_bytes: 6000,
            has_overflowed: false,
            was_refused: false,
        };
        assert_eq!(live.learned(seat), learned);
        live.refuses(seat);
        live.overflows(seat, 0);
        let troubled = Learned {
            has_overflowed: true,
            was_refused: true,
            ..learned
        };
        assert_eq!(live.learned(seat), troubled);
        assert_eq!(taken(&live).first().map(|it| it.overflow_bytes), Some(1));
        let overflowed = Entry {
            overflow_bytes: 4096,
            ..Entry::new(key(2))
        };
        live.load(&overflowed);
        let other = live.enter(&key(2), Name::NONE).unwrap();
        assert!(live.learned(other).has_overflowed);
        // It is in the profile already.
        assert_eq!(taken(&live), []);
    }

    #[test]
    fn a_full_table_knows_the_first_and_counts_the_others() {
        let live = Box::new(Live::new());
        let many = if cfg!(miri) { 0..8 } else { 0..Live::SEATS };
        for offset in many {
            live.enter(&key(offset), Name::NONE).unwrap();
        }
        if cfg!(miri) {
            return;
        }
        assert_eq!(live.enter(&key(Live::SEATS), Name::NONE), None);
        assert_eq!(live.left_out(), 1);
        let seat = live.enter(&key(7), Name::NONE).unwrap();
        assert_eq!(live.key(seat), Some((key(7), Name::NONE)));
    }

    #[test]
    fn threads_that_see_at_once_lose_nothing() {
        let live = Box::new(Live::new());
        let rounds = if cfg!(miri) { 5 } else { 2000 };
        let mut taken = Vec::new();
        let mut times = 0;
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        for round in 0..rounds {
                            let seat = live.enter(&key(round % 5), Name::NONE).unwrap();
                            live.measures(seat, Peak::Exact(round as u64));
                        }
                    })
                })
                .collect();
            // An interpreter takes long for the whole table.
            while workers.iter().any(|it| !it.is_finished()) && (!cfg!(miri) || times < 2) {
                live.take(|entry| taken.push(entry));
                times += 1;
            }
        });
        live.take(|entry| taken.push(entry));
        let threads: u64 = taken.iter().map(|it| it.threads).sum();
        assert_eq!(threads, 4 * rounds as u64);
        let peak = taken.iter().map(|it| it.peak_bytes).max();
        assert_eq!(peak, Some(rounds as u64 - 1));
    }
}
