//! How items, lines and the blanks around them are taken out of a text.

use super::document::{Nested, Syntax};
use super::pieces::{Kind, NONE};

/// The first and the last piece of a blank line, and the one beyond.
type BlankLine = (u32, u32, u32);

impl<S: Syntax> Nested<S> {
    /// Takes out the text of an item, with its comma, its comment, and the line
    /// if it had one of its own.
    pub fn cut_item(&mut self, container: u32, id: u32) {
        let (first, mut last) = (self.node(id).first, self.node(id).last);
        let after = self.pieces.next_significant(last);
        let before = self.pieces.previous_significant(first);
        let is_comma = |piece| self.pieces.kind(piece) == Some(Kind::Comma);
        let has_comma = is_comma(after);
        if has_comma {
            last = after;
        } else if is_comma(before) {
            self.pieces.cut(before, before);
        }
        let ends = has_comma && self.pieces.next_significant(last) == self.node(container).last;
        if self.pieces.begins_line(first) {
            self.cut_from_line_start(first, last, has_comma && !ends);
        } else {
            let (first, last) = self.with_blank(first, last, has_comma && !ends);
            self.pieces.cut(first, last);
        }
        self.close_up(container);
    }

    /// Cuts pieces that begin a line: the line if there is nothing else on it.
    fn cut_from_line_start(&mut self, first: u32, last: u32, others_follow: bool) {
        let end = self.pieces.behind_comment(last);
        let end = self.pieces.over_blank(end);
        let next = self.pieces.next(end);
        if next == NONE || self.pieces.kind(next) == Some(Kind::Newline) {
            self.cut_lines(first, end);
        } else if others_follow {
            self.pieces.cut(first, self.pieces.over_blank(last));
        } else {
            let line = self.pieces.line_start(first);
            let newline = self.pieces.previous(line);
            let comment = newline != NONE && {
                let before = self.pieces.previous(newline);
                self.pieces.kind(before) == Some(Kind::Comment)
            };
            let start = if comment || newline == NONE {
                line
            } else {
                newline
            };
            self.pieces.cut(start, last);
        }
    }

    /// Extends a range by the blank that would be left over behind it, or before it.
    fn with_blank(&self, first: u32, last: u32, others_follow: bool) -> (u32, u32) {
        let after = self.pieces.over_blank(last);
        let next = self.pieces.kind(self.pieces.next(after));
        if others_follow && next != Some(Kind::Newline) && next != Some(Kind::Comment) {
            return (first, after);
        }
        let before = self.pieces.previous(first);
        match self.pieces.kind(before) {
            Some(Kind::Blank) => (before, last),
            _ => (first, last),
        }
    }

    /// Cuts whole lines, from the line of one piece to that of another. Of the
    /// blank lines on both sides one group stays, and none at an end.
    pub fn cut_lines(&mut self, first: u32, last: u32) {
        let mut start = self.pieces.line_start(first);
        let mut end = self.pieces.line_end(last);
        let newline = self.pieces.next(end);
        if newline == NONE {
            // The text ends without a line break, and is to do so again.
            let before = self.pieces.back_from(self.pieces.previous(start));
            let blank = before.take_while(|&id| self.is_blank(id));
            start = blank.last().unwrap_or(start);
            self.pieces.cut(start, end);
            return;
        }
        end = newline;
        let (before, after) = (self.pieces.previous(start), self.pieces.next(end));
        self.pieces.cut(start, end);
        let top = self.ends_with(before, Kind::Open);
        let bottom = self.begins_with(after, Kind::Close);
        let (above, below) = (self.blank_line_above(before), self.blank_line(after));
        if below.is_some() && (above.is_some() || top) {
            self.cut_while(after, Self::blank_line);
        } else if above.is_some() && bottom {
            self.cut_while(before, Self::blank_line_above);
        }
    }

    pub fn is_blank(&self, piece: u32) -> bool {
        matches!(self.pieces.kind(piece), Some(Kind::Blank | Kind::Newline))
    }

    /// Whether the line that ends with this piece ends with such a bracket, or
    /// there is no line.
    fn ends_with(&self, newline: u32, bracket: Kind) -> bool {
        newline == NONE || {
            let mut before = self.pieces.back_from(self.pieces.previous(newline));
            let last = before.find(|&id| self.pieces.kind(id) != Some(Kind::Blank));
            last.is_some_and(|id| self.pieces.kind(id) == Some(bracket))
        }
    }

    /// Whether the line that begins with this piece begins with such a bracket,
    /// or there is no line.
    fn begins_with(&self, piece: u32, bracket: Kind) -> bool {
        let mut line = self.pieces.from(piece);
        let first = line.find(|&id| self.pieces.kind(id) != Some(Kind::Blank));
        first.is_none_or(|id| self.pieces.kind(id) == Some(bracket))
    }

    /// The blank line that begins with this piece, and what is behind it.
    fn blank_line(&self, piece: u32) -> Option<BlankLine> {
        let mut line = self.pieces.from(piece);
        let end = line.find(|&id| self.pieces.kind(id) != Some(Kind::Blank))?;
        (self.pieces.kind(end) == Some(Kind::Newline)).then(|| (piece, end, self.pieces.next(end)))
    }

    /// The blank line that ends with this piece, and what is before it.
    pub fn blank_line_above(&self, newline: u32) -> Option<BlankLine> {
        if newline == NONE {
            return None;
        }
        let start = self.pieces.line_start(newline);
        let (_, end, _) = self.blank_line(start)?;
        (end == newline).then(|| (start, newline, self.pieces.previous(start)))
    }

    fn cut_while(&mut self, mut piece: u32, line: fn(&Self, u32) -> Option<BlankLine>) {
        while let Some((first, last, next)) = line(self, piece) {
            self.pieces.cut(first, last);
            piece = next;
        }
    }

    /// Leaves no blanks in an object or array that holds nothing any more.
    fn close_up(&mut self, container: u32) {
        let (open, close) = (self.node(container).value, self.node(container).last);
        let empty = self.pieces.previous_significant(close) == open;
        if empty && self.pieces.last_comment(open, close).is_none() {
            self.pieces.cut_between(open, close);
        }
    }
}
