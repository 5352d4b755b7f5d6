//! When news about a path is passed on: soon, but not in the middle of a burst.
//!
//! ```text
//!              began, vanished                      quiet for `unfinished`
//!          ┌───────────────────▶ unfinished ─────────────────────────────┐
//!   idle ──┤                      │      ▲                               ├─▶ due
//!          └───────────────────▶ finished ───────────────────────────────┘
//!              finished, touched                    quiet for `quiet`
//! ```
//!
//! Whatever happens, a path is due `at_most` after its first news. Nothing here
//! asks a clock: every call is told the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Id;

/// How long news is held back, and how often is looked where the system tells nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// So long nothing more may happen to a file before a finished change of it
    /// is news. What happens in quicker succession is one change. 2 ms.
    pub quiet: Duration,
    /// The same for a file that somebody writes in place and has not closed
    /// yet, one that has vanished and may come back, and one that cannot be
    /// understood. 50 ms.
    pub unfinished: Duration,
    /// News is held back no longer than this, even if there is no quiet. 1 s.
    pub at_most: Duration,
    /// So often is looked at files that change without the kernel telling: on
    /// network file systems, below folders that may not be listed, and above
    /// the limit of watches. Nothing for never. 5 s.
    pub look: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            quiet: Duration::from_millis(2),
            unfinished: Duration::from_millis(50),
            at_most: Duration::from_secs(1),
            look: Some(Duration::from_secs(5)),
        }
    }
}

/// What an event says about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Something is different; whether all of it is there is known from
    /// earlier signs, and without such it is.
    Touched,
    /// A change has begun, and more of it will follow.
    Begun,
    /// A change is complete.
    Finished,
}

/// The paths about which there is news that is not passed on yet.
#[derive(Debug)]
pub(super) struct Calm {
    pace: Pace,
    waiting: BTreeMap<Id, Waiting>,
    /// When somebody wants to look again, news or not.
    again: BTreeMap<Id, Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    first: Instant,
    last: Instant,
    finished: bool,
}

impl Calm {
    pub fn new(pace: Pace) -> Calm {
        Calm {
            pace,
            waiting: BTreeMap::new(),
            again: BTreeMap::new(),
        }
    }

    /// Something happened to a path.
    pub fn note(&mut self, id: Id, sign: Sign, now: Instant) {
        let waiting = self.waiting.entry(id).or_insert(Waiting {
            first: now,
            last: now,
            finished: true,
        });
        waiting.last = now;
        match sign {
            Sign::Touched => {}
            Sign::Begun => waiting.finished = false,
            Sign::Finished => waiting.finished = true,
        }
    }

    /// Makes a path due at that time, whatever happens to it.
    pub fn again(&mut self, id: Id, at: Instant) {
        let earliest = self.again.entry(id).or_insert(at);
        *earliest = at.min(*earliest);
    }

    /// Forgets what happened to a path.
    pub fn forget(&mut self, id: Id) {
        self.waiting.remove(&id);
        self.again.remove(&id);
    }

