//! What many values say together.
//!
//! Statistics are made of raw values, always: percentiles of hosts are never
//! averaged, and histograms are merged before anything is read from them.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The share of intervals that contain the true value.
pub const CONFIDENCE: f64 = 0.95;

/// Percentiles that results show.
pub const PERCENTILES: [f64; 6] = [50.0, 75.0, 95.0, 99.0, 99.9, 99.99];

/// What the values of a point say together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Statistics {
    /// How many values there are.
    pub count: u64,
    /// The smallest.
    pub minimum: f64,
    /// The largest.
    pub maximum: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, taken as the whole population (Solar paper,
    /// Figure 4).
    pub deviation: f64,
    /// Each of [`PERCENTILES`] and its value.
    pub percentiles: Vec<(f64, f64)>,
    /// Where the true mean is, with [`CONFIDENCE`], if values are independent;
    /// `None` for a single one.
    pub confidence: Option<(f64, f64)>,
}

impl Statistics {
    /// Of these values; `None`: there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Statistics> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (minimum, maximum) = (*sorted.first()?, *sorted.last()?);
        let (mean, deviation) = moments(values);
        let confidence = interval(values.len(), mean, deviation);
        let percentiles = PERCENTILES.map(|percent| (percent, percentile(&sorted, percent)));
        Some(Statistics {
            count: values.len() as u64,
            minimum,
            maximum,
            mean,
            deviation,
            percentiles: percentiles.to_vec(),
            confidence,
        })
    }

    /// Of a distribution. Its values are not independent, so there is no interval.
    /// `None`: it is empty, or larger than doubles are.
    #[must_use]
    pub fn of_histogram(histogram: &Histogram<u64>, scale: f64) -> Option<Statistics> {
        #[expect(clippy::cast_precision_loss, reason = "results are doubles")]
        let scaled = |value: u64| value as f64 * scale;
        if histogram.is_empty() || !scaled(histogram.max()).is_finite() {
            return None;
        }
        let percentiles = PERCENTILES.map(|percent| {
            let value = histogram.value_at_quantile(percent / 100.0);
            (percent, scaled(value))
        });
        Some(Statistics {
            count: histogram.len(),
            minimum: scaled(histogram.min()),
            maximum: scaled(histogram.max()),
            mean: histogram.mean() * scale,
            deviation: histogram.stdev() * scale,
            percentiles: percentiles.to_vec(),
            confidence: None,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody measures 2^53 times")]
fn float(count: usize) -> f64 {
    count as f64
}

/// The mean, and the standard deviation from it, of the whole population.
fn moments(values: &[f64]) -> (f64, f64) {
    let largest = values
        .iter()
        .fold(0.0, |largest: f64, it| largest.max(it.abs()));
    // Squares of larger ones are none.
    let unit = if largest > 1e150 { largest } else { 1.0 };
    let count = float(values.len());
    let mean = values.iter().map(|value| value / unit).sum::<f64>() / count;
    let squares = values.iter().map(|value| (value / unit - mean).powi(2));
    let deviation = (squares.sum::<f64>() / count).sqrt();
    (mean * unit, deviation * unit)
}

/// Where the true mean is.
fn interval(count: usize, mean: f64, deviation: f64) -> Option<(f64, f64)> {
    if count < 2 {
        return None;
    }
    let freedom = float(count - 1);
    around(mean, deviation / freedom.sqrt(), freedom, CONFIDENCE)
}

/// Student's interval around an estimate with this standard error.
fn around(estimate: f64, error: f64, freedom: f64, confidence: f64) -> Option<(f64, f64)> {
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let half = student.inverse_cdf(0.5 + confidence / 2.0) * error;
    let (low, high) = (estimate - half, estimate + half);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// The value below which so many percent of the others are, between neighbours
/// in proportion.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let place = percent / 100.0 * float(sorted.len() - 1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let share = place - place.floor();
    let (low, high) = (sorted[below], sorted[above]);
    match (high - low).is_finite() {
        true => low + (high - low) * share,
        false => low * (1.0 - share) + high * share,
    }
}

/// How many times larger one thing is than another, from pairs that were
/// measured next to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ratio {
    /// The geometric mean of the ratios of the pairs.
    pub ratio: f64,
    /// Where the true ratio is, with [`CONFIDENCE`]; `None` for a single pair.
    pub confidence: Option<(f64, f64)>,
    /// How many pairs there are.
    pub pairs: u64,
}

impl Ratio {
    /// Of pairs `(ours, theirs)`, both above 0; `None`: there is none.
    ///
    /// What drifts, drifts for both of a pair, and cancels out.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let is_usable = |(ours, theirs): &(f64, f64)| *ours > 0.0 && *theirs > 0.0;
        if pairs.is_empty() || !pairs.iter().all(is_usable) {
            return None;
        }
        let logs: Vec<f64> = pairs
            .iter()
            .map(|(ours, theirs)| (ours / theirs).ln())
            .collect();
        let (mean, deviation) = moments(&logs);
        let confidence = interval(logs.len(), mean, deviation);
        Some(Ratio {
            ratio: mean.exp(),
            confidence: confidence.map(|(low, high)| (low.exp(), high.exp())),
            pairs: pairs.len() as u64,
        })
    }

    /// Whether the difference is more than noise.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.confidence
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }

    /// Whether the two are the same, up to a share: the whole interval is within
    /// `1 / (1 + margin)` and `1 + margin`.
    #[must_use]
    pub fn is_within(&self, margin: f64) -> bool {
        let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
        self.confidence
            .is_some_and(|(low, high)| low >= least && high <= most)
    }
}

