//! Turns text into keys, or into a document, and reports what it does not understand.
//!
//! The parser's library finds tokens and their order; what tables and keys they
//! make is found here, for loading and for editing alike.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_keys::rules::array_level;
use toml_parser::decoder::Encoding;
use toml_parser::parser::{EventReceiver, RecursionGuard, parse_document};
use toml_parser::{ErrorSink, ParseError, Raw, Source, Span};

use super::mistakes::describe;
use super::{Writing, scalar};
use crate::nested::pieces::{self, NONE, Pieces};
use crate::nested::report::Report;
use crate::nested::tree::{ROOT, Shape, Tree};
use crate::nested::{DEPTH_MAX, Nested, levels};

/// Takes a value with its name, its line and its place; false if it had the name before.
type Each<'e> = &'e mut dyn FnMut(&Name, &str, u32, Span) -> bool;

/// Hands every key to `each`; false as soon as something is wrong.
pub(super) fn load(text: &str, each: &mut dyn FnMut(&Name, &str, u32) -> bool) -> bool {
    values(text, &mut |name, value, line, _| each(name, value, line))
}

/// Where the value of a key is written, if it is on that line and the text is right.
pub(super) fn place(text: &str, line: u32, name: &Name) -> Option<Range<usize>> {
    let mut place = None;
    let sound = values(text, &mut |other, _, at, span| {
        if at == line && other == name {
            place = Some(span.start()..span.end());
        }
        true
    });
    place.filter(|_| sound)
}

fn values(text: &str, each: Each<'_>) -> bool {
    let errors = Errors::default();
    Reader::new(text, &errors, Sink::Load(each)).read();
    !errors.stop.get()
}

pub(super) fn parse(text: &str) -> (Nested<Writing>, Vec<Diagnostic>) {
    let errors = Errors {
        report: Some(RefCell::default()),
        ..Errors::default()
    };
    let start = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let mut reader = Reader::new(text, &errors, Sink::Build(Pieces::of(text, start)));
    reader.read();
    let Reader {
        tree,
        sink: Sink::Build(pieces),
        ..
    } = reader
    else {
        unreachable!("it was made so");
    };
    let report = errors.report.map(RefCell::into_inner).unwrap_or_default();
    let diagnostics = report.finish("TOML");
    if diagnostics.is_empty() {
        (Nested::new(pieces, tree), diagnostics)
    } else {
        (Nested::broken(text), diagnostics)
    }
}

/// What was found wrong, by the parser and by its receiver.
#[derive(Default)]
struct Errors {
    /// Whether what is read has no meaning any more.
    stop: Cell<bool>,
    /// Nothing where only the first error counts.
    report: Option<RefCell<Report>>,
}

impl Errors {
    fn add(&self, diagnostic: impl FnOnce() -> Diagnostic) {
        match &self.report {
            Some(report) => report.borrow_mut().add(diagnostic),
            None => self.stop.set(true),
        }
    }
}

/// The errors of the parser, which come with places in this text.
struct Found<'a> {
    text: &'a str,
    errors: &'a Errors,
}

impl ErrorSink for Found<'_> {
    fn report_error(&mut self, error: ParseError) {
        self.errors.stop.set(true);
        self.errors.add(|| describe(self.text, &error));
    }
}

enum Sink<'e> {
    Load(Each<'e>),
    Build(Pieces),
}

/// One part of a dotted key or of a header.
struct Part<'t> {
    text: Cow<'t, str>,
    place: Range<usize>,
    piece: u32,
}

struct Reader<'t, 'e> {
    text: &'t str,
    errors: &'e Errors,
    sink: Sink<'e>,
    tree: Tree,
    /// The table whose keys are read; none if its header was wrong.
    table: Option<u32>,
    /// Arrays and inline tables that are open.
    open: Vec<u32>,
    parts: Vec<Part<'t>>,
    /// Where a header began.
    header: u32,
    line: u32,
    /// Up to where the lines were counted.
    counted: usize,
}

impl<'t, 'e> Reader<'t, 'e> {
    fn new(text: &'t str, errors: &'e Errors, sink: Sink<'e>) -> Self {
        Reader {
            text,
            errors,
            sink,
            tree: Tree::new(Shape::Header, text.len() / 24),
            table: Some(ROOT),
            open: Vec::new(),
            parts: Vec::new(),
            header: NONE,
            line: 1,
            counted: 0,
        }
    }

    fn read(&mut self) {
        let (text, errors) = (self.text, self.errors);
        let tokens = Source::new(text).lex().into_vec();
        let mut found = Found { text, errors };
        let mut guard = RecursionGuard::new(self, DEPTH_MAX as u32);
        parse_document(&tokens, &mut guard, &mut found);
    }

    /// Whether what comes has a meaning.
    fn in_step(&self) -> bool {
        !self.errors.stop.get() && self.table.is_some()
    }

    fn piece(&mut self, kind: pieces::Kind, span: Span) -> u32 {
        match &mut self.sink {
            Sink::Load(_) => NONE,
            Sink::Build(pieces) => pieces.read(kind, span.start()..span.end()),
        }
    }

