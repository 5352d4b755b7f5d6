//! JSON: for everybody.
//!
//! Points in time are RFC 3339 texts, distances in time ISO 8601 texts, bytes
//! are in base 64; numbers that are not finite are the texts `NaN`, `Infinity`
//! and `-Infinity`. Keys that are not texts are written as one. Whoever reads
//! into a type gets back what it was; in a [`Value`] they stay texts. A private
//! value is `{"$private":…}`; a key of a map that is called so gets one more `$`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::base64;
use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::limits::Limits;
use crate::mode::{Notation, mode_of_notation};
use crate::time::{Span, Time};
use crate::value::{Map, Value};

/// JSON, RFC 8259.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json;

mode_of_notation!(Json);

impl Notation for Json {
    const NAME: &'static str = "json";
    const VERSION: u32 = 1;
    const MEDIA_TYPE: &'static str = "application/json";

    fn write(
        &self,
        out: &mut Vec<u8>,
        _: &'static str,
        say: &mut dyn FnMut(&mut dyn Sink) -> Said,
    ) -> Said {
        say(&mut Writer {
            out,
            counts: Vec::new(),
            in_key: false,
        })
    }

    fn parse(&self, bytes: &[u8], limits: &Limits) -> Result<Value, Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        // The depth is counted here.
        deserializer.disable_recursion_limit();
        let mut too_deep = false;
        let seed = Seed {
            depth: limits.depth,
            too_deep: &mut too_deep,
        };
        let value = seed.deserialize(&mut deserializer);
        let value = value.and_then(|value| deserializer.end().map(|()| value));
        if too_deep {
            let limit = limits.depth;
            return Err(Error::TooDeep { limit });
        }
        value.map_err(|error| malformed(bytes, &error))
    }
}

/// Lines and columns are counted from 1; before the first byte both are 0.
fn malformed(bytes: &[u8], error: &serde_json::Error) -> Error {
    let before = error.line().saturating_sub(1);
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let start: usize = lines.take(before).map(<[u8]>::len).sum();
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(what, _)| what);
    Error::Malformed {
        mode: Json::NAME,
        at: start + error.column().saturating_sub(1),
        what: what.to_owned(),
    }
}

const PRIVATE: &str = "$private";

/// Whether a key is `$private` or an escaped form of it.
fn is_escaped(key: &str) -> bool {
    key.starts_with('$') && key.trim_start_matches('$') == "private"
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// How many entries there are in each list and map that is open.
    counts: Vec<usize>,
    in_key: bool,
}

impl Writer<'_> {
    fn raw(&mut self, text: &str) -> Said {
        // A key is a text whatever it is.
        let quote: &[u8] = if self.in_key { b"\"" } else { b"" };
        self.out.extend_from_slice(quote);
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(quote);
        Ok(())
    }

    fn quoted(&mut self, text: &str) -> Said {
        let result = serde_json::to_writer(&mut *self.out, text);
        result.map_err(|error| Error::Body(error.to_string()))
    }

    fn number<T: serde::Serialize>(&mut self, number: T) -> Said {
        let quote: &[u8] = if self.in_key { b"\"" } else { b"" };
        self.out.extend_from_slice(quote);
        serde_json::to_writer(&mut *self.out, &number)
            .map_err(|error| Error::Body(error.to_string()))?;
        self.out.extend_from_slice(quote);
        Ok(())
    }

    fn begin(&mut self, bracket: u8) -> Said {
        self.no_key("a list or a map as a key")?;
        self.counts.push(0);
        self.out.push(bracket);
        Ok(())
    }

    fn end(&mut self, bracket: u8) -> Said {
        self.counts.pop();
        self.out.push(bracket);
        Ok(())
    }

    fn no_key(&self, what: &'static str) -> Said {
        let mode = Json::NAME;
        if self.in_key {
            return Err(Error::Unrepresentable { mode, what });
        }
        Ok(())
    }

    fn separate(&mut self) {
        if self.counts.last().is_some_and(|count| *count > 0) {
            self.out.push(b',');
        }
    }
}

