//! Words of an expression: names, literals and signs, each with its place.

use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_transfer::Value;

/// A word and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub word: Word,
    pub span: Span,
}

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    /// A name that is no literal; `in` is one.
    Name(Arc<str>),
    /// Digits of a whole number, in the base, which may be too large.
    Int(u64),
    /// Every other literal.
    Literal(Value),
    /// A sign, of one or two characters.
    Sign(&'static str),
    /// Behind the last word.
    End,
}

const SIGNS: [&str; 23] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{",
];

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// All words of a text, the last of which is the end.
pub(crate) fn words(text: &str) -> Result<Vec<Token>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let start = lexer.at;
        let word = lexer.word()?;
        let is_end = word == Word::End;
        let span = Span::new(start, lexer.at);
        tokens.push(Token { word, span });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

fn error(message: impl Into<String>, span: Span, label: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(message).label(span, label))
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn word(&mut self) -> Result<Word> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Word::End);
        };
        let after = rest.as_bytes().get(1).copied().unwrap_or(0);
        if first.is_ascii_digit() || (first == '.' && after.is_ascii_digit()) {
            return self.number();
        }
        if let Some(prefix) = text_prefix(rest) {
            return self.text(prefix);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            self.at += length;
            return Ok(match &rest[..length] {
                "true" => Word::Literal(Value::Bool(true)),
                "false" => Word::Literal(Value::Bool(false)),
                "null" => Word::Literal(Value::Null),
                name => Word::Name(name.into()),
            });
        }
        if rest.starts_with('}') {
            self.at += 1;
            return Ok(Word::Sign("}"));
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            self.at += sign.len();
            return Ok(Word::Sign(sign));
        }
        let span = Span::new(self.at, self.at + first.len_utf8());
        let shown = first.escape_debug();
        let wrong = error(
            format!("`{shown}` has no meaning here"),
            span,
            "no word begins so",
        );
        Err(Box::new(match first {
            '=' => wrong.help("equality is written `==`"),
            '&' => wrong.help("`and` is written `&&`"),
            '|' => wrong.help("`or` is written `||`"),
            '#' => wrong.help("a comment begins with `//`"),
            '$' | '@' => wrong.help("fields are named without a sign before them"),
            _ => *wrong,
        }))
    }

    fn number(&mut self) -> Result<Word> {
        let (start, rest) = (self.at, self.rest());
        let bytes = rest.as_bytes();
        let digits = |from: usize| {
            let end = bytes[from..].iter().position(|b| !b.is_ascii_digit());
            end.map_or(bytes.len(), |end| from + end)
        };
        if rest.starts_with("0x") || rest.starts_with("0X") {
            let end = bytes[2..].iter().position(|b| !b.is_ascii_hexdigit());
            let end = end.map_or(bytes.len(), |end| end + 2);
            return self.whole(start, end, u64::from_str_radix(&rest[2..end], 16).ok());
        }
        let mut end = digits(0);
        let mut is_double = false;
        let follows = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        if bytes.get(end) == Some(&b'.') && follows(end + 1) {
            end = digits(end + 1);
            is_double = true;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if follows(end + 1 + sign) {
                end = digits(end + 1 + sign);
                is_double = true;
            }
        }
        if !is_double {
            return self.whole(start, end, rest[..end].parse().ok());
        }
        let number: f64 = rest[..end].parse().unwrap_or(f64::INFINITY);
        self.at += end;
        self.not_glued(start)?;
        if number.is_infinite() {
            let span = Span::new(start, self.at);
            return Err(error(
                "the number is too large",
                span,
                "more than a double holds",
            ));
        }
        Ok(Word::Literal(Value::Double(number)))
    }

    fn whole(&mut self, start: usize, length: usize, number: Option<u64>) -> Result<Word> {
        self.at = start + length;
        let is_unsigned = matches!(self.rest().as_bytes().first(), Some(b'u' | b'U'));
        self.at += usize::from(is_unsigned);
        self.not_glued(start)?;
        let span = Span::new(start, self.at);
        let number = number.ok_or_else(|| {
            let wrong = error(
                "the whole number is not one of 64 bits",
                span,
                "this number",
            );
            Box::new(wrong.help("write it as a double, with `.0` behind it"))
        })?;
        Ok(match is_unsigned {
            true => Word::Literal(Value::Uint(number)),
            false => Word::Int(number),
        })
    }

    /// No name begins right behind a number.
    fn not_glued(&self, start: usize) -> Result<()> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !rest.starts_with(is_part) {
            return Ok(());
        }
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let span = Span::new(start, self.at + length);
        let wrong = error(
            "a name begins right behind a number",
            span,
            "neither of both",
        );
        Err(Box::new(wrong.help(
            "durations are written `duration(\"10s\")`; put an operator or a space between",
        )))
    }

    fn text(&mut self, prefix: Prefix) -> Result<Word> {
        let start = self.at;
        self.at += prefix.length;
        let rest = self.rest();
        let quote = &rest[..1];
        let long = [quote, quote, quote].concat();
        let is_long = rest.starts_with(&long);
        let end = if is_long { &long } else { quote };
        self.at += end.len();
        let mut bytes = Vec::new();
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else {
                let span = Span::new(start, self.text.len());
                let wrong = error("the text does not end", span, "begins here");
                return Err(Box::new(wrong.help(format!("end it with `{end}`"))));
            };
            if rest.starts_with(end) {
                self.at += end.len();
                break;
            }
            if !is_long && matches!(c, '\n' | '\r') {
                let span = Span::new(start, self.at);
                let wrong = error("the text does not end on its line", span, "begins here");
                let way = format!(
                    "end it with `{end}`, write `\\n`, or use `{long}` for texts of several lines"
                );
                return Err(Box::new(wrong.help(way)));
            }
            if c == '\\' && prefix.is_raw {
                // Raw texts keep it, and a quote behind it still ends them.
                bytes.push(b'\\');
                self.at += 1;
            } else if c == '\\' {
                self.escape(prefix.is_bytes, &mut bytes)?;
            } else {
                self.at += c.len_utf8();
                bytes.extend_from_slice(&self.text.as_bytes()[self.at - c.len_utf8()..self.at]);
            }
        }
        if prefix.is_bytes {
            return Ok(Word::Literal(Value::Bytes(bytes.into())));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Word::Literal(Value::from(text))),
            Err(_) => Err(error(
                "the text is no Unicode",
                Span::new(start, self.at),
                "this text",
            )),
        }
    }

    fn escape(&mut self, is_bytes: bool, bytes: &mut Vec<u8>) -> Result<()> {
        let start = self.at;
        let rest = &self.rest()[1..];
        let Some(c) = rest.chars().next() else {
            let span = Span::new(start, self.at + 1);
            return Err(error("the text does not end", span, "a lonely backslash"));
        };
        self.at += 1 + c.len_utf8();
        let simple = match c {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '?' | '"' | '\'' | '`' => c as u8,
            _ => 0,
        };
        if simple != 0 {
            bytes.push(simple);
            return Ok(());
        }
        let (digits, base) = match c {
            'x' | 'X' => (2, 16),
            'u' if !is_bytes => (4, 16),
            'U' if !is_bytes => (8, 16),
            '0'..='3' => (3, 8),
            _ => (0, 0),
        };
        let from = if base == 8 { 0 } else { 1 };
        let number = rest.get(from..from + digits);
        let number = number.filter(|n| digits > 0 && n.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = number.and_then(|number| u32::from_str_radix(number, base).ok());
        let written = match (number, is_bytes) {
            (Some(number), true) => u8::try_from(number).ok().map(|byte| bytes.push(byte)),
            (Some(number), false) => char::from_u32(number).map(|c| {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }),
            (None, _) => None,
        };
        if written.is_none() {
            let span = Span::new(start, self.at);
            let wrong = error("the backslash begins no character", span, "no escape");
            return Err(Box::new(wrong.help(
                "write `\\\\` for a backslash, or `r\"…\"` for a text in which it means itself; \
                 characters are `\\n`, `\\t`, `\\x41`, `\\u00e4`, `\\U0001f600`, `\\101`",
            )));
        }
        self.at = start + 1 + from + digits;
        Ok(())
    }
}

struct Prefix {
    length: usize,
    is_raw: bool,
    is_bytes: bool,
}

/// Whether a text begins here, and of which kind.
fn text_prefix(rest: &str) -> Option<Prefix> {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'');
    let letters = rest.bytes().take(3).position(is_quote)?;
    let (is_bytes, is_raw) = match rest.get(..letters)?.to_ascii_lowercase().as_str() {
        "" => (false, false),
        "b" => (true, false),
        "r" => (false, true),
        "br" | "rb" => (true, true),
        _ => return None,
    };
    Some(Prefix {
        length: letters,
        is_raw,
        is_bytes,
    })
}
