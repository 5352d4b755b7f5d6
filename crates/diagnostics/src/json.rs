//! Diagnostics for programs: one line of JSON each.

use crate::{Diagnostic, Source};
use std::fmt::Write;

/// One line of JSON without the line break, for editors and scripts.
///
/// Members: `severity` (`error`, `warning` or `note`), `code` (a string or
/// `null`), `message`, `file`, then the primary place as `line`, `column`,
/// `end_line`, `end_column` (from 1, columns in characters, the end is behind
/// the last character; all `null` if there is no place) and `label` (what is to
/// be said about the place, or `null`), and at last the lists of strings `help`
/// and `notes`.
///
/// ```
/// use milieu_diagnostics::{Diagnostic, Source, Span, to_json};
///
/// let source = Source::new("a.ini", "x=\"1\"\n");
/// let found = Diagnostic::warning("odd").label(Span::new(2, 5), "here");
/// assert_eq!(
///     to_json(&source, &found),
///     r#"{"severity":"warning","code":null,"message":"odd","file":"a.ini","line":1,"column":3,"end_line":1,"end_column":6,"label":"here","help":[],"notes":[]}"#
/// );
/// ```
#[must_use]
pub fn to_json(source: &Source, diagnostic: &Diagnostic) -> String {
    let mut out = String::from("{\"severity\":");
    string(diagnostic.severity.as_str(), &mut out);
    out.push_str(",\"code\":");
    optional(diagnostic.code, &mut out);
    out.push_str(",\"message\":");
    string(&diagnostic.message, &mut out);
    out.push_str(",\"file\":");
    string(&source.name, &mut out);
    place(source, diagnostic, &mut out);
    out.push_str(",\"help\":");
    list(&diagnostic.help, &mut out);
    out.push_str(",\"notes\":");
    list(&diagnostic.notes, &mut out);
    out.push('}');
    out
}

fn place(source: &Source, diagnostic: &Diagnostic, out: &mut String) {
    let label = diagnostic.labels.first();
    let numbers = label.map(|label| {
        let (line, column) = source.line_column(label.span.start);
        let (end_line, end_column) = source.line_column(label.span.end.max(label.span.start));
        [line, column, end_line, end_column]
    });
    for (at, member) in ["line", "column", "end_line", "end_column"]
        .iter()
        .enumerate()
    {
        out.push_str(",\"");
        out.push_str(member);
        out.push_str("\":");
        match numbers {
            Some(numbers) => out.push_str(&numbers[at].to_string()),
            None => out.push_str("null"),
        }
    }
    out.push_str(",\"label\":");
    optional(label.map(|label| label.text.as_str()), out);
}

fn list(texts: &[String], out: &mut String) {
    out.push('[');
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(text, out);
    }
    out.push(']');
}

fn optional(text: Option<&str>, out: &mut String) {
    match text {
        Some(text) => string(text, out),
        None => out.push_str("null"),
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Line and paragraph separators end a line for some readers.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::to_json;
    use crate::{Diagnostic, Source, Span};

    #[test]
    fn every_member_is_there_and_one_line_holds_it() {
        let source = Source::new("dir\\\"a\".ini", "ä\nb\n");
        let found = Diagnostic::error("two\nlines \u{1b}[31m \u{2028}")
            .code("kind")
            .label(Span::new(2, 4), "")
            .help("one")
            .help("two")
            .note("remark");
        let json = to_json(&source, &found);
        assert_eq!(
            json,
            r#"{"severity":"error","code":"kind","message":"two\nlines \u001b[31m \u2028","file":"dir\\\"a\".ini","line":1,"column":2,"end_line":2,"end_column":2,"label":"","help":["one","two"],"notes":["remark"]}"#
        );
        assert_eq!(json.lines().count(), 1);
    }

    #[test]
    fn without_a_place_the_numbers_are_null() {
        let json = to_json(&Source::new("a", ""), &Diagnostic::error("x"));
        assert!(json.contains(
            r#""line":null,"column":null,"end_line":null,"end_column":null,"label":null"#
        ));
    }
}
