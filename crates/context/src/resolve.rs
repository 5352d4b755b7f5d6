//! From a pattern and the active layers to the place of a name.
//!
//! A pattern is compiled once into levels. Levels before the first placeholder
//! are one literal prefix with one hash; a level that is a single placeholder
//! contributes the hash that its layer's cell already holds. Resolving a name
//! to look it up therefore builds no string. Who wants to see it gets the texts
//! between the placeholders, joined beforehand, and what layers put there.

use std::{borrow::Cow, sync::Arc};

use milieu_keys::{Pattern, Piece, name::seal_level, sort};

use crate::{
    arena::{SHORT, copy_short},
    hash::Hash,
    layer::LayerCell,
    map::{Column, Map, Place},
};

/// The number of a layer in its coordinator.
pub type Slot = u32;

/// A part of a level that is made of several.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Literal(Box<str>),
    Layer(Slot),
    Group(Box<[Slot]>),
}

/// One level of a compiled pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Level {
    /// It is always the same; its text is among those of the [`Resolution`].
    Literal(Hash),
    Varying(Varying),
}

/// A level that depends on layers.
#[derive(Clone, Debug, PartialEq)]
pub enum Varying {
    /// The layer alone.
    Layer(Slot),
    Mixed(Arc<[Part]>),
}

/// All levels of a compiled pattern but the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// The literal levels before the first placeholder, as the name of a parent.
    prefix: Hash,
    /// The levels from there on.
    levels: Box<[Level]>,
}

impl Parent {
    #[inline]
    pub fn hash(&self, layers: Layers<'_>) -> Hash {
        self.levels
            .iter()
            .fold(self.prefix, |hash, level| hash.then(level.hash(layers)))
    }
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Resolution {
    pub parent: Parent,
    /// The last level.
    pub base: Level,
    /// The same as it is written.
    pieces: Box<[Written]>,
}

/// A part of a name: a few bytes that are always the same, with their slashes,
/// and a level that varies.
#[derive(Clone, Debug)]
struct Written {
    /// Whole characters, of so many bytes. All are copied, which takes no more
    /// than to copy some.
    bytes: [u8; SHORT],
    length: usize,
    then: Then,
}

/// What follows in a name.
#[derive(Clone, Debug)]
enum Then {
    Layer(Slot),
    Mixed(Arc<[Part]>),
    Nothing,
}

impl Written {
    /// The most that is copied for one of them without a call.
    const ROOM: usize = 2 * SHORT;

    /// Appends it, whatever it is.
    #[cold]
    fn write(&self, layers: Layers<'_>, name: &mut String) {
        let text = std::str::from_utf8(&self.bytes[..self.length]);
        name.push_str(text.unwrap_or_default());
        match &self.then {
            Then::Layer(slot) => name.push_str(&layers.shown(*slot)),
            Then::Mixed(parts) => name.push_str(&mixed(parts, layers)),
            Then::Nothing => {}
        }
    }

    /// Appends a text, and what follows it.
    fn append(mut text: &str, then: Then, pieces: &mut Vec<Written>) {
        loop {
            let fits = |at: &usize| text.is_char_boundary(*at);
            let length = (0..=text.len().min(SHORT)).rfind(fits).unwrap_or(0);
            let (begin, rest) = text.split_at(length);
            let mut bytes = [0; SHORT];
            bytes[..length].copy_from_slice(begin.as_bytes());
            let piece = |then| Written {
                bytes,
                length,
                then,
            };
            if rest.is_empty() {
                pieces.push(piece(then));
                return;
            }
            pieces.push(piece(Then::Nothing));
            text = rest;
        }
    }
}

/// The active layers of a context, by slot.
#[derive(Clone, Copy)]
pub struct Layers<'a>(pub &'a [LayerCell]);

impl<'a> Layers<'a> {
    /// The layer's value as part of a name; empty is inactive.
    fn text(self, slot: Slot) -> Cow<'a, str> {
        self.0
            .get(slot as usize)
            .map_or(Cow::Borrowed(""), LayerCell::escaped)
    }

    /// How the layer stands in a name: an inactive one leaves `%`.
    fn shown(self, slot: Slot) -> Cow<'a, str> {
        let text = self.text(slot);
        if text.is_empty() {
            Cow::Borrowed("%")
        } else {
            text
        }
    }

    /// The same, where that is short and known without a look at the value.
    #[inline]
    fn short(self, slot: Slot) -> Option<&'a str> {
        match self.0.get(slot as usize) {
            Some(cell) if cell.is_active() => cell.short(),
            _ => Some("%"),
        }
    }
}

