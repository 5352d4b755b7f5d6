//! What changed between two results, beyond noise.
//!
//! Many comparisons find a difference by chance: with 95 % each, one of twenty
//! does. All of a comparison together keep to that, so each has to be surer
//! (Bonferroni). What is compared are the means of rounds: applications of one step
//! meet the same noise, rounds do not. What differs between runs as a whole, as
//! another machine, is no noise that one of them could show, so [`differences`]
//! says what is different in hosts, versions and descriptions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use crate::Value;
use crate::result::{Point, Results, TestResults};
use crate::run::protocol::Measured;
use crate::statistics::{CONFIDENCE, Ratio, Statistics, change, difference};

/// A point of both results, and a metric of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Change {
    /// The test.
    pub test: String,
    /// What its variables are.
    pub variables: BTreeMap<String, Value>,
    /// What was measured; of distributions `METRIC.mean` and percentiles.
    pub metric: String,
    /// The mean of the old rounds.
    pub old: Option<f64>,
    /// The mean of the new ones.
    pub new: Option<f64>,
    /// How many times the new value is the old one, where both are above 0.
    pub ratio: Option<Ratio>,
    /// What that means.
    pub verdict: Verdict,
}

/// What a comparison of two values says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The new value is smaller, beyond noise.
    Smaller,
    /// The new value is larger, beyond noise.
    Larger,
    /// No difference, or none beyond noise.
    Same,
    /// There are too few rounds to say.
    Unknown,
    /// Only the old result has it.
    Gone,
    /// Only the new result has it.
    New,
}

/// Something that is not the same in hosts, versions or descriptions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What it is, as a path into the result.
    pub differs: String,
    /// What it was; `None`: it was not there.
    pub old: Option<serde_json::Value>,
    /// What it is now.
    pub new: Option<serde_json::Value>,
}

/// Compares all that two results have. A difference below `margin`, a share, does
/// not count, even where it is certain.
#[must_use]
pub fn compare(old: &Results, new: &Results, margin: f64) -> Vec<Change> {
    let (before, after) = (entries(old), entries(new));
    let find = |all: &[Compared<'_>], it: &Compared<'_>| {
        let found = all.iter().find(|other| other.is_of(it));
        found.map(|entry| entry.rounds.clone())
    };
    let both = before
        .iter()
        .filter(|entry| find(&after, entry).is_some())
        .count();
    #[expect(clippy::cast_precision_loss, reason = "a few comparisons")]
    let confidence = 1.0 - (1.0 - CONFIDENCE) / both.max(1) as f64;
    let mut changes = Vec::new();
    for entry in &before {
        let mean = Statistics::of(&entry.rounds).map(|statistics| statistics.mean);
        let Some(rounds) = find(&after, entry) else {
            changes.push(Change {
                old: mean,
                ..entry.change(Verdict::Gone)
            });
            continue;
        };
        changes.push(Change {
            old: mean,
            new: Statistics::of(&rounds).map(|statistics| statistics.mean),
            ratio: change(&entry.rounds, &rounds, confidence),
            ..entry.change(verdict(&entry.rounds, &rounds, confidence, margin))
        });
    }
    for entry in &after {
        if find(&before, entry).is_none() {
            changes.push(Change {
                new: Statistics::of(&entry.rounds).map(|statistics| statistics.mean),
                ..entry.change(Verdict::New)
            });
        }
    }
    changes
}

fn verdict(old: &[f64], new: &[f64], confidence: f64, margin: f64) -> Verdict {
    let is_above = |values: &[f64]| values.iter().all(|value| *value > 0.0);
    // Where all is above 0, noise is a share of it.
    let (interval, beyond) = match change(old, new, confidence) {
        Some(ratio) => {
            let interval = ratio.confidence.map(|(low, high)| (low.ln(), high.ln()));
            (interval, ratio.ratio.ln().abs() > margin.ln_1p())
        }
        None if is_above(old) && is_above(new) => (None, false),
        None => match difference(old, new, confidence) {
            Some((difference, interval)) => {
                let before = Statistics::of(old).map_or(0.0, |statistics| statistics.mean);
                (interval, difference.abs() > margin * before.abs())
            }
            None => (None, false),
        },
    };
    match interval {
        None => Verdict::Unknown,
        Some((low, _)) if low > 0.0 && beyond => Verdict::Larger,
        Some((_, high)) if high < 0.0 && beyond => Verdict::Smaller,
        Some(_) => Verdict::Same,
    }
}

/// A metric of a point of a test.
struct Compared<'r> {
    test: &'r str,
    point: &'r Point,
    metric: String,
    /// Its mean in each round.
    rounds: Vec<f64>,
}

