//! `cargo xtask experiment`: an experiment is a folder, and this runs it.
//!
//! ```text
//! experiments/solar/figures-3-5/
//!   experiment.toml    what it shows, on which hosts, what must hold, which charts
//!   description.xml    the tests, as `milieu bench run` reads them
//!   applications.toml  which commands their applications are
//!   results.json       what was measured, with hosts, versions and every value
//!   *.svg, README.md   charts, and what they say beside the paper
//! ```
//!
//! All that runs is `milieu bench run`; here stands what is around it. A quick run
//! measures less, writes nothing into the folder, and checks what holds on any
//! machine: shapes, outcomes, orders of size, never times.

mod check;
mod drawn;
mod file;
mod native;
mod quick;
mod run;
mod unaware;

use anyhow::{Result, bail};
use serde_json::json;

use crate::process;
use file::Experiment;
use run::{Programs, Run};

/// The results of an experiment, in its folder.
const RESULTS: &str = "results.json";

/// Larger results are not kept in the repository.
const RESULTS_BYTES_MAX: usize = 1_000_000;

/// Run an experiment: a folder below `experiments` with what it measured.
///
/// Exit codes: 0 all holds, 1 something does not; else that of `milieu bench
/// run`: 3 something was not measured, 4 it means nothing, 5 stopped before its
/// end.
#[derive(clap::Args)]
pub struct Arguments {
    /// Which: `solar/figures-3-5`, or `solar` for all of a paper.
    #[arg(value_name = "PAPER/FIGURE", required_unless_present = "list")]
    name: Option<String>,
    /// Measure little, check what holds on any machine, and leave the folder alone.
    #[arg(long)]
    quick: bool,
    /// Go on with a run that was interrupted.
    #[arg(long, conflicts_with = "quick")]
    resume: bool,
    /// Measure nothing: check the results that are kept, and draw the charts anew.
    #[arg(long, conflicts_with_all = ["quick", "resume"])]
    report: bool,
    /// Emulate no hosts: all of them are this machine.
    #[arg(long)]
    loopback: bool,
    /// Print a line of JSON for each experiment.
    #[arg(long)]
    json: bool,
    /// Print the experiments and what they show.
    #[arg(long)]
    list: bool,
}

/// Runs the experiments of a name; the worst exit code.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let experiments = chosen(arguments.name.as_deref())?;
    if arguments.list {
        for experiment in experiments {
            process::print(&match arguments.json {
                true => format!(
                    "{}\n",
                    json!({"name": experiment.name, "about": experiment.about})
                ),
                false => format!("{:<30}{}\n", experiment.name, experiment.about),
            })?;
        }
        return Ok(0);
    }
    if arguments.report {
        let codes = experiments.iter().map(|it| run::report(it, arguments));
        return codes.reduce(worst).unwrap_or(Ok(0));
    }
    let programs = Programs::build(!arguments.quick, &experiments)?;
    let codes = experiments.iter().map(|experiment| {
        Run {
            experiment,
            programs: &programs,
            arguments,
        }
        .run()
    });
    codes.reduce(worst).unwrap_or(Ok(0))
}

/// All are run, also after one has failed.
fn worst(one: Result<u8>, other: Result<u8>) -> Result<u8> {
    Ok(one?.max(other?))
}

/// Runs all experiments quickly for `cargo xtask ci`: how many held, how many did not.
pub fn quick() -> Result<(u64, Vec<String>)> {
    let arguments = Arguments {
        name: None,
        quick: true,
        resume: false,
        report: false,
        loopback: false,
        json: false,
        list: false,
    };
    let experiments = chosen(None)?;
    let programs = Programs::build(false, &experiments)?;
    let (mut held, mut failed) = (0, Vec::new());
    for experiment in experiments {
        let run = Run {
            experiment: &experiment,
            programs: &programs,
            arguments: &arguments,
        };
        match run.run()? {
            0 => held += 1,
            _ => failed.push(experiment.name.clone()),
        }
    }
    Ok((held, failed))
}

fn chosen(name: Option<&str>) -> Result<Vec<Experiment>> {
    let mut experiments = file::all()?;
    let Some(name) = name else {
        return Ok(experiments);
    };
    let name = name.trim_end_matches('/');
    let known: Vec<String> = experiments.iter().map(|it| it.name.clone()).collect();
    let is_below = |it: &Experiment| {
        it.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    experiments.retain(|it| it.name == name || is_below(it));
    if experiments.is_empty() {
        bail!(
            "there is no experiment `{name}`; there are {}",
            known.join(", ")
        );
    }
    Ok(experiments)
}

#[cfg(test)]
mod tests {
    use milieu_bench::result::Results;

    use super::*;

    #[test]
    fn experiments_are_chosen_by_name_or_paper() {
        let names = |name| -> Vec<String> {
            let chosen = chosen(name).unwrap();
            chosen.into_iter().map(|it| it.name).collect()
        };
        assert_eq!(names(Some("solar/figures-3-5")), ["solar/figures-3-5"]);
        assert!(names(Some("solar")).len() > 1);
        assert!(names(None).len() > names(Some("solar")).len());
        let why = chosen(Some("sol")).err().unwrap().to_string();
        assert!(why.contains("no experiment `sol`; there are"), "{why}");
    }

    #[test]
    fn what_is_served_is_there() {
        for experiment in file::all().unwrap() {
            let is_there =
                || native::files(&experiment.unaware(), "c").is_ok_and(|it| !it.is_empty());
            assert!(
                experiment.serves.is_empty() || is_there(),
                "{}",
                experiment.name
            );
        }
    }

    #[test]
    fn what_is_kept_is_what_is_described_and_holds() {
        for experiment in file::all().unwrap() {
            let Ok(text) = std::fs::read_to_string(experiment.folder.join(RESULTS)) else {
                continue;
            };
            assert!(text.len() <= RESULTS_BYTES_MAX, "{}", experiment.name);
            let measured = Results::parse(&text).unwrap();
            assert_eq!(
                measured.group.tests,
                experiment.group().unwrap().tests,
                "{}",
                experiment.name
            );
            assert!(!measured.hosts.is_empty(), "{}", experiment.name);
            let emulated = experiment.hosts.is_some();
            let checked = check::all(&experiment, &measured, emulated, false).unwrap();
            for check in checked {
                assert!(check.fails.is_none(), "{}: {check}", experiment.name);
            }
        }
    }
}
