//! Recordings, replayed at the speed at which they were made, or any other.
//!
//! ```
//! use milieu_adapters::replay::{self, Column, Pace};
//!
//! let year = replay::csv("weather-2013.csv")
//!     .column("wind_direction_degrees", Column::Integer)
//!     .from("2013-05-08T00:00:00Z".parse()?)
//!     .pace(Pace::Times(3600.0));
//! let control = year.control();
//! control.pause();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each row of a file is an event: a [`Value`](milieu_transfer::Value) with the
//! row's fields, or a struct that is made of them. Its time is the one that was
//! recorded, unless [`at_replay`](Replay::at_replay) is asked for.
//!
//! Properties kept:
//! - a file is read as it is replayed, however long it is; a row of more than a
//!   mebibyte is not kept;
//! - rows are expected in the order of their times; one that is late is
//!   published at once;
//! - a row that cannot be read is left out, counted, and told by the status with
//!   its line.

mod clock;
mod column;
mod control;
mod csv;
mod json;
mod nmea;
mod reader;
mod rows;
mod source;

pub use column::{Column, TimeFormat};
pub use control::{Control, Pace};
pub use rows::RowType;
pub use source::{Replay, csv, json_lines, nmea};
