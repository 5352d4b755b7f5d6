//! `milieu key import`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use milieu_diagnostics::{Diagnostic, Severity, Source};
use milieu_keys::{Key, KeySet, Name, Origin, SourceOf};
use milieu_store::transfer::Target;
use milieu_store::{Change, Entry, Format, Schema, Store, StoreError, format, ini};

use super::complete;
use super::conflict::Conflicts;
use super::failure::{Failure, REFUSED};
use super::mount::formats;
use super::scope::{Scope, prefix};
use super::show::View;
use crate::{files, terminal};

/// Read settings from a text
///
/// Writes what differs: keys that have the same values already are left alone,
/// and with them comments and order. The specification is asked before anything
/// is written. Old names become those of today.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key import --app weather-station backup.json
  milieu key import --app weather-station --at /sw/pi/sensors sensors.toml --dry-run
  ssh station milieu key export --user --format json | milieu key import --format json --replace -")]
pub(super) struct Import {
    /// The text; `-` is standard input
    #[arg(value_name = "FILE")]
    text: PathBuf,
    /// How the text is written; without, as the ending of its name says, or INI
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: Option<String>,
    /// Where the names of the text count from
    #[arg(long, value_name = "NAME", add = complete::names())]
    at: Option<String>,
    /// Remove the keys, below the name of `--at`, that the text does not have
    ///
    /// Secrets stay, since exports leave them out; see `--secrets`.
    #[arg(long)]
    replace: bool,
    /// With `--replace`, remove secrets as well
    #[arg(long, requires = "replace")]
    secrets: bool,
    /// Only print what would change
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print what changes
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    conflicts: Conflicts,
    #[command(flatten)]
    pub(super) scope: Scope,
}

impl Import {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let at = prefix(self.at.as_deref())?;
        let mut store = self.scope.open()?;
        let keys = self.read(&at, store.schema())?;
        let changes = self.changes(&at, &keys, &store);
        if self.dry_run {
            let value = |change: &Change| self.value(&store, &change.name);
            let lines = changes.iter().map(|change| {
                let (old, new) = (value(change), change.value.as_deref());
                self.line(View::of(&store), &change.name, old, new)
            });
            return Ok(terminal::print(&lines.collect::<String>())?);
        }
        let resolve = self.conflicts.resolve(store.schema());
        let commit = self.scope.commit(&mut store, &changes, resolve)?;
        if self.verbose {
            let lines = commit.replaced.iter().map(|(name, old)| {
                let new = self.value(&store, name);
                self.line(View::of(&store), name, old.as_deref(), new)
            });
            terminal::print(&lines.collect::<String>())?;
        }
        Ok(())
    }

    /// The keys of the text, under their whole names of today.
    fn read(&self, at: &Name, schema: Option<&Schema>) -> Result<KeySet, Failure> {
        let format = self.format()?;
        let source = files::read(&self.text, "file").map_err(|why| Failure::unreadable(*why))?;
        let (document, diagnostics) = format.parse(&source.text);
        if !diagnostics.is_empty() {
            return Err(Failure::Store(StoreError::Text {
                source,
                diagnostics,
            }));
        }
        let whole = |entry: Entry<'_>| Entry {
            name: Cow::Owned(at.mounted(&entry.name)),
            value: Cow::Owned(entry.value.into_owned()),
            ..entry
        };
        let entries: Vec<Entry<'_>> = document.keys().map(whole).collect();
        if let Some(schema) = schema {
            self.check(schema, &source, &entries)?;
        }
        let file = Arc::new(SourceOf::File(source.name));
        let key = |entry: &Entry<'_>| {
            let origin = Origin::at(&file, entry.line);
            Key::new(self.scope.namespace(), &entry.name, &entry.value, origin)
        };
        let keys: KeySet = entries.iter().map(key).collect();
        let Some(schema) = schema else {
            return Ok(keys);
        };
        let (mut keys, _) = schema.migrate(keys);
        // What is left under a name that nobody knows is no more.
        keys.retain(|key| schema.find(key.name()).is_some());
        Ok(keys)
    }

    /// Refuses what a commit would refuse, with the places in the text.
    fn check(
        &self,
        schema: &Schema,
        source: &Source,
        entries: &[Entry<'_>],
    ) -> Result<(), Failure> {
        let (source, mut found) = schema.check_file(source, entries.iter().cloned());
        for unknown in found
            .iter_mut()
            .filter(|found| found.code == Some("unknown-key"))
        {
            unknown.severity = Severity::Error;
        }
        if found.iter().any(Diagnostic::is_error) {
            return Err(Failure::Reported {
                source,
                diagnostics: found,
                code: REFUSED,
            });
        }
        terminal::report(&source, &found, self.scope.json);
        Ok(())
    }

    fn format(&self) -> Result<&'static dyn Format, Failure> {
        if let Some(format) = self.format.as_deref().and_then(format::by_name) {
            return Ok(format);
        }
        match Target::of_path(&self.text) {
            Some(Target::Format(format)) => Ok(format),
            None => Ok(&ini::Ini),
            Some(Target::Yaml) => {
                let known = formats().join(", ");
                let diagnostic = Diagnostic::error("YAML is only written, not read")
                    .help(format!("convert the file to one of {known}"));
                let path = self.text.display().to_string();
                Err(Failure::new(path, diagnostic, terminal::ERROR))
            }
        }
    }

    /// What has to change so that the namespace has these keys.
    fn changes(&self, at: &Name, keys: &KeySet, store: &Store) -> Vec<Change> {
        let namespace = self.scope.namespace();
        let view = View::of(store);
        let below = store.keys().below(at.as_str());
        let is_gone = |key: &&Key| {
            let is_kept = view.is_secret(key.name()) && !self.secrets;
            let is_there = keys.get(namespace, key.name()).is_some();
            self.replace && key.namespace() == namespace && !is_there && !is_kept
        };
        let name = |key: &Key| Name::parse(key.name()).expect("the name of a key is a name");
        let removed = below.filter(is_gone).map(|key| Change::remove(name(key)));
        let differs = |key: &&Key| {
            let now = store.keys().get(namespace, key.name());
            now.map(Key::value) != Some(key.value())
        };
        let set = keys.iter().filter(differs);
        removed
            .chain(set.map(|key| Change::set(name(key), key.value())))
            .collect()
    }

    fn value<'s>(&self, store: &'s Store, name: &Name) -> Option<&'s str> {
        let key = store.keys().get(self.scope.namespace(), name.as_str());
        key.map(Key::value)
    }

    fn line(&self, view: View<'_>, name: &Name, old: Option<&str>, new: Option<&str>) -> String {
        match self.scope.json {
            true => view.change_object(name.as_str(), old, new).line(),
            false => view.change(name.as_str(), old, new, None),
        }
    }
}
