//! One line of the thread information table: 64 bytes behind a sequence lock.
//!
//! ```text
//!  byte 0        4      8         16                       32                40 … 63
//!  ┌──────────┬──────┬──────────┬──────────┬─────────────┬─────────────────┬────────┐
//!  │ sequence │ tid  │ identity │ created, │ stack, peak │ critical,       │  role  │
//!  │          │      │ 0: free  │ own      │ (KiB each)  │ priority, region│        │
//!  │          │      │          │ policy   │             │ stack asked for │        │
//!  └──────────┴──────┴──────────┴──────────┴─────────────┴─────────────────┴────────┘
//! ```
//!
//! The sequence is odd while somebody writes. Who reads takes no lock and never
//! writes: it reads the sequence, the words and the sequence again, and once more
//! if they differ. Who writes makes the sequence odd, which keeps others who write
//! to the same line away for the few instructions that it takes. Everything is
//! atomic, so a torn line is never more than words that do not belong together,
//! and those are not let out.

use crate::sync::{ATTEMPTS, AtomicU32, AtomicU64, Ordering, fence, pause};

/// How many words follow the identity.
const WORDS: usize = 6;

/// What a line says, as its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bits {
    pub tid: u32,
    /// Who it is about; 0 in a free line.
    pub identity: u64,
    pub words: [u64; WORDS],
}

/// Somebody has been writing to the line for longer than anybody should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held;

#[repr(C, align(64))]
pub(super) struct Line {
    sequence: AtomicU32,
    tid: AtomicU32,
    identity: AtomicU64,
    words: [AtomicU64; WORDS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == super::LINE_BYTES);

impl Line {
    /// A free line.
    #[cfg(any(test, loom))]
    pub fn new() -> Line {
        Line {
            sequence: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            identity: AtomicU64::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Who it seems to be about, for finding it; true only once it was read.
    #[inline]
    pub fn identity_hint(&self) -> u64 {
        self.identity.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn tid_hint(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// What is taken from it, all of it from one moment.
    #[inline]
    pub fn read<R>(&self, what: impl Fn(&Line) -> R) -> Result<R, Held> {
        match self.try_read(&what) {
            Some(said) => Ok(said),
            None => self.read_patiently(what),
        }
    }

    #[cold]
    fn read_patiently<R>(&self, what: impl Fn(&Line) -> R) -> Result<R, Held> {
        for attempt in 0..ATTEMPTS {
            pause(attempt);
            if let Some(said) = self.try_read(&what) {
                return Ok(said);
            }
        }
        Err(Held)
    }

    /// The same, if nobody is writing to it.
    #[inline]
    pub fn try_read<R>(&self, what: impl Fn(&Line) -> R) -> Option<R> {
        // What was written before the sequence became even is seen from here on.
        let before = self.sequence.load(Ordering::Acquire);
        let said = what(self);
        // If any of it was written later, so is the sequence that is seen now, which
        // never is less by one.
        fence(Ordering::Acquire);
        let after = self.sequence.load(Ordering::Relaxed);
        (before & !1 == after).then_some(said)
    }

    /// The words of a thread's attributes; of one moment if [`Line::read`] takes them.
    #[inline]
    pub fn last_words(&self) -> [u64; 4] {
        let [.., a, b, c, d] = &self.words;
        [a, b, c, d].map(|it| it.load(Ordering::Relaxed))
    }

    /// All of it; of one moment if [`Line::read`] takes it.
    #[inline]
    pub fn bits(&self) -> Bits {
        let mut words = [0; WORDS];
        for (word, from) in words.iter_mut().zip(&self.words) {
            *word = from.load(Ordering::Relaxed);
        }
        Bits {
            tid: self.tid.load(Ordering::Relaxed),
            identity: self.identity.load(Ordering::Relaxed),
            words,
        }
    }

    /// Changes what it says; the change sees what it said. Without a change,
    /// nothing is written.
    #[inline]
    pub fn write<R>(&self, change: impl FnOnce(&mut Bits) -> R) -> Result<R, Held> {
        let held = self.hold()?;
        let before = self.bits();
        let mut bits = before;
        let result = change(&mut bits);
        if bits.tid != before.tid {
            self.tid.store(bits.tid, Ordering::Relaxed);
        }
        if bits.identity != before.identity {
            self.identity.store(bits.identity, Ordering::Relaxed);
        }
        for ((word, old), to) in bits.words.iter().zip(before.words).zip(&self.words) {
            if *word != old {
                to.store(*word, Ordering::Relaxed);
            }
        }
        drop(held);
        Ok(result)
    }

    #[inline]
    fn hold(&self) -> Result<Holding<'_>, Held> {
        let sequence = self.sequence.load(Ordering::Relaxed);
        if self.try_hold(sequence) {
            return Ok(Holding(self, sequence));
        }
        self.hold_patiently()
    }

    #[cold]
    fn hold_patiently(&self) -> Result<Holding<'_>, Held> {
        for attempt in 0..ATTEMPTS {
            pause(attempt);
            let sequence = self.sequence.load(Ordering::Relaxed);
            if self.try_hold(sequence) {
                return Ok(Holding(self, sequence));
            }
        }
        Err(Held)
    }

    #[inline]
    fn try_hold(&self, sequence: u32) -> bool {
        let odd = sequence.wrapping_add(1);
        let exchanged = sequence % 2 == 0
            && self
                .sequence
                .compare_exchange(sequence, odd, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if exchanged {
            // Who sees any of what is written now sees the odd sequence too.
            fence(Ordering::Release);
        }
        exchanged
    }
}

/// A line that nobody else writes to; let go in the end, come what may.
struct Holding<'l>(&'l Line, u32);

impl Drop for Holding<'_> {
    #[inline]
    fn drop(&mut self) {
        let even = self.1.wrapping_add(2);
        self.0.sequence.store(even, Ordering::Release);
    }
}
