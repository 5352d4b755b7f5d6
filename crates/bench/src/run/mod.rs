//! Running tests: step by step, each with fresh processes, kept as they come.

mod counters;
mod group;
pub mod journal;
mod kernel;
mod local;
pub mod minder;
mod process;
pub(crate) mod profile;
pub mod protocol;
mod search;
pub(crate) mod step;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use counters::Network;
pub use group::Measures;
pub(crate) use local::Here;
pub use local::Local;
pub(crate) use process::Happened;
pub use process::Minder;
pub use profile::{Profile, Profiler, Profiling, Wanted};
pub(crate) use step::{Place, refused};

use crate::Value;
use crate::catalogue::{Entry, When};
use crate::description::{Group, LostHost, Test};
use crate::plan::{Plan, Step};
use crate::result::{Host, Offset, Outcome, Results, StepResult, TestResults};
use minder::Resources;
use protocol::Measured;

/// What a single thing that was measured is called.
pub const VALUE: &str = "value";

/// How often a step runs again whose host was lost.
const RETRIES_MAX: u32 = 3;

/// What runs the applications of a step.
pub trait Executor {
    /// Runs the applications of a step until all that measure have ended, at most
    /// for so long, and leaves nothing running.
    ///
    /// # Errors
    /// The step did not run as a whole.
    fn step(&mut self, order: &Order, timeout: Duration) -> Result<Vec<Run>, Failed>;

    /// Runs the commands of hosts before or after a test (`order.when`).
    ///
    /// # Errors
    /// They did not run as a whole.
    fn around(&mut self, _: &Order, _: Duration) -> Result<Vec<Run>, Failed> {
        Ok(Vec::new())
    }

    /// How far the clocks of hosts are ahead now, by name, where that can be measured.
    fn offsets(&mut self) -> BTreeMap<String, Offset> {
        BTreeMap::new()
    }

    /// What the hosts of a group are, by name.
    ///
    /// # Errors
    /// A host does not answer.
    fn hosts(&mut self, group: &Group) -> Result<BTreeMap<String, Host>, Failed> {
        let servers = group.tests.iter().flat_map(|test| &test.servers);
        let names = servers.map(crate::description::Server::name);
        Ok(names.map(|name| (name, Host::here())).collect())
    }
}

/// Why a step did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// A host is lost, by name, with the reason.
    Lost(String, String),
    /// Somebody refused.
    Refused(String),
}

/// What is to run in a step.
#[derive(Clone, Debug)]
pub struct Order {
    /// The place of the test in its group.
    pub test: usize,
    /// The step; around a test, the one before or after which it is.
    pub step: Step,
    /// Whether only commands before or after the test run; `None` is the step.
    pub when: Option<When>,
    /// Its applications, in the order in which they are started.
    pub applications: Vec<Ordered>,
}

/// An application of a step.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Where it runs.
    pub server: String,
    /// What the description tells it, the innermost values.
    pub parameters: BTreeMap<String, Value>,
}

impl Order {
    /// What runs in a step of a test.
    #[must_use]
    pub fn new(test: &Test, step: Step, variables: &BTreeMap<String, Value>) -> Order {
        let mut applications = Vec::new();
        for server in &test.servers {
            for application in &server.applications {
                let mut parameters = test.parameters.clone();
                let inner = variables.iter().chain(&server.parameters);
                for (name, value) in inner.chain(&application.parameters) {
                    parameters.insert(name.clone(), value.clone());
                }
                applications.push(Ordered {
                    name: application.name.clone(),
                    kind: application.kind.clone(),
                    server: server.name(),
                    parameters,
                });
            }
        }
        Order {
            test: 0,
            step,
            when: None,
            applications,
        }
    }
}

/// All that an application is told: what its kind takes, as it takes it, and what
/// others have said when they were ready (`star.port`).
fn complete(
    mut told: BTreeMap<String, Value>,
    entry: &Entry,
) -> Result<BTreeMap<String, Value>, String> {
    for (name, parameter) in entry.parameters.iter().flatten() {
        let kind = &parameter.kind;
        let value = match told.get(name) {
            Some(value) => value
                .convert(kind)
                .ok_or_else(|| format!("`{name}` is {kind}, and not `{value}`"))?,
            None => parameter
                .default
                .clone()
                .ok_or_else(|| format!("nobody says what `{name}` is"))?,
        };
        told.insert(name.clone(), value);
    }
    Ok(told)
}

/// What became of an application in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Run {
    /// Its name.
    pub application: String,
    /// Where it ran.
    pub server: String,
    /// What it measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Measured>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the result means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Its exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What it and all that it started used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Where it spent its time, if that was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The end of what it wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The time.
pub trait Clock {
    /// Now, as RFC 3339 has it.
    fn now(&self) -> String;

    /// Since some moment in the past.
    fn elapsed(&self) -> Duration;
}

