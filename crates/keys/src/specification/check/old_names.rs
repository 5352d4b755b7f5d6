//! Old names: whether today's can be made of them, and whether they can be
//! told from those of today.

use super::Declaration;
use crate::migration;
use crate::pattern::Pattern;
use crate::rules::{Shortened, array_index};
use crate::specification::{KeySpec, Specification};
use milieu_diagnostics::{Diagnostic, Span};
use std::collections::{HashMap, HashSet};

/// What acts in a program, and so means nothing for a key that is no more.
const ACTING: [&str; 8] = [
    "default", "require", "opt", "args", "env", "command", "override", "fallback",
];

pub(super) fn check(specification: &Specification, found: &mut Vec<Diagnostic>) {
    for key in &specification.keys {
        match key.is_removed() {
            true => acting(key, found),
            false => old_names(key).for_each(|old| readable(key, &old, found)),
        }
    }
    collisions(specification, found);
}

/// An old name of a key.
struct Old<'a> {
    word: &'a str,
    pattern: Pattern,
    span: Span,
}

/// The old names of a key; one that is no name is passed over, since that is
/// said elsewhere.
fn old_names(key: &KeySpec) -> impl Iterator<Item = Old<'_>> {
    let entries = key.metadata.iter().enumerate();
    entries.filter_map(move |(at, (word, value))| {
        array_index(word.strip_prefix("was/")?)?;
        Some(Old {
            word,
            pattern: Pattern::parse(value).ok()?,
            span: Declaration::of_key(key).value(at),
        })
    })
}

fn acting(key: &KeySpec, found: &mut Vec<Diagnostic>) {
    for (at, (word, _)) in key.metadata.iter().enumerate() {
        let first = word.split('/').next().unwrap_or(word);
        if ACTING.contains(&first) {
            found.push(
                Diagnostic::error(format!("`{}` means nothing here", Shortened(word)))
                    .code("removed")
                    .label(Declaration::of_key(key).word(at), "the key is removed")
                    .help("remove the line; the description and old names may stay"),
            );
        }
    }
}

/// Reports an old name of which today's cannot be made, or not all of it.
fn readable(key: &KeySpec, old: &Old<'_>, found: &mut Vec<Diagnostic>) {
    let (old_name, today) = (&old.pattern, &key.pattern);
    if let Err(error) = migration::readable(old.word, old_name, today) {
        let message = format!("files with `{old_name}` cannot be read as `{today}`");
        found.push(
            Diagnostic::error(message)
                .code("old-name")
                .label(old.span, error.message)
                .help(error.help),
        );
        return;
    }
    let Some(layer) = migration::lacking(today, old_name) else {
        return;
    };
    let without = today.resolve(|_| None);
    let mut fallbacks = key
        .metadata
        .iter()
        .filter(|(word, _)| word.starts_with("fallback/"));
    if fallbacks.any(|(_, name)| *name == without.as_str()) {
        return;
    }
    found.push(
        Diagnostic::warning(format!(
            "`{old_name}` gives `{today}` a value only where `{layer}` is inactive"
        ))
        .code("old-name")
        .label(old.span, format!("there is no `%{layer}%` in it"))
        .help(format!(
            "add `fallback/#0={without}`, so that the value counts wherever there is no other"
        ))
        .help(format!("or put `%{layer}%` where old files have its value")),
    );
}

/// Reports old names that are names of today as well: nobody could tell what a
/// file means by them.
fn collisions(specification: &Specification, found: &mut Vec<Diagnostic>) {
    let keys = &specification.keys;
    let declared = Declared::new(keys);
    let collisions: Vec<Vec<(usize, Span)>> = keys
        .iter()
        .map(|key| {
            let is_read = |old: &Old<'_>| {
                let readable = migration::readable(old.word, &old.pattern, &key.pattern);
                key.is_removed() || readable.is_ok()
            };
            let collides = |old: Old<'_>| Some((declared.of(&old.pattern)?, old.span));
            old_names(key)
                .filter(is_read)
                .filter_map(collides)
                .collect()
        })
        .collect();
    let mut reported: HashSet<usize> = HashSet::new();
    for (at, others) in collisions.iter().enumerate() {
        for &(other, span) in others {
            if other == at {
                found.push(itself(&keys[at], span));
            } else if let Some(way) = way_back(&collisions, other, at) {
                if reported.is_disjoint(&HashSet::from([at, other])) {
                    reported.extend(way.iter().map(|(key, _)| key));
                    found.push(circle(keys, (at, span), &way));
                }
            } else {
                found.push(also_today(&keys[at], span, &keys[other]));
            }
        }
    }
}

