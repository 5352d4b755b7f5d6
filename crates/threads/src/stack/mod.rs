//! Stacks: how deep they were, how large they need to be.

mod key;
mod live;
mod measure;
mod overflow;
mod profile;
mod system;
mod text;
mod tuner;
mod zone;

pub use key::{BuildId, Key, Place};
pub use live::{Live, Seat};
pub use measure::{Hint, Peak, Process, Stack, Way};
pub use overflow::{AlternateStack, SetAction, Standing, Watch};
pub use profile::{
    Entry, FileError, Line, LineError, Lines, Module, Name, Problem, Profile, ProfileError, Room,
    append, load, update,
};
pub use system::{Errno, is_space_limited, page_bytes, signal_bytes, thread};
pub use tuner::{Asked, Decision, Learned, Mode, ModeError, Policy, Reason};
pub use zone::{Verdict, Zone, Zones, ZonesError};
