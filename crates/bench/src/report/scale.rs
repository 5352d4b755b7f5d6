//! Axes: which numbers stand at them, and where.

/// How the numbers of an axis lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The same difference takes the same room.
    #[default]
    Linear,
    /// The same ratio takes the same room; all numbers are above 0.
    Log,
}

/// An axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    /// The marks that have a number.
    pub marks: Vec<Mark>,
    /// Places of marks without one.
    pub minor: Vec<f64>,
    /// The power of ten that all numbers are multiplied with.
    pub power: i32,
}

/// A number at an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// Where it stands, between 0 and 1.
    pub place: f64,
    pub label: String,
}

impl Axis {
    /// An axis that has all of these, and about so many marks.
    pub fn of(
        values: impl Iterator<Item = f64>,
        scale: Scale,
        from_zero: bool,
        marks: f64,
    ) -> Axis {
        let is_shown = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let values: Vec<f64> = values.filter(is_shown).collect();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in &values {
            (low, high) = (low.min(*value), high.max(*value));
        }
        if low > high {
            (low, high) = match scale {
                Scale::Linear => (0.0, 1.0),
                Scale::Log => (1.0, 10.0),
            };
        }
        match scale {
            Scale::Linear => Axis::linear(low, high, from_zero, marks),
            Scale::Log => Axis::logarithmic(low, high, &values, marks),
        }
    }

    fn linear(mut low: f64, mut high: f64, from_zero: bool, marks: f64) -> Axis {
        if from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        // A range that doubles cannot hold has no steps.
        (low, high) = (low.max(-f64::MAX / 4.0), high.min(f64::MAX / 4.0));
        if high - low < f64::EPSILON * high.abs().max(f64::MIN_POSITIVE) {
            let half = if high == 0.0 { 0.5 } else { high.abs() / 2.0 };
            (low, high) = (low - half, high + half);
        }
        let step = nice((high - low) / marks);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        (low, high) = (first * step, last * step);
        let largest = low.abs().max(high.abs());
        let power = match (1e-3..1e5).contains(&largest) {
            true => 0,
            false => 3 * whole((largest.log10() / 3.0).floor()),
        };
        let unit = 10_f64.powi(power);
        let count = whole((last - first).clamp(0.0, 100.0));
        let marks = (0..=count).map(|index| {
            let value = (first + f64::from(index)) * step;
            Mark {
                place: f64::from(index) / f64::from(count.max(1)),
                label: number(value / unit, step / unit).replace('-', "\u{2212}"),
            }
        });
        Axis {
            low,
            high,
            scale: Scale::Linear,
            marks: marks.collect(),
            minor: Vec::new(),
            power,
        }
    }

