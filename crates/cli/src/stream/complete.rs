//! Names of programs, streams, operators and sources for the completion of shells.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

use clap::{ArgMatches, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use milieu::Control;
use milieu::stream::operators;
use milieu_adapters::catalogue;

use super::attach::{Program, Running};
use crate::completion::{next_level, verb_so_far};

/// How long a program is waited for: whoever presses a key does not wait longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Completes the application of a program that runs.
pub(super) fn apps() -> ArgValueCompleter {
    completer(|_| running().into_iter().map(|it| (it.app, None)).collect())
}

/// Completes the number of a program that runs.
pub(super) fn processes() -> ArgValueCompleter {
    completer(|_| {
        let named = |it: Running| (it.process.to_string(), Some(it.app));
        running().into_iter().map(named).collect()
    })
}

/// Completes a name of the program that is meant.
pub(super) fn names() -> ArgValueCompleter {
    completer(|written| levels(written, &names_so_far()))
}

/// Completes a flow: names, and behind a `|` operators.
pub(super) fn flows() -> ArgValueCompleter {
    completer(|written| {
        let start = written.rfind(['|', ',', '(']).map_or(0, |at| at + 1);
        let (before, stage) = written.split_at(start);
        let word = stage.trim_start();
        let before = format!("{before}{}", &stage[..stage.len() - word.len()]);
        let offered = match before.trim_end().ends_with('|') {
            true => operators::pages()
                .iter()
                .map(|page| {
                    (
                        page.definition.name.to_owned(),
                        Some(page.definition.summary),
                    )
                })
                .map(|(name, summary)| (name, summary.map(str::to_owned)))
                .collect(),
            false => levels(word, &names_so_far()),
        };
        let whole = |(word, help)| (format!("{before}{word}"), help);
        offered.into_iter().map(whole).collect()
    })
}

/// Completes a source behind the name that it gets.
pub(super) fn sources() -> ArgValueCompleter {
    completer(|written| {
        let Some((name, _)) = written.split_once('=') else {
            return Vec::new();
        };
        let source = |it: &catalogue::Definition| {
            (format!("{name}={}", it.name), Some(it.summary.to_owned()))
        };
        catalogue::all().map(source).collect()
    })
}

/// What may stand there, with a word about it.
type Offered = Vec<(String, Option<String>)>;

/// Offers what begins as what is written.
fn completer(offered: impl Fn(&str) -> Offered + Send + Sync + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let written = current.to_str().unwrap_or_default();
        let offered: BTreeSet<_> = offered(written).into_iter().collect();
        let fitting = offered
            .into_iter()
            .filter(|(word, _)| word.starts_with(written));
        let candidate = |(word, help): (String, Option<String>)| {
            CompletionCandidate::new(word).help(help.map(Into::into))
        };
        fitting.map(candidate).collect()
    })
}

fn running() -> Vec<Running> {
    // A shell that asks wants an answer and no errors.
    let sockets = Control::sockets().unwrap_or_default();
    sockets.into_iter().filter_map(Running::of).collect()
}

/// Names, level by level as a shell does with folders.
fn levels(written: &str, names: &[String]) -> Offered {
    let next = names.iter().filter_map(|name| next_level(written, name));
    next.map(|name| (name, None)).collect()
}

/// The names that the line speaks of: those of the sources on it, or else of the
/// program that is meant.
fn names_so_far() -> Vec<String> {
    let verb = verb_so_far();
    let sources = verb.as_ref().and_then(own).unwrap_or_default();
    if !sources.is_empty() {
        return sources;
    }
    verb.and_then(|verb| attached(&verb)).unwrap_or_default()
}

fn own(verb: &ArgMatches) -> Option<Vec<String>> {
    let given = verb.try_get_many::<String>("sources").ok()??;
    let names = given.filter_map(|source| source.split_once('='));
    Some(names.map(|(name, _)| name.to_owned()).collect())
}

fn attached(verb: &ArgMatches) -> Option<Vec<String>> {
    let mut program = Program::from_arg_matches(verb).ok()?.attach().ok()?;
    program.patience = PATIENCE;
    let names = program.list("/**").ok()?;
    let names = names.iter();
    let names = names.filter_map(|name| Some(name["name"].as_str()?.to_owned()));
    Some(names.collect())
}
