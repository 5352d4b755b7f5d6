//! What changed between two results, beyond noise.
//!
//! Many comparisons find a difference by chance: with 95 % each, one of twenty
//! does. All of a comparison together keep to that, so each has to be surer
//! (Bonferroni).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Value;
use crate::result::{Point, Results};
use crate::statistics::{CONFIDENCE, Ratio, change};

/// A point of both results, and a metric of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Change {
    /// The test.
    pub test: String,
    /// What its variables are.
    pub variables: BTreeMap<String, Value>,
    /// What was measured.
    pub metric: String,
    /// How many times the new value is the old one.
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
    /// There are too few values to say.
    Unknown,
    /// Only the old result has it.
    Gone,
    /// Only the new result has it.
    New,
}

/// Compares all that two results have. A difference below `margin`, a share, does
/// not count, even where it is certain.
#[must_use]
pub fn compare(old: &Results, new: &Results, margin: f64) -> Vec<Change> {
    let (before, after) = (entries(old), entries(new));
    let find = |all: &[Entry<'_>], it: &Entry<'_>| {
        let found = all.iter().find(|other| other.is_of(it));
        found.map(|entry| entry.point.numbers(entry.metric))
    };
    let both = before
        .iter()
        .filter(|entry| find(&after, entry).is_some())
        .count();
    #[expect(clippy::cast_precision_loss, reason = "a few comparisons")]
    let confidence = 1.0 - (1.0 - CONFIDENCE) / both.max(1) as f64;
    let mut changes = Vec::new();
    for entry in &before {
        let Some(new) = find(&after, entry) else {
            changes.push(entry.change(None, Verdict::Gone));
            continue;
        };
        let old = entry.point.numbers(entry.metric);
        let ratio = change(&old, &new, confidence);
        let verdict = match ratio.as_ref().and_then(|ratio| ratio.confidence) {
            None => Verdict::Unknown,
            Some((low, _)) if low > 1.0 && is_beyond(&ratio, margin) => Verdict::Larger,
            Some((_, high)) if high < 1.0 && is_beyond(&ratio, margin) => Verdict::Smaller,
            Some(_) => Verdict::Same,
        };
        changes.push(entry.change(ratio, verdict));
    }
    for entry in &after {
        if find(&before, entry).is_none() {
            changes.push(entry.change(None, Verdict::New));
        }
    }
    changes
}

fn is_beyond(ratio: &Option<Ratio>, margin: f64) -> bool {
    ratio
        .as_ref()
        .is_some_and(|ratio| ratio.ratio.ln().abs() > margin.ln_1p())
}

/// A metric of a point of a test.
struct Entry<'r> {
    test: &'r str,
    point: &'r Point,
    metric: &'r str,
}

impl Entry<'_> {
    fn is_of(&self, other: &Entry<'_>) -> bool {
        self.test == other.test
            && self.metric == other.metric
            && self.point.variables == other.point.variables
    }

    fn change(&self, ratio: Option<Ratio>, verdict: Verdict) -> Change {
        Change {
            test: self.test.into(),
            variables: self.point.variables.clone(),
            metric: self.metric.into(),
            ratio,
            verdict,
        }
    }
}

fn entries(results: &Results) -> Vec<Entry<'_>> {
    let tests = results.tests.iter();
    let points = tests.flat_map(|test| test.points.iter().map(move |point| (test, point)));
    let entries = points.flat_map(|(test, point)| {
        point.metrics.keys().map(move |metric| Entry {
            test: &test.name,
            point,
            metric,
        })
    });
    entries.collect()
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
