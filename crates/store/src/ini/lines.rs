//! Cuts INI text into lines and says what each one is.
//!
//! Nothing is decoded and nothing copied: a line is byte ranges into the text.
//! The ranges of all lines together cover the text without a gap, whatever the
//! text is; that is what makes the document's round trip exact.

use std::ops::Range;

/// One line: its bytes with the line ending, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The whole line, line ending included.
    pub whole: Range<usize>,
    /// The end of the line without its line ending.
    pub end: usize,
    pub shape: Shape,
}

/// What a line is. Ranges are trimmed of blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Blank,
    Comment,
    /// The text between `[` and `]`.
    Section(Range<usize>),
    /// The texts left and right of the first `=` that is not escaped.
    Key {
        name: Range<usize>,
        value: Range<usize>,
    },
    Broken(Problem),
}

/// Why a line is none of the shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// Text without `=`.
    NoEquals(Range<usize>),
    /// Nothing left of the `=`, which stands here.
    NoName(usize),
    /// `[` without `]`; the section line.
    NoBracket(Range<usize>),
    /// Nothing between `[` and `]`.
    NoSection(Range<usize>),
    /// Text after `]`.
    AfterBracket(Range<usize>),
    /// A control character that is not written as an escape.
    Control(usize),
    /// A byte order mark at the start of a line that is not the first. It would
    /// become the file's when the lines before it go.
    Mark(usize),
}

/// Iterates over the lines of `text`, of which the first begins at `at`.
pub(crate) fn lines(text: &str, at: usize) -> Lines<'_> {
    Lines {
        bytes: text.as_bytes(),
        at,
    }
}

/// Where a line begins, of those behind the first.
pub(crate) fn start_of(text: &str, line: u32) -> Option<usize> {
    // As many as a byte can count, so that the machine counts many bytes at once.
    const BLOCK: usize = 240;
    let mut missing = line.checked_sub(1)? as usize;
    let ends = |bytes: &[u8]| {
        let is_end = bytes.iter().map(|&byte| u8::from(byte == b'\n'));
        usize::from(is_end.sum::<u8>())
    };
    for (index, block) in text.as_bytes().chunks(BLOCK).enumerate() {
        // Counting a block is much cheaper than looking for each end.
        let count = ends(block);
        if count >= missing {
            let mut places = block.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            let (place, _) = places.nth(missing.checked_sub(1)?)?;
            return Some(index * BLOCK + place + 1);
        }
        missing -= count;
    }
    None
}

pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The bytes at which a pass over a line stops to think: all others are text.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < b' ' as usize {
        special[byte] = byte != b'\t' as usize;
        byte += 1;
    }
    special[0x7f] = true;
    special[b'=' as usize] = true;
    special[b'\\' as usize] = true;
    special
};

/// What one pass over a line finds.
struct Found {
    end: usize,
    next: usize,
    equals: Option<usize>,
    control: Option<usize>,
}

