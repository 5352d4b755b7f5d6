//! The naming tree: streams, services and names for other names, by name.
//!
//! ```text
//!  put, remove, renew ──▶ ┌──────────── Tree ────────────┐ ──▶ News: what each watch and
//!  set_layers ──────────▶ │ names ── Trie ── Entry       │     each subscription is told
//!  subscribe, watch ────▶ │ who waits ── Trie ── queries │
//!                         └─────────── step(now) ────────┘
//! ```
//!
//! An entry is a stream, a service with attributes, endpoint and lease, or a
//! binding: a name that stands for other names. A binding is static
//! (`/printer` for `/devices/printers/23`), a set that an operator keeps
//! (`/labs/005/devices` for what is in the room), or follows a layer of whoever
//! reads it (`/here` for `/labs/%room%/devices`). A [`Query`] says which names
//! are meant, and a subscription follows the streams and services that its
//! query leads to, wherever they move.
//!
//! Properties kept:
//! - no clock, no thread, no I/O: time is handed in, and what comes out does not
//!   depend on chance;
//! - a change of several members is one [`Difference`], in which those who stay
//!   do not appear;
//! - a change costs what those who follow the name cost, not those who follow
//!   others;
//! - no name leads to itself, whatever values layers have;
//! - nobody reads a name without a right to it: not by a wildcard, and not
//!   through a binding either;
//! - what is refused is counted, and changes nothing.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, section
//! 3.1. `docs/names.md` is the guide.

mod entry;
mod index;
mod layers;
mod query;
mod refusal;
mod rights;
mod text;
mod tree;
mod trie;
mod walk;

pub(crate) use entry::TARGETS_MAX;
pub use entry::{Binding, Entry, Publisher, Service};
pub use layers::LayerValues;
pub use query::{Condition, Query};
pub use refusal::{Refusal, Refusals, Why};
pub use rights::{Rights, Scope};
pub use text::{BYTES_MAX, LEVELS_MAX, name, utf8};
pub use tree::{
    Change, Dependency, Difference, DriveId, Limits, Member, News, ResolutionId, Tree, WatchId,
};

/// The samples of the guide are run.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/names.md")]
struct Guide;
