//! Whether two operators that lie apart do the same from now on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use milieu_transfer::{Event, Time};

use super::{Apart, Job};
use crate::operator::{Fate, Operator, Output};

/// Only those are like it that are like any other one, as they remember nothing.
struct Nobody;

impl Operator for Nobody {
    fn event(&mut self, _: usize, _: &Event, _: &mut Output<'_>) -> Fate {
        Fate::Used
    }
}

/// Whether an operator does the same whatever has come before.
pub(super) fn remembers_nothing(operator: &dyn Operator) -> bool {
    operator.is_like(&Nobody, Time::MIN)
}

impl Apart {
    /// The same has to be under way. Where operators remember something that has
    /// to be nothing: what they remember is known when they are done.
    pub(super) fn is_like_apart(&self, other: &Apart, now: Time) -> bool {
        if self.remembers_nothing && other.remembers_nothing {
            return match (self.under_way(), other.under_way()) {
                (Some(ours), Some(theirs)) => {
                    let mut pairs = ours.iter().zip(&theirs);
                    ours.len() == theirs.len() && pairs.all(|(our, their)| our.is(their))
                }
                _ => false,
            };
        }
        let Some(ours) = self.idle() else {
            return false;
        };
        let like = other.idle().is_some_and(|theirs| {
            let like = catch_unwind(AssertUnwindSafe(|| ours.is_like(&*theirs, now)));
            other.desk.state().operator = Some(theirs);
            like.unwrap_or_default()
        });
        self.desk.state().operator = Some(ours);
        like
    }

    /// What is to be done yet, unless something is to be fetched first.
    fn under_way(&self) -> Option<Vec<Job>> {
        let state = self.desk.state();
        let at_work = state.at_work.iter().map(|work| &work.job);
        let jobs = at_work.chain(&state.waiting).cloned();
        (state.done.is_empty() && self.broken.is_none()).then(|| jobs.collect())
    }

    /// Takes the operator, where nothing is under way and nobody comes for it.
    fn idle(&self) -> Option<Box<dyn Operator>> {
        let mut state = self.desk.state();
        let is_idle = state.waiting.is_empty()
            && state.done.is_empty()
            && state.at_work.is_none()
            && state.called.is_none()
            && self.broken.is_none();
        is_idle.then(|| state.operator.take())?
    }
}

impl Job {
    /// Whether it is the same, and not only an equal one.
    fn is(&self, other: &Job) -> bool {
        match (self, other) {
            (Job::Event(our_input, ours), Job::Event(their_input, theirs)) => {
                our_input == their_input && ours.is(theirs)
            }
            (Job::Wake, Job::Wake) => true,
            _ => false,
        }
    }
}
