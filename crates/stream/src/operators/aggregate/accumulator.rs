//! What is known of the readings in a window, without the readings.

use std::sync::Arc;

use milieu_transfer::{Event, Time};

use super::super::quality::{accuracy, failure};
use super::super::state::state;
use super::quantiles::Quantiles;

/// One reading of a sensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub time: Time,
    pub value: f64,
    /// The truth lies at most so far away, if that is known.
    pub accuracy: Option<f64>,
}

state!(Reading {
    time,
    value,
    accuracy
});

impl Reading {
    pub fn new(event: &Event, value: f64) -> Reading {
        Reading {
            time: event.time(),
            value,
            accuracy: accuracy(event),
        }
    }
}

/// Readings, summed up. Two that follow on each other can be merged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accumulator {
    pub count: u64,
    pub failed: u64,
    /// What was wrong with the sensor that failed last.
    pub failure: Option<Arc<str>>,
    sum: f64,
    /// What the sum has lost by rounding, after Neumaier.
    lost: f64,
    pub minimum: f64,
    pub maximum: f64,
    /// Mean and sum of squared distances from it, after Welford: squares of the
    /// values themselves would cancel out.
    mean: f64,
    squares: f64,
    /// The reading of the earliest time; of equal times the one that came first.
    pub first: Option<Reading>,
    /// The reading of the latest time; of equal times the one that came last.
    pub last: Option<Reading>,
    inaccuracy: f64,
    pub inaccuracy_most: f64,
    inaccuracy_unknown: u64,
    pub quantiles: Option<Box<Quantiles>>,
}

state!(Accumulator {
    count,
    failed,
    failure,
    sum,
    lost,
    minimum,
    maximum,
    mean,
    squares,
    first,
    last,
    inaccuracy,
    inaccuracy_most,
    inaccuracy_unknown,
    quantiles,
});

impl Accumulator {
    /// Of no reading.
    pub fn new(with_quantiles: bool) -> Accumulator {
        Accumulator {
            count: 0,
            failed: 0,
            failure: None,
            sum: 0.0,
            lost: 0.0,
            minimum: f64::INFINITY,
            maximum: f64::NEG_INFINITY,
            mean: 0.0,
            squares: 0.0,
            first: None,
            last: None,
            inaccuracy: 0.0,
            inaccuracy_most: 0.0,
            inaccuracy_unknown: 0,
            quantiles: with_quantiles.then(Box::default),
        }
    }

    #[inline]
    pub fn add(&mut self, reading: &Reading) {
        let value = reading.value;
        self.count += 1;
        self.add_to_sum(value);
        self.minimum = self.minimum.min(value);
        self.maximum = self.maximum.max(value);
        let before = value - self.mean;
        self.mean += before / count(self.count);
        self.squares += before * (value - self.mean);
        match &self.first {
            Some(first) if first.time <= reading.time => {}
            _ => self.first = Some(*reading),
        }
        match &self.last {
            Some(last) if last.time > reading.time => {}
            _ => self.last = Some(*reading),
        }
        match reading.accuracy {
            Some(accuracy) => {
                self.inaccuracy += accuracy;
                self.inaccuracy_most = self.inaccuracy_most.max(accuracy);
            }
            None => self.inaccuracy_unknown += 1,
        }
        if let Some(quantiles) = &mut self.quantiles {
            quantiles.add(value);
        }
    }

    /// Counts an event of a sensor that has failed.
    pub fn fail(&mut self, event: &Event) {
        self.failed += 1;
        self.failure = failure(event).cloned();
    }

    /// Adds what came after this.
    pub fn merge(&mut self, later: &Accumulator) {
        self.failed += later.failed;
        if later.failure.is_some() {
            self.failure.clone_from(&later.failure);
        }
        if later.count == 0 {
            return;
        }
        let (ours, theirs) = (count(self.count), count(later.count));
        let apart = later.mean - self.mean;
        self.count += later.count;
        let all = count(self.count);
        self.mean += apart * (theirs / all);
        self.squares += later.squares + apart * apart * (ours * theirs / all);
        self.add_to_sum(later.sum);
        self.lost += later.lost;
        self.minimum = self.minimum.min(later.minimum);
        self.maximum = self.maximum.max(later.maximum);
        self.first = match (self.first, later.first) {
            (Some(ours), Some(theirs)) if ours.time <= theirs.time => Some(ours),
            (ours, theirs) => theirs.or(ours),
        };
        self.last = match (self.last, later.last) {
            (Some(ours), Some(theirs)) if ours.time > theirs.time => Some(ours),
            (ours, theirs) => theirs.or(ours),
        };
        self.inaccuracy += later.inaccuracy;
        self.inaccuracy_most = self.inaccuracy_most.max(later.inaccuracy_most);
        self.inaccuracy_unknown += later.inaccuracy_unknown;
        if let (Some(ours), Some(theirs)) = (&mut self.quantiles, &later.quantiles) {
            ours.merge(theirs);
        }
    }

    #[inline]
    fn add_to_sum(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    /// The sum of the values.
    pub fn sum(&self) -> f64 {
        match self.sum + self.lost {
            sum if sum.is_nan() => self.sum,
            sum => sum,
        }
    }

    /// The mean; nothing of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| match self.sum() / count(self.count) {
            mean if mean.is_finite() => mean,
            // The sum was too great.
            _ => self.mean,
        })
    }

    /// How far the values lie from their mean: the root of the mean square.
    pub fn deviation(&self) -> Option<f64> {
        let mean_square = self.squares / count(self.count);
        (self.count > 0).then(|| mean_square.max(0.0).sqrt())
    }

    /// The sum of what the readings may be wrong by, if all say so.
    pub fn inaccuracy(&self) -> Option<f64> {
        (self.inaccuracy_unknown == 0 && self.count > 0).then_some(self.inaccuracy)
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
pub(crate) fn count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{Accumulator, Reading};
    use milieu_transfer::Time;
    use proptest::prelude::*;

    fn reading(value: f64) -> Reading {
        Reading {
            time: Time::from_seconds(0),
            value,
            accuracy: None,
        }
    }

    fn of(values: &[f64]) -> Accumulator {
        let mut all = Accumulator::new(false);
        values.iter().for_each(|value| all.add(&reading(*value)));
        all
    }

    #[test]
    fn small_parts_are_not_lost_in_great_sums() {
        assert_eq!(of(&[1.0, 1e100, 1.0, -1e100]).sum(), 2.0);
        let mut merged = of(&[1.0, 1e100]);
        merged.merge(&of(&[1.0, -1e100]));
        assert_eq!(merged.sum(), 2.0);
    }

    #[test]
    fn deviations_do_not_cancel_out() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        assert_eq!(of(&values).deviation(), Some(22.5_f64.sqrt()));
    }

    #[test]
    fn the_mean_of_what_cannot_be_summed() {
        let mean = of(&[1.5e308, 1.5e308]).mean().unwrap();
        assert!((mean / 1.5e308 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn merging_is_adding(
            values in prop::collection::vec(-1e6..1e6_f64, 1..50),
            cut in 0..50_usize,
        ) {
            let all = of(&values);
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = of(left);
            merged.merge(&of(right));
            prop_assert_eq!(merged.count, all.count);
            prop_assert_eq!(merged.minimum, all.minimum);
            prop_assert_eq!(merged.maximum, all.maximum);
            prop_assert!((merged.sum() - all.sum()).abs() <= 1e-9 * 1e6);
            let apart = merged.deviation().unwrap() - all.deviation().unwrap();
            prop_assert!(apart.abs() <= 1e-3, "{}", apart);
        }
    }
}