impl Compared<'_> {
    fn is_of(&self, other: &Compared<'_>) -> bool {
        self.test == other.test
            && self.metric == other.metric
            && self.point.variables == other.point.variables
    }

    fn change(&self, verdict: Verdict) -> Change {
        Change {
            test: self.test.into(),
            variables: self.point.variables.clone(),
            metric: self.metric.clone(),
            old: None,
            new: None,
            ratio: None,
            verdict,
        }
    }
}

fn entries(results: &Results) -> Vec<Compared<'_>> {
    let mut entries = Vec::new();
    for test in &results.tests {
        for point in &test.points {
            for metric in point.metrics.keys() {
                let rounds: Vec<f64> = point.rounds(metric).into_values().collect();
                let distributions = distributions(test, point, metric);
                let mut add = |metric: String, rounds: Vec<f64>| {
                    entries.push(Compared {
                        test: &test.name,
                        point,
                        metric,
                        rounds,
                    });
                };
                if rounds.is_empty() && !distributions.is_empty() {
                    for (name, rounds) in of_distributions(&distributions) {
                        add(format!("{metric}.{name}"), rounds);
                    }
                } else {
                    add(metric.clone(), rounds);
                }
            }
        }
    }
    entries
}

/// The statistics of the distributions of each round, merged first.
fn distributions(test: &TestResults, point: &Point, metric: &str) -> Vec<Statistics> {
    let mut rounds = BTreeMap::new();
    let is_of = |step: &&crate::result::StepResult| {
        !step.step.is_warm_up && step.variables == point.variables
    };
    for step in test.steps.iter().filter(is_of) {
        for run in step
            .runs
            .iter()
            .filter(|run| run.error.is_none() && run.invalid.is_none())
        {
            let Some(Measured::Distribution(distribution)) = run.results.get(metric) else {
                continue;
            };
            let Ok(histogram) = distribution.histogram() else {
                continue;
            };
            match rounds.entry(step.step.round) {
                Entry::Vacant(round) => {
                    round.insert((histogram, distribution.scale));
                }
                // What does not fit is a failure of the point, and not of this.
                Entry::Occupied(mut round) => _ = round.get_mut().0.add(&histogram),
            }
        }
    }
    let rounds = rounds.into_values();
    rounds
        .filter_map(|(histogram, scale)| Statistics::of_histogram(&histogram, scale))
        .collect()
}

/// What is compared of distributions.
fn of_distributions(rounds: &[Statistics]) -> [(&'static str, Vec<f64>); 3] {
    let percentile = |wanted: f64| {
        let of = |round: &Statistics| {
            let mut percentiles = round.percentiles.iter();
            percentiles.find_map(|(percent, value)| (*percent >= wanted).then_some(*value))
        };
        rounds.iter().filter_map(of).collect::<Vec<f64>>()
    };
    [
        ("mean", rounds.iter().map(|round| round.mean).collect()),
        ("p50", percentile(50.0)),
        ("p99", percentile(99.0)),
    ]
}

/// What is not the same in versions, hosts and descriptions. Changes may come of
/// that.
#[must_use]
pub fn differences(old: &Results, new: &Results) -> Vec<Difference> {
    let (old, new) = (leaves(old), leaves(new));
    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let differing = paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path));
    let differing = differing.map(|path| Difference {
        differs: path.clone(),
        old: old.get(path).cloned(),
        new: new.get(path).cloned(),
    });
    differing.collect()
}

/// All single values of what a run was made with, by their paths.
fn leaves(results: &Results) -> BTreeMap<String, serde_json::Value> {
    let mut leaves = BTreeMap::new();
    let mut hosts = serde_json::json!(results.hosts);
    for host in hosts.as_object_mut().into_iter().flatten() {
        if let Some(host) = host.1.as_object_mut() {
            // They are others in each run.
            host.remove("clock-offset");
            host.remove("clock-offset-ended");
        }
    }
    flatten("milieu", &serde_json::json!(results.milieu), &mut leaves);
    flatten("hosts", &hosts, &mut leaves);
    let group = serde_json::json!(results.group);
    for part in ["properties", "tests"] {
        flatten(part, &group[part], &mut leaves);
    }
    leaves
}

