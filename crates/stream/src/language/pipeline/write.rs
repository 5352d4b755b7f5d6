//! Writes the language of one line.

use std::fmt::Write;

use super::super::outline::{self, Line, Outline, Piece, Told};
use super::super::{parameter, quotes, scan};
use crate::catalogue::{Catalogue, Kind};
use crate::flow::Parameter;
use crate::subscription::Document;

/// Writes a document, a line for each of its flows.
pub(in super::super) fn write(document: &Document, catalogue: &Catalogue) -> String {
    let outline = Outline::new(document);
    let mut writer = Writer {
        out: String::new(),
        catalogue,
    };
    for (name, line) in &outline.flows {
        let _ = write!(writer.out, "let {name} = ");
        writer.line(line);
        writer.out.push('\n');
    }
    for (sink, given, line) in &outline.uses {
        writer.line(line);
        if sink.word != "subscribe" || !given.is_empty() {
            writer.step(sink.word, &outline::told_of(given, sink.parameters));
        }
        writer.out.push('\n');
    }
    writer.out
}

struct Writer<'a> {
    out: String,
    catalogue: &'a Catalogue,
}

impl Writer<'_> {
    fn line(&mut self, line: &Line) {
        for (at, input) in line.inputs.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            match input {
                Piece::Stream(name) => self.text(name),
                Piece::Use(name) => self.out.push_str(name),
                Piece::Line(line) => {
                    self.out.push('(');
                    self.line(line);
                    self.out.push(')');
                }
            }
        }
        for operation in &line.steps {
            let told = outline::told(operation, self.catalogue);
            self.step(&operation.operator, &told);
        }
    }

    fn step(&mut self, operator: &str, told: &[Told]) {
        let _ = write!(self.out, " | {operator}");
        // An expression goes on to the next name of a parameter.
        let mut is_behind_expression = false;
        for told in told {
            self.out.push(' ');
            if !told.is_positional || is_behind_expression {
                let _ = write!(self.out, "{}=", told.name);
            }
            match told.parameter {
                Parameter::Text(text) => self.text(text),
                parameter => {
                    let kind = told.declared.map_or(Kind::Text, |declared| declared.kind);
                    is_behind_expression |= matches!(kind, Kind::Expression | Kind::Fields);
                    self.out.push_str(&parameter::write_as(kind, parameter));
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        if scan::is_plain(text) {
            self.out.push_str(text);
        } else {
            quotes::write(text, '"', &mut self.out);
        }
    }
}
