//! One step: which application starts when, and what becomes of each, wherever they run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::minder::Report;
use super::process::{Ended, Happened};
use super::profile::Profile;
use super::protocol::{Measured, Message, Start};
use super::{Failed, Order, Ordered, Run};
use crate::Value;
use crate::catalogue::{Manner, When};

/// How long applications may take to end that were told to: longer than their
/// minders let them.
const END: Duration = Duration::from_secs(20);

/// How often a step looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Where applications run. What happens to them arrives as events.
pub(crate) trait Place {
    /// How an application takes part.
    ///
    /// # Errors
    /// Its kind is not known where it runs, or that host is lost.
    fn manner(&mut self, application: &Ordered) -> Result<Manner, Happened>;

    /// Starts an application, which is called `index` from now on.
    ///
    /// # Errors
    /// It cannot be started, or its host is lost.
    fn start(&mut self, index: usize, application: &Ordered, start: Start) -> Result<(), Happened>;

    /// Tells an application to end.
    fn stop(&mut self, index: usize);

    /// Keeps the profile of an application that has ended, if there is one.
    fn profile(&mut self, _: &Order, _: usize) -> Option<Profile> {
        None
    }
}

/// That something cannot be, as an application would say it.
pub(crate) fn refused(why: impl Into<String>) -> Happened {
    Happened::Said(Message::Error(why.into()))
}

/// An application of a step.
struct Running<'a> {
    application: &'a Ordered,
    manner: Manner,
    has_started: bool,
    is_ready: bool,
    ended: Option<Box<Ended>>,
    results: Option<BTreeMap<String, Measured>>,
    error: Option<String>,
    invalid: Option<String>,
}

impl Running<'_> {
    /// Whether it is for the step, or for before or after the test.
    fn takes_part(&self, when: Option<When>) -> bool {
        match self.manner.when {
            Some(of @ (When::BeforeTest | When::AfterTest)) => when == Some(of),
            _ => when.is_none(),
        }
    }

    /// Whether it is to measure something.
    fn measures(&self) -> bool {
        !self.manner.is_service && self.manner.when.is_none()
    }

    /// Whether it has ended well.
    fn has_succeeded(&self) -> bool {
        let report = self.ended.as_ref().and_then(|ended| ended.report.as_ref());
        self.error.is_none() && report.is_some_and(|report| report.status == Some(0))
    }

    /// Whether it runs now.
    fn runs(&self) -> bool {
        self.has_started && self.ended.is_none()
    }
}

/// Runs a step. What the place does arrives as `events`.
///
/// # Errors
/// A host is lost, or `stops` is set; what still runs has been ended.
pub(crate) fn run(
    order: &Order,
    timeout: Duration,
    place: &mut dyn Place,
    events: &Receiver<(usize, Happened)>,
    stops: &AtomicBool,
) -> Result<Vec<Run>, Failed> {
    let mut step = Step {
        order,
        deadline: Instant::now() + timeout,
        place,
        events,
        stops,
        is_ending: order.when == Some(When::AfterTest),
        running: Vec::new(),
        told: BTreeMap::new(),
        lost: None,
    };
    if step.takes_part() {
        match order.when {
            Some(when) => _ = step.commands(when),
            None => {
                if step.commands(When::BeforeStep) {
                    step.start_all();
                    step.wait_for_results();
                }
                step.end();
                // What it was ended for is nothing to them.
                step.deadline = step.deadline.max(Instant::now() + END);
                step.commands(When::AfterStep);
            }
        }
    }
    step.end();
    if stops.load(Ordering::Acquire) {
        return Err(Failed::Refused("cancelled".into()));
    }
    match step.lost {
        Some((host, why)) => Err(Failed::Lost(host, why)),
        None => {
            let running = step.running.into_iter().enumerate();
            let took_part = running.filter(|(_, it)| it.takes_part(order.when));
            let finish = |(index, running): (usize, Running)| Run {
                profile: step.place.profile(order, index),
                ..running.finish()
            };
            Ok(took_part.map(finish).collect())
        }
    }
}

struct Step<'a> {
    order: &'a Order,
    deadline: Instant,
    place: &'a mut dyn Place,
    events: &'a Receiver<(usize, Happened)>,
    stops: &'a AtomicBool,
    /// Whether what still runs has been told to end.
    is_ending: bool,
    /// The applications as they are ordered; their places are what they are called.
    running: Vec<Running<'a>>,
    /// What applications said when they were ready, as `name.parameter`.
    told: BTreeMap<String, Value>,
    /// A host that does not answer, and why.
    lost: Option<(String, String)>,
}

