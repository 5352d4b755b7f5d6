//! TOML.
//!
//! ```toml
//! name = "Throughput (2 Receivers)"
//! properties = { os = "Debian 12", category-axis = "Message length (characters)" }
//!
//! [[test]]
//! name = "Solar"
//! repetitions = 5
//! parameters = { iterations = 1000, starHost = "c24" }
//!
//! [[test.variable]]
//! name = "randomInstance.stringLength"
//! start = 0
//! end = 1000
//! step = 100
//!
//! [[test.server]]
//! host = "c24"
//! application = [{ kind = "star" }]
//!
//! [[test.server]]
//! host = "c22"
//!
//! [[test.server.application]]
//! name = "throughput1"
//! kind = "solar.test.cases.SolarThroughput"
//! parameters = { clients = 2 }
//! ```

use std::borrow::Cow;

use milieu_diagnostics::{Diagnostic, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Entry, Node, Text};
use crate::Value;

type Key<'t> = Spanned<Cow<'t, str>>;
type Table<'a, 't> = Vec<(&'a Key<'t>, &'a Spanned<DeValue<'t>>)>;

/// Tables within each other, of parameters too.
const DEPTH_MAX: usize = 32;

pub(super) fn read(text: &str) -> Result<Node, Diagnostic> {
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        Diagnostic::error("this is not TOML")
            .code("syntax")
            .label(span.into(), error.message())
    })?;
    let mut root = Node::new(Text {
        text: "group".into(),
        span: Span::new(0, 0),
    });
    node(table.get_ref(), &mut root, 0)?;
    Ok(root)
}

fn span<T>(spanned: &Spanned<T>) -> Span {
    spanned.span().into()
}

fn key(key: &Key) -> Text {
    Text {
        text: key.get_ref().clone().into_owned(),
        span: span(key),
    }
}

/// The entries as they are written; a table has them by name.
fn in_order<'a, 't>(table: &'a DeTable<'t>) -> Table<'a, 't> {
    let mut entries: Table = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn node(table: &DeTable, into: &mut Node, depth: usize) -> Result<(), Diagnostic> {
    for (word, told) in in_order(table) {
        match (&**word.get_ref(), told.get_ref()) {
            ("parameters" | "properties", DeValue::Table(table)) => {
                parameters("", table, into, depth + 1)?;
            }
            ("test" | "server" | "application" | "variable", DeValue::Array(elements)) => {
                for element in elements {
                    let DeValue::Table(table) = element.get_ref() else {
                        return Err(no_table(word, span(element)));
                    };
                    child(word, table, into, depth)?;
                }
            }
            ("test" | "server" | "application" | "variable", DeValue::Table(table)) => {
                child(word, table, into, depth)?;
            }
            ("test" | "server" | "application" | "variable" | "parameters" | "properties", _) => {
                return Err(no_table(word, span(told)));
            }
            (_, value) => into.attributes.push(Entry {
                name: key(word),
                value: plain(value, span(told))?,
                span: span(told),
            }),
        }
    }
    Ok(())
}

fn child(word: &Key, table: &DeTable, into: &mut Node, depth: usize) -> Result<(), Diagnostic> {
    if depth > DEPTH_MAX {
        return Err(too_deep(span(word)));
    }
    let mut element = Node::new(key(word));
    node(table, &mut element, depth + 1)?;
    into.nodes.push(element);
    Ok(())
}

fn no_table(word: &Key, at: Span) -> Diagnostic {
    Diagnostic::error(format!("`{}` is a table", word.get_ref()))
        .code("syntax")
        .label(at, "this is none")
}

fn too_deep(at: Span) -> Diagnostic {
    Diagnostic::error("tables are too deep within each other")
        .code("syntax")
        .label(at, "here")
}

/// Tables of parameters are names with dots.
fn parameters(
    before: &str,
    table: &DeTable,
    into: &mut Node,
    depth: usize,
) -> Result<(), Diagnostic> {
    for (name, told) in in_order(table) {
        let mut name = key(name);
        if !before.is_empty() {
            name.text = format!("{before}.{}", name.text);
        }
        match told.get_ref() {
            DeValue::Table(_) if depth > DEPTH_MAX => return Err(too_deep(name.span)),
            DeValue::Table(table) => parameters(&name.text, table, into, depth + 1)?,
            value => into.parameters.push(Entry {
                name,
                value: plain(value, span(told))?,
                span: span(told),
            }),
        }
    }
    Ok(())
}

fn plain(value: &DeValue, at: Span) -> Result<Value, Diagnostic> {
    let wrong = |label: &str| {
        Diagnostic::error("this cannot be a value")
            .code("value")
            .label(at, label)
    };
    Ok(match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(read.map_err(|_| wrong("whole numbers have 64 bits"))?)
        }
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(value) if value.is_finite() => Value::Number(value),
            _ => return Err(wrong("numbers are finite")),
        },
        DeValue::Array(values) => {
            let values = values.iter().map(|value| match value.get_ref() {
                DeValue::Array(_) => Err(wrong("lists do not stand in lists")),
                inside => plain(inside, span(value)),
            });
            Value::List(values.collect::<Result<_, _>>()?)
        }
        DeValue::Datetime(_) => {
            return Err(wrong("dates are texts here").help("write it in quotes"));
        }
        DeValue::Table(_) => return Err(wrong("a table means nothing here")),
    })
}
