//! What documentation says about a value, in words, for every document alike.

use milieu_keys::{
    Type,
    options::{Argument, Entry},
    rules::{array_index, array_level},
};

use crate::{
    ir::{Branch, Environment, LayerShape, Literal, Member, Value},
    prose::{code, markdown_inline},
};

/// Words and literal texts by turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase(pub(crate) Vec<Part>);

/// A piece of a [`Phrase`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Words.
    Words(String),
    /// What a file or a user would say, to the letter.
    Literal(String),
    /// What stands for something else: `FILE`.
    Placeholder(String),
}

impl Phrase {
    fn words(words: &str) -> Phrase {
        Phrase(vec![Part::Words(words.to_owned())])
    }

    fn literal(literal: &str) -> Phrase {
        Phrase(vec![Part::Literal(literal.to_owned())])
    }

    fn join(phrases: Vec<Phrase>) -> Phrase {
        let mut parts = Vec::new();
        for phrase in phrases {
            if !parts.is_empty() {
                parts.push(Part::Words("; ".to_owned()));
            }
            parts.extend(phrase.0);
        }
        Phrase(parts)
    }

    fn with(words: &str, literal: &str) -> Phrase {
        Phrase(vec![
            Part::Words(format!("{words} ")),
            Part::Literal(literal.to_owned()),
        ])
    }

    fn one_of(texts: &[String]) -> Phrase {
        let mut parts = Vec::new();
        for text in texts {
            if !parts.is_empty() {
                parts.push(Part::Words(", ".to_owned()));
            }
            parts.push(Part::Literal(text.clone()));
        }
        Phrase(parts)
    }

    /// The phrase as Markdown.
    pub(crate) fn markdown(&self) -> String {
        self.0
            .iter()
            .map(|part| match part {
                Part::Words(words) => {
                    // The spaces around words join them to the literals.
                    let inner = markdown_inline(words);
                    let before = if words.starts_with(' ') { " " } else { "" };
                    let after = if words.ends_with(' ') { " " } else { "" };
                    format!("{before}{inner}{after}")
                }
                Part::Literal(text) => code(text),
                Part::Placeholder(name) => format!("*{}*", markdown_inline(name)),
            })
            .collect()
    }

    /// The phrase without any markup.
    pub(crate) fn plain(&self) -> String {
        let texts = self.0.iter().map(|part| match part {
            Part::Words(text) | Part::Literal(text) | Part::Placeholder(text) => text.as_str(),
        });
        texts.collect()
    }
}

fn type_in_words(type_: Type) -> &'static str {
    match type_ {
        Type::Boolean => "boolean",
        Type::Short => "integer, 16 bit",
        Type::UnsignedShort => "unsigned integer, 16 bit",
        Type::Long => "integer, 32 bit",
        Type::UnsignedLong => "unsigned integer, 32 bit",
        Type::LongLong => "integer, 64 bit",
        Type::UnsignedLongLong => "unsigned integer, 64 bit",
        Type::Float => "number, 32 bit",
        Type::Double => "number, 64 bit",
        Type::String => "text",
        Type::Enum => "choice",
    }
}

/// The type of a value in words; of an array, with that of its elements.
pub(crate) fn type_of(value: &Value) -> String {
    let element = type_in_words(value.type_);
    match value.is_array {
        true => format!("array of {element}"),
        false => element.to_owned(),
    }
}

/// The default as written, or the zero of the type; nothing for a secret, and
/// for an array, which has none.
pub(crate) fn default(value: &Value) -> String {
    if value.is_secret() || value.is_array {
        return String::new();
    }
    if let Some(text) = value.metadata("default") {
        return text.to_owned();
    }
    match &value.default {
        Literal::Boolean(value) => value.to_string(),
        Literal::Signed(value) => value.to_string(),
        Literal::Unsigned(value) => value.to_string(),
        Literal::Float(value) => value.to_string(),
        Literal::Text(text) => text.clone(),
        Literal::Variant(index) => value.variants[*index as usize].clone(),
    }
}

/// What the elements of an array are called.
fn elements(value: &Value) -> Option<Phrase> {
    let array = value.pattern.strip_suffix('#').filter(|_| value.is_array)?;
    let element = |index| Part::Literal(format!("{array}{}", array_level(index)));
    let words = |text: &str| Part::Words(text.to_owned());
    Some(Phrase(vec![
        element(0),
        words(" to "),
        element(9),
        words(", then "),
        element(10),
        words(" and so on"),
    ]))
}

