//! Experiments, run.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use milieu_bench::description::{self, Language};
use milieu_bench::report;
use milieu_bench::result::Results;
use serde_json::json;

use super::check::{self, Checked};
use super::file::Experiment;
use super::unaware::{self, Machine, Made};
use super::{Arguments, RESULTS, RESULTS_BYTES_MAX, drawn, native, quick};
use crate::{metadata, process};

/// How `milieu bench run` ends where something was not measured.
const FAILED: u8 = 3;

/// How `milieu bench run` ends where something means nothing.
const INVALID: u8 = 4;

/// How often an experiment is run that means nothing.
const TRIES_MAX: u32 = 3;

/// The programs of experiments.
pub struct Programs {
    milieu: PathBuf,
    /// The folder of those that measure and are measured.
    folder: PathBuf,
    /// Those of a paper in C and C++, by where their sources are; or which compiler or
    /// library is missing.
    native: BTreeMap<PathBuf, Result<PathBuf, String>>,
    /// Those that know nothing of Milieu, by where their sources are and their kind.
    unaware: BTreeMap<(PathBuf, Machine), Made>,
}

impl Programs {
    /// Builds what experiments run: optimized in whole runs, with the harness, as the mediator
    /// of a device is the same program.
    pub fn build(optimized: bool, experiments: &[Experiment]) -> Result<Programs> {
        let build = |arguments: &[&str]| match process::cargo(["build", "-q"])
            .args(arguments)
            .status()?
            .success()
        {
            true => Ok(()),
            false => bail!("the programs of the experiments do not build"),
        };
        let build_as_measured = |package: &str| match optimized {
            true => build(&["--release", "-p", package]),
            false => Ok(()),
        };
        if !optimized {
            // As tests and examples are built, so that nothing is built twice.
            build(&[
                "--workspace",
                "--all-features",
                "--lib",
                "--bins",
                "--examples",
            ])?;
        }
        build_as_measured("milieu-cli")?;
        build_as_measured("experiments")?;
        let target = metadata::target_directory()?;
        let folder = target.join(if optimized { "release" } else { "debug" });
        let milieu = folder.join("milieu");
        let mut native = BTreeMap::new();
        for sources in experiments.iter().filter_map(Experiment::native) {
            if native.contains_key(&sources) {
                continue;
            }
            let made = match native::missing(&sources)? {
                Some(missing) => Err(missing),
                None => {
                    build_as_measured("milieu-capi")?;
                    let library = folder.join("libmilieu_capi.a");
                    Ok(native::build(&sources, &milieu, &library)?)
                }
            };
            native.insert(sources, made);
        }
        let mut unaware = BTreeMap::new();
        for experiment in experiments {
            for machine in &experiment.serves {
                let of = (experiment.unaware(), *machine);
                if let Entry::Vacant(place) = unaware.entry(of) {
                    let made = unaware::build(&place.key().0, *machine)?;
                    place.insert(made);
                }
            }
        }
        Ok(Programs {
            milieu,
            folder,
            native,
            unaware,
        })
    }
}

/// A run of an experiment.
pub struct Run<'a> {
    pub experiment: &'a Experiment,
    pub programs: &'a Programs,
    pub arguments: &'a Arguments,
}

