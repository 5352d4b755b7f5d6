//! Values of parameters, read as the catalogue declares them.

use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::rules::nearest;

use super::draft::{Text, Value};
use super::expression::canonical;
use super::{quotes, scan};
use crate::catalogue::{Declared, Kind};
use crate::flow::Parameter;

/// Reads a value.
pub(super) fn read(declared: &Declared, value: &Value) -> Result<Parameter, Diagnostic> {
    match (declared.kind, value) {
        (Kind::Fields, Value::Table(entries, span)) => fields(entries, *span),
        (Kind::Functions(known), Value::List(values, span)) => {
            let texts = values.iter().map(|value| match value {
                Value::Text(text) => Ok(text.clone()),
                other => Err(unfit(declared, other.span())),
            });
            functions(known, &texts.collect::<Result<Vec<_>, _>>()?, *span)
        }
        (_, Value::Text(text)) => read_text(declared, text),
        (Kind::Expression | Kind::Fields, Value::Function(name)) => {
            Ok(Parameter::Function(name.text.as_str().into()))
        }
        (_, Value::Function(name)) => Err(unfit(declared, name.span)),
        (_, Value::List(_, span) | Value::Table(_, span)) => Err(unfit(declared, *span)),
    }
}

/// What holds where nothing is given, if the declaration says so in a value.
pub(super) fn default(declared: &Declared) -> Option<Parameter> {
    let text = Text::plain(declared.default?, 0);
    read_text(declared, &text).ok()
}

fn read_text(declared: &Declared, text: &Text) -> Result<Parameter, Diagnostic> {
    check_characters(text)?;
    let word = text.text.trim();
    let read = match declared.kind {
        Kind::Flag => word.parse().ok().map(Parameter::Flag),
        Kind::Integer => word.parse().ok().map(Parameter::Integer),
        Kind::Number => number(word).map(|number| Parameter::Number(number.into())),
        Kind::Span => milieu_transfer::Span::from_units(word).map(Parameter::Span),
        Kind::Text => Some(Parameter::Text(text.text.as_str().into())),
        Kind::Choice(words) => {
            let known = words.contains(&word);
            known.then(|| Parameter::Text(word.into()))
        }
        Kind::Expression => return expression(&text.trimmed()),
        Kind::Fields if scan_field(text.text.trim_start()).is_some() => {
            let entries = written_fields(&text.trimmed())?;
            return fields(&entries, text.span);
        }
        Kind::Fields => return expression(&text.trimmed()),
        Kind::Functions(known) => return functions(known, &split(&text.trimmed()), text.span),
    };
    read.ok_or_else(|| unfit(declared, text.span).maybe_meant(declared.kind, word))
}

/// What one language cannot say none says: XML has no control characters.
pub(super) fn check_characters(text: &Text) -> Result<(), Diagnostic> {
    let Some((at, c)) = text
        .text
        .char_indices()
        .find(|&(_, c)| !scan::is_allowed(c))
    else {
        return Ok(());
    };
    Err(
        Diagnostic::error("a control character cannot stand in a text")
            .code("syntax")
            .label(
                text.part(at, at + c.len_utf8()),
                format!("this is U+{:04X}", u32::from(c)),
            )
            .help("leave it out"),
    )
}

/// A number in its shortest text.
fn number(text: &str) -> Option<String> {
    let number: f64 = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    let short = format!("{number:?}");
    let short = short.strip_suffix(".0").unwrap_or(&short);
    Some(if short == "-0" { "0" } else { short }.to_owned())
}

/// A value that is not of the declared kind.
fn unfit(declared: &Declared, at: Span) -> Diagnostic {
    let (expected, example) = match declared.kind {
        Kind::Flag => ("`true` or `false`".to_owned(), ""),
        Kind::Integer => ("a whole number".to_owned(), "10"),
        Kind::Number => ("a number".to_owned(), "0.5"),
        Kind::Span => ("a duration".to_owned(), "10m`, `1h30m` or `250ms"),
        Kind::Text => ("a text".to_owned(), ""),
        Kind::Choice(words) => (format!("one of {}", listed(words)), ""),
        Kind::Expression => ("an expression".to_owned(), "value > 32"),
        Kind::Fields => ("fields or an expression".to_owned(), "{mean: value / 2}"),
        Kind::Functions(known) => (format!("one or more of {}", listed(known)), ""),
    };
    let mut found = Diagnostic::error(format!("`{}` must be {expected}", declared.name))
        .code("parameter")
        .label(at, "this is not")
        .note(format!("`{}`: {}", declared.name, declared.summary));
    if !example.is_empty() {
        found = found.help(format!("write it as `{example}`"));
    }
    found
}

