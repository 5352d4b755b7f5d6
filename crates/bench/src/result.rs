//! Results: the whole configuration, where it ran, every value, and what they say together.

pub(crate) mod xml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Value;
use crate::description::{Group, Test};
use crate::plan::Step;
use crate::run::Run;
use crate::run::protocol::Measured;
use crate::statistics::{Ratio, Statistics};

/// What a run of a group has given; documents itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Results {
    /// The version of this format.
    pub format: u32,
    /// The version of the harness.
    pub milieu: String,
    /// When it began, as RFC 3339 has it.
    pub started: String,
    /// When it ended.
    pub ended: String,
    /// What was run.
    pub group: Group,
    /// Where it ran.
    pub hosts: BTreeMap<String, Host>,
    /// What came out, test by test.
    pub tests: Vec<TestResults>,
}

/// What came out of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TestResults {
    /// The test.
    pub name: String,
    /// What the values of each point say together, warm-ups left out.
    pub points: Vec<Point>,
    /// What searches have found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Found>,
    /// Every step, in the order in which they ran.
    pub steps: Vec<StepResult>,
    /// Commands of hosts before and after the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Run>,
}

/// The last value of a searched variable for which its condition holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Found {
    /// The searched variable.
    pub variable: String,
    /// What the others were.
    pub others: BTreeMap<String, Value>,
    /// The value; `None`: the condition does not hold even for the first one.
    pub value: Option<Value>,
    /// Whether the condition fails for the next value. If not, there is no next
    /// one, and a larger range would find more.
    pub is_bounded: bool,
    /// Whether the value and the next one, measured once more, said the same.
    pub is_sure: bool,
    /// Why the condition could not be decided, where it could not; it counted as
    /// failing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
}

/// One combination of values of the variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// The values.
    pub variables: BTreeMap<String, Value>,
    /// Statistics of everything that was measured, over all applications and
    /// repetitions.
    pub metrics: BTreeMap<String, Statistics>,
    /// The numbers that they are made of.
    pub values: Vec<PointValue>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

/// A number that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PointValue {
    /// What was measured.
    pub metric: String,
    /// Who measured it.
    pub application: String,
    /// In which round.
    pub round: u32,
    /// The number.
    pub value: f64,
}

/// Something that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// Whose result is missing.
    pub application: String,
    /// In which round.
    pub round: u32,
    /// Why.
    pub message: String,
}

/// A step, and what became of its applications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StepResult {
    /// Its place in the plan.
    pub step: Step,
    /// What the variables were.
    pub variables: BTreeMap<String, Value>,
    /// When it began.
    pub started: String,
    /// How long it took.
    pub took_seconds: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// Which hosts were lost before it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Its applications.
    pub runs: Vec<Run>,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything was measured.
    Measured,
    /// Something was measured and means nothing.
    Invalid,
    /// Something was not measured.
    Failed,
    /// A host was lost, and the step left out.
    Lost,
}

impl Outcome {
    /// How a step of these runs ended.
    #[must_use]
    pub fn of(runs: &[Run]) -> Outcome {
        if runs.iter().any(|run| run.error.is_some()) {
            return Outcome::Failed;
        }
        match runs.iter().any(|run| run.invalid.is_some()) {
            true => Outcome::Invalid,
            false => Outcome::Measured,
        }
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The operating system.
    pub system: String,
    /// The kernel.
    pub kernel: String,
    /// The processor.
    pub processor: String,
    /// How many cores it has for us.
    pub cores: u64,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// How the frequency of the processor is chosen, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The version of the harness there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub milieu: String,
    /// What the commands of its catalogue say about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// What counts a figure of single applications there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, String>,
    /// Why a figure of single applications is not counted there, or only in part, and
    /// why a property could not be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lacks: BTreeMap<String, String>,
    /// What its clocks show beside the coordinator's; `None` for the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<Offset>,
    /// The same when the run ended: what it drifted over days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ended: Option<Offset>,
}

/// How far the clocks of a host are ahead of the coordinator's, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Offset {
    /// The clock that only goes forward.
    pub monotonic_ns: i64,
    /// The time of day.
    pub real_ns: i64,
    /// How far from the truth both can be, either way: half of the shortest way
    /// there and back.
    pub error_ns: i64,
}

