//! Doing something every so often.

use std::time::Duration;

use milieu_stream::Wait;
use milieu_transfer::{Span, Time};

/// Shorter ones would leave a processor no rest.
const SHORTEST: Span = Span::from_nanoseconds(1_000_000);

/// Points in time that lie so far apart, aligned to the clock, so that sources
/// of one interval are polled together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    length: Span,
    due: Option<Time>,
}

impl Interval {
    /// An interval of at least one millisecond, due at once.
    pub(crate) fn new(length: Duration) -> Interval {
        Interval {
            length: Span::from(length).max(SHORTEST),
            due: None,
        }
    }

    /// Whether its time has come; then the next one is later. A clock that was
    /// set back makes it come at once.
    pub(crate) fn begins(&mut self, now: Time) -> bool {
        let waits = |due: Time| now < due && due - now <= self.length;
        if self.due.is_some_and(waits) {
            return false;
        }
        self.due = Some(now.aligned(self.length) + self.length);
        true
    }

    /// The time that comes next.
    pub(crate) fn wait(&self) -> Wait {
        Wait::Until(self.due.unwrap_or(Time::MIN))
    }
}

/// How long after a peer was not there it is looked for again.
const RETRY: Span = Span::from_seconds(1);

/// When to look again for a peer that is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry(Time);

impl Retry {
    /// At once.
    pub(crate) fn new() -> Retry {
        Retry(Time::MIN)
    }

    /// Whether the time has come. A clock that was set back makes it come.
    pub(crate) fn is_due(self, now: Time) -> bool {
        self.0 <= now || self.0 - now > RETRY
    }

    /// After the next second.
    pub(crate) fn later(&mut self, now: Time) {
        self.0 = now + RETRY;
    }

    pub(crate) fn wait(self) -> Wait {
        Wait::Until(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_aligned_and_missed_ones_are_left_out() {
        let at = Time::from_seconds;
        let mut interval = Interval::new(Duration::from_secs(10));
        assert!(interval.begins(at(13)));
        assert_eq!(interval.wait(), Wait::Until(at(20)));
        assert!(!interval.begins(at(19)));
        assert!(interval.begins(at(20)));
        assert!(interval.begins(at(57)));
        assert_eq!(interval.wait(), Wait::Until(at(60)));
    }

    #[test]
    fn a_clock_that_was_set_back_stops_nothing() {
        let at = Time::from_seconds;
        let mut interval = Interval::new(Duration::from_secs(10));
        assert!(interval.begins(at(5000)));
        assert!(interval.begins(at(1000)));
        assert_eq!(interval.wait(), Wait::Until(at(1010)));
    }

    #[test]
    fn no_interval_is_empty() {
        let mut interval = Interval::new(Duration::ZERO);
        let now = Time::from_seconds(1);
        assert!(interval.begins(now));
        assert!(!interval.begins(now));
    }
}