    fn raw(&self, span: Span, encoding: Option<Encoding>) -> Raw<'t> {
        Raw::new_unchecked(&self.text[span.start()..span.end()], encoding, span)
    }

    /// The table that a part leads to from another one.
    fn descend(&mut self, table: u32, part: &Part<'t>, dotted: bool) -> Result<u32, u32> {
        let name = levels::below(&self.tree.node(table).name, &part.text);
        let Some(id) = self.tree.find(name.as_str()) else {
            let shape = if dotted {
                Shape::Dotted
            } else {
                Shape::Implicit
            };
            return self.add(table, part, shape);
        };
        let node = self.tree.node(id);
        // Two different names of one level, see `levels`.
        if node.nameless != part.text.is_empty() {
            return Err(id);
        }
        match node.shape {
            Shape::Dotted => Ok(id),
            Shape::Implicit => {
                if dotted {
                    self.tree.node_mut(id).shape = Shape::Dotted;
                }
                Ok(id)
            }
            Shape::Header if !dotted => Ok(id),
            Shape::Tables if !dotted => {
                let last = self.tree.node(id).children.last();
                Ok(*last.expect("it was made with an element"))
            }
            _ => Err(id),
        }
    }

    /// Adds what a part names, or returns what has its name already.
    fn add(&mut self, table: u32, part: &Part<'t>, shape: Shape) -> Result<u32, u32> {
        let name = levels::below(&self.tree.node(table).name, &part.text);
        if shape != Shape::Value {
            self.check_depth(&name, &part.place);
        }
        if !part.text.is_empty() {
            return self.tree.add(table, name, shape);
        }
        match self.tree.nameless(table) {
            NONE if shape == Shape::Value => self.tree.add_own(table, shape),
            NONE => {
                let id = self.tree.add(table, name, shape)?;
                self.tree.node_mut(id).nameless = true;
                Ok(id)
            }
            first => Err(first),
        }
    }

    fn check_depth(&mut self, name: &Name, place: &Range<usize>) {
        if name.levels().count() < DEPTH_MAX {
            return;
        }
        self.table = None;
        self.errors.add(|| {
            Diagnostic::error(format!("the text nests deeper than {DEPTH_MAX} levels"))
                .label(place.clone().into(), "one more level")
                .help("put less into each other")
        });
    }

    /// Leads along all parts but the last, which it returns with the table that it is in.
    fn target(&mut self, from: u32, dotted: bool) -> Option<(u32, Part<'t>)> {
        let mut parts = std::mem::take(&mut self.parts);
        let last = parts.pop()?;
        let mut table = from;
        for part in &parts {
            match self.descend(table, part, dotted) {
                Ok(next) => table = next,
                Err(other) => {
                    self.conflict(part, other);
                    return None;
                }
            }
            // The depth may have been too large.
            self.table?;
        }
        Some((table, last))
    }

    fn begin_header(&mut self, span: Span) {
        self.header = self.piece(pieces::Kind::Mark, span);
        self.parts.clear();
        self.open.clear();
    }

    fn end_header(&mut self, is_element: bool, piece: u32) {
        // What a wrong header says has no meaning, what comes after it may have.
        self.table = Some(ROOT);
        let table = self.target(ROOT, false).and_then(|(parent, part)| {
            let found = self.header_table(parent, &part, is_element);
            found.map_err(|other| self.conflict(&part, other)).ok()
        });
        self.table = self.table.and(table);
        if let Some(table) = self.table {
            let node = self.tree.node_mut(table);
            (node.first, node.value, node.last) = (self.header, piece, piece);
        }
    }

    fn header_table(&mut self, parent: u32, part: &Part<'t>, is_element: bool) -> Result<u32, u32> {
        let shape = if is_element {
            Shape::Tables
        } else {
            Shape::Header
        };
        let id = match self.add(parent, part, shape) {
            Ok(id) => id,
            Err(id) => {
                let node = self.tree.node(id);
                match node.shape {
                    _ if node.nameless != part.text.is_empty() => return Err(id),
                    Shape::Tables if is_element => id,
                    Shape::Implicit if !is_element => id,
                    _ => return Err(id),
                }
            }
        };
        if !is_element {
            self.tree.node_mut(id).shape = Shape::Header;
            return Ok(id);
        }
        let node = self.tree.node(id);
        let name = node.name.join(&array_level(node.children.len()));
        self.check_depth(&name, &part.place);
        self.tree.add(id, name, Shape::Header)
    }

    /// Enters a value, an array or an inline table below what is open.
    fn content(&mut self, shape: Shape, span: Span, piece: u32) -> Option<u32> {
        let from = self.open.last().copied().or(self.table)?;
        let id = if self.tree.node(from).shape == Shape::Array {
            let node = self.tree.node(from);
            let name = node.name.join(&array_level(node.children.len()));
            if shape != Shape::Value {
                self.check_depth(&name, &(span.start()..span.end()));
            }
            self.tree.add(from, name, shape).ok()?
        } else {
            let first = self.parts.first()?.piece;
            let (parent, part) = self.target(from, true)?;
            let id = match self.add(parent, &part, shape) {
                Ok(id) => id,
                Err(other) => {
                    self.conflict(&part, other);
                    return None;
                }
            };
            self.tree.node_mut(id).first = first;
            id
        };
        let node = self.tree.node_mut(id);
        (node.value, node.last) = (piece, piece);
        if node.first == NONE {
            node.first = piece;
        }
        if let Sink::Build(pieces) = &mut self.sink {
            pieces.set_node(piece, id);
        }
        Some(id)
    }

    fn open(&mut self, shape: Shape, span: Span) -> bool {
        let piece = self.piece(pieces::Kind::Open, span);
        if self.in_step() {
            match self.content(shape, span, piece) {
                Some(id) => self.open.push(id),
                // Without a place, what is inside has none either.
                None => self.table = None,
            }
        }
        self.parts.clear();
        true
    }

    fn close(&mut self, span: Span) {
        let piece = self.piece(pieces::Kind::Close, span);
        if let Some(id) = self.open.pop() {
            self.tree.node_mut(id).last = piece;
            if let Sink::Build(pieces) = &mut self.sink {
                pieces.set_node(piece, id);
            }
        }
    }

    fn conflict(&mut self, part: &Part<'t>, other: u32) {
        let node = self.tree.node(other);
        let message = match node.shape {
            Shape::Object | Shape::Array => format!(
                "`{}` is complete already, and cannot be added to",
                node.name
            ),
            Shape::Value => format!("`{}` has a value already", node.name),
            _ => format!("the table `{}` is given already", node.name),
        };
        // What only the keys below it mention begins with the first of them.
        let mut id = Some(other);
        let mentions = std::iter::from_fn(|| {
            let node = self.tree.node(id?);
            id = node.children.first().copied();
            Some(node.first)
        });
        let first = mentions.into_iter().find(|&first| first != NONE);
        let first = match (&self.sink, first) {
            (Sink::Build(pieces), Some(first)) => pieces.range(first),
            _ => None,
        };
        self.errors.add(|| {
            let diagnostic =
                Diagnostic::error(message).label(part.place.clone().into(), "given again here");
            match first {
                Some(first) => diagnostic.label(first.into(), "first given here"),
                None => diagnostic,
            }
            .help("keep one of the two, or put both into one")
        });
    }

    fn load(&mut self, id: u32, value: &str, span: Span) {
        let Sink::Load(each) = &mut self.sink else {
            return;
        };
        let passed = &self.text.as_bytes()[self.counted..span.start()];
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u32;
        self.counted = span.start();
        if !each(&self.tree.node(id).name, value, self.line, span) {
            self.errors.stop.set(true);
        }
    }
}

