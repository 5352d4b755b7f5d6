//! How names and values are written on one line of INI text.
//!
//! A value is raw text up to the end of its line, backslashes included, or it
//! stands in quotes. What is not fit for raw text is written in quotes: blanks
//! at either end, a quote at the start, a backslash at the end (which in a
//! specification would join the next line), and control characters. A name has
//! no quotes; what cannot stand in its place is escaped there.
//!
//! | written     | in names | in quotes | means                                     |
//! |-------------|----------|-----------|-------------------------------------------|
//! | `\n` `\r` `\t` | yes   | yes       | a new line, a carriage return, a tabulator |
//! | `\u{1b}`    | yes      | yes       | any character, by its number in hexadecimal |
//! | `\"` `\\`   |          | yes       | a quote, a backslash                      |
//! | `\=` `\[` `\]` `\;` `\#` | yes |   | that character, where it would be misread |
//!
//! Names have escapes of their own (`\/`, `\\`, `\%`, `\.`), which say where a
//! level ends; these pass through both directions untouched. No escape belongs
//! to both sets, so that one backslash is always enough.
//!
//! Properties: decoding what was encoded gives the same text back, for every
//! Unicode text; encoded text is one line without control characters; plain
//! text is not copied.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::ops::Range;

/// Where a name stands, which decides what must be escaped in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Left of the `=`.
    Key,
    /// Between `[` and `]`.
    Section,
}

/// A text that means nothing: where it goes wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscapeError {
    /// The bytes to blame, in the text that was decoded.
    pub span: Range<usize>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Unknown(char),
    Number,
    Nothing,
    NotClosed,
    Behind,
    GoesOn,
}

impl EscapeError {
    /// How the text can be mended.
    pub fn help(&self) -> String {
        match self.kind {
            Kind::Unknown('=' | '[' | ']' | ';' | '#') => "in quotes this character needs no backslash".to_owned(),
            Kind::Unknown(c) => format!("write `\\\\{}` for a backslash", c.escape_debug()),
            Kind::Number => r"write one to six hexadecimal digits, as in `\u{1b}`".to_owned(),
            Kind::Nothing => r"write `\\` for a backslash".to_owned(),
            Kind::NotClosed => r"close them in the same line; write `\n` for a line break in the value".to_owned(),
            Kind::Behind => "write `\\\"` for a quote inside quotes, and put comments on lines of their own".to_owned(),
            Kind::GoesOn => "values do not go on in the next line; write one that ends in a backslash in quotes: `\"…\\\\\"`".to_owned(),
        }
    }
}

impl fmt::Display for EscapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Unknown(c) => write!(f, "`\\{}` is no escape", c.escape_debug()),
            Kind::Number => f.write_str(r"`\u` needs the number of a character in braces"),
            Kind::Nothing => f.write_str("the backslash escapes nothing"),
            Kind::NotClosed => f.write_str("the quotes are not closed"),
            Kind::Behind => f.write_str("there is text behind the quotes"),
            Kind::GoesOn => f.write_str("the line ends in a backslash"),
        }
    }
}

impl std::error::Error for EscapeError {}

/// Writes a canonical name as it stands left of the `=`, with what cannot stand there escaped.
///
/// The result is one line without control characters, fit for lists as well.
///
/// ```
/// use milieu_store::ini;
/// assert_eq!(ini::encode_name("/a=b\n"), r"/a\=b\n");
/// assert_eq!(ini::decode_name(r"/a\=b\n").unwrap(), "/a=b\n");
/// ```
pub fn encode_name(name: &str) -> Cow<'_, str> {
    encode(name, Place::Key)
}

/// Reads a name as it stands left of the `=` or in a section.
///
/// # Errors
/// An escape that is neither a name's nor this format's.
pub fn decode_name(text: &str) -> Result<Cow<'_, str>, EscapeError> {
    let Some(first) = text.find('\\') else {
        return Ok(Cow::Borrowed(text));
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = first;
    while let Some(at) = text[rest..].find('\\').map(|found| rest + found) {
        out.push_str(&text[rest..at]);
        match text[at + 1..].chars().next() {
            Some('/' | '\\' | '%' | '.') => {
                rest = at + 2;
                out.push_str(&text[at..rest]);
            }
            Some(c @ ('=' | '[' | ']' | ';' | '#')) => {
                rest = at + 2;
                out.push(c);
            }
            _ => {
                let (c, length) = escape(text, at)?;
                rest = at + length;
                out.push(c);
            }
        }
    }
    out.push_str(&text[rest..]);
    Ok(Cow::Owned(out))
}