/// The clock of this machine.
pub struct SystemClock(std::time::Instant);

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock(std::time::Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> String {
        jiff::Timestamp::now().to_string()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Whoever wants to know how far it is.
pub trait Observer {
    /// A step begins.
    fn begins(&mut self, _: &Progress<'_>) {}

    /// A step has ended, and is kept.
    fn ended(&mut self, _: &Progress<'_>, _: &StepResult) {}

    /// Whether the run is to end now; it can be resumed.
    fn stops(&mut self) -> bool {
        false
    }
}

impl Observer for () {}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The test.
    pub test: &'a Test,
    /// What its variables are.
    pub variables: &'a BTreeMap<String, Value>,
    /// The step.
    pub step: &'a Step,
    /// How many steps have ended, of all tests.
    pub done: u64,
    /// How many there are, of all tests.
    pub steps: u64,
    /// How long the rest probably takes, once a step has ended.
    pub left: Option<Duration>,
}

impl Progress<'_> {
    /// Which step it is: its test, and what its variables are.
    #[must_use]
    pub fn shown(&self) -> String {
        let values: Vec<String> = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let warm_up = match self.step.is_warm_up {
            true => " (warm-up)",
            false => "",
        };
        let shown = format!("{} {}{warm_up}", self.test.name, values.join(", "));
        shown.trim_end().to_owned()
    }
}

/// Keeps steps as they come.
pub trait Keeper {
    /// The step of a test that has been kept before, by a run that was
    /// interrupted.
    fn kept(&mut self, test: usize, step: &Step) -> Option<StepResult>;

    /// Keeps a step.
    ///
    /// # Errors
    /// It cannot be kept.
    fn keep(&mut self, test: usize, result: &StepResult) -> Result<(), String>;
}

/// Keeps nothing.
impl Keeper for () {
    fn kept(&mut self, _: usize, _: &Step) -> Option<StepResult> {
        None
    }

    fn keep(&mut self, _: usize, _: &StepResult) -> Result<(), String> {
        Ok(())
    }
}

/// Runs groups.
pub struct Runner<'a> {
    /// What runs applications.
    pub executor: &'a mut dyn Executor,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
    /// What keeps steps.
    pub keeper: &'a mut dyn Keeper,
}

impl Runner<'_> {
    /// Runs all tests of a group. A step that fails is part of the results.
    ///
    /// # Errors
    /// The run ended before its end; what it has done is kept.
    pub fn run(&mut self, group: &Group) -> Result<Results, String> {
        let hosts = self.executor.hosts(group);
        let hosts = hosts.map_err(|failed| failed.to_string())?;
        let mut results = Results {
            started: self.clock.now(),
            hosts,
            ..Results::new(group.clone())
        };
        let plans: Vec<Plan> = group.tests.iter().map(Plan::new).collect();
        let mut advance = Advance {
            done: 0,
            steps: plans.iter().map(Plan::steps_max).sum(),
            ran: 0,
            started: None,
            began: self.clock.elapsed(),
        };
        for (index, (test, plan)) in group.tests.iter().zip(&plans).enumerate() {
            let mut of_test = OfTest {
                runner: self,
                advance: &mut advance,
                index,
                test,
                plan,
                ended: Vec::new(),
                commands: Vec::new(),
                has_begun: None,
            };
            let found = match plan.searched() {
                None => {
                    let all = plan.steps().try_for_each(|step| of_test.perform(step));
                    all.map(|()| Vec::new())
                }
                Some(_) => search::search(&mut of_test),
            };
            // What was done before the test is undone, also if it ends here.
            let after = of_test.after();
            let found = found?;
            after?;
            results.tests.push(TestResults {
                found,
                commands: of_test.commands,
                ..TestResults::new(test, of_test.ended)
            });
        }
        for (name, offset) in self.executor.offsets() {
            if let Some(host) = results.hosts.get_mut(&name) {
                host.clock_offset_ended = Some(offset);
            }
        }
        if let Some(started) = advance.started {
            results.started = started;
        }
        results.ended = self.clock.now();
        Ok(results)
    }

    /// Runs the commands of hosts before or after a test, which have to succeed.
    fn around(&mut self, test: &Test, step: Step, when: When) -> Result<Vec<Run>, String> {
        let order = Order {
            when: Some(when),
            // Variables are those of steps.
            ..Order::new(test, step, &BTreeMap::new())
        };
        let timeout = Duration::from_secs_f64(test.schedule.timeout_seconds);
        let mut tries = 0;
        let runs = loop {
            match (
                self.executor.around(&order, timeout),
                test.schedule.lost_host,
            ) {
                (Ok(runs), _) => break runs,
                (Err(Failed::Lost(..)), LostHost::Retry) if tries < RETRIES_MAX => tries += 1,
                // Its steps are left out, too.
                (Err(Failed::Lost(..)), LostHost::Skip) => break Vec::new(),
                (Err(failed), _) => return Err(failed.to_string()),
            }
        };
        match runs.iter().find(|run| run.error.is_some()) {
            Some(Run {
                application,
                error,
                output,
                ..
            }) => {
                let error = error.as_deref().unwrap_or_default();
                let test = &test.name;
                Err(format!(
                    "`{application}` around the test `{test}`: {error}\n{output}"
                ))
            }
            None => Ok(runs),
        }
    }

    fn step(
        &mut self,
        test: &Test,
        order: &Order,
        variables: &BTreeMap<String, Value>,
    ) -> Result<StepResult, String> {
        let timeout = Duration::from_secs_f64(test.schedule.timeout_seconds);
        let started = self.clock.now();
        let mut lost = Vec::new();
        loop {
            let before = self.clock.elapsed();
            let ran = self.executor.step(order, timeout);
            let took = self.clock.elapsed().saturating_sub(before);
            let (runs, outcome) = match ran {
                Ok(runs) => {
                    let outcome = Outcome::of(&runs);
                    (runs, outcome)
                }
                Err(Failed::Refused(why)) => return Err(why),
                Err(Failed::Lost(host, why)) => {
                    lost.push(format!("{host}: {why}"));
                    let tries = u32::try_from(lost.len()).unwrap_or(u32::MAX);
                    match test.schedule.lost_host {
                        LostHost::Retry if tries <= RETRIES_MAX => continue,
                        LostHost::Retry | LostHost::Fail => {
                            return Err(format!("the host {host} is lost: {why}"));
                        }
                        LostHost::Skip => (Vec::new(), Outcome::Lost),
                    }
                }
            };
            return Ok(StepResult {
                step: order.step.clone(),
                variables: variables.clone(),
                started,
                took_seconds: took.as_secs_f64(),
                outcome,
                lost,
                runs,
            });
        }
    }
}

