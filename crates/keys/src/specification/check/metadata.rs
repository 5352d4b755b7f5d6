//! Metadata: known words, and values that can be meant.

use super::{Declaration, secret};
use crate::pattern::Pattern;
use crate::rules::{KNOWN, RuleError, Rules, Shortened, Violation, array_index, known, nearest};
use milieu_diagnostics::{Diagnostic, Source, Span};
use std::collections::HashMap;

/// What specifications know beyond the metadata of rules.
const OF_KEYS: [&str; 2] = ["identifier", "allow/overlap"];

/// What layers may say. Those with `/` at the end stand for all below them.
const OF_LAYERS: [&str; 15] = [
    "type",
    "order",
    "layer/name",
    "layer/order",
    "description",
    "rationale",
    "example",
    "deprecated",
    "range",
    "unit",
    "check/",
    "identifier",
    "inherited",
    "allow/unused",
    "x/",
];

/// The metadata whose values have to keep the rules of the others.
const VALUES: [&str; 3] = ["default", "example", "opt/flagvalue"];

pub(super) fn check(declaration: Declaration<'_>, source: &Source, found: &mut Vec<Diagnostic>) {
    let mut usable = Vec::new();
    let mut first: HashMap<&str, Span> = HashMap::new();
    for (at, (key, value)) in declaration.metadata.iter().enumerate() {
        let word = declaration.word(at);
        if let Some(before) = super::seen(&mut first, key, word) {
            found.push(given_twice(key, word, before));
        } else if !is_known(key, declaration.is_layer) {
            found.push(unknown(key, word, declaration.is_layer));
        } else if key == "default" && declaration.is_array {
            found.push(default_of_array(word));
        } else if let Some(wrong) = own_form(key, value, declaration.value(at), source) {
            found.push(wrong);
        } else if declaration.is_layer && key == "identifier" {
            found.push(of_values(value, word));
            usable.push(("layer/name", value.as_str()));
        } else {
            usable.push((key.as_str(), value.as_str()));
        }
    }
    rules(declaration, usable, found);
}

fn is_known(key: &str, of_layer: bool) -> bool {
    if key.starts_with("x/") {
        return true;
    }
    if of_layer {
        return OF_LAYERS.iter().any(|word| match word.strip_suffix('/') {
            Some(_) => key.starts_with(word) && known(key).is_some(),
            None => key == *word,
        });
    }
    known(key).is_some_and(|known| known.name == key || known.name.contains('#'))
        && !key.split('/').any(|level| level == "#")
        || OF_KEYS.contains(&key)
}

/// A layer that is called as values are.
fn of_values(value: &str, word: Span) -> Diagnostic {
    Diagnostic::warning("`identifier` is for values; layers have `layer/name`")
        .code("metadata")
        .label(word, "it is taken as `layer/name`")
        .help(format!("write `layer/name={}`", Shortened(value)))
}

fn default_of_array(word: Span) -> Diagnostic {
    Diagnostic::error("an array has no default")
        .code("metadata")
        .label(word, "an array that nobody gives has no elements")
        .help("leave this out; elements that all users begin with belong into a file of the system")
}

fn given_twice(key: &str, again: Span, before: Span) -> Diagnostic {
    let mut error = Diagnostic::error(format!("`{}` is given twice", Shortened(key)))
        .code("duplicate-metadata")
        .label(again, "given again here")
        .label(before, "given first here")
        .help("remove one of the two");
    if let Some((array, last)) = key.rsplit_once('/') {
        if let Some(index) = array_index(last) {
            error = error.help(format!("or count on: `{array}/#{}`", index + 1));
        }
    } else if KNOWN.iter().any(|known| is_array_of(known.name, key)) {
        error = error.help(format!("or list them: `{key}/#0`, `{key}/#1`"));
    }
    error
}

fn is_array_of(name: &str, key: &str) -> bool {
    name.strip_suffix("/#") == Some(key)
}

