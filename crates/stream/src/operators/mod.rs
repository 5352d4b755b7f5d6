//! The operators that flows may name.
//!
//! An operator is a state machine: it has no clock, no thread and no I/O, and
//! says of every event what has become of it. What follows from that:
//!
//! - the time of an event decides what it belongs to; the time handed in decides
//!   when something is over. So one wrong timestamp stalls nothing;
//! - what an operator remembers is bounded, and what does not fit is dropped as
//!   [`Reason::Overflow`](crate::Reason::Overflow);
//! - an operator that is restored from a snapshot goes on as the first one would;
//! - two that are like each other make the same of all that comes.

mod aggregate;
mod arguments;
mod change;
mod debounce;
mod deduplicate;
mod extreme;
mod filter;
mod groups;
mod hysteresis;
mod join;
mod key;
mod keyed;
mod members;
mod merge;
mod outliers;
mod parameters;
mod quality;
mod sample;
pub(crate) mod state;
mod terms;
mod throttle;
mod timers;
mod transform;
mod vote;

pub use filter::{Condition, Filters};
pub(crate) use quality::carried;
pub use terms::Computation;

use crate::catalogue::{Catalogue, Definition};
use crate::operator::Operator;

/// What a reader of the documentation learns of an operator.
#[derive(Debug)]
pub struct Page {
    /// The operator and its parameters.
    pub definition: &'static Definition,
    /// What there is to know beyond its summary, in Markdown.
    pub details: &'static str,
    /// Worked examples, which tests run.
    pub examples: &'static [Example],
}

/// What an operator makes of some events.
///
/// A line `SECOND NAME BODY`, as `3 /weather/temperature 21.5`, is an event that
/// comes in when it happens; its body is JSON, and `! what is wrong` behind it
/// says that its sensor has failed. `clock SECOND` lets time pass. What is
/// published then has a line `@SECOND BODY` with the second at which it is.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What it shows.
    pub shows: &'static str,
    /// The flow, as a pipeline.
    pub flow: &'static str,
    /// What happens and what is published, line by line.
    pub lines: &'static str,
}

/// All operators, in the order in which one learns them.
#[must_use]
pub fn pages() -> &'static [&'static Page] {
    &PAGES
}

static PAGES: [&Page; 15] = [
    &filter::PAGE,
    &transform::PAGE,
    &merge::PAGE,
    &aggregate::PAGE,
    &change::PAGE,
    &extreme::PAGE,
    &vote::PAGE,
    &outliers::PAGE,
    &deduplicate::PAGE,
    &debounce::PAGE,
    &hysteresis::PAGE,
    &join::PAGE,
    &sample::PAGE,
    &throttle::PAGE,
    &members::PAGE,
];

/// A catalogue of all operators, without any Rust functions.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue::new(PAGES.iter().map(|page| page.definition))
}

/// Whether something holds of another operator, which is to be of this type.
pub(crate) fn alike<T: Operator + 'static>(
    other: &dyn Operator,
    like: impl FnOnce(&T) -> bool,
) -> bool {
    other
        .as_any()
        .and_then(|other| other.downcast_ref())
        .is_some_and(like)
}
