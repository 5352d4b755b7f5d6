//! Reads TOML.

use std::borrow::Cow;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::rules::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::super::draft::{Argument, Draft, Input, Pipeline, Step, Text, Use, Value};
use super::super::{NESTING_MAX, Read, parameter, sinks, too_deep};

type Key<'t> = Spanned<Cow<'t, str>>;
type Entry<'a, 't> = (&'a Key<'t>, &'a Spanned<DeValue<'t>>);

/// Reads a text. A table that cannot be read is left out.
pub(in super::super) fn parse(text: &str) -> (Draft, Vec<Diagnostic>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut diagnostics: Vec<Diagnostic> = errors.iter().map(|it| not_toml(it, text)).collect();
    let mut draft = Draft::default();
    let reader = Reader { text };
    let tables = in_order(document.get_ref()).into_iter();
    for (word, value) in tables.filter(|_| errors.is_empty()) {
        let tables = match value.get_ref() {
            DeValue::Array(tables) => tables.iter().collect(),
            _ => vec![value],
        };
        for table in tables {
            if let Err(found) = reader.table(word, table, &mut draft) {
                diagnostics.push(found);
            }
        }
    }
    (draft, diagnostics)
}

fn not_toml(error: &Error, text: &str) -> Diagnostic {
    let span = error.span().unwrap_or(text.len()..text.len());
    Diagnostic::error("this is not TOML")
        .code("syntax")
        .label(span.into(), error.message())
}

/// The entries as they are written; a table has them by name.
fn in_order<'a, 't>(table: &'a DeTable<'t>) -> Vec<Entry<'a, 't>> {
    let mut entries: Vec<Entry> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn span<T>(value: &Spanned<T>) -> Span {
    value.span().into()
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    /// A table that does something with a flow.
    fn table(&self, word: &Key, value: &Spanned<DeValue>, draft: &mut Draft) -> Read<()> {
        let sink = self.key(word);
        let is_definition = sink.text == "let";
        if !is_definition && sinks::get(&sink.text).is_none() {
            return Err(unknown_table(&sink));
        }
        let DeValue::Table(table) = value.get_ref() else {
            return Err(Diagnostic::error(format!("`{}` is a table", sink.text))
                .code("syntax")
                .label(span(value), "this is none")
                .help(format!("write `[[{}]]`, and its keys below", sink.text)));
        };
        let pipeline = self.pipeline(table, span(value), 0)?;
        let others = in_order(table).into_iter();
        let others = others.filter(|(key, _)| !matches!(&**key.get_ref(), "from" | "steps"));
        if is_definition {
            let name = self.name(others, span(value))?;
            draft.flows.push((name, pipeline));
            return Ok(());
        }
        let arguments = others.map(|entry| self.argument(entry));
        let arguments = arguments.collect::<Read<_>>()?;
        // The header of the table itself, where there are several.
        let mut operator = sink;
        operator.span = span(value);
        let sink = Step {
            operator,
            arguments,
        };
        draft.uses.push(Use { sink, pipeline });
        Ok(())
    }

    /// The name of a flow, from what a table has beside the flow.
    fn name<'a, 't: 'a>(
        &self,
        entries: impl Iterator<Item = Entry<'a, 't>>,
        table: Span,
    ) -> Read<Text> {
        let mut name = None;
        for (key, value) in entries {
            match (&**key.get_ref(), value.get_ref()) {
                ("name", DeValue::String(text)) => name = Some(self.string(text, value)),
                ("name", _) => {
                    return Err(Diagnostic::error("the name of a flow is a text")
                        .code("name")
                        .label(span(value), "this is none"));
                }
                _ => return Err(unknown_key(&self.key(key), &["name", "from", "steps"])),
            }
        }
        name.ok_or_else(|| {
            Diagnostic::error("`let` lacks its `name`")
                .code("name")
                .label(table, "the flow here has none")
                .help("write `name = \"hot\"`, or `[[subscribe]]` in place of `[[let]]`")
        })
    }

    /// `from` and `steps` of a table.
    fn pipeline(&self, table: &DeTable, at: Span, depth: usize) -> Read<Pipeline> {
        let Some(from) = table.get("from") else {
            return Err(Diagnostic::error("there is no flow here")
                .code("flow")
                .label(at, "`from` is missing")
                .help("write `from = \"/weather/temperature\"`"));
        };
        let inputs = match from.get_ref() {
            DeValue::Array(inputs) if !inputs.is_empty() => {
                let inputs = inputs.iter().map(|input| self.input(input, depth));
                inputs.collect::<Read<_>>()?
            }
            _ => vec![self.input(from, depth)?],
        };
        let steps = match table.get("steps") {
            None => Vec::new(),
            Some(steps) => match steps.get_ref() {
                DeValue::Array(steps) => {
                    let steps = steps.iter().map(|step| self.step(step));
                    steps.collect::<Read<_>>()?
                }
                _ => return Err(no_step(span(steps), "`steps` is a list of operators")),
            },
        };
        let span = span(from);
        Ok(Pipeline {
            inputs,
            steps,
            span,
        })
    }

    fn input(&self, value: &Spanned<DeValue>, depth: usize) -> Read<Input> {
        match value.get_ref() {
            DeValue::String(text) => {
                let text = self.string(text, value);
                let is_stream = text.text.starts_with('/');
                Ok(if is_stream {
                    Input::Stream(text)
                } else {
                    Input::Use(text)
                })
            }
            DeValue::Table(_) if depth == NESTING_MAX => Err(too_deep(span(value))),
            DeValue::Table(table) => {
                let is_known = |key: &Key| matches!(&**key.get_ref(), "from" | "steps");
                if let Some(key) = table.keys().find(|key| !is_known(key)) {
                    return Err(unknown_key(&self.key(key), &["from", "steps"]));
                }
                let pipeline = self.pipeline(table, span(value), depth + 1)?;
                Ok(Input::Pipeline(pipeline))
            }
            _ => Err(Diagnostic::error("this is no flow")
                .code("flow")
                .label(
                    span(value),
                    "expected a name, or a table with `from` and `steps`",
                )
                .help("write `from = \"/weather/temperature\"`")),
        }
    }

    fn step(&self, value: &Spanned<DeValue>) -> Read<Step> {
        let wrong = || no_step(span(value), "expected a name, or a table with one key");
        match value.get_ref() {
            DeValue::String(text) => Ok(Step {
                operator: self.string(text, value),
                arguments: Vec::new(),
            }),
            DeValue::Table(table) if table.len() == 1 => {
                let (key, told) = table.iter().next().ok_or_else(wrong)?;
                let arguments = match told.get_ref() {
                    DeValue::Table(table) => {
                        let entries = in_order(table).into_iter();
                        let arguments = entries.map(|entry| self.argument(entry));
                        arguments.collect::<Read<_>>()?
                    }
                    _ => vec![Argument {
                        name: None,
                        value: self.value(told)?,
                    }],
                };
                Ok(Step {
                    operator: self.key(key),
                    arguments,
                })
            }
            _ => Err(wrong()),
        }
    }

    fn argument(&self, (key, value): Entry) -> Read<Argument> {
        Ok(Argument {
            name: Some(self.key(key)),
            value: self.value(value)?,
        })
    }

    fn value(&self, value: &Spanned<DeValue>) -> Read<Value> {
        let at = span(value);
        let plain = |text: String| Value::Text(Text::quoted(text, at, at.start, self.text));
        Ok(match value.get_ref() {
            DeValue::String(text) => Value::Text(self.string(text, value)),
            DeValue::Integer(number) => {
                let decimal = i64::from_str_radix(number.as_str(), number.radix());
                plain(decimal.map_or_else(|_| number.as_str().to_owned(), |it| it.to_string()))
            }
            DeValue::Float(number) => plain(number.as_str().to_owned()),
            DeValue::Boolean(flag) => plain(flag.to_string()),
            DeValue::Datetime(_) => {
                return Err(Diagnostic::error("a date cannot stand here")
                    .code("parameter")
                    .label(at, "no parameter is one")
                    .help("write it in quotes if a text is meant"));
            }
            DeValue::Array(values) => {
                let values = values.iter().map(|value| match value.get_ref() {
                    DeValue::Array(_) | DeValue::Table(_) => Err(too_structured(span(value))),
                    _ => self.value(value),
                });
                Value::List(values.collect::<Read<_>>()?, at)
            }
            DeValue::Table(table) => {
                let entries = in_order(table).into_iter();
                let entries = entries.map(|(key, value)| match value.get_ref() {
                    DeValue::Array(_) | DeValue::Table(_) => Err(too_structured(span(value))),
                    _ => Ok((self.key(key), self.value(value)?)),
                });
                Value::Table(entries.collect::<Read<_>>()?, at)
            }
        })
    }

    fn key(&self, key: &Key) -> Text {
        self.string(key.get_ref(), key)
    }

    fn string<T>(&self, text: &str, place: &Spanned<T>) -> Text {
        let place = span(place);
        let written = &self.text[place.start..];
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let quotes = quotes.iter().find(|quotes| written.starts_with(**quotes));
        let inside = place.start + quotes.map_or(0, |quotes| quotes.len());
        Text::quoted(text.to_owned(), place, inside, self.text)
    }
}