/// Writes a value as it stands right of the `=`, in quotes if it needs them.
///
/// ```
/// use milieu_store::ini;
/// assert_eq!(ini::encode_value(r"#fff; C:\temp"), r"#fff; C:\temp");
/// assert_eq!(ini::encode_value("two\nlines"), r#""two\nlines""#);
/// ```
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let plain = !value.starts_with(['"', ' ', '\t'])
        && !value.ends_with(['\\', ' ', '\t'])
        && !value.contains(hidden);
    if plain {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len() + 8);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if hidden(c) => push_hidden(c, &mut out),
            c => out.push(c),
        }
    }
    out.push('"');
    Cow::Owned(out)
}

/// Reads a value as it stands right of the `=`.
///
/// # Errors
/// Quotes that are not closed or that text follows, an escape in them that
/// means nothing, and raw text that ends in a backslash.
pub fn decode_value(text: &str) -> Result<Cow<'_, str>, EscapeError> {
    if !text.starts_with('"') {
        let backslashes = text.bytes().rev().take_while(|&byte| byte == b'\\').count();
        if backslashes % 2 == 1 {
            return Err(EscapeError {
                span: text.len() - 1..text.len(),
                kind: Kind::GoesOn,
            });
        }
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = 1;
    loop {
        let Some(at) = text[rest..].find(['"', '\\']).map(|found| rest + found) else {
            return Err(EscapeError {
                span: 0..1,
                kind: Kind::NotClosed,
            });
        };
        out.push_str(&text[rest..at]);
        if text.as_bytes()[at] == b'"' {
            if at + 1 < text.len() {
                return Err(EscapeError {
                    span: at + 1..text.len(),
                    kind: Kind::Behind,
                });
            }
            return Ok(Cow::Owned(out));
        }
        let (c, length) = match text.as_bytes().get(at + 1) {
            Some(&byte @ (b'"' | b'\\')) => (char::from(byte), 2),
            _ => escape(text, at)?,
        };
        out.push(c);
        rest = at + length;
    }
}

/// Reads the escape at `at` that names and quotes share: its character and its bytes.
fn escape(text: &str, at: usize) -> Result<(char, usize), EscapeError> {
    let refused = |length, kind| EscapeError {
        span: at..at + length,
        kind,
    };
    match text[at + 1..].chars().next() {
        Some('n') => Ok(('\n', 2)),
        Some('r') => Ok(('\r', 2)),
        Some('t') => Ok(('\t', 2)),
        Some('u') => match number(&text[at + 2..]) {
            Ok((c, length)) => Ok((c, 2 + length)),
            Err(length) => Err(refused(2 + length, Kind::Number)),
        },
        Some(c) => Err(refused(1 + c.len_utf8(), Kind::Unknown(c))),
        None => Err(refused(1, Kind::Nothing)),
    }
}

/// Reads `{1b}` at the start of the text: the character and the bytes it took,
/// or how many bytes are to blame.
fn number(text: &str) -> Result<(char, usize), usize> {
    let Some(digits) = text.strip_prefix('{') else {
        return Err(0);
    };
    let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    let closed = digits.as_bytes().get(length) == Some(&b'}');
    let blamed = 1 + length + usize::from(closed);
    if !closed || length == 0 || length > 6 {
        return Err(blamed);
    }
    u32::from_str_radix(&digits[..length], 16)
        .ok()
        .and_then(char::from_u32)
        .map(|c| (c, blamed))
        .ok_or(blamed)
}

/// True for characters that are written by letter or number wherever they stand.
///
/// Besides the control characters these are what editors may take for the end
/// of a line, and the byte order mark, which would vanish at the start of a file.
fn hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn push_hidden(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str(r"\n"),
        '\r' => out.push_str(r"\r"),
        '\t' => out.push_str(r"\t"),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a string cannot fail"),
    }
}

