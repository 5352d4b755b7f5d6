//! Percentiles: exact for a while, then within one percent.

use std::collections::BTreeMap;

use super::super::state::{State, state};

/// So many values are kept as they are.
pub(crate) const EXACT: usize = 1024;

/// Beyond that the result lies at most this part of it away from the truth.
pub(crate) const ERROR: f64 = 0.01;

/// So many ranges are told apart, which is enough for magnitudes that lie 17
/// decades apart. What is nearest to zero is counted as zero beyond that.
const RANGES: usize = 2048;

/// The values of which percentiles are wanted.
///
/// The sketch counts values by ranges that grow geometrically, after Masson,
/// Rim and Lee, *`DDSketch`: a fast and fully-mergeable quantile sketch with
/// relative-error guarantees* (2019).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Quantiles {
    Exact(Vec<f64>),
    Sketch(Box<Sketch>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sketch {
    negative: BTreeMap<i32, u64>,
    zero: u64,
    positive: BTreeMap<i32, u64>,
}

state!(Sketch {
    negative,
    zero,
    positive
});

impl Default for Quantiles {
    fn default() -> Quantiles {
        Quantiles::Exact(Vec::new())
    }
}

impl Quantiles {
    pub fn add(&mut self, value: f64) {
        match self {
            Quantiles::Exact(values) => {
                values.push(value);
                if values.len() > EXACT {
                    self.sketch();
                }
            }
            Quantiles::Sketch(sketch) => sketch.add(value),
        }
    }

    /// Adds all that another one has.
    pub fn merge(&mut self, other: &Quantiles) {
        match (&mut *self, other) {
            (Quantiles::Exact(values), Quantiles::Exact(others)) => {
                values.extend_from_slice(others);
                if values.len() > EXACT {
                    self.sketch();
                }
            }
            (Quantiles::Sketch(sketch), Quantiles::Exact(others)) => {
                others.iter().for_each(|value| sketch.add(*value));
            }
            (Quantiles::Exact(values), Quantiles::Sketch(others)) => {
                let mut sketch = others.clone();
                values.iter().for_each(|value| sketch.add(*value));
                *self = Quantiles::Sketch(sketch);
            }
            (Quantiles::Sketch(sketch), Quantiles::Sketch(others)) => sketch.merge(others),
        }
    }

    fn sketch(&mut self) {
        if let Quantiles::Exact(values) = self {
            let mut sketch = Sketch::default();
            values.iter().for_each(|value| sketch.add(*value));
            *self = Quantiles::Sketch(Box::new(sketch));
        }
    }

    /// Whether results may be wrong by [`ERROR`].
    pub fn is_sketch(&self) -> bool {
        matches!(self, Quantiles::Sketch(_))
    }

    /// The value below which this part of the values lies, from 0 to 1: between
    /// two of them in proportion. Nothing where there are none.
    pub fn at(&self, part: f64) -> Option<f64> {
        match self {
            Quantiles::Exact(values) => {
                let mut values = values.clone();
                values.sort_unstable_by(f64::total_cmp);
                of_sorted(values.len(), part, |rank| values[rank])
            }
            Quantiles::Sketch(sketch) => {
                of_sorted(sketch.count(), part, |rank| sketch.rank(rank as u64))
            }
        }
    }
}

/// The value at a part of sorted ones, which are told by their rank.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "ranks are small and not negative"
)]
pub(crate) fn of_sorted(count: usize, part: f64, value: impl Fn(usize) -> f64) -> Option<f64> {
    let last = count.checked_sub(1)?;
    let place = part * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = place - below as f64;
    let (below, above) = (value(below), value(above));
    Some(below * (1.0 - share) + above * share)
}

impl Sketch {
    fn add(&mut self, value: f64) {
        if value > 0.0 {
            *self.positive.entry(range(value)).or_default() += 1;
        } else if value < 0.0 {
            *self.negative.entry(range(-value)).or_default() += 1;
        } else {
            self.zero += 1;
        }
        self.shrink();
    }

    fn merge(&mut self, other: &Sketch) {
        self.zero += other.zero;
        for (range, count) in &other.positive {
            *self.positive.entry(*range).or_default() += count;
        }
        for (range, count) in &other.negative {
            *self.negative.entry(*range).or_default() += count;
        }
        self.shrink();
    }

