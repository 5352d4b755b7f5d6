//! `milieu thread`: gives threads the processor time and the stack that they need.

mod mediate;
mod notify;
mod probe;
mod profile;
mod run;
mod top;
mod zones;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use milieu_diagnostics::{Diagnostic, Source};
use milieu_threads::run::Settings;
use milieu_threads::stack::Policy;

use crate::terminal;

/// Give every thread the processor time and the stack that it needs
///
/// Programs need not know of Milieu: `run` starts them so that their threads are
/// served. `top` shows all threads, `profile` what was learned of their stacks.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Bounds of the zones of stacks are those of `--zones`, else of the variable
MILIEU_THREAD_ZONES (`25,75`), else of the file /etc/milieu/threads.toml, or the one
that MILIEU_THREAD_SETTINGS names (`zones = [25, 75]`), else 25 and 75 percent.

Exit codes, of every verb; `run` ends as its program does:
  0    done
  2    wrong usage, what is asked for cannot be done here, or a program that cannot
       be served: it is static, for another C library or machine, or setuid
  125  the program could not be started, 126 it is not executable, 127 it is not there"
)]
pub(crate) struct Thread {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Run),
    Top(top::Top),
    Profile(profile::Profile),
    Mediate(mediate::Mediate),
    Probe(probe::Probe),
}

impl Thread {
    pub(crate) fn run(&self) -> ExitCode {
        let (result, json) = match &self.verb {
            Verb::Run(run) => (run.run(), run.json),
            Verb::Profile(profile) => (profile.run(), profile.json),
            Verb::Top(top) => (top.run(), top.json),
            Verb::Mediate(mediate) => (mediate.run(), mediate.json),
            Verb::Probe(probe) => (probe.run(), probe.json),
        };
        match result {
            Ok(code) => code,
            Err(Failure::Output(error)) => terminal::finish(Err(error)),
            Err(Failure::Wrong(source, found, code)) => {
                terminal::report(&source, &found, json);
                ExitCode::from(code)
            }
        }
    }
}

/// Why a verb did not do what it was asked for.
enum Failure {
    /// The result could not be written.
    Output(std::io::Error),
    /// Something is wrong, to be said with this exit code.
    Wrong(Source, Vec<Diagnostic>, u8),
}

impl Failure {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Failure {
        let found = Diagnostic::error(message).help(help);
        let place = Source::new("the command line", "");
        Failure::Wrong(place, vec![found], terminal::ERROR)
    }
}

type Outcome<T = ExitCode> = std::result::Result<T, Failure>;

/// Writes to standard output.
fn print(text: &str) -> Outcome {
    let printed = terminal::print(text).map_err(Failure::Output);
    printed.map(|()| ExitCode::SUCCESS)
}

/// Reads how small stacks may become, in bytes.
fn floor(text: &str) -> std::result::Result<u64, String> {
    stacks("floor", text).map(|it| it.floor_bytes)
}

/// Reads what is added to peaks, in percent.
fn margin(text: &str) -> std::result::Result<u8, String> {
    stacks("margin", text).map(|it| it.margin_percent)
}

/// A setting of stacks, as programs are served with.
fn stacks(key: &str, value: &str) -> std::result::Result<Policy, String> {
    let text = format!("{key}={value}");
    let mut wrong = value.contains(';').then_some("one value");
    let settings = Settings::parse(&text, &mut |it| wrong = Some(it.expected));
    match wrong {
        None => Ok(settings.stacks),
        Some(expected) => Err(format!("expected {expected}")),
    }
}
