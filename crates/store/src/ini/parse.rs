//! Turns text into a [`Document`] and reports what it does not understand.

use std::ops::Range;

use milieu_diagnostics::Diagnostic;
use milieu_keys::{Name, NameError};

use super::document::{Body, Document, KeyLine, Kind, NONE, key_of};
use super::escape::{self, EscapeError};
use super::lines::{Line, Problem, Shape, lines};

/// After so many diagnostics the rest is only counted: a file that is no INI
/// file at all must not cost more memory than its text.
const DIAGNOSTICS_MAX: usize = 100;

/// Hands every key to `each` with its value and line, and keeps nothing.
///
/// False as soon as a line cannot be understood or `each` returns false, which
/// it does for a key that it was given before. [`parse`] tells what is wrong.
pub(crate) fn load(text: &str, mut each: impl FnMut(&Name, &str, u32) -> bool) -> bool {
    let mut names = Names::new();
    for (line, number) in lines(text, start(text)).zip(1..) {
        let accepted = match line.shape {
            Shape::Blank | Shape::Comment => true,
            Shape::Broken(_) => false,
            Shape::Section(range) => names.section(&text[range]).is_ok(),
            Shape::Key { name, value } => {
                match (names.key(&text[name]), escape::decode_value(&text[value])) {
                    (Ok((name, _)), Ok(value)) => each(&name, &value, number),
                    _ => false,
                }
            }
        };
        if !accepted {
            return false;
        }
    }
    true
}

/// How many keys a text can hold: as many as it has lines, and equals signs.
pub(crate) fn keys_max(text: &str) -> usize {
    let count = |wanted: u8| text.bytes().filter(|&byte| byte == wanted).count();
    count(b'=').min(count(b'\n') + 1)
}

/// Where the first line begins: after a byte order mark.
pub(super) fn start(text: &str) -> usize {
    if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    }
}

pub(super) fn parse(text: &str) -> (Document, Vec<Diagnostic>) {
    let mut parser = Parser {
        document: Document::reading(text),
        diagnostics: Vec::new(),
        more: 0,
        section: Section::Header(NONE),
        names: Names::new(),
    };
    for line in lines(text, start(text)) {
        parser.line(text, line);
    }
    if parser.more > 0 {
        let message = format!("{} more lines cannot be understood", parser.more);
        parser
            .diagnostics
            .push(Diagnostic::error(message).help("make sure that this is an INI file"));
    }
    (parser.document, parser.diagnostics)
}

/// Joins names with those of their sections.
struct Names {
    section: Name,
    /// Kept only to be filled again.
    joined: String,
}

enum Refused {
    Escape(EscapeError),
    Name {
        error: NameError,
        place: Range<usize>,
    },
}

impl Names {
    fn new() -> Names {
        Names {
            section: Name::root(),
            joined: String::new(),
        }
    }

    /// Reads the name of a section, to which the keys after it belong.
    fn section(&mut self, written: &str) -> Result<Name, Refused> {
        self.section = Name::root();
        let (name, _) = self.key(written)?;
        self.section.clone_from(&name);
        Ok(name)
    }

    /// Reads the name of a key, and tells whether it is written in full.
    fn key(&mut self, written: &str) -> Result<(Name, bool), Refused> {
        // Most keys are one level that needs no look at its parts.
        let special = |byte| matches!(byte, b'/' | b'\\' | b'%' | b'.');
        if !written.bytes().any(special) {
            return Ok((self.section.join(written), false));
        }
        let decoded = escape::decode_name(written).map_err(Refused::Escape)?;
        let full = decoded.starts_with('/');
        if full {
            return Name::parse(&decoded)
                .map(|name| (name, true))
                .map_err(|error| refused(error, 0, written, &decoded));
        }
        self.joined.clear();
        if !self.section.is_root() {
            self.joined.push_str(self.section.as_str());
        }
        self.joined.push('/');
        let prefix = self.joined.len();
        self.joined.push_str(&decoded);
        Name::parse(&self.joined)
            .map(|name| (name, false))
            .map_err(|error| refused(error, prefix, written, &decoded))
    }
}

fn refused(error: NameError, prefix: usize, written: &str, decoded: &str) -> Refused {
    // The place can be pointed at where decoding moved nothing.
    let start = error.at.saturating_sub(prefix);
    let end = error.end.saturating_sub(prefix).min(written.len());
    let place = if decoded == written && start < end {
        start..end
    } else {
        0..written.len()
    };
    Refused::Name { error, place }
}

struct Parser {
    document: Document,
    diagnostics: Vec<Diagnostic>,
    /// How many diagnostics were not kept.
    more: usize,
    section: Section,
    names: Names,
}

/// The section that a line belongs to.
#[derive(Clone, Copy)]
enum Section {
    /// The line of its header, or [`NONE`].
    Header(u32),
    /// Its header could not be understood, so relative names below it have no meaning.
    Unknown,
}

