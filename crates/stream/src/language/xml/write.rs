//! Writes XML.

use std::fmt::Write;

use super::super::outline::{self, Line, Outline, Piece, Told};
use super::super::parameter;
use super::NAMESPACE;
use crate::catalogue::{Catalogue, Kind};
use crate::flow::Parameter;
use crate::subscription::Document;

/// Writes a document, an element for each of its flows.
pub(in super::super) fn write(document: &Document, catalogue: &Catalogue) -> String {
    let outline = Outline::new(document);
    let mut writer = Writer {
        out: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(),
        depth: 1,
        catalogue,
    };
    let _ = writeln!(writer.out, "<subscriptions xmlns=\"{NAMESPACE}\">");
    for (name, line) in &outline.flows {
        writer.open("let");
        writer.attribute("name", name);
        writer.inside("let", |writer| writer.line(line));
    }
    for (sink, given, line) in &outline.uses {
        writer.open(sink.word);
        for told in outline::told_of(given, sink.parameters) {
            writer.attribute(told.name, &text_of(&told));
        }
        writer.inside(sink.word, |writer| writer.line(line));
    }
    writer.out.push_str("</subscriptions>\n");
    writer.out
}

/// The text of a parameter that is an attribute.
fn text_of(told: &Told) -> String {
    let kind = told.declared.map_or(Kind::Text, |declared| declared.kind);
    parameter::write_as(kind, told.parameter)
}

struct Writer<'a> {
    out: String,
    depth: usize,
    catalogue: &'a Catalogue,
}

impl Writer<'_> {
    fn line(&mut self, line: &Line) {
        for input in &line.inputs {
            match input {
                Piece::Stream(name) => self.empty("stream", "name", name),
                Piece::Use(name) => self.empty("use", "flow", name),
                Piece::Line(line) => {
                    self.open("flow");
                    self.inside("flow", |writer| writer.line(line));
                }
            }
        }
        for operation in &line.steps {
            let told = outline::told(operation, self.catalogue);
            self.step(&operation.operator, &told);
        }
    }

    fn step(&mut self, operator: &str, told: &[Told]) {
        self.open(operator);
        let is_fields = |told: &&Told| matches!(told.parameter, Parameter::Fields(_));
        for told in told.iter().filter(|told| !is_fields(told)) {
            self.attribute(told.name, &text_of(told));
        }
        if !told.iter().any(|told| is_fields(&told)) {
            self.out.push_str("/>\n");
            return;
        }
        self.inside(operator, |writer| {
            for told in told {
                if let Parameter::Fields(fields) = told.parameter {
                    writer.open(told.name);
                    writer.inside(told.name, |writer| {
                        for (name, expression) in fields {
                            writer.open("field");
                            writer.attribute("name", name);
                            writer.out.push('>');
                            writer.escaped(expression);
                            writer.out.push_str("</field>\n");
                        }
                    });
                }
            }
        });
    }

    fn empty(&mut self, element: &str, name: &str, value: &str) {
        self.open(element);
        self.attribute(name, value);
        self.out.push_str("/>\n");
    }

    fn open(&mut self, element: &str) {
        self.indent();
        let _ = write!(self.out, "<{element}");
    }

    /// Ends the start tag, and writes what is inside and the end tag.
    fn inside(&mut self, element: &str, write: impl FnOnce(&mut Self)) {
        self.out.push_str(">\n");
        self.depth += 1;
        write(self);
        self.depth -= 1;
        self.indent();
        let _ = writeln!(self.out, "</{element}>");
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        let _ = write!(self.out, " {name}=\"");
        self.escaped(value);
        self.out.push('"');
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '<' => self.out.push_str("&lt;"),
                '&' => self.out.push_str("&amp;"),
                '"' => self.out.push_str("&quot;"),
                '>' if self.out.ends_with(']') => self.out.push_str("&gt;"),
                // As they stand they would be blanks like others.
                c @ ('\n' | '\r' | '\t') => {
                    let _ = write!(self.out, "&#{};", u32::from(c));
                }
                c => self.out.push(c),
            }
        }
    }
}
