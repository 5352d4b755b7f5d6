//! A text that nests, every key of which can be edited on its own.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

use milieu_diagnostics::Span;
use milieu_keys::rules::array_level;
use milieu_keys::{Name, split};

use super::moves::Moving;
use super::pieces::{self, NONE, Pieces};
use super::tree::{Node, ROOT, Shape, Tree};
use super::{DEPTH_MAX, levels};
use crate::format::{Document, Entry, Kind, Unwritable};

/// How a format writes what [`Nested`] edits.
pub(crate) trait Syntax: Sized + 'static {
    /// What stands between a member and its value.
    const SEPARATOR: &'static str;
    /// The same with the blanks around it, where there is no example.
    const SPACED: &'static str;
    /// The blanks inside of the braces of an object on one line.
    const PADDING: &'static str;
    /// One more level of objects and arrays that go over lines.
    const INDENTATION: &'static str;
    /// Whether objects may go over lines.
    const LINES: bool;

    /// What a value that is written so means.
    fn decode(written: &str) -> Cow<'_, str>;

    /// How a value is written that takes the place of another one.
    fn encode(value: &str, kind: Kind, replaced: Option<&str>) -> String;

    /// How the name of a member is written.
    fn key(member: &str) -> String;

    /// Writes a new key below a table that is not in braces.
    fn insert(document: &mut Nested<Self>, table: u32, new: &New<'_>) -> Result<(), Unwritable>;

    /// Takes out the text of a node that is not within braces or brackets.
    fn cut(document: &mut Nested<Self>, node: u32);

    /// Whether a table that is not in braces has to stay although it lost its last key.
    fn stays(document: &Nested<Self>, table: u32) -> bool;
}

/// A key that is not there yet.
pub(crate) struct New<'a> {
    /// The names from the first that is missing to that of the key. None for
    /// the value of an object that is there.
    pub chain: Vec<Name>,
    pub value: &'a str,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) struct Nested<S> {
    pub pieces: Pieces,
    pub tree: Tree,
    /// Whether there were errors, so that the text is only kept.
    pub broken: bool,
    /// Keys that are to have other names.
    pub moving: Vec<Moving>,
    syntax: PhantomData<S>,
}

impl<S: Syntax> Nested<S> {
    pub fn new(pieces: Pieces, tree: Tree) -> Nested<S> {
        Nested {
            pieces,
            tree,
            broken: false,
            moving: Vec::new(),
            syntax: PhantomData,
        }
    }

    /// A text that has errors. It is kept, and has no keys.
    pub fn broken(text: &str) -> Nested<S> {
        let mut pieces = Pieces::of(text, 0);
        pieces.read(pieces::Kind::Mark, 0..text.len());
        let mut document = Nested::new(pieces, Tree::new(Shape::Null, 1));
        document.broken = true;
        document
    }

    pub fn node(&self, id: u32) -> &Node {
        self.tree.node(id)
    }

    /// The node that has the value of a key.
    pub fn value_node(&self, name: &str) -> Option<u32> {
        let id = self.tree.find(name)?;
        let node = self.node(id);
        let id = if node.own == NONE { id } else { node.own };
        (self.node(id).shape == Shape::Value).then_some(id)
    }