/// The texts that `check/enum` lists for a value that is no enumeration.
fn listed(value: &Value) -> Vec<String> {
    let list = value
        .metadata("check/enum")
        .filter(|list| !list.starts_with('#'));
    let list = list
        .into_iter()
        .flat_map(|list| list.split(','))
        .map(str::trim);
    list.chain(value.metadata_array("check/enum"))
        .map(|text| text.trim_matches(['\'', '"']).to_owned())
        .collect()
}

fn allowed(value: &Value) -> Vec<Phrase> {
    let mut phrases = Vec::new();
    let texts = if value.variants.is_empty() {
        listed(value)
    } else {
        value.variants.clone()
    };
    if !texts.is_empty() {
        phrases.push(Phrase::one_of(&texts));
    }
    if let Some(separator) = value.metadata("check/enum/multi") {
        phrases.push(Phrase::with("several of these, separated by", separator));
    }
    for name in ["range", "check/range"] {
        if let Some(range) = value.metadata(name) {
            phrases.push(Phrase::with("in the range", &range.replace(',', ", ")));
        }
    }
    if let Some(length) = value.metadata("check/length") {
        phrases.push(Phrase::with("length", length));
    }
    for (name, words) in [
        ("check/length/min", "length at least"),
        ("check/length/max", "length at most"),
    ] {
        if let Some(length) = value.metadata(name) {
            phrases.push(Phrase::with(words, length));
        }
    }
    if let Some(expression) = value.metadata("check/validation") {
        phrases.push(match value.metadata("check/validation/message") {
            Some(message) => Phrase::words(message),
            None => Phrase::with("what matches", expression),
        });
    }
    for (name, words) in [
        ("check/path", "a path"),
        ("check/port", "a port number"),
        ("check/ipaddr", "an IP address"),
        ("check/email", "an e-mail address"),
        ("check/date", "a date"),
        ("check/unit", "a quantity with its unit"),
    ] {
        if value.metadata(name).is_some() {
            phrases.push(Phrase::words(words));
        }
    }
    for (name, words) in [
        ("array/min", "elements at least"),
        ("array/max", "elements at most"),
    ] {
        if let Some(count) = value.metadata(name) {
            phrases.push(Phrase::with(words, count));
        }
    }
    phrases
}

/// How the value is given on the command line: `-l, --language=NAME`. Nothing,
/// if it is not.
pub(crate) fn option(value: &Value) -> Option<Phrase> {
    let entry = value.entry.as_ref()?;
    let placeholder = Part::Placeholder(entry.placeholder().to_owned());
    if entry.position().is_some() {
        let more = if entry.is_array() { "..." } else { "" };
        return Some(Phrase(vec![placeholder, Part::Words(more.to_owned())]));
    }
    let short = entry.short().iter().map(|short| format!("-{short}"));
    let long = entry.long().iter().map(|long| format!("--{long}"));
    let mut parts = Vec::new();
    for name in short.chain(long) {
        if !parts.is_empty() {
            parts.push(Part::Words(", ".to_owned()));
        }
        parts.push(Part::Literal(name));
    }
    if parts.is_empty() {
        return None;
    }
    let words = |text: &str| Part::Words(text.to_owned());
    let is_short = entry.long().is_empty();
    match entry.argument() {
        Argument::Required if is_short => parts.extend([words(" "), placeholder]),
        Argument::Required => parts.extend([words("="), placeholder]),
        Argument::Optional if !is_short && value.type_ != Type::Boolean => {
            parts.extend([words("[="), placeholder, words("]")]);
        }
        _ => {}
    }
    if entry.is_array() {
        parts.push(words("..."));
    }
    Some(Phrase(parts))
}

/// Whether documents are to keep quiet about the option.
pub(crate) fn is_hidden(value: &Value) -> bool {
    value.entry.as_ref().is_some_and(Entry::hidden)
}

/// The environment variables that set the value, the preferred one first.
pub(crate) fn variables(value: &Value) -> &[String] {
    value.entry.as_ref().map_or(&[], Entry::variables)
}