    /// When the next path is due, unless something happens before.
    pub fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.values().map(|waiting| self.due_at(waiting));
        waiting.chain(self.again.values().copied()).min()
    }

    /// Takes out the paths that are due.
    pub fn due(&mut self, now: Instant) -> Vec<Id> {
        let waiting = self.waiting.iter();
        let due = waiting.filter(|(_, waiting)| self.due_at(waiting) <= now);
        let again = self.again.iter().filter(|(_, at)| **at <= now);
        let mut due: Vec<Id> = due
            .map(|(id, _)| *id)
            .chain(again.map(|(id, _)| *id))
            .collect();
        due.sort_unstable();
        due.dedup();
        for id in &due {
            self.forget(*id);
        }
        due
    }

    fn due_at(&self, waiting: &Waiting) -> Instant {
        let quiet = if waiting.finished {
            self.pace.quiet
        } else {
            self.pace.unfinished
        };
        (waiting.last + quiet).min(waiting.first + self.pace.at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Id = 1;
    const B: Id = 2;

    fn calm() -> (Calm, impl Fn(u64) -> Instant) {
        let start = Instant::now();
        (Calm::new(Pace::default()), move |ms| {
            start + Duration::from_millis(ms)
        })
    }

    #[test]
    fn nothing_is_due_and_nothing_is_waited_for_while_nothing_happens() {
        let (mut calm, at) = calm();
        assert_eq!(calm.deadline(), None);
        assert_eq!(calm.due(at(1_000_000)), []);
    }

    #[test]
    fn a_finished_change_is_due_after_a_short_quiet() {
        for sign in [Sign::Finished, Sign::Touched] {
            let (mut calm, at) = calm();
            calm.note(A, sign, at(0));
            assert_eq!(calm.deadline(), Some(at(2)));
            assert_eq!(calm.due(at(1)), []);
            assert_eq!(calm.due(at(2)), [A]);
            assert_eq!((calm.due(at(9)), calm.deadline()), (vec![], None));
        }
    }

    #[test]
    fn a_burst_is_one_change() {
        let (mut calm, at) = calm();
        for ms in 0..10 {
            calm.note(A, Sign::Finished, at(ms));
            assert_eq!(calm.due(at(ms)), []);
        }
        assert_eq!(calm.deadline(), Some(at(11)));
        assert_eq!(calm.due(at(11)), [A]);
    }

    #[test]
    fn a_file_that_is_being_written_is_left_alone_until_it_is_closed() {
        let (mut calm, at) = calm();
        calm.note(A, Sign::Begun, at(0));
        assert_eq!(calm.due(at(40)), []);
        calm.note(A, Sign::Begun, at(40));
        // A change of the permissions says nothing about the content.
        calm.note(A, Sign::Touched, at(45));
        assert_eq!(calm.due(at(80)), []);
        calm.note(A, Sign::Finished, at(80));
        assert_eq!(calm.due(at(81)), []);
        assert_eq!(calm.due(at(82)), [A]);
    }

    #[test]
    fn a_file_that_is_never_closed_is_news_when_the_writer_pauses() {
        let (mut calm, at) = calm();
        calm.note(A, Sign::Begun, at(0));
        assert_eq!(calm.due(at(49)), []);
        assert_eq!(calm.due(at(50)), [A]);
    }

    #[test]
    fn writing_without_end_does_not_hold_news_back_for_ever() {
        let (mut calm, at) = calm();
        let mut seen = Vec::new();
        for ms in 0..2500 {
            calm.note(A, Sign::Begun, at(ms));
            if !calm.due(at(ms)).is_empty() {
                seen.push(ms);
            }
        }
        assert_eq!(seen, [1000, 2001]);
    }

    #[test]
    fn paths_are_due_each_in_its_time_and_together_where_that_is_the_same() {
        let (mut calm, at) = calm();
        calm.note(A, Sign::Begun, at(0));
        calm.note(B, Sign::Touched, at(0));
        assert_eq!(calm.due(at(2)), [B]);
        calm.note(B, Sign::Touched, at(48));
        assert_eq!(calm.due(at(50)), [A, B]);
    }

    #[test]
    fn looking_again_does_not_need_news_and_happens_once() {
        let (mut calm, at) = calm();
        calm.again(A, at(10));
        calm.again(A, at(20));
        assert_eq!(calm.deadline(), Some(at(10)));
        assert_eq!(calm.due(at(10)), [A]);
        assert_eq!(calm.due(at(20)), []);
        // News that comes before is reason enough to look.
        calm.again(A, at(40));
        calm.note(A, Sign::Touched, at(30));
        assert_eq!(calm.due(at(32)), [A]);
        assert_eq!(calm.deadline(), None);
    }

    #[test]
    fn what_is_forgotten_is_never_due() {
        let (mut calm, at) = calm();
        calm.note(A, Sign::Touched, at(0));
        calm.again(A, at(5));
        calm.forget(A);
        assert_eq!((calm.deadline(), calm.due(at(9))), (None, vec![]));
    }
}
