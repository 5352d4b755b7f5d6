//! What is written in JSON, and what it means.

use std::borrow::Cow;
use std::ops::Range;

use crate::nested::number::is_number;

/// What a value means that was found to be right.
pub(super) fn decode(written: &str) -> Cow<'_, str> {
    match written
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        None => Cow::Borrowed(written),
        Some(inside) if !inside.contains('\\') => Cow::Borrowed(inside),
        Some(inside) => Cow::Owned(unescape(inside)),
    }
}

/// The text of what stands within quotes, and was found to be right.
fn unescape(inside: &str) -> String {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        match escape(&rest[at..]) {
            Ok((character, length)) => {
                text.push(character);
                rest = &rest[at + length..];
            }
            Err(_) => unreachable!("{inside:?} was checked"),
        }
    }
    text.push_str(rest);
    text
}

/// What is wrong within quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A backslash before a character that needs none.
    Escape,
    /// `\u` without four hexadecimal digits.
    Digits,
    /// Half of a character that takes two `\u`.
    Half,
    /// A control character as it is.
    Control(u8),
}

/// Everything that is wrong in a text in quotes, with its place.
pub(super) fn mistakes(written: &str) -> Vec<(Wrong, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 1;
    let end = written.len() - 1;
    while at < end {
        match written.as_bytes()[at] {
            b'\\' => match escape(&written[at..end]) {
                Ok((_, length)) => at += length,
                Err((wrong, length)) => {
                    found.push((wrong, at..at + length));
                    at += length;
                }
            },
            byte if byte < b' ' => {
                found.push((Wrong::Control(byte), at..at + 1));
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Whether there is anything to look at twice in a text in quotes.
pub(super) fn is_plain(written: &str) -> bool {
    written.bytes().all(|byte| byte >= b' ' && byte != b'\\')
}

/// The character of the escape that a text begins with, and its length.
fn escape(rest: &str) -> Result<(char, usize), (Wrong, usize)> {
    let mut characters = rest[1..].chars();
    let letter = characters.next().ok_or((Wrong::Escape, 1))?;
    Ok(match letter {
        '"' | '\\' | '/' => (letter, 2),
        'b' => ('\u{8}', 2),
        'f' => ('\u{c}', 2),
        'n' => ('\n', 2),
        'r' => ('\r', 2),
        't' => ('\t', 2),
        'u' => {
            let unit = hexadecimal(rest).ok_or((Wrong::Digits, 2))?;
            if let Some(character) = char::from_u32(unit) {
                return Ok((character, 6));
            }
            let low = rest[6..]
                .starts_with("\\u")
                .then(|| hexadecimal(&rest[6..]));
            let low = low.flatten().filter(|low| (0xDC00..0xE000).contains(low));
            match low {
                Some(low) if unit < 0xDC00 => {
                    let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    (char::from_u32(code).expect("a pair in its range"), 12)
                }
                _ => return Err((Wrong::Half, 6)),
            }
        }
        _ => return Err((Wrong::Escape, 1 + letter.len_utf8())),
    })
}

/// The number of `\uXXXX`.
fn hexadecimal(rest: &str) -> Option<u32> {
    let digits = rest.get(2..6)?;
    let right = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    right
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

/// Whether a word is a value as it stands: a number, `true`, `false` or `null`.
pub(super) fn is_value(word: &str) -> bool {
    matches!(word, "true" | "false" | "null") || is_number(word)
}
