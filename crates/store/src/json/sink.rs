//! What is made of the text that the reader follows: keys, or a document.

use std::borrow::Cow;
use std::ops::Range;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_keys::rules::array_level;

use crate::nested::levels;
use crate::nested::pieces::{self, NONE, Pieces};
use crate::nested::report::Report;
use crate::nested::tree::{ROOT, Shape, Tree};

/// The name of a member as it was read.
pub(super) struct Member<'t> {
    pub text: Cow<'t, str>,
    pub range: Range<usize>,
    pub piece: u32,
}

/// A value or the begin of one, as it was read.
pub(super) struct Content<'t> {
    pub shape: Shape,
    pub written: &'t str,
    /// Where it is written.
    pub range: Range<usize>,
    pub piece: u32,
    pub line: u32,
}

pub(super) trait Sink<'t> {
    /// Whether it wants to know all mistakes, or only whether there are any.
    const ALL_MISTAKES: bool;

    /// Takes the next piece of the text.
    fn piece(&mut self, kind: pieces::Kind, range: Range<usize>) -> u32;

    /// Takes a value or the begin of an object or array, below the one that is
    /// open; false if its name was there before.
    fn content(&mut self, member: Option<Member<'t>>, content: &Content<'t>) -> bool;

    /// Takes the end of the object or array that is open; false if a name was there twice.
    fn close(&mut self, piece: u32) -> bool;

    /// Takes a mistake.
    fn mistake(&mut self, diagnostic: impl FnOnce() -> Diagnostic);
}

/// Takes a value with its name; false to read no further.
pub(super) type Each<'e> = &'e mut dyn FnMut(&Name, &Content<'_>) -> bool;

/// Names values and keeps nothing.
pub(super) struct Loading<'t, 'e> {
    each: Each<'e>,
    open: Vec<Level>,
    /// The members of all objects that are open, those of each together.
    seen: Vec<Cow<'t, str>>,
}

/// An object or array that is open.
struct Level {
    name: Name,
    /// How many elements of an array there were.
    elements: Option<usize>,
    /// Where its members begin among those that were seen.
    seen: usize,
}

impl<'e> Loading<'_, 'e> {
    pub fn new(each: Each<'e>) -> Self {
        Loading {
            each,
            open: Vec::new(),
            seen: Vec::new(),
        }
    }
}

impl<'t> Sink<'t> for Loading<'t, '_> {
    const ALL_MISTAKES: bool = false;

    fn piece(&mut self, _: pieces::Kind, _: Range<usize>) -> u32 {
        NONE
    }

    fn content(&mut self, member: Option<Member<'t>>, content: &Content<'t>) -> bool {
        let is_value = matches!(content.shape, Shape::Value | Shape::Null);
        let name = match (self.open.last_mut(), member) {
            (None, _) => Name::root(),
            (
                Some(Level {
                    name,
                    elements: Some(count),
                    ..
                }),
                _,
            ) => {
                *count += 1;
                name.join(&array_level(*count - 1))
            }
            (Some(_), None) => return false,
            (Some(level), Some(Member { text, .. })) => {
                let name = match text.is_empty() && is_value {
                    true => level.name.clone(),
                    false => levels::below(&level.name, &text),
                };
                if text.is_empty() && !is_value {
                    self.seen.push(Cow::Borrowed("\\"));
                }
                self.seen.push(text);
                name
            }
        };
        match content.shape {
            Shape::Null => true,
            Shape::Value => (self.each)(&name, content),
            shape => {
                self.open.push(Level {
                    name,
                    elements: (shape == Shape::Array).then_some(0),
                    seen: self.seen.len(),
                });
                true
            }
        }
    }

    fn close(&mut self, _: u32) -> bool {
        let Some(level) = self.open.pop() else {
            return false;
        };
        let seen = &mut self.seen[level.seen..];
        seen.sort_unstable();
        let unique = seen.windows(2).all(|pair| pair[0] != pair[1]);
        self.seen.truncate(level.seen);
        unique
    }

    fn mistake(&mut self, _: impl FnOnce() -> Diagnostic) {}
}

/// Builds a document.
pub(super) struct Building {
    pub pieces: Pieces,
    pub tree: Tree,
    pub report: Report,
    open: Vec<u32>,
}

impl Building {
    pub fn new(text: &str, start: usize) -> Building {
        Building {
            pieces: Pieces::of(text, start),
            tree: Tree::new(Shape::Null, text.len() / 16),
            report: Report::default(),
            open: Vec::new(),
        }
    }

    /// The node of what was read, or the one that had its name before.
    fn node(&mut self, member: Option<&Member<'_>>, shape: Shape) -> Result<u32, u32> {
        let Some(&parent) = self.open.last() else {
            return Ok(ROOT);
        };
        let is_value = matches!(shape, Shape::Value | Shape::Null);
        let name = &self.tree.node(parent).name;
        let Some(Member { text, .. }) = member else {
            let index = self.tree.node(parent).children.len();
            return self.tree.add(parent, name.join(&array_level(index)), shape);
        };
        let name = levels::below(name, text);
        if !text.is_empty() {
            return self.tree.add(parent, name, shape);
        }
        match self.tree.nameless(parent) {
            NONE if is_value => self.tree.add_own(parent, shape),
            NONE => {
                let id = self.tree.add(parent, name, shape)?;
                self.tree.node_mut(id).nameless = true;
                Ok(id)
            }
            first => Err(first),
        }
    }

    fn duplicate(&mut self, member: &Member<'_>, first: u32) {
        let pieces = &self.pieces;
        let before = pieces.range(self.tree.node(first).first);
        self.report.add(|| {
            let message = format!("the object has the member `{}` twice", member.text);
            let diagnostic =
                Diagnostic::error(message).label(member.range.clone().into(), "given again here");
            match before {
                Some(before) => diagnostic.label(before.into(), "first given here"),
                None => diagnostic,
            }
            .help("keep one of the two")
        });
    }
}

impl<'t> Sink<'t> for Building {
    const ALL_MISTAKES: bool = true;

    fn piece(&mut self, kind: pieces::Kind, range: Range<usize>) -> u32 {
        self.pieces.read(kind, range)
    }

    fn content(&mut self, member: Option<Member<'t>>, content: &Content<'t>) -> bool {
        let found = self.node(member.as_ref(), content.shape);
        if let (Err(first), Some(member)) = (found, &member) {
            self.duplicate(member, first);
        }
        let (Ok(id) | Err(id)) = found;
        if found.is_ok() {
            let node = self.tree.node_mut(id);
            node.shape = content.shape;
            node.first = member.map_or(content.piece, |member| member.piece);
            (node.value, node.last) = (content.piece, content.piece);
            self.pieces.set_node(content.piece, id);
        }
        if matches!(content.shape, Shape::Object | Shape::Array) {
            self.open.push(id);
        }
        found.is_ok()
    }

    fn close(&mut self, piece: u32) -> bool {
        if let Some(id) = self.open.pop() {
            self.tree.node_mut(id).last = piece;
            self.pieces.set_node(piece, id);
        }
        true
    }

    fn mistake(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        self.report.add(diagnostic);
    }
}