impl EventReceiver for Reader<'_, '_> {
    fn std_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.begin_header(span);
    }

    fn array_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.begin_header(span);
    }

    fn std_table_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        let piece = self.piece(pieces::Kind::Mark, span);
        self.end_header(false, piece);
    }

    fn array_table_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        let piece = self.piece(pieces::Kind::Mark, span);
        self.end_header(true, piece);
    }

    fn inline_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) -> bool {
        self.open(Shape::Object, span)
    }

    fn inline_table_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.close(span);
    }

    fn array_open(&mut self, span: Span, _: &mut dyn ErrorSink) -> bool {
        self.open(Shape::Array, span)
    }

    fn array_close(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.close(span);
    }

    fn simple_key(&mut self, span: Span, encoding: Option<Encoding>, errors: &mut dyn ErrorSink) {
        let piece = self.piece(pieces::Kind::Mark, span);
        let mut text = Cow::Borrowed("");
        self.raw(span, encoding).decode_key(&mut text, errors);
        self.parts.push(Part {
            text,
            place: span.start()..span.end(),
            piece,
        });
    }

    fn key_sep(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.piece(pieces::Kind::Mark, span);
    }

    fn key_val_sep(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.piece(pieces::Kind::Mark, span);
    }

    fn scalar(&mut self, span: Span, encoding: Option<Encoding>, errors: &mut dyn ErrorSink) {
        let piece = self.piece(pieces::Kind::Value, span);
        if span.is_empty() {
            errors.report_error(ParseError::new("missing value").with_unexpected(span));
            return;
        }
        let value = scalar::value(&self.raw(span, encoding), span, errors);
        if self.in_step() {
            if let Some(id) = self.content(Shape::Value, span, piece) {
                self.load(id, &value, span);
            }
        }
        self.parts.clear();
    }

    fn value_sep(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.piece(pieces::Kind::Comma, span);
    }

    fn whitespace(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.piece(pieces::Kind::Blank, span);
    }

    fn comment(&mut self, span: Span, errors: &mut dyn ErrorSink) {
        self.raw(span, None).decode_comment(errors);
        self.piece(pieces::Kind::Comment, span);
    }

    fn newline(&mut self, span: Span, errors: &mut dyn ErrorSink) {
        self.raw(span, None).decode_newline(errors);
        self.piece(pieces::Kind::Newline, span);
    }
}
