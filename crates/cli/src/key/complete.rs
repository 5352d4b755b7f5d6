//! Names and values of keys for the completion of shells.

use std::any::Any;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use clap::ArgMatches;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use milieu_keys::{Namespace, Rules, Type};
use milieu_store::{Place, Schema, Store, ini};

use super::scope::{locations, name, specification};
use crate::completion::{next_level, verb_so_far};

/// Completes the name of a key, level by level as a shell does with folders.
pub(super) fn names() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let written = current.to_str().unwrap_or_default();
        // A shell that asks wants an answer and no errors.
        let names = Line::so_far().and_then(|line| line.names());
        let names = names.unwrap_or_default();
        let names: BTreeSet<String> = names
            .iter()
            .filter_map(|n| next_level(written, n))
            .collect();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// Completes the value of a key for which there is a choice.
pub(super) fn values() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let written = current.to_str().unwrap_or_default();
        let values = Line::so_far().and_then(|line| line.choices());
        let mut values = values.unwrap_or_default();
        values.retain(|value| value.starts_with(written));
        values.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// The command line that is being written, as far as it can be understood.
struct Line(ArgMatches);

impl Line {
    fn so_far() -> Option<Line> {
        verb_so_far().map(Line)
    }

    /// The names of keys that the line speaks of, as files write them.
    fn names(&self) -> Option<Vec<String>> {
        let places = match self.get::<PathBuf>("file") {
            Some(file) => vec![Place::new(Namespace::User, file)],
            None => locations()
                .mounted_places(self.get::<String>("app")?)
                .ok()?,
        };
        let mut store = Store::read(places).ok()?;
        if let Some(schema) = self.schema() {
            store = store.with_schema(schema);
        }
        let names = store.keys().effective();
        let written = names.map(|key| ini::encode_name(key.name()).into_owned());
        Some(written.collect())
    }

    /// The values between which there is a choice.
    fn choices(&self) -> Option<Vec<String>> {
        let name = name(self.get::<String>("name")?).ok()?;
        let schema = self.schema()?;
        let rules = Rules::from_metadata(&schema.find(name.as_str())?.borrowed()).ok()?;
        Some(match rules.type_() {
            Type::Boolean => vec!["true".to_owned(), "false".to_owned()],
            _ => rules.variants().to_vec(),
        })
    }

    fn schema(&self) -> Option<Schema> {
        let given = self.get::<PathBuf>("spec").cloned();
        Schema::read(&specification(given)?).ok()
    }

    fn get<T: Any + Clone + Send + Sync>(&self, id: &str) -> Option<&T> {
        self.0.try_get_one(id).ok().flatten()
    }
}
