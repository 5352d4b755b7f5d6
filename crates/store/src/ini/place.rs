//! Where a new key goes, and how it is written there.

use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry};
use milieu_keys::{Name, split};
use std::borrow::Cow;
use std::hash::BuildHasher;

use super::document::{Body, Document, KeyLine, Kind, NONE, key_of};
use super::escape::{self, Place};

/// The last key below each parent, and the first section of each name.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    siblings: Lines,
    sections: Lines,
}

/// Lines by names, hashed as those of the document are.
#[derive(Debug, Clone, Default)]
struct Lines {
    table: HashTable<(Box<str>, u32)>,
    hasher: DefaultHashBuilder,
}

impl Lines {
    fn get(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let found = self.table.find(hash, |(known, _)| **known == *name);
        found.map(|(_, id)| *id)
    }

    /// The line of a name, which is this one if there has been none.
    fn entry(&mut self, name: &str, id: u32) -> &mut u32 {
        let Lines { table, hasher } = self;
        let same = |(known, _): &(Box<str>, u32)| **known == *name;
        let rehash = |(known, _): &(Box<str>, u32)| hasher.hash_one(&**known);
        match table.entry(hasher.hash_one(name), same, rehash) {
            Entry::Occupied(entry) => &mut entry.into_mut().1,
            Entry::Vacant(entry) => &mut entry.insert((name.into(), id)).into_mut().1,
        }
    }
}

/// How the name of a new key is written.
enum Form {
    Full,
    /// Relative to the section of this header, or to the root above the first one.
    Under(u32),
}

/// A key line before it is linked.
struct Written {
    text: String,
    key: KeyLine,
}

impl Document {
    /// Adds a key that the document does not have.
    pub(super) fn insert(&mut self, name: &Name, value: &str) {
        let places = match self.places.take() {
            Some(places) => places,
            None => self.survey(),
        };
        let (parent, _) = split(name.as_str());
        let root = name.as_str() == "/";
        let id = if let Some(sibling) = places.siblings.get(parent).filter(|_| !root) {
            let key = key_of(&self.lines, sibling);
            let form = if key.full {
                Form::Full
            } else {
                Form::Under(key.section)
            };
            self.add(name, value, sibling, form, Some(sibling))
        } else if let Some(section) = places.sections.get(section_name(parent)).filter(|_| !root) {
            let (anchor, model) = self.end_of(section);
            self.add(
                name,
                value,
                anchor,
                Form::Under(section),
                model.or_else(|| self.some_key()),
            )
        } else if root
            || (places.sections.table.is_empty() && (parent.is_empty() || !self.is_empty()))
        {
            // A file of full names stays one. The new key follows the last key,
            // not the last line: comments at the end keep their place.
            let model = self.some_key();
            let anchor = model.unwrap_or(self.ends.last);
            self.add(name, value, anchor, Form::Full, model)
        } else {
            let section = self.add_section(parent);
            self.add(name, value, section, Form::Under(section), self.some_key())
        };
        self.places = Some(places);
        self.learn(id);
    }

    fn survey(&self) -> Places {
        let mut places = Places::default();
        for id in self.order() {
            places.learn(self, id);
        }
        places
    }

    fn learn(&mut self, id: u32) {
        if let Some(mut places) = self.places.take() {
            places.learn(self, id);
            match *self.kind(id) {
                Kind::Key(KeyLine {
                    section,
                    full: false,
                    ..
                }) if section != NONE => places.learn(self, section),
                _ => {}
            }
            self.places = Some(places);
        }
    }

    /// The last key of the document, as a model for new ones.
    fn some_key(&self) -> Option<u32> {
        let mut id = self.ends.last;
        while id != NONE {
            if matches!(self.kind(id), Kind::Key(_)) {
                return Some(id);
            }
            id = self.lines[id as usize].previous;
        }
        None
    }

    /// The line that a new key of a section follows: its last key, which is
    /// then the model, or its header with the comment right below.
    fn end_of(&self, section: u32) -> (u32, Option<u32>) {
        let after = self.lines[section as usize].next;
        let inside = || {
            self.from(after)
                .take_while(|&id| !matches!(self.kind(id), Kind::Section(_)))
        };
        if let Some(key) = inside()
            .filter(|&id| matches!(self.kind(id), Kind::Key(_)))
            .last()
        {
            return (key, Some(key));
        }
        let comment = inside()
            .take_while(|&id| matches!(self.kind(id), Kind::Comment))
            .last();
        // A comment that touches the next header describes that section.
        let touches = |id: u32| {
            let next = self.lines[id as usize].next;
            next != NONE && matches!(self.kind(next), Kind::Section(_))
        };
        (comment.filter(|&id| !touches(id)).unwrap_or(section), None)
    }

