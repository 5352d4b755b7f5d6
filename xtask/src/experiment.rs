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
mod file;
mod quick;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use milieu_bench::report;
use milieu_bench::result::Results;
use serde_json::json;

use crate::{metadata, process};
use check::Checked;
use file::Experiment;

/// The results of an experiment, in its folder.
const RESULTS: &str = "results.json";

/// How `milieu bench run` ends where something means nothing.
const INVALID: u8 = 4;

/// How often an experiment is run that means nothing.
const TRIES_MAX: u32 = 3;

/// Larger results are not kept in the repository.
const RESULTS_BYTES_MAX: usize = 500_000;

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
    let programs = build(!arguments.quick)?;
    let mut worst = 0;
    for experiment in experiments {
        worst = worst.max(
            Run {
                experiment: &experiment,
                programs: &programs,
                arguments,
            }
            .run()?,
        );
    }
    Ok(worst)
}

/// Runs all experiments quickly for `cargo xtask ci`: how many held, how many did not.
pub fn quick() -> Result<(u64, u64)> {
    let arguments = Arguments {
        name: None,
        quick: true,
        resume: false,
        loopback: false,
        json: false,
        list: false,
    };
    let programs = build(false)?;
    let (mut held, mut failed) = (0, 0);
    for experiment in chosen(None)? {
        let run = Run {
            experiment: &experiment,
            programs: &programs,
            arguments: &arguments,
        };
        match run.run()? {
            0 => held += 1,
            _ => failed += 1,
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

/// The programs of experiments.
struct Programs {
    milieu: PathBuf,
    /// The folder of those that measure and are measured.
    folder: PathBuf,
}

/// Builds what experiments run. What is measured is optimized in whole runs; the
/// harness need not be.
fn build(optimized: bool) -> Result<Programs> {
    let build = |arguments: &[&str]| match process::cargo(["build", "-q"])
        .args(arguments)
        .status()?
        .success()
    {
        true => Ok(()),
        false => bail!("the programs of the experiments do not build"),
    };
    build(&["-p", "milieu-cli"])?;
    build(if optimized {
        &["-p", "experiments", "--release"]
    } else {
        &["-p", "experiments"]
    })?;
    let target = metadata::target_directory()?;
    Ok(Programs {
        milieu: target.join("debug/milieu"),
        folder: target.join(if optimized { "release" } else { "debug" }),
    })
}

/// A run of an experiment.
struct Run<'a> {
    experiment: &'a Experiment,
    programs: &'a Programs,
    arguments: &'a Arguments,
}

impl Run<'_> {
    fn run(&self) -> Result<u8> {
        let experiment = self.experiment;
        eprintln!("\n{}: {}", experiment.name, experiment.about);
        let scratch = process::scratch(&format!("experiments/{}", experiment.name))?;
        let results = scratch.join(RESULTS);
        let emulates = self.emulates()?;
        if !emulates && !experiment.lose.is_empty() {
            let why = "links that are lost have to be emulated";
            process::print(&match self.arguments.json {
                true => format!("{}\n", json!({"name": experiment.name, "skipped": why})),
                false => format!("{}: not run: {why}\n", experiment.name),
            })?;
            return Ok(0);
        }
        let description = self.description(&scratch, emulates)?;
        let mut code = INVALID;
        // What means nothing is measured again: the machine was busy.
        for _ in 0..TRIES_MAX {
            let status = self
                .command(&description, &results, &scratch, emulates)?
                .status()?;
            let ended = status.code().and_then(|code| u8::try_from(code).ok());
            code = ended.unwrap_or(2);
            if code != INVALID || experiment.exit == INVALID {
                break;
            }
        }
        if code != experiment.exit {
            eprintln!(
                "{}: `milieu bench run` ended with {code}, not {}",
                experiment.name, experiment.exit
            );
            self.tell(&[], &results, Some(code))?;
            return Ok(code.max(1));
        }
        let text = std::fs::read_to_string(&results)
            .with_context(|| format!("cannot read {}", results.display()))?;
        let measured = Results::parse(&text).map_err(anyhow::Error::msg)?;
        let checked = check::all(experiment, &measured, emulates)?;
        for check in checked.iter().filter(|check| check.fails.is_some()) {
            eprintln!("{}: does not hold: {check}", experiment.name);
        }
        let holds = checked.iter().all(|check| check.fails.is_none());
        if holds && !self.arguments.quick && emulates == experiment.hosts.is_some() {
            keep(experiment, &measured)?;
        }
        self.tell(&checked, &results, None)?;
        Ok(u8::from(!holds))
    }

    /// Whether hosts are emulated, which says why not where they should be.
    fn emulates(&self) -> Result<bool> {
        let Some(hosts) = &self.experiment.hosts else {
            return Ok(false);
        };
        if self.arguments.loopback {
            return Ok(false);
        }
        let mut check = process::command(
            &self
                .programs
                .folder
                .join("emulated-hosts")
                .to_string_lossy(),
        );
        check.arg(hosts).arg("--check");
        let output = check.output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!(
                "hosts cannot be emulated here: {}\nall hosts are this machine; what is not shown: \
                 delays, rates, names of hosts",
                why.trim().trim_start_matches("error: ")
            );
        }
        Ok(output.status.success())
    }

    /// The description to run: the one in the folder, or what a quick run, or one
    /// without hosts, makes of it.
    fn description(&self, scratch: &Path, emulates: bool) -> Result<PathBuf> {
        let experiment = self.experiment;
        let is_on_loopback = experiment.hosts.is_some() && !emulates;
        if !self.arguments.quick && !is_on_loopback {
            return Ok(experiment.description.clone());
        }
        let mut group = experiment.group()?;
        if self.arguments.quick {
            quick::shorten(&mut group, &experiment.quick);
        }
        if is_on_loopback {
            quick::bring_home(&mut group, &experiment.emulated()?);
        }
        let path = scratch.join("description.toml");
        let text =
            milieu_bench::description::write(milieu_bench::description::Language::Toml, &group);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn command(
        &self,
        description: &Path,
        results: &Path,
        scratch: &Path,
        emulates: bool,
    ) -> Result<Command> {
        let experiment = self.experiment;
        let milieu = &self.programs.milieu;
        let (applications, key) = (experiment.applications(), scratch.join("key"));
        let mut command = match &experiment.hosts {
            None => process::command(&milieu.to_string_lossy()),
            Some(hosts) => {
                let mut command = process::command(
                    &self
                        .programs
                        .folder
                        .join("emulated-hosts")
                        .to_string_lossy(),
                );
                command.arg(hosts).arg("--milieu").arg(milieu);
                command
                    .arg("--applications")
                    .arg(&applications)
                    .arg("--key")
                    .arg(&key);
                match emulates {
                    true => {
                        _ = command
                            .args(experiment.lose.iter().map(|lose| format!("--lose={lose}")))
                    }
                    false => _ = command.arg("--loopback"),
                }
                command.arg("--").arg(milieu);
                command
            }
        };
        command
            .args(["bench", "run"])
            .arg(description)
            .arg("--applications")
            .arg(&applications);
        command.arg("--output").arg(results).arg("--key").arg(&key);
        command.arg(if self.arguments.resume {
            "--resume"
        } else {
            "--restart"
        });
        if self.arguments.quick || self.arguments.json {
            command.arg("--quiet");
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders =
            std::iter::once(self.programs.folder.clone()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders)?);
        Ok(command)
    }

    fn tell(&self, checked: &[Checked], results: &Path, code: Option<u8>) -> Result<()> {
        let failed = checked.iter().filter(|check| check.fails.is_some()).count();
        let name = &self.experiment.name;
        process::print(&match self.arguments.json {
            true => {
                let checks: Vec<_> = checked
                    .iter()
                    .map(|check| json!({"says": check.says, "holds": check.fails.is_none(), "why": check.fails}))
                    .collect();
                let line = json!({
                    "name": name, "quick": self.arguments.quick, "bench": code.unwrap_or(self.experiment.exit),
                    "checks": checks, "results": results,
                });
                format!("{line}\n")
            }
            false if code.is_some() => format!("{name}: failed; {}\n", results.display()),
            false => format!(
                "{name}: {} hold, {failed} do not; {}\n",
                checked.len() - failed,
                results.display()
            ),
        })
    }
}

/// Keeps what was measured in the folder of the experiment.
fn keep(experiment: &Experiment, measured: &Results) -> Result<()> {
    // Without the blanks of `Results::to_json`, which are as much again.
    let text = serde_json::to_string(measured)? + "\n";
    match text.len() <= RESULTS_BYTES_MAX {
        true => std::fs::write(experiment.folder.join(RESULTS), text)?,
        false => eprintln!(
            "{}: {} bytes of results are more than {RESULTS_BYTES_MAX} and stay where they are",
            experiment.name,
            text.len()
        ),
    }
    for chart in &experiment.chart {
        let form = report::get(&chart.form)
            .with_context(|| format!("there is no report `{}`", chart.form))?;
        let written = form
            .write(measured, &chart.options())
            .map_err(anyhow::Error::msg)?;
        std::fs::write(experiment.folder.join(&chart.file), written)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
            let checked = check::all(&experiment, &measured, emulated).unwrap();
            for check in checked {
                assert!(check.fails.is_none(), "{}: {check}", experiment.name);
            }
        }
    }
}
