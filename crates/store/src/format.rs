//! File formats: a text as keys, and the way back that keeps the rest of the text.
//!
//! A format is a trait, so that a program can bring its own. What the store
//! needs of one is little: load all keys fast, and edit single keys of a
//! document so that everything else stays as it was written, byte for byte.
//!
//! Names are those *in* the file: a file that is mounted at `/sw/pi` has
//! `/language` where its keys are `/sw/pi/language`.
//!
//! # Texts that nest
//!
//! TOML, JSON and YAML have objects (or tables) and arrays, which are keys in
//! the same way in all of them.
//!
//! - An object is a level of names, and its members are the levels below:
//!
//!   | member                   | level                                              |
//!   |--------------------------|----------------------------------------------------|
//!   | `language`, `and/or`     | the text, escaped as a name needs it: `language`, `and\/or` |
//!   | `%`                      | `%`, the place of an inactive layer                |
//!   | `50%`                    | `50\%`, as percent signs elsewhere are no places   |
//!   | a backslash and a level  | that level, where the other rules would give another one: `\a%` is `a%`, `\\%` is `\%` |
//!
//! - The elements of an array are the levels `#0`, `#1`, … `#_10`, as Elektra
//!   calls them. An object can have members of these names as well; that it is
//!   an object and no array is kept.
//! - The member with the empty name is the value of the object itself: with
//!   `{"a": {"": 1, "b": 2}}` the key `/a` is `1`, and `/a/b` is `2`. An empty
//!   name that leads to an object or an array is the level `\\`, a backslash.
//! - A value is the text of a string, and of anything else its canonical text.
//! - `null` is no key. It stays where it is, and setting its key replaces it.
//! - Objects and arrays that hold nothing are no keys; they stay too.
//!
//! Edits follow from that:
//!
//! - The element behind the last one can be set, and the last one removed. An
//!   element in the middle cannot be removed, since those behind it would get
//!   other names.
//! - A value that gets keys below it becomes an object with the value as the
//!   member of the empty name. An array has no value of its own.
//! - An object or array that loses its last key goes with it, unless there is a
//!   comment inside, or it is an element with others behind it.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::Name;

use crate::ini::Ini;

/// A file format.
pub trait Format: fmt::Debug + Send + Sync {
    /// Its name in mount tables and on the command line: `ini`, `toml`, `json`.
    fn name(&self) -> &'static str;

    /// The endings of its files, without the dot, the usual one first.
    fn endings(&self) -> &'static [&'static str];

    /// How many keys a text has at most, for a key set to make room at once.
    /// Need not be exact.
    fn keys_max(&self, text: &str) -> usize {
        text.len() / 16
    }

    /// Hands every key with its value and line to `each`, which refuses a name
    /// that it was given before. The fast way, without a document.
    ///
    /// Returns false where the text is not of this format, or a key was
    /// refused; [`parse`](Format::parse) then finds all errors. What was handed
    /// out by then is of no account.
    fn load(&self, text: &str, each: &mut dyn FnMut(&Name, &str, u32) -> bool) -> bool;

    /// The text with another value of the key that stands on a line, for a
    /// format that can tell without a document. `None` where that is not
    /// possible, or the line is not that of the key; the lines of all keys stay
    /// as they are.
    fn replace(
        &self,
        text: &str,
        line: u32,
        name: &Name,
        value: &str,
        kind: Kind,
    ) -> Option<String> {
        let _ = (text, line, name, value, kind);
        None
    }

    /// Reads a text. Every text gives a document, whose [`text`](Document::text)
    /// it is; what cannot be understood is reported, with its place.
    fn parse(&self, text: &str) -> (Box<dyn Document>, Vec<Diagnostic>);
}

/// Formats are the same where their names are.
impl PartialEq for dyn Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Format {}

/// The formats that are built in, INI first.
#[must_use]
pub fn all() -> &'static [&'static dyn Format] {
    &[
        &Ini,
        #[cfg(feature = "toml")]
        &crate::toml::Toml,
        #[cfg(feature = "json")]
        &crate::json::Json,
    ]
}

/// The format with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    all().iter().copied().find(|format| format.name() == name)
}

/// The format that the ending of a file speaks for.
#[must_use]
pub fn of_path(path: &Path) -> Option<&'static dyn Format> {
    let ending = path.extension()?.to_str()?;
    let has = |format: &&dyn Format| format.endings().contains(&ending);
    all().iter().copied().find(has)
}

/// A text of some format, every key of which can be edited on its own.
pub trait Document {
    /// The value of a key.
    fn get(&self, name: &str) -> Option<Cow<'_, str>>;

    /// All keys in the order of the text.
    fn keys(&self) -> Box<dyn Iterator<Item = Entry<'_>> + '_>;

    /// Gives a key a value and returns the one that it replaces.
    ///
    /// The value of an existing key is replaced in its place and nothing else
    /// changes; a value that is the same already changes nothing at all. A new
    /// key goes where a person would put it, written as its neighbours are.
    ///
    /// # Errors
    /// Where the format has no way to say it. Nothing has changed then.
    fn set(&mut self, name: &Name, value: &str, kind: Kind) -> Result<Option<String>, Unwritable>;

    /// Removes a key with the comment that is on its line, and returns its value.
    ///
    /// # Errors
    /// Where other keys would get other names by it: those of the elements
    /// behind this one in an array. Elements are removed from the last to the
    /// first. Nothing has changed then.
    fn remove(&mut self, name: &str) -> Result<Option<String>, Unwritable>;

    /// The key `from` is about to be removed, and `to` to be set in its stead:
    /// what belongs to the one then belongs to the other. Called before the
    /// edits, and [`moved`](Document::moved) after them.
    fn moving(&mut self, from: &str, to: &Name) {
        let _ = (from, to);
    }

    /// Takes what belongs to the keys that were [moving](Document::moving) to
    /// where they are now: the comments right above them and behind them on their
    /// lines. A section, table or object that is left empty goes. Formats that
    /// cannot tell leave all that where it is.
    fn moved(&mut self) {}

    /// The text as it is now.
    fn text(&self) -> String;
}

/// One key of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    /// The name in the file.
    pub name: Cow<'a, Name>,
    /// The value, decoded.
    pub value: Cow<'a, str>,
    /// The line, counted from 1.
    pub line: u32,
    /// Where the value stands in the text that was parsed; nothing for a value set since.
    pub span: Option<Span>,
}

/// How a value is written in a format that has types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Nobody said: as the value that it replaces, if that kind of value can be
    /// written so; otherwise as a number or a boolean where the text is exactly
    /// how one is written, and as a text where it is not.
    #[default]
    Unknown,
    /// A text, however it looks.
    Text,
    /// A number.
    Number,
    /// `true` or `false`; `1` and `0` are written so.
    Boolean,
}

/// A key or value that a format has no way to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritable {
    /// Why, as a sentence without a full stop: `` `/a` has a value already, and this format has no keys below values``.
    pub message: String,
    /// What to do instead.
    pub help: String,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unwritable {}
