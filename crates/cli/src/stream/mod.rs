//! `milieu stream`: looks at the streams of running programs, and runs flows.

mod attach;
mod complete;
mod convert;
mod graph;
mod modes;
mod own;
mod test;
mod unheard;
mod verbs;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use milieu_diagnostics::{Diagnostic, Source};

use crate::terminal;

/// Look at streams of events, subscribe to them and publish
///
/// A running program that has opened its control socket is reached by its name
/// (--app) or the number of its process (--pid); without either, the only one
/// that runs. With --source a flow runs here, over sources that are started for
/// it: machine.load, timer.every, command.shell; `milieu stream sources` lists
/// them all.
///
/// A flow is a name or a pipeline:
///
///   /weather/temperature | filter value > 32 | aggregate mean 10m
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Exit codes, of every verb:
  0  done
  2  wrong usage, a flow that is wrong, a case that failed, or a program that
     cannot be reached"
)]
pub(crate) struct Stream {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Ls(verbs::Ls),
    Subscribe(verbs::Subscribe),
    Publish(verbs::Publish),
    Graph(graph::Graph),
    Convert(convert::Convert),
    Test(test::Test),
    Sources(own::Sources),
    Operators(own::Operators),
}

impl Stream {
    pub(crate) fn run(&self) -> ExitCode {
        let (result, json) = match &self.verb {
            Verb::Ls(ls) => (ls.run(), ls.json),
            Verb::Subscribe(subscribe) => (subscribe.run(), true),
            Verb::Publish(publish) => (publish.run(), false),
            Verb::Graph(graph) => (graph.run(), graph.json),
            Verb::Convert(convert) => (convert.run(), false),
            Verb::Test(test) => (test.run(), test.json),
            Verb::Sources(sources) => (sources.run(), sources.json),
            Verb::Operators(operators) => (operators.run(), operators.json),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure::Output(error)) => terminal::finish(Err(error)),
            Err(Failure::Said(text)) => {
                eprintln!("{text}");
                ExitCode::from(terminal::ERROR)
            }
            Err(Failure::Wrong(source, found)) => {
                terminal::report(
                    &source,
                    &found,
                    json && !matches!(self.verb, Verb::Subscribe(_)),
                );
                ExitCode::from(terminal::ERROR)
            }
        }
    }
}

/// Why a verb did not do what it was asked for.
pub(super) enum Failure {
    /// The result could not be written.
    Output(std::io::Error),
    /// A program has said what is wrong, for people.
    Said(String),
    /// Something is wrong, here.
    Wrong(Source, Vec<Diagnostic>),
}

impl Failure {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Failure {
        let found = Diagnostic::error(message).help(help);
        Failure::Wrong(Source::new("the command line", ""), vec![found])
    }
}

type Result<T = ()> = std::result::Result<T, Failure>;

/// Writes to standard output.
fn print(text: &str) -> Result {
    terminal::print(text).map_err(Failure::Output)
}
