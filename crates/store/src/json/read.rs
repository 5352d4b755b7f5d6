//! Turns text into keys, or into a document, and reports what it does not understand.
//!
//! One reader follows the grammar and hands what it finds to a [`Sink`]: one
//! that only names values, for loading, or one that builds the document.

use std::ops::Range;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;

use super::Writing;
use super::lexer::{Token, Unclosed, tokens};
use super::mistakes::{Words, control_character, in_quotes, no_value};
use super::sink::{Building, Content, Each, Loading, Member, Sink};
use super::text;
use crate::nested::pieces;
use crate::nested::tree::Shape;
use crate::nested::{DEPTH_MAX, Nested};

/// Hands every key to `each`; false as soon as something is wrong.
pub(super) fn load(text: &str, each: &mut dyn FnMut(&Name, &str, u32) -> bool) -> bool {
    values(text, &mut |name, content| {
        each(name, &text::decode(content.written), content.line)
    })
}

/// Where the value of a key is written, if it is on that line and the text is right.
pub(super) fn place(text: &str, line: u32, name: &Name) -> Option<Range<usize>> {
    let mut place = None;
    let sound = values(text, &mut |other, content| {
        if content.line == line && other == name {
            place = Some(content.range.clone());
        }
        true
    });
    place.filter(|_| sound)
}

fn values(text: &str, each: Each<'_>) -> bool {
    let mut reader = Reader::new(text, Loading::new(each));
    reader.read();
    reader.sound
}

pub(super) fn parse(text: &str) -> (Nested<Writing>, Vec<Diagnostic>) {
    let mut reader = Reader::new(text, Building::new(text, start(text)));
    reader.read();
    let Building {
        pieces,
        tree,
        report,
        ..
    } = reader.sink;
    let diagnostics = report.finish("JSON");
    if diagnostics.is_empty() {
        (Nested::new(pieces, tree), diagnostics)
    } else {
        (Nested::broken(text), diagnostics)
    }
}

/// Where the first token begins: after a byte order mark.
fn start(text: &str) -> usize {
    if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    }
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The value that the text is.
    Root,
    /// An element, or the end of the array.
    Element,
    /// The name of a member, or the end of the object.
    Name,
    Colon,
    /// The value of a member.
    Value,
    /// A comma, or the end of what is open.
    Comma,
    /// Nothing.
    End,
}

struct Reader<'t, S> {
    text: &'t str,
    sink: S,
    expect: Expect,
    /// The bracket of what is open, and where it stands.
    open: Vec<(u8, usize)>,
    member: Option<Member<'t>>,
    line: u32,
    /// Whether there was no mistake yet.
    sound: bool,
    /// Whether the tokens still follow the grammar, so that the sink can follow.
    in_step: bool,
}

