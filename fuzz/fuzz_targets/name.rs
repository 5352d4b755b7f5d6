//! Names and patterns: whatever text comes, and whatever values layers have.
//!
//! The first line is a name or a pattern, each further line the value of a layer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_keys::{Name, Pattern, escape_value, split};

fuzz_target!(|input: &str| {
    let (text, values) = input.split_once('\n').unwrap_or((input, ""));
    match Name::parse(text) {
        Ok(name) => canonical(&name),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    for value in values.lines() {
        one_level(value);
    }
    match Pattern::parse(text) {
        Ok(pattern) => resolved(&pattern, values),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// Reading a canonical name again changes nothing, and splitting loses nothing.
fn canonical(name: &Name) {
    let text = name.as_str();
    assert_eq!(Name::parse(text).as_ref(), Ok(name));
    assert!(name.levels().all(|level| !level.is_empty()));
    assert!(name.is_below_or_same(text));
    if name.levels().next().is_some() {
        let (parent, base) = split(text);
        assert_eq!(format!("{parent}/{base}"), text);
        assert_eq!(name.levels().last(), Some(base));
    }
}

/// Whatever a layer's value is, it makes one level: none more, none that climbs,
/// none that looks inactive.
fn one_level(value: &str) {
    if value.is_empty() {
        return;
    }
    let mut text = "/above/".to_owned();
    escape_value(value, &mut text);
    text.push_str("/below");
    let name = Name::parse(&text).expect("an escaped value is a level");
    let levels: Vec<&str> = name.levels().collect();
    assert_eq!(levels.len(), 3, "{value:?} gave {levels:?}");
    assert_eq!((levels[0], levels[2]), ("above", "below"));
    assert_ne!(levels[1], "%");
    assert_eq!(milieu_keys::name::unescape(levels[1]), value);
}

/// Every name that a pattern resolves to is canonical and matches it.
fn resolved(pattern: &Pattern, values: &str) {
    assert!(pattern.unifies(pattern));
    assert_eq!(Pattern::parse(pattern.as_str()).as_ref(), Ok(pattern));
    let layers: Vec<&str> = pattern.layers().collect();
    assert_eq!(layers.is_empty(), !pattern.is_contextual());
    let values: Vec<&str> = values.lines().collect();
    let inactive = pattern.resolve(|_| None);
    let active = pattern.resolve(|layer| {
        let index = layers.iter().position(|other| *other == layer)?;
        values.get(index).copied()
    });
    for name in [inactive, active] {
        canonical(&name);
        assert!(
            pattern.matches(name.as_str()),
            "{} resolved to {}",
            pattern.as_str(),
            name.as_str()
        );
    }
}
