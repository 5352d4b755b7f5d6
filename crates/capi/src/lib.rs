//! The C ABI: what `include/milieu.h` and the headers of `include/milieu` declare and
//! document.
//!
//! ```text
//!   C, C++ ──▶ extern "C" functions ──▶ call() ──▶ handle ──▶ Milieu, Erased
//!              coordinator, context,     catches    checks
//!              actions, hold, streams    panics     pointers
//! ```
//!
//! The header is the documentation of every function; what stands here is how
//! they do it. Properties that everything here keeps:
//!
//! - No panic leaves a function, and no function is called again by what it
//!   calls without the handle saying so.
//! - Whatever is handed in is checked before anything changes: null, handles of
//!   another type or freed ones, contexts in use, texts that are not UTF-8.
//! - No handle's memory is ever unmapped, so that a freed one can be told.
//! - What comes from the other side is read here and nowhere deeper: beyond this
//!   crate there are only Rust's types.

mod abi;
mod actions;
mod assign;
mod call;
#[cfg(feature = "store")]
mod conflicts;
mod context;
mod coordinator;
mod entering;
mod exclusive;
#[cfg(feature = "store")]
mod files;
mod handle;
#[cfg(feature = "store")]
mod history;
mod hold;
mod layout;
mod lent;
#[cfg(feature = "store")]
mod notices;
mod scope;
#[cfg(feature = "stream")]
mod streams;
mod text;
#[cfg(feature = "store")]
mod watch;

pub use abi::*;
pub use actions::*;
pub use assign::*;
pub use call::{milieu_fail, milieu_message, milieu_result_name, milieu_version};
#[cfg(feature = "store")]
pub use conflicts::*;
pub use context::*;
pub use coordinator::*;
pub use entering::*;
#[cfg(feature = "store")]
pub use files::{
    milieu_coordinator_defaults, milieu_coordinator_open, milieu_coordinator_persist,
    milieu_coordinator_persist_with,
};
#[cfg(feature = "store")]
pub use history::*;
pub use hold::*;
#[cfg(feature = "store")]
pub use notices::*;
pub use scope::*;
#[cfg(feature = "stream")]
pub use streams::*;
#[cfg(feature = "store")]
pub use watch::*;
