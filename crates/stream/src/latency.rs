//! How long events take on their way, in histograms.

use std::ops::AddAssign;

use milieu_transfer::{Event, Span, Time};

/// The first edge, as a power of two: what took less is in the first bucket.
const FIRST: u32 = 10;
/// The last edge, as a power of two: what took longer is in the last bucket.
const LAST: u32 = 42;
/// Buckets in each octave, as a power of two.
const PARTS: u32 = 2;
/// How many buckets there are.
const BUCKETS: usize = 1 + ((LAST - FIRST) << PARTS) as usize + 1;

/// Durations, counted in buckets from a microsecond to an hour, each a quarter
/// of an octave wide: what is read from it is at most an eighth from the truth.
///
/// Counts only grow, so that the difference of two is what came between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    nanoseconds_total: u64,
    nanoseconds_max: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            nanoseconds_total: 0,
            nanoseconds_max: 0,
        }
    }
}

impl Latency {
    /// Enters a duration. One below zero, by clocks that differ, is zero.
    pub fn enter(&mut self, span: Span) {
        let nanoseconds = u64::try_from(span.nanoseconds()).unwrap_or(0);
        self.counts[bucket(nanoseconds)] += 1;
        self.count += 1;
        self.nanoseconds_total = self.nanoseconds_total.saturating_add(nanoseconds);
        self.nanoseconds_max = self.nanoseconds_max.max(nanoseconds);
    }

    /// How many durations there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, in seconds.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "53 bits of a sum are enough")]
    pub fn seconds_total(&self) -> f64 {
        self.nanoseconds_total as f64 / 1e9
    }

    /// What this part of them, of 1, did not exceed. Nothing: there are none.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank among counts"
    )]
    pub fn quantile(&self, part: f64) -> Option<Span> {
        let rank = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        let middle = u64::midpoint(edge(at), edge(at + 1)).min(self.nanoseconds_max);
        Some(Span::from_nanoseconds(middle as i64))
    }

    /// The longest. Nothing: there are none.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        let longest = i64::try_from(self.nanoseconds_max).unwrap_or(i64::MAX);
        (self.count > 0).then(|| Span::from_nanoseconds(longest))
    }

    /// What has come since an earlier state of it. The longest is then known as
    /// well as its bucket is.
    #[must_use]
    pub fn since(&self, earlier: &Latency) -> Latency {
        let mut since = self.clone();
        for (count, before) in since.counts.iter_mut().zip(&*earlier.counts) {
            *count = count.saturating_sub(*before);
        }
        since.count = since.counts.iter().sum();
        since.nanoseconds_total = self
            .nanoseconds_total
            .saturating_sub(earlier.nanoseconds_total);
        let last = since.counts.iter().rposition(|count| *count > 0);
        let last = last.map_or(0, |last| edge(last + 1));
        since.nanoseconds_max = self.nanoseconds_max.min(last);
        since
    }

    /// Edges in seconds, each with how many took less: one edge in two octaves.
    #[allow(clippy::cast_precision_loss, reason = "edges are powers of two")]
    pub fn edges(&self) -> impl Iterator<Item = (f64, u64)> {
        let step = 2 << PARTS;
        (1..BUCKETS).step_by(step).map(|at| {
            let seconds = edge(at) as f64 / 1e9;
            (seconds, self.counts[..at].iter().sum())
        })
    }
}

impl AddAssign<&Latency> for Latency {
    fn add_assign(&mut self, more: &Latency) {
        for (count, more) in self.counts.iter_mut().zip(&*more.counts) {
            *count += more;
        }
        self.count += more.count;
        self.nanoseconds_total = self
            .nanoseconds_total
            .saturating_add(more.nanoseconds_total);
        self.nanoseconds_max = self.nanoseconds_max.max(more.nanoseconds_max);
    }
}

/// How long the events of a subscriber took, of those that were measured.
///
/// They arrive when they are handed to a callback, or taken from a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// From when an event was published here, or an operator was due that made
    /// something of earlier ones.
    pub latency: Latency,
    /// From when what it says was so: [`Header::age`](milieu_transfer::Header::age).
    pub age: Latency,
}

impl Delays {
    /// Enters an event that was published at a time and has arrived now.
    pub fn enter(&mut self, event: &Event, published: Time, now: Time) {
        self.latency.enter(now - published);
        self.age.enter(event.header().age(now));
    }

    /// What has come since an earlier state of them.
    #[must_use]
    pub fn since(&self, earlier: &Delays) -> Delays {
        Delays {
            latency: self.latency.since(&earlier.latency),
            age: self.age.since(&earlier.age),
        }
    }
}

/// Which bucket.
fn bucket(nanoseconds: u64) -> usize {
    let octave = nanoseconds.max(1).ilog2();
    if octave < FIRST {
        return 0;
    }
    if octave >= LAST {
        return BUCKETS - 1;
    }
    let part = (nanoseconds >> (octave - PARTS)) & ((1 << PARTS) - 1);
    1 + ((octave - FIRST) << PARTS) as usize + part as usize
}

/// Where a bucket begins.
fn edge(bucket: usize) -> u64 {
    let Some(at) = bucket.checked_sub(1) else {
        return 0;
    };
    if bucket >= BUCKETS {
        return i64::MAX as u64;
    }
    let (octave, part) = (at as u32 >> PARTS, at as u64 & ((1 << PARTS) - 1));
    ((1 << PARTS) + part) << (octave + FIRST - PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spans: &[i64]) -> Latency {
        let mut latency = Latency::default();
        for span in spans {
            latency.enter(Span::from_nanoseconds(*span));
        }
        latency
    }

    #[test]
    fn what_is_read_is_near_the_truth() {
        let spans: Vec<i64> = (1..=10_000).map(|at| at * 3_000).collect();
        let latency = of(&spans);
        for (part, truth) in [(0.5, 15.0e6), (0.99, 29.7e6), (1.0, 30.0e6)] {
            let read = latency.quantile(part).unwrap().nanoseconds() as f64;
            assert!((read / truth - 1.0).abs() <= 0.125, "{part}: {read}");
        }
        assert_eq!(latency.max(), Some(Span::from_nanoseconds(30_000_000)));
        assert_eq!(latency.count(), 10_000);
        assert_eq!(Latency::default().quantile(0.5), None);
        assert_eq!(Latency::default().max(), None);
    }

    #[test]
    fn every_duration_lies_between_the_edges_of_its_bucket() {
        let near = (0..63).flat_map(|bits| [-1_i64, 0, 1].map(|by| (1_i64 << bits) + by));
        for nanoseconds in near.map(|it| it.max(0) as u64) {
            let at = bucket(nanoseconds);
            assert!(
                edge(at) <= nanoseconds && nanoseconds < edge(at + 1).max(1),
                "{nanoseconds}"
            );
        }
    }

    #[test]
    fn a_difference_is_what_came_between() {
        let before = of(&[5_000, 7_000_000_000]);
        let mut after = before.clone();
        after.enter(Span::from_nanoseconds(-3));
        after.enter(Span::from_nanoseconds(2_000_000));
        let between = after.since(&before);
        assert_eq!(between.count(), 2);
        assert_eq!(between.quantile(0.5), Some(Span::from_nanoseconds(512)));
        let longest = between.max().unwrap().nanoseconds() as f64;
        assert!((longest / 2e6 - 1.0).abs() <= 0.25, "{longest}");
        assert_eq!(between.edges().last().unwrap().1, 2);
        let counts: Vec<u64> = after.edges().map(|(_, count)| count).collect();
        assert!(counts.is_sorted());
    }
}
