//! Applications on this machine.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use tempfile::TempDir;

use super::process::{Happened, Minder, Process};
use super::protocol::Start;
use super::step::{self, Place, refused};
use super::{Executor, Failed, Measures, Order, Ordered, Run, complete};
use crate::catalogue::{Catalogue, Entry, Manner};
use crate::description::{Group, Server};
use crate::result::Host;

/// Runs steps as processes of this machine.
pub struct Local {
    catalogue: Catalogue,
    minder: Minder,
    measures: Measures,
}

impl Local {
    /// Runs what the catalogue has.
    #[must_use]
    pub fn new(catalogue: Catalogue, minder: Minder) -> Local {
        Local {
            catalogue,
            minder,
            measures: Measures::here(),
        }
    }

    /// What is counted for single applications here.
    #[must_use]
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// What this machine is.
    #[must_use]
    pub fn host(&self) -> Host {
        Host {
            counts: self.measures.by.clone(),
            lacks: self.measures.lacks.clone(),
            ..Host::here()
        }
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

    fn hosts(&mut self, group: &Group) -> Result<BTreeMap<String, Host>, Failed> {
        let servers = group.tests.iter().flat_map(|test| &test.servers);
        let names = servers.map(Server::name);
        Ok(names.map(|name| (name, self.host())).collect())
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

    /// Starts an application of a kind.
    pub fn begin(&mut self, index: usize, kind: &str, mut start: Start) -> Result<(), String> {
        let entry = self.local.entry(kind)?;
        start.parameters = complete(start.parameters, entry)?;
        let report = self.reports.path().join(index.to_string());
        let Local {
            minder, measures, ..
        } = self.local;
        let groups = measures.next();
        let happened = &self.happened;
        let process = Process::start(minder, entry, &start, report, groups, index, happened)?;
        self.running.insert(index, process);
        Ok(())
    }
}

impl Place for Here<'_> {
    fn manner(&mut self, application: &Ordered) -> Result<Manner, Happened> {
        self.manner_of(&application.kind).map_err(refused)
    }

    fn start(&mut self, index: usize, application: &Ordered, start: Start) -> Result<(), Happened> {
        self.begin(index, &application.kind, start).map_err(refused)
    }

    fn stop(&mut self, index: usize) {
        if let Some(process) = self.running.get_mut(&index) {
            process.stop();
        }
    }
}