impl Run<'_> {
    /// Runs it; the exit code.
    pub fn run(&self) -> Result<u8> {
        let experiment = self.experiment;
        eprintln!("\n{}: {}", experiment.name, experiment.about);
        let scratch = process::scratch(&format!("experiments/{}", experiment.name))?;
        let results = scratch.join(RESULTS);
        let emulates = self.emulates()?;
        if let Some(why) = self.lacks(emulates)? {
            self.tell_skipped(None, &why)?;
            return Ok(0);
        }
        for (test, why) in &experiment.missing(process::has_program) {
            self.tell_skipped(Some(test), why)?;
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
            if code == FAILED {
                tell_failures(experiment, &read(&results)?);
            }
            tell(experiment, self.arguments, &[], &results, Some(code))?;
            return Ok(code.max(1));
        }
        let measured = read(&results)?;
        let checked = check::all(experiment, &measured, emulates, self.arguments.quick)?;
        let holds = checked.iter().all(|check| check.fails.is_none());
        if holds && !self.arguments.quick && emulates == experiment.hosts.is_some() {
            keep(experiment, &measured)?;
            draw(experiment, &measured)?;
        }
        tell(experiment, self.arguments, &checked, &results, None)?;
        Ok(u8::from(!holds))
    }

    /// Says that it, or a test of it, is not run.
    fn tell_skipped(&self, test: Option<&str>, why: &str) -> Result<()> {
        let name = &self.experiment.name;
        process::print(&match (self.arguments.json, test) {
            (true, Some(test)) => {
                format!("{}\n", json!({"name": name, "test": test, "skipped": why}))
            }
            (true, None) => format!("{}\n", json!({"name": name, "skipped": why})),
            (false, Some(test)) => format!("{name}: {test}: not run: {why}\n"),
            (false, None) => format!("{name}: not run: {why}\n"),
        })
    }

    /// Why it cannot be run here. A whole run has all of its tests.
    fn lacks(&self, emulates: bool) -> Result<Option<String>> {
        let experiment = self.experiment;
        if !emulates && !experiment.lose.is_empty() {
            return Ok(Some("links that are lost have to be emulated".into()));
        }
        if let Some(why) = self.unaware().find_map(|made| made.as_ref().err()) {
            return Ok(Some(why.clone()));
        }
        let missing = experiment.missing(process::has_program);
        if let Some(why) = missing.values().next() {
            let mut group = experiment.group()?;
            quick::leave_out(&mut group, &experiment.quick, &missing);
            if !self.arguments.quick || group.tests.is_empty() {
                return Ok(Some(why.clone()));
            }
        }
        let native = self.native().and_then(|made| made.as_ref().err());
        let native = native.map(String::as_str);
        let mut needs = experiment.needs.iter().map(String::as_str);
        let missing = native.or_else(|| needs.find(|it| !process::has_program(it)));
        Ok(missing.map(|program| format!("{program} is not installed")))
    }

    /// The programs of its paper in C and C++.
    fn native(&self) -> Option<&Result<PathBuf, String>> {
        self.programs.native.get(&self.experiment.native()?)
    }

    /// Those that know nothing of Milieu, of each kind that it has.
    fn unaware(&self) -> impl Iterator<Item = &Made> {
        let (of, experiment) = (&self.programs.unaware, self.experiment);
        let machines = experiment.serves.iter();
        machines.filter_map(move |machine| of.get(&(experiment.unaware(), *machine)))
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
            let missing = experiment.missing(process::has_program);
            quick::leave_out(&mut group, &experiment.quick, &missing);
            quick::shorten(&mut group, &experiment.quick);
        }
        if is_on_loopback {
            quick::bring_home(&mut group, &experiment.emulated()?);
        }
        let path = scratch.join("description.toml");
        let text = description::write(Language::Toml, &group);
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
        let ours = [Some(self.programs.folder.as_path()), milieu.parent()];
        let native = self.native().and_then(|made| made.as_deref().ok());
        let unaware = self.unaware().find_map(|made| made.as_ref().ok());
        let served = unaware.map(|it| it.programs.as_path());
        let ours = ours.into_iter().flatten().chain(native).chain(served);
        let folders = ours.map(Path::to_owned).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders)?);
        if let Some(unaware) = unaware {
            command.env(unaware::FOLDER_VARIABLE, &unaware.preload);
        }
        Ok(command)
    }
}

/// Checks the results that are kept, and draws the charts anew; the exit code.
pub fn report(experiment: &Experiment, arguments: &Arguments) -> Result<u8> {
    let results = experiment.folder.join(RESULTS);
    let measured = read(&results)?;
    let checked = check::all(experiment, &measured, experiment.hosts.is_some(), false)?;
    draw(experiment, &measured)?;
    tell(experiment, arguments, &checked, &results, None)?;
    Ok(u8::from(checked.iter().any(|check| check.fails.is_some())))
}

fn read(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    Results::parse(&text).map_err(|why| anyhow!("{}: {why}", path.display()))
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
    Ok(())
}

/// Draws the charts of what was measured.
fn draw(experiment: &Experiment, measured: &Results) -> Result<()> {
    for chart in &experiment.chart {
        let written = match drawn::get(&chart.form) {
            Some(form) => form(measured)?.into_bytes(),
            None => {
                let form = report::get(&chart.form)
                    .with_context(|| format!("there is no report `{}`", chart.form))?;
                let written = form.write(measured, &chart.options());
                written.map_err(anyhow::Error::msg)?
            }
        };
        std::fs::write(experiment.folder.join(&chart.file), written)?;
    }
    Ok(())
}

/// What was not measured, and why.
fn tell_failures(experiment: &Experiment, measured: &Results) {
    for test in &measured.tests {
        for failure in test.points.iter().flat_map(|point| &point.failures) {
            eprintln!(
                "{}: {}: {}: {}",
                experiment.name, test.name, failure.application, failure.message
            );
        }
    }
}

/// Says what holds, or how `milieu bench run` has ended.
fn tell(
    experiment: &Experiment,
    arguments: &Arguments,
    checked: &[Checked],
    results: &Path,
    code: Option<u8>,
) -> Result<()> {
    let name = &experiment.name;
    let failed: Vec<_> = checked.iter().filter(|it| it.fails.is_some()).collect();
    for check in &failed {
        eprintln!("{name}: does not hold: {check}");
    }
    if arguments.json {
        let checks = checked.iter().map(|check| {
            let Checked { says, fails } = check;
            json!({"says": says, "holds": fails.is_none(), "why": fails})
        });
        let line = json!({
            "name": name,
            "quick": arguments.quick,
            "bench": code.unwrap_or(experiment.exit),
            "checks": checks.collect::<Vec<_>>(),
            "results": results,
        });
        return process::print(&format!("{line}\n"));
    }
    let (shown, missed) = (results.display(), failed.len());
    process::print(&match code {
        Some(_) => format!("{name}: failed; {shown}\n"),
        None => format!(
            "{name}: {} hold, {missed} do not; {shown}\n",
            checked.len() - missed
        ),
    })
}
