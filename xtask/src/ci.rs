//! `cargo xtask ci`: every check that a change must pass.
//!
//! The checks are named steps, run one after the other; only those that do nothing but
//! compile run beside those that mostly wait. A failure does not stop the later ones. A
//! step that this machine cannot run says so, with the command that mends it. The end
//! repeats what failed, with what the test said; the last line is `N passed, N failed`,
//! where each test counts as one, and each step without tests of its own.

mod examples;
mod harness;
mod report;
mod steps;

use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::metadata::{Metadata, Package};
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
    #[arg(long, default_value_t = 40, value_name = "SECONDS")]
    fuzz_seconds: u64,
    /// Remove what a step has built as soon as no later one needs it.
    #[arg(long)]
    sweep: bool,
}

/// One named check.
struct Step {
    name: &'static str,
    checks: &'static str,
    pace: Pace,
    run: fn(&Surroundings) -> Result<Outcome>,
    /// What it leaves behind that no later step needs, from the workspace's root.
    leaves: &'static [&'static str],
}

/// What a step does with the processors.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// Has work for all of them.
    Works,
    /// Leaves them idle for much of its time.
    Waits,
    /// Has time until the steps that wait have ended, and runs beside them.
    Fills,
}

/// What steps know.
struct Surroundings {
    metadata: Metadata,
    fuzz_seconds: u64,
}

impl Surroundings {
    /// The package of the workspace of which this is so.
    fn package(&self, is_it: impl Fn(&Package) -> bool) -> Result<&Package> {
        let found = self.metadata.packages.iter().find(|it| is_it(it));
        found.context("a package is not there that a step is about")
    }
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
    let mut run = Run {
        surroundings: &surroundings,
        arguments,
        ended: Mutex::default(),
    };
    let mut steps = steps.as_slice();
    while let Some((group, later)) = split(steps) {
        run.group(group);
        if run.is_over() {
            break;
        }
        steps = later;
    }
    let ended = run.ended.get_mut().expect("no step has panicked");
    process::print(&format!("\n{}\n", report::summary(ended)))?;
    Ok(report::failed(ended) == 0)
}

/// Steps that run now, and those after them: one by itself, or those that fill with
/// those that wait. `None` once all have run.
fn split<'a>(steps: &'a [&'static Step]) -> Option<(&'a [&'static Step], &'a [&'static Step])> {
    let together = steps.iter().take_while(|step| step.pace != Pace::Works);
    steps.split_at_checked(together.count().max(1))
}

/// A run of steps.
struct Run<'a> {
    surroundings: &'a Surroundings,
    arguments: &'a Arguments,
    ended: Mutex<Vec<Ended>>,
}

impl Run<'_> {
    /// Runs steps that belong together.
    fn group(&self, steps: &[&Step]) {
        let fills = |step: &&&Step| step.pace == Pace::Fills;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                process::yield_to_others();
                self.all(steps.iter().filter(fills));
            });
            self.all(steps.iter().filter(|step| !fills(step)));
        });
    }

    /// Runs one step after the other.
    fn all<'a>(&self, steps: impl IntoIterator<Item = &'a &'a Step>) {
        for step in steps {
            if self.is_over() {
                break;
            }
            self.step(step);
        }
    }

    fn step(&self, step: &Step) {
        eprintln!("\n=== {}: {}", step.name, step.checks);
        let started = Instant::now();
        let outcome = (step.run)(self.surroundings).unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Outcome::of(false)
        });
        let ended = Ended {
            name: step.name,
            outcome,
            took: started.elapsed(),
        };
        eprintln!("=== {}", report::line(&ended));
        if self.arguments.sweep {
            step.leaves.iter().for_each(|folder| sweep(folder));
        }
        self.ended().push(ended);
    }

    /// Whether a step has failed and no other shall begin.
    fn is_over(&self) -> bool {
        self.arguments.fail_fast && report::failed(&self.ended()) > 0
    }

    fn ended(&self) -> MutexGuard<'_, Vec<Ended>> {
        self.ended.lock().expect("no step has panicked")
    }
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
    fn what_only_compiles_runs_beside_what_waits_and_all_else_alone() {
        let groups = |only: &[&str]| {
            let chosen = chosen(&arguments(only, &[])).unwrap();
            let mut steps = chosen.as_slice();
            std::iter::from_fn(|| {
                let (group, later) = split(steps)?;
                steps = later;
                Some(group.iter().map(|step| step.name).collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(groups(&["format", "tidy"]), [["format"], ["tidy"]]);
        assert_eq!(groups(&["docs", "experiments"]), [["experiments", "docs"]]);
        let all = groups(&[]);
        let beside = ["experiments", "boot", "docs", "features", "minimum"].to_vec();
        assert!(all.contains(&beside));
        assert_eq!(all.concat(), names(&arguments(&[], &[])));
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
