//! Reading XML.

use quick_xml::Reader as Xml;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{is_allowed, parsed};
use crate::error::Error;
use crate::limits::Limits;
use crate::value::{Map, Value};

/// The value of a document.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Value, Error> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(malformed(0, "it is not UTF-8"));
    };
    let mut xml = Xml::from_str(text);
    xml.config_mut().expand_empty_elements = true;
    let mut reader = Reader {
        xml,
        levels: limits.depth,
    };
    let root = match reader.next()? {
        Some(Event::Start(start)) => start,
        _ => return reader.malformed("a document has one element"),
    };
    // The element of the document is no level of its value.
    let value = reader.element(&root, limits.depth)?;
    match reader.next()? {
        None => Ok(value),
        Some(_) => reader.malformed("a document has one element"),
    }
}

struct Reader<'a> {
    xml: Xml<&'a [u8]>,
    levels: usize,
}

/// How many attributes an element may have, those without a meaning included.
const ATTRIBUTES: usize = 32;

/// What an element says of itself.
#[derive(Default)]
struct Attributes {
    kind: Option<String>,
    key: Option<String>,
    key_kind: Option<String>,
    private: bool,
}

fn malformed(at: usize, what: &str) -> Error {
    Error::Malformed {
        mode: "xml",
        at,
        what: what.to_owned(),
    }
}

impl<'a> Reader<'a> {
    fn at(&self) -> usize {
        usize::try_from(self.xml.buffer_position()).unwrap_or(usize::MAX)
    }

    fn malformed<T>(&self, what: &str) -> Result<T, Error> {
        Err(malformed(self.at(), what))
    }

    /// The next event that says something; between elements blanks say nothing.
    fn next(&mut self) -> Result<Option<Event<'a>>, Error> {
        loop {
            match self.any()? {
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::Text(text) if text.iter().all(u8::is_ascii_whitespace) => {}
                Event::Eof => return Ok(None),
                event => return Ok(Some(event)),
            }
        }
    }

    fn any(&mut self) -> Result<Event<'a>, Error> {
        match self.xml.read_event() {
            Ok(Event::DocType(_)) => self.malformed("document types are not read"),
            Ok(event) => Ok(event),
            Err(error) => self.malformed(&error.to_string()),
        }
    }

    fn element(&mut self, start: &BytesStart<'_>, depth: usize) -> Result<Value, Error> {
        let attributes = self.attributes(start)?;
        let value = match attributes.kind.as_deref() {
            Some("list") => self.list(depth)?,
            Some("map") => self.map(Vec::new(), depth)?,
            kind => self.text_or_map(kind, depth)?,
        };
        Ok(match attributes.private {
            true => Value::Private(value.into()),
            false => value,
        })
    }

    fn attributes(&self, start: &BytesStart<'_>) -> Result<Attributes, Error> {
        let mut attributes = Attributes::default();
        for (index, attribute) in start.attributes().enumerate() {
            // Each is compared with all before it.
            if index == ATTRIBUTES {
                return self.malformed("an element has too many attributes");
            }
            let Ok(attribute) = attribute else {
                return self.malformed("an attribute comes twice or is not closed");
            };
            let Ok(raw) = std::str::from_utf8(&attribute.value) else {
                return self.malformed("an attribute is not UTF-8");
            };
            let value = self.unescaped(raw)?;
            match attribute.key.as_ref() {
                b"type" => attributes.kind = Some(value),
                b"key" => attributes.key = Some(value),
                b"key-type" => attributes.key_kind = Some(value),
                b"private" => match &*value {
                    "true" => attributes.private = true,
                    "false" => {}
                    _ => return self.malformed("`private` is true or false"),
                },
                // Declarations of name spaces and the like.
                _ => {}
            }
        }
        Ok(attributes)
    }

    /// Without references, of which only those to characters and the five that
    /// every document has are known.
    fn unescaped(&self, raw: &str) -> Result<String, Error> {
        let mut text = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('&') {
            text.push_str(before);
            let Some((name, after)) = after.split_once(';') else {
                return self.malformed("`&` begins a reference, which ends with `;`");
            };
            text.push(self.referred(&BytesRef::new(name))?);
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }

    fn referred(&self, reference: &BytesRef<'_>) -> Result<char, Error> {
        if let Ok(Some(letter)) = reference.resolve_char_ref() {
            if is_allowed(letter) {
                return Ok(letter);
            }
        }
        match &**reference {
            b"amp" => Ok('&'),
            b"lt" => Ok('<'),
            b"gt" => Ok('>'),
            b"quot" => Ok('"'),
            b"apos" => Ok('\''),
            _ => self.malformed("a reference to something that is not known"),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, Error> {
        let limit = self.levels;
        depth.checked_sub(1).ok_or(Error::TooDeep { limit })
    }

    fn list(&mut self, depth: usize) -> Result<Value, Error> {
        let depth = self.deeper(depth)?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Some(Event::Start(start)) => items.push(self.element(&start, depth)?),
                Some(Event::End(_)) => return Ok(Value::from(items)),
                _ => return self.malformed("a text between the items of a list"),
            }
        }
    }

    fn map(&mut self, mut entries: Vec<(Value, Value)>, depth: usize) -> Result<Value, Error> {
        let inner = self.deeper(depth)?;
        loop {
            match self.next()? {
                Some(Event::Start(start)) => entries.push(self.entry(&start, inner)?),
                Some(Event::End(_)) => break,
                _ => return self.malformed("a text between the entries of a map"),
            }
        }
        match Map::new(entries) {
            Ok(map) => Ok(Value::from(map)),
            Err(_) => self.malformed("a key comes twice in a map"),
        }
    }

    fn entry(&mut self, start: &BytesStart<'_>, depth: usize) -> Result<(Value, Value), Error> {
        let attributes = self.attributes(start)?;
        let key = match attributes.key {
            Some(key) => parsed(attributes.key_kind.as_deref().unwrap_or("text"), &key),
            None => std::str::from_utf8(start.name().as_ref())
                .ok()
                .map(Value::from),
        };
        let Some(key) = key else {
            return self.malformed("a key is not of its type");
        };
        Ok((key, self.element(start, depth)?))
    }

    /// The content of an element that is no list; without a type it is a map as
    /// soon as there is an element in it.
    fn text_or_map(&mut self, kind: Option<&str>, depth: usize) -> Result<Value, Error> {
        let mut text = String::new();
        loop {
            match self.any()? {
                Event::Text(part) => match std::str::from_utf8(&part) {
                    Ok(part) => text.push_str(part),
                    Err(_) => return self.malformed("it is not UTF-8"),
                },
                Event::CData(part) => match std::str::from_utf8(&part) {
                    Ok(part) => text.push_str(part),
                    Err(_) => return self.malformed("it is not UTF-8"),
                },
                Event::GeneralRef(reference) => text.push(self.referred(&reference)?),
                Event::Comment(_) | Event::PI(_) => {}
                Event::Start(start) if kind.is_none() => {
                    if !text.trim().is_empty() {
                        return self.malformed("a text between the entries of a map");
                    }
                    let inner = self.deeper(depth)?;
                    let first = self.entry(&start, inner)?;
                    return self.map(vec![first], depth);
                }
                Event::End(_) => break,
                _ => return self.malformed("an element in a value of a type that has none"),
            }
        }
        match parsed(kind.unwrap_or("text"), &text) {
            Some(value) => Ok(value),
            None => self.malformed("a value is not of its type"),
        }
    }
}
