//! Lines of JSON.

use std::fmt::Write;

use milieu_keys::{Key, SourceOf};

/// An object that is written member by member.
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Object {
        Object("{".to_owned())
    }

    /// The name, value, namespace and origin of a key.
    pub(super) fn of(key: &Key) -> Object {
        Object::new()
            .text("name", key.name())
            .text("value", key.value())
            .text("namespace", key.namespace().as_str())
            .origin(&key.origin().source, key.origin().line)
    }

    pub(super) fn text(mut self, member: &str, text: &str) -> Object {
        self.member(member);
        string(text, &mut self.0);
        self
    }

    pub(super) fn optional(mut self, member: &str, text: Option<&str>) -> Object {
        self.member(member);
        match text {
            Some(text) => string(text, &mut self.0),
            None => self.0.push_str("null"),
        }
        self
    }

    /// Where a value came from: `file` and `line`, or `null` for what it is not.
    pub(super) fn origin(mut self, source: &SourceOf, line: u32) -> Object {
        let file = match source {
            SourceOf::File(path) | SourceOf::Specification(path) => Some(path.as_str()),
            _ => None,
        };
        self = self.optional("file", file);
        self.member("line");
        match line {
            0 => self.0.push_str("null"),
            line => write!(self.0, "{line}").expect("memory"),
        }
        self
    }

    /// The object as one line.
    pub(super) fn line(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }

    fn member(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        string(name, &mut self.0);
        self.0.push(':');
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c)).expect("memory"),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_written_so_that_json_reads_it() {
        let line = Object::new()
            .text("a\"b", "\\ \n\r\t\u{0}\u{1b}\u{85}é🌦")
            .optional("none", None)
            .line();
        assert_eq!(
            line,
            "{\"a\\\"b\":\"\\\\ \\n\\r\\t\\u0000\\u001b\\u0085é🌦\",\"none\":null}\n"
        );
    }
}
