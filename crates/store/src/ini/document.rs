//! An INI file as a document: every byte kept, every key editable on its own.
//!
//! The lines stand in a slab and are linked in the order of the file, so that
//! inserting and removing touch neighbours only, however long the file is. A
//! line that was read is a range of the text; a line that was changed owns its
//! bytes. The text of the document is all lines in order, and is therefore the
//! text that was read, byte for byte, until something is set or removed.
//!
//! Broken lines are kept like comments. Diagnostics report them, and whoever
//! writes files refuses to do so while there are any.

use std::borrow::Cow;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};
use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::Name;

use super::escape;
use super::moves::Moving;
use super::place::Places;
use crate::format::Entry;

/// The number that stands for "no line".
pub(super) const NONE: u32 = u32::MAX;

/// An INI file: keys with their values, and everything around them as it was written.
///
/// ```
/// use milieu_keys::Name;
/// use milieu_store::ini::Document;
///
/// let (mut document, diagnostics) = Document::parse("# Who is here?\n[/sw/pi/anna]\nlanguage = de\n");
/// assert!(diagnostics.is_empty());
/// assert_eq!(document.get("/sw/pi/anna/language").as_deref(), Some("de"));
///
/// document.set(&Name::parse("/sw/pi/anna/volume")?, "7");
/// assert_eq!(document.to_string(), "# Who is here?\n[/sw/pi/anna]\nlanguage = de\nvolume = 7\n");
/// # Ok::<(), milieu_keys::NameError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// What was read.
    pub(super) text: String,
    /// Where the first line begins: after the byte order mark, if there is one.
    pub(super) start: usize,
    /// All lines that ever were; those in use are linked.
    pub(super) lines: Vec<Line>,
    pub(super) ends: Ends,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Where new keys go, known once somebody asked.
    pub(super) places: Option<Places>,
    pub(super) moving: Vec<Moving>,
}

/// The first and the last line.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub first: u32,
    pub last: u32,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends {
            first: NONE,
            last: NONE,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pub body: Body,
    /// The length without the line ending.
    pub length: usize,
    pub kind: Kind,
    pub previous: u32,
    pub next: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Read(Range<usize>),
    Written(String),
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Blank,
    Comment,
    Section(Name),
    Key(KeyLine),
    Broken,
}

/// Where name and value stand in a line; ranges count from the start of the line.
#[derive(Debug, Clone)]
pub(super) struct KeyLine {
    pub name: Name,
    pub written: Range<usize>,
    pub value: Range<usize>,
    /// The line of the section, or [`NONE`] above the first one.
    pub section: u32,
    /// Whether the whole name stands on the line, so that the section is of no account.
    pub full: bool,
}

impl Document {
    /// An empty document.
    pub fn new() -> Document {
        Document::default()
    }

    /// Reads a text. What cannot be understood is kept as it is and reported.
    pub fn parse(text: &str) -> (Document, Vec<Diagnostic>) {
        super::parse::parse(text)
    }

