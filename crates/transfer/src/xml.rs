//! XML: for those with an XML parser and nothing else.
//!
//! ```xml
//! <event><name>/weather/temperature</name><time type="time">2013-01-01T12:00:00Z</time>
//! <value type="map"><celsius type="double">21.5</celsius></value></event>
//! ```
//!
//! Each value is an element. Its attribute `type` is `null`, `bool`, `int`,
//! `double`, `bytes` (base 64), `time`, `span`, `list`, `map`, or `text64` for a
//! text that XML has no characters for (base 64 too). Without it an element with
//! elements in it is a map, and any other one a text. Entries of a list are
//! `item`; those of a map have their key as a name where it is one, else they are
//! `<entry key="…">`, with `key-type` where the key is no text. What is private
//! says `private="true"`. Shared values are written out where they are referred
//! to. Documents with a document type are refused, so nothing expands.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*,
//! section 8.2.

mod read;
mod write;

use std::fmt::Display;

use crate::base64;
use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::limits::Limits;
use crate::mode::{Notation, mode_of_notation};
use crate::time::{Span, Time};
use crate::value::Value;

/// XML 1.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xml;

mode_of_notation!(Xml);

impl Notation for Xml {
    const NAME: &'static str = "xml";
    const VERSION: u32 = 1;
    const MEDIA_TYPE: &'static str = "application/xml";

    fn write(
        &self,
        out: &mut Vec<u8>,
        root: &'static str,
        say: &mut dyn FnMut(&mut dyn Sink) -> Said,
    ) -> Said {
        say(&mut write::Writer::new(out, root))
    }

    fn parse(&self, bytes: &[u8], limits: &Limits) -> Result<Value, Error> {
        read::read(bytes, limits)
    }
}

/// What is no list and no map, as text: the name of its type, and itself.
fn written(value: &Value) -> Option<(&'static str, String)> {
    let shown = |kind, value: &dyn Display| Some((kind, value.to_string()));
    match value {
        Value::Bool(value) => shown("bool", value),
        Value::Int(value) => shown("int", value),
        Value::Uint(value) => shown("int", value),
        Value::Double(value) => Some(("double", double(*value))),
        Value::Bytes(value) => Some(("bytes", base64::encode(value))),
        Value::Time(value) => shown("time", value),
        Value::Span(value) => shown("span", value),
        Value::Text(value) if value.chars().all(is_allowed) => shown("text", value),
        Value::Text(value) => Some(("text64", base64::encode(value.as_bytes()))),
        _ => None,
    }
}

fn double(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "INF".to_owned(),
        f64::NEG_INFINITY => "-INF".to_owned(),
        _ => format!("{value:?}"),
    }
}

/// The inverse of [`written`].
fn parsed(kind: &str, text: &str) -> Option<Value> {
    Some(match kind {
        "text" => Value::from(text),
        "text64" => Value::from(String::from_utf8(base64::decode(text)?).ok()?),
        "bool" => Value::Bool(text.parse().ok()?),
        "int" => match text.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Uint(text.parse().ok()?),
        },
        "double" => Value::Double(match text {
            "NaN" => f64::NAN,
            "INF" => f64::INFINITY,
            "-INF" => f64::NEG_INFINITY,
            _ => text
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())?,
        }),
        "bytes" => Value::from(base64::decode(text)?),
        "time" => Value::Time(text.parse::<Time>().ok()?),
        "span" => Value::Span(text.parse::<Span>().ok()?),
        "null" => text.is_empty().then_some(Value::Null)?,
        _ => return None,
    })
}

/// Whether XML 1.0 has this character.
fn is_allowed(letter: char) -> bool {
    match letter {
        '\t' | '\n' | '\r' => true,
        _ => letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}'),
    }
}
