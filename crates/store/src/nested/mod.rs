//! What the formats have in common whose texts nest: TOML and JSON, and YAML where it is written.
//!
//! ```text
//!  text ──▶ pieces   every byte in a linked list: blanks, comments, marks, values
//!             ▲
//!           tree     what is below what, each node knows its pieces
//!             │
//!           document looks up in the tree, edits the pieces, keeps both in step
//! ```
//!
//! What is a key, and what edits do, stands at the top of [`format`](crate::format).

pub(crate) mod levels;
pub(crate) mod number;
pub(crate) mod quote;

#[cfg(any(feature = "json", feature = "toml"))]
mod cut;
#[cfg(any(feature = "json", feature = "toml"))]
mod document;
#[cfg(any(feature = "json", feature = "toml"))]
mod list;
#[cfg(any(feature = "json", feature = "toml"))]
mod moves;
#[cfg(any(feature = "json", feature = "toml"))]
pub(crate) mod pieces;
#[cfg(any(feature = "json", feature = "toml"))]
pub(crate) mod report;
#[cfg(any(feature = "json", feature = "toml"))]
pub(crate) mod tree;

#[cfg(any(feature = "json", feature = "toml"))]
pub(crate) use document::{Nested, New, Syntax, replaced};

/// How many levels a document has at most. It bounds the stack and the time
/// that hostile texts cost.
pub(crate) const DEPTH_MAX: usize = 128;