impl<'t, S: Sink<'t>> Reader<'t, S> {
    fn new(text: &'t str, sink: S) -> Self {
        Reader {
            text,
            sink,
            expect: Expect::Root,
            open: Vec::new(),
            member: None,
            line: 1,
            sound: true,
            in_step: true,
        }
    }

    fn read(&mut self) {
        for (token, range) in tokens(self.text, start(self.text)) {
            if !self.token(token, range) {
                return;
            }
        }
        if let Some((bracket, at)) = self.open.pop() {
            let name = if bracket == b'{' { "object" } else { "array" };
            let close = if bracket == b'{' { '}' } else { ']' };
            self.mistake(at..at + 1, || {
                (
                    format!("the {name} is not closed"),
                    "it begins here".into(),
                    format!("write `{close}` where it ends"),
                )
            });
        }
    }

    /// Takes the next token; false to read no further.
    fn token(&mut self, token: Token, range: Range<usize>) -> bool {
        match token {
            Token::Blank => drop(self.sink.piece(pieces::Kind::Blank, range)),
            Token::Newline => {
                self.line += u32::from(self.text.as_bytes()[range.end - 1] == b'\n');
                self.sink.piece(pieces::Kind::Newline, range);
            }
            Token::Comment => return self.comment(range),
            Token::Unclosed(what) => return self.unclosed(what, range),
            Token::Mark(b',') => return self.comma(range),
            Token::Mark(b':') => return self.colon(range),
            Token::Mark(b'}' | b']') => return self.close(range),
            Token::Mark(_) => return self.before_value(&range) && self.open(range),
            Token::Text | Token::Word => {
                if self.expect == Expect::Comma && !self.missing_comma(&range) {
                    return false;
                }
                if self.expect == Expect::Name {
                    return self.name(token, range);
                }
                return self.before_value(&range) && self.value(token, range);
            }
        }
        true
    }

    fn comment(&mut self, range: Range<usize>) -> bool {
        let text = &self.text[range.clone()];
        self.line += text.bytes().filter(|&byte| byte == b'\n').count() as u32;
        let allowed = |byte: u8| byte >= b' ' || matches!(byte, b'\t' | b'\r' | b'\n');
        let control = text.bytes().position(|byte| !allowed(byte));
        if let Some(at) = control {
            let byte = text.as_bytes()[at];
            let at = range.start + at;
            return self.mistake(at..at + 1, || control_character(byte, "remove it"));
        }
        self.sink.piece(pieces::Kind::Comment, range);
        true
    }

    fn unclosed(&mut self, what: Unclosed, range: Range<usize>) -> bool {
        let length = if what == Unclosed::Comment { 2 } else { 1 };
        let expects_name = self.expect == Expect::Name;
        let goes_on = self.mistake(range.start..range.start + length, || match what {
            Unclosed::Comment => (
                "the comment is not closed".into(),
                "it begins here".into(),
                "write `*/` where it ends".into(),
            ),
            Unclosed::Text => (
                "the quotes are not closed on their line".into(),
                "they begin here".into(),
                "write `\"` where the text ends; a line break in it is written `\\n`".into(),
            ),
        });
        self.expect = if expects_name {
            Expect::Colon
        } else {
            self.behind_value()
        };
        goes_on
    }

    fn comma(&mut self, range: Range<usize>) -> bool {
        let message = match self.expect {
            Expect::Comma => {
                self.sink.piece(pieces::Kind::Comma, range);
                self.expect = self.next_item();
                return true;
            }
            Expect::Root | Expect::End => "a comma outside of any object or array",
            Expect::Element | Expect::Name => "nothing stands before the comma",
            Expect::Colon | Expect::Value => "the member has no value",
        };
        self.expect = match self.open.is_empty() {
            true => self.expect,
            false => self.next_item(),
        };
        self.mistake(range, || {
            (
                message.into(),
                "this comma".into(),
                "write a value before it, or remove it".into(),
            )
        })
    }

    fn colon(&mut self, range: Range<usize>) -> bool {
        if self.expect == Expect::Colon {
            self.sink.piece(pieces::Kind::Mark, range);
            self.expect = Expect::Value;
            return true;
        }
        self.mistake(range, || {
            (
                "no name stands before the colon".into(),
                "this colon".into(),
                "write `\"name\": value` in an object".into(),
            )
        })
    }

    fn name(&mut self, token: Token, range: Range<usize>) -> bool {
        self.expect = Expect::Colon;
        if token == Token::Word {
            return self.mistake(range, || {
                (
                    "the name of a member stands in double quotes".into(),
                    "this name".into(),
                    "write it in double quotes, and not in others".into(),
                )
            });
        }
        if !self.check_text(&range) {
            return false;
        }
        let written = &self.text[range.clone()];
        let piece = self.sink.piece(pieces::Kind::Mark, range.clone());
        if self.in_step {
            let text = text::decode(written);
            self.member = Some(Member { text, range, piece });
        }
        true
    }

    /// Sees to it that a value may stand here.
    fn before_value(&mut self, range: &Range<usize>) -> bool {
        if self.expect == Expect::Comma && !self.missing_comma(range) {
            return false;
        }
        let range = range.clone();
        match self.expect {
            Expect::Root | Expect::Element | Expect::Value => true,
            Expect::Colon => self.mistake(range, || {
                (
                    "no colon stands behind the name".into(),
                    "before this".into(),
                    "write `\"name\": value`".into(),
                )
            }),
            Expect::Name => self.mistake(range, || {
                (
                    "a member has no name".into(),
                    "before this".into(),
                    "write `\"name\": value`, or use `[` and `]`".into(),
                )
            }),
            // More of that kind would say nothing new.
            Expect::End | Expect::Comma => {
                self.mistake(range, || {
                    (
                        "there is text behind the end".into(),
                        "this belongs to nothing".into(),
                        "remove it, or the bracket that ends the value before".into(),
                    )
                });
                false
            }
        }
    }

    fn missing_comma(&mut self, range: &Range<usize>) -> bool {
        self.expect = self.next_item();
        self.mistake(range.clone(), || {
            (
                "a comma is missing".into(),
                "before this".into(),
                "write `,` behind the item before".into(),
            )
        })
    }

    fn value(&mut self, token: Token, range: Range<usize>) -> bool {
        let written = &self.text[range.clone()];
        match token {
            Token::Text if !self.check_text(&range) => return false,
            Token::Word if !text::is_value(written) => {
                self.expect = self.behind_value();
                return self.mistake(range, || no_value(written));
            }
            _ => {}
        }
        let piece = self.sink.piece(pieces::Kind::Value, range.clone());
        let shape = if written == "null" {
            Shape::Null
        } else {
            Shape::Value
        };
        let goes_on = self.content(shape, written, range, piece);
        self.expect = self.behind_value();
        goes_on
    }

    fn open(&mut self, range: Range<usize>) -> bool {
        let bracket = self.text.as_bytes()[range.start];
        if self.open.len() == DEPTH_MAX {
            self.mistake(range, || {
                (
                    format!("the text nests deeper than {DEPTH_MAX} levels"),
                    "one more level".into(),
                    "put less into each other".into(),
                )
            });
            return false;
        }
        self.open.push((bracket, range.start));
        let piece = self.sink.piece(pieces::Kind::Open, range.clone());
        let shape = if bracket == b'{' {
            Shape::Object
        } else {
            Shape::Array
        };
        let goes_on = self.content(shape, "", range, piece);
        self.expect = self.next_item();
        goes_on
    }

    fn close(&mut self, range: Range<usize>) -> bool {
        let bracket = self.text.as_bytes()[range.start];
        let Some((open, at)) = self.open.pop() else {
            return self.mistake(range, || {
                (
                    "nothing is open that this could close".into(),
                    "this bracket".into(),
                    "remove it".into(),
                )
            });
        };
        let missing = matches!(self.expect, Expect::Colon | Expect::Value);
        self.expect = self.behind_value();
        let right = if open == b'{' { '}' } else { ']' };
        if bracket != right as u8 {
            return self.mistake(range, || {
                (
                    format!("`{}` is closed by `{}`", open as char, bracket as char),
                    "this bracket".into(),
                    format!("write `{right}` for the one in byte {at}"),
                )
            });
        }
        if missing {
            return self.mistake(range, || {
                (
                    "the member has no value".into(),
                    "before this".into(),
                    "write `\"name\": value`".into(),
                )
            });
        }
        let piece = self.sink.piece(pieces::Kind::Close, range);
        if self.in_step && !self.sink.close(piece) {
            self.sound = false;
        }
        self.sound || S::ALL_MISTAKES
    }

    fn content(&mut self, shape: Shape, written: &'t str, range: Range<usize>, piece: u32) -> bool {
        let member = self.member.take();
        if !self.in_step {
            return true;
        }
        let content = Content {
            shape,
            written,
            range,
            piece,
            line: self.line,
        };
        self.sound &= self.sink.content(member, &content);
        self.sound || S::ALL_MISTAKES
    }

    /// What comes behind the begin or the comma of what is open.
    fn next_item(&self) -> Expect {
        match self.open.last() {
            Some((b'{', _)) => Expect::Name,
            _ => Expect::Element,
        }
    }

    fn behind_value(&self) -> Expect {
        if self.open.is_empty() {
            Expect::End
        } else {
            Expect::Comma
        }
    }

    /// Checks what stands within quotes; false to read no further.
    fn check_text(&mut self, range: &Range<usize>) -> bool {
        let written = &self.text[range.clone()];
        if text::is_plain(written) {
            return true;
        }
        text::mistakes(written).into_iter().all(|(wrong, place)| {
            let place = range.start + place.start..range.start + place.end;
            let written = &self.text[place.clone()];
            self.mistake(place, || in_quotes(wrong, written))
        })
    }

    /// Reports message, label and help; false to read no further.
    fn mistake(&mut self, place: Range<usize>, say: impl FnOnce() -> Words) -> bool {
        self.sound = false;
        self.in_step = false;
        self.sink.mistake(|| {
            let (message, label, help) = say();
            Diagnostic::error(message)
                .label(place.into(), label)
                .help(help)
        });
        S::ALL_MISTAKES
    }
}