fn unknown(key: &str, word: Span, of_layer: bool) -> Diagnostic {
    let shown = Shortened(key);
    let error = if of_layer {
        Diagnostic::error(format!("layers have no metadata `{shown}`"))
    } else {
        Diagnostic::error(format!("unknown metadata `{shown}`"))
    };
    let error = error.code("unknown-metadata");
    if !of_layer && KNOWN.iter().any(|known| is_array_of(known.name, key)) {
        return error
            .label(word, "the elements of an array are numbered")
            .help(format!("write `{key}/#0`, then `{key}/#1` and so on"));
    }
    if let Some((meant, description)) = suggestion(key, of_layer) {
        return error
            .label(word, format!("did you mean `{meant}`?"))
            .help(match description {
                Some(description) => format!("`{meant}`: {description}"),
                None => format!("write `{meant}`"),
            });
    }
    if of_layer && is_known(key, false) {
        return error
            .label(word, "this says something about values only")
            .help("put it into the section of a value: `[/name]`");
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '/' | '#' | '_' | '-' | '.');
    if key.chars().all(is_word) {
        return error.label(word, "nothing is called so").help(format!(
            "for metadata of your own, put `x/` in front: `x/{shown}`"
        ));
    }
    error
        .label(word, "this is no metadata")
        .help("write metadata as `word=value`, and start comments with `;`")
}

/// Words that people try, and the one that is meant.
const MEANT: [(&str, &str); 17] = [
    ("comment", "description"),
    ("help", "description"),
    ("doc", "description"),
    ("min", "range"),
    ("max", "range"),
    ("const", "readonly"),
    ("immutable", "readonly"),
    ("required", "require"),
    ("mandatory", "require"),
    ("name", "identifier"),
    ("pattern", "check/validation"),
    ("values", "check/enum"),
    ("renamed", "was/#"),
    ("moved", "was/#"),
    ("alias", "was/#"),
    ("obsolete", "deprecated"),
    ("password", "secret"),
];

/// The metadata that is probably meant, and what it is for.
fn suggestion(key: &str, of_layer: bool) -> Option<(String, Option<&'static str>)> {
    let key = key.split(char::is_whitespace).next().unwrap_or(key);
    let own: &[&str] = if of_layer { &OF_LAYERS } else { &OF_KEYS };
    let candidates = || {
        let known = KNOWN.iter().map(|known| known.name);
        let known = known.filter(move |name| !of_layer || is_known(name, true));
        known.chain(own.iter().copied().filter(|word| !word.ends_with('/')))
    };
    let meant = MEANT.iter().find(|(word, _)| *word == key);
    let meant = meant
        .map(|&(_, meant)| meant)
        .filter(|meant| candidates().any(|name| name == *meant))
        .or_else(|| {
            // `length` is `check/length`, `long` is `opt/long`.
            candidates().find(|name| {
                let shorter = name.strip_suffix(key);
                !key.is_empty() && shorter.is_some_and(|before| before.ends_with('/'))
            })
        })
        .or_else(|| nearest(key, candidates()))
        .or_else(|| {
            let last = nearest(key, candidates().map(last_level))?;
            candidates().find(|name| last_level(name) == last)
        })?;
    let description = known(meant).map(|known| known.description);
    Some((meant.replace('#', "#0"), description))
}