/// Words, as a text lists them.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

trait Meant {
    fn maybe_meant(self, kind: Kind, word: &str) -> Diagnostic;
}

impl Meant for Diagnostic {
    fn maybe_meant(self, kind: Kind, word: &str) -> Diagnostic {
        let words = match kind {
            Kind::Choice(words) => words,
            Kind::Flag => &["true", "false"],
            _ => return self,
        };
        match nearest(word, words.iter().copied()) {
            Some(meant) => self.help(format!("did you mean `{meant}`?")),
            None => self,
        }
    }
}

/// An expression, or the name of a function.
fn expression(text: &Text) -> Result<Parameter, Diagnostic> {
    match text.text.strip_prefix('$') {
        Some(name) if scan::is_word(name) => Ok(Parameter::Function(name.into())),
        Some(_) => Err(
            Diagnostic::error("`$` is followed by the name of a function")
                .code("expression")
                .label(text.span, "this is no name")
                .help("a name has letters, digits and `_`, as in `$hot`"),
        ),
        None => Ok(Parameter::Expression(canonical(text)?)),
    }
}

fn fields(entries: &[(Text, Value)], span: Span) -> Result<Parameter, Diagnostic> {
    if entries.is_empty() {
        return Err(Diagnostic::error("there are no fields")
            .code("parameter")
            .label(span, "at least one has to become something"));
    }
    let mut fields: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (name, value) in entries {
        check_characters(name)?;
        if fields.iter().any(|(known, _)| **known == *name.text) {
            return Err(
                Diagnostic::error(format!("the field `{}` is given twice", name.text))
                    .code("parameter")
                    .label(name.span, "here again")
                    .help("leave one of them out"),
            );
        }
        let Value::Text(text) = value else {
            return Err(Diagnostic::error("a field becomes an expression")
                .code("parameter")
                .label(value.span(), "this is none"));
        };
        let text = text.trimmed();
        check_characters(&text)?;
        if text.text.starts_with('$') {
            return Err(Diagnostic::error("a function makes the whole, not a field")
                .code("parameter")
                .label(text.span, "this is a function")
                .help("let the function return all fields, or write an expression here"));
        }
        fields.push((name.text.as_str().into(), canonical(&text)?));
    }
    Ok(Parameter::Fields(fields))
}

/// Whether a text is fields and not an expression: it begins with `{name:`.
/// How far the name goes, and the name.
fn scan_field(text: &str) -> Option<(usize, String)> {
    let inside = text.strip_prefix('{')?;
    let (end, name) = field_name(inside)?;
    let rest = inside[end..].trim_start();
    rest.starts_with(':').then(|| (1 + end, name))
}

/// Whether an expression would be read as fields.
pub(super) fn looks_like_fields(expression: &str) -> bool {
    scan_field(expression).is_some()
}

/// A word, or anything in backticks: where it ends and what it says.
fn field_name(text: &str) -> Option<(usize, String)> {
    let blanks = text.len() - text.trim_start().len();
    let text = &text[blanks..];
    if let Some(length) = scan::word(text) {
        return Some((blanks + length, text[..length].to_owned()));
    }
    text.strip_prefix('`')?;
    let (name, length) = quotes::read(text).ok()?;
    Some((blanks + length, name))
}

/// The fields of `{name: expression, …}`.
fn written_fields(text: &Text) -> Result<Vec<(Text, Value)>, Diagnostic> {
    let all = &text.text;
    let wrong = |at: usize, label: &str| {
        let end = at + all[at..].chars().next().map_or(0, char::len_utf8);
        Diagnostic::error("the fields cannot be read")
            .code("parameter")
            .label(text.part(at, end), label)
            .help("write them as `{name: expression, other: expression}`")
    };
    let blanks = |at: usize| at + all[at..].len() - all[at..].trim_start().len();
    let mut fields = Vec::new();
    let mut at = 1;
    loop {
        at = blanks(at);
        let (length, name) =
            field_name(&all[at..]).ok_or_else(|| wrong(at, "expected the name of a field"))?;
        let mut named = text.slice(at, at + length);
        named.text = name;
        at = blanks(at + length);
        if !all[at..].starts_with(':') {
            return Err(wrong(at, "expected `:`"));
        }
        let start = blanks(at + 1);
        let length = scan::expression(&all[start..])
            .map_err(|open| wrong(start + open.at, "this is not closed"))?;
        at = start + length;
        fields.push((named, Value::Text(text.slice(start, at).trimmed())));
        match all[at..].chars().next() {
            Some(',') => at += 1,
            Some('}') if at + 1 == all.len() => return Ok(fields),
            Some('}') => return Err(wrong(at + 1, "nothing follows the fields")),
            _ => return Err(wrong(at, "expected `,` or `}`")),
        }
    }
}

