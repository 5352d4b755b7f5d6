//! Experiments as they stand in their folders.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use milieu_bench::Value;
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{self, Group, Language};
use milieu_bench::report::{Options, Statistic};
use milieu_bench::result::Outcome;
use milieu_diagnostics::{Diagnostic, Source};
use serde::Deserialize;

use super::unaware::Machine;
use crate::process;

/// What makes a folder an experiment.
const FILE: &str = "experiment.toml";

/// An experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// `solar/figures-3-5`: its folder below `experiments`.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub folder: PathBuf,
    #[serde(skip)]
    pub description: PathBuf,
    /// What it shows, in a line.
    pub about: String,
    /// Emulated hosts on which it runs, a file beside this one.
    #[serde(default)]
    pub hosts: Option<PathBuf>,
    /// Links that are down for a while: `HOST,BYTES,SECONDS`.
    #[serde(default)]
    pub lose: Vec<String>,
    /// Programs that it runs and that are not ours.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The same of single tests, by their names: programs, and the Debian packages that have
    /// them.
    #[serde(default)]
    pub needs_of: BTreeMap<String, BTreeMap<String, String>>,
    /// Kinds of programs in `unaware` that it has, which the preload serves.
    #[serde(default)]
    pub serves: Vec<Machine>,
    /// How `milieu bench run` is to end.
    #[serde(default)]
    pub exit: u8,
    /// What a quick run measures instead.
    #[serde(default)]
    pub quick: Quick,
    #[serde(default)]
    pub chart: Vec<Chart>,
    #[serde(default)]
    pub check: Vec<Check>,
}

/// What a quick run measures instead.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Tests that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    /// Parameters, wherever they stand.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// Values of variables.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<Value>>,
}

/// A chart of what was measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    pub file: String,
    /// A report of `milieu bench`, or one of [`drawn`](super::drawn).
    pub form: String,
    pub test: Option<String>,
    pub metric: Option<String>,
    pub x: Option<String>,
    pub panels: Option<String>,
    pub statistic: Option<String>,
}

/// What has to hold, on any machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub says: String,
    /// Of this test, or of all.
    pub test: Option<String>,
    /// It holds only where hosts are emulated.
    #[serde(default)]
    pub emulated: bool,
    /// It holds only of whole runs, which measure what is optimized for long enough.
    #[serde(default)]
    pub whole: bool,
    /// A condition on each point.
    pub holds: Option<String>,
    /// How the test ended; without any of this it was measured.
    pub outcome: Option<Outcome>,
    /// How many steps lost a host, at least.
    pub lost: Option<usize>,
}

/// A host as `emulated-hosts` reads it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Host {
    pub name: String,
    pub address: Ipv4Addr,
    pub delay_ms: f64,
}

impl Experiment {
    fn read(root: &Path, folder: &Path) -> Result<Experiment> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path)?;
        let mut experiment: Experiment = toml::from_str(&text)
            .with_context(|| format!("{} is no experiment", path.display()))?;
        let name = folder.strip_prefix(root).unwrap_or(folder);
        experiment.name = name.to_string_lossy().into_owned();
        let descriptions = ["description.toml", "description.xml"].map(|name| folder.join(name));
        let description = descriptions.into_iter().find(|path| path.exists());
        experiment.description =
            description.with_context(|| format!("{} has no description", folder.display()))?;
        experiment.hosts = experiment.hosts.map(|hosts| folder.join(hosts));
        experiment.folder = folder.to_owned();
        Ok(experiment)
    }

    /// Where the programs of its paper in C and C++ are, if there are any.
    pub fn native(&self) -> Option<PathBuf> {
        let programs = self.folder.parent()?.join("programs");
        programs.is_dir().then_some(programs)
    }

    /// Where those of its paper are that know nothing of Milieu.
    pub fn unaware(&self) -> PathBuf {
        self.folder.with_file_name("unaware")
    }

    pub fn applications(&self) -> PathBuf {
        self.folder.join("applications.toml")
    }

    /// Tests that need a program which is not here: their names, and why they are not run.
    pub fn missing(&self, has: impl Fn(&str) -> bool) -> BTreeMap<&str, String> {
        let tests = self.needs_of.iter().filter_map(|(test, needs)| {
            let (program, package) = needs.iter().find(|(program, _)| !has(program))?;
            let why = format!("{program} is not installed (Debian: {package})");
            Some((test.as_str(), why))
        });
        tests.collect()
    }

    /// Whether quick runs may go without a test.
    pub fn may_lack(&self, test: Option<&str>) -> bool {
        test.is_some_and(|it| {
            self.needs_of.contains_key(it) || self.quick.without.iter().any(|name| name == it)
        })
    }

    /// What it describes.
    pub fn group(&self) -> Result<Group> {
        let source = source(&self.applications())?;
        let catalogue = Catalogue::parse(&source).or_else(|found| fail(&source, &found))?;
        let language =
            Language::of(&self.description).context("a description in no known language")?;
        let source = self::source(&self.description)?;
        let parsed = description::parse(language, &source, &catalogue);
        parsed
            .map(|(group, _)| group)
            .or_else(|found| fail(&source, &found))
    }

    /// The hosts that are emulated.
    pub fn emulated(&self) -> Result<Vec<Host>> {
        #[derive(Deserialize)]
        struct Hosts {
            host: Vec<Host>,
        }
        let Some(path) = &self.hosts else {
            return Ok(Vec::new());
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(toml::from_str::<Hosts>(&text)?.host)
    }
}

fn source(path: &Path) -> Result<Source> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Source::new(path.to_string_lossy(), text))
}

fn fail<T>(source: &Source, found: &[Diagnostic]) -> Result<T> {
    let rendered: Vec<String> = found.iter().map(ToString::to_string).collect();
    bail!("{}: {}", source.name, rendered.join("; "))
}

impl Chart {
    pub fn options(&self) -> Options {
        let statistic = self.statistic.as_deref().and_then(Statistic::parse);
        Options {
            x: self.x.clone(),
            metric: self.metric.clone(),
            statistic: statistic.unwrap_or_default(),
            panels: self.panels.clone(),
            test: self.test.clone(),
            ..Options::default()
        }
    }
}

/// All experiments, by name.
pub fn all() -> Result<Vec<Experiment>> {
    let root = process::root().join("experiments");
    let mut folders = Vec::new();
    for paper in children(&root)? {
        folders.extend(children(&paper)?);
    }
    let experiments = folders.iter().filter(|folder| folder.join(FILE).exists());
    experiments
        .map(|folder| Experiment::read(&root, folder))
        .collect()
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}
