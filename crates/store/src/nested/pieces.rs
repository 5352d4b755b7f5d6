//! A text as a linked list of its pieces, so that an edit touches its neighbours only.
//!
//! A piece that was read is a range of the text, one that was written owns its
//! bytes. All pieces in order are the text.

use std::fmt;
use std::ops::Range;

/// The number that stands for no piece and no node.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Blanks and tabs within a line.
    Blank,
    /// One end of a line.
    Newline,
    Comment,
    /// Punctuation, and names of members.
    Mark,
    /// A comma between items.
    Comma,
    /// The begin of an array, an inline table, an object.
    Open,
    /// The end of one.
    Close,
    /// A value that is no array and no object.
    Value,
}

impl Kind {
    /// Whether it says something, and is not only blank or comment.
    pub fn is_significant(self) -> bool {
        !matches!(self, Kind::Blank | Kind::Newline | Kind::Comment)
    }
}

#[derive(Debug, Clone)]
enum Body {
    Read(Range<usize>),
    Written(Box<str>),
}

#[derive(Debug, Clone)]
struct Piece {
    body: Body,
    kind: Kind,
    previous: u32,
    next: u32,
    /// The node whose value this is or ends with it.
    node: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    text: String,
    /// Where the pieces begin: behind the byte order mark.
    start: usize,
    list: Vec<Piece>,
    first: u32,
    last: u32,
}