impl Host {
    /// This machine.
    #[must_use]
    pub fn here() -> Host {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, word: &str| {
            let line = text.lines().find(|line| line.starts_with(word));
            let rest = line.and_then(|line| line.split_once([':', '=']));
            rest.map_or(String::new(), |(_, rest)| {
                rest.trim().trim_matches('"').to_owned()
            })
        };
        let memory = after(&read("/proc/meminfo"), "MemTotal");
        let memory = memory
            .split(' ')
            .next()
            .and_then(|kib| kib.parse::<u64>().ok());
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Host {
            name: read("/proc/sys/kernel/hostname").trim().to_owned(),
            system: after(&read("/etc/os-release"), "PRETTY_NAME"),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: after(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            memory_bytes: memory.unwrap_or(0) * 1024,
            milieu: env!("CARGO_PKG_VERSION").into(),
            governor: Some(governor.trim().to_owned()).filter(|governor| !governor.is_empty()),
            ..Host::default()
        }
    }
}

impl Host {
    /// What else is known of it, as `; name value`.
    #[must_use]
    pub fn more(&self) -> String {
        let mut more = String::new();
        let governor = self.governor.iter().map(|it| ("governor", &**it));
        let version = Some(("milieu", &*self.milieu)).filter(|(_, it)| !it.is_empty());
        let properties = self.properties.iter().map(|(name, it)| (&**name, &**it));
        for (name, value) in governor.chain(version).chain(properties) {
            more.push_str(&format!("; {name} {value}"));
        }
        more
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}", self.variable)?,
            None => write!(f, "no {} will do", self.variable)?,
        }
        for (name, value) in &self.others {
            write!(f, ", at {name} = {value}")?;
        }
        if !self.is_bounded {
            f.write_str(", the end of the range: more may do")?;
        }
        if !self.is_sure {
            f.write_str("; not sure: measured once more, it was another")?;
        }
        for why in &self.undecided {
            write!(f, "; undecided: {why}")?;
        }
        Ok(())
    }
}

impl Results {
    /// The version of the format that is written.
    pub const FORMAT: u32 = 1;

    /// Results of a group, none yet.
    #[must_use]
    pub fn new(group: Group) -> Results {
        Results {
            format: Results::FORMAT,
            milieu: env!("CARGO_PKG_VERSION").into(),
            group,
            ..Results::default()
        }
    }

    /// Reads results in JSON, or in the paper's XML (its Figure 4), which has all but
    /// the single steps.
    ///
    /// # Errors
    /// It is neither, or of a version that is not known.
    pub fn parse(text: &str) -> Result<Results, String> {
        if text.trim_start().starts_with('<') {
            return xml::parse(text);
        }
        let results: Results = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match results.format {
            Results::FORMAT => Ok(results),
            other => Err(format!(
                "results of format {other}; this version reads {}",
                Results::FORMAT
            )),
        }
    }

    /// The results in JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Maps have texts as keys, and numbers are finite: this cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The results in the paper's XML (its Figure 4): the configuration, the numbers
    /// of each point, what was found, and the hosts. Single steps, with what
    /// applications wrote, are left out, and so are distributions but for their
    /// statistics.
    #[must_use]
    pub fn to_xml(&self) -> String {
        crate::description::with_results(&self.group, self)
    }

    /// The worst that happened to a step.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for test in &self.tests {
            outcomes.extend(test.steps.iter().map(|step| step.outcome));
        }
        let worst = [Outcome::Failed, Outcome::Lost, Outcome::Invalid];
        let found = worst.into_iter().find(|outcome| outcomes.contains(outcome));
        found.unwrap_or(Outcome::Measured)
    }
}

impl TestResults {
    /// What the steps of a test say together.
    #[must_use]
    pub fn new(test: &Test, steps: Vec<StepResult>) -> TestResults {
        let mut by_point: BTreeMap<u64, Vec<&StepResult>> = BTreeMap::new();
        for step in steps.iter().filter(|step| !step.step.is_warm_up) {
            by_point.entry(step.step.point).or_default().push(step);
        }
        let points = by_point.values().map(|steps| Point::new(steps)).collect();
        TestResults {
            name: test.name.clone(),
            points,
            found: Vec::new(),
            steps,
            commands: Vec::new(),
        }
    }

    /// Everything that was measured.
    #[must_use]
    pub fn metrics(&self) -> BTreeSet<&str> {
        let metrics = self.points.iter().flat_map(|point| point.metrics.keys());
        metrics.map(String::as_str).collect()
    }

    /// How many times larger a metric is at one point than at another, from values
    /// of the same round.
    #[must_use]
    pub fn ratio(&self, metric: &str, ours: &Point, theirs: &Point) -> Option<Ratio> {
        let (ours, theirs) = (ours.rounds(metric), theirs.rounds(metric));
        let pairs = ours
            .iter()
            .filter_map(|(round, ours)| Some((*ours, *theirs.get(round)?)));
        Ratio::of(&pairs.collect::<Vec<_>>())
    }
}

