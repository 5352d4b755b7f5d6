//! The verbs about single keys: get, set, rm, ls, explain.

use std::path::Path;

use clap::Args;
use milieu_keys::migration::{Fate, Notice};
use milieu_keys::{Key, Name};
use milieu_store::{Change, Store, Strategy, ini};

use super::failure::Failure;
use super::scope::{Scope, name, prefix};
use super::show::{self, Explained, View};
use super::{complete, suggest};
use crate::{files, terminal};

/// Print the value of a key
///
/// The value that is printed is the one that the application gets: the first
/// of those of the user, of the system, and of the specification. It is printed
/// even if it is secret. A value that stands in a file under an old name, and
/// that of a deprecated key, come with a warning.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key get --app weather-station /sw/pi/anna/language
  milieu key get --file station.ini /sw/pi/anna/language
  milieu key get --system --json /sw/pi/%/language")]
pub(super) struct Get {
    /// The key, for example /sw/pi/anna/language
    #[arg(add = complete::names())]
    name: String,
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// Give a key a value
///
/// Only the line of the key changes; comments, order and everything that
/// others write at the same time stay. A value that begins with a dash goes
/// behind `--`. A secret is better given with `--stdin`: others see what stands
/// on command lines.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key set --app weather-station /sw/pi/anna/language de
  milieu key set --file station.ini --spec station.spec.ini /sw/pi/port 8080
  milieu key set --app weather-station -v /sw/pi/anna/motto -- '--help'
  pass show mail | milieu key set --app weather-station --stdin /sw/mail/password")]
pub(super) struct Set {
    /// The key, for example /sw/pi/anna/language
    #[arg(add = complete::names())]
    name: String,
    /// Its value
    #[arg(allow_negative_numbers = true, add = complete::values(), required_unless_present = "stdin")]
    value: Option<String>,
    /// Read the value from standard input, without a line break at its end
    #[arg(long, conflicts_with = "value")]
    stdin: bool,
    /// Print what was replaced
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// Remove keys
///
/// Either all are removed or none. What the system or the specification says
/// comes into force where the user's key is gone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key rm --app weather-station /sw/pi/anna/language
  milieu key rm --app weather-station --recursive /sw/pi/anna")]
pub(super) struct Rm {
    /// The keys, for example /sw/pi/anna/language
    #[arg(required = true, value_name = "NAME", add = complete::names())]
    names: Vec<String>,
    /// Remove what is below the keys as well
    #[arg(short, long)]
    recursive: bool,
    /// Print what was removed
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// List the names of keys
///
/// One name a line, written as in a file: control characters are escaped.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key ls --app weather-station
  milieu key ls --app weather-station --long /sw/pi
  milieu key ls --app weather-station --json | jq -r .value")]
pub(super) struct Ls {
    /// List this key and those below it only
    #[arg(value_name = "PREFIX", add = complete::names())]
    prefix: Option<String>,
    /// Show namespace, value and origin as well
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// Show why a key has its value
///
/// Every place that could give it one is listed in the order in which they are
/// asked, with its file and line; the first that has a value wins. With a
/// specification, the layers that make the name are listed as well.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key explain --app weather-station /sw/pi/anna/language
  milieu key explain --app weather-station --spec station.spec.ini --json /sw/pi/port")]
pub(super) struct Explain {
    /// The key, for example /sw/pi/anna/language
    #[arg(add = complete::names())]
    name: String,
    #[command(flatten)]
    pub(super) scope: Scope,
}

impl Get {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = name(&self.name)?;
        let store = self.scope.open()?;
        let Some(key) = store.lookup(&name) else {
            return Err(suggest::not_found(&name, &store));
        };
        if let Some(schema) = store.schema() {
            schema.check(&key)?;
        }
        for notice in store
            .notices()
            .iter()
            .filter(|notice| is_about(notice, &key))
        {
            terminal::report(&notice.source(), &notice.diagnostics(), self.scope.json);
        }
        let line = if self.scope.json {
            // Whoever asks for a secret gets it.
            View::new(None).object(&key).line()
        } else {
            format!("{}\n", key.value())
        };
        Ok(terminal::print(&line)?)
    }
}

/// Whether a notice says how this key came to its value.
fn is_about(notice: &Notice, key: &Key) -> bool {
    let named = match &notice.fate {
        Fate::Renamed(targets) => targets
            .iter()
            .any(|target| target.name.as_str() == key.name()),
        Fate::Removed(_) | Fate::Deprecated(_) => notice.key.name() == key.name(),
    };
    named && notice.key.origin() == key.origin()
}

impl Set {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = name(&self.name)?;
        let mut store = self.scope.open()?;
        let change = Change::set(name.clone(), self.value()?);
        // Whoever gives a command means it, so it wins over what was written in
        // the moment between reading and writing.
        let commit = self.scope.commit(&mut store, &[change], Strategy::Ours)?;
        if !self.verbose {
            return Ok(());
        }
        let key = store
            .keys()
            .get(self.scope.namespace(), name.as_str())
            .expect("it was just set");
        // A key that has the value already is not written again.
        let before = match commit.replaced.iter().find(|(of, _)| *of == name) {
            Some((_, before)) => before.as_deref(),
            None => Some(key.value()),
        };
        let view = View::of(&store);
        let line = if self.scope.json {
            let before = before.map(|before| view.value(key.name(), before));
            view.object(key).optional("replaced", before).line()
        } else {
            let place = show::origin(key);
            view.change(key.name(), before, Some(key.value()), Some(&place))
        };
        Ok(terminal::print(&line)?)
    }
}

impl Set {
    fn value(&self) -> Result<String, Failure> {
        if let Some(value) = &self.value {
            return Ok(value.clone());
        }
        let mut text = files::read(Path::new("-"), "value")
            .map_err(|why| Failure::unreadable(*why))?
            .text;
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }
}

impl Rm {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let names: Vec<Name> = self
            .names
            .iter()
            .map(|text| name(text))
            .collect::<Result<_, _>>()?;
        let mut store = self.scope.open()?;
        let doomed = self.doomed(&names, &store)?;
        let changes: Vec<Change> = doomed
            .iter()
            .map(|key| {
                Change::remove(Name::parse(key.name()).expect("the name of a key is a name"))
            })
            .collect();
        self.scope.commit(&mut store, &changes, Strategy::Ours)?;
        if !self.verbose {
            return Ok(());
        }
        let view = View::of(&store);
        let lines = doomed.iter().map(|key| match self.scope.json {
            true => view.object(key).line(),
            false => view.long(key),
        });
        Ok(terminal::print(&lines.collect::<String>())?)
    }

