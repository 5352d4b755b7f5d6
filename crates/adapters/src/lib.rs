//! Sources and sinks that people have.
//!
//! Every source implements [`Source`](milieu_stream::Source): it is polled, has
//! no thread, and never blocks. What it publishes is a plain struct whose fields
//! have their units in their names.
//!
//! Properties kept:
//! - a source whose peer is down starts, says so in its status with the place
//!   and the way out, tries again, and says so when it is back;
//! - where a source reads files, it does so below a root folder that is handed
//!   in, so that tests show it machines that they do not have;
//! - what a peer can make it read and keep is bounded;
//! - it asks for the time nowhere: it is told by [`Feed::now`](milieu_stream::Feed::now).
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, section
//! 3.1 (sources).

pub mod catalogue;
pub mod command;
#[cfg(any(feature = "http", feature = "mqtt"))]
pub mod component;
mod failure;
pub mod files;
mod format;
#[cfg(feature = "gpio")]
pub mod gpio;
#[cfg(feature = "http")]
pub mod http;
mod interval;
mod lines;
pub mod machine;
#[cfg(feature = "mqtt")]
pub mod mqtt;
pub mod nmea;
pub mod replay;
pub mod serial;
pub mod timer;

pub use failure::Failure;
pub use format::{Format, Number, Text};

/// The samples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sources.md")]
struct Guide;
