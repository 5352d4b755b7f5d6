//! Key sets in files: namespaces, locations, formats that keep comments and order, atomic replacement.
//!
//! [`Store::open`] reads the files of an application ([`Locations`] says where
//! they lie) into one key set in which every key knows its file and line.
//! [`Store::commit`] writes changes of single keys back, and [`watch::Watch`]
//! tells what others write meanwhile. A [`Format`] is how a file is written;
//! [`Mounts`] say which file holds which part of the tree.
//!
//! ```text
//!   places ─▶ read ─▶ files as they are ─┬─▶ keys of today (before, migrate)
//!                          ▲             └─▶ watch ─▶ changes by key
//!    lock ─ merge ─ history ─ replace ◀── commit, edit, undo
//! ```
//!
//! Properties kept:
//! - A file is replaced whole: at every instant it has the text of before or of
//!   after a commit. What was confirmed survives the loss of power.
//! - A change of one key changes one place of its file ([`Document`]).
//! - Writers take turns, in one process and in many, and merge by key: writers
//!   of different keys lose nothing, and those of the same key learn of it.
//! - Whatever goes wrong, the error names the place and the remedy, and the
//!   files are as they were.
//! - Nothing is printed. No environment variable and no clock is read: both are
//!   handed in, the clock only for the history, and nothing depends on it.

pub mod ini;
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "toml")]
pub mod toml;
pub mod watch;

mod before;
mod check;
mod commit;
mod disk;
mod error;
mod explain;
#[cfg(test)]
mod faults;
pub mod format;
mod gaps;
mod history;
pub mod inspect;
mod locations;
mod lock;
mod merge;
pub mod migrate;
mod mounts;
mod nested;
mod read;
mod redact;
mod replace;
mod schema;
mod store;
pub mod transfer;
mod undo;
mod yaml;

pub use commit::Edited;
pub use error::{Conflict, StoreError};
pub use explain::{Candidate, Explanation, Via};
pub use format::{Document, Entry, Format, Kind, Unwritable};
pub use history::{Author, Changed, Record};
pub use locations::{Locations, Place};
pub use merge::{Change, Commit, Resolution, Resolve, Strategy};
pub use mounts::{Mount, Mounts};
pub use replace::replace_file;
pub use schema::{HostFiles, Schema};
pub use store::{Clock, Store};
pub use undo::Logged;
