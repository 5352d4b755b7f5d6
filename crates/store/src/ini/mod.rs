//! INI text: the format of settings.
//!
//! ```ini
//! # Comments begin with a number sign or a semicolon, on lines of their own.
//! /hw/pi/pi/gpio/folder = /sys/class/gpio/
//!
//! [/sw/pi/anna]
//! language = de
//! motto    = the value is all of this, = # and ; too
//! greeting = "  in quotes:\ttwo\nlines  "
//! visits/last = 2013-07-01
//! ```
//!
//! - A key is its section's name and its own, joined. A name that begins with
//!   `/` is a full name wherever it stands; both shapes may be mixed
//!   (the configuration file of CoElektra, section IV-A, has full names only).
//! - Above the first section, and in `[/]`, names are below the root.
//! - A value is raw text to the end of its line, without the blanks on either
//!   side, or a text in quotes with escapes (see [`encode_value`]). Names have
//!   escapes for what they cannot hold raw (see [`encode_name`]). Specifications
//!   write names and values the same way, but can go on in the next line.
//! - A key stands in a file once. A line that is none of these, a control
//!   character, a zero byte: errors that point at the place. Nothing is guessed.
//! - Lines end in `\n` or `\r\n`; a byte order mark at the start is kept.

mod document;
mod escape;
mod lines;
mod parse;
mod place;

pub(crate) use parse::{keys_max, load};

pub use document::{Document, Entry};
pub use escape::{EscapeError, decode_name, decode_value, encode_name, encode_value};
