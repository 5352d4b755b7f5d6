//! `milieu key watch`.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use clap::Args;
use milieu_diagnostics::{Diagnostic, Severity, Source};
use milieu_keys::{Key, KeySet};
use milieu_store::watch::{self, Change, Changes, FileNews, Filter, News, Pace};
use milieu_store::{Schema, Store, ini};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::complete;
use super::failure::{Failure, NOT_FOUND, shown};
use super::scope::{Scope, prefix};
use super::show::{self, View};
use crate::terminal;

/// Print changes as they happen
///
/// One line for each key that gets another value, whoever changes its file, with
/// who that was where the file's history knows: it does not know of editors. It
/// goes on until the reader leaves or an interrupt (Ctrl-C) or SIGTERM comes. What
/// happens to files as a whole, such as that one cannot be understood, goes to
/// standard error; its keys stay in force meanwhile.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key watch --app weather-station
  milieu key watch --app weather-station --json /sw/pi | jq -r .new
  milieu key watch --app weather-station --count 1 --timeout 60 /sw/pi/anna/language")]
pub(super) struct Watch {
    /// Only changes of this key and those below it
    #[arg(value_name = "PREFIX", add = complete::names())]
    prefix: Option<String>,
    /// Begin with all keys that are there
    #[arg(long)]
    initial: bool,
    /// End after so many changes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds, with exit code 1 if `--count` wants more changes
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    pub(super) scope: Scope,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "give a number of seconds from 0".to_owned())
}

impl Watch {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let deadline = self
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let prefix = prefix(self.prefix.as_deref())?;
        let told = signals()?;
        let store = self.scope.open()?;
        let watch = watch::Watch::start(&store, Pace::default())?;
        let known = match self.initial {
            true => KeySet::new(),
            false => store.keys().clone(),
        };
        let changes = watch.changes(&known, Filter::all().below(prefix));
        // Without a watch there are no more changes, which ends the loop.
        std::thread::spawn(move || {
            until_told(&told);
            drop(watch);
        });
        let mut left = self.count;
        while left != Some(0) {
            match next(&changes, deadline) {
                Ok(news) => self.print(&store, &news, &mut left)?,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if left.is_some() => {
                    return Err(Failure::Ended(NOT_FOUND));
                }
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        Ok(())
    }

    fn print(&self, store: &Store, news: &News, left: &mut Option<u64>) -> Result<(), Failure> {
        for file in &news.files {
            let (source, diagnostics) = diagnostics(file, store.schema());
            terminal::report(&source, &diagnostics, self.scope.json);
        }
        let wanted = left.map_or(usize::MAX, |left| {
            usize::try_from(left).unwrap_or(usize::MAX)
        });
        let wanted = &news.changes[..news.changes.len().min(wanted)];
        let lines = wanted
            .iter()
            .map(|change| self.line(View::of(store), change));
        terminal::print(&lines.collect::<String>())?;
        *left = left.map(|left| left.saturating_sub(wanted.len() as u64));
        Ok(())
    }

    fn line(&self, view: View<'_>, change: &Change) -> String {
        let Change {
            name, old, new, by, ..
        } = change;
        let (old_value, new_value) = (old.as_ref().map(Key::value), new.as_ref().map(Key::value));
        let name = name.as_str();
        // Of a key that is gone, where it stood.
        let Some(key) = new.as_ref().or(old.as_ref()) else {
            return String::new();
        };
        if self.scope.json {
            return view
                .change_object(name, old_value, new_value)
                .text("namespace", key.namespace().as_str())
                .origin(&key.origin().source, key.origin().line)
                .author(by.as_ref())
                .line();
        }
        let mut place = show::origin(key);
        if let Some(by) = by {
            let user = ini::encode_value(&by.user);
            place = format!("{place}; {user}, {}", show::program(by));
        }
        view.change(name, old_value, new_value, Some(&place))
    }
}

/// Waits for news, at most until the deadline if there is one.
fn next(changes: &Changes, deadline: Option<Instant>) -> Result<News, RecvTimeoutError> {
    match deadline {
        None => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(deadline) => changes.recv_timeout(deadline.saturating_duration_since(Instant::now())),
    }
}

/// What there is to say about a file as a whole.
fn diagnostics(news: &FileNews, schema: Option<&Schema>) -> (Source, Vec<Diagnostic>) {
    let note = |message| Diagnostic::new(Severity::Note, message);
    let of = |diagnostic| {
        let place = Source::new(news.path().display().to_string(), "");
        (place, vec![diagnostic])
    };
    match news {
        FileNews::Invalid { error, .. } => {
            let (source, mut diagnostics) = shown(error, schema);
            if let Some(last) = diagnostics.pop() {
                diagnostics.push(last.note("what the file said before stays in force"));
            }
            (source, diagnostics)
        }
        FileNews::Valid { .. } => of(note("the file is valid again")),
        FileNews::Unwatched { error, .. } => {
            let (_, diagnostics) = shown(error, schema);
            let why = diagnostics.into_iter().map(|found| found.message);
            let warning = Diagnostic::warning("the file is looked at in intervals only");
            of(why.fold(warning, Diagnostic::note))
        }
        _ => of(note("something happened to the file")),
    }
}

/// What can be read once somebody wants this process to end.
fn signals() -> io::Result<UnixStream> {
    let (told, tell) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, tell.try_clone()?)?;
    }
    Ok(told)
}

/// Waits until there is a signal, or nobody reads the output any more.
fn until_told(told: &UnixStream) {
    let output = io::stdout();
    let mut both = [
        PollFd::new(told, PollFlags::IN),
        PollFd::new(&output, PollFlags::empty()),
    ];
    while poll(&mut both, None) == Err(rustix::io::Errno::INTR) {}
}
