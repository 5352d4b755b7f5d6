//! Tokens of JSON with comments.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Blank,
    Newline,
    Comment,
    /// In double quotes.
    Text,
    /// `{`, `}`, `[`, `]`, `:` or `,`.
    Mark(u8),
    /// A number, a word, or whatever else stands there up to the next of the others.
    Word,
    /// Something that begins and does not end.
    Unclosed(Unclosed),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unclosed {
    Comment,
    Text,
}

/// The tokens of a text from this byte on, with their places; without gaps.
pub(super) fn tokens(text: &str, start: usize) -> impl Iterator<Item = (Token, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut at = start;
    std::iter::from_fn(move || {
        let begin = at;
        let (token, length) = token(&bytes[begin..])?;
        at += length;
        Some((token, begin..at))
    })
}

#[inline]
fn token(rest: &[u8]) -> Option<(Token, usize)> {
    Some(match *rest.first()? {
        b' ' | b'\t' => (Token::Blank, run(rest, |byte| matches!(byte, b' ' | b'\t'))),
        b'\r' if rest.get(1) == Some(&b'\n') => (Token::Newline, 2),
        b'\n' | b'\r' => (Token::Newline, 1),
        mark @ (b'{' | b'}' | b'[' | b']' | b':' | b',') => (Token::Mark(mark), 1),
        b'"' => quoted(rest),
        b'/' => match rest.get(1) {
            Some(b'/') => (
                Token::Comment,
                run(rest, |byte| !matches!(byte, b'\n' | b'\r')),
            ),
            Some(b'*') => block_comment(rest),
            _ => (Token::Word, 1),
        },
        _ => (Token::Word, run(rest, is_word)),
    })
}

fn run(rest: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    let end = rest.iter().position(|&byte| !belongs(byte));
    end.unwrap_or(rest.len())
}

fn is_word(byte: u8) -> bool {
    let other = b" \t\r\n{}[]:,\"/";
    !other.contains(&byte)
}

#[inline]
fn quoted(rest: &[u8]) -> (Token, usize) {
    let mut at = 1;
    loop {
        match rest.get(at) {
            Some(b'"') => return (Token::Text, at + 1),
            Some(b'\\') if !matches!(rest.get(at + 1), None | Some(b'\n' | b'\r')) => at += 2,
            // A line that ends within quotes has lost one of them.
            None | Some(b'\n' | b'\r') => return (Token::Unclosed(Unclosed::Text), at),
            Some(_) => at += 1,
        }
    }
}

fn block_comment(rest: &[u8]) -> (Token, usize) {
    let end = rest[2..].windows(2).position(|pair| pair == b"*/");
    match end {
        Some(end) => (Token::Comment, end + 4),
        None => (Token::Unclosed(Unclosed::Comment), rest.len()),
    }
}