    fn logarithmic(low: f64, high: f64, values: &[f64], marks: f64) -> Axis {
        let is_two = |value: &f64| value.log2().fract() == 0.0;
        let is_ten = |value: &f64| (value.log10() - value.log10().round()).abs() < 1e-9;
        // Sizes and counts are doubled more often than they grow tenfold.
        if values.iter().all(is_two) && !values.iter().all(is_ten) && low < high {
            let (first, last) = (whole(low.log2()), whole(high.log2()));
            let each = thinned(last - first, marks);
            let numbers = (first..=last).map(|power| 2_f64.powi(power));
            let (marks, minor) = split(numbers, |index| index % each == 0);
            return Axis::with(low, high, &marks, &minor, |value| match value < 1e5 {
                true => power_of_ten(value),
                false => raised(2, whole(value.log2())),
            });
        }
        let (mut first, mut last) = (low.log10().floor(), high.log10().ceil());
        if (last - first) < 0.5 {
            (first, last) = (first - 1.0, last + 1.0);
        }
        let decades = whole(last - first);
        let powers = whole(first)..=whole(last);
        if decades <= 2 {
            // Few decades would have few numbers.
            let numbers = powers.flat_map(|power| (1..10).map(move |digit| (digit, power)));
            let numbers: Vec<(i32, i32)> = numbers.collect();
            let value = |(digit, power): &(i32, i32)| f64::from(*digit) * 10_f64.powi(*power);
            let is_marked = |(digit, _): &(i32, i32)| matches!(digit, 1 | 2 | 5);
            let near = |a: f64| a * (1.0 + 1e-9);
            let mut below = numbers.iter().filter(|it| is_marked(it)).map(value);
            let least = below.rfind(|it| *it <= near(low)).unwrap_or(low);
            let mut above = numbers.iter().filter(|it| is_marked(it)).map(value);
            let most = above.find(|it| near(*it) >= high).unwrap_or(high);
            let inside = |it: &&(i32, i32)| near(value(it)) >= least && value(it) <= near(most);
            let inside: Vec<(i32, i32)> = numbers.iter().filter(inside).copied().collect();
            let numbers = inside.iter().map(value);
            let (marks, minor) = split(numbers, |index| is_marked(&inside[index]));
            return Axis::with(least, most, &marks, &minor, power_of_ten);
        }
        let each = thinned(decades, marks);
        let numbers = powers.clone().map(|power| 10_f64.powi(power));
        let (marks, mut minor) = split(numbers, |index| index % each == 0);
        let (least, most) = (10_f64.powi(*powers.start()), 10_f64.powi(*powers.end()));
        if decades <= 6 {
            let between = powers
                .flat_map(|power| (2..10).map(move |digit| f64::from(digit) * 10_f64.powi(power)));
            minor.extend(between.filter(|value| *value < most));
        }
        Axis::with(least, most, &marks, &minor, power_of_ten)
    }

    fn with(
        low: f64,
        high: f64,
        marks: &[f64],
        minor: &[f64],
        label: impl Fn(f64) -> String,
    ) -> Axis {
        let mut axis = Axis {
            low,
            high,
            scale: Scale::Log,
            marks: Vec::new(),
            minor: Vec::new(),
            power: 0,
        };
        let mark = |value: &f64| Mark {
            place: axis.place(*value),
            label: label(*value),
        };
        let marks = marks.iter().map(mark).collect();
        axis.minor = minor.iter().map(|value| axis.place(*value)).collect();
        axis.marks = marks;
        axis
    }

    /// The place of a value between 0 and 1; what lies outside is at the end.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value <= 0.0 => 0.0,
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if place.is_finite() {
            place.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Where bars begin.
    pub fn ground(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.place(0.0),
            Scale::Log => 0.0,
        }
    }
}

/// Numbers that are marked, and the others.
fn split(
    numbers: impl Iterator<Item = f64>,
    is_marked: impl Fn(usize) -> bool,
) -> (Vec<f64>, Vec<f64>) {
    let (marked, others): (Vec<_>, Vec<_>) = numbers
        .enumerate()
        .partition(|(index, _)| is_marked(*index));
    let values = |all: Vec<(usize, f64)>| all.into_iter().map(|(_, value)| value).collect();
    (values(marked), values(others))
}

/// Of so many powers, every how many-th is marked.
fn thinned(powers: i32, marks: f64) -> usize {
    let each = (f64::from(powers) / marks.max(1.0)).ceil().max(1.0);
    usize::try_from(whole(each)).unwrap_or(1)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "exponents and counts of marks are small"
)]
fn whole(value: f64) -> i32 {
    value.round() as i32
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

/// A number at a logarithmic axis.
fn power_of_ten(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        let digits = (-value.log10().floor()).max(0.0);
        return number(value, 10_f64.powf(-digits));
    }
    let power = whole((value.log10() + 1e-9).floor());
    let digit = value / 10_f64.powi(power);
    match (digit - 1.0).abs() < 1e-6 {
        true => raised(10, power),
        false => format!("{}×{}", short(digit), raised(10, power)),
    }
}