/// The patterns of today, to be found by old ones.
struct Declared<'a> {
    literal: HashMap<&'a str, usize>,
    contextual: Vec<(&'a Pattern, usize)>,
}

impl<'a> Declared<'a> {
    fn new(keys: &'a [KeySpec]) -> Declared<'a> {
        let mut declared = Declared {
            literal: HashMap::new(),
            contextual: Vec::new(),
        };
        for (at, key) in keys.iter().enumerate() {
            if key.pattern.is_contextual() {
                declared.contextual.push((&key.pattern, at));
            } else {
                declared.literal.entry(key.pattern.as_str()).or_insert(at);
            }
        }
        declared
    }

    /// The key that has every name of an old pattern, whatever the layers are.
    fn of(&self, old: &Pattern) -> Option<usize> {
        // No file has this value, so that only placeholders match it.
        let name = old.resolve(|_| Some("\u{1}"));
        let mut contextual = self.contextual.iter();
        self.literal.get(name.as_str()).copied().or_else(|| {
            let found = contextual.find(|(pattern, _)| pattern.declares(name.as_str()));
            found.map(|&(_, at)| at)
        })
    }
}

/// How one key leads to another by way of old names.
fn way_back(
    collisions: &[Vec<(usize, Span)>],
    from: usize,
    to: usize,
) -> Option<Vec<(usize, Span)>> {
    let mut came: HashMap<usize, (usize, Span)> = HashMap::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            let mut way = Vec::new();
            let mut here = to;
            while here != from {
                let (before, span) = came[&here];
                way.push((before, span));
                here = before;
            }
            way.reverse();
            return Some(way);
        }
        for &(next, span) in &collisions[at] {
            if next != from && !came.contains_key(&next) {
                came.insert(next, (at, span));
                open.push(next);
            }
        }
    }
    None
}

fn itself(key: &KeySpec, span: Span) -> Diagnostic {
    Diagnostic::error(format!("`{}` is called so today", key.pattern))
        .code("old-name")
        .label(span, "this is no old name")
        .help("write the name that the key had before, or remove the line")
}

fn circle(keys: &[KeySpec], start: (usize, Span), way: &[(usize, Span)]) -> Diagnostic {
    let steps = || std::iter::once(&start).chain(way);
    let names: Vec<String> = steps()
        .map(|&(at, _)| format!("`{}`", keys[at].pattern))
        .collect();
    let message = format!("the old names of {} go in a circle", names.join(" and "));
    let error = Diagnostic::error(message).code("old-name");
    steps()
        .fold(error, |error, &(at, span)| {
            error.label(span, format!("what `{}` was", keys[at].pattern))
        })
        .help("keep the names that no key has today, and remove the others")
}

fn also_today(key: &KeySpec, span: Span, other: &KeySpec) -> Diagnostic {
    let (name, today) = (&other.pattern, &key.pattern);
    let error = Diagnostic::error(format!(
        "`{name}` is an old name of `{today}` and a key today"
    ))
    .code("old-name")
    .label(span, "an old name")
    .label(other.span, "a key")
    .help(format!(
        "if there is no key `{name}` any more, remove its section"
    ));
    if other
        .metadata
        .iter()
        .any(|(word, _)| word.starts_with("was/"))
    {
        return error.help(format!(
            "and list its old names behind this one, in `[{today}]`"
        ));
    }
    error.help("if there is, remove this line: nobody could tell what a file means")
}
