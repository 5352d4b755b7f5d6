//! Curves as SVG.
//!
//! A curve is drawn in a picture that is stretched to the width of its place
//! while its lines keep their thickness; texts and marks stand outside it at
//! percentages. So a chart has readable labels on a telephone and on a wall.

use super::html::put;
use std::fmt::Write;

/// A scale from values to vertical positions in a plot of some height.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) lowest: f64,
    pub(super) highest: f64,
    top: f64,
    height: f64,
}

impl Scale {
    /// From `lowest` at the bottom of a plot to `highest` at its top.
    pub(super) fn new(lowest: f64, highest: f64, top: f64, height: f64) -> Scale {
        let highest = if highest > lowest {
            highest
        } else {
            lowest + 1.0
        };
        Scale {
            lowest,
            highest,
            top,
            height,
        }
    }

    /// A scale from nothing to a pleasant number that is at least `most`.
    pub(super) fn from_nothing(most: f64, top: f64, height: f64) -> Scale {
        let magnitude = 10f64.powf(most.max(1.0).log10().floor());
        let pleasant = [1.0, 2.0, 4.0, 5.0, 10.0]
            .into_iter()
            .map(|s| s * magnitude)
            .find(|s| *s >= most);
        Scale::new(0.0, pleasant.unwrap_or(most), top, height)
    }

    /// A scale that holds all values, with ends on multiples of `step` and at
    /// least `span` of them.
    pub(super) fn around(
        values: impl Iterator<Item = f64>,
        step: f64,
        span: f64,
        top: f64,
        height: f64,
    ) -> Scale {
        let (mut lowest, mut highest) =
            values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if lowest > highest {
            (lowest, highest) = (0.0, span);
        }
        lowest = (lowest / step).floor() * step;
        highest = (highest / step).ceil() * step;
        while highest - lowest < span {
            highest += step;
            if highest - lowest < span {
                lowest -= step;
            }
        }
        Scale::new(lowest, highest, top, height)
    }

    /// The vertical position of a value; one outside is at the edge.
    pub(super) fn y(&self, value: f64) -> f64 {
        let share = ((value - self.lowest) / (self.highest - self.lowest)).clamp(0.0, 1.0);
        self.top + self.height * (1.0 - share)
    }

    /// The bottom of the plot.
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The multiples of a pleasant step within, five or so.
    pub(super) fn ticks(&self, about: f64) -> Vec<f64> {
        let rough = (self.highest - self.lowest) / about;
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|s| s * magnitude)
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        let first = (self.lowest / step).ceil() as i64;
        let last = (self.highest / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// The runs of values without a gap: where each begins, and its values.
pub(super) fn runs(values: &[Option<f64>]) -> Vec<(usize, Vec<f64>)> {
    let mut runs: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut open = false;
    for (index, value) in values.iter().enumerate() {
        match value {
            Some(value) => {
                match runs.last_mut() {
                    Some((_, run)) if open => run.push(*value),
                    _ => runs.push((index, vec![*value])),
                }
                open = true;
            }
            None => open = false,
        }
    }
    runs
}

/// Path data of a curve that breaks where values are missing. A value between
/// two gaps is a short dash: a point would not be seen.
pub(super) fn line(values: &[Option<f64>], scale: &Scale) -> String {
    let mut path = String::new();
    for (from, run) in runs(values) {
        if let [value] = run[..] {
            put!(
                &mut path,
                "M{:.2} {:.1}h.5",
                from as f64 + 0.25,
                scale.y(value)
            );
        }
        for (index, value) in run.iter().enumerate().filter(|_| run.len() > 1) {
            let command = if index == 0 { 'M' } else { 'L' };
            put!(
                &mut path,
                "{command}{} {:.1}",
                half(from + index),
                scale.y(*value)
            );
        }
    }
    path
}

/// Path data of the area below a curve.
pub(super) fn area(values: &[Option<f64>], scale: &Scale) -> String {
    let mut path = String::new();
    for (from, run) in runs(values).into_iter().filter(|(_, run)| run.len() > 1) {
        put!(&mut path, "M{} {:.1}", half(from), scale.bottom());
        for (index, value) in run.iter().enumerate() {
            put!(&mut path, "L{} {:.1}", half(from + index), scale.y(*value));
        }
        put!(&mut path, "V{:.1}z", scale.bottom());
    }
    path
}

/// A small curve without axes, for tiles: from `floor`, or around the values,
/// over at least `span`, so that a calm hour makes no mountains.
pub(super) fn spark(
    out: &mut String,
    values: &[Option<f64>],
    floor: Option<f64>,
    span: f64,
    class: &str,
) {
    if values.iter().flatten().count() < 2 {
        return;
    }
    let least = values.iter().flatten().fold(f64::MAX, |l, v| l.min(*v));
    let most = values.iter().flatten().fold(f64::MIN, |h, v| h.max(*v));
    let (lowest, highest) = match floor {
        Some(floor) => (floor, most.max(floor + span)),
        None => {
            let margin = (span - (most - least)).max(0.0) / 2.0;
            (least - margin, most + margin)
        }
    };
    let scale = Scale::new(lowest, highest, 2.0, 32.0);
    put!(
        out,
        r#"<svg class="spark {class}" viewBox="0 0 {} 36" preserveAspectRatio="none" aria-hidden="true"><path class="area" d="{}"/><path class="line" d="{}"/></svg>"#,
        values.len(),
        area(values, &scale),
        line(values, &scale),
    );
}

/// The middle of the column of an index.
fn half(index: usize) -> impl std::fmt::Display {
    let mut text = index.to_string();
    let _ = text.write_str(".5");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_breaks_the_line() {
        let scale = Scale::new(0.0, 10.0, 0.0, 100.0);
        let values = [
            Some(0.0),
            Some(10.0),
            None,
            Some(5.0),
            None,
            Some(5.0),
            Some(5.0),
        ];
        assert_eq!(
            line(&values, &scale),
            "M0.5 100.0L1.5 0.0M3.25 50.0h.5M5.5 50.0L6.5 50.0"
        );
        assert_eq!(
            area(&values, &scale),
            "M0.5 100.0L0.5 100.0L1.5 0.0V100.0zM5.5 100.0L5.5 50.0L6.5 50.0V100.0z"
        );
    }

    #[test]
    fn scales_have_pleasant_ends() {
        let scale = Scale::around([3.2, 11.7].into_iter(), 5.0, 10.0, 0.0, 100.0);
        assert_eq!((scale.lowest, scale.highest), (0.0, 15.0));
        assert_eq!(scale.ticks(4.0), [0.0, 5.0, 10.0, 15.0]);
        let flat = Scale::around([7.0].into_iter(), 1.0, 4.0, 0.0, 100.0);
        assert!(flat.highest - flat.lowest >= 4.0);
        let none = Scale::around([].into_iter(), 5.0, 10.0, 0.0, 100.0);
        assert_eq!((none.lowest, none.highest), (0.0, 10.0));
        assert_eq!(scale.y(1e9), 0.0);
    }
}
