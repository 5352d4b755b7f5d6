//! Threads with roles, of which the time-critical ones come first.
//!
//! A program starts a [`Mediator`], and begins threads that say what they are for
//! before they exist. While one of them is time-critical, all others of the
//! program wait in the lazy region, by the best means that the system lets the
//! program have ([`Rung`]); when none is any more, every thread is as it was.
//!
//! ```
//! use milieu::threads::{Mediator, Priority};
//!
//! # fn main() -> Result<(), milieu::Error> {
//! let mediator = Mediator::start()?;
//! let probe = mediator
//!     .thread("gas-detection")?
//!     .critical(Priority::new(-5)?)
//!     .spawn(|| 42)
//!     .map_err(milieu::Error::System)?;
//! assert!(probe.attributes().is_time_critical());
//! assert_eq!(probe.join().ok(), Some(42));
//! # Ok(())
//! # }
//! ```
//!
//! A role is the rest of a name in Milieu's tree: the threads of the role `pool`
//! are those of the name `/pool`. What stands below it can be contextual values
//! ([`Mediator::follow`]), so that a layer makes a whole pool lazy; thread-based
//! layers select by it ([`Mediator::context`]); and what was learned of stacks is
//! kept there ([`Mediator::persist_stacks`]).
//!
//! | name | says | |
//! |---|---|---|
//! | `/pool/critical` | whether they are time-critical | a boolean |
//! | `/pool/priority` | their order among critical threads | a nice value |
//! | `/pool/region` | the best region that they may be in | `fast`, `own` or `lazy` |
//! | `/pool/stack` | the size of their stacks | bytes; 0 is the usual size |
//! | `/pool/stack/learned/…` | what was seen of their stacks | kept by Milieu |
//!
//! What belongs to a program that links nothing, and to the whole device, is the
//! preload's and the device's mediator's: see `milieu thread`.
//!
//! Properties kept:
//! - a program never fails by being mediated: a thread that finds no place in the
//!   table, or that the kernel refuses to move, runs as if nobody had asked;
//! - nothing is printed, and nothing is written but by `persist_stacks`, until a stack
//!   that is measured overflows: that is said on the standard error output and noted,
//!   and then the program ends as it would have;
//! - no thread inherits a region: what a critical or a lazy one begins has what
//!   that had without being mediated.

mod builder;
mod device;
mod follow;
mod handle;
mod keeper;
mod living;
mod mediator;
mod mutex;
mod options;
mod overflows;
mod roles;
mod stacks;

pub use builder::{Spawned, ThreadBuilder};
pub use follow::NoValues;
pub use handle::Thread;
pub use mediator::Mediator;
pub use mutex::{Mutex, MutexGuard};
pub use options::Options;

/// Why a lock is had in the end: only who has it already is refused, and nobody here asks twice
/// or from a signal's handler.
const NO_HANDLER: &str = "no handler of a signal asks for it";

#[doc(no_inline)]
pub use milieu_threads::{
    attributes::{Attributes, Invalid, Priority, Role, StackSize},
    kernel::Errno,
    mediator::Settings,
    program::StartError,
    rung::{Obstacle, Report, Return, Rung, best, probe},
    stack::{Learned, Mode, Policy, Zone, Zones},
    table::{Entry, Region, Scheduling, TableError, View},
};
