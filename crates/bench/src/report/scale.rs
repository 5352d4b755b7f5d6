//! Axes: which numbers stand at them, and where.

/// A linear axis.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    pub step: f64,
}

impl Scale {
    /// An axis that has all of these, and about so many marks.
    pub fn of(values: impl Iterator<Item = f64>, from_zero: bool, marks: f64) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < f64::EPSILON * high.abs().max(1.0) {
            let half = if high == 0.0 { 0.5 } else { high.abs() / 2.0 };
            (low, high) = (low - half, high + half);
        }
        let step = nice((high - low) / marks);
        Scale {
            low: (low / step + 1e-9).floor() * step,
            high: (high / step - 1e-9).ceil() * step,
            step,
        }
    }

    /// The place of a value between 0 and 1.
    pub fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The marks, and what stands at them.
    pub fn marks(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few marks"
        )]
        let count = count.clamp(0.0, 100.0) as u32;
        let marks = (0..=count).map(|index| self.low + f64::from(index) * self.step);
        marks.map(|mark| (mark, number(mark, self.step))).collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below a number.
fn nice(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let found = factors
        .into_iter()
        .find(|factor| factor * power >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0) * power
}

/// A number with as many digits as a step needs.
pub(super) fn number(value: f64, step: f64) -> String {
    let value = if value.abs() < step / 1e6 { 0.0 } else { value };
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let digits = (-step.log10().floor()).clamp(0.0, 9.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 9"
    )]
    let digits = digits as usize;
    format!("{value:.digits$}")
}

/// A number with four significant digits or so, for tables.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let step = 10_f64.powf(value.abs().log10().floor() - 4.0);
    let text = number(value, step);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        let marks = |values: &[f64], from_zero| -> Vec<String> {
            let scale = Scale::of(values.iter().copied(), from_zero, 5.0);
            scale.marks().into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            marks(&[0.0, 1000.0], true),
            ["0", "200", "400", "600", "800", "1000"]
        );
        assert_eq!(
            marks(&[0.1, 0.35], true),
            ["0.0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(marks(&[290.7, 294.8], false)[0], "290");
        assert_eq!(
            marks(&[], false),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(marks(&[5.0], false).len(), 7);
        assert_eq!(marks(&[f64::NAN, -1.0, 1.0], true)[0], "-1.0");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (292.754, "292.75"),
            (1234567.0, "1234567"),
            (0.00001234, "1.23e-5"),
            (5.0, "5"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
