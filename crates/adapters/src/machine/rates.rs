//! Rates of counters that only grow.

use std::collections::HashMap;

use milieu_transfer::{Span, Time};

/// What `N` counters of each of several things were at the last look.
pub(super) struct Rates<const N: usize> {
    looked: Option<Time>,
    elapsed: Option<Span>,
    before: HashMap<String, [u64; N]>,
    after: HashMap<String, [u64; N]>,
}

impl<const N: usize> Rates<N> {
    pub(super) fn new() -> Rates<N> {
        Rates {
            looked: None,
            elapsed: None,
            before: HashMap::new(),
            after: HashMap::new(),
        }
    }

    /// Begins another look. Things that the last one did not see are forgotten.
    pub(super) fn look(&mut self, now: Time) {
        self.elapsed = self.looked.map(|looked| now - looked);
        self.looked = Some(now);
        self.before = std::mem::take(&mut self.after);
    }

    /// By how much each counter has grown in a second; nothing at the first
    /// look, and where a counter or the clock went back.
    pub(super) fn of(&mut self, name: &str, counters: [u64; N]) -> Option<[f64; N]> {
        self.after.insert(name.to_owned(), counters);
        let before = self.before.get(name)?;
        let elapsed = self.elapsed.filter(|elapsed| *elapsed > Span::ZERO)?;
        let mut rates = [0.0; N];
        for (rate, (before, after)) in rates.iter_mut().zip(before.iter().zip(counters)) {
            *rate = after.checked_sub(*before)? as f64 / elapsed.seconds();
        }
        Some(rates)
    }
}