impl Parser {
    fn line(&mut self, text: &str, line: Line) {
        let start = line.whole.start;
        let kind = match line.shape {
            Shape::Blank => Kind::Blank,
            Shape::Comment => Kind::Comment,
            Shape::Broken(problem) => {
                if matches!(
                    problem,
                    Problem::NoBracket(_) | Problem::NoSection(_) | Problem::AfterBracket(_)
                ) {
                    self.section = Section::Unknown;
                }
                self.report(|| describe(text, problem));
                Kind::Broken
            }
            Shape::Section(range) => match self.names.section(&text[range.clone()]) {
                Ok(name) => Kind::Section(name),
                Err(refused) => {
                    self.section = Section::Unknown;
                    self.refuse(refused, range);
                    Kind::Broken
                }
            },
            Shape::Key { name, value } => match self.key(text, start, name, value) {
                Some(key) => Kind::Key(key),
                None => Kind::Broken,
            },
        };
        let last = self.document.ends.last;
        let length = line.end - start;
        let id = self
            .document
            .link_after(last, Body::Read(line.whole), length, kind);
        match self.document.kind(id) {
            Kind::Section(_) => self.section = Section::Header(id),
            Kind::Key(_) => self.enter(id),
            _ => {}
        }
    }

    fn key(
        &mut self,
        text: &str,
        start: usize,
        written: Range<usize>,
        value: Range<usize>,
    ) -> Option<KeyLine> {
        let (name, full) = match self.names.key(&text[written.clone()]) {
            Ok(found) => found,
            Err(refused) => {
                self.refuse(refused, written);
                return None;
            }
        };
        let section = match self.section {
            Section::Header(id) => id,
            Section::Unknown if full => NONE,
            // The broken header was reported; its keys would only repeat it.
            Section::Unknown => return None,
        };
        if let Err(error) = escape::decode_value(&text[value.clone()]) {
            self.refuse(Refused::Escape(error), value);
            return None;
        }
        let written = written.start - start..written.end - start;
        let value = value.start - start..value.end - start;
        Some(KeyLine {
            name,
            written,
            value,
            section,
            full,
        })
    }

    fn enter(&mut self, id: u32) {
        let Some(first) = self.document.enter(id) else {
            return;
        };
        let document = &self.document;
        let place = |id: u32| {
            let Body::Read(line) = &document.lines[id as usize].body else {
                unreachable!("parsing only reads");
            };
            let key = key_of(&document.lines, id);
            (line.start + key.written.start..line.start + key.written.end).into()
        };
        let (first, second) = (place(first), place(id));
        let name = key_of(&document.lines, id).name.clone();
        // The line must not be edited as the key's: the first one is.
        self.document.lines[id as usize].kind = Kind::Broken;
        self.report(|| {
            Diagnostic::error(format!(
                "`{}` has two values",
                escape::encode_name(name.as_str())
            ))
            .label(second, "given again here")
            .label(first, "first given here")
            .help("keep one of the two lines")
        });
    }

    fn refuse(&mut self, refused: Refused, range: Range<usize>) {
        self.report(|| {
            let (message, place, help) = match refused {
                Refused::Escape(error) => (error.to_string(), error.span.clone(), error.help()),
                Refused::Name { error, place } => (error.message, place, error.help),
            };
            let place = range.start + place.start..range.start + place.end.min(range.len());
            Diagnostic::error(message)
                .label(place.into(), "here")
                .help(help)
        });
    }

    fn report(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic());
        } else {
            self.more += 1;
        }
    }
}

fn describe(text: &str, problem: Problem) -> Diagnostic {
    match problem {
        Problem::NoEquals(line) => Diagnostic::error("this line is neither a key nor a section nor a comment")
            .label(line.into(), "no `=` here")
            .help("write `name = value`, or begin the line with `#` to make it a comment"),
        Problem::NoName(equals) => Diagnostic::error("a value without a name")
            .label((equals..equals + 1).into(), "nothing stands before the `=`")
            .help("write `name = value`; a name that contains `=` is written with `\\=`"),
        Problem::NoBracket(line) => Diagnostic::error("the section is not closed")
            .label(line.into(), "no `]` on this line")
            .help("write `[/name/of/the/section]`"),
        Problem::NoSection(brackets) => Diagnostic::error("a section without a name")
            .label(brackets.into(), "nothing stands between the brackets")
            .help("write `[/]` for keys at the root"),
        Problem::AfterBracket(rest) => Diagnostic::error("there is text behind the section")
            .label(rest.into(), "this belongs to nothing")
            .help("put keys and comments on lines of their own; a `]` in a name is written `\\]`"),
        Problem::Mark(at) => Diagnostic::error("a byte order mark stands inside the file")
            .label((at..at + '\u{feff}'.len_utf8()).into(), "here")
            .help("remove it; it comes from joining two files, or write `\\u{feff}` if the name begins with it"),
        Problem::Control(at) => {
            let byte = text.as_bytes()[at];
            let diagnostic = Diagnostic::error(match byte {
                0 => "a zero byte: the file is damaged or is no text".to_owned(),
                _ => format!("the control character \\u{{{byte:x}}} stands in the line as it is"),
            });
            diagnostic
                .label((at..at + 1).into(), "here")
                .help(format!("write it as `\\u{{{byte:x}}}`, or remove it"))
        }
    }
}