impl Lines<'_> {
    fn look(&self) -> Found {
        let bytes = self.bytes;
        let mut found = Found {
            end: bytes.len(),
            next: bytes.len(),
            equals: None,
            control: None,
        };
        let mut at = self.at;
        while let Some(&byte) = bytes.get(at) {
            if !SPECIAL[usize::from(byte)] {
                at += 1;
                continue;
            }
            match byte {
                b'\n' => {
                    found.end = at;
                    found.next = at + 1;
                    // The carriage return of a line ending is not one of the line's characters.
                    if at > self.at && bytes[at - 1] == b'\r' {
                        found.end = at - 1;
                        found.control = found.control.filter(|&control| control != at - 1);
                    }
                    return found;
                }
                b'=' => found.equals = found.equals.or(Some(at)),
                b'\\' => {
                    // Left of the `=` the next byte is part of the escape and no `=` itself.
                    if found.equals.is_none() && matches!(bytes.get(at + 1), Some(b'=' | b'\\')) {
                        at += 1;
                    }
                }
                _ => found.control = found.control.or(Some(at)),
            }
            at += 1;
        }
        found
    }

    fn trim(&self, range: Range<usize>) -> Range<usize> {
        let mut range = range;
        while range.start < range.end && blank(self.bytes[range.start]) {
            range.start += 1;
        }
        while range.start < range.end && blank(self.bytes[range.end - 1]) {
            range.end -= 1;
        }
        range
    }

    fn shape(&self, found: &Found) -> Shape {
        let line = self.trim(self.at..found.end);
        match self.bytes.get(line.start) {
            _ if line.is_empty() => return Shape::Blank,
            // A zero byte is a damaged file even where nobody reads it.
            Some(b';' | b'#') if found.control.is_none_or(|at| self.bytes[at] != 0) => {
                return Shape::Comment;
            }
            _ => {}
        }
        if let Some(at) = found.control {
            return Shape::Broken(Problem::Control(at));
        }
        if self.bytes[line.start..].starts_with("\u{feff}".as_bytes()) {
            return Shape::Broken(Problem::Mark(line.start));
        }
        if self.bytes[line.start] == b'[' {
            return self.section(line);
        }
        let Some(equals) = found.equals else {
            return Shape::Broken(Problem::NoEquals(line));
        };
        let name = self.trim(line.start..equals);
        if name.is_empty() {
            return Shape::Broken(Problem::NoName(equals));
        }
        let mut value = self.trim(equals + 1..found.end);
        if value.is_empty() {
            value = found.end..found.end;
        }
        Shape::Key { name, value }
    }

    fn section(&self, line: Range<usize>) -> Shape {
        let mut at = line.start + 1;
        while at < line.end && self.bytes[at] != b']' {
            at += if self.bytes[at] == b'\\' { 2 } else { 1 };
        }
        if at >= line.end {
            return Shape::Broken(Problem::NoBracket(line));
        }
        let name = self.trim(line.start + 1..at);
        let after = self.trim(at + 1..line.end);
        if name.is_empty() {
            return Shape::Broken(Problem::NoSection(line.start..at + 1));
        }
        if !after.is_empty() {
            return Shape::Broken(Problem::AfterBracket(after));
        }
        Shape::Section(name)
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let found = self.look();
        let line = Line {
            whole: self.at..found.next,
            end: found.end,
            shape: self.shape(&found),
        };
        self.at = found.next;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<Shape> {
        lines(text, 0).map(|line| line.shape).collect()
    }

    fn key(text: &str) -> (&str, &str) {
        match shapes(text).as_slice() {
            [Shape::Key { name, value, .. }] => (&text[name.clone()], &text[value.clone()]),
            other => panic!("{text:?} is {other:?}"),
        }
    }

    #[test]
    fn keys_are_cut_at_the_first_equals_that_is_not_escaped() {
        assert_eq!(key("language = de"), ("language", "de"));
        assert_eq!(key("\t a=b=c \t\r\n"), ("a", "b=c"));
        assert_eq!(key(r"a\=b = c\=d"), (r"a\=b", r"c\=d"));
        assert_eq!(key(r"a\\=b"), (r"a\\", "b"));
        assert_eq!(key("a ="), ("a", ""));
        assert_eq!(key("color = #fff ; blue"), ("color", "#fff ; blue"));
    }

    #[test]
    fn sections_end_at_the_first_bracket_that_is_not_escaped() {
        assert_eq!(shapes("[ /a ] "), [Shape::Section(2..4)]);
        assert_eq!(shapes(r"[a\]b]"), [Shape::Section(1..5)]);
    }

    #[test]
    fn line_endings_belong_to_no_shape() {
        let text = "a=1\r\n\r\n;c\n\n";
        let ends: Vec<_> = lines(text, 0).map(|line| (line.whole, line.end)).collect();
        assert_eq!(ends, [(0..5, 3), (5..7, 5), (7..10, 9), (10..11, 10)]);
    }

    #[test]
    fn every_other_line_is_broken_for_a_reason() {
        assert_eq!(shapes("half"), [Shape::Broken(Problem::NoEquals(0..4))]);
        assert_eq!(shapes(" = x"), [Shape::Broken(Problem::NoName(1))]);
        assert_eq!(shapes("[a"), [Shape::Broken(Problem::NoBracket(0..2))]);
        assert_eq!(shapes(r"[a\]"), [Shape::Broken(Problem::NoBracket(0..4))]);
        assert_eq!(shapes("[ ]"), [Shape::Broken(Problem::NoSection(0..3))]);
        assert_eq!(
            shapes("[a] b"),
            [Shape::Broken(Problem::AfterBracket(4..5))]
        );
        assert_eq!(
            shapes("[a] ; b"),
            [Shape::Broken(Problem::AfterBracket(4..7))]
        );
        assert_eq!(shapes("a = \u{1}"), [Shape::Broken(Problem::Control(4))]);
        assert_eq!(shapes("a = b\rc = d"), [Shape::Broken(Problem::Control(5))]);
        assert_eq!(shapes("a = b\r"), [Shape::Broken(Problem::Control(5))]);
        assert_eq!(shapes("\0\0"), [Shape::Broken(Problem::Control(0))]);
        assert_eq!(shapes("# \0"), [Shape::Broken(Problem::Control(2))]);
        assert_eq!(shapes("\u{feff}a = 1"), [Shape::Broken(Problem::Mark(0))]);
        assert_eq!(shapes("# \u{1}"), [Shape::Comment]);
    }

    #[test]
    fn lines_begin_where_they_are_found_one_by_one() {
        let texts = [
            "\n".repeat(1000),
            "a line of some length\n".repeat(100),
            format!("{}\nlast", "x".repeat(700)),
            format!("{}\n\n", "\n".repeat(239)),
            String::new(),
        ];
        for text in &texts {
            let mut begins = text.match_indices('\n').map(|(end, _)| end + 1);
            for line in 2..1003 {
                assert_eq!(start_of(text, line), begins.next(), "{line} of {text:?}");
            }
            assert_eq!(start_of(text, 0), None);
        }
    }
}
