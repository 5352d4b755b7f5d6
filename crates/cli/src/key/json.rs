//! Lines of JSON.

use std::fmt::Write;

use milieu_keys::SourceOf;
use milieu_store::Author;

/// An object that is written member by member.
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Object {
        Object("{".to_owned())
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

    pub(super) fn number(mut self, member: &str, number: Option<u64>) -> Object {
        self.member(member);
        match number {
            Some(number) => write!(self.0, "{number}").expect("memory"),
            None => self.0.push_str("null"),
        }
        self
    }

    /// A member that is there only where it is true.
    pub(super) fn flag(mut self, member: &str, is_true: bool) -> Object {
        if is_true {
            self.member(member);
            self.0.push_str("true");
        }
        self
    }

    /// An object of texts.
    pub(super) fn texts<'t>(
        mut self,
        member: &str,
        texts: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Object {
        self.member(member);
        let inner = texts
            .into_iter()
            .fold(Object::new(), |inner, (name, text)| inner.text(name, text));
        self.0.push_str(&inner.0);
        self.0.push('}');
        self
    }

    /// Where a value came from: `file` and `line`, or `null` for what it is not.
    pub(super) fn origin(mut self, source: &SourceOf, line: u32) -> Object {
        let file = match source {
            SourceOf::File(path) | SourceOf::Specification(path) => Some(path.as_str()),
            _ => None,
        };
        self = self.optional("file", file);
        self.number("line", (line > 0).then_some(line.into()))
    }

    /// Who made a change: `user`, `program`, `process` and `host`, or `null` where
    /// nobody knows.
    pub(super) fn author(self, author: Option<&Author>) -> Object {
        self.optional("user", author.map(|author| &*author.user))
            .optional("program", author.map(|author| &*author.program))
            .number("process", author.map(|author| author.process.into()))
            .optional("host", author.map(|author| &*author.host))
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
            .flag("no", false)
            .flag("yes", true)
            .texts("texts", [("a", "1"), ("\"", "\n")])
            .texts("nothing", [])
            .line();
        assert_eq!(
            line,
            "{\"a\\\"b\":\"\\\\ \\n\\r\\t\\u0000\\u001b\\u0085é🌦\",\"none\":null,\"yes\":true,\
             \"texts\":{\"a\":\"1\",\"\\\"\":\"\\n\"},\"nothing\":{}}\n"
        );
    }
}
