//! Keys that somebody has to give a value: the metadata `require`.
//!
//! A file, an option, a variable or the program may give it, so that only a
//! coordinator, which has them all, can tell that nobody does.

use std::fmt;

use milieu_context::{Coordinator, Description};
use milieu_keys::Pattern;
#[cfg(feature = "options")]
use milieu_keys::{Options, options::Program};

/// A key that nobody gives a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The key, with its placeholders.
    pub pattern: String,
    /// What gives it a value: `give option --port`, `set variable PORT`, `write
    /// it into ~/.config/server/server.ini`.
    pub remedies: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: nobody gives it a value, and somebody has to (rule require)",
            self.pattern
        )?;
        for (i, remedy) in self.remedies.iter().enumerate() {
            f.write_str(if i == 0 { "; " } else { ", or " })?;
            f.write_str(remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Missing {}

/// The keys of an environment that somebody has to give a value and nobody does.
pub(crate) fn missing(
    environment: &Description,
    coordinator: &Coordinator,
    file: Option<&str>,
) -> Vec<Missing> {
    let required = environment
        .values()
        .iter()
        .filter(|value| value.metadata.iter().any(|(key, _)| *key == "require"));
    // The derive and the compiler have parsed the patterns before.
    let mut required: Vec<_> = required
        .filter_map(|value| Some((value, Pattern::parse(value.pattern).ok()?)))
        .collect();
    if required.is_empty() {
        return Vec::new();
    }
    let held = coordinator.require_lock();
    let entries = held.entries();
    let gives = |name: &str, pattern: &Pattern| {
        // An array is given by its first element.
        let array = name.strip_suffix('0').filter(|name| name.ends_with("/#"));
        pattern.matches(array.unwrap_or(name))
    };
    required.retain(|(_, pattern)| !entries.iter().any(|entry| gives(entry.name, pattern)));
    let named = |(value, _): &(&milieu_context::Descriptor, _)| Missing {
        pattern: value.pattern.into(),
        remedies: remedies(value, file),
    };
    required.iter().map(named).collect()
}

fn remedies(value: &milieu_context::Descriptor, file: Option<&str>) -> Vec<String> {
    let mut remedies = options(value);
    remedies.extend(file.map(|file| format!("write it into {file}")));
    if remedies.is_empty() {
        remedies.push("assign it before the first context".into());
    }
    remedies
}

#[cfg(not(feature = "options"))]
fn options(_: &milieu_context::Descriptor) -> Vec<String> {
    Vec::new()
}

/// What the command line and variables can do about it.
#[cfg(feature = "options")]
fn options(value: &milieu_context::Descriptor) -> Vec<String> {
    let mut remedies = Vec::new();
    let options = Options::new(Program::default(), [(value.pattern, value.metadata)]);
    for entry in options.iter().flat_map(Options::entries) {
        if let Some(option) = entry.spelling() {
            remedies.push(format!("give option {option}"));
        } else if entry.position().is_some() {
            remedies.push(format!("give argument {}", entry.placeholder()));
        }
        let variables = entry.variables().iter();
        remedies.extend(variables.map(|variable| format!("set variable {variable}")));
    }
    remedies
}
