//! The specification compiler: one checked specification, many generators.
//!
//! Text in, files out. [`pipeline`] is the whole of it: parse, check, lower to
//! the [intermediate representation](ir), hand that to a [back end](backend).
//!
//! ```
//! use milieu_diagnostics::Source;
//! use milieu_spec::{Settings, backend::markdown::Markdown, generate};
//!
//! let source = Source {
//!     name: "watchdog.ini".into(),
//!     text: "[/watchdog/%security%/enable]\ntype=boolean\n".into(),
//! };
//! let output = generate(&source, &Markdown, &Settings::new("watchdog"));
//! assert!(output.files[0].text.contains("/watchdog/%security%/enable"));
//! ```
//!
//! Properties that everything here keeps:
//!
//! - No file is read or written, nothing is printed, nothing depends on the
//!   machine or the time: the same text gives the same files, to the byte.
//!   The exception is [`build`], which is a build script's right hand.
//! - A back end sees only specifications that passed every check. What a target
//!   cannot express is a diagnostic at a place in the specification.
//! - No run-time crate is linked: compiler and run time meet in the output.

pub mod backend;
pub mod build;
mod facts;
mod identifiers;
pub mod ir;
mod lower;
pub mod pipeline;
mod prose;
mod writer;

pub use backend::{Backend, Capabilities, File, Settings};
pub use identifiers::{camel_case, snake_case};
pub use pipeline::{Output, check, generate};
