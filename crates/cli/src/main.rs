//! The command line `milieu`: one noun a module, one verb a function.
//!
//! Results go to standard output and everything else to standard error, in
//! colour only on a terminal. A reader that closes the pipe early is no error.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use milieu_diagnostics::{Diagnostic, Source};

mod arguments;
mod bench;
mod completion;
mod files;
mod key;
mod manual;
mod nearest;
mod spec;
mod stream;
mod terminal;
mod thread;

/// Concurrent software that adapts to its surroundings.
#[derive(Parser)]
#[command(name = "milieu", version, arg_required_else_help = true)]
struct Milieu {
    #[command(subcommand)]
    noun: Noun,
}

#[derive(Subcommand)]
enum Noun {
    Key(key::Key),
    Spec(spec::Spec),
    Stream(stream::Stream),
    Thread(thread::Thread),
    Bench(bench::Bench),
    Completion(completion::Completion),
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    completion::answer(Milieu::command);
    match Milieu::try_parse().map(|milieu| milieu.noun) {
        Ok(Noun::Key(key)) => key.run(),
        Ok(Noun::Spec(spec)) => spec.run(),
        Ok(Noun::Stream(stream)) => stream.run(),
        Ok(Noun::Thread(thread)) => thread.run(),
        Ok(Noun::Bench(bench)) => bench.run(),
        Ok(Noun::Completion(completion)) => completion.run(),
        Ok(Noun::Manual(manual)) => manual.run(),
        Err(answer) => say(&answer),
    }
}

/// Says what the parser of the command line answers: help that was asked for,
/// or what is wrong with the usage.
fn say(answer: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|word| word == "--json");
    if !answer.use_stderr() {
        return terminal::finish(answer.print().map(|()| ExitCode::SUCCESS));
    }
    if json {
        let text = answer.render().to_string();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let message = lines.next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let diagnostic = lines.fold(Diagnostic::error(message), Diagnostic::note);
        terminal::report(&Source::new("the command line", ""), &[diagnostic], true);
        return ExitCode::from(terminal::ERROR);
    }
    terminal::finish(answer.print().map(|()| ExitCode::from(terminal::ERROR)))
}
