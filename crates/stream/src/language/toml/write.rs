//! Writes TOML.

use std::fmt::Write;

use super::super::outline::{self, Line, Outline, Piece, Told};
use super::super::{parameter, scan};
use crate::catalogue::{Catalogue, Kind};
use crate::flow::Parameter;
use crate::subscription::Document;

/// Writes a document, a table for each of its flows.
pub(in super::super) fn write(document: &Document, catalogue: &Catalogue) -> String {
    let outline = Outline::new(document);
    let mut writer = Writer {
        out: String::new(),
        catalogue,
    };
    for (name, line) in &outline.flows {
        writer.header("let");
        writer.entry("name", name);
        writer.table(line);
    }
    for (sink, given, line) in &outline.uses {
        writer.header(sink.word);
        for told in outline::told_of(given, sink.parameters) {
            let _ = write!(writer.out, "{} = ", told.name);
            writer.value(&told);
            writer.out.push('\n');
        }
        writer.table(line);
    }
    writer.out
}

struct Writer<'a> {
    out: String,
    catalogue: &'a Catalogue,
}

impl Writer<'_> {
    fn header(&mut self, word: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let _ = writeln!(self.out, "[[{word}]]");
    }

    fn entry(&mut self, key: &str, text: &str) {
        let _ = write!(self.out, "{key} = ");
        self.text(text);
        self.out.push('\n');
    }

    /// `from` and `steps` as entries of a table.
    fn table(&mut self, line: &Line) {
        self.out.push_str("from = ");
        self.inputs(&line.inputs);
        self.out.push('\n');
        if line.steps.is_empty() {
            return;
        }
        self.out.push_str("steps = [\n");
        for operation in &line.steps {
            self.out.push_str("    ");
            let told = outline::told(operation, self.catalogue);
            self.step(&operation.operator, &told);
            self.out.push_str(",\n");
        }
        self.out.push_str("]\n");
    }

    fn inputs(&mut self, inputs: &[Piece]) {
        if let [input @ (Piece::Stream(_) | Piece::Use(_))] = inputs {
            return self.input(input);
        }
        self.listed(inputs, |writer, input| writer.input(input));
    }

    fn input(&mut self, input: &Piece) {
        match input {
            Piece::Stream(name) | Piece::Use(name) => self.text(name),
            Piece::Line(line) => {
                self.out.push_str("{ from = ");
                self.inputs(&line.inputs);
                self.out.push_str(", steps = ");
                self.listed(&line.steps, |writer, operation| {
                    let told = outline::told(operation, writer.catalogue);
                    writer.step(&operation.operator, &told);
                });
                self.out.push_str(" }");
            }
        }
    }

    fn listed<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.out.push('[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            write(self, item);
        }
        self.out.push(']');
    }

    fn step(&mut self, operator: &str, told: &[Told]) {
        match told {
            [] => self.text(operator),
            [told] if told.is_positional && !matches!(told.parameter, Parameter::Fields(_)) => {
                let _ = write!(self.out, "{{ {operator} = ");
                self.value(told);
                self.out.push_str(" }");
            }
            told => {
                let _ = write!(self.out, "{{ {operator} = {{ ");
                for (at, told) in told.iter().enumerate() {
                    if at > 0 {
                        self.out.push_str(", ");
                    }
                    let _ = write!(self.out, "{} = ", told.name);
                    self.value(told);
                }
                self.out.push_str(" } }");
            }
        }
    }

    fn value(&mut self, told: &Told) {
        match told.parameter {
            Parameter::Flag(_) | Parameter::Integer(_) | Parameter::Number(_) => {
                self.out.push_str(&parameter::write(told.parameter));
            }
            Parameter::List(parameters) if parameters.len() > 1 => {
                self.listed(parameters, |writer, parameter| {
                    writer.text(&parameter::write(parameter));
                });
            }
            Parameter::Fields(fields) => {
                self.out.push_str("{ ");
                for (at, (name, expression)) in fields.iter().enumerate() {
                    if at > 0 {
                        self.out.push_str(", ");
                    }
                    self.key(name);
                    self.out.push_str(" = ");
                    self.text(expression);
                }
                self.out.push_str(" }");
            }
            parameter => {
                let kind = told.declared.map_or(Kind::Text, |declared| declared.kind);
                self.text(&parameter::write_as(kind, parameter));
            }
        }
    }

    fn key(&mut self, key: &str) {
        if scan::is_word(key) {
            self.out.push_str(key);
        } else {
            self.text(key);
        }
    }

    /// A text in quotes: single ones, in which a backslash is none, where double
    /// ones would need escapes.
    fn text(&mut self, text: &str) {
        let needs_escapes = text.contains(['"', '\\']);
        if needs_escapes && !text.contains(|c: char| c == '\'' || c.is_control()) {
            let _ = write!(self.out, "'{text}'");
            return;
        }
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                '\r' => self.out.push_str("\\r"),
                c if c.is_control() => {
                    let _ = write!(self.out, "\\u{:04X}", u32::from(c));
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}