    /// A document that has the text, and no lines yet.
    pub(super) fn reading(text: &str) -> Document {
        Document {
            text: text.to_owned(),
            start: super::parse::start(text),
            ..Document::default()
        }
    }

    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.find(name).map(|id| self.value(id))
    }

    /// All keys in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut number = 0;
        self.order().filter_map(move |id| {
            number += 1;
            let line = &self.lines[id as usize];
            let Kind::Key(key) = &line.kind else {
                return None;
            };
            let span = match &line.body {
                Body::Read(range) => Some(Span::new(
                    range.start + key.value.start,
                    range.start + key.value.end,
                )),
                Body::Written(_) => None,
            };
            Some(Entry {
                name: Cow::Borrowed(&key.name),
                value: self.value(id),
                line: number,
                span,
            })
        })
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Gives a key a value and returns the one that it replaces.
    ///
    /// The value of an existing key is replaced on its line and nothing else
    /// changes. A new key follows the last of its siblings, written as they
    /// are; without siblings it goes into the section of its parent, or, in a
    /// file of full names, to the end, or into a new section at the end.
    pub fn set(&mut self, name: &Name, value: &str) -> Option<String> {
        let Some(id) = self.find(name.as_str()) else {
            self.insert(name, value);
            return None;
        };
        let replaced = self.value(id).into_owned();
        if replaced != value {
            self.replace_value(id, value);
        }
        Some(replaced)
    }

    /// Removes a key with its line and returns its value.
    ///
    /// A section that holds nothing any more goes with its last key, unless a
    /// comment describes it.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let hash = self.hasher.hash_one(name);
        let lines = &self.lines;
        let entry = self
            .index
            .find_entry(hash, |&id| key_of(lines, id).name.as_str() == name)
            .ok()?;
        let (id, _) = entry.remove();
        let value = self.value(id).into_owned();
        let key = key_of(&self.lines, id);
        let section = if key.full { NONE } else { key.section };
        self.unlink(id);
        self.places = None;
        if section != NONE {
            self.remove_section_if_empty(section);
        }
        Some(value)
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.index
            .find(hash, |&id| key_of(&self.lines, id).name.as_str() == name)
            .copied()
    }

    /// Enters a key line into the index, or returns the line that has its name already.
    pub(super) fn enter(&mut self, id: u32) -> Option<u32> {
        let Document {
            lines,
            index,
            hasher,
            ..
        } = self;
        let name = key_of(lines, id).name.as_str();
        let same = |&other: &u32| key_of(lines, other).name.as_str() == name;
        let rehash = |&other: &u32| hasher.hash_one(key_of(lines, other).name.as_str());
        match index.entry(hasher.hash_one(name), same, rehash) {
            hashbrown::hash_table::Entry::Occupied(entry) => Some(*entry.get()),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(id);
                None
            }
        }
    }

    pub(super) fn body(&self, id: u32) -> &str {
        match &self.lines[id as usize].body {
            Body::Read(range) => &self.text[range.clone()],
            Body::Written(text) => text,
        }
    }

    pub(super) fn kind(&self, id: u32) -> &Kind {
        &self.lines[id as usize].kind
    }

    fn value(&self, id: u32) -> Cow<'_, str> {
        let key = key_of(&self.lines, id);
        escape::decode_value(&self.body(id)[key.value.clone()])
            .expect("a value that does not decode makes no key line")
    }

    /// The lines in use, from the first to the last.
    pub(super) fn order(&self) -> impl Iterator<Item = u32> {
        self.from(self.ends.first)
    }

    /// The lines in use from this one on.
    pub(super) fn from(&self, id: u32) -> impl Iterator<Item = u32> {
        let mut next = id;
        std::iter::from_fn(move || {
            (next != NONE).then(|| {
                let id = next;
                next = self.lines[id as usize].next;
                id
            })
        })
    }

    fn replace_value(&mut self, id: u32, value: &str) {
        let key = key_of(&self.lines, id);
        let (before, after) = (key.value.start, key.value.end);
        let line = self.body(id);
        let mut text = String::with_capacity(line.len() + value.len());
        text.push_str(&line[..before]);
        let (start, end) = write_value(&mut text, value);
        text.push_str(&line[after..]);
        let line = &mut self.lines[id as usize];
        line.length = line.length + text.len() - line.body.len();
        line.body = Body::Written(text);
        if let Kind::Key(key) = &mut line.kind {
            key.value = start..end;
        }
    }

    /// Links a new line behind another one, or at the front of an empty document.
    pub(super) fn link_after(&mut self, anchor: u32, body: Body, length: usize, kind: Kind) -> u32 {
        let id = u32::try_from(self.lines.len()).expect("fewer than 2^32 lines");
        let next = if anchor == NONE {
            self.ends.first
        } else {
            self.lines[anchor as usize].next
        };
        self.lines.push(Line {
            body,
            length,
            kind,
            previous: anchor,
            next,
        });
        match anchor {
            NONE => self.ends.first = id,
            anchor => self.lines[anchor as usize].next = id,
        }
        match next {
            NONE => self.ends.last = id,
            next => self.lines[next as usize].previous = id,
        }
        id
    }

    pub(super) fn unlink(&mut self, id: u32) {
        let Line { previous, next, .. } = self.lines[id as usize];
        match previous {
            NONE => self.ends.first = next,
            previous => self.lines[previous as usize].next = next,
        }
        match next {
            NONE => self.ends.last = previous,
            next => self.lines[next as usize].previous = previous,
        }
    }

    fn remove_section_if_empty(&mut self, section: u32) {
        let before = self.lines[section as usize].previous;
        let described = before != NONE && !matches!(self.kind(before), Kind::Blank | Kind::Key(_));
        if !described && self.is_section_empty(section) {
            self.remove_section(section);
        }
    }

    /// The blank lines below a header.
    fn blanks_below(&self, section: u32) -> impl Iterator<Item = u32> {
        self.from(self.lines[section as usize].next)
            .take_while(|&id| matches!(self.kind(id), Kind::Blank))
    }

    /// Whether nothing stands below a header. A comment that a blank line sets
    /// off from it, and none from the next header, is that one's.
    pub(super) fn is_section_empty(&self, section: u32) -> bool {
        let blanks = self.blanks_below(section).count();
        let below = self.from(self.lines[section as usize].next).skip(blanks);
        let mut below =
            below.skip_while(|&id| blanks > 0 && matches!(self.kind(id), Kind::Comment));
        below
            .next()
            .is_none_or(|id| matches!(self.kind(id), Kind::Section(_)))
    }

    /// Removes a header that nothing stands below.
    pub(super) fn remove_section(&mut self, section: u32) {
        let before = self.lines[section as usize].previous;
        let blanks: Vec<u32> = self.blanks_below(section).collect();
        let next = self
            .from(self.lines[section as usize].next)
            .nth(blanks.len());
        self.unlink(section);
        // Of the blank lines on both sides one group stays, and none at the end of the file.
        if before == NONE || matches!(self.kind(before), Kind::Blank) || next.is_none() {
            blanks.iter().for_each(|&id| self.unlink(id));
        }
        if next.is_none() && before != NONE && matches!(self.kind(before), Kind::Blank) {
            self.unlink(before);
        }
    }
}

impl Body {
    pub(super) fn len(&self) -> usize {
        match self {
            Body::Read(range) => range.len(),
            Body::Written(text) => text.len(),
        }
    }
}

/// Writes a value behind the name and equals sign that a text ends with, and
/// returns from where to where it stands.
pub(super) fn write_value(text: &mut String, value: &str) -> (usize, usize) {
    // `name =` becomes `name = value` where the name stands off as well.
    if text.ends_with(" =") {
        text.push(' ');
    }
    let start = text.len();
    text.push_str(&escape::encode_value(value));
    (start, text.len())
}

/// The key on a line that the index or a caller knows to be a key line.
pub(super) fn key_of(lines: &[Line], id: u32) -> &KeyLine {
    match &lines[id as usize].kind {
        Kind::Key(key) => key,
        _ => unreachable!("only key lines are indexed"),
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text[..self.start])?;
        self.order().try_for_each(|id| f.write_str(self.body(id)))
    }
}
