//! What generated code can call the values.
//!
//! Placeholders vanish from identifiers, so two names may become one; and a
//! struct has no member that is a value and a branch at once. What one target
//! alone forbids is reported by its back end.

use crate::specification::{KeySpec, Specification};
use milieu_diagnostics::{Diagnostic, Source, Span};
use std::collections::{HashMap, HashSet};

/// Words that are no identifiers in Rust, not even raw ones (`r#type` is one).
const NEVER: [&str; 4] = ["self", "super", "crate", "Self"];

pub(super) fn check(specification: &Specification, source: &Source, found: &mut Vec<Diagnostic>) {
    // What is inside arrays has no place of its own, and what is no more has no name.
    let has_name = |key: &&KeySpec| !key.is_inside_array() && !key.is_removed();
    let keys = || specification.keys.iter().filter(has_name);
    let arrays: HashSet<Vec<String>> = keys()
        .filter(|key| key.is_array())
        .map(KeySpec::identifiers)
        .collect();
    let mut tree = Tree::default();
    for key in keys() {
        tree.reach(key.identifiers());
    }
    let mut patterns: HashSet<&str> = HashSet::new();
    for key in keys() {
        let path = key.identifiers();
        let mut node = tree.reach(path.clone());
        let is_branch = !tree.nodes[node].below.is_empty();
        let said_before = !patterns.insert(key.pattern.as_str());
        let describes = (is_branch || arrays.contains(&path)) && !key.is_array();
        if said_before || (describes && key.only_describes()) {
            continue;
        }
        spelling(key, source, found);
        if is_branch && key.get("command").is_some() && key.get("identifier").is_none() {
            // The value says which command was given, and is called that.
            node = tree.below(node, "command".to_owned());
        }
        if node == ROOT {
            found.push(nothing_left(key));
        } else if let Some(other) = tree.nodes[node].value {
            found.push(same(key, other, &path));
        } else {
            tree.nodes[node].value = Some(key);
        }
    }
    for key in keys() {
        value_and_branch(&mut tree, key, found);
    }
}

const ROOT: usize = 0;

/// The identifiers as generated code nests them. A tree instead of a map of
/// paths, so that a name of very many levels costs no more than its length.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

#[derive(Default)]
struct Node<'a> {
    below: HashMap<String, usize>,
    value: Option<&'a KeySpec>,
    reported: bool,
}

impl Default for Tree<'_> {
    fn default() -> Self {
        Tree {
            nodes: vec![Node::default()],
        }
    }
}

impl Tree<'_> {
    fn reach(&mut self, path: Vec<String>) -> usize {
        path.into_iter()
            .fold(ROOT, |node, level| self.below(node, level))
    }

    fn below(&mut self, node: usize, level: String) -> usize {
        let next = self.nodes.len();
        let below = *self.nodes[node].below.entry(level).or_insert(next);
        if below == next {
            self.nodes.push(Node::default());
        }
        below
    }
}

/// Levels and words that cannot be identifiers at all.
fn spelling(key: &KeySpec, source: &Source, found: &mut Vec<Diagnostic>) {
    let mut levels = key.levels();
    if let Some(identifier) = key.get("identifier") {
        levels.pop();
        let span = metadata_span(key, "identifier");
        if let Some(why) = not_an_identifier(identifier) {
            found.push(
                Diagnostic::error(format!("`{identifier}` is no identifier: {why}"))
                    .code("identifier")
                    .label(span, "generated code cannot use this")
                    .help("begin with a letter and use letters, digits and `_` only"),
            );
        }
    }
    for (at, level) in levels.iter().enumerate() {
        let is_last = at + 1 == levels.len() && key.get("identifier").is_none();
        let why = if let Some(word) = reserved(level) {
            format!("`{word}` cannot be an identifier, not even a raw one")
        } else if level.chars().any(char::is_alphanumeric) {
            continue;
        } else {
            format!("`{level}` leaves nothing for an identifier")
        };
        let mut error = Diagnostic::error(why)
            .code("identifier")
            .label(
                level_span(key, level, source),
                "generated code needs a name for this",
            )
            .help("rename the level");
        if is_last {
            let other = match reserved(level) {
                Some(word) => format!("{}_", word.to_lowercase()),
                None => "value".to_owned(),
            };
            error = error.help(format!(
                "or give it another identifier: `identifier={other}`"
            ));
        }
        found.push(error);
        // One at a time: the next one may be due to the same mistake.
        return;
    }
}

