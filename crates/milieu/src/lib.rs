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
//! the [run time of contexts](context), the [store](milieu_store), and the
//! vocabulary of [names and key sets](keys).

mod contexts;
mod error;
mod export;
mod open;
mod persist;
#[cfg(feature = "tokio")]
mod task;
#[cfg(feature = "axum")]
mod web;

/// The run time: layers, contexts, the coordinator and contextual values.
pub use milieu_context as context;
pub use milieu_diagnostics as diagnostics;
pub use milieu_keys as keys;
pub use milieu_store as store;

/// The trait, and the derive that implements it.
#[doc(inline)]
pub use milieu_context::Environment;
#[doc(inline)]
pub use milieu_context::{
    Activation, Captured, Context, ContextOptions, Coordinator, Entered, Held, Layer, NoContext,
    Part, Policy, ReadOnly, Registration, Scope, SingleThread, Text, ThreadLayer, Threads,
    Writable, each, value, without,
};
pub use milieu_macros::{Choice, Environment, environment, layer};

pub use contexts::Contexts;
pub use error::Error;
pub use export::specification_of;
pub use open::{Builder, Milieu, Start};
pub use persist::Persisted;
#[cfg(feature = "tokio")]
pub use task::spawn;
#[cfg(feature = "axum")]
pub use web::RequestContext;