impl Pieces {
    /// No pieces yet of this text, which begins with `start` bytes that no piece has.
    pub fn of(text: &str, start: usize) -> Pieces {
        Pieces {
            text: text.to_owned(),
            start,
            list: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }

    /// Adds the next piece that was read.
    pub fn read(&mut self, kind: Kind, range: Range<usize>) -> u32 {
        self.link(self.last, Body::Read(range), kind)
    }

    /// Puts a new piece behind another one, or in front of all.
    pub fn write(&mut self, anchor: u32, kind: Kind, text: &str) -> u32 {
        self.link(anchor, Body::Written(text.into()), kind)
    }

    /// Changes what a piece says.
    pub fn rewrite(&mut self, piece: u32, text: &str) {
        self.list[piece as usize].body = Body::Written(text.into());
    }

    fn link(&mut self, anchor: u32, body: Body, kind: Kind) -> u32 {
        let id = u32::try_from(self.list.len()).expect("fewer than 2^32 pieces");
        let next = match anchor {
            NONE => self.first,
            anchor => self.list[anchor as usize].next,
        };
        self.list.push(Piece {
            body,
            kind,
            previous: anchor,
            next,
            node: NONE,
        });
        *self.next_of(anchor) = id;
        *self.previous_of(next) = id;
        id
    }

    /// Takes out all pieces from the first to the last.
    pub fn cut(&mut self, first: u32, last: u32) {
        let (previous, next) = (self.previous(first), self.next(last));
        *self.next_of(previous) = next;
        *self.previous_of(next) = previous;
    }

    fn next_of(&mut self, piece: u32) -> &mut u32 {
        match piece {
            NONE => &mut self.first,
            piece => &mut self.list[piece as usize].next,
        }
    }

    fn previous_of(&mut self, piece: u32) -> &mut u32 {
        match piece {
            NONE => &mut self.last,
            piece => &mut self.list[piece as usize].previous,
        }
    }

    pub fn first(&self) -> u32 {
        self.first
    }

    pub fn last(&self) -> u32 {
        self.last
    }

    pub fn next(&self, piece: u32) -> u32 {
        self.list[piece as usize].next
    }

    pub fn previous(&self, piece: u32) -> u32 {
        self.list[piece as usize].previous
    }

    /// What kind of piece it is; nothing beyond either end.
    pub fn kind(&self, piece: u32) -> Option<Kind> {
        self.list.get(piece as usize).map(|piece| piece.kind)
    }

    pub fn body(&self, piece: u32) -> &str {
        match &self.list[piece as usize].body {
            Body::Read(range) => &self.text[range.clone()],
            Body::Written(text) => text,
        }
    }

    /// Where a piece stands in the text that was read.
    pub fn range(&self, piece: u32) -> Option<Range<usize>> {
        match &self.list[piece as usize].body {
            Body::Read(range) => Some(range.clone()),
            Body::Written(_) => None,
        }
    }

    pub fn node(&self, piece: u32) -> u32 {
        self.list[piece as usize].node
    }

    pub fn set_node(&mut self, piece: u32, node: u32) {
        self.list[piece as usize].node = node;
    }

    /// All pieces from this one on.
    pub fn from(&self, piece: u32) -> impl Iterator<Item = u32> {
        self.walk(piece, |piece| piece.next)
    }

    /// All pieces from this one back to the first.
    pub fn back_from(&self, piece: u32) -> impl Iterator<Item = u32> {
        self.walk(piece, |piece| piece.previous)
    }

    fn walk(&self, piece: u32, step: impl Fn(&Piece) -> u32) -> impl Iterator<Item = u32> {
        let mut next = piece;
        std::iter::from_fn(move || {
            let here = next;
            next = step(self.list.get(here as usize)?);
            Some(here)
        })
    }

    /// The first piece behind this one that says something.
    pub fn next_significant(&self, piece: u32) -> u32 {
        let mut after = self.from(self.next(piece));
        after.find(|&id| self.is_significant(id)).unwrap_or(NONE)
    }

    /// The last piece before this one that says something.
    pub fn previous_significant(&self, piece: u32) -> u32 {
        let mut before = self.back_from(self.previous(piece));
        before.find(|&id| self.is_significant(id)).unwrap_or(NONE)
    }

    fn is_significant(&self, piece: u32) -> bool {
        self.kind(piece).is_some_and(Kind::is_significant)
    }

    /// The blanks at the begin of the line of this piece.
    pub fn indentation(&self, piece: u32) -> &str {
        let line = self.line_start(piece);
        match self.kind(line) {
            Some(Kind::Blank) if line != piece => self.body(line),
            _ => "",
        }
    }

    /// The first piece of the line of this piece.
    pub fn line_start(&self, piece: u32) -> u32 {
        let within = |&id: &u32| self.kind(id) != Some(Kind::Newline);
        let before = self.back_from(self.previous(piece)).take_while(within);
        before.last().unwrap_or(piece)
    }

    /// The last piece of the line of this piece, before the end of the line.
    pub fn line_end(&self, piece: u32) -> u32 {
        let within = |&id: &u32| self.kind(id) != Some(Kind::Newline);
        let after = self.from(self.next(piece)).take_while(within);
        after.last().unwrap_or(piece)
    }

    /// Whether nothing but blanks stands before it on its line.
    pub fn begins_line(&self, piece: u32) -> bool {
        self.back_from(self.previous(piece))
            .find(|&id| self.kind(id) != Some(Kind::Blank))
            .is_none_or(|id| self.kind(id) == Some(Kind::Newline))
    }

    /// The comment behind an item's comma on its line, or the comma.
    pub fn behind_comment(&self, comma: u32) -> u32 {
        let mut last = comma;
        for id in self.from(self.next(comma)) {
            match self.kind(id) {
                Some(Kind::Comment) => last = id,
                Some(Kind::Blank) => {}
                _ => break,
            }
        }
        last
    }

    /// The last comment between two brackets.
    pub fn last_comment(&self, open: u32, close: u32) -> Option<u32> {
        self.back_from(self.previous(close))
            .take_while(|&id| id != open)
            .find(|&id| self.kind(id) == Some(Kind::Comment))
    }

    /// Takes out all that is between two brackets.
    pub fn cut_between(&mut self, open: u32, close: u32) {
        if self.next(open) != close {
            self.cut(self.next(open), self.previous(close));
        }
    }

    /// The blank behind a piece, or the piece.
    pub fn over_blank(&self, piece: u32) -> u32 {
        let next = self.next(piece);
        match self.kind(next) {
            Some(Kind::Blank) => next,
            _ => piece,
        }
    }

    /// How the lines of this text end.
    pub fn ending(&self) -> &'static str {
        let first = self
            .from(self.first)
            .find(|&id| self.kind(id) == Some(Kind::Newline));
        match first {
            Some(id) if self.body(id) == "\r\n" => "\r\n",
            _ => "\n",
        }
    }

    /// Ends the line of the anchor there, and returns the anchor for the next one.
    pub fn write_newline(&mut self, anchor: u32) -> u32 {
        let ending = self.ending();
        self.write(anchor, Kind::Newline, ending)
    }

    /// Writes blanks, if there are any.
    pub fn write_blank(&mut self, anchor: u32, text: &str) -> u32 {
        if text.is_empty() {
            return anchor;
        }
        self.write(anchor, Kind::Blank, text)
    }
}

impl fmt::Display for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text[..self.start])?;
        self.from(self.first)
            .try_for_each(|id| f.write_str(self.body(id)))
    }
}
