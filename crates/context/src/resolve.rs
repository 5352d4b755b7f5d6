//! From a pattern and the active layers to the place of a name.
//!
//! A pattern is compiled once into levels. Levels before the first placeholder
//! are one literal prefix with one hash; a level that is a single placeholder
//! contributes the hash that its layer's cell already holds. Resolving a name
//! to look it up therefore builds no string.

use std::borrow::Cow;

use milieu_keys::{Pattern, Piece, name::seal_level, sort};

use crate::{
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
    Literal(Box<str>, Hash),
    Layer(Slot),
    Mixed(Box<[Part]>),
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The literal levels before the first placeholder, as the name of a parent.
    prefix: Box<str>,
    prefix_hash: Hash,
    /// The levels from there to the last but one.
    levels: Box<[Level]>,
    /// The last level.
    pub base: Level,
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
}

impl Level {
    fn of(mut parts: Vec<Part>) -> Level {
        match parts.as_mut_slice() {
            [] => Level::Literal("".into(), Hash::level("")),
            [Part::Literal(text)] => {
                let text = std::mem::take(text);
                let hash = Hash::level(&text);
                Level::Literal(text, hash)
            }
            [Part::Layer(slot)] => Level::Layer(*slot),
            _ => Level::Mixed(parts.into()),
        }
    }

    #[inline]
    pub fn hash(&self, layers: Layers<'_>) -> Hash {
        match self {
            Level::Literal(_, hash) => *hash,
            Level::Layer(slot) => match layers.0.get(*slot as usize) {
                Some(cell) => cell.hash(),
                None => Hash::level("%"),
            },
            Level::Mixed(parts) => Hash::level(&mixed(parts, layers)),
        }
    }

    fn text<'a>(&'a self, layers: Layers<'a>) -> Cow<'a, str> {
        match self {
            Level::Literal(text, _) => Cow::Borrowed(text),
            Level::Layer(slot) => layers.shown(*slot),
            Level::Mixed(parts) => Cow::Owned(mixed(parts, layers)),
        }
    }

    fn slots(&self, found: &mut Vec<Slot>) {
        match self {
            Level::Literal(..) => {}
            Level::Layer(slot) => found.push(*slot),
            Level::Mixed(parts) => {
                for part in parts {
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

/// As much as a level of a name has with its slash, mostly.
const LEVEL: usize = 16;

impl Resolution {
    /// Compiles a pattern; `slot_of` numbers its layers.
    pub fn new(pattern: &Pattern, mut slot_of: impl FnMut(&str) -> Slot) -> Resolution {
        let mut levels = Vec::new();
        let mut level: Vec<Part> = Vec::new();
        for piece in pattern.pieces() {
            match piece {
                Piece::Literal(text) => {
                    for (i, part) in split_levels(text).into_iter().enumerate() {
                        if i > 0 {
                            levels.push(Level::of(std::mem::take(&mut level)));
                        }
                        if !part.is_empty() {
                            level.push(Part::Literal(part.into()));
                        }
                    }
                }
                Piece::Layer(id) => level.push(Part::Layer(slot_of(id))),
                Piece::Group(ids) => {
                    level.push(Part::Group(ids.iter().map(|id| slot_of(id)).collect()));
                }
            }
        }
        let base = Level::of(level);
        // The first level is the empty one before the leading slash.
        let mut levels = levels.split_off(1.min(levels.len()));
        let literal = levels
            .iter()
            .position(|level| !matches!(level, Level::Literal(..)))
            .unwrap_or(levels.len());
        let rest = levels.split_off(literal);
        let mut prefix = String::new();
        let mut prefix_hash = Hash::ROOT;
        for level in &levels {
            if let Level::Literal(text, hash) = level {
                prefix.push('/');
                prefix.push_str(text);
                prefix_hash = prefix_hash.then(*hash);
            }
        }
        Resolution {
            prefix: prefix.into(),
            prefix_hash,
            levels: rest.into(),
            base,
        }
    }

    /// Every layer that the name depends on.
    pub fn slots(&self) -> Vec<Slot> {
        let mut found = Vec::new();
        self.levels.iter().for_each(|level| level.slots(&mut found));
        self.base.slots(&mut found);
        sort::by(&mut found, Ord::cmp);
        found.dedup();
        found
    }

    /// Whether two patterns always have the same parent.
    pub fn same_parent(&self, other: &Resolution) -> bool {
        self.prefix == other.prefix && self.levels == other.levels
    }

    #[inline]
    pub fn parent_hash(&self, layers: Layers<'_>) -> Hash {
        self.levels.iter().fold(self.prefix_hash, |hash, level| {
            hash.then(level.hash(layers))
        })
    }

    /// Looks the name up.
    pub fn find<'m>(&self, map: &'m Map, layers: Layers<'_>) -> Option<&'m Column> {
        map.get(self.place(layers))
    }

    /// The name's place.
    pub fn place(&self, layers: Layers<'_>) -> Place {
        Place {
            parent: self.parent_hash(layers),
            base: self.base.hash(layers),
        }
    }

    /// The name in full.
    pub fn name(&self, layers: Layers<'_>) -> String {
        let mut name = String::with_capacity(self.prefix.len() + LEVEL * (self.levels.len() + 1));
        self.name_into(layers, &mut name);
        name
    }

    /// Appends the name in full.
    pub fn name_into(&self, layers: Layers<'_>, name: &mut String) {
        name.push_str(&self.prefix);
        for level in self.levels.iter().chain([&self.base]) {
            name.push('/');
            name.push_str(&level.text(layers));
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
