//! Queries and names of the naming tree, whatever text comes.
//!
//! The first two lines are queries, the third one is the value of every layer,
//! each further line a name.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use milieu_keys::name::levels;
use milieu_stream::names::{
    Change, LayerValues, Publisher, Query, Refusal, Rights, Tree, name, utf8,
};
use milieu_transfer::Time;

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|&byte| byte == b'\n').map(utf8);
    let mut next = || match lines.next() {
        Some(Ok(line)) => Some(line),
        Some(Err(refusal)) => {
            shown(&refusal);
            Some("")
        }
        None => None,
    };
    let queries = [read(next().unwrap_or("")), read(next().unwrap_or(""))];
    let value = next().unwrap_or("");
    let mut tree = Tree::default();
    let mut names = Vec::new();
    while let Some(text) = next().filter(|_| names.len() < 16) {
        match name(text) {
            Ok(name) => {
                assert_eq!(name.as_str(), text);
                let itself = Query::parse(text).expect("a name is a query");
                assert!(itself.is_exact() && itself.matches(text));
                names.push(text);
            }
            Err(refusal) => shown(&refusal),
        }
        assert_eq!(tree.put(text, Publisher(1)).is_ok(), name(text).is_ok());
    }
    for query in queries.iter().flatten() {
        resolved(query, value, &names, &mut tree);
    }
    if let [Some(one), Some(other)] = &queries {
        compared(one, other, &names);
        compared(other, one, &names);
    }
});

/// A refusal can be shown to anybody, and points into the text.
fn shown(refusal: &Refusal) {
    assert!(!refusal.message.is_empty() && !refusal.help.is_empty());
    assert!(
        !refusal.to_string().contains(char::is_control),
        "{refusal:?}"
    );
}

/// The canonical text is read as the same query, and as that text.
fn read(text: &str) -> Option<Query> {
    match Query::parse(text) {
        Ok(query) => {
            let again = Query::parse(query.as_str()).expect("the canonical text is a query");
            assert_eq!(again.as_str(), query.as_str());
            assert!(query.contains(&query) || query.is_contextual(), "{query}");
            assert!(query.intersects(&query), "{query}");
            Some(query)
        }
        Err(refusal) => {
            shown(&refusal);
            if let Some(span) = refusal.span {
                assert!(text.get(span.start..span.end).is_some(), "{refusal:?}");
            }
            None
        }
    }
}

/// Trying everything, which is quick for small texts alone.
fn means(query: &[&str], name: &[&str]) -> bool {
    match (query, name) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            means(rest, name) || (!name.is_empty() && means(query, &name[1..]))
        }
        ([level, rest @ ..], [text, below @ ..]) => {
            (*level == "*" || level == text) && means(rest, below)
        }
        _ => false,
    }
}

/// Under any values of layers, matching is what the naive matcher says, and the
/// tree finds and tells what matches.
fn resolved(query: &Query, value: &str, names: &[&str], tree: &mut Tree) {
    let values: LayerValues = query.layers().map(|layer| (layer, value)).collect();
    let Some(resolved) = query.resolve(&values) else {
        assert!(query.is_contextual());
        return;
    };
    assert!(!resolved.is_contextual());
    assert_eq!(read(resolved.as_str()).as_ref(), Some(&resolved));
    assert!(query.intersects(&resolved));
    let wanted: Vec<&str> = levels(resolved.path()).collect();
    let wildcards = wanted.iter().filter(|level| **level == "**").count();
    let mut matching = Vec::new();
    for name in names {
        let found: Vec<&str> = levels(name).collect();
        if wildcards <= 3 && found.len() <= 12 {
            assert_eq!(
                resolved.matches(name),
                means(&wanted, &found),
                "{resolved} {name}"
            );
        }
        if resolved.matches(name) {
            assert!(query.matches(name), "{query} {name}");
            matching.push(*name);
        }
    }
    if !resolved.conditions().is_empty() {
        return;
    }
    matching.sort_unstable();
    matching.dedup();
    let rights = Arc::new(Rights::all());
    let members = tree.resolve(query, &values, &rights);
    assert!(
        members
            .iter()
            .map(|member| member.name.as_str())
            .eq(matching.iter().copied())
    );
    let watch = tree
        .watch(resolved, Arc::clone(&rights))
        .expect("there is room");
    tree.step(Time::MIN);
    // Another publisher everywhere: told are those that match, and no others.
    for name in names {
        tree.put(name, Publisher(2)).expect("a name");
    }
    let news = tree.step(Time::MIN).watches;
    let told = news
        .iter()
        .flat_map(|(_, changes)| changes)
        .map(|change| match change {
            Change::Changed(member) => member.name.as_str(),
            other => panic!("{other:?} is told of a name that was there and stays"),
        });
    assert!(told.eq(matching.iter().copied()));
    tree.unwatch(watch);
    for name in names {
        tree.put(name, Publisher(1)).expect("a name");
    }
    tree.step(Time::MIN);
}

/// What two queries have in common shows in every name.
fn compared(one: &Query, other: &Query, names: &[&str]) {
    let contains = one.contains(other);
    assert!(!contains || one.intersects(other), "{one} {other}");
    for name in names.iter().filter(|name| other.matches(name)) {
        assert!(!contains || one.matches(name), "{one} {other} {name}");
        let same = one.conditions() == other.conditions();
        assert!(
            !same || !one.matches(name) || one.intersects(other),
            "{one} {other} {name}"
        );
    }
}
