//! Keys that the program brings along: texts in other languages than English,
//! and what is true below the layer `tamper`.
//!
//! They are the last of the cascade, as defaults of the specification are: what
//! a user's or the system's file says instead counts, for as long as it says so.
//! They are never persisted, because only what the program assigns is.

use milieu::Coordinator;
use milieu::keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use std::sync::Arc;

/// The files, with the names that their values' provenance has.
pub(crate) const FILES: [(&str, &str); 5] = [
    ("defaults.ini", include_str!("../defaults.ini")),
    ("texts/de.ini", include_str!("../texts/de.ini")),
    ("texts/fr.ini", include_str!("../texts/fr.ini")),
    ("texts/es.ini", include_str!("../texts/es.ini")),
    ("texts/ar.ini", include_str!("../texts/ar.ini")),
];

/// Gives a coordinator the keys of the program.
pub(crate) fn assign(coordinator: &Coordinator) -> Result<(), milieu::Error> {
    let mut ours = KeySet::new();
    for (file, content) in FILES {
        let source = Arc::new(SourceOf::File(format!("{file} of the program")));
        for (name, value, line) in keys(content) {
            let origin = Origin::at(&source, line);
            let name = Name::parse(&name)?;
            ours.insert(Key::new(Namespace::Default, &name, value, origin));
        }
    }
    coordinator.replace(Namespace::Default, &KeySet::new(), &ours)?;
    Ok(())
}

/// The keys of one of our own files: names, values and lines.
pub(crate) fn keys(content: &'static str) -> Vec<(String, &'static str, u32)> {
    let mut section = "";
    let mut found = Vec::new();
    for (line, number) in content.lines().zip(1..) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name;
        } else if line.starts_with('#') {
        } else if let Some((name, value)) = line.split_once('=') {
            found.push((format!("{section}/{}", name.trim()), value.trim(), number));
        }
    }
    found
}
