//! `cargo xtask ci`: every check that a change must pass.
//!
//! The checks are named steps, run one after the other; a failure does not stop
//! the later ones. A step that this machine cannot run says so, with the
//! command that mends it. The end repeats what failed, with what the test said;
//! the last line is `N passed, N failed`, where each test counts as one, and each
//! step without tests of its own.

mod examples;
mod harness;
mod report;
mod steps;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::metadata::Metadata;
use crate::process;

/// Run every check that a change must pass, as named and timed steps.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run only this step; may be given several times.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Leave this step out; may be given several times.
    #[arg(long, value_name = "STEP")]
    skip: Vec<String>,
    /// Print the steps and what they check, in their order.
    #[arg(long)]
    list: bool,
    /// Stop at the first step that fails.
    #[arg(long)]
    fail_fast: bool,
    /// How many seconds the fuzzers take together.
    #[arg(long, default_value_t = 70, value_name = "SECONDS")]
    fuzz_seconds: u64,
    /// Remove what a step has built as soon as no later one needs it.
    #[arg(long)]
    sweep: bool,
}

/// One named check.
struct Step {
    name: &'static str,
    checks: &'static str,
    run: fn(&Surroundings) -> Result<Outcome>,
    /// What it leaves behind that no later step needs, from the workspace's root.
    leaves: &'static [&'static str],
}

/// What steps know.
struct Surroundings {
    metadata: Metadata,
    fuzz_seconds: u64,
}

/// How a step ended.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// So many tests passed and so many failed, and what is known of those.
    Tests {
        passed: u64,
        failed: u64,
        failures: Vec<String>,
    },
    /// The machine lacks something; the remedy is a command.
    NotRun { lacks: String, remedy: String },
}

impl Outcome {
    /// The outcome of a step that has no tests of its own.
    fn of(success: bool) -> Self {
        Self::counted(success.into(), (!success).into())
    }

    /// The outcome of a step that has said already what failed.
    fn counted(passed: u64, failed: u64) -> Self {
        Self::Tests {
            passed,
            failed,
            failures: Vec::new(),
        }
    }

    /// The outcome of a step of which what failed has a name.
    fn named(passed: u64, failures: Vec<String>) -> Self {
        Self::Tests {
            passed,
            failed: failures.len() as u64,
            failures,
        }
    }

    /// The outcome of a step of two parts.
    fn and(self, other: Outcome) -> Self {
        match (self, other) {
            (
                Self::Tests {
                    passed,
                    failed,
                    mut failures,
                },
                Self::Tests {
                    passed: more,
                    failed: worse,
                    failures: others,
                },
            ) => {
                failures.extend(others);
                Self::Tests {
                    passed: passed + more,
                    failed: failed + worse,
                    failures,
                }
            }
            (Self::Tests { .. }, lacking) | (lacking, _) => lacking,
        }
    }
}

/// A step that has ended.
struct Ended {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// Runs the steps; `false` if any failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let steps = chosen(arguments)?;
    if arguments.list {
        for step in steps {
            process::print(&format!("{:<13}{}\n", step.name, step.checks))?;
        }
        return Ok(true);
    }
    let surroundings = Surroundings {
        metadata: Metadata::read()?,
        fuzz_seconds: arguments.fuzz_seconds,
    };
    let mut ended: Vec<Ended> = Vec::new();
    for step in steps {
        eprintln!("\n=== {}: {}", step.name, step.checks);
        let started = Instant::now();
        let outcome = (step.run)(&surroundings).unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Outcome::of(false)
        });
        let ended_step = Ended {
            name: step.name,
            outcome,
            took: started.elapsed(),
        };
        eprintln!("=== {}", report::line(&ended_step));
        if arguments.sweep {
            step.leaves.iter().for_each(|folder| sweep(folder));
        }
        ended.push(ended_step);
        if arguments.fail_fast && report::failed(&ended) > 0 {
            break;
        }
    }
    process::print(&format!("\n{}\n", report::summary(&ended)))?;
    Ok(report::failed(&ended) == 0)
}

/// Removes a folder of the workspace, if it is there.
fn sweep(folder: &str) {
    match std::fs::remove_dir_all(process::root().join(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            eprintln!("{folder} cannot be removed and stays: {error}");
        }
        _ => {}
    }
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Step>> {
    let named = arguments.only.iter().chain(&arguments.skip);
    for name in named {
        if !steps::ALL.iter().any(|step| step.name == name) {
            let known: Vec<&str> = steps::ALL.iter().map(|step| step.name).collect();
            bail!("there is no step `{name}`; there are {}", known.join(", "));
        }
    }
    let has = |names: &[String], step: &Step| names.iter().any(|name| name == step.name);
    Ok(steps::ALL
        .iter()
        .filter(|step| arguments.only.is_empty() || has(&arguments.only, step))
        .filter(|step| !has(&arguments.skip, step))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(only: &[&str], skip: &[&str]) -> Arguments {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Arguments {
            only: owned(only),
            skip: owned(skip),
            list: false,
            fail_fast: false,
            fuzz_seconds: 1,
            sweep: false,
        }
    }

    fn names(arguments: &Arguments) -> Vec<&'static str> {
        let steps = chosen(arguments).unwrap();
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_chosen_and_left_out_by_name() {
        assert_eq!(
            names(&arguments(&["tidy", "format"], &[])),
            ["format", "tidy"]
        );
        let all = names(&arguments(&[], &[]));
        let without = names(&arguments(&[], &["test"]));
        assert_eq!(all.len(), without.len() + 1);
        assert!(!without.contains(&"test"));
    }

    #[test]
    fn an_unknown_step_is_named_beside_the_known_ones() {
        let error = chosen(&arguments(&["tests"], &[])).err().unwrap();
        assert!(error.to_string().contains("`tests`; there are format"));
    }

    #[test]
    fn names_of_steps_are_unique() {
        let mut names = names(&arguments(&[], &[]));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