fn last_level(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// What is wrong with the form of metadata that can be pointed at more exactly
/// than the rules do, or that the rules do not know.
fn own_form(key: &str, value: &str, span: Span, source: &Source) -> Option<Diagnostic> {
    let flag_only = matches!(key, "allow/overlap" | "allow/unused" | "inherited");
    if flag_only && crate::rules::flag(value).is_none() {
        return Some(
            Diagnostic::error(format!("`{key}={}` has no meaning", Shortened(value)))
                .code("metadata")
                .label(span, "this is no boolean")
                .help(format!("write `{key}` alone")),
        );
    }
    let names = ["override/#", "fallback/#", "was/#"];
    let is_name = known(key).is_some_and(|known| names.contains(&known.name));
    if is_name {
        let error = Pattern::parse(value).err()?;
        // Without quotes the value is what stands in the source.
        let exact = if source.slice(span) == value {
            Span::new(span.start + error.at, span.start + error.end)
        } else {
            span
        };
        return Some(
            Diagnostic::error(format!("`{}` is no name", Shortened(value)))
                .code("name")
                .label(exact, error.message)
                .help(error.help),
        );
    }
    None
}

/// So many mistakes of one declaration are enough; finding each costs a reading
/// of all its metadata.
const MOST: usize = 20;

/// Checks what the rules can say about, dropping what is wrong and going on.
fn rules(declaration: Declaration<'_>, mut usable: Vec<(&str, &str)>, found: &mut Vec<Diagnostic>) {
    let mut values = Vec::new();
    usable.retain(|&(key, value)| {
        let is_value = VALUES.contains(&key);
        if is_value {
            values.push((key, value));
        }
        !is_value
    });
    let mut reported = 0;
    let rules = loop {
        match Rules::from_metadata(&usable) {
            Ok(rules) => break rules,
            Err(error) => {
                let before = usable.len();
                usable.retain(|(key, _)| *key != error.key);
                let shakes_all = matches!(error.key.as_str(), "type" | "unit" | "check/unit")
                    || error.key.starts_with("check/enum");
                found.push(wrong_rule(declaration, &error));
                reported += 1;
                // What was built on it would fail for no fault of its own.
                if shakes_all || usable.len() == before || reported == MOST {
                    return;
                }
            }
        }
    };
    if rules.secret() {
        secret::check(declaration, &values, found);
        values.clear();
    }
    for (key, value) in &values {
        if let Err(violation) = rules.check(value) {
            let what = format!("the {} `{}`", noun(key), Shortened(value));
            let place = (declaration.value_of(key), "this is not allowed");
            let error = violated(&what, &violation, place, declaration);
            found.push(with_comment_hint(error, value));
        }
    }
    let has_default = values.iter().any(|(key, _)| *key == "default");
    let removed = declaration.position("removed").is_some();
    let has_none = declaration.is_layer || declaration.is_array || removed;
    if has_none || has_default || rules.required() {
        return;
    }
    if let Err(violation) = rules.initial() {
        let what = format!("there is no default, and `{}`", Shortened(&violation.value));
        let place = (declaration.span, "it starts as this");
        let error = violated(&what, &violation, place, declaration);
        found.push(if rules.secret() {
            error.help("add `require`, so that somebody has to give a value")
        } else {
            error
                .help("add a `default` that is allowed")
                .help("or add `require`, if somebody has to give a value")
        });
    }
}

/// A value that breaks a rule, with the place of the value and what to say
/// there. The rule is pointed at too.
fn violated(
    what: &str,
    violation: &Violation,
    place: (Span, &str),
    declaration: Declaration<'_>,
) -> Diagnostic {
    // The message says why, and behind a semicolon the way out.
    let (why, way_out) = match violation.message.split_once("; ") {
        Some((why, way_out)) => (why, Some(way_out)),
        None => (violation.message.as_str(), None),
    };
    let mut error = Diagnostic::error(format!("{what} {why}"))
        .code("value")
        .label(place.0, place.1);
    let word = violation.rule.split('=').next().unwrap_or_default();
    let rule = declaration.metadata.iter().position(|(key, _)| {
        let rest = key.strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if let Some(rule) = rule {
        error = error.label(declaration.value(rule), "because of this");
    }
    match way_out {
        Some(way_out) => error.help(way_out),
        None => error,
    }
}

fn noun(key: &str) -> String {
    match key {
        "default" | "example" => key.to_owned(),
        _ => format!("`{key}`"),
    }
}

fn wrong_rule(declaration: Declaration<'_>, error: &RuleError) -> Diagnostic {
    let (key, value) = (&error.key, &error.value);
    let shown = if value.is_empty() {
        format!("`{key}` has no meaning")
    } else {
        format!("`{key}={}` has no meaning", Shortened(value))
    };
    let code = if key == "type" {
        "unknown-type"
    } else {
        "metadata"
    };
    let mut found = Diagnostic::error(shown)
        .code(code)
        .label(declaration.value_of(key), error.message.clone());
    if !error.help.is_empty() {
        found = found.help(error.help.clone());
    }
    with_comment_hint(found, value)
}

/// People expect comments at the end of lines.
fn with_comment_hint(found: Diagnostic, value: &str) -> Diagnostic {
    if [" ;", "\t;", " #", "\t#"]
        .iter()
        .any(|sign| value.contains(sign))
    {
        return found.note("a comment stands on a line of its own; here it is part of the value");
    }
    found
}
