//! The CPU mediator: which threads are in the fast region, and which wait in the
//! lazy region until it is empty (Thread Evolution Kit, section IV-A).
//!
//! [`Machine`] decides, without a clock, without system calls, and without
//! allocation: threads come and go, change what they are for, block, wait for
//! each other's locks; what is to be done about it comes out as [`Action`]s, to be
//! applied by a rung.
//!
//! A thread is *urgent* if it is time-critical and was not demoted, or if an
//! urgent thread waits for a lock that it has. Urgent threads are in the fast
//! region; as an option they leave it while they block. Then:
//!
//! | | fast region empty, or it is the lazy ones' turn | otherwise |
//! |---|---|---|
//! | urgent | own | fast, in the order of their priorities |
//! | excluded, or spared | own | own |
//! | critical, and out of the fast region while it blocks | own | own |
//! | bound to be lazy | lazy | lazy |
//! | any other | own, and where the lazy region changes nothing bound in the turn of others | lazy |
//!
//! *Own* is what the program wants: it is what a thread had, changed by what the
//! program has asked for since. In the paper only the end of a thread takes it
//! out of the fast region; a permanent critical thread would then keep the rest
//! lazy for ever, so its attributes, a demotion and turns do so too.
//!
//! Where a thread that has become lazy cannot return ([`Settings::is_reversible`]),
//! it is decided when it begins: it is lazy for as long as it lives unless it is
//! critical or excluded then.

mod machine;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::attributes::{Attributes, Priority};
use crate::table::{Region, Slot};

pub use machine::{Machine, Node, Watch};

/// How far a critical thread's urgency reaches along locks: it waits for a thread
/// that waits for a thread, and so on.
pub const BOOST_DEPTH: usize = 16;

/// What is told, once, where turns were too short.
pub const TOO_SHORT: &str = "so many threads want a processor beside critical ones that some wait \
     for longer than they may; more of the time for turns, or fewer critical threads, would help";

/// How the mediator works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether a thread is out of the fast region while it blocks.
    pub leaves_while_blocked: bool,
    /// Whether a thread that has become lazy can return; the rung says so.
    pub is_reversible: bool,
    /// How long a lazy thread that wants a processor may have none, in nanoseconds. Without
    /// it they wait until the fast region is empty.
    pub lazy_wait_ns_max: Option<u64>,
    /// How much of the processors urgent threads leave then at least, in percent: 1 to 50.
    /// Where it is less, as much of the time is turns for all others.
    pub turn_percent: u8,
    /// How much of the time turns take from urgent threads at most if so many have to wait
    /// that they do not all have their part in less, in percent: 1 to 90. Whoever had none
    /// by then waits for longer than `lazy_wait_ns_max`.
    pub turn_percent_max: u8,
    /// For how long a critical thread may keep a processor without ever blocking,
    /// in nanoseconds of its processor time, before it is demoted.
    pub spin_ns_max: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            leaves_while_blocked: false,
            is_reversible: true,
            lazy_wait_ns_max: Some(1_000_000_000),
            turn_percent: 5,
            turn_percent_max: 50,
            spin_ns_max: 300_000_000,
        }
    }
}

impl Settings {
    /// The [`turn_percent_max`](Settings::turn_percent_max) of whoever asks for a wait, where
    /// critical threads are not to keep half of the time.
    pub const TURN_PERCENT_KEEPING: u8 = 80;

    /// As they are by default, and lazy threads wait for so many nanoseconds at most, also
    /// where many do: a second is kept beside 150 threads a processor.
    #[must_use]
    pub fn keeping(wait_ns: u64) -> Settings {
        Settings {
            lazy_wait_ns_max: Some(wait_ns),
            turn_percent_max: Settings::TURN_PERCENT_KEEPING,
            ..Settings::default()
        }
    }
}

/// What the mediator makes of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes to the fast region.
    Critical(Priority),
    /// Waits in the lazy region.
    Ordinary,
    /// Is in the lazy region whether or not somebody is in the fast one.
    Lazy,
    /// Is where the program wants it, unless an urgent thread waits for it; but urgent threads
    /// may keep it from a processor, and it has its part of turns.
    Spared,
    /// Is left alone: it is on the exclusion list.
    Excluded,
}

impl From<&Attributes> for Kind {
    fn from(attributes: &Attributes) -> Kind {
        if attributes.is_time_critical() {
            Kind::Critical(attributes.priority())
        } else if attributes.is_lazy() {
            Kind::Lazy
        } else {
            Kind::Ordinary
        }
    }
}

/// Where a thread belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Where the program wants it.
    Own,
    /// In the fast region, before those with a higher nice value.
    Fast(Priority),
    /// In the lazy region, as long as somebody is in the fast one.
    Lazy,
    /// In the lazy region, as long as it is to be there, or as it is the turn of others.
    Bound,
}

impl Placement {
    /// Without the priority.
    #[must_use]
    pub fn region(self) -> Region {
        match self {
            Placement::Own => Region::Own,
            Placement::Fast(_) => Region::Fast,
            Placement::Lazy | Placement::Bound => Region::Lazy,
        }
    }
}

/// A thread that has to be put elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// Its line in the thread information table.
    pub slot: Slot,
    /// The kernel's number of it.
    pub tid: u32,
    /// Where it belongs from now on.
    pub placement: Placement,
}
