//! JSON: the format of programs, with the comments that people put into it.
//!
//! ```json
//! {
//!   // Comments and trailing commas are read and kept.
//!   "sw": {
//!     "pi": {
//!       "anna": { "language": "de", "volume": 11, },
//!       "%": { "language": "en" },
//!       "hosts": ["a", "b"]
//!     }
//!   }
//! }
//! ```
//!
//! Here `/sw/pi/anna/language` is `de`, `/sw/pi/%/language` is `en`, and
//! `/sw/pi/hosts/#1` is `b`. [`format`](crate::format) says what objects, arrays
//! and `null` are as keys, and how they are edited.
//!
//! - A string is the text it stands for; a number, `true` and `false` are as
//!   they are written. A value that is the whole text is the key `/`.
//! - A text of nothing but blanks and comments has no keys; the first key makes
//!   it an object.
//! - Neither comments nor trailing commas are written where there are none, so
//!   plain JSON stays plain JSON.
//! - Beyond the standard (RFC 8259) an object has each member once, and nothing
//!   nests deeper than 128 levels.
//! - Numbers are written as numbers when they fit into 64 bits, which is what
//!   readers can be expected to understand, and as strings when they do not.

mod lexer;
mod mistakes;
mod read;
mod sink;
mod text;

use std::borrow::Cow;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;

use crate::format::{Document, Format, Kind, Unwritable};
use crate::nested::number::{is_finite, is_whole};
use crate::nested::quote::quoted;
use crate::nested::{self, Nested, New, Syntax};

/// The format of `.json` files. See the [module](self).
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["json", "jsonc"]
    }

    fn keys_max(&self, text: &str) -> usize {
        text.bytes()
            .filter(|&byte| matches!(byte, b',' | b'{'))
            .count()
            + 1
    }

    fn load(&self, text: &str, each: &mut dyn FnMut(&Name, &str, u32) -> bool) -> bool {
        read::load(text, each)
    }

    fn replace(
        &self,
        text: &str,
        line: u32,
        name: &Name,
        value: &str,
        kind: Kind,
    ) -> Option<String> {
        let place = read::place(text, line, name)?;
        nested::replaced::<Writing>(text, place, value, kind)
    }

    fn parse(&self, text: &str) -> (Box<dyn Document>, Vec<Diagnostic>) {
        let (document, diagnostics) = read::parse(text);
        (Box::new(document), diagnostics)
    }
}

/// Whether a value is a number that readers can be expected to understand.
fn is_number(value: &str) -> bool {
    match is_whole(value) {
        true => value.parse::<i64>().is_ok() || value.parse::<u64>().is_ok(),
        false => is_finite(value),
    }
}

/// How JSON is written.
#[derive(Debug, Clone)]
pub(crate) struct Writing;

impl Syntax for Writing {
    const SEPARATOR: &'static str = ":";
    const SPACED: &'static str = ": ";
    const PADDING: &'static str = "";
    const INDENTATION: &'static str = "  ";
    const LINES: bool = true;

    fn decode(written: &str) -> Cow<'_, str> {
        text::decode(written)
    }

    fn encode(value: &str, kind: Kind, replaced: Option<&str>) -> String {
        let as_number = || is_number(value).then(|| value.to_owned());
        let as_boolean = || matches!(value, "true" | "false").then(|| value.to_owned());
        let written = match (kind, replaced.map(|written| written.as_bytes()[0])) {
            (Kind::Text, _) | (Kind::Unknown, Some(b'"')) => None,
            (Kind::Number, _) => as_number(),
            (Kind::Boolean, _) => match value {
                "1" => Some("true".to_owned()),
                "0" => Some("false".to_owned()),
                _ => as_boolean(),
            },
            (Kind::Unknown, _) => as_number().or_else(as_boolean),
        };
        written.unwrap_or_else(|| quoted(value))
    }

    fn key(member: &str) -> String {
        quoted(member)
    }

    fn insert(_: &mut Nested<Self>, table: u32, _: &New<'_>) -> Result<(), Unwritable> {
        unreachable!("node {table} is in braces, as all of JSON")
    }

    fn cut(_: &mut Nested<Self>, node: u32) {
        unreachable!("node {node} is within braces or brackets, as all of JSON")
    }

    fn stays(_: &Nested<Self>, _: u32) -> bool {
        false
    }
}