pub(crate) fn encode(name: &str, place: Place) -> Cow<'_, str> {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.' | b'%');
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    let last = name.char_indices().next_back().map_or(0, |(at, _)| at);
    let mut characters = name.char_indices();
    while let Some((at, c)) = characters.next() {
        let misread = match place {
            Place::Key => c == '=' || (at == 0 && matches!(c, '[' | ';' | '#')),
            Place::Section => c == ']',
        };
        match c {
            // A name's own escape: both characters stay as they are.
            '\\' => {
                out.push('\\');
                out.extend(characters.next().map(|(_, escaped)| escaped));
            }
            ' ' if at == 0 || at == last => out.push_str(r"\u{20}"),
            c if hidden(c) => push_hidden(c, &mut out),
            c if misread => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_raw_unless_they_need_quotes() {
        let pairs = [
            ("de", "de"),
            ("", ""),
            ("#ff8800 ; not a comment", "#ff8800 ; not a comment"),
            ("a = b [c]", "a = b [c]"),
            (r"^\d+$ C:\temp", r"^\d+$ C:\temp"),
            (r#"say "hello""#, r#"say "hello""#),
            ("grüß 🌦", "grüß 🌦"),
            (r#""quoted""#, r#""\"quoted\"""#),
            (" padded ", r#"" padded ""#),
            ("\ttabbed\t", r#""\ttabbed\t""#),
            ("two\r\nlines\n", r#""two\r\nlines\n""#),
            (r"C:\temp\", r#""C:\\temp\\""#),
            ("\0\u{1b}\u{7f}\u{85}", r#""\u{0}\u{1b}\u{7f}\u{85}""#),
            ("\u{2028}\u{feff}", r#""\u{2028}\u{feff}""#),
        ];
        for (value, written) in pairs {
            assert_eq!(encode_value(value), written);
            assert_eq!(decode_value(written).unwrap(), value);
        }
        assert_eq!(
            decode_value(r"two\\").unwrap(),
            r"two\\",
            "an even number joins no line"
        );
        assert_eq!(decode_value(r#""\u{41}""#).unwrap(), "A");
    }

    #[test]
    fn names_keep_their_own_escapes() {
        let pairs = [
            (r"/a\/b\%\.\\", r"/a\/b\%\.\\", Place::Key),
            ("/a=b=c", r"/a\=b\=c", Place::Key),
            ("#0", r"\#0", Place::Key),
            ("/list/#0", "/list/#0", Place::Key),
            ("[x]", r"\[x]", Place::Key),
            (";x", r"\;x", Place::Key),
            ("/a[1]", r"/a[1\]", Place::Section),
            ("/a=b", "/a=b", Place::Section),
            (" a ", r"\u{20}a\u{20}", Place::Section),
            ("\ta\nb", r"\ta\nb", Place::Key),
        ];
        for (name, written, place) in pairs {
            assert_eq!(encode(name, place), written);
            assert_eq!(decode_name(written).unwrap(), name);
        }
    }

    #[test]
    fn what_means_nothing_is_refused_where_it_stands() {
        let values = [
            (r#""\d+""#, 1..3, r"`\d` is no escape"),
            (r#""ok \é""#, 4..7, r"`\é` is no escape"),
            (r#""\=""#, 1..3, r"`\=` is no escape"),
            (
                r#""\u""#,
                1..3,
                r"`\u` needs the number of a character in braces",
            ),
            (
                r#""\u{}""#,
                1..5,
                r"`\u` needs the number of a character in braces",
            ),
            (
                r#""\u{d800}x""#,
                1..9,
                r"`\u` needs the number of a character in braces",
            ),
            (
                r#""\u{1234567}""#,
                1..12,
                r"`\u` needs the number of a character in braces",
            ),
            (
                r#""\u{12"#,
                1..6,
                r"`\u` needs the number of a character in braces",
            ),
            (r#""open"#, 0..1, "the quotes are not closed"),
            (r#"""#, 0..1, "the quotes are not closed"),
            (r#""open\""#, 0..1, "the quotes are not closed"),
            (r#""open\"#, 5..6, "the backslash escapes nothing"),
            (r#""a" ; b"#, 3..7, "there is text behind the quotes"),
            (r"C:\temp\", 7..8, "the line ends in a backslash"),
        ];
        for (text, span, message) in values {
            let error = decode_value(text).unwrap_err();
            assert_eq!(
                (error.span.clone(), error.to_string().as_str()),
                (span, message),
                "{text}"
            );
            assert!(!error.help().is_empty());
        }
        let error = decode_name(r"/a\q").unwrap_err();
        assert_eq!(
            (error.span.clone(), error.to_string().as_str()),
            (2..4, r"`\q` is no escape")
        );
        assert_eq!(decode_name(r"/a\").unwrap_err().span, 2..3);
    }
}
