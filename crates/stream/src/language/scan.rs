//! Where words, names and expressions end.
//!
//! Expressions are recognized without being understood: strings and brackets
//! are skipped, and no expression holds a comma, a `;`, a single `|` or a
//! single `=` outside of them.

/// A letter or `_`, then letters, digits and `_`; how long it is, if there is one.
pub(super) fn word(text: &str) -> Option<usize> {
    let length = text
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count();
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts.then_some(length)
}

/// Whether the text is a word.
pub(super) fn is_word(text: &str) -> bool {
    word(text) == Some(text.len())
}

/// Whether `word=` starts here, which names an argument: how long the word is.
pub(super) fn named(text: &str) -> Option<usize> {
    let length = word(text)?;
    let rest = text[length..].strip_prefix('=')?;
    (!rest.starts_with('=')).then_some(length)
}

/// What is wrong with an expression that does not end.
#[derive(Debug, PartialEq)]
pub(super) struct Open {
    /// Where the bracket or the string begins.
    pub at: usize,
    /// Which one.
    pub what: char,
}

/// How far an expression goes that starts here: to the end, or to what cannot
/// be in one.
pub(super) fn expression(text: &str) -> Result<usize, Open> {
    let mut scanner = Scanner {
        text,
        at: 0,
        brackets: Vec::new(),
    };
    while scanner.at < text.len() {
        if scanner.ends()? {
            break;
        }
    }
    match scanner.brackets.first() {
        Some(&(at, what)) => Err(Open { at, what }),
        None => Ok(scanner.at),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Where brackets opened that have not been closed.
    brackets: Vec<(usize, char)>,
}

impl Scanner<'_> {
    /// Whether the expression ends here; otherwise steps over what stands here.
    fn ends(&mut self) -> Result<bool, Open> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return Ok(true);
        };
        let is_outside = self.brackets.is_empty();
        let mut length = first.len_utf8();
        match first {
            '|' if rest.starts_with("||") => length = 2,
            '|' | ',' | ';' if is_outside => return Ok(true),
            '#' if self.is_behind_blank() => return Ok(true),
            '(' | '[' | '{' => self.brackets.push((self.at, first)),
            ')' | ']' | '}' if is_outside => return Ok(true),
            ')' | ']' | '}' => {
                self.brackets.pop();
            }
            '"' | '\'' | '`' => length = self.string(first, false)?,
            _ => {
                if let Some(word) = word(rest) {
                    if is_outside && named(rest).is_some() {
                        return Ok(true);
                    }
                    length = word;
                    let quote = rest[word..].chars().next();
                    if let (Some(quote @ ('"' | '\'')), Some(is_raw)) =
                        (quote, prefix(&rest[..word]))
                    {
                        self.at += word;
                        length = self.string(quote, is_raw)?;
                    }
                } else if first.is_ascii_digit() {
                    // The letters of `1u`, `0x1f` and `1e3` begin no word.
                    let number = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    length = rest.len() - rest.trim_start_matches(number).len();
                }
            }
        }
        self.at += length;
        Ok(false)
    }

    fn is_behind_blank(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        before.is_none_or(char::is_whitespace)
    }

    /// How long the string is that starts here.
    fn string(&self, quote: char, is_raw: bool) -> Result<usize, Open> {
        let rest = &self.text[self.at..];
        let mut triple = [0; 3];
        triple.fill(quote as u8);
        let is_triple = quote != '`' && rest.as_bytes().starts_with(&triple);
        let width = if is_triple { 3 } else { 1 };
        let bytes = rest.as_bytes();
        let mut at = width;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if !is_raw => at += 2,
                _ if bytes[at..].starts_with(&triple[..width]) => return Ok(at + width),
                _ => at += 1,
            }
        }
        Err(Open {
            at: self.at,
            what: quote,
        })
    }
}

/// Whether a word in front of a quote belongs to the string, and makes it raw.
fn prefix(word: &str) -> Option<bool> {
    match word {
        "r" | "R" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB" => Some(true),
        "b" | "B" => Some(false),
        _ => None,
    }
}

/// How far a list of functions goes that starts here: `mean, percentile(95)`.
pub(super) fn functions(text: &str) -> usize {
    let blanks = |at: usize| at + text[at..].len() - text[at..].trim_start().len();
    let mut at = 0;
    loop {
        let Some(length) = word(&text[at..]) else {
            return text[..at].trim_end().len();
        };
        at += length;
        if text[at..].starts_with('(') {
            at += text[at..].find(')').map_or(text.len() - at, |end| end + 1);
        }
        let comma = blanks(at);
        if !text[comma..].starts_with(',') {
            return at;
        }
        at = blanks(comma + 1);
    }
}

/// How far a plain word or name goes that starts here.
pub(super) fn plain(text: &str) -> usize {
    let stops = |c: char| c.is_whitespace() || matches!(c, '|' | ',' | ';' | '(' | ')' | '"');
    text.find(stops).unwrap_or(text.len())
}

/// Whether a text can be written without quotes wherever a word or a name can.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = |c: char| {
        c.is_alphanumeric()
            || matches!(
                c,
                '_' | '-' | '.' | '/' | '%' | '*' | '\\' | ':' | '@' | '+'
            )
    };
    let inner = |c: char| plain(c) || c == '#';
    text.starts_with(plain) && text.chars().all(inner)
}

/// Whether a text may have the character: what XML 1.0 allows.
pub(super) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_end_where_nothing_of_them_can_go_on() {
        for (text, expected) in [
            ("value > 32", "value > 32"),
            (
                "value > 32 || value < -5 | aggregate",
                "value > 32 || value < -5 ",
            ),
            ("a ? b : c; x", "a ? b : c"),
            (
                "unit == '|' || unit == \"a\\\"|\"|",
                "unit == '|' || unit == \"a\\\"|\"",
            ),
            ("(a, {b: [c]})) | d", "(a, {b: [c]})"),
            ("a <= b window=1m", "a <= b "),
            ("a==b off=c", "a==b "),
            ("a[\"x=\"] == 1 x=2", "a[\"x=\"] == 1 "),
            ("a # why", "a "),
            ("a == r'\\' | b", "a == r'\\' "),
            ("a == '''it's | ''' | b", "a == '''it's | ''' "),
            ("bar'\\'' | b", "bar'\\'' "),
            ("{`|\\`'`: 1} | b", "{`|\\`'`: 1} "),
            ("1u=2", "1u=2"),
            ("", ""),
            (", b", ""),
        ] {
            assert_eq!(expression(text), Ok(expected.len()), "{text}");
        }
        for (text, at, what) in [("a(b[", 1, '('), ("a == 'b", 5, '\''), ("'''a''", 0, '\'')] {
            assert_eq!(expression(text), Err(Open { at, what }), "{text}");
        }
    }

    #[test]
    fn functions_are_words_and_calls() {
        for (text, expected) in [
            ("mean 10m", "mean"),
            ("mean, percentile(95) 10m", "mean, percentile(95)"),
            ("mean,max|", "mean,max"),
            ("mean, 10m", "mean,"),
            ("percentile(95", "percentile(95"),
            ("10m", ""),
        ] {
            assert_eq!(functions(text), expected.len(), "{text}");
        }
    }
}
