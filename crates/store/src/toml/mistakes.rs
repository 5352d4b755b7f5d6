//! What is wrong with a text, in our words.

use std::ops::Range;

use milieu_diagnostics::Diagnostic;
use toml_parser::{Expected, ParseError};

use super::scalar::{NO_DATE, TOO_LARGE};

/// A mistake that the parser found.
pub(super) fn describe(text: &str, error: &ParseError) -> Diagnostic {
    let place = error.unexpected().or(error.context());
    let place = place.map_or(0..0, |span| span.start()..span.end());
    let message = error.description();
    let help = help(message).map_or_else(|| expected(error), str::to_owned);
    Diagnostic::error(message)
        .label(whole(text, place).into(), "here")
        .help(help)
}

/// A way out of the mistakes that come most.
fn help(message: &str) -> Option<&'static str> {
    Some(match message {
        TOO_LARGE => "write it in quotes, or use a smaller one",
        NO_DATE => {
            "write for example `1979-05-27` or `1979-05-27T07:32:00Z`, or write the text in quotes"
        }
        "string values must be quoted" => "write the value in double quotes",
        "key with no value" | "missing value for key" => {
            "write `name = value`, or begin the line with `#` to make it a comment"
        }
        "missing value" => "write a value behind the `=`; `\"\"` is an empty one",
        "invalid unquoted key" => "names of letters, digits, `_` and `-` need no quotes, others do",
        "unquoted keys cannot be empty" => "write a name; `\"\"` is an empty one",
        "unexpected leading zero" => "remove the zero, or write the value in quotes",
        "redundant numeric sign" | "integers with a radix cannot be signed" | "unexpected sign" => {
            "remove the sign"
        }
        "radix must be lowercase" => "write `0x`, `0o` or `0b`",
        "redundant integer number prefix" => "remove the prefix",
        "`_` may only go between digits" => "remove the `_`, or write the value in quotes",
        "missing escaped value" => "write `\\\\` for a backslash, or use single quotes",
        "too few unicode value digits" | "invalid value" => {
            "write `\\u` with four or `\\U` with eight hexadecimal digits; write `\\\\u` for a backslash"
        }
        "carriage return must be followed by newline" => "end lines with `\\n` or `\\r\\n`",
        "invalid comment character" => "remove the control character",
        "cannot recurse further; max recursion depth met" => "put less into each other",
        "extra `=`" | "extra comma in array" | "extra comma in inline table" => "remove it",
        "extra assignment between key-value pairs" => "write a comma between two keys",
        "unexpected content"
        | "unexpected key or value"
        | "unexpected content between comment and newline" => {
            "put every key and every table on a line of its own"
        }
        "unexpected `=` in array" => "write elements only, or a table in braces",
        _ => return None,
    })
}

/// What could stand in the place of the mistake.
fn expected(error: &ParseError) -> String {
    let words: Vec<String> = error
        .expected()
        .unwrap_or_default()
        .iter()
        .map(|expected| match expected {
            Expected::Literal(text) => format!("`{text}`"),
            Expected::Description(text) => (*text).to_owned(),
            _ => "something else".to_owned(),
        })
        .collect();
    match words.as_slice() {
        [] => "write the value in double quotes if it is a text".to_owned(),
        words => format!("what can stand here: {}", words.join(", ")),
    }
}

/// The same place with whole characters, and one character at least.
fn whole(text: &str, place: Range<usize>) -> Range<usize> {
    let back = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = back(place.start.min(text.len()));
    let mut end = place.end.clamp(start, text.len());
    if end == start {
        end = text[start..]
            .chars()
            .next()
            .map_or(start, |c| start + c.len_utf8());
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}
