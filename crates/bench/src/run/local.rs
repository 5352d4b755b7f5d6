//! Applications on this machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{Around, Happened, Minder, Process};
use super::profile::{self, Profile, Profiler, Profiling};
use super::protocol::Start;
use super::step::{self, Place, refused};
use super::{Executor, Failed, Measures, Order, Ordered, Run, complete};
use crate::Value;
use crate::catalogue::{Catalogue, Entry, Manner, When};
use crate::description::{Group, Server};
use crate::result::Host;

/// How long a command may take that is asked for.
const REQUEST: Duration = Duration::from_secs(10);
/// How much of a property is kept.
const PROPERTY_CHARS_MAX: usize = 200;

/// Runs steps as processes of this machine.
pub struct Local {
    catalogue: Catalogue,
    minder: Minder,
    measures: Measures,
    profiling: Option<Profiling>,
}

impl Local {
    /// Runs what the catalogue has.
    #[must_use]
    pub fn new(catalogue: Catalogue, minder: Minder) -> Local {
        Local {
            catalogue,
            minder,
            measures: Measures::here(),
            profiling: None,
        }
    }

    /// Profiles applications of the steps that it runs by itself.
    #[must_use]
    pub fn profile(mut self, profiling: Option<Profiling>) -> Local {
        self.profiling = profiling;
        self
    }

    /// What is counted for single applications here.
    #[must_use]
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// What this machine is.
    #[must_use]
    pub fn host(&self) -> Host {
        let mut host = Host {
            counts: self.measures.by.clone(),
            lacks: self.measures.lacks.clone(),
            ..Host::here()
        };
        let properties = self.catalogue.properties().iter();
        let entries = properties.map(|(name, command)| {
            let entry = Entry {
                command: command.clone(),
                ..Entry::default()
            };
            (&**name, entry, BTreeMap::new())
        });
        for (name, said) in self.all(&entries.collect::<Vec<_>>()) {
            match said {
                // The first line that a program says of itself is the one to know.
                Ok(said) => {
                    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
                    let line = line.unwrap_or_default().chars().take(PROPERTY_CHARS_MAX);
                    host.properties.insert(name, line.collect());
                }
                Err(why) => _ = host.lacks.insert(name, why),
            }
        }
        host
    }

    /// Runs a command that is there for whoever asks; what it wrote.
    pub(crate) fn request(
        &self,
        name: &str,
        parameters: BTreeMap<String, Value>,
    ) -> Option<Result<String, String>> {
        let entry = self.catalogue.get(name);
        let entry = entry.filter(|entry| entry.when == Some(When::Request))?;
        match complete(parameters, entry) {
            Ok(parameters) => self.all(&[(name, entry.clone(), parameters)]).remove(name),
            Err(why) => Some(Err(why)),
        }
    }

    /// Runs commands at once, for a short time; what each of them wrote, by name.
    fn all(
        &self,
        commands: &[(&str, Entry, BTreeMap<String, Value>)],
    ) -> BTreeMap<String, Result<String, String>> {
        let (happened, events) = mpsc::channel();
        let Ok(reports) = tempfile::tempdir() else {
            return BTreeMap::new();
        };
        let mut said = BTreeMap::new();
        let mut running = BTreeMap::new();
        for (index, (name, entry, parameters)) in commands.iter().enumerate() {
            let start = Start {
                parameters: parameters.clone(),
                application: (*name).to_owned(),
                step: 0,
                round: 0,
            };
            let around = Around {
                report: reports.path().join(index.to_string()),
                groups: self.measures.next(),
                profile: None,
            };
            match Process::start(&self.minder, entry, &start, around, index, &happened) {
                Ok(process) => _ = running.insert(index, (*name, process)),
                Err(why) => _ = said.insert((*name).to_owned(), Err(why)),
            }
        }
        let deadline = Instant::now() + REQUEST;
        while !running.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((index, happened)) = events.recv_timeout(left) else {
                break;
            };
            if let Happened::Ended(ended) = happened {
                if let Some((name, _)) = running.remove(&index) {
                    said.insert(name.to_owned(), ended.said());
                }
            }
        }
        for (name, _) in running.into_values() {
            let why = format!("it takes more than {} s", REQUEST.as_secs());
            said.insert(name.to_owned(), Err(why));
        }
        said
    }

    fn entry(&self, kind: &str) -> Result<&Entry, String> {
        let entry = self.catalogue.get(kind);
        entry.ok_or_else(|| format!("the catalogue of this machine has no `{kind}`"))
    }

    /// Begins a step, what happens in which goes to `happened`.
    pub(crate) fn begin(&self, happened: Sender<(usize, Happened)>) -> Result<Here<'_>, String> {
        Ok(Here {
            local: self,
            reports: tempfile::tempdir().map_err(|error| error.to_string())?,
            happened,
            running: BTreeMap::new(),
        })
    }
}