    pub fn value(&self, id: u32) -> Cow<'_, str> {
        S::decode(self.pieces.body(self.node(id).value))
    }

    /// Replaces the value of a node that has one, or the place of one.
    fn replace(&mut self, id: u32, value: &str, kind: Kind) {
        let piece = self.node(id).value;
        let replaced = self.pieces.body(piece);
        let encoded = S::encode(value, kind, Some(replaced));
        if self.node(id).shape == Shape::Null || S::decode(&encoded) != S::decode(replaced) {
            self.pieces.rewrite(piece, &encoded);
        }
        self.tree.node_mut(id).shape = Shape::Value;
    }

    fn add(&mut self, name: &Name, value: &str, kind: Kind) -> Result<(), Unwritable> {
        let (nearest, missing) = self.tree.nearest(name);
        let new = New {
            chain: chain(name, missing),
            value,
            kind,
        };
        let Node { shape, own, .. } = *self.node(nearest);
        match (shape, new.chain.first()) {
            (Shape::Null, None) if self.node(nearest).value != NONE => {
                self.replace(nearest, value, kind);
            }
            (Shape::Null, _) => self.fill(nearest, &new),
            (Shape::Array | Shape::Tables, None) => return Err(array_with_value(name)),
            (Shape::Array | Shape::Tables, Some(element)) => {
                self.check_next(nearest, element)?;
                if shape == Shape::Tables {
                    return S::insert(self, nearest, &new);
                }
                self.insert_item(nearest, &new);
            }
            (_, None) if own != NONE => self.replace(own, value, kind),
            (_, None) if self.tree.nameless(nearest) != NONE => {
                return Err(unwritable(
                    format!(
                        "`{name}` has a member without a name, where its own value would stand"
                    ),
                    "give that member a name",
                ));
            }
            (Shape::Object, _) => self.insert_item(nearest, &new),
            (Shape::Value, _) => {
                self.make_object(nearest);
                self.insert_item(nearest, &new);
            }
            (Shape::Header | Shape::Implicit | Shape::Dotted, _) => {
                return S::insert(self, nearest, &new);
            }
        }
        Ok(())
    }

    /// Only the element behind the last one can be new.
    fn check_next(&self, array: u32, element: &Name) -> Result<(), Unwritable> {
        let next = array_level(self.node(array).children.len());
        let (parent, level) = split(element.as_str());
        if level == next {
            return Ok(());
        }
        Err(unwritable(
            format!(
                "`{element}` is not the next element of the array `{}`",
                root_or(parent)
            ),
            format!("set `{parent}/{next}`"),
        ))
    }

    fn take(&mut self, name: &str) -> Result<Option<String>, Unwritable> {
        let Some(id) = self.value_node(name) else {
            return Ok(None);
        };
        if self.is_before_others(id) {
            let array = self.node(self.node(id).parent);
            let last = array.children.len() - 1;
            return Err(unwritable(
                format!(
                    "`{name}` is not the last element of its array, and those behind it would get other names"
                ),
                format!("remove `{}/{}` first", array.name, array_level(last)),
            ));
        }
        let value = self.value(id).into_owned();
        let mut parent = self.node(id).parent;
        self.remove_node(id);
        while parent != NONE && parent != ROOT && !self.stays(parent) {
            let empty = parent;
            parent = self.node(empty).parent;
            self.remove_node(empty);
        }
        Ok(Some(value))
    }

    /// Whether it is an element with others behind it.
    fn is_before_others(&self, id: u32) -> bool {
        let Node { parent, .. } = *self.node(id);
        parent != NONE
            && self.node(parent).shape.is_array()
            && self.node(parent).children.last() != Some(&id)
    }

    /// Whether what has lost a key stays all the same.
    pub fn stays(&self, id: u32) -> bool {
        let node = self.node(id);
        if !node.children.is_empty() || self.is_before_others(id) {
            return true;
        }
        match node.shape {
            Shape::Object | Shape::Array => {
                let mut inside = self
                    .pieces
                    .from(node.value)
                    .take_while(|&id| id != node.last);
                inside.any(|id| self.pieces.kind(id) == Some(pieces::Kind::Comment))
            }
            _ => S::stays(self, id),
        }
    }

    pub fn remove_node(&mut self, id: u32) {
        if id == ROOT {
            let piece = self.node(ROOT).value;
            self.pieces.cut(piece, piece);
            let root = self.tree.node_mut(ROOT);
            root.shape = Shape::Null;
            (root.first, root.value, root.last) = (NONE, NONE, NONE);
            return;
        }
        match self.enclosing(self.node(id).parent) {
            _ if matches!(
                self.node(id).shape,
                Shape::Dotted | Shape::Implicit | Shape::Tables
            ) => {}
            Some(container) => self.cut_item(container, id),
            None => S::cut(self, id),
        }
        self.tree.remove(id);
    }

    /// The object or array in braces or brackets whose items are the keys of a
    /// table, if there is one.
    pub fn enclosing(&self, mut table: u32) -> Option<u32> {
        while self.node(table).shape == Shape::Dotted {
            table = self.node(table).parent;
        }
        matches!(self.node(table).shape, Shape::Object | Shape::Array).then_some(table)
    }
}

