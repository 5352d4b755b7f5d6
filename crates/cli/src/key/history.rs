//! `milieu key log` and `milieu key undo`.

use clap::Args;
use jiff::{Timestamp, tz::TimeZone};
use milieu_store::{Changed, Logged, ini};

use super::complete;
use super::conflict::Conflicts;
use super::failure::Failure;
use super::json::Object;
use super::scope::{Scope, name};
use super::show::{View, program};
use crate::terminal;

/// Show the last changes, the newest first
///
/// Changes by this command and by programs with Milieu are noted beside each
/// file, with who made them and when, up to some hundred kilobytes. Changes by
/// hand are not.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key log --app weather-station
  milieu key log --app weather-station -n 3 /sw/pi/anna")]
pub(super) struct Log {
    /// Only changes of this key and those below it
    #[arg(value_name = "PREFIX", add = complete::names())]
    prefix: Option<String>,
    /// At most so many
    #[arg(short, long, value_name = "COUNT", default_value_t = 20)]
    number: usize,
    #[command(flatten)]
    pub(super) scope: Scope,
}

/// Take back a change
///
/// Every key of the change gets the value that it had before. A key that has
/// changed since is a conflict.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key undo --app weather-station
  milieu key undo --app weather-station 7")]
pub(super) struct Undo {
    /// The number of the change, as `milieu key log` shows it; without, the last one
    #[arg(value_name = "NUMBER")]
    id: Option<u64>,
    #[command(flatten)]
    conflicts: Conflicts,
    #[command(flatten)]
    pub(super) scope: Scope,
}

impl Log {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let prefix = self.prefix.as_deref().map(name).transpose()?;
        let concerns = |change: &Changed| {
            let prefix = prefix.as_ref();
            prefix.is_none_or(|prefix| change.name.is_below_or_same(prefix.as_str()))
        };
        let store = self.scope.open()?;
        let view = View::of(&store);
        let log = store.log()?;
        let mut text = String::new();
        let chosen = log.iter().rev();
        let chosen = chosen.filter(|logged| logged.record.changes.iter().any(concerns));
        for logged in chosen.take(self.number) {
            let changes = logged
                .record
                .changes
                .iter()
                .filter(|change| concerns(change));
            if self.scope.json {
                changes.for_each(|change| text.push_str(&json(view, logged, change)));
            } else {
                text.push_str(&heading(logged));
                changes.for_each(|change| text.push_str(&line(view, change)));
            }
        }
        Ok(terminal::print(&text)?)
    }
}

impl Undo {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let mut store = self.scope.open()?;
        let namespace = self.scope.namespace();
        let resolve = self.conflicts.resolve(store.schema());
        let (logged, commit) = store.undo(namespace, self.id, resolve)?;
        self.scope.tell_if_unlogged(&commit);
        let view = View::of(&store);
        let back = |change: &Changed| Changed {
            old: change.new.clone(),
            new: change.old.clone(),
            ..change.clone()
        };
        let taken =
            |change: &&Changed| commit.replaced.iter().any(|(name, _)| *name == change.name);
        let changes = logged.record.changes.iter().filter(taken).map(back);
        let text = match self.scope.json {
            true => changes.map(|change| json(view, &logged, &change)).collect(),
            false => {
                let heading = format!("took back {}", heading(&logged));
                changes.fold(heading, |text, change| text + &line(view, &change))
            }
        };
        Ok(terminal::print(&text)?)
    }
}

/// `7  2026-11-21 23:10:15  anna  weather-station (4711)`
fn heading(logged: &Logged) -> String {
    let record = &logged.record;
    let time = Timestamp::try_from(record.time).unwrap_or_default();
    let time = time.to_zoned(TimeZone::system());
    let time = time.strftime("%Y-%m-%d %H:%M:%S");
    let state = match (record.undoes, logged.undone_by) {
        (_, Some(by)) => format!("  (taken back by {by})"),
        (Some(of), _) => format!("  (takes back {of})"),
        _ => String::new(),
    };
    let (id, user) = (record.id, ini::encode_value(&record.author.user));
    format!("{id}  {time}  {user}  {}{state}\n", program(&record.author))
}

/// `   /sw/pi/anna/language = de  (was en)`
fn line(view: View<'_>, change: &Changed) -> String {
    let (name, old, new) = (change.name.as_str(), &change.old, &change.new);
    match (old, new) {
        // Nobody noted what it was and is.
        (None, None) => format!("   {}  (secret)\n", ini::encode_name(name)),
        (old, new) => format!(
            "   {}",
            view.change(name, old.as_deref(), new.as_deref(), None)
        ),
    }
}

fn json(view: View<'_>, logged: &Logged, change: &Changed) -> String {
    let record = &logged.record;
    let time = Timestamp::try_from(record.time).unwrap_or_default();
    let name = change.name.as_str();
    let shown = |value: &'_ Option<String>| Some(view.value(name, value.as_deref()?).to_owned());
    Object::new()
        .number("id", Some(record.id))
        .text("time", &time.to_string())
        .author(Some(&record.author))
        .number("undoes", record.undoes)
        .number("undone_by", logged.undone_by)
        .text("file", &logged.path.display().to_string())
        .text("namespace", logged.namespace.as_str())
        .text("name", name)
        .optional("old", shown(&change.old).as_deref())
        .optional("new", shown(&change.new).as_deref())
        .flag("secret", change.secret || view.is_secret(name))
        .line()
}
