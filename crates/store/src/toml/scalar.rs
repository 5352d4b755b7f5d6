//! Values of TOML: what they mean, and how they are written.

use std::borrow::Cow;

use toml_datetime::Datetime;
use toml_parser::decoder::{Encoding, IntegerRadix, ScalarKind};
use toml_parser::{ErrorSink, ParseError, Raw, Span};

use crate::format::Kind;
use crate::nested::number::{is_finite, is_whole};
use crate::nested::quote::quoted;

/// What a value means, as the key that has it says it; mistakes go to `errors`.
pub(super) fn value<'t>(raw: &Raw<'t>, place: Span, errors: &mut dyn ErrorSink) -> Cow<'t, str> {
    let mut text = Cow::Borrowed("");
    match raw.decode_scalar(&mut text, errors) {
        ScalarKind::String => text,
        ScalarKind::Boolean(_) => Cow::Borrowed(raw.as_str()),
        ScalarKind::Integer(IntegerRadix::Dec) | ScalarKind::Float => without_plus(text),
        ScalarKind::Integer(radix) => match u128::from_str_radix(&text, radix.value()) {
            Ok(number) => Cow::Owned(number.to_string()),
            Err(_) => {
                errors.report_error(ParseError::new(TOO_LARGE).with_unexpected(place));
                text
            }
        },
        ScalarKind::DateTime => {
            if text.parse::<Datetime>().is_err() {
                errors.report_error(ParseError::new(NO_DATE).with_unexpected(place));
            }
            text
        }
    }
}

/// The mistakes that the parser leaves to others.
pub(super) const TOO_LARGE: &str = "the number does not fit into 128 bits";
pub(super) const NO_DATE: &str = "there is no such date or time";

fn without_plus(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix('+').unwrap_or(text)),
        Cow::Owned(text) if text.starts_with('+') => Cow::Owned(text[1..].to_owned()),
        text => text,
    }
}

/// What a value means that was found to be right.
pub(super) fn decode(written: &str) -> Cow<'_, str> {
    let place = Span::new_unchecked(0, written.len());
    let raw = Raw::new_unchecked(written, encoding(written), place);
    value(&raw, place, &mut ())
}

/// In which quotes a value stands.
fn encoding(written: &str) -> Option<Encoding> {
    [
        ("\"\"\"", Encoding::MlBasicString),
        ("'''", Encoding::MlLiteralString),
        ("\"", Encoding::BasicString),
        ("'", Encoding::LiteralString),
    ]
    .into_iter()
    .find_map(|(quotes, encoding)| written.starts_with(quotes).then_some(encoding))
}

/// How a value is written that takes the place of another one.
pub(super) fn encode(value: &str, kind: Kind, replaced: Option<&str>) -> String {
    let as_boolean = || matches!(value, "true" | "false").then(|| value.to_owned());
    let as_number = || is_number(value).then(|| value.to_owned());
    let quotes = replaced.and_then(encoding);
    let written = match kind {
        Kind::Text => None,
        Kind::Unknown if quotes.is_some() => None,
        Kind::Number => as_number().or_else(|| is_special(value).then(|| value.to_owned())),
        Kind::Boolean => match value {
            "1" => Some("true".to_owned()),
            "0" => Some("false".to_owned()),
            _ => as_boolean(),
        },
        Kind::Unknown => as_number().or_else(as_boolean).or_else(|| {
            let same = match replaced.map(kind_of)? {
                ScalarKind::DateTime => value.parse::<Datetime>().is_ok(),
                ScalarKind::Float => is_special(value),
                _ => false,
            };
            same.then(|| value.to_owned())
        }),
    };
    written.unwrap_or_else(|| in_quotes(value, quotes, replaced.unwrap_or_default()))
}

fn kind_of(written: &str) -> ScalarKind {
    let place = Span::new_unchecked(0, written.len());
    Raw::new_unchecked(written, encoding(written), place).decode_scalar(&mut (), &mut ())
}

/// Whether a value is a number that every reader of TOML understands.
fn is_number(value: &str) -> bool {
    match is_whole(value) {
        true => value.parse::<i64>().is_ok(),
        false => is_finite(value),
    }
}

fn is_special(value: &str) -> bool {
    matches!(value, "inf" | "-inf" | "nan" | "-nan")
}

/// A text in the same quotes as before, if they can hold it.
fn in_quotes(value: &str, quotes: Option<Encoding>, replaced: &str) -> String {
    let is_control = |c: char| c.is_control() && c != '\t';
    let is_line = !value.contains(is_control);
    let is_lines = !value.contains(|c| is_control(c) && c != '\n');
    // The line break behind opening quotes belongs to them.
    let begins = matches!(replaced.as_bytes().get(3), Some(b'\r' | b'\n'));
    let begin = if begins || value.starts_with('\n') {
        "\n"
    } else {
        ""
    };
    match quotes {
        Some(Encoding::LiteralString) if is_line && !value.contains('\'') => format!("'{value}'"),
        Some(Encoding::MlLiteralString)
            if is_lines && !value.contains("'''") && !value.ends_with('\'') =>
        {
            format!("'''{begin}{value}'''")
        }
        Some(Encoding::MlBasicString | Encoding::MlLiteralString) => {
            let lines: Vec<String> = value.split('\n').map(quoted).collect();
            let lines: Vec<&str> = lines.iter().map(|line| &line[1..line.len() - 1]).collect();
            format!("\"\"\"{begin}{}\"\"\"", lines.join("\n"))
        }
        _ => quoted(value),
    }
}