impl TestResults {
    /// How many times larger a metric is in the first round that counts than in
    /// those after it, over all points: 1 where the warm-up sufficed. `None`
    /// where there are fewer than two points or two rounds.
    #[must_use]
    pub fn first_round(&self, metric: &str) -> Option<Ratio> {
        let pairs = self.points.iter().filter_map(|point| {
            let mut rounds = point.rounds(metric).into_values();
            let first = rounds.next()?;
            let later = Statistics::of(&rounds.collect::<Vec<_>>())?;
            Some((first, later.mean))
        });
        Ratio::of(&pairs.collect::<Vec<_>>()).filter(|ratio| ratio.pairs > 1)
    }
}

impl Point {
    pub(crate) fn new(steps: &[&StepResult]) -> Point {
        let mut point = Point {
            variables: steps
                .first()
                .map(|step| step.variables.clone())
                .unwrap_or_default(),
            ..Point::default()
        };
        let mut merged = BTreeMap::new();
        for step in steps {
            for lost in &step.lost {
                if step.runs.is_empty() {
                    point.failures.push(Failure {
                        application: String::new(),
                        round: step.step.round,
                        message: lost.clone(),
                    });
                }
            }
            for run in &step.runs {
                point.add(step.step.round, run, &mut merged);
            }
        }
        let names: BTreeSet<String> = point.values.iter().map(|it| it.metric.clone()).collect();
        for metric in names {
            point.summarize(&metric);
        }
        for (metric, (histogram, scale)) in merged {
            if point.metrics.contains_key(&metric) {
                point.failures.push(Failure {
                    application: String::new(),
                    round: 0,
                    message: format!("`{metric}`: numbers, and distributions beside them"),
                });
                continue;
            }
            match Statistics::of_histogram(&histogram, scale) {
                Some(statistics) => _ = point.metrics.insert(metric, statistics),
                None => point.failures.push(Failure {
                    application: String::new(),
                    round: 0,
                    message: format!("`{metric}`: a distribution without numbers"),
                }),
            }
        }
        point
    }

    fn add(
        &mut self,
        round: u32,
        run: &Run,
        merged: &mut BTreeMap<String, (hdrhistogram::Histogram<u64>, f64)>,
    ) {
        let mut fail = |message: &str| {
            self.failures.push(Failure {
                application: run.application.clone(),
                round,
                message: message.into(),
            });
        };
        if let Some(why) = run.error.as_ref().or(run.invalid.as_ref()) {
            fail(why);
            return;
        }
        for (metric, measured) in &run.results {
            match measured {
                Measured::Number(value) => self.values.push(PointValue {
                    metric: metric.clone(),
                    application: run.application.clone(),
                    round,
                    value: *value,
                }),
                Measured::Distribution(distribution) => {
                    let scale = distribution.scale;
                    let added = distribution.histogram().and_then(|histogram| {
                        match merged.get_mut(metric) {
                            None => {
                                merged.insert(metric.clone(), (histogram, scale));
                                Ok(())
                            }
                            Some((all, of)) if of.to_bits() == scale.to_bits() => all
                                .add(&histogram)
                                .map_err(|error| format!("histograms that differ: {error:?}")),
                            Some(_) => Err("distributions of different scales".into()),
                        }
                    });
                    if let Err(why) = added {
                        fail(&format!("`{metric}`: {why}"));
                    }
                }
            }
        }
    }

    /// Makes the statistics of a metric. Applications of one step are not
    /// independent of each other, rounds are: an interval is that of the rounds'
    /// means.
    fn summarize(&mut self, metric: &str) {
        let rounds: Vec<f64> = self.rounds(metric).into_values().collect();
        let confidence = Statistics::of(&rounds).and_then(|rounds| rounds.confidence);
        if let Some(statistics) = Statistics::of(&self.numbers(metric)) {
            let statistics = Statistics {
                confidence,
                ..statistics
            };
            self.metrics.insert(metric.to_owned(), statistics);
        }
    }

    /// The numbers of a metric.
    #[must_use]
    pub fn numbers(&self, metric: &str) -> Vec<f64> {
        let values = self.values.iter().filter(|value| value.metric == metric);
        values.map(|value| value.value).collect()
    }

    /// The mean of a metric in each round.
    pub(crate) fn rounds(&self, metric: &str) -> BTreeMap<u32, f64> {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for value in self.values.iter().filter(|value| value.metric == metric) {
            rounds.entry(value.round).or_default().push(value.value);
        }
        let mean = |values: Vec<f64>| Statistics::of(&values).map(|statistics| statistics.mean);
        let means = rounds
            .into_iter()
            .filter_map(|(round, values)| Some((round, mean(values)?)));
        means.collect()
    }
}
