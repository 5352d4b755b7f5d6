//! The command line `milieu`: one noun a module, one verb a function.
//!
//! Results go to standard output and everything else to standard error, in
//! colour only on a terminal. A reader that closes the pipe early is no error.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod completion;
mod key;
mod spec;
mod terminal;

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
    Completion(completion::Completion),
}

fn main() -> ExitCode {
    match Milieu::parse().noun {
        Noun::Key(key) => key.run(),
        Noun::Spec(spec) => spec.run(),
        Noun::Completion(completion) => completion.run(Milieu::command()),
    }
}
