//! Books: what went in, what came out, and what became of the rest.

use std::fmt;
use std::ops::AddAssign;

use crate::operator::{Fate, Reason, Settled};

/// The books of a node.
///
/// They balance: `received = passed + used + dropped + held`, where `held` is
/// counted from what the operator holds, and not kept in the books.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Events that came in.
    pub received: u64,
    /// Events that went on as they were.
    pub passed: u64,
    /// Events that went into what the node published, or into its state.
    pub used: u64,
    /// Events that went no further.
    pub dropped: Dropped,
    /// Events that the node has made and sent out.
    pub published: u64,
}

/// Counts of events that went no further, by reason.
#[derive(Clone, Default)]
pub struct Dropped(Option<Box<Counts>>);

/// Most nodes and queues never drop anything, so these lie apart.
type Counts = [u64; Reason::ALL.len()];

impl Dropped {
    /// Counts more.
    #[inline]
    pub fn add(&mut self, reason: Reason, count: u64) {
        let counts = self.0.get_or_insert_with(Box::default);
        counts[reason as usize] += count;
    }

    /// How many for this reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        self.0.as_ref().map_or(0, |counts| counts[reason as usize])
    }

    /// How many for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().flat_map(|counts| counts.iter()).sum()
    }

    /// The reasons that there were, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let counts = Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.of(reason)));
        counts.filter(|(_, count)| *count > 0)
    }
}

impl PartialEq for Dropped {
    fn eq(&self, other: &Dropped) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Dropped {}

impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl AddAssign<&Books> for Books {
    fn add_assign(&mut self, more: &Books) {
        self.received += more.received;
        self.passed += more.passed;
        self.used += more.used;
        self.published += more.published;
        for (reason, count) in more.dropped.iter() {
            self.dropped.add(reason, count);
        }
    }
}

impl Books {
    /// Whether every event is accounted for, given how many are held.
    ///
    /// # Errors
    /// With what is missing (positive) or too many (negative).
    pub fn balance(&self, held: u64) -> Result<(), i128> {
        let went = [self.passed, self.used, self.dropped.total(), held];
        let went: i128 = went.into_iter().map(i128::from).sum();
        match i128::from(self.received) - went {
            0 => Ok(()),
            missing => Err(missing),
        }
    }

    /// Events that went out: those that passed, and those that the node made.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.passed + self.published
    }

    /// Enters the fate of an event that came in.
    #[inline]
    pub(crate) fn enter(&mut self, fate: Fate) {
        self.received += 1;
        match fate {
            Fate::Passed => self.passed += 1,
            Fate::Used => self.used += 1,
            Fate::Held => {}
            Fate::Dropped(reason) => self.dropped.add(reason, 1),
        }
    }

    /// Enters what became of events that were held.
    pub(crate) fn settle(&mut self, settled: &mut Settled) {
        self.passed += std::mem::take(&mut settled.passed);
        self.used += std::mem::take(&mut settled.used);
        for (reason, count) in settled.dropped.drain(..) {
            self.dropped.add(reason, count);
        }
    }
}
