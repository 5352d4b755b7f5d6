//! The threads of a whole device, for those who look after it: programs that know
//! nothing of Milieu as well as those that link it.
//!
//! - [`monitor`]: what every thread is for and what it does, from the thread
//!   information tables and from `/proc` (the paper's Thread Monitor).
//! - [`mediator`]: one CPU mediator for all programs, which leaves nothing behind.
//! - [`launch`]: how a program is started so that it is served.
//! - [`profile`]: what was learned of stacks, with names and places of start
//!   functions.
//!
//! It needs the standard library and threads' core, `milieu-threads`; everything
//! that runs inside of other programs is there.

pub mod launch;
pub mod mediator;
pub mod monitor;
pub mod proc;
pub mod profile;