/// The texts between commas that are not in brackets.
fn split(text: &Text) -> Vec<Text> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (at, c) in text.text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.slice(start, at).trimmed());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.slice(start, text.text.len()).trimmed());
    parts
}

/// A list of functions: each [`Parameter::Text`], or [`Parameter::Call`] where
/// it has arguments.
fn functions(known: &[&str], texts: &[Text], span: Span) -> Result<Parameter, Diagnostic> {
    if texts.is_empty() {
        return Err(Diagnostic::error("there is no function")
            .code("parameter")
            .label(span, "at least one is needed")
            .help(format!("write one or more of {}", listed(known))));
    }
    let read = texts.iter().map(|text| function(known, text));
    Ok(Parameter::List(read.collect::<Result<_, _>>()?))
}

fn function(known: &[&str], text: &Text) -> Result<Parameter, Diagnostic> {
    let end = scan::word(&text.text).unwrap_or(0);
    let (name, rest) = text.text.split_at(end);
    if !known.contains(&name) {
        let shown = if name.is_empty() { &text.text } else { name };
        let found = Diagnostic::error(format!("there is no function `{shown}` here"))
            .code("parameter")
            .label(text.part(0, shown.len()), "this is not known");
        let found = match nearest(name, known.iter().copied()) {
            Some(meant) => found.help(format!("did you mean `{meant}`?")),
            None => found,
        };
        return Err(found.note(format!("known are {}", listed(known))));
    }
    if rest.is_empty() {
        return Ok(Parameter::Text(name.into()));
    }
    let inside = rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(inside) = inside else {
        return Err(
            Diagnostic::error(format!("`{name}` cannot go on like this"))
                .code("parameter")
                .label(
                    text.part(end, text.text.len()),
                    "this does not belong to it",
                )
                .help(format!("write `{name}`, or `{name}(…)` with its arguments")),
        );
    };
    let inside = text.slice(end + 1, end + 1 + inside.len());
    let arguments = split(&inside);
    let read = arguments.iter().map(|argument| {
        argument_of(&argument.text).ok_or_else(|| {
            Diagnostic::error(format!("`{name}` cannot take this"))
                .code("parameter")
                .label(
                    argument.span,
                    "this is neither a number, a duration nor a word",
                )
                .help(format!("write it as in `{name}(95)`"))
        })
    });
    Ok(Parameter::Call(
        name.into(),
        read.collect::<Result<_, _>>()?,
    ))
}

/// A number, a distance in time or a word: the arguments of functions are not
/// declared.
fn argument_of(text: &str) -> Option<Parameter> {
    if let Ok(integer) = text.parse() {
        return Some(Parameter::Integer(integer));
    }
    if scan::is_word(text) {
        return Some(Parameter::Text(text.into()));
    }
    let number = number(text).map(|number| Parameter::Number(number.into()));
    number.or_else(|| milieu_transfer::Span::from_units(text).map(Parameter::Span))
}

/// The text of a parameter, of the kind that [`read`] reads; fields and lists
/// are texts too.
pub(super) fn write(parameter: &Parameter) -> String {
    let joined = |parameters: &[Parameter]| {
        let texts: Vec<String> = parameters.iter().map(write).collect();
        texts.join(", ")
    };
    match parameter {
        Parameter::Flag(flag) => flag.to_string(),
        Parameter::Integer(integer) => integer.to_string(),
        Parameter::Number(text) | Parameter::Text(text) | Parameter::Expression(text) => {
            text.to_string()
        }
        Parameter::Span(span) => span.in_units().to_string(),
        Parameter::Function(name) => format!("${name}"),
        Parameter::List(parameters) => joined(parameters),
        Parameter::Call(name, arguments) => format!("{name}({})", joined(arguments)),
        Parameter::Fields(fields) => {
            let texts = fields.iter().map(|(name, expression)| {
                let mut text = String::new();
                if scan::is_word(name) {
                    text.push_str(name);
                } else {
                    quotes::write(name, '`', &mut text);
                }
                text + ": " + expression
            });
            format!("{{{}}}", texts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// As [`write()`], for a parameter of this kind: an expression that would be read
/// as fields stands in parentheses.
pub(super) fn write_as(kind: Kind, parameter: &Parameter) -> String {
    let text = write(parameter);
    match parameter {
        Parameter::Expression(_) if kind == Kind::Fields && looks_like_fields(&text) => {
            format!("({text})")
        }
        _ => text,
    }
}