impl Step<'_> {
    /// Finds out how each application takes part; false: one cannot.
    fn takes_part(&mut self) -> bool {
        let mut can = true;
        for (index, application) in self.order.applications.iter().enumerate() {
            let manner = self.place.manner(application);
            self.running.push(Running {
                application,
                manner: *manner.as_ref().unwrap_or(&Manner::default()),
                has_started: false,
                is_ready: false,
                ended: None,
                results: None,
                error: None,
                invalid: None,
            });
            if let Err(happened) = manner {
                self.happens(index, happened);
                can = false;
            } else if self.running[index].manner.when == Some(When::Request) {
                self.happens(
                    index,
                    refused("it runs for whoever asks the server, in no test"),
                );
                can = false;
            }
        }
        can
    }

    /// Runs the commands of hosts that are for now, one after the other, each to its
    /// end; false: one failed.
    fn commands(&mut self, when: When) -> bool {
        for index in 0..self.running.len() {
            if self.running[index].manner.when != Some(when) {
                continue;
            }
            self.start(index);
            while self.running[index].runs() {
                if !self.next(self.deadline) {
                    let error = "it took too long and was ended".to_owned();
                    self.running[index].error.get_or_insert(error);
                    return false;
                }
            }
            if !self.running[index].has_succeeded() {
                return false;
            }
        }
        true
    }

    /// Starts an application.
    fn start(&mut self, index: usize) {
        let application = self.running[index].application;
        let mut parameters = application.parameters.clone();
        parameters.extend(self.told.clone());
        let start = Start {
            parameters,
            application: application.name.clone(),
            step: self.order.step.index,
            round: self.order.step.round,
        };
        match self.place.start(index, application, start) {
            Ok(()) => self.running[index].has_started = true,
            Err(happened) => self.happens(index, happened),
        }
    }

    /// Services first, then the others, each when those before it are ready.
    fn start_all(&mut self) {
        for is_service in [true, false] {
            for index in 0..self.running.len() {
                let manner = self.running[index].manner;
                if manner.when.is_some() || manner.is_service != is_service {
                    continue;
                }
                self.start(index);
                // Nothing that needs it can be measured without it.
                if !self.running[index].has_started || !self.is_ready(index) {
                    return;
                }
            }
        }
    }

    /// Waits until an application is ready, if it says so at all.
    fn is_ready(&mut self, index: usize) -> bool {
        while self.running[index].manner.waits && !self.running[index].is_ready {
            let has_ended = self.running[index].ended.is_some();
            if !has_ended && self.next(self.deadline) {
                continue;
            }
            let why = match has_ended {
                true => "it ended before it was ready",
                false => "it was not ready in time",
            };
            self.running[index].error.get_or_insert(why.into());
            return false;
        }
        self.lost.is_none()
    }

    fn wait_for_results(&mut self) {
        let measures = |it: &Running| it.runs() && it.measures();
        while self.running.iter().any(measures) {
            // What a dead service served cannot be measured.
            let mut services = self.running.iter_mut().filter(|it| it.manner.is_service);
            if let Some(dead) = services.find(|it| it.ended.is_some()) {
                let error = "it ended while it was needed".to_owned();
                dead.error.get_or_insert(error);
                return;
            }
            let mut applications = self.running.iter().filter(|it| it.manner.when.is_none());
            let all_started = applications.all(|it| it.has_started);
            if !all_started || self.lost.is_some() {
                return;
            }
            if !self.next(self.deadline) {
                for running in self.running.iter_mut().filter(|it| measures(it)) {
                    let error = "it took too long and was ended".to_owned();
                    running.error.get_or_insert(error);
                }
                return;
            }
        }
    }

    /// Ends what still runs.
    fn end(&mut self) {
        self.is_ending = true;
        for index in 0..self.running.len() {
            if self.running[index].runs() {
                self.place.stop(index);
            }
        }
        let deadline = Instant::now() + END;
        while self.running.iter().any(Running::runs) && self.next(deadline) {}
    }

    /// Takes in what happens next; false: there is no more time.
    fn next(&mut self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left.min(LOOK)) {
                Ok((index, happened)) => {
                    self.happens(index, happened);
                    return true;
                }
                Err(_) if left <= LOOK => return false,
                // What still runs ends all the same.
                Err(_) if self.stops.load(Ordering::Acquire) && !self.is_ending => return false,
                Err(_) => {}
            }
        }
    }

    fn happens(&mut self, index: usize, happened: Happened) {
        let Some(running) = self.running.get_mut(index) else {
            return;
        };
        match happened {
            Happened::Said(Message::Ready(told)) => {
                running.is_ready = true;
                let name = &running.application.name;
                let told = told.into_iter();
                self.told
                    .extend(told.map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            Happened::Said(Message::Result(measurement)) => {
                let results = running.results.get_or_insert_default();
                results.extend(measurement.by_name());
            }
            Happened::Said(Message::Error(error)) => _ = running.error.get_or_insert(error),
            Happened::Said(Message::Invalid(why)) => _ = running.invalid.get_or_insert(why),
            Happened::Ended(ended) => running.ended = Some(ended),
            Happened::Lost(why) => {
                let server = running.application.server.clone();
                // All that runs there is lost with it.
                for running in &mut self.running {
                    if running.application.server == server {
                        running.ended.get_or_insert_default();
                    }
                }
                self.lost.get_or_insert((server, why));
            }
        }
    }
}

impl Running<'_> {
    fn finish(self) -> Run {
        let measures = self.measures();
        let mut run = Run {
            application: self.application.name.clone(),
            server: self.application.server.clone(),
            error: self.error,
            invalid: self.invalid,
            ..Run::default()
        };
        let Some(ended) = self.ended else {
            if self.has_started {
                run.error.get_or_insert("it could not be ended".into());
            }
            return run;
        };
        if let Some(Report {
            status,
            signal,
            refused,
            resources,
        }) = ended.report
        {
            (run.status, run.signal) = (status, signal);
            run.resources = Some(resources);
            run.error = run.error.or(refused);
        } else {
            run.error.get_or_insert("it was ended from outside".into());
        }
        let has_failed = run.status.is_some_and(|status| status != 0) || run.signal.is_some();
        if self.manner.when.is_some() && has_failed {
            run.error.get_or_insert("it failed".into());
        }
        if measures {
            let said = || {
                self.results
                    .ok_or_else(|| "it ended without a result".to_owned())
            };
            match ended.measured.unwrap_or_else(said) {
                Ok(results) if !has_failed => run.results = results,
                Ok(_) => _ = run.error.get_or_insert("it failed".into()),
                // Whoever says that it means nothing need not say what it is.
                Err(_) if run.invalid.is_some() && !has_failed => {}
                Err(error) => _ = run.error.get_or_insert(error),
            }
        }
        run.output = ended.output;
        run
    }
}
