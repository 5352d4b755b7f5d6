//! What a program writes, line by line.
//!
//! ```
//! use milieu_adapters::{Format, command};
//!
//! // Started again whenever it ends:
//! let movements = command::lines("libinput", ["debug-events"]);
//! // Run every minute:
//! let minute = std::time::Duration::from_secs(60);
//! let visitors = command::shell("who | wc -l").format(Format::number()).every(minute);
//! ```
//!
//! Properties kept:
//! - a program that ends is started again, after a second, then two, up to a
//!   minute, and at once quickly again after it has run for ten seconds;
//! - while it fails, the status says how it ended and what it said last on its
//!   standard error;
//! - it runs in a process group of its own, which is killed with the source, and
//!   when the program itself ends, so that nothing of it stays behind;
//! - its standard input is empty, and it is never waited for.
//!
//! The program has the rights of the process that polls the source.

mod running;

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use milieu_stream::{Feed, Source, Wait};
use milieu_transfer::{Span, Time};

use crate::failure::Failure;
use crate::format::{Format, Published};
use crate::interval::Interval;
use running::{Ended, Running};

/// The first pause before a program is started again.
const PAUSE: Span = Span::from_seconds(1);

/// The longest pause.
const PAUSE_MAX: Span = Span::from_seconds(60);

/// A program that has run for so long is not one that fails when it starts.
const HEALTHY: Span = Span::from_seconds(10);

/// A program whose output lines are events.
#[derive(Debug)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    variables: Vec<(OsString, OsString)>,
    lines: Published,
    after: After,
    running: Option<Running>,
    /// When it is started next, if it does not run.
    due: Time,
    pause: Span,
    has_failed: bool,
    has_started: bool,
}

/// What happens after the program has ended.
#[derive(Clone, Copy, Debug)]
enum After {
    Restart,
    Every(Interval),
    End,
}

/// The lines of a program that is to run all the time, each as a
/// [`Text`](crate::Text).
#[must_use]
pub fn lines(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    let program = program.as_ref().to_owned();
    Command {
        lines: Published::new(format_args!("`{}`", program.to_string_lossy())),
        program,
        arguments: arguments
            .into_iter()
            .map(|argument| argument.as_ref().to_owned())
            .collect(),
        folder: None,
        variables: Vec::new(),
        after: After::Restart,
        running: None,
        due: Time::MIN,
        pause: PAUSE,
        has_failed: false,
        has_started: false,
    }
}

/// The lines of what `sh` makes of this text; see [`lines`].
#[must_use]
pub fn shell(script: &str) -> Command {
    let mut command = lines("sh", ["-c", script]);
    command.lines = Published::new(format_args!("`{script}`"));
    command
}

impl Command {
    /// What the lines become.
    #[must_use]
    pub fn format(mut self, format: Format) -> Command {
        self.lines.format(format);
        self
    }

    /// Runs the program every so often instead of all the time; one that takes
    /// longer delays the next.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Command {
        self.after = After::Every(Interval::new(interval));
        self
    }

    /// Runs the program once.
    #[must_use]
    pub fn once(mut self) -> Command {
        self.after = After::End;
        self
    }

    /// Runs the program in this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Command {
        self.folder = Some(folder.into());
        self
    }

    /// Sets an environment variable of the program.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn start(&mut self, feed: &mut Feed<'_>) {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        self.lines.restart();
        match Running::start(command, feed.now()) {
            Ok(running) => {
                self.running = Some(running);
                if !std::mem::replace(&mut self.has_started, true) && !self.has_failed {
                    feed.working();
                }
            }
            Err(error) => {
                let reason = format!("it cannot be started: {error}; is it installed and in PATH?");
                self.fail(feed, &reason);
            }
        }
    }

    /// Says why the program fails, and when it is started again.
    fn fail(&mut self, feed: &mut Feed<'_>, reason: &str) {
        let place = self.lines.place();
        self.has_failed = true;
        if matches!(self.after, After::Restart) {
            self.due = feed.now() + self.pause;
            let seconds = self.pause.seconds();
            let reason = format!("{reason}; it is started again in {seconds} s");
            feed.failing(Failure::new(place, reason));
            let doubled = Span::from_nanoseconds(self.pause.nanoseconds().saturating_mul(2));
            self.pause = doubled.min(PAUSE_MAX);
        } else {
            feed.failing(Failure::new(place, reason));
        }
    }

    fn ended(&mut self, feed: &mut Feed<'_>, ended: &Ended) {
        self.lines.finish(feed);
        if ended.has_run >= HEALTHY {
            self.pause = PAUSE;
        }
        if ended.is_success && !matches!(self.after, After::Restart) {
            if std::mem::take(&mut self.has_failed) {
                feed.working();
            }
        } else {
            self.fail(feed, &ended.to_string());
        }
    }

    /// Whether it is time to start the program.
    fn begins(&mut self, now: Time) -> bool {
        match &mut self.after {
            After::Every(interval) => interval.begins(now),
            // A clock that was set back must not make the pause longer.
            _ => self.due <= now || self.due - now > PAUSE_MAX,
        }
    }
}

impl Source for Command {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        if self.running.is_none() && self.begins(feed.now()) {
            self.start(feed);
        }
        let Some(running) = &mut self.running else {
            return match &self.after {
                After::Every(interval) => interval.wait(),
                After::Restart => Wait::Until(self.due),
                // It could not be started.
                After::End => Wait::Ended,
            };
        };
        let before = feed.published();
        let ended = running.read(feed, &mut self.lines);
        let is_healthy = feed.now() - running.started() >= HEALTHY;
        if self.has_failed && (is_healthy || feed.published() > before) {
            self.has_failed = false;
            feed.working();
        }
        let Some(ended) = ended else {
            return running.wait(feed.now(), self.has_failed.then_some(HEALTHY));
        };
        self.running = None;
        self.ended(feed, &ended);
        match &self.after {
            After::Restart => Wait::Until(self.due),
            After::Every(interval) => interval.wait(),
            After::End => Wait::Ended,
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.running.as_ref()?.descriptor())
    }
}
