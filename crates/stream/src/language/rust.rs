//! Rust: a function that says the same by a [builder](super::build).

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use milieu_transfer::Span;

use super::build::METHODS;
use super::outline::{self, Line, Outline, Piece, Told};
use super::parameter;
use crate::catalogue::{Catalogue, Kind};
use crate::flow::Parameter;
use crate::subscription::Document;

/// What no variable can be called: keywords, of which some cannot be raw either.
const KEYWORDS: [&str; 52] = [
    "_", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "Self", "static", "struct", "super", "trait", "true", "try", "type",
    "typeof", "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// Writes a document as source text.
pub(super) fn write(document: &Document, catalogue: &Catalogue) -> String {
    let outline = Outline::new(document);
    let mut writer = Writer {
        out: String::new(),
        variables: variables(&outline),
        used: used(&outline),
        catalogue,
    };
    writer.out.push_str(
        "// Written by Milieu.\n\n\
         use milieu_stream::language::build::{self, Builder};\n\n\
         /// Says these subscriptions.\n",
    );
    if writer.variables.values().any(|name| !is_snake_case(name)) {
        writer.out.push_str(
            "#[allow(non_snake_case, reason = \"flows are called as they were elsewhere\")]\n",
        );
    }
    writer
        .out
        .push_str("pub fn subscriptions(builder: &Builder<'_>) {\n");
    if outline.flows.is_empty() && outline.uses.is_empty() {
        writer.out.push_str("    let _ = builder;\n");
    }
    for (name, line) in &outline.flows {
        let keep = match writer.used.contains(name) {
            true => writer.variables[name].clone(),
            false => "_".to_owned(),
        };
        let _ = write!(writer.out, "    let {keep} = ");
        writer.line(line, 2);
        let _ = writeln!(writer.out, "\n        .named({name:?});");
    }
    for (sink, given, line) in &outline.uses {
        writer.out.push_str("    ");
        writer.line(line, 2);
        if !(line.steps.is_empty() && matches!(line.inputs[..], [Piece::Use(_)])) {
            writer.next(2);
        }
        writer.call(sink.word, &outline::told_of(given, sink.parameters));
        writer.out.push_str(";\n");
    }
    writer.out.push_str("}\n");
    writer.out
}

fn is_snake_case(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_uppercase()) && !name.trim_matches('_').contains("__")
}

/// A variable for each flow with a name.
fn variables<'a>(outline: &Outline<'a>) -> HashMap<&'a str, String> {
    let names: HashSet<&str> = outline.flows.iter().map(|(name, _)| *name).collect();
    let mut variables = HashMap::new();
    for (name, _) in &outline.flows {
        let mut variable = (*name).to_owned();
        let is_taken = |variable: &str| KEYWORDS.contains(&variable) || variable == "builder";
        while is_taken(&variable) || (variable != *name && names.contains(variable.as_str())) {
            variable.push('_');
        }
        variables.insert(*name, variable);
    }
    variables
}

/// The names of flows that are used.
fn used<'a>(outline: &Outline<'a>) -> HashSet<&'a str> {
    fn visit<'a>(line: &Line<'a>, used: &mut HashSet<&'a str>) {
        for input in &line.inputs {
            match input {
                Piece::Stream(_) => {}
                Piece::Use(name) => drop(used.insert(name)),
                Piece::Line(line) => visit(line, used),
            }
        }
    }
    let mut used = HashSet::new();
    let lines = outline.flows.iter().map(|(_, line)| line);
    for line in lines.chain(outline.uses.iter().map(|(_, _, line)| line)) {
        visit(line, &mut used);
    }
    used
}

struct Writer<'a> {
    out: String,
    variables: HashMap<&'a str, String>,
    used: HashSet<&'a str>,
    catalogue: &'a Catalogue,
}

