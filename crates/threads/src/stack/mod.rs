//! Stacks: how deep they were, how large they need to be.
//!
//! ```text
//!  pthread_create ─▶ Key ─▶ Live (what is known) ─▶ Policy::decide ─▶ size, guard
//!  thread begins  ─▶ Process::stack_around, depth ─▶ Watch::enter
//!  thread ends    ─▶ Process::depth ─▶ Peak ─▶ Watch::measures ─▶ Watch::leave
//!  now and then   ─▶ Watch::look (threads that run) ─▶ Notes (a file beside the profile)
//!  guard page hit ─▶ Watch's handler ─▶ report, profile, the program's own action
//!  process ends   ─▶ Live::take ─▶ update (a profile, under its lock)
//!  or is ended    ─▶ settle (whoever reads the profile next adds its notes)
//! ```
//!
//! All of it can run below the allocator and thread-local storage, in programs that
//! know nothing of it: nothing allocates, nothing panics, `errno` stays as it was.
//! What is asked of the kernel is in one module, `system`.
//!
//! Zones, sizes and profiles are those of the Stack Tuner (section IV-B of the Thread
//! Evolution Kit's paper); peaks are taken from the lowest page that was touched, not
//! from what is resident.

mod arena;
mod emit;
mod key;
mod live;
mod measure;
mod overflow;
mod own;
mod profile;
mod site;
mod system;
mod text;
mod tuner;
mod zone;

pub use arena::{Arena, Made, Taken, are_stacks_executable};
pub use emit::{Language, Row, emit};
pub use key::{BuildId, Key, Place};
pub use live::{Live, Seat};
pub use measure::{Hint, Known, Peak, Process, Stack, Way};
pub use overflow::{AlternateStack, Running, SetAction, Standing, Watch};
pub use own::{ReportStack, watch};
pub use profile::{
    Entry, FileError, Line, LineError, Lines, Module, Name, Notes, Problem, Profile, ProfileError,
    Room, Site, append, load, settle, update,
};
pub use site::{Creation, Sites};
pub use system::{Errno, is_space_limited, is_space_short, page_bytes, signal_bytes, thread};
pub use tuner::{Asked, Decision, Learned, Mode, ModeError, Policy, Reason};
pub use zone::{Verdict, Zone, Zones, ZonesError};