    /// Counts what is nearest to zero as zero, where there are too many ranges.
    fn shrink(&mut self) {
        while self.positive.len() + self.negative.len() > RANGES {
            let nearest = |counts: &BTreeMap<i32, u64>| counts.keys().next().copied();
            let (positive, negative) = (nearest(&self.positive), nearest(&self.negative));
            let first = match (positive, negative) {
                (Some(positive), Some(negative)) if positive > negative => &mut self.negative,
                (None, _) => &mut self.negative,
                _ => &mut self.positive,
            };
            self.zero += first.pop_first().map_or(0, |(_, count)| count);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "nobody counts 2^64 events")]
    fn count(&self) -> usize {
        let counts = self.negative.values().chain(self.positive.values());
        (self.zero + counts.sum::<u64>()) as usize
    }

    /// The value of a rank, counted from 0.
    fn rank(&self, rank: u64) -> f64 {
        let negative = self.negative.iter().rev();
        let negative = negative.map(|(range, count)| (-middle(*range), *count));
        let positive = self
            .positive
            .iter()
            .map(|(range, count)| (middle(*range), *count));
        let mut seen = 0;
        let mut value = 0.0;
        for (next, count) in negative.chain([(0.0, self.zero)]).chain(positive) {
            if count > 0 {
                value = next;
            }
            seen += count;
            if seen > rank {
                break;
            }
        }
        value
    }
}

/// How much greater the end of a range is than its start.
const GROWTH: f64 = (1.0 + ERROR) / (1.0 - ERROR);

/// The range that a positive value lies in.
#[allow(
    clippy::cast_possible_truncation,
    reason = "there are some 70,000 ranges"
)]
fn range(value: f64) -> i32 {
    (value.ln() / GROWTH.ln()).ceil() as i32
}

/// The value that is equally wrong at both ends of a range.
fn middle(range: i32) -> f64 {
    2.0 * (f64::from(range) * GROWTH.ln()).exp() / (GROWTH + 1.0)
}

impl State for Quantiles {
    fn save(&self) -> milieu_transfer::Value {
        let (exact, sketch) = match self {
            Quantiles::Exact(values) => (Some(values.clone()), None),
            Quantiles::Sketch(sketch) => (None, Some(sketch.clone())),
        };
        (exact, sketch).save()
    }

    fn load(value: &milieu_transfer::Value) -> Result<Self, String> {
        match State::load(value)? {
            (Some(values), None) => Ok(Quantiles::Exact(values)),
            (None, Some(sketch)) => Ok(Quantiles::Sketch(sketch)),
            _ => Err("values or a sketch were saved".to_owned()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Quantiles::Exact(ours), Quantiles::Exact(theirs)) => ours.is_same(theirs),
            (Quantiles::Sketch(ours), Quantiles::Sketch(theirs)) => ours.is_same(theirs),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ERROR, EXACT, Quantiles, of_sorted};
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Quantiles {
        let mut quantiles = Quantiles::default();
        values.iter().for_each(|value| quantiles.add(*value));
        quantiles
    }

    #[test]
    fn the_middle_of_two_lies_between_them() {
        assert_eq!(of(&[4.0, 1.0]).at(0.5), Some(2.5));
        assert_eq!(of(&[3.0, 1.0, 2.0]).at(0.5), Some(2.0));
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0]).at(0.95), Some(4.8));
        assert_eq!(of(&[]).at(0.5), None);
    }

    #[test]
    fn magnitudes_far_apart_stay_bounded() {
        let mut quantiles = Quantiles::default();
        for exponent in -300..300 {
            for digit in 1..=9 {
                quantiles.add(f64::from(digit) * 10_f64.powi(exponent));
            }
        }
        let Quantiles::Sketch(sketch) = &quantiles else {
            panic!("{} values are more than {EXACT}", 600 * 9);
        };
        assert!(sketch.positive.len() <= super::RANGES);
        let greatest = quantiles.at(1.0).unwrap();
        assert!((greatest / 9e299 - 1.0).abs() <= ERROR + 1e-9);
    }

    proptest! {
        #[test]
        fn the_sketch_keeps_to_its_error(
            values in prop::collection::vec(-1e6..1e6_f64, EXACT + 1..3 * EXACT),
            part in 0.0..=1.0_f64,
            cut in 0..EXACT,
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let (left, right) = values.split_at(cut);
            let mut merged = of(left);
            merged.merge(&of(right));
            for quantiles in [of(&values), merged] {
                prop_assert!(quantiles.is_sketch());
                let greatest = std::cell::Cell::new(0.0_f64);
                let exact = of_sorted(sorted.len(), part, |rank| {
                    greatest.set(greatest.get().max(sorted[rank].abs()));
                    sorted[rank]
                });
                let distance = (quantiles.at(part).unwrap() - exact.unwrap()).abs();
                prop_assert!(distance <= greatest.get() * (ERROR + 1e-9), "{distance}");
            }
        }
    }
}
