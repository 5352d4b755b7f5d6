//! Writing XML.

use super::written;
use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::time::{Span, Time};
use crate::value::Value;

/// Appends what is said to it.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// The names of the elements that are open.
    open: Vec<String>,
    /// The name of the next element, and its attributes.
    name: String,
    attributes: String,
    in_key: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, root: &str) -> Writer<'a> {
        Writer {
            out,
            open: Vec::new(),
            name: root.to_owned(),
            attributes: String::new(),
            in_key: false,
        }
    }

    fn next(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.attributes.clear();
    }

    fn scalar(&mut self, value: &Value) -> Said {
        let (kind, text) = match written(value) {
            Some(written) => written,
            None if self.in_key => return Err(no_key()),
            None => ("null", String::new()),
        };
        if self.in_key {
            self.key_is(kind, &text);
            return Ok(());
        }
        let name = std::mem::take(&mut self.name);
        self.start(&name, kind);
        escape(&text, self.out);
        self.end(&name);
        Ok(())
    }

    fn key_is(&mut self, kind: &str, text: &str) {
        if kind == "text" && is_name(text) {
            self.next(text);
            return;
        }
        self.next("entry");
        if kind != "text" {
            self.attributes.push_str(" key-type=\"");
            self.attributes.push_str(kind);
            self.attributes.push('"');
        }
        let mut key = Vec::new();
        escape(text, &mut key);
        self.attributes.push_str(" key=\"");
        self.attributes.push_str(&String::from_utf8_lossy(&key));
        self.attributes.push('"');
    }

    fn start(&mut self, name: &str, kind: &str) {
        let (open, close) = match kind {
            "text" => ("", ""),
            _ => (" type=\"", "\""),
        };
        let kind = if kind == "text" { "" } else { kind };
        for part in ["<", name, &self.attributes, open, kind, close, ">"] {
            self.out.extend_from_slice(part.as_bytes());
        }
        self.attributes.clear();
    }

    fn end(&mut self, name: &str) {
        for part in ["</", name, ">"] {
            self.out.extend_from_slice(part.as_bytes());
        }
    }

    fn begin(&mut self, kind: &str) -> Said {
        if self.in_key {
            return Err(no_key());
        }
        let name = std::mem::take(&mut self.name);
        self.start(&name, kind);
        self.open.push(name);
        Ok(())
    }

    fn finish(&mut self) -> Said {
        if let Some(name) = self.open.pop() {
            self.end(&name);
        }
        Ok(())
    }
}

fn no_key() -> Error {
    Error::Unrepresentable {
        mode: "xml",
        what: "a key that is null, private, a list or a map",
    }
}

/// Whether it can be the name of an element, and nothing else is called so.
fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_rest = |letter: char| is_letter(letter) || letter.is_ascii_digit() || letter == '-';
    let is_reserved = text == "entry"
        || text
            .get(..3)
            .is_some_and(|it| it.eq_ignore_ascii_case("xml"));
    text.starts_with(is_letter) && text.chars().all(is_rest) && !is_reserved
}

/// Line breaks and tabs too: parsers change them in attributes, and some in texts.
fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\t' => out.extend_from_slice(b"&#9;"),
            b'\n' => out.extend_from_slice(b"&#10;"),
            b'\r' => out.extend_from_slice(b"&#13;"),
            other => out.push(other),
        }
    }
}

impl Sink for Writer<'_> {
    fn null(&mut self) -> Said {
        self.scalar(&Value::Null)
    }

    fn bool(&mut self, value: bool) -> Said {
        self.scalar(&Value::Bool(value))
    }

    fn int(&mut self, value: i64) -> Said {
        self.scalar(&Value::Int(value))
    }

    fn uint(&mut self, value: u64) -> Said {
        self.scalar(&Value::Uint(value))
    }

    fn double(&mut self, value: f64) -> Said {
        self.scalar(&Value::Double(value))
    }

    fn text(&mut self, value: &str) -> Said {
        self.scalar(&Value::from(value))
    }

    fn bytes(&mut self, value: &[u8]) -> Said {
        self.scalar(&Value::Bytes(value.into()))
    }

    fn time(&mut self, value: Time) -> Said {
        self.scalar(&Value::Time(value))
    }

    fn span(&mut self, value: Span) -> Said {
        self.scalar(&Value::Span(value))
    }

    fn list(&mut self, _: Option<usize>) -> Said {
        self.begin("list")
    }

    fn end_list(&mut self) -> Said {
        self.finish()
    }

    fn map(&mut self, _: Option<usize>) -> Said {
        self.begin("map")
    }

    fn key(&mut self) -> Said {
        self.in_key = true;
        Ok(())
    }

    fn value(&mut self) -> Said {
        self.in_key = false;
        Ok(())
    }

    fn item(&mut self) -> Said {
        self.next("item");
        Ok(())
    }

    fn entry(&mut self) -> Said {
        Ok(())
    }

    fn end_map(&mut self) -> Said {
        self.finish()
    }

    fn private(&mut self) -> Said {
        if self.in_key {
            return Err(no_key());
        }
        // What is private in something private is no more private by that.
        if !self.attributes.contains(" private=") {
            self.attributes.push_str(" private=\"true\"");
        }
        Ok(())
    }

    fn end_private(&mut self) -> Said {
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