impl Level {
    #[inline]
    pub fn hash(&self, layers: Layers<'_>) -> Hash {
        match self {
            Level::Literal(hash) => *hash,
            Level::Varying(Varying::Layer(slot)) => match layers.0.get(*slot as usize) {
                Some(cell) => cell.hash(),
                None => Hash::level("%"),
            },
            Level::Varying(Varying::Mixed(parts)) => Hash::level(&mixed(parts, layers)),
        }
    }

    fn slots(&self, found: &mut Vec<Slot>) {
        match self {
            Level::Literal(_) => {}
            Level::Varying(Varying::Layer(slot)) => found.push(*slot),
            Level::Varying(Varying::Mixed(parts)) => {
                for part in &**parts {
                    match part {
                        Part::Literal(_) => {}
                        Part::Layer(slot) => found.push(*slot),
                        Part::Group(slots) => found.extend(slots),
                    }
                }
            }
        }
    }
}

/// A level of several parts. A group joins its values as `%a%b` and stops at
/// its first inactive layer (CoElektra's reference implementation).
fn mixed(parts: &[Part], layers: Layers<'_>) -> String {
    let mut level = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => level.push_str(text),
            Part::Layer(slot) => level.push_str(&layers.shown(*slot)),
            Part::Group(slots) => {
                let before = level.len();
                for slot in slots {
                    let text = layers.text(*slot);
                    if text.is_empty() {
                        break;
                    }
                    level.push('%');
                    level.push_str(&text);
                }
                if level.len() == before {
                    level.push('%');
                }
            }
        }
    }
    // Parts that are harmless alone may climb together.
    seal_level(&mut level, 0);
    level
}

impl Resolution {
    /// Compiles a pattern; `slot_of` numbers its layers.
    pub fn new(pattern: &Pattern, mut slot_of: impl FnMut(&str) -> Slot) -> Resolution {
        let mut levels = vec![Vec::new()];
        for piece in pattern.pieces() {
            let part = match piece {
                Piece::Literal(text) => {
                    for (i, text) in split_levels(text).into_iter().enumerate() {
                        if i > 0 {
                            levels.push(Vec::new());
                        }
                        if let Some(level) = levels.last_mut().filter(|_| !text.is_empty()) {
                            level.push(Part::Literal(text.into()));
                        }
                    }
                    continue;
                }
                Piece::Layer(id) => Part::Layer(slot_of(id)),
                Piece::Group(ids) => Part::Group(ids.iter().map(|id| slot_of(id)).collect()),
            };
            if let Some(level) = levels.last_mut() {
                level.push(part);
            }
        }
        let (mut pieces, mut text) = (Vec::new(), String::new());
        // The first level is the empty one before the leading slash.
        let levels = levels.into_iter().skip(1).map(|parts| {
            text.push('/');
            let varying = match parts.as_slice() {
                [] => return Level::Literal(Hash::level("")),
                [Part::Literal(literal)] => {
                    text.push_str(literal);
                    return Level::Literal(Hash::level(literal));
                }
                [Part::Layer(slot)] => Varying::Layer(*slot),
                _ => Varying::Mixed(parts.into()),
            };
            let then = match &varying {
                Varying::Layer(slot) => Then::Layer(*slot),
                Varying::Mixed(parts) => Then::Mixed(parts.clone()),
            };
            Written::append(&text, then, &mut pieces);
            text.clear();
            Level::Varying(varying)
        });
        let mut levels: Vec<Level> = levels.collect();
        if !text.is_empty() {
            Written::append(&text, Then::Nothing, &mut pieces);
        }
        let base = levels.pop().unwrap_or(Level::Literal(Hash::level("")));
        let literal = |level: &Level| match level {
            Level::Literal(hash) => Some(*hash),
            Level::Varying(_) => None,
        };
        let prefix: Vec<Hash> = levels.iter().map_while(literal).collect();
        Resolution {
            parent: Parent {
                levels: levels.split_off(prefix.len()).into(),
                prefix: prefix.into_iter().fold(Hash::ROOT, Hash::then),
            },
            base,
            pieces: pieces.into(),
        }
    }

    /// Every layer that the name depends on.
    pub fn slots(&self) -> Vec<Slot> {
        let mut found = Vec::new();
        let levels = &self.parent.levels;
        levels.iter().for_each(|level| level.slots(&mut found));
        self.base.slots(&mut found);
        sort::by(&mut found, Ord::cmp);
        found.dedup();
        found
    }

    /// Looks the name up.
    pub fn find<'m>(&self, map: &'m Map, layers: Layers<'_>) -> Option<&'m Column> {
        map.get(self.place(layers))
    }

    /// The name's place.
    pub fn place(&self, layers: Layers<'_>) -> Place {
        Place {
            parent: self.parent.hash(layers),
            base: self.base.hash(layers),
        }
    }

