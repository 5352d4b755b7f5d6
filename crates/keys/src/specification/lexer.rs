//! From text to lines: headers, keys and metadata with their values.

use super::escape::{Written, decode};
use crate::rules::Shortened;
use milieu_diagnostics::{Diagnostic, Span};

/// A line that says something, with those that continue it.
#[derive(Debug)]
pub(super) enum Line {
    /// `[name]`
    Header(Written),
    /// `/name` or `/name = value`
    Key(Written, Option<Value>),
    /// `word` or `word = value`
    Entry(String, Span, Option<Value>),
}

/// What stands behind `=`.
#[derive(Debug)]
pub(super) struct Value {
    /// The text that is meant.
    pub text: String,
    /// Where it stands, with its quotes.
    pub span: Span,
}

const BLANK: [char; 3] = [' ', '\t', '\r'];

/// Splits a text into lines.
pub(super) fn lex(text: &str) -> (Vec<Line>, Vec<Diagnostic>) {
    let mut lexer = Lexer {
        text,
        at: if text.starts_with('\u{feff}') { 3 } else { 0 },
        lines: Vec::new(),
        diagnostics: Vec::new(),
    };
    while lexer.at < text.len() {
        lexer.line();
    }
    (lexer.lines, lexer.diagnostics)
}

struct Lexer<'a> {
    text: &'a str,
    /// Where the next line or the rest of this one starts.
    at: usize,
    lines: Vec<Line>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Lexer<'a> {
    fn line(&mut self) {
        self.skip_blanks();
        let (rest, start) = (self.rest_of_line(), self.at);
        match rest.as_bytes().first() {
            None | Some(b';' | b'#') => self.next_line(),
            Some(b'[') => self.header(rest, start),
            Some(b'/') => {
                let (name, value) = self.name_and_value(rest, start, unescaped(rest, '='));
                self.lines.push(Line::Key(Written::new(name, start), value));
            }
            Some(_) => {
                let (word, value) = self.name_and_value(rest, start, rest.find('='));
                self.entry(word, start, value);
            }
        }
    }

    fn header(&mut self, rest: &str, start: usize) {
        let (inside, behind) = match unescaped(rest, ']') {
            Some(end) => (&rest[1..end], &rest[end + 1..]),
            None => {
                self.section_not_closed(rest.trim_end_matches(BLANK), start);
                (&rest[1..], "")
            }
        };
        if !behind.trim_matches(BLANK).is_empty() {
            let end = start + rest.trim_end_matches(BLANK).len();
            let junk = end - behind.trim_matches(BLANK).len();
            self.diagnostics.push(
                Diagnostic::error("there is text behind the section")
                    .code("syntax")
                    .label(Span::new(junk, end), "this belongs to nothing")
                    .help("put metadata and comments on lines of their own")
                    .help("write `\\]` for a bracket that is part of the name"),
            );
        }
        let name = inside.trim_start_matches(BLANK);
        let at = start + 1 + inside.len() - name.len();
        self.lines
            .push(Line::Header(Written::new(name.trim_end_matches(BLANK), at)));
        self.next_line();
    }

    fn section_not_closed(&mut self, rest: &str, start: usize) {
        let end = Span::new(start + rest.len(), start + rest.len());
        let mut found = Diagnostic::error("the section is not closed")
            .code("syntax")
            .label(end, "`]` is missing here")
            .help(format!("write `{}]`", Shortened(rest)));
        if rest.contains("\\]") {
            found = found.note("`\\]` is a bracket in the name; a backslash in it is `\\\\`");
        }
        self.diagnostics.push(found);
    }

    /// What stands before `=`, and the value behind it; moves to the next line.
    fn name_and_value(
        &mut self,
        rest: &'a str,
        start: usize,
        equals: Option<usize>,
    ) -> (&'a str, Option<Value>) {
        let Some(equals) = equals else {
            self.next_line();
            return (rest.trim_end_matches(BLANK), None);
        };
        self.at = start + equals + 1;
        let value = self.value();
        (rest[..equals].trim_end_matches(BLANK), Some(value))
    }

    fn entry(&mut self, word: &str, start: usize, value: Option<Value>) {
        let span = Span::new(start, start + word.len());
        if word.is_empty() {
            let span = value.map_or(span, |value| span.to(value.span));
            self.diagnostics.push(
                Diagnostic::error("there is nothing before `=`")
                    .code("syntax")
                    .label(span, "a value of what?")
                    .help("write a metadata key before it, as in `default=1`"),
            );
            return;
        }
        self.lines.push(Line::Entry(word.to_owned(), span, value));
    }

    /// Reads the value that stands from here on; moves to the next line.
    fn value(&mut self) -> Value {
        self.skip_blanks();
        if self.text[self.at..].starts_with('"') {
            self.quoted()
        } else {
            self.plain()
        }
    }

    fn plain(&mut self) -> Value {
        let start = self.at;
        let mut text = String::new();
        loop {
            let rest = self.rest_of_line();
            let end = self.at + rest.len();
            let backslashes = rest.bytes().rev().take_while(|&byte| byte == b'\\').count();
            if backslashes % 2 == 0 {
                text.push_str(rest);
                let end = self.at + rest.trim_end_matches(BLANK).len();
                self.next_line();
                text.truncate(text.trim_end_matches(BLANK).len());
                let span = Span::new(start, end);
                return Value { text, span };
            }
            text.push_str(&rest[..rest.len() - 1]);
            self.next_line();
            if self.at >= self.text.len() {
                self.goes_on_nowhere(end);
            }
            self.skip_blanks();
        }
    }

    fn goes_on_nowhere(&mut self, end: usize) {
        self.diagnostics.push(
            Diagnostic::error("the value goes on in a next line that does not exist")
                .code("syntax")
                .label(
                    Span::new(end - 1, end),
                    "a backslash here continues the value",
                )
                .help("remove the backslash")
                .help("for a value that ends in a backslash, write it in quotes: `\"...\\\\\"`"),
        );
    }

    fn quoted(&mut self) -> Value {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        let mut line = self.at + self.rest_of_line().len();
        loop {
            let rest = &self.text[self.at..line];
            let Some(special) = rest.find(['"', '\\']) else {
                text.push_str(rest);
                return self.not_closed(start, text);
            };
            text.push_str(&rest[..special]);
            self.at += special;
            if rest[special..].starts_with('"') {
                self.at += 1;
                let span = Span::new(start, self.at);
                self.nothing_more();
                return Value { text, span };
            }
            if special + 1 == rest.len() {
                self.next_line();
                self.skip_blanks();
                line = self.at + self.rest_of_line().len();
                continue;
            }
            match decode(&rest[special..]) {
                Some((c, length)) => {
                    text.push(c);
                    self.at += length;
                }
                None => self.bad_escape(&rest[special..], &mut text),
            }
        }
    }

    fn bad_escape(&mut self, rest: &str, text: &mut String) {
        let character = rest.chars().nth(1).unwrap_or('\\');
        let end = self.at + 1 + character.len_utf8();
        let shown = character.escape_debug();
        self.diagnostics.push(
            Diagnostic::error(format!("`\\{shown}` is no escape"))
                .code("syntax")
                .label(
                    Span::new(self.at, end),
                    "in quotes a backslash starts an escape",
                )
                .help(format!("write `\\\\{shown}` for a backslash"))
                .help("or leave out the quotes: without them a backslash is just that")
                .note("the escapes are \\n \\r \\t \\\" \\\\ and \\u{...}"),
        );
        text.push('\\');
        self.at += 1;
    }

    fn not_closed(&mut self, start: usize, text: String) -> Value {
        let end = self.at + self.rest_of_line().trim_end_matches(BLANK).len();
        self.next_line();
        let mut found = Diagnostic::error("the quotes are not closed in their line")
            .code("syntax")
            .label(Span::new(end, end), "`\"` is missing here");
        if let Some(close) = self.closed_below() {
            found = found.label(close, "they close here");
        }
        self.diagnostics.push(
            found
                .help("to go on in the next line, end this one with `\\`, or with `\\n\\` to keep the line break")
                .help("or close the quotes in this line"),
        );
        let span = Span::new(start, end);
        Value { text, span }
    }

    /// Where quotes probably close that were meant to hold several lines; moves
    /// behind them, so that what they hold is not taken for metadata.
    fn closed_below(&mut self) -> Option<Span> {
        let back = self.at;
        while self.at < self.text.len() {
            let rest = self.rest_of_line().trim_matches(BLANK);
            if rest.is_empty() || rest.starts_with(['[', '/']) || rest.contains('=') {
                break;
            }
            let end = self.at + self.rest_of_line().trim_end_matches(BLANK).len();
            self.next_line();
            if rest.ends_with('"') {
                return Some(Span::new(end - 1, end));
            }
        }
        self.at = back;
        None
    }

    /// Moves to the next line; there should be nothing left in this one.
    fn nothing_more(&mut self) {
        self.skip_blanks();
        let rest = self.rest_of_line().trim_end_matches(BLANK);
        if !rest.is_empty() {
            let span = Span::new(self.at, self.at + rest.len());
            self.diagnostics.push(
                Diagnostic::error("there is text behind the quotes")
                    .code("syntax")
                    .label(span, "this belongs to nothing")
                    .help("write `\\\"` for a quote inside quotes")
                    .help("put comments on lines of their own"),
            );
        }
        self.next_line();
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(BLANK).len();
    }

    /// From here to the end of the line, without what ends it.
    fn rest_of_line(&self) -> &'a str {
        let rest = &self.text[self.at..];
        match rest.find('\n') {
            Some(end) => rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]),
            None => rest,
        }
    }

    fn next_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
    }
}

/// Where a character first stands that no backslash escapes.
fn unescaped(text: &str, wanted: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices()
        .find(|&(_, c)| {
            let found = c == wanted && !escaped;
            escaped = c == '\\' && !escaped;
            found
        })
        .map(|(at, _)| at)
}
