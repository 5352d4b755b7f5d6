//! For how long lazy threads have waited, and whether they go on by themselves.

/// So many spans of the same length are told apart of the longest wait.
const SPANS: usize = 128;

/// So many threads for each processor may come between two of which one has waited for
/// longer: they take turns on each, and are taken from one to the other.
pub const OUT_OF_ORDER: u64 = 8;

/// How many threads have waited for how long.
#[derive(Debug)]
pub struct Ages {
    wait_ns: u64,
    waiting: u64,
    /// By spans; the last are those that have waited for too long.
    counts: [u32; SPANS + 1],
}

/// What is known of them beside that.
#[derive(Debug)]
pub struct Known {
    /// How many have gone on by themselves, in how much time.
    pub gone_on: u64,
    pub gone_on_ns: u64,
    /// When there is the next look.
    pub pace_ns: u64,
    /// A thread's part of a turn.
    pub part_ns: u64,
    pub processors: u64,
}

impl Ages {
    /// Nobody yet, who may wait for so long.
    pub fn of(wait_ns: u64) -> Ages {
        Ages {
            wait_ns,
            waiting: 0,
            counts: [0; SPANS + 1],
        }
    }

    /// A thread has waited for so long.
    pub fn add(&mut self, age_ns: u64) {
        let span = (age_ns / self.span_ns()).min(SPANS as u64);
        self.counts[span as usize] += 1;
        self.waiting += 1;
    }

    fn span_ns(&self) -> u64 {
        (self.wait_ns / SPANS as u64).max(1)
    }

    /// Whether everybody goes on soon enough without a turn, so that it is not too late for
    /// one at the next look: as they go on one after another, each has his part when those
    /// have had theirs who have waited for longer.
    pub fn go_on_in_time(&self, known: &Known) -> bool {
        let out_of_order = OUT_OF_ORDER * known.processors + self.waiting - self.in_order(known);
        let mut before = 0;
        let mut oldest_first = self.counts.iter().enumerate().rev();
        oldest_first.all(|(span, count)| {
            before += u64::from(*count);
            // Critical threads have a part as well.
            let parts = (before + out_of_order).min(self.waiting) + 1;
            let takes_ns = known.part_ns.saturating_mul(parts);
            let age_ns = (span as u64 + 1) * self.span_ns();
            let by = age_ns.saturating_add(takes_ns);
            *count == 0 || by.saturating_add(known.pace_ns) <= self.wait_ns
        })
    }

    /// Whether they go on one after another, so that it matters when each was seen last.
    pub fn are_in_order(&self, known: &Known) -> bool {
        self.in_order(known) > 0
    }

    /// How many of them go on one after another.
    ///
    /// All do, if a quarter more go on than wait before they have waited for too long. Where
    /// it is no more than these, it is perhaps always the same.
    fn in_order(&self, known: &Known) -> u64 {
        let gone_on = u128::from(known.gone_on) * u128::from(self.wait_ns);
        let go_on = gone_on / u128::from(known.gone_on_ns.max(1));
        let beyond = go_on.saturating_sub(u128::from(self.waiting));
        (4 * beyond).min(u128::from(self.waiting)) as u64
    }
}
