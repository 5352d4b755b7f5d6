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
mod moves;
mod parse;
mod place;

pub use document::Document;
pub use escape::{EscapeError, decode_name, decode_value, encode_name, encode_value};

use std::borrow::Cow;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;

use lines::Shape;

use crate::format::{self, Entry, Format, Kind, Unwritable};

/// INI as a [`Format`].
#[derive(Debug, Clone, Copy)]
pub struct Ini;

impl Format for Ini {
    fn name(&self) -> &'static str {
        "ini"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["ini", "conf", "cfg"]
    }

    fn keys_max(&self, text: &str) -> usize {
        parse::keys_max(text)
    }

    fn load(&self, text: &str, each: &mut dyn FnMut(&Name, &str, u32) -> bool) -> bool {
        parse::load(text, each)
    }

    fn replace(&self, text: &str, line: u32, name: &Name, value: &str, _: Kind) -> Option<String> {
        let at = match line {
            1 => parse::start(text),
            _ => lines::start_of(text, line)?,
        };
        let Shape::Key {
            name: own,
            value: old,
        } = lines::lines(text, at).next()?.shape
        else {
            return None;
        };
        let own = decode_name(&text[own]).ok()?;
        let whole = name.as_str().strip_suffix(&*own)?;
        if !(whole.is_empty() || whole.ends_with('/')) {
            return None;
        }
        let mut replaced = String::with_capacity(text.len() + value.len());
        replaced.push_str(&text[..old.start]);
        document::write_value(&mut replaced, value);
        replaced.push_str(&text[old.end..]);
        Some(replaced)
    }

    fn parse(&self, text: &str) -> (Box<dyn format::Document>, Vec<Diagnostic>) {
        let (document, diagnostics) = Document::parse(text);
        (Box::new(document), diagnostics)
    }
}

impl format::Document for Document {
    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        Document::get(self, name)
    }

    fn keys(&self) -> Box<dyn Iterator<Item = Entry<'_>> + '_> {
        Box::new(Document::keys(self))
    }

    fn set(&mut self, name: &Name, value: &str, _: Kind) -> Result<Option<String>, Unwritable> {
        if name.is_root() {
            return Err(Unwritable {
                message: "the root of an INI file has no value".to_owned(),
                help: "give the value to a key below it".to_owned(),
            });
        }
        Ok(Document::set(self, name, value))
    }

    fn remove(&mut self, name: &str) -> Result<Option<String>, Unwritable> {
        Ok(Document::remove(self, name))
    }

    fn moving(&mut self, from: &str, to: &Name) {
        Document::moving(self, from, to);
    }

    fn moved(&mut self) {
        Document::moved(self);
    }

    fn text(&self) -> String {
        self.to_string()
    }
}