impl<S: Syntax> Document for Nested<S> {
    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.value_node(name).map(|id| self.value(id))
    }

    fn keys(&self) -> Box<dyn Iterator<Item = Entry<'_>> + '_> {
        let mut line = 1;
        Box::new(
            self.pieces
                .from(self.pieces.first())
                .filter_map(move |piece| {
                    let begins = line;
                    let breaks = self
                        .pieces
                        .body(piece)
                        .bytes()
                        .filter(|&byte| byte == b'\n');
                    line += breaks.count() as u32;
                    let id = self.pieces.node(piece);
                    if id == NONE || self.node(id).shape != Shape::Value {
                        return None;
                    }
                    Some(Entry {
                        name: Cow::Borrowed(&self.node(id).name),
                        value: self.value(id),
                        line: begins,
                        span: self.pieces.range(piece).map(Span::from),
                    })
                }),
        )
    }

    fn set(&mut self, name: &Name, value: &str, kind: Kind) -> Result<Option<String>, Unwritable> {
        self.check_sound()?;
        if name.levels().count() > DEPTH_MAX {
            return Err(unwritable(
                format!("the name has more than {DEPTH_MAX} levels"),
                "use a shorter one",
            ));
        }
        let Some(id) = self.value_node(name.as_str()) else {
            return self.add(name, value, kind).map(|()| None);
        };
        let replaced = self.value(id).into_owned();
        if replaced != value {
            self.replace(id, value, kind);
        }
        Ok(Some(replaced))
    }

    fn remove(&mut self, name: &str) -> Result<Option<String>, Unwritable> {
        self.check_sound()?;
        self.take(name)
    }

    fn moving(&mut self, from: &str, to: &Name) {
        self.note_move(from, to);
    }

    fn moved(&mut self) {
        self.follow_moves();
    }

    fn text(&self) -> String {
        self.pieces.to_string()
    }
}

impl<S: Syntax> Nested<S> {
    fn check_sound(&self) -> Result<(), Unwritable> {
        if self.broken {
            return Err(unwritable("the text has errors", "mend them first"));
        }
        Ok(())
    }
}

/// A text with another value at the place of one, if it is written as exactly
/// this value and all lines stay where they are.
pub(crate) fn replaced<S: Syntax>(
    text: &str,
    place: Range<usize>,
    value: &str,
    kind: Kind,
) -> Option<String> {
    let old = &text[place.clone()];
    if S::decode(old) == value {
        return Some(text.to_owned());
    }
    let new = S::encode(value, kind, Some(old));
    let lines = |text: &str| text.bytes().filter(|&byte| byte == b'\n').count();
    let fits = S::decode(&new) == value && lines(old) == lines(&new);
    fits.then(|| [&text[..place.start], &new, &text[place.end..]].concat())
}

/// The names from the first missing one to the name itself.
fn chain(name: &Name, missing: usize) -> Vec<Name> {
    let mut chain: Vec<Name> = std::iter::successors(Some(name.clone()), Name::parent)
        .take(missing)
        .collect();
    chain.reverse();
    chain
}

fn array_with_value(name: &Name) -> Unwritable {
    unwritable(
        format!("`{name}` is an array, which has no value of its own"),
        "set one of its elements, or remove them first",
    )
}

pub(crate) fn unwritable(message: impl Into<String>, help: impl Into<String>) -> Unwritable {
    Unwritable {
        message: message.into(),
        help: help.into(),
    }
}

fn root_or(parent: &str) -> &str {
    if parent.is_empty() { "/" } else { parent }
}

/// The member that the last level of a name is written as.
pub(crate) fn member(name: &Name) -> Cow<'_, str> {
    levels::member(split(name.as_str()).1)
}
