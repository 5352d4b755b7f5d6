//! People's prose as Markdown, in doc comments and in documents.
//!
//! Descriptions are plain text in which `code` and *emphasis* keep their
//! meaning. Everything else that Markdown would take for markup is escaped, so
//! that no description breaks a list, a table, a link check or a page.

/// The paragraph lines of a text as Markdown.
///
/// Control characters and those that turn the direction of writing are left
/// out: they have no place in source text.
pub(crate) fn markdown(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| markdown_line(line.trim()))
        .collect()
}

/// The same on one line, for list items and table cells.
pub(crate) fn markdown_inline(text: &str) -> String {
    let line: Vec<_> = text.lines().map(str::trim).collect();
    markdown_line(line.join(" ").trim())
}

/// Text as inline code, with as many backticks as it takes.
pub(crate) fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .filter(|c| !is_unwelcome(*c))
        .collect();
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn markdown_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 8);
    let mut rest = &line[escape_start(line, &mut out)..];
    while let Some(character) = rest.chars().next() {
        if let Some(span) = code_span(rest) {
            out.extend(span.chars().filter(|c| !is_unwelcome(*c)));
            rest = &rest[span.len()..];
            continue;
        }
        if let Some(address) = address(rest) {
            out.push('<');
            out.push_str(address);
            out.push('>');
            rest = &rest[address.len()..];
            continue;
        }
        match character {
            '`' | '[' | ']' | '<' | '>' | '\\' | '&' | '|' | '~' => {
                out.push('\\');
                out.push(character);
            }
            _ if is_unwelcome(character) => {}
            _ => out.push(character),
        }
        rest = &rest[character.len_utf8()..];
    }
    out
}

/// Escapes what would begin a heading, a list or a rule; how much of the line
/// that was.
fn escape_start(line: &str, out: &mut String) -> usize {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = &line[digits..];
    if digits > 0 && (after.starts_with('.') || after.starts_with(')')) {
        out.push_str(&line[..digits]);
        out.push('\\');
        out.push_str(&after[..1]);
        digits + 1
    } else if line.starts_with(['#', '-', '+', '=', '*', '_'])
        && line[1..].starts_with([' ', '#', '-', '=', '*', '_', '\t'])
        || line.len() == 1 && line.starts_with(['#', '-', '+', '='])
    {
        out.push('\\');
        out.push_str(&line[..1]);
        1
    } else {
        0
    }
}

/// The inline code that a text starts with.
fn code_span(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?;
    let end = inner.find('`').filter(|end| *end > 0)?;
    Some(&text[..end + 2])
}

/// The web address that a text starts with.
fn address(text: &str) -> Option<&str> {
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return None;
    }
    let end = text
        .find(|c: char| c.is_whitespace() || "<>\"`|".contains(c) || is_unwelcome(c))
        .unwrap_or(text.len());
    Some(text[..end].trim_end_matches(['.', ',', ';', ':', ')', '!', '?', '\'']))
}

/// Control characters, and those that change the direction of writing.
pub(crate) fn is_unwelcome(character: char) -> bool {
    character.is_control() && character != '\t'
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{code, markdown, markdown_inline};

    #[test]
    fn what_looks_like_markup_is_escaped() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a [link] and <T>", "a \\[link\\] and \\<T\\>"),
            ("see `x[0]` and `y`", "see `x[0]` and `y`"),
            ("a lone ` here", "a lone \\` here"),
            ("# no heading", "\\# no heading"),
            ("- no item", "\\- no item"),
            ("-1 is a number", "-1 is a number"),
            ("---", "\\---"),
            ("2013. A year", "2013\\. A year"),
            ("*stressed* word", "*stressed* word"),
            ("at https://a.b/c?d.", "at <https://a.b/c?d>."),
            ("C:\\temp|x", "C:\\\\temp\\|x"),
            ("turn \u{202e}round", "turn round"),
            ("", ""),
        ] {
            assert_eq!(markdown(text).join("\n"), expected, "{text}");
        }
        assert_eq!(markdown_inline("one\n  two"), "one two");
    }

    #[test]
    fn code_keeps_its_backticks() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
    }
}
