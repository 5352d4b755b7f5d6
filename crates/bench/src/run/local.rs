//! Steps on this machine.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::minder::Report;
use super::process::{Ended, Happened, Minder, Process};
use super::protocol::{Measured, Message, Start};
use super::{Executor, Failed, Order, Run};
use crate::Value;
use crate::catalogue::{Catalogue, Entry, Ready};

/// Runs steps as processes of this machine.
pub struct Local {
    catalogue: Catalogue,
    minder: Minder,
}

impl Local {
    /// Runs what the catalogue has.
    #[must_use]
    pub fn new(catalogue: Catalogue, minder: Minder) -> Local {
        Local { catalogue, minder }
    }
}

impl Executor for Local {
    fn step(&mut self, order: &Order, timeout: Duration) -> Result<Vec<Run>, Failed> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| Failed::Refused(error.to_string()))?;
        let (happened, events) = mpsc::channel();
        let mut step = Step {
            local: self,
            order,
            deadline: Instant::now() + timeout,
            happened,
            events,
            running: Vec::new(),
            told: BTreeMap::new(),
            reports: folder.path(),
        };
        Ok(step.run())
    }
}

/// An application of a step.
struct Running<'a> {
    name: &'a str,
    server: &'a str,
    entry: &'a Entry,
    process: Option<Process>,
    has_ended: bool,
    is_ready: bool,
    results: Option<BTreeMap<String, Measured>>,
    error: Option<String>,
    invalid: Option<String>,
}

struct Step<'a> {
    local: &'a Local,
    order: &'a Order,
    deadline: Instant,
    happened: Sender<(usize, Happened)>,
    events: Receiver<(usize, Happened)>,
    running: Vec<Running<'a>>,
    /// What applications said when they were ready, as `name.parameter`.
    told: BTreeMap<String, Value>,
    reports: &'a std::path::Path,
}

impl<'a> Step<'a> {
    fn run(&mut self) -> Vec<Run> {
        self.start_all();
        self.wait_for_results();
        // Those that measure have ended; services have not, or were too slow.
        for running in &mut self.running {
            if let Some(process) = running.process.as_mut().filter(|_| !running.has_ended) {
                process.stop();
            }
        }
        let all = std::mem::take(&mut self.running);
        let ended = all.into_iter().map(|mut running| {
            let ended = running.process.take().map(Process::wait);
            (running, ended)
        });
        let ended: Vec<_> = ended.collect();
        // What they said last is read by now.
        let said: Vec<(usize, Happened)> = self.events.try_iter().collect();
        let mut all: Vec<Running> = Vec::new();
        let mut ends = Vec::new();
        for (running, end) in ended {
            all.push(running);
            ends.push(end);
        }
        self.running = all;
        for (index, happened) in said {
            self.happens(index, happened);
        }
        let all = std::mem::take(&mut self.running).into_iter().zip(ends);
        all.map(|(running, ended)| running.finish(ended)).collect()
    }

    /// Services first, then the others, each when those before it are ready.
    fn start_all(&mut self) {
        for is_service in [true, false] {
            for application in &self.order.applications {
                let Some(entry) = self.local.catalogue.get(&application.kind) else {
                    if !is_service {
                        self.refuse(application);
                    }
                    continue;
                };
                if entry.service != is_service {
                    continue;
                }
                let index = self.running.len();
                let mut running = Running::new(application, entry);
                let begun = application
                    .complete(entry, &self.told)
                    .and_then(|parameters| {
                        let start = Start {
                            parameters,
                            application: application.name.clone(),
                            step: self.order.step.index,
                            round: self.order.step.round,
                        };
                        let report = self.reports.join(index.to_string());
                        let local = self.local;
                        Process::start(&local.minder, entry, &start, report, index, &self.happened)
                    });
                match begun {
                    Ok(process) => running.process = Some(process),
                    Err(error) => running.error = Some(error),
                }
                let has_begun = running.error.is_none();
                self.running.push(running);
                if !has_begun || !self.is_ready(index) {
                    // Nothing that needs it can be measured.
                    return;
                }
            }
        }
    }