/// Two means of different runs: how many times the second is the first, with an
/// interval of this confidence.
///
/// The interval is Welch's, of the logarithms; values have to be above 0.
#[must_use]
pub fn change(old: &[f64], new: &[f64], confidence: f64) -> Option<Ratio> {
    let is_usable = |values: &[f64]| values.iter().all(|value| *value > 0.0);
    if !is_usable(old) || !is_usable(new) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let (difference, interval) = difference(&logs(old), &logs(new), confidence)?;
    Some(Ratio {
        ratio: difference.exp(),
        confidence: interval.map(|(low, high)| (low.exp(), high.exp())),
        pairs: old.len().min(new.len()) as u64,
    })
}

/// Two means of different runs: how much larger the second is, with Welch's interval
/// of this confidence where both have two values at least.
#[must_use]
pub fn difference(old: &[f64], new: &[f64], confidence: f64) -> Option<(f64, Option<(f64, f64)>)> {
    if old.is_empty() || new.is_empty() {
        return None;
    }
    let ((old_mean, old_deviation), (new_mean, new_deviation)) = (moments(old), moments(new));
    let difference = new_mean - old_mean;
    let interval = || {
        if old.len() < 2 || new.len() < 2 {
            return None;
        }
        let square = |count: usize, deviation: f64| deviation.powi(2) / float(count - 1);
        let (first, second) = (
            square(old.len(), old_deviation),
            square(new.len(), new_deviation),
        );
        let both = first + second;
        if both == 0.0 {
            return Some((difference, difference));
        }
        let parts = first.powi(2) / float(old.len() - 1) + second.powi(2) / float(new.len() - 1);
        around(difference, both.sqrt(), both.powi(2) / parts, confidence)
    };
    Some((difference, interval()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    #[test]
    fn the_paper_s_figures_are_repeated() {
        // Figure 4; its maximum is a slip of the pen for the second value.
        let statistics = Statistics::of(&[290.697, 294.801]).unwrap();
        assert!(is_near(statistics.mean, 292.749));
        assert!((statistics.deviation - 2.052).abs() < 0.001);
        let second = Statistics::of(&[291.460, 292.740]).unwrap();
        assert!((second.mean - 292.100).abs() < 0.001);
        assert!((second.deviation - 0.640).abs() < 0.001);
        let typed = Statistics::of(&[290.697, 294.811]).unwrap();
        assert!((typed.mean - 292.754).abs() < 0.001);
        assert!((typed.deviation - 2.057).abs() < 0.001);
    }

    #[test]
    fn numbers_of_any_size_have_statistics() {
        let values = [f64::MAX, -f64::MAX, f64::MAX, 1.0];
        let statistics = Statistics::of(&values).unwrap();
        let finite = [statistics.mean, statistics.deviation];
        let percentiles = statistics.percentiles.iter().map(|(_, value)| *value);
        assert!(finite.into_iter().chain(percentiles).all(f64::is_finite));
        assert!(is_near(statistics.mean, f64::MAX / 4.0));
        let large = Statistics::of(&[1e200, 3e200]).unwrap();
        assert!(is_near(large.deviation, 1e200));
    }

    #[test]
    fn intervals_are_student_s() {
        // 1..=10: mean 5.5, standard error 0.9574, t(9) 2.2622.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let (low, high) = Statistics::of(&values).unwrap().confidence.unwrap();
        assert!(is_near(low, 3.3342), "{low}");
        assert!(is_near(high, 7.6659), "{high}");
        assert_eq!(Statistics::of(&[3.0]).unwrap().confidence, None);
        assert_eq!(Statistics::of(&[]), None);
    }

    #[test]
    fn intervals_of_null_pairs_cover_one_as_often_as_they_promise() {
        let mut random = fastrand::Rng::with_seed(7);
        // Twelve uniform numbers are nearly a normal one.
        let mut noise = |scale: f64| {
            let sum: f64 = (0..12).map(|_| random.f64()).sum();
            (scale * (sum - 6.0)).exp()
        };
        let experiments = 2000;
        let mut covered = 0;
        for _ in 0..experiments {
            let mut drift = 1.0;
            let pairs: Vec<(f64, f64)> = (0..10)
                .map(|_| {
                    drift *= noise(0.3);
                    (drift * noise(0.05), drift * noise(0.05))
                })
                .collect();
            covered += u32::from(!Ratio::of(&pairs).unwrap().differs());
        }
        let share = f64::from(covered) / f64::from(experiments);
        assert!((0.935..=0.965).contains(&share), "{share}");
    }

    #[test]
    fn a_change_is_told_from_noise() {
        let old = [10.0, 10.1, 9.9, 10.0, 10.05];
        let new = old.map(|value| value * 1.1);
        let slower = change(&old, &new, CONFIDENCE).unwrap();
        assert!(is_near(slower.ratio, 1.1) && slower.differs());
        assert!(!change(&old, &old, CONFIDENCE).unwrap().differs());
        assert!(change(&old, &old, CONFIDENCE).unwrap().is_within(0.02));
        assert!(!slower.is_within(0.02));
        assert_eq!(change(&[], &old, CONFIDENCE), None);
        assert_eq!(change(&[0.0], &old, CONFIDENCE), None);
    }
}
