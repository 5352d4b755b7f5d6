//! Texts and places in them.

use std::ops::Range;

/// A text that diagnostics point into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where the text comes from: a path, or something like `<memory>`.
    pub name: String,
    /// The text.
    pub text: String,
}

impl Source {
    /// A text with the place it comes from.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source {
            name: name.into(),
            text: text.into(),
        }
    }

    /// The line and column of a byte offset, both from 1; columns count
    /// characters. An offset inside a character is that character's, one past
    /// the end is the end's.
    #[must_use]
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.boundary_before(offset)];
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// The text at a place; empty where the place is not in the text.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// The span, made to lie in the text and on the borders of characters.
    #[cfg(feature = "snippets")]
    pub(crate) fn clip(&self, span: Span) -> Span {
        let start = self.boundary_before(span.start);
        let mut end = span.end.min(self.text.len()).max(start);
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        Span { start, end }
    }

    fn boundary_before(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// A range of bytes of a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`, without it.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// How many bytes it covers.
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers nothing and only points between two bytes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// From the start of this span to the end of the other one.
    #[must_use]
    pub const fn to(self, end: Span) -> Span {
        Span {
            start: self.start,
            end: end.end,
        }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        Span {
            start: range.start,
            end: range.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, Span};

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let source = Source::new("<memory>", "aä\n\nb");
        for (offset, place) in [
            (0, (1, 1)),
            (1, (1, 2)),
            (2, (1, 2)),
            (3, (1, 3)),
            (4, (2, 1)),
            (5, (3, 1)),
            (6, (3, 2)),
            (99, (3, 2)),
        ] {
            assert_eq!(source.line_column(offset), place, "offset {offset}");
        }
    }

    #[test]
    fn spans_are_clipped_to_characters() {
        let source = Source::new("<memory>", "aä");
        assert_eq!(source.clip(Span::new(2, 2)), Span::new(1, 3));
        assert_eq!(source.clip(Span::new(0, 2)), Span::new(0, 3));
        assert_eq!(source.clip(Span::new(9, 4)), Span::new(3, 3));
        assert_eq!(source.slice(Span::new(1, 3)), "ä");
        assert_eq!(source.slice(Span::new(2, 9)), "");
    }
}
