//! Texts in quotes of the language of one line, with escapes.

use std::fmt::Write;

/// Why a text in quotes cannot be read.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// It is not closed.
    Open,
    /// What follows a backslash is no escape: where the backslash is, and how
    /// long that is with what follows.
    Escape(usize, usize),
}

/// Reads a text that begins with its quote: what it means, and how far it goes.
pub(super) fn read(text: &str) -> Result<(String, usize), Broken> {
    let mut chars = text.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    let mut meant = String::new();
    while let Some((at, c)) = chars.next() {
        if Some(c) == quote {
            return Ok((meant, chars.offset()));
        }
        if c != '\\' {
            meant.push(c);
            continue;
        }
        let rest = chars.as_str();
        let Some((c, length)) = escape(rest) else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            return Err(Broken::Escape(at, 1 + length));
        };
        meant.push(c);
        let end = chars.offset() + length;
        while chars.offset() < end {
            chars.next();
        }
    }
    Err(Broken::Open)
}

/// The character that an escape means, behind its backslash, and how long it is.
fn escape(rest: &str) -> Option<(char, usize)> {
    let simple = match rest.chars().next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        c @ ('"' | '`' | '\\') => c,
        'u' => {
            let digits = rest.strip_prefix("u{")?;
            let end = digits.find('}').filter(|end| (1..=6).contains(end))?;
            let code = u32::from_str_radix(&digits[..end], 16).ok()?;
            return char::from_u32(code).map(|c| (c, end + 3));
        }
        _ => return None,
    };
    Some((simple, 1))
}

/// Writes a text in quotes.
pub(super) fn write(text: &str, quote: char, out: &mut String) {
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["", "a \" ` \\ b", "\n\r\t\u{1}\u{85}", "\\u{41}", "é😀"] {
            for quote in ['"', '`'] {
                let mut written = String::new();
                write(text, quote, &mut written);
                let end = written.len();
                written.push_str("rest\"`");
                assert_eq!(read(&written), Ok((text.to_owned(), end)), "{written}");
            }
        }
    }

    #[test]
    fn what_is_broken_is_found() {
        assert_eq!(read("\"a"), Err(Broken::Open));
        assert_eq!(read("`a\\`"), Err(Broken::Open));
        for (text, at, length) in [
            ("\"a\\é\"", 2, 3),
            ("\"\\u{}\"", 1, 2),
            ("\"\\u{d800}\"", 1, 2),
            ("\"\\u{1234567}\"", 1, 2),
            ("\"\\", 1, 1),
        ] {
            assert_eq!(read(text), Err(Broken::Escape(at, length)), "{text}");
        }
    }
}