fn reserved(level: &str) -> Option<&'static str> {
    let word = level.trim_matches('_');
    NEVER
        .into_iter()
        .find(|never| word.eq_ignore_ascii_case(never))
}

fn not_an_identifier(text: &str) -> Option<&'static str> {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts {
        return Some("it does not begin with a letter");
    }
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Some("it has characters beside letters, digits and `_`");
    }
    if text.bytes().all(|byte| byte == b'_') {
        return Some("it has neither letter nor digit");
    }
    NEVER
        .contains(&text)
        .then_some("it is a word of the language")
}

fn metadata_span(key: &KeySpec, word: &str) -> Span {
    super::Declaration::of_key(key).value_of(word)
}

/// Where a level stands; where the whole name does, if that is not certain.
fn level_span(key: &KeySpec, level: &str, source: &Source) -> Span {
    let name = source.slice(key.span);
    let mut at = 0;
    for written in name.split('/') {
        if written == level {
            let start = key.span.start + at;
            return Span::new(start, start + level.len());
        }
        at += written.len() + 1;
    }
    key.span
}

fn nothing_left(key: &KeySpec) -> Diagnostic {
    let pattern = &key.pattern;
    let why = if pattern.is_contextual() {
        "all levels have placeholders, and these do not count"
    } else {
        "there is no level"
    };
    Diagnostic::error(format!("`{pattern}` leaves nothing for an identifier"))
        .code("identifier")
        .label(key.span, why)
        .help("give it one: `identifier=value`, for example")
        .help("or put a level in front: `/sw/app/...`")
}

fn same(key: &KeySpec, other: &KeySpec, path: &[String]) -> Diagnostic {
    // The one that depends on more layers is the special one.
    let layers = |key: &KeySpec| key.pattern.layers().len();
    let special = if layers(other) > layers(key) {
        other
    } else {
        key
    };
    let last = path.last().map_or("value", String::as_str);
    let name = match special.pattern.layers().next() {
        Some(layer) => format!("{last}_by_{layer}"),
        None => format!("{last}_2"),
    };
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let (one, two) = (&other.pattern, &key.pattern);
    Diagnostic::error(format!(
        "`{one}` and `{two}` would both be `{}`",
        path.join(".")
    ))
    .code("identifier")
    .label(key.span, "the second one")
    .label(other.span, "the first one")
    .note("placeholders do not count in identifiers")
    .help(format!(
        "give one of them another identifier: `identifier={name}` in `[{}]`, for example",
        special.pattern
    ))
    .help("or rename a level")
}

/// Reports the values that `key` stands below, each only once.
fn value_and_branch(tree: &mut Tree<'_>, key: &KeySpec, found: &mut Vec<Diagnostic>) {
    let path = key.identifiers();
    let mut node = ROOT;
    for (length, level) in path.iter().enumerate() {
        let here = &mut tree.nodes[node];
        if let (Some(value), false) = (here.value, here.reported) {
            here.reported = true;
            found.push(both(value, key, &path[..length]));
        }
        match here.below.get(level) {
            Some(below) => node = *below,
            None => return,
        }
    }
}

fn both(value: &KeySpec, below: &KeySpec, path: &[String]) -> Diagnostic {
    let pattern = &value.pattern;
    let last = path.last().map_or("value", String::as_str);
    let mut error = Diagnostic::error(format!(
        "`{}` would be both a value and the parent of `{}`",
        path.join("."),
        below.identifiers().join(".")
    ))
    .code("identifier")
    .label(value.span, "a value")
    .label(below.span, "a value below it");
    let own = match pattern.as_str().strip_suffix('#') {
        Some(array) => format!("{array}all/#"),
        None => format!("{pattern}/value"),
    };
    error = error
        .help(format!("give the value its own level: `[{own}]`"))
        .help(format!("or another identifier: `identifier={last}_value`"));
    let plain = value.get("default").is_none() && value.get("type").is_none();
    if plain && !value.is_array() {
        error = error.help("or leave `description` alone here, if this should describe the branch");
    }
    error
}
