//! Milieu: concurrent software that adapts to its surroundings.
//!
//! ```no_run
//! use milieu::{Environment, Milieu, Text, layer};
//!
//! layer! { /// Whose settings are in force.
//!     pub struct Session(String) = "session"; }
//!
//! #[derive(Environment)]
//! struct Settings {
//!     /// The language of the greeting.
//!     #[key("/sw/hello/%session%/language", default = "en")]
//!     language: Text,
//! }
//!
//! # fn main() -> Result<(), milieu::Error> {
//! let milieu = Milieu::open("hello")?;
//! let mut cx = milieu.context::<Settings>()?;
//! let mut cx = cx.enter(Session("anna".into()));
//! println!("{}", cx.language);
//! cx.set::<at::language>("de")?;
//! milieu.persist()?;
//! # Ok(())
//! # }
//! ```
//!
//! This crate is the one that applications name. It puts the parts together:
//! the [run time of contexts](context), the [store], and the
//! vocabulary of [names and key sets](keys).
//!
//! | feature   | what it adds                                                     |
//! |-----------|------------------------------------------------------------------|
//! | `axum`    | a context for each request: `RequestContext`                     |
//! | `checks`  | the rules of `check/…` and `range`, and names of before (`was`) |
//! | `floats`  | floating-point numbers as values                                 |
//! | `formats` | files in TOML and JSON beside INI                                |
//! | `history` | who changed what is noted beside each file                      |
//! | `options` | command lines and variables: `Builder::command_line`             |
//! | `snippets` | messages about files show the lines                             |
//! | `store`   | settings in files: `Milieu::open`, `persist`, `watch`            |
//! | `stream`  | streams of events: `Milieu::streams`, `Milieu::flow`              |
//! | `threads` | threads with roles, the CPU mediator, stacks: the module `threads` |
//! | `tokio`   | tasks with a context of their own: `spawn`                       |
//! | `tracing` | layers as spans and fields: `Traced`                             |
//! | `transfer` | events and their transfer modes: the module `transfer`          |
//!
//! Those from `checks` to `store` are there unless `default-features = false`
//! leaves them out; `docs/small-machines.md` says what each weighs.
//!
//! Properties kept:
//! - files, variables and arguments are read when a program starts, and files
//!   are written when it [persists](Milieu::persist); nothing happens behind
//!   its back;
//! - nothing is printed: an [`Error`] and a help text are values, which render
//!   as a person should read them.

#[cfg(feature = "store")]
mod builder;
mod contexts;
#[cfg(feature = "stream")]
mod control;
#[cfg(feature = "store")]
mod decide;
mod error;
mod export;
#[cfg(feature = "store")]
mod files;
#[cfg(feature = "store")]
mod history;
mod open;
#[cfg(feature = "store")]
mod persist;
mod required;
#[cfg(feature = "stream")]
mod streams;
#[cfg(feature = "tokio")]
mod task;
#[cfg(feature = "threads")]
pub mod threads;
#[cfg(feature = "tracing")]
mod traced;
#[cfg(feature = "store")]
mod watch;
#[cfg(feature = "axum")]
mod web;

/// The run time: layers, contexts, the coordinator and contextual values.
pub use milieu_context as context;
pub use milieu_diagnostics as diagnostics;
pub use milieu_keys as keys;
#[cfg(feature = "store")]
pub use milieu_store as store;
/// Streams: flows, operators, names, subscriptions.
#[cfg(feature = "stream")]
pub use milieu_stream as stream;

/// Events, how they travel, and the derive that describes their types.
#[cfg(any(feature = "stream", feature = "transfer"))]
pub mod transfer {
    pub use milieu_macros::Event;
    pub use milieu_transfer::*;
}

/// The trait, and the derive that implements it.
#[doc(inline)]
pub use milieu_context::Environment;
#[doc(inline)]
pub use milieu_context::{
    Activation, Array, Captured, Context, ContextOptions, Coordinator, Entered, Held, Layer, Named,
    NoContext, Part, Policy, ReadOnly, Registration, Scope, SingleThread, Text, ThreadLayer,
    Threads, Writable, each, value, without,
};
pub use milieu_macros::{Choice, Environment, environment, layer};

#[cfg(feature = "options")]
pub use builder::options_of;
#[cfg(feature = "store")]
pub use builder::{Builder, Start};
pub use contexts::Contexts;
#[cfg(feature = "stream")]
pub use control::{Control, NO_FRAME};
pub use error::Error;
pub use export::specification_of;
#[cfg(feature = "store")]
pub use history::Undone;
pub use open::Milieu;
#[cfg(feature = "store")]
pub use persist::Persisted;
pub use required::Missing;
#[cfg(feature = "stream")]
pub use streams::{Acting, Applied, ContextReader, Keeping, Stream};
#[cfg(feature = "tokio")]
pub use task::spawn;
#[cfg(feature = "tracing")]
pub use traced::{Traced, TracedEntered};
#[cfg(feature = "store")]
pub use watch::{News, Watching};
#[cfg(feature = "axum")]
pub use web::RequestContext;