    /// The name in full.
    pub fn name(&self, layers: Layers<'_>) -> String {
        let mut name = String::with_capacity(Written::ROOM * self.pieces.len());
        self.name_into(layers, &mut name);
        name
    }

    /// Appends the name in full, and returns all of the text: whoever reads its
    /// length where it was just written waits for that.
    pub fn name_into<'n>(&self, layers: Layers<'_>, name: &'n mut String) -> &'n str {
        /// The text's memory, all of what it has room for, and its length.
        fn ends(name: &mut String) -> (*mut u8, usize) {
            // SAFETY: nothing is written here.
            let bytes = unsafe { name.as_mut_vec() };
            (bytes.as_mut_ptr(), bytes.len())
        }
        let room = Written::ROOM * self.pieces.len();
        name.reserve(room);
        let (mut start, mut length) = ends(name);
        for piece in &self.pieces {
            let then = match &piece.then {
                Then::Layer(slot) => layers.short(*slot),
                Then::Mixed(_) => None,
                Then::Nothing => Some(""),
            };
            if let Some(then) = then {
                // SAFETY: there is room for as much as this of each piece, and
                // what is copied lies elsewhere.
                unsafe {
                    let end = start.add(length);
                    end.cast::<[u8; SHORT]>().write(piece.bytes);
                    copy_short(then.as_ptr(), end.add(piece.length), then.len());
                }
                length += piece.length + then.len();
            } else {
                // SAFETY: so much has been written, of whole characters.
                unsafe { name.as_mut_vec().set_len(length) };
                piece.write(layers, name);
                name.reserve(room);
                (start, length) = ends(name);
            }
        }
        // SAFETY: as above; and the text stays as it is while it is borrowed.
        unsafe {
            name.as_mut_vec().set_len(length);
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(start, length))
        }
    }
}

/// Splits at slashes that are not escaped.
pub fn split_levels(text: &str) -> Vec<&str> {
    let mut levels = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '/' => {
                levels.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    levels.push(&text[start..]);
    levels
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A cell of a layer with this value, as contexts have them.
    fn cell(text: &str, hashed: bool) -> LayerCell {
        // SAFETY: the text outlives the cell.
        let mut cell = unsafe { LayerCell::new(text.as_ptr(), text.len()) };
        if hashed {
            cell.make_hash();
        }
        cell
    }

    #[test]
    fn names_are_written_out_as_they_are_made_up() {
        let (long, wide) = ("l".repeat(40), "ä".repeat(9));
        let values = [
            "",
            "a",
            "de",
            "abc",
            "anna",
            "0123456789abcdef",
            &long,
            &wide,
        ];
        let same = values.map(|value| (value, value, value));
        // Alone in a level, and as a part of one.
        let escaped = [
            ("a/b", "a\\/b", "a\\/b"),
            ("50%", "50\\%", "50\\%"),
            ("..", "\\..", ".."),
            (".", "\\.", "."),
        ];
        let literals = [
            "/x",
            "/0123456789abcde/x",
            "/0123456789abcdef0/x",
            "/xäöüäöüäöüäöüäöü/ß",
        ];
        for (n, (value, shown, part)) in same.into_iter().chain(escaped).enumerate() {
            let shown = if value.is_empty() { "%" } else { shown };
            let group = if value.is_empty() {
                "%"
            } else {
                &format!("%{part}%{part}")
            };
            // An interpreter takes long for all of them.
            let literals = match cfg!(miri) {
                true => &literals[n % literals.len()..][..1],
                false => &literals[..],
            };
            for literal in literals {
                for (pattern, name) in [
                    (format!("{literal}/%a%"), format!("{literal}/{shown}")),
                    (format!("/%a%{literal}"), format!("/{shown}{literal}")),
                    (
                        format!("/%a%/%a%{literal}/%a%"),
                        format!("/{shown}/{shown}{literal}/{shown}"),
                    ),
                    (
                        format!("/%a a%{literal}/%a%"),
                        format!("/{group}{literal}/{shown}"),
                    ),
                    ((*literal).to_owned(), (*literal).to_owned()),
                ] {
                    let pattern = Pattern::parse(&pattern).expect("a pattern");
                    let resolution = Resolution::new(&pattern, |_| 0);
                    for hashed in [false, true] {
                        let cells = [cell(value, hashed)];
                        assert_eq!(resolution.name(Layers(&cells)), name, "{pattern} {value}");
                        let mut after = String::from("before ");
                        let all = resolution.name_into(Layers(&cells), &mut after).to_owned();
                        assert_eq!(all, after);
                        assert_eq!(after, format!("before {name}"));
                    }
                    if value.is_empty() {
                        assert_eq!(resolution.name(Layers(&[])), name, "{pattern}");
                    }
                }
            }
        }
    }
}