fn unknown_table(word: &Text) -> Diagnostic {
    let mut words = vec!["let"];
    words.extend(sinks::SINKS.iter().map(|sink| sink.word));
    let found = Diagnostic::error(format!("`{}` does nothing with a flow", word.text))
        .code("operator")
        .label(word.span, "this is not known")
        .note(format!("known are {}", parameter::listed(&words)));
    match nearest(&word.text, words.iter().copied()) {
        Some(meant) => found.help(format!("did you mean `{meant}`?")),
        None => found.help("write `[[subscribe]]`, and `from` and `steps` below"),
    }
}

fn unknown_key(key: &Text, known: &[&str]) -> Diagnostic {
    let found = Diagnostic::error(format!("`{}` has no meaning here", key.text))
        .code("syntax")
        .label(key.span, "this is not known")
        .note(format!("known are {}", parameter::listed(known)));
    match nearest(&key.text, known.iter().copied()) {
        Some(meant) => found.help(format!("did you mean `{meant}`?")),
        None => found.help("leave it out"),
    }
}

fn no_step(at: Span, label: &str) -> Diagnostic {
    Diagnostic::error("this is no operator")
        .code("operator")
        .label(at, label)
        .help("write `steps = [{ filter = \"value > 32\" }, \"merge\"]`")
}

fn too_structured(at: Span) -> Diagnostic {
    Diagnostic::error("no parameter is as nested as this")
        .code("parameter")
        .label(at, "expected a text, a number or a truth value")
        .help("write it as a text")
}