    /// The keys that are meant, each once.
    fn doomed(&self, names: &[Name], store: &Store) -> Result<Vec<Key>, Failure> {
        let namespace = self.scope.namespace();
        let mut doomed: Vec<Key> = Vec::new();
        for name in names {
            let below = store
                .keys()
                .below(name.as_str())
                .filter(|key| key.namespace() == namespace);
            let found: Vec<&Key> = below
                .filter(|key| self.recursive || key.name() == name.as_str())
                .collect();
            if found.is_empty() {
                return Err(suggest::not_found_in(namespace, name, store));
            }
            let new: Vec<Key> = found
                .into_iter()
                .filter(|key| !doomed.contains(key))
                .cloned()
                .collect();
            doomed.extend(new);
        }
        Ok(doomed)
    }
}

impl Ls {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let prefix = prefix(self.prefix.as_deref())?;
        let store = self.scope.open()?;
        let view = View::of(&store);
        let mut lines = String::new();
        for key in effective_below(&store, &prefix) {
            if self.scope.json {
                lines.push_str(&view.object(key).line());
            } else if self.long {
                lines.push_str(&view.long(key));
            } else {
                lines.push_str(&ini::encode_name(key.name()));
                lines.push('\n');
            }
        }
        if lines.is_empty() && self.prefix.is_some() {
            return Err(suggest::not_found(&prefix, &store));
        }
        Ok(terminal::print(&lines)?)
    }
}

/// The keys that lookups find, from a name down.
pub(super) fn effective_below<'s>(
    store: &'s Store,
    prefix: &Name,
) -> impl Iterator<Item = &'s Key> {
    let mut last = "";
    let below = store.keys().below(prefix.as_str());
    // Keys of one name stand together, the winner first.
    below.filter(move |key| std::mem::replace(&mut last, key.name()) != key.name())
}

impl Explain {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = name(&self.name)?;
        let store = self.scope.open()?;
        let explanation = store.explain(&name);
        let explained = Explained::new(&store, &explanation);
        terminal::print(&match self.scope.json {
            true => explained.json(),
            false => explained.text(),
        })?;
        if explanation.winner().is_none() {
            return Err(suggest::not_found(&name, &store));
        }
        Ok(())
    }
}