impl Executor for Local {
    fn step(&mut self, order: &Order, timeout: Duration) -> Result<Vec<Run>, Failed> {
        let (happened, events) = mpsc::channel();
        let mut here = self.begin(happened).map_err(Failed::Refused)?;
        step::run(order, timeout, &mut here, &events, &AtomicBool::new(false))
    }

    fn around(&mut self, order: &Order, timeout: Duration) -> Result<Vec<Run>, Failed> {
        self.step(order, timeout)
    }

    fn hosts(&mut self, group: &Group) -> Result<BTreeMap<String, Host>, Failed> {
        let servers = group.tests.iter().flat_map(|test| &test.servers);
        let names = servers.map(Server::name);
        let host = self.host();
        Ok(names.map(|name| (name, host.clone())).collect())
    }
}

/// A step on this machine. What still runs is ended with it.
pub(crate) struct Here<'l> {
    local: &'l Local,
    reports: TempDir,
    happened: Sender<(usize, Happened)>,
    running: BTreeMap<usize, Process>,
}

impl Here<'_> {
    /// How a kind takes part.
    pub fn manner_of(&self, kind: &str) -> Result<Manner, String> {
        self.local.entry(kind).map(Entry::manner)
    }

    /// The folder of the profile of an application.
    fn profile_folder(&self, index: usize) -> PathBuf {
        self.reports.path().join(format!("{index}.profile"))
    }

    /// The files of the profile of an application, if it has one.
    pub fn profiles(&self, index: usize) -> Option<Vec<PathBuf>> {
        profile::files(&self.profile_folder(index)).ok()
    }

    /// Keeps the profile of an application, if it has one.
    pub fn keep(&self, profiling: &Profiling, order: &Order, index: usize) -> Option<Profile> {
        let files = self.profiles(index)?;
        let open = |number: usize| File::open(&files[number]);
        Some(profiling.keep(order, index, files.len(), open))
    }

    /// Starts an application of a kind.
    pub fn begin(
        &mut self,
        index: usize,
        kind: &str,
        mut start: Start,
        profiler: Option<Profiler>,
    ) -> Result<(), String> {
        let entry = self.local.entry(kind)?;
        start.parameters = complete(start.parameters, entry)?;
        // What is not measured is not worth it.
        let profiler = profiler.filter(|_| entry.when.is_none());
        let around = Around {
            report: self.reports.path().join(index.to_string()),
            groups: self.local.measures.next(),
            profile: profiler.map(|profiler| (profiler, self.profile_folder(index))),
        };
        let (minder, happened) = (&self.local.minder, &self.happened);
        let process = Process::start(minder, entry, &start, around, index, happened)?;
        self.running.insert(index, process);
        Ok(())
    }
}

impl Place for Here<'_> {
    fn manner(&mut self, application: &Ordered) -> Result<Manner, Happened> {
        self.manner_of(&application.kind).map_err(refused)
    }

    fn start(&mut self, index: usize, application: &Ordered, start: Start) -> Result<(), Happened> {
        let wanted = self.local.profiling.as_ref().map(|it| &it.wanted);
        let profiler = wanted.and_then(|wanted| wanted.of(application));
        self.begin(index, &application.kind, start, profiler)
            .map_err(refused)
    }

    fn profile(&mut self, order: &Order, index: usize) -> Option<Profile> {
        self.keep(self.local.profiling.as_ref()?, order, index)
    }

    fn stop(&mut self, index: usize) {
        if let Some(process) = self.running.get_mut(&index) {
            process.stop();
        }
    }
}