impl Writer<'_> {
    fn line(&mut self, line: &Line, depth: usize) {
        for (at, input) in line.inputs.iter().enumerate() {
            if at > 0 {
                self.next(depth);
                self.out.push_str(".and(&");
            }
            match input {
                Piece::Stream(name) => {
                    let _ = write!(self.out, "builder.stream({name:?})");
                }
                Piece::Use(name) => self.out.push_str(&self.variables[name]),
                Piece::Line(line) => self.line(line, depth + 1),
            }
            if at > 0 {
                self.out.push(')');
            }
        }
        let is_short = matches!(line.inputs[..], [Piece::Use(_)]);
        for (at, operation) in line.steps.iter().enumerate() {
            if at > 0 || !is_short {
                self.next(depth);
            }
            let told = outline::told(operation, self.catalogue);
            self.call(&operation.operator, &told);
        }
    }

    fn next(&mut self, depth: usize) {
        let _ = write!(self.out, "\n{:1$}", "", 4 * depth);
    }

    /// A method and its arguments.
    fn call(&mut self, operator: &str, told: &[Told]) {
        if operator == "merge" && told.is_empty() {
            self.out.push_str(".merge()");
            return;
        }
        let is_sink = super::sinks::get(operator).is_some();
        let is_method = is_sink || METHODS.contains(&operator);
        if is_method {
            let _ = write!(self.out, ".{operator}(");
        } else {
            let _ = write!(self.out, ".apply({operator:?}, ");
        }
        match told {
            [told] => self.argument(told),
            told => {
                self.out.push('(');
                self.arguments(told);
                self.out.push(')');
            }
        }
        self.out.push(')');
    }

    /// Elements of a tuple; longer ones go on in one of their own.
    fn arguments(&mut self, told: &[Told]) {
        let (now, later) = told.split_at(told.len().min(7));
        for (at, told) in now.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.argument(told);
        }
        if !later.is_empty() {
            self.out.push_str(", (");
            self.arguments(later);
            self.out.push_str(",)");
        }
    }

    fn argument(&mut self, told: &Told) {
        if told.is_positional {
            return self.value(told);
        }
        let _ = write!(self.out, "build::given({:?}, ", told.name);
        self.value(told);
        self.out.push(')');
    }

    fn value(&mut self, told: &Told) {
        let _ = match told.parameter {
            Parameter::Flag(flag) => write!(self.out, "{flag}"),
            Parameter::Integer(number) => write!(self.out, "{number}_i64"),
            Parameter::Number(text) => write!(self.out, "{text}_f64"),
            Parameter::Span(span) => self.duration(*span),
            Parameter::Function(name) => write!(self.out, "build::function({name:?})"),
            Parameter::List(parameters) if parameters.len() > 1 => {
                let texts: Vec<String> = parameters.iter().map(parameter::write).collect();
                write!(self.out, "{texts:?}")
            }
            Parameter::Fields(fields) => {
                let pairs: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
                write!(self.out, "build::fields({pairs:?})")
            }
            parameter => {
                let kind = told.declared.map_or(Kind::Text, |declared| declared.kind);
                write!(self.out, "{:?}", parameter::write_as(kind, parameter))
            }
        };
    }

    /// A whole number of the longest unit that does.
    fn duration(&mut self, span: Span) -> std::fmt::Result {
        let nanoseconds = span.nanoseconds();
        let units = [
            ("days", 86_400_000_000_000),
            ("hours", 3_600_000_000_000),
            ("minutes", 60_000_000_000),
            ("seconds", 1_000_000_000),
            ("milliseconds", 1_000_000),
            ("microseconds", 1_000),
        ];
        let mut whole = units.iter().filter(|(_, length)| nanoseconds % length == 0);
        let (unit, length) = match nanoseconds {
            0 => ("seconds", 1),
            _ => *whole.next().unwrap_or(&("nanoseconds", 1)),
        };
        write!(self.out, "build::{unit}({})", nanoseconds / length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan;
    use super::*;

    #[test]
    fn no_method_is_a_keyword() {
        for method in METHODS {
            assert!(scan::is_word(method) && !KEYWORDS.contains(method));
        }
    }
}