/// A number with an exponent.
pub(super) fn raised(base: u32, power: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => {
            char::from_u32(u32::from('⁰') + (u32::from(digit) - u32::from('0'))).unwrap_or(digit)
        }
    };
    let power: String = power.to_string().chars().map(raised).collect();
    format!("{base}{power}")
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

    fn axis(values: &[f64], scale: Scale, from_zero: bool) -> (String, Axis) {
        let axis = Axis::of(values.iter().copied(), scale, from_zero, 5.0);
        let labels: Vec<&str> = axis.marks.iter().map(|mark| &*mark.label).collect();
        (labels.join(" "), axis)
    }

    #[test]
    fn axes_have_round_numbers() {
        let marks = |values: &[f64], from_zero| axis(values, Scale::Linear, from_zero).0;
        assert_eq!(marks(&[0.0, 1000.0], true), "0 200 400 600 800 1000");
        assert_eq!(marks(&[0.1, 0.35], true), "0.0 0.1 0.2 0.3 0.4");
        assert_eq!(marks(&[290.7, 294.8], false), "290 291 292 293 294 295");
        assert_eq!(marks(&[], false), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(marks(&[5.0], false), "2 3 4 5 6 7 8");
        assert_eq!(
            marks(&[f64::NAN, -1.0, 1.0], true),
            "\u{2212}1.0 \u{2212}0.5 0.0 0.5 1.0"
        );
    }

    #[test]
    fn large_and_small_numbers_have_a_power_of_ten_in_common() {
        let (labels, large) = axis(&[0.0, 2.4e6], Scale::Linear, true);
        assert_eq!((&*labels, large.power), ("0.0 0.5 1.0 1.5 2.0 2.5", 6));
        let (labels, small) = axis(&[0.0, 42e-6], Scale::Linear, true);
        assert_eq!((&*labels, small.power), ("0 10 20 30 40 50", -6));
        assert_eq!(raised(10, -12), "10⁻¹²");
        assert!((large.place(1.25e6) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn logarithmic_axes_are_marked_at_powers() {
        let marks = |values: &[f64]| axis(values, Scale::Log, false).0;
        assert_eq!(marks(&[3.0, 20_000.0]), "1 10 100 1000 10000 10⁵");
        assert_eq!(marks(&[2.0, 45.0]), "2 5 10 20 50");
        assert_eq!(
            marks(&[0.03, 0.09]),
            "0.02 0.05 0.10".replace("0.10", "0.1")
        );
        assert_eq!(marks(&[1.0, 2.0, 8.0, 16.0]), "1 2 4 8 16");
        assert_eq!(marks(&[1.0, 1048576.0, 2.0]), "1 16 256 4096 65536 2²⁰");
        assert_eq!(marks(&[1e-9, 1e9]), "10⁻⁹ 10⁻⁵ 0.1 1000 10⁷".to_owned());
        // What cannot stand there is left out.
        assert_eq!(marks(&[0.0, -3.0, f64::NAN]), "1 2 5 10");
        let (_, axis) = axis(&[1.0, 10_000.0], Scale::Log, false);
        assert!((axis.place(100.0) - 0.5).abs() < 1e-9);
        assert_eq!((axis.place(0.0), axis.place(1e9)), (0.0, 1.0));
        assert!(axis.minor.len() == 32, "{}", axis.minor.len());
    }

    #[test]
    fn no_number_is_too_large_or_too_small_for_an_axis() {
        let numbers = [f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0, 1e300, -f64::MAX];
        for scale in [Scale::Linear, Scale::Log] {
            for a in numbers {
                for b in numbers {
                    let axis = Axis::of([a, b].into_iter(), scale, false, 5.0);
                    let places = axis.marks.iter().map(|mark| mark.place);
                    for place in places.chain([axis.place(a), axis.place(b)]) {
                        assert!((-1e-9..=1.0 + 1e-9).contains(&place), "{a} {b} {axis:?}");
                    }
                    assert!(axis.marks.len() < 200, "{a} {b}");
                }
            }
        }
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