fn flatten(path: &str, value: &serde_json::Value, into: &mut BTreeMap<String, serde_json::Value>) {
    use serde_json::Value as Json;
    match value {
        Json::Null => {}
        Json::Object(members) => {
            for (name, value) in members {
                flatten(&format!("{path}.{name}"), value, into);
            }
        }
        Json::Array(elements) if elements.iter().any(Json::is_object) => {
            for (index, element) in elements.iter().enumerate() {
                // A name stays when something is added before it.
                let name = match &element["name"] {
                    Json::String(name) => name.clone(),
                    _ => index.to_string(),
                };
                flatten(&format!("{path}.{name}"), element, into);
            }
        }
        leaf => _ = into.insert(path.to_owned(), leaf.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{Group, Test};
    use crate::result::{PointValue, TestResults};
    use crate::statistics::Statistics;

    fn results(points: &[&[f64]]) -> Results {
        let points = points.iter().zip(0..).map(|(values, index)| {
            let numbered = values.iter().zip(0..).map(|(value, round)| PointValue {
                metric: "value".into(),
                application: "a".into(),
                round,
                value: *value,
            });
            Point {
                variables: BTreeMap::from([("n".to_owned(), Value::Integer(index))]),
                metrics: BTreeMap::from([("value".to_owned(), Statistics::of(values).unwrap())]),
                values: numbered.collect(),
                failures: Vec::new(),
            }
        });
        let test = TestResults {
            name: Test::default().name,
            points: points.collect(),
            ..TestResults::default()
        };
        Results {
            tests: vec![test],
            ..Results::new(Group::default())
        }
    }

    #[test]
    fn changes_are_told_from_noise_and_from_what_is_missing() {
        let old = results(&[
            &[10.0, 10.1, 9.9, 10.0],
            &[5.0, 5.1, 4.9, 5.0],
            &[1.0],
            &[1.0, 1.1],
        ]);
        let new = results(&[&[11.0, 11.1, 10.9, 11.0], &[5.02, 5.1, 4.92, 5.0], &[2.0]]);
        let verdicts = |old, new, margin| -> Vec<Verdict> {
            compare(old, new, margin)
                .into_iter()
                .map(|change| change.verdict)
                .collect()
        };
        use Verdict::{Gone, Larger, New, Same, Smaller, Unknown};
        assert_eq!(verdicts(&old, &new, 0.01), [Larger, Same, Unknown, Gone]);
        assert_eq!(verdicts(&new, &old, 0.01), [Smaller, Same, Unknown, New]);
        assert_eq!(verdicts(&old, &new, 0.2), [Same, Same, Unknown, Gone]);
    }

    #[test]
    fn zero_and_what_is_below_it_are_compared_too() {
        let verdict =
            |old: &[f64], new: &[f64]| compare(&results(&[old]), &results(&[new]), 0.01)[0].verdict;
        assert_eq!(verdict(&[0.0, 0.0, 0.0], &[0.0, 0.0, 0.0]), Verdict::Same);
        assert_eq!(verdict(&[0.0, 0.0, 0.0], &[3.0, 3.1, 2.9]), Verdict::Larger);
        assert_eq!(
            verdict(&[-5.0, -5.1, -4.9], &[-7.0, -7.1, -6.9]),
            Verdict::Smaller
        );
        assert_eq!(verdict(&[0.0, 5.0, -4.0], &[1.0, -6.0, 4.0]), Verdict::Same);
        assert_eq!(verdict(&[0.0], &[0.0]), Verdict::Unknown);
    }

    #[test]
    fn what_differs_beside_the_numbers_is_said() {
        let mut old = results(&[&[1.0, 1.1]]);
        old.group.tests = vec![Test {
            name: "t".into(),
            ..Test::default()
        }];
        let mut new = old.clone();
        assert_eq!(differences(&old, &new), []);
        let host = |kernel: &str| crate::result::Host {
            kernel: kernel.into(),
            ..Default::default()
        };
        old.hosts.insert("here".into(), host("6.1"));
        new.hosts.insert("here".into(), host("6.2"));
        new.milieu = "9.9.9".into();
        let test = &mut new.group.tests[0];
        test.parameters.insert("n".into(), Value::Integer(2));
        test.schedule.warm_up = 3;
        let said: Vec<String> = differences(&old, &new)
            .iter()
            .map(|it| {
                format!(
                    "{} {:?} {:?}",
                    it.differs,
                    it.old.is_some(),
                    it.new.is_some()
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                "hosts.here.kernel true true",
                "milieu true true",
                "tests.t.parameters.n false true",
                "tests.t.schedule.warm-up true true",
            ]
        );
    }

    /// Rounds of several applications, which share the noise of their round.
    fn shared(random: &mut fastrand::Rng, points: usize, rounds: u32, factor: f64) -> Results {
        let mut all = results(&vec![&[1.0][..]; points]);
        for point in &mut all.tests[0].points {
            point.values.clear();
            for round in 0..rounds {
                let sum: f64 = (0..12).map(|_| random.f64()).sum();
                let mut noise = 0.05 * (sum - 6.0);
                // Now and then something else runs, too.
                if random.f64() < 0.1 {
                    noise += 0.3 * random.f64();
                }
                for application in ["a", "b", "c"] {
                    let own = 0.005 * (random.f64() - 0.5);
                    point.values.push(PointValue {
                        metric: "value".into(),
                        application: application.into(),
                        round,
                        value: 10.0 * factor * (noise + own).exp(),
                    });
                }
            }
        }
        all
    }

    #[test]
    fn applications_of_one_round_are_no_more_than_one_measurement() {
        let mut random = fastrand::Rng::with_seed(3);
        let is_alarm = |change: &Change| change.verdict != Verdict::Same;
        for rounds in [2, 3, 8] {
            let mut alarms = 0;
            for _ in 0..200 {
                let old = shared(&mut random, 20, rounds, 1.0);
                let new = shared(&mut random, 20, rounds, 1.0);
                alarms += usize::from(compare(&old, &new, 0.0).iter().any(is_alarm));
            }
            // One of twenty is promised: ten of these, 16 with the noise of that.
            assert!(alarms <= 17, "{rounds} rounds: {alarms}");
        }
    }

    #[test]
    fn real_changes_are_found_among_many_comparisons() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut found, mut wrong) = (0, 0);
        for _ in 0..20 {
            let old = shared(&mut random, 20, 12, 1.0);
            let new = shared(&mut random, 20, 12, 1.3);
            let changes = compare(&old, &new, 0.01);
            let count = |verdict| changes.iter().filter(|it| it.verdict == verdict).count();
            found += count(Verdict::Larger);
            wrong += count(Verdict::Smaller);
        }
        // 400 changes of 30 %, measured twelve times with 5 % noise and more.
        assert!(found >= 360 && wrong == 0, "{found} {wrong}");
    }

    #[test]
    fn distributions_are_compared_round_by_round() {
        use crate::plan::Step;
        use crate::result::{Outcome, StepResult};
        use crate::run::Run;
        use crate::run::protocol::Distribution;
        let run = |factor: u64| {
            let steps = (0..5_u32).map(|round| {
                let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
                for value in 1..=1000 {
                    histogram.record(value * factor + u64::from(round)).unwrap();
                }
                let distribution = Distribution::new(&histogram, 1e-9).unwrap();
                let measured = Measured::Distribution(distribution);
                let run = Run {
                    application: "a".into(),
                    results: BTreeMap::from([("latency".to_owned(), measured)]),
                    ..Run::default()
                };
                StepResult {
                    step: Step {
                        index: round.into(),
                        point: 0,
                        round,
                        is_warm_up: false,
                    },
                    variables: BTreeMap::new(),
                    started: String::new(),
                    took_seconds: 0.0,
                    outcome: Outcome::Measured,
                    lost: Vec::new(),
                    runs: vec![run],
                }
            });
            Results {
                tests: vec![TestResults::new(&Test::default(), steps.collect())],
                ..Results::new(Group::default())
            }
        };
        let said = |old, new| -> Vec<(String, Verdict)> {
            let changes = compare(&run(old), &run(new), 0.01).into_iter();
            changes.map(|it| (it.metric, it.verdict)).collect()
        };
        let all = |verdict| {
            ["latency.mean", "latency.p50", "latency.p99"].map(|it| (it.to_owned(), verdict))
        };
        assert_eq!(said(100, 100), all(Verdict::Same));
        assert_eq!(said(100, 120), all(Verdict::Larger));
    }

    #[test]
    fn noise_alone_raises_few_alarms_however_much_is_compared() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut noisy = || -> Results {
            let mut values = || -> Vec<f64> {
                let mut noise = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                (0..8).map(|_| 10.0 * (0.05 * noise()).exp()).collect()
            };
            let points: Vec<Vec<f64>> = (0..50).map(|_| values()).collect();
            let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
            results(&points)
        };
        let is_alarm = |change: &Change| change.verdict != Verdict::Same;
        let alarms = |_| compare(&noisy(), &noisy(), 0.0).iter().any(is_alarm);
        let with_alarm = (0..200).map(alarms).filter(|alarm| *alarm).count();
        // One of twenty is promised; without the correction nearly all have one.
        assert!(with_alarm <= 20, "{with_alarm}");
    }
}