/// The names that the key had, each with what becomes of its values.
fn old_names(value: &Value) -> Option<Phrase> {
    let mut parts = Vec::new();
    for (word, name) in &value.metadata {
        let index = word.strip_prefix("was/").and_then(array_index);
        if index.is_none() {
            continue;
        }
        if !parts.is_empty() {
            parts.push(Part::Words(", ".to_owned()));
        }
        parts.push(Part::Literal(name.clone()));
        if let Some(unit) = value.metadata(&format!("{word}/unit")) {
            parts.push(Part::Words(format!(" in {unit}")));
        }
        if let Some(conversion) = value.metadata(&format!("{word}/convert")) {
            parts.push(Part::Words(" with ".to_owned()));
            parts.push(Part::Literal(conversion.to_owned()));
        }
    }
    (!parts.is_empty()).then_some(Phrase(parts))
}

/// The keys that are no more, and why.
pub(crate) fn removed(environment: &Environment) -> Vec<(&str, &str)> {
    let keys = environment.specification.keys.iter();
    keys.filter_map(|key| Some((key.pattern.as_str(), key.get("removed")?)))
        .collect()
}

/// What an activation of a layer brings along, in words.
pub(crate) fn layer_value(shape: &LayerShape) -> Phrase {
    match shape {
        LayerShape::Flag => Phrase::words("active or not"),
        LayerShape::Text => Phrase::words("text"),
        LayerShape::Number(type_) => Phrase::words(type_in_words(*type_)),
        LayerShape::Choice(texts) => Phrase::one_of(texts),
    }
}

/// The values directly below a branch. Those that have no place in the branches
/// stand at the root.
pub(crate) fn values_of<'e>(branch: &Branch, environment: &'e Environment) -> Vec<&'e Value> {
    branch
        .members
        .iter()
        .filter_map(|member| match member {
            Member::Value(index) => Some(&environment.values[*index]),
            Member::Branch(_) => None,
        })
        .collect()
}

/// Everything about a value but its description: labels, and what they say.
/// A label without a phrase is a sentence of its own.
pub(crate) fn lines(value: &Value) -> Vec<(&'static str, Phrase)> {
    let mut lines = vec![("Type", Phrase::words(&type_of(value)))];
    lines.extend(elements(value).map(|elements| ("Elements", elements)));
    let default = default(value);
    if value.is_secret() {
        lines.push(("Secret: its value is never shown.", Phrase(Vec::new())));
    } else if value.is_array {
        lines.push(("Default", Phrase::words("no elements")));
    } else if default.is_empty() {
        lines.push(("Default", Phrase::words("empty")));
    } else {
        lines.push(("Default", Phrase::literal(&default)));
    }
    let allowed = allowed(value);
    if !allowed.is_empty() {
        lines.push(("Allowed", Phrase::join(allowed)));
    }
    if let Some(unit) = value.metadata("unit") {
        lines.push(("Unit", Phrase::words(unit)));
    }
    if let Some(option) = option(value).filter(|_| !is_hidden(value)) {
        lines.push(("Command line", Phrase::literal(&option.plain())));
    }
    if let Some(command) = value.metadata("command").filter(|name| !name.is_empty()) {
        lines.push(("Command", Phrase::literal(command)));
    }
    if value.metadata("command").is_some() {
        lines.push((
            "Set to the name of the subcommand that is called.",
            Phrase(Vec::new()),
        ));
    }
    if !variables(value).is_empty() {
        lines.push(("Environment variable", Phrase::one_of(variables(value))));
    }
    for (label, name) in [("Overridden by", "override"), ("Falls back to", "fallback")] {
        let names: Vec<_> = value.metadata_array(name).map(str::to_owned).collect();
        if !names.is_empty() {
            lines.push((label, Phrase::one_of(&names)));
        }
    }
    if !value.layers.is_empty() {
        lines.push(("Layers", Phrase::one_of(&value.layers)));
    }
    if let Some(names) = old_names(value) {
        lines.push(("Formerly", names));
    }
    for (label, name) in [("Rationale", "rationale"), ("Deprecated", "deprecated")] {
        if let Some(text) = value.metadata(name) {
            lines.push((label, Phrase::words(text.trim())));
        }
    }
    let example = value.metadata("example").filter(|text| !text.is_empty());
    if let Some(example) = example.filter(|_| !value.is_secret()) {
        lines.push(("Example", Phrase::literal(example)));
    }
    if value.read_only {
        lines.push((
            "Read-only: the program cannot assign it.",
            Phrase(Vec::new()),
        ));
    }
    if value.required {
        lines.push((
            "Required: somebody has to give a value.",
            Phrase(Vec::new()),
        ));
    }
    lines
}