impl Sink for Writer<'_> {
    fn null(&mut self) -> Said {
        self.no_key("null as a key")?;
        self.raw("null")
    }

    fn bool(&mut self, value: bool) -> Said {
        self.raw(if value { "true" } else { "false" })
    }

    fn int(&mut self, value: i64) -> Said {
        self.number(value)
    }

    fn uint(&mut self, value: u64) -> Said {
        self.number(value)
    }

    fn float(&mut self, value: f32) -> Said {
        if value.is_finite() {
            return self.number(value);
        }
        self.double(f64::from(value))
    }

    fn double(&mut self, value: f64) -> Said {
        match value {
            _ if value.is_finite() => self.number(value),
            _ if value.is_nan() => self.text("NaN"),
            _ if value > 0.0 => self.text("Infinity"),
            _ => self.text("-Infinity"),
        }
    }

    fn text(&mut self, value: &str) -> Said {
        if self.in_key && is_escaped(value) {
            return self.quoted(&format!("${value}"));
        }
        self.quoted(value)
    }

    fn bytes(&mut self, value: &[u8]) -> Said {
        self.quoted(&base64::encode(value))
    }

    fn time(&mut self, value: Time) -> Said {
        self.quoted(&value.to_string())
    }

    fn span(&mut self, value: Span) -> Said {
        self.quoted(&value.to_string())
    }

    fn list(&mut self, _: Option<usize>) -> Said {
        self.begin(b'[')
    }

    fn end_list(&mut self) -> Said {
        self.end(b']')
    }

    fn map(&mut self, _: Option<usize>) -> Said {
        self.begin(b'{')
    }

    fn key(&mut self) -> Said {
        self.separate();
        self.in_key = true;
        Ok(())
    }

    fn value(&mut self) -> Said {
        self.in_key = false;
        self.out.push(b':');
        Ok(())
    }

    fn item(&mut self) -> Said {
        self.separate();
        Ok(())
    }

    fn entry(&mut self) -> Said {
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        Ok(())
    }

    fn end_map(&mut self) -> Said {
        self.end(b'}')
    }

    fn private(&mut self) -> Said {
        self.no_key("a private key")?;
        self.out.extend_from_slice(b"{\"$private\":");
        Ok(())
    }

    fn end_private(&mut self) -> Said {
        self.out.push(b'}');
        Ok(())
    }

    // Without identity: the first error makes the caller write out what is shared.
    fn shared(&mut self, _: u32) -> Said {
        Err(Error::Cycle)
    }

    fn end_shared(&mut self) -> Said {
        Ok(())
    }

    fn link(&mut self, _: u32) -> Said {
        Err(Error::Cycle)
    }

    fn checkpoint(&self) -> usize {
        self.out.len()
    }

    fn rollback(&mut self, to: usize) {
        self.in_key = false;
        self.out.truncate(to);
    }
}

/// Reads a value that may have so many levels below it.
struct Seed<'a> {
    depth: usize,
    too_deep: &'a mut bool,
}

impl Seed<'_> {
    fn deeper<E: serde::de::Error>(&mut self) -> Result<Seed<'_>, E> {
        let Some(depth) = self.depth.checked_sub(1) else {
            *self.too_deep = true;
            return Err(E::custom("too deep"));
        };
        Ok(Seed {
            depth,
            too_deep: self.too_deep,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Uint(value), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let mut seed = self.deeper()?;
        while let Some(item) = items.next_element_seed(seed.same())? {
            list.push(item);
        }
        Ok(Value::List(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        let mut seed = self.deeper()?;
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(seed.same())?;
            if key == PRIVATE {
                return match (map.len(), entries.next_key::<String>()?) {
                    (0, None) => Ok(Value::Private(value.into())),
                    _ => Err(A::Error::custom("`$private` is not alone")),
                };
            }
            let escape = usize::from(is_escaped(&key));
            map.push((Value::from(&key[escape..]), value));
        }
        match Map::new(map) {
            Ok(map) => Ok(Value::from(map)),
            Err(_) => Err(A::Error::custom("a key comes twice in an object")),
        }
    }
}

impl Seed<'_> {
    fn same(&mut self) -> Seed<'_> {
        Seed {
            depth: self.depth,
            too_deep: self.too_deep,
        }
    }
}