/// How far a run is.
struct Advance {
    done: u64,
    /// How many steps there are, at most.
    steps: u64,
    /// How many of them have run now, and were not kept from a run before.
    ran: u32,
    /// When the first step began, if a run before has kept it.
    started: Option<String>,
    began: Duration,
}

impl Advance {
    /// How long the rest probably takes, once a step has run.
    fn left(&self, clock: &dyn Clock) -> Option<Duration> {
        let spent = clock.elapsed().saturating_sub(self.began);
        let rest = u32::try_from(self.steps.saturating_sub(self.done)).unwrap_or(u32::MAX);
        Some(spent.checked_div(self.ran)?.saturating_mul(rest))
    }
}

/// A test as far as it has run.
struct OfTest<'a, 'r> {
    runner: &'a mut Runner<'r>,
    advance: &'a mut Advance,
    /// Its place in the group.
    index: usize,
    test: &'a Test,
    plan: &'a Plan,
    ended: Vec<StepResult>,
    /// What commands before and after it did.
    commands: Vec<Run>,
    /// The first step that ran now.
    has_begun: Option<Step>,
}

impl OfTest<'_, '_> {
    /// Runs the commands after the test, if any step ran.
    fn after(&mut self) -> Result<(), String> {
        if let Some(step) = self.has_begun.take() {
            let runs = self.runner.around(self.test, step, When::AfterTest)?;
            self.commands.extend(runs);
        }
        Ok(())
    }

    /// Runs a step, unless it was kept from a run before.
    fn perform(&mut self, step: Step) -> Result<(), String> {
        let Advance { done, steps, .. } = *self.advance;
        let runner = &mut *self.runner;
        if let Some(kept) = runner.keeper.kept(self.index, &step) {
            if done == 0 {
                self.advance.started = Some(kept.started.clone());
            }
            self.ended.push(kept);
            self.advance.done += 1;
            return Ok(());
        }
        if runner.observer.stops() {
            return Err(format!("stopped after {done} of {steps} steps"));
        }
        let variables = self.plan.values(step.point);
        let mut progress = Progress {
            test: self.test,
            variables: &variables,
            step: &step,
            done,
            steps,
            left: self.advance.left(runner.clock),
        };
        if self.has_begun.is_none() {
            self.has_begun = Some(step.clone());
            let runs = runner.around(self.test, step.clone(), When::BeforeTest)?;
            self.commands.extend(runs);
        }
        runner.observer.begins(&progress);
        let order = Order {
            test: self.index,
            ..Order::new(self.test, step.clone(), &variables)
        };
        let result = runner.step(self.test, &order, &variables)?;
        runner.keeper.keep(self.index, &result)?;
        self.advance.done += 1;
        self.advance.ran += 1;
        progress.done += 1;
        progress.left = self.advance.left(runner.clock);
        runner.observer.ended(&progress, &result);
        self.ended.push(result);
        Ok(())
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Lost(host, why) => write!(f, "the host {host} is lost: {why}"),
            Failed::Refused(why) => f.write_str(why),
        }
    }
}
