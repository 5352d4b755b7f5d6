//! Performance tests of distributed, configurable systems, whose results document themselves.
//!
//! A [description] says what runs where, with which parameters, and
//! which variables are swept; a [plan] is the list of steps that follows
//! from it; [running](run) it starts the applications of each step as fresh
//! processes and keeps what they measured in a [result], which has the
//! whole configuration in it; a [report] shows a result.
//!
//! ```text
//! description ─▶ plan ─▶ run ─▶ result ─▶ report
//!  TOML, XML,    steps    │      JSON,     CSV, Markdown, SVG, HTML, …
//!  Rust                   └─ applications: processes that speak
//!                            JSON lines, or whose output a pattern reads
//! ```
//!
//! Properties kept:
//! - a description names kinds of applications and never commands: what runs is
//!   the choice of whoever owns the machine ([`catalogue`]);
//! - no shell is involved, and no value becomes part of a path;
//! - every value that was measured stays in the result; statistics are computed
//!   from them and never from other statistics;
//! - a step that failed is in the result as such, with what the application said.
//!
//! Source: the Solar paper, sections 4, 5 and 11, with its future work.

pub mod catalogue;
pub mod compare;
mod derive;
pub mod description;
pub mod load;
pub mod plan;
pub mod report;
pub mod result;
pub mod run;
pub mod schema;
pub mod server;
pub mod statistics;
mod value;

pub use value::{Kind, Value};

/// A C header that makes a program an application.
pub const HELPER_C: &str = include_str!("../helpers/milieu_bench.h");

/// A Python module that makes a program an application.
pub const HELPER_PYTHON: &str = include_str!("../helpers/milieu_bench.py");

/// A Python program that is a report: figures for LaTeX.
pub const HELPER_PGFPLOTS: &str = include_str!("../helpers/milieu_pgfplots.py");
