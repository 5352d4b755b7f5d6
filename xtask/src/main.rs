//! The project's own automation, `cargo xtask …`.
//!
//! Everything that a machine or a person does to the repository as a whole has
//! one command here and stands nowhere else. Results go to standard output,
//! progress and diagnostics to standard error. Exit codes: 0 all is well, 1 a
//! check failed or a goal is missed, 2 the command could not do its work;
//! `experiment` has those of `milieu bench run` besides.

mod bench;
mod boot;
mod built;
mod ci;
mod cross;
mod dist;
mod experiment;
mod fuzz;
mod goals;
mod instructions;
mod linker;
mod metadata;
mod process;
mod sizes;
mod table;
mod targets;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Automation of the Milieu repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every check that a change must pass, as named and timed steps.
    Ci(ci::Arguments),
    /// Check the rules of the repository that no compiler knows.
    Tidy(tidy::Arguments),
    /// Measure the project's figures and compare them with their bounds.
    Goals(goals::Arguments),
    /// Run the micro-benchmarks and print what an operation costs.
    Bench(bench::Arguments),
    /// Count the instructions of each operation of one benchmark, exactly.
    Instructions(instructions::Arguments),
    /// Run an experiment: a folder below `experiments` with what it measured.
    Experiment(experiment::Arguments),
    /// Measure the libraries, and programs that link them, by set of features.
    Sizes(sizes::Arguments),
    /// Build for other machines and run the tests in an emulator.
    Cross(cross::Arguments),
    /// Boot a machine with systemd and control groups of version 2, and run tests there.
    Boot(boot::Arguments),
    /// Feed the parsers with generated input for a while.
    Fuzz(fuzz::Arguments),
    /// Lay out what C and C++ programs are built with, and the command, as they are installed.
    Dist(dist::Arguments),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        Task::Ci(arguments) => ci::run(&arguments),
        Task::Tidy(arguments) => tidy::run(&arguments),
        Task::Goals(arguments) => goals::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Instructions(arguments) => instructions::run(&arguments),
        Task::Sizes(arguments) => sizes::run(&arguments),
        Task::Cross(arguments) => cross::run(&arguments),
        Task::Boot(arguments) => boot::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Experiment(arguments) => match experiment::run(&arguments) {
            Ok(code) if code > 1 => return ExitCode::from(code),
            other => other.map(|code| code == 0),
        },
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whoever reads our output may stop reading, as `head` does.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::CommandLine;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }
}
