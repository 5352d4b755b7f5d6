//! `milieu key export`.

use std::path::{Path, PathBuf};

use clap::Args;
use milieu_diagnostics::{Diagnostic, Severity, Source};
use milieu_keys::{Key, Name, Namespace};
use milieu_store::transfer::Target;
use milieu_store::{Kind, Store, ini};

use super::complete;
use super::failure::Failure;
use super::scope::{Scope, prefix};
use super::show::View;
use super::suggest;
use super::verbs::effective_below;
use crate::files::{self, Audience};
use crate::terminal;

/// Print settings as one text
///
/// Without an option, these are the values that the application gets: those of
/// the user, of the system and of the specification; with `--user`, `--system`
/// or `--file` what is in those files. Names count from PREFIX, as those in a
/// file that is mounted there: `import --at PREFIX` reads them again.
///
/// Secrets are left out unless `--secrets` asks for them; a file that holds one
/// is readable by its owner alone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key export --app weather-station --format yaml
  milieu key export --app weather-station --user -o backup.json
  milieu key export --app weather-station /sw/pi/sensors -o sensors.toml")]
pub(super) struct Export {
    /// Only this key and those below it
    #[arg(value_name = "PREFIX", add = complete::names())]
    prefix: Option<String>,
    /// How the text is written; without, as the ending of the output's name says, or INI
    #[arg(long, value_name = "FORMAT", value_parser = targets())]
    format: Option<String>,
    /// Where to write, whole or not at all; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// The values that the application gets, which is what is meant without an option
    #[arg(long, conflicts_with_all = ["user", "system", "file"])]
    effective: bool,
    /// With the values of secrets
    #[arg(long)]
    secrets: bool,
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// The names of what can be written, for the parser and its help.
fn targets() -> Vec<&'static str> {
    Target::all().map(|target| target.name()).collect()
}

impl Export {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let prefix = prefix(self.prefix.as_deref())?;
        let store = self.scope.open()?;
        let all: Vec<&Key> = effective_below(&store, &prefix)
            .filter(|key| self.is_meant(key))
            .collect();
        if all.is_empty() && self.prefix.is_some() {
            return Err(suggest::not_found(&prefix, &store));
        }
        let view = View::of(&store);
        let is_open = |key: &&Key| self.secrets || !view.is_secret(key.name());
        let (keys, left_out): (Vec<&Key>, Vec<&Key>) = all.into_iter().partition(is_open);
        let text = self.text(&store, &prefix, &keys)?;
        let has_secret = keys.iter().any(|key| view.is_secret(key.name()));
        if self.out == Path::new("-") {
            terminal::print(&text)?;
        } else {
            let audience = match has_secret {
                true => Audience::Owner,
                false => Audience::Usual,
            };
            files::write_whole(&self.out, &text, audience)
                .map_err(|error| self.failed(format!("cannot write the output: {error}")))?;
        }
        self.tell_of(&left_out);
        Ok(())
    }

    /// Defaults are no setting of anybody.
    fn is_meant(&self, key: &Key) -> bool {
        let scope = &self.scope;
        let is_part = scope.user || scope.system || scope.file.is_some();
        !is_part || key.namespace() != Namespace::Default
    }

    fn text(&self, store: &Store, prefix: &Name, keys: &[&Key]) -> Result<String, Failure> {
        let names = keys.iter().map(|key| {
            let name = Name::parse(key.name()).expect("the name of a key is a name");
            let kind = store.kind_of(&name);
            (name.below(prefix).expect("it is below"), kind)
        });
        let names: Vec<(Name, Kind)> = names.collect();
        let keys = names.iter().zip(keys);
        let keys = keys.map(|((name, kind), key)| (name, key.value(), *kind));
        let mut keys: Vec<(&Name, &str, Kind)> = keys.collect();
        keys.sort_by_key(|(name, ..)| in_sections(name));
        self.target().export(keys).map_err(|error| {
            let diagnostic = Diagnostic::error(format!("cannot export this: {error}"));
            let place = self.out.display().to_string();
            Failure::new(place, diagnostic.help(error.help), terminal::ERROR)
        })
    }

    fn target(&self) -> Target {
        let named = self.format.as_deref().and_then(Target::by_name);
        let by_ending = || Target::of_path(&self.out);
        let json = || Target::by_name("json").filter(|_| self.scope.json);
        let usual = Target::Format(&ini::Ini);
        named.or_else(by_ending).or_else(json).unwrap_or(usual)
    }

    fn tell_of(&self, left_out: &[&Key]) {
        if left_out.is_empty() {
            return;
        }
        let names = left_out.iter().map(|key| ini::encode_name(key.name()));
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        let message = format!("left out, since secret: {}", names.join(", "));
        let note = Diagnostic::new(Severity::Note, message).help("`--secrets` has them as well");
        let place = Source::new(self.out.display().to_string(), "");
        terminal::report(&place, &[note], self.scope.json);
    }

    fn failed(&self, message: String) -> Failure {
        let diagnostic = Diagnostic::error(message)
            .help("give another file, or see to its folder; what stood there is unchanged");
        Failure::new(self.out.display().to_string(), diagnostic, terminal::ERROR)
    }
}

/// Sorts names as people write files: the keys of a section before those of
/// deeper ones. A key in no section comes last, since an INI file that begins
/// with one gets no sections.
fn in_sections(name: &Name) -> Vec<(bool, &str)> {
    let deepest = name.levels().count().saturating_sub(1);
    let levels = name.levels().enumerate();
    let key = levels.map(|(at, level)| {
        let is_section = at < deepest;
        let is_later = if at == 0 { !is_section } else { is_section };
        (is_later, level)
    });
    key.collect()
}
