//! Key sets in files: namespaces, locations, INI that keeps comments and order, atomic replacement.
//!
//! [`Store::open`] reads the files of an application ([`Locations`] says where
//! they lie) into one key set in which every key knows its file and line.
//! [`Store::commit`] writes changes of single keys back.
//!
//! Properties kept:
//! - A file is replaced whole: at every instant it has the text of before or of
//!   after a commit. What was confirmed survives the loss of power.
//! - A change of one key changes one place of its file ([`ini::Document`]).
//! - Writers take turns, in one process and in many, and merge by key: writers
//!   of different keys lose nothing, and those of the same key learn of it.
//! - Whatever goes wrong, the error names the place and the remedy, and the
//!   files are as they were.
//! - Nothing is printed. No environment variable and no clock is read: both are
//!   handed in.

pub mod ini;

mod disk;
mod error;
mod explain;
#[cfg(test)]
mod faults;
mod locations;
mod lock;
mod merge;
mod read;
mod replace;
mod schema;
mod store;

pub use error::{Conflict, StoreError};
pub use explain::{Candidate, Explanation, Via};
pub use locations::{Locations, Place};
pub use merge::{Change, Commit, Strategy};
pub use schema::{HostFiles, Schema};
pub use store::Store;