    fn refuse(&mut self, application: &'a super::Ordered) {
        static NOTHING: std::sync::LazyLock<Entry> = std::sync::LazyLock::new(Entry::default);
        let mut running = Running::new(application, &NOTHING);
        let kind = &application.kind;
        running.error = Some(format!("the catalogue of this machine has no `{kind}`"));
        self.running.push(running);
    }

    /// Waits until an application is ready, if it says so at all.
    fn is_ready(&mut self, index: usize) -> bool {
        let entry = self.running[index].entry;
        let says = !matches!(entry.ready, None | Some(Ready::Says(false)));
        while says && !self.running[index].is_ready {
            if self.running[index].has_ended {
                let error = "it ended before it was ready".to_owned();
                self.running[index].error.get_or_insert(error);
                return false;
            }
            if !self.next() {
                let error = "it was not ready in time".to_owned();
                self.running[index].error.get_or_insert(error);
                return false;
            }
        }
        true
    }

    fn wait_for_results(&mut self) {
        let measures = |running: &Running| {
            running.process.is_some() && !running.entry.service && !running.has_ended
        };
        while self.running.iter().any(measures) {
            // What a dead service served cannot be measured.
            let lost = self
                .running
                .iter()
                .position(|it| it.entry.service && it.has_ended);
            if let Some(lost) = lost {
                let error = "it ended while it was needed".to_owned();
                self.running[lost].error.get_or_insert(error);
                return;
            }
            if self
                .running
                .iter()
                .any(|it| it.error.is_some() && it.process.is_none())
            {
                return;
            }
            if !self.next() {
                for running in self.running.iter_mut().filter(|it| measures(it)) {
                    running
                        .error
                        .get_or_insert("it took too long and was ended".into());
                }
                return;
            }
        }
    }

    /// Takes in what happens next; false: there is no more time.
    fn next(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok((index, happened)) => {
                self.happens(index, happened);
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    fn happens(&mut self, index: usize, happened: Happened) {
        let Some(running) = self.running.get_mut(index) else {
            return;
        };
        match happened {
            Happened::Ended => running.has_ended = true,
            Happened::Said(Message::Ready(told)) => {
                running.is_ready = true;
                for (name, value) in told {
                    self.told.insert(format!("{}.{name}", running.name), value);
                }
            }
            Happened::Said(Message::Result(measurement)) => {
                let results = running.results.get_or_insert_default();
                results.extend(measurement.by_name());
            }
            Happened::Said(Message::Error(error)) => _ = running.error.get_or_insert(error),
            Happened::Said(Message::Invalid(why)) => _ = running.invalid.get_or_insert(why),
        }
    }
}

impl<'a> Running<'a> {
    fn new(application: &'a super::Ordered, entry: &'a Entry) -> Running<'a> {
        Running {
            name: &application.name,
            server: &application.server,
            entry,
            process: None,
            has_ended: false,
            is_ready: false,
            results: None,
            error: None,
            invalid: None,
        }
    }

    fn finish(self, ended: Option<Ended>) -> Run {
        let mut run = Run {
            application: self.name.into(),
            server: self.server.into(),
            error: self.error,
            invalid: self.invalid,
            ..Run::default()
        };
        let Some(ended) = ended else {
            return run;
        };
        if let Some(Report {
            status,
            signal,
            refused,
            resources,
        }) = &ended.report
        {
            run.status = *status;
            run.signal = *signal;
            run.resources = Some(resources.clone());
            run.error = run.error.or_else(|| refused.clone());
        } else {
            run.error.get_or_insert("it was ended from outside".into());
        }
        let has_failed = run.status.is_some_and(|status| status != 0) || run.signal.is_some();
        if !self.entry.service {
            let results = match &self.entry.result {
                Some(_) => ended
                    .measurement()
                    .map(super::protocol::Measurement::by_name),
                None => self
                    .results
                    .ok_or_else(|| "it ended without a result".to_owned()),
            };
            match results {
                Ok(results) if !has_failed => run.results = results,
                Ok(_) => _ = run.error.get_or_insert("it failed".into()),
                Err(error) => _ = run.error.get_or_insert(error),
            }
        }
        run.output = ended.output;
        run
    }
}
