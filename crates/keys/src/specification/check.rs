//! What a specification says that cannot be meant, or is doubtful.

mod identifiers;
mod metadata;
mod old_names;
mod overlap;
mod secret;

use super::{EntrySpans, KeySpec, LayerSpec, Specification};
use crate::pattern::Pattern;
use milieu_diagnostics::{Diagnostic, Source, Span};
use std::collections::{HashMap, HashSet};

pub(super) fn check(specification: &Specification, source: &Source) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    duplicates(specification, &mut found);
    for key in &specification.keys {
        metadata::check(Declaration::of_key(key), source, &mut found);
    }
    for layer in &specification.layers {
        metadata::check(Declaration::of_layer(layer), source, &mut found);
    }
    old_names::check(specification, &mut found);
    overlap::check(specification, &mut found);
    identifiers::check(specification, source, &mut found);
    unused_layers(specification, &mut found);
    // The sort is stable: what concerns one place stays in order.
    found.sort_by_key(|diagnostic: &Diagnostic| diagnostic.span().map(|span| span.start));
    found
}

/// What keys and layers have in common.
#[derive(Clone, Copy)]
struct Declaration<'a> {
    metadata: &'a [(String, String)],
    span: Span,
    spans: &'a [EntrySpans],
    is_layer: bool,
    is_array: bool,
}

impl<'a> Declaration<'a> {
    fn of_key(key: &'a KeySpec) -> Declaration<'a> {
        Declaration {
            metadata: &key.metadata,
            span: key.span,
            spans: &key.spans,
            is_layer: false,
            is_array: key.is_array(),
        }
    }

    fn of_layer(layer: &'a LayerSpec) -> Declaration<'a> {
        Declaration {
            metadata: &layer.metadata,
            span: layer.span,
            spans: &layer.spans,
            is_layer: true,
            is_array: false,
        }
    }

    /// Where the word of the metadata at this position stands.
    fn word(&self, at: usize) -> Span {
        self.spans.get(at).map_or(self.span, |spans| spans.key)
    }

    /// Where its value stands, or the word if it has none.
    fn value(&self, at: usize) -> Span {
        match self.spans.get(at) {
            None => self.span,
            Some(spans) if spans.value.is_empty() => spans.key,
            Some(spans) => spans.value,
        }
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.metadata.iter().position(|(given, _)| given == key)
    }

    /// Where the value of a metadata key stands, or the name if it is not there.
    fn value_of(&self, key: &str) -> Span {
        self.position(key).map_or(self.span, |at| self.value(at))
    }
}

fn duplicates(specification: &Specification, found: &mut Vec<Diagnostic>) {
    let keys = specification.keys.iter();
    let layers = specification.layers.iter();
    let mut first: HashMap<&str, Span> = HashMap::new();
    for key in keys {
        let name = key.pattern.as_str();
        if let Some(before) = seen(&mut first, name, key.span) {
            found.push(twice(name, key.span, before));
        }
    }
    first.clear();
    for layer in layers {
        if let Some(before) = seen(&mut first, &layer.name, layer.span) {
            found.push(twice(&format!("%{}%", layer.name), layer.span, before));
        }
    }
}

/// Whether a word stands there, alone or with a boolean that is true.
fn says(metadata: &[(String, String)], word: &str) -> bool {
    let given = metadata.iter().find(|(key, _)| key == word);
    given.is_some_and(|(_, value)| crate::rules::flag(value) == Some(true))
}

/// Where the name was seen before.
fn seen<'a>(first: &mut HashMap<&'a str, Span>, name: &'a str, span: Span) -> Option<Span> {
    let before = first.get(name).copied();
    first.entry(name).or_insert(span);
    before
}

fn twice(name: &str, span: Span, before: Span) -> Diagnostic {
    Diagnostic::error(format!("`{name}` is declared twice"))
        .code("duplicate-section")
        .label(span, "declared again here")
        .label(before, "declared first here")
        .help("put all of its metadata into one section, and remove the other")
}

fn unused_layers(specification: &Specification, found: &mut Vec<Diagnostic>) {
    let mut used: HashSet<String> = HashSet::new();
    for key in specification.keys.iter().filter(|key| !key.is_removed()) {
        used.extend(key.pattern.layers().map(str::to_owned));
        for (word, value) in &key.metadata {
            if word.starts_with("override/") || word.starts_with("fallback/") {
                if let Ok(pattern) = Pattern::parse(value) {
                    used.extend(pattern.layers().map(str::to_owned));
                }
            }
        }
    }
    for layer in &specification.layers {
        if used.contains(&layer.name) || says(&layer.metadata, "allow/unused") {
            continue;
        }
        let name = &layer.name;
        let mut warning = Diagnostic::warning(format!("no name mentions the layer `{name}`"))
            .code("unused-layer")
            .label(layer.span, "activating it changes no value");
        let similar = crate::rules::nearest(name, used.iter().map(String::as_str));
        if let Some(similar) = similar {
            warning = warning.help(format!(
                "a placeholder says `%{similar}%`: is that the one?"
            ));
        }
        found.push(
            warning
                .help(format!("put `%{name}%` into the names that depend on it"))
                .help("if code activates it for its actions only, say `allow/unused` here"),
        );
    }
}