    fn add_section(&mut self, parent: &str) -> u32 {
        let ending = self.ending(None);
        let last = self.ends.last;
        self.close(last);
        let mut anchor = last;
        if last != NONE && !matches!(self.kind(last), Kind::Blank) {
            anchor = self.link_after(last, Body::Written(ending.to_owned()), 0, Kind::Blank);
        }
        let name = Name::parse(section_name(parent)).expect("the parent of a name is a name");
        let mut text = format!("[{}]", escape::encode(name.as_str(), Place::Section));
        let length = text.len();
        text.push_str(ending);
        self.link_after(anchor, Body::Written(text), length, Kind::Section(name))
    }

    fn add(
        &mut self,
        name: &Name,
        value: &str,
        anchor: u32,
        form: Form,
        model: Option<u32>,
    ) -> u32 {
        self.close(anchor);
        let Written { mut text, key } = self.write(name, value, &form, model);
        let length = text.len();
        text.push_str(self.ending(model));
        let id = self.link_after(anchor, Body::Written(text), length, Kind::Key(key));
        let known = self.enter(id);
        debug_assert!(known.is_none(), "insert is called for new keys only");
        id
    }

    /// Writes a key as the model is written.
    fn write(&self, name: &Name, value: &str, form: &Form, model: Option<u32>) -> Written {
        let (indentation, before, after) = match model {
            Some(id) => {
                let key = key_of(&self.lines, id);
                let line = self.body(id);
                let equals = key.written.end
                    + line[key.written.end..]
                        .find('=')
                        .expect("a key line has an equals sign");
                (
                    &line[..key.written.start],
                    &line[key.written.end..equals],
                    &line[equals + 1..key.value.start],
                )
            }
            None => ("", " ", " "),
        };
        let written = match form {
            Form::Full => escape::encode(name.as_str(), Place::Key),
            Form::Under(section) => Cow::Owned(self.relative(name, *section)),
        };
        // Where the equals signs stand in a column, this one joins them.
        let column = model.map_or(0, |id| key_of(&self.lines, id).written.len() + before.len());
        let fill = if before.len() > 1 && before.bytes().all(|b| b == b' ') {
            " ".repeat(column.saturating_sub(written.len()).max(1))
        } else {
            before.to_owned()
        };
        // The model's value may be empty, with no blank left before it.
        let after = if after.is_empty() && !before.is_empty() {
            " "
        } else {
            after
        };
        let encoded = escape::encode_value(value);
        let text = format!("{indentation}{written}{fill}={after}{encoded}");
        let start = indentation.len();
        let key = KeyLine {
            name: name.clone(),
            written: start..start + written.len(),
            value: text.len() - encoded.len()..text.len(),
            section: if let Form::Under(section) = form {
                *section
            } else {
                NONE
            },
            full: matches!(form, Form::Full),
        };
        Written { text, key }
    }

    /// The name as it is written below the section.
    fn relative(&self, name: &Name, section: u32) -> String {
        let prefix = match self.lines.get(section as usize).map(|line| &line.kind) {
            Some(Kind::Section(section)) if section.as_str() != "/" => section.as_str().len(),
            _ => 0,
        };
        escape::encode(&name.as_str()[prefix + 1..], Place::Key).into_owned()
    }

    /// The line ending of the model, or of the first line, or a plain new line.
    fn ending(&self, model: Option<u32>) -> &'static str {
        let first = Some(self.ends.first).filter(|&id| id != NONE);
        let ending = model.into_iter().chain(first).find_map(|id| {
            let body = self.body(id);
            if body.ends_with("\r\n") {
                Some("\r\n")
            } else {
                body.ends_with('\n').then_some("\n")
            }
        });
        ending.unwrap_or("\n")
    }

    /// Ends a line that the end of the file ended.
    fn close(&mut self, id: u32) {
        if id == NONE || self.body(id).ends_with('\n') {
            return;
        }
        let text = format!("{}{}", self.body(id), self.ending(None));
        self.lines[id as usize].body = Body::Written(text);
    }
}

impl Places {
    fn learn(&mut self, document: &Document, id: u32) {
        match document.kind(id) {
            Kind::Key(key) => {
                let (parent, _) = split(key.name.as_str());
                *self.siblings.entry(parent, id) = id;
            }
            Kind::Section(name) => {
                self.sections.entry(name.as_str(), id);
            }
            _ => {}
        }
    }
}

/// The section that holds the keys below this parent, which is empty for the root.
fn section_name(parent: &str) -> &str {
    if parent.is_empty() { "/" } else { parent }
}
