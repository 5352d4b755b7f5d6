//! Texts in double quotes, as JSON, TOML and YAML all read them.

use std::fmt::Write;

/// Appends a text in double quotes, on one line and without control characters.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut copied = 0;
    for (at, character) in text.char_indices() {
        let escape = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            _ if needs_number(character) => "",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        out.push_str(escape);
        if escape.is_empty() {
            write!(out, "\\u{:04x}", u32::from(character)).expect("memory");
        }
        copied = at + character.len_utf8();
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

/// The text in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(text, &mut out);
    out
}

/// Control characters, which no format allows, what YAML takes for the end of a
/// line or for no character, and the byte order mark. All have four digits.
fn needs_number(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}
