//! Driving sources: polling each when its time or its descriptor has come.
//!
//! ```text
//!  add, remove ──▶ commands ──▶ ┌────── one thread ──────┐
//!                               │ epoll: descriptors,    │ ──▶ callback(source,
//!  clock ───────▶ timerfd ────▶ │ wake-ups, next time    │       events, status)
//!                               └────────────────────────┘
//! ```
//!
//! [`Driver`] does it in real time, in one thread for all sources; [`Stepped`]
//! in whatever time a test says it is, without a thread.
//!
//! Properties kept:
//! - a source that panics is taken out and told as failing; the others go on;
//! - no lock is held while a source or the callback runs, so both may call the
//!   driver;
//! - times are those of the wall clock: when the clock is set, or the machine
//!   has slept, every source is polled and says again what it waits for; where
//!   streams have another clock they are times of that;
//! - what a source costs that waits is one entry in an ordered set.

mod clock;
mod driver;
mod polled;
mod stepped;
mod waiting;
mod wake;

pub use driver::{Driver, SourceId};
pub use stepped::Stepped;
pub use wake::Wake;
