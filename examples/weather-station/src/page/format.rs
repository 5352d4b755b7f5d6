//! Numbers, quantities, dates: values in the words of a language.

use crate::replay::{Quantity, weather};
use crate::texts::{Texts, fill};
use crate::time::{Civil, Time, new_york};

/// The words of a language, with what numbers need close at hand.
pub(super) struct Words<'a> {
    pub(super) texts: &'a Texts,
    digits: Vec<char>,
    right_to_left: bool,
}

impl<'a> Words<'a> {
    pub(super) fn new(texts: &'a Texts) -> Words<'a> {
        Words {
            texts,
            digits: texts.digits.chars().collect(),
            right_to_left: texts.direction == "rtl",
        }
    }

    /// A number with so many decimals, in the language's digits.
    pub(super) fn number(&self, value: f64, decimals: usize) -> String {
        let plain = format!("{:.decimals$}", value.abs());
        let sign = if value < 0.0 && !is_nothing(&plain) {
            self.minus()
        } else {
            ""
        };
        self.signed(sign, &plain)
    }

    /// A number with its sign, for changes.
    pub(super) fn change(&self, value: f64, decimals: usize) -> String {
        let plain = format!("{:.decimals$}", value.abs());
        let sign = match value {
            _ if is_nothing(&plain) => "±",
            v if v < 0.0 => self.minus(),
            _ if self.right_to_left => "\u{61c}+",
            _ => "+",
        };
        self.signed(sign, &plain)
    }

    /// The sign of a negative number. Where writing runs from right to left
    /// an invisible letter keeps it before the digits (Unicode's CLDR).
    fn minus(&self) -> &'static str {
        if self.right_to_left {
            "\u{61c}-"
        } else {
            "\u{2212}"
        }
    }

    fn signed(&self, sign: &str, plain: &str) -> String {
        let mut text = String::from(sign);
        for c in plain.chars() {
            match c {
                '.' => text.push_str(&self.texts.decimal),
                _ => text.push(self.digit(c)),
            }
        }
        text
    }

    /// Digits of a text such as a time of day or a year, in the language's.
    pub(super) fn numerals(&self, text: &str) -> String {
        text.chars().map(|c| self.digit(c)).collect()
    }

    fn digit(&self, c: char) -> char {
        c.to_digit(10)
            .and_then(|digit| self.digits.get(digit as usize))
            .copied()
            .unwrap_or(c)
    }

    /// A number in one of the texts' units.
    pub(super) fn unit(&self, unit: &str, value: f64, decimals: usize) -> String {
        fill(unit, &[("value", &self.number(value, decimals))])
    }

    /// A quantity's value with its unit.
    pub(super) fn quantity(&self, quantity: Quantity, value: f64) -> String {
        let t = self.texts;
        match quantity {
            Quantity::Temperature | Quantity::DewPoint => self.unit(&t.celsius, value, 1),
            Quantity::Humidity => self.unit(&t.percent, value, 0),
            Quantity::WindDirection => self.unit(&t.degrees, value, 0),
            Quantity::WindSpeed => self.unit(&t.metres_a_second, value, 1),
            Quantity::Precipitation => self.unit(&t.millimetres, value, 1),
            Quantity::Pressure => self.unit(&t.hectopascal, value, 1),
            Quantity::Visibility => self.unit(&t.kilometres, value, 1),
        }
    }

    /// What a quantity is called.
    pub(super) fn name(&self, quantity: Quantity) -> &'a str {
        let t = self.texts;
        match quantity {
            Quantity::Temperature => &t.temperature,
            Quantity::DewPoint => &t.dew_point,
            Quantity::Humidity => &t.humidity,
            Quantity::WindDirection => &t.wind_direction,
            Quantity::WindSpeed => &t.wind,
            Quantity::Precipitation => &t.precipitation,
            Quantity::Pressure => &t.pressure,
            Quantity::Visibility => &t.visibility,
        }
    }

    /// The compass point of a direction in degrees.
    pub(super) fn compass(&self, degrees: f64) -> &'a str {
        item(&self.texts.compass, weather::compass_point(degrees))
    }

    /// The four main compass points.
    pub(super) fn main_points(&self) -> [&'a str; 4] {
        [0, 4, 8, 12].map(|i| item(&self.texts.compass, i))
    }

    /// The time of day in New York: `14:00`.
    pub(super) fn clock(&self, time: Time) -> String {
        let (civil, _) = new_york(time);
        self.numerals(&format!("{:02}:{:02}", civil.hour, civil.minute))
    }

    /// The name of the clock in New York.
    pub(super) fn zone(&self, time: Time) -> &'a str {
        if new_york(time).1 {
            &self.texts.summer_time
        } else {
            &self.texts.winter_time
        }
    }

    /// The date in New York, in full.
    pub(super) fn date(&self, time: Time) -> String {
        let (civil, _) = new_york(time);
        self.dated(&self.texts.date, &self.texts.months, &civil)
    }

    /// The date in New York, for a chart's axis.
    pub(super) fn short_date(&self, time: Time) -> String {
        let (civil, _) = new_york(time);
        self.dated(&self.texts.short_date, &self.texts.months_short, &civil)
    }

    /// Date and time of day in New York, short.
    pub(super) fn moment(&self, time: Time) -> String {
        format!("{} {}", self.short_date(time), self.clock(time))
    }

    fn dated(&self, form: &str, months: &str, civil: &Civil) -> String {
        fill(
            form,
            &[
                (
                    "weekday",
                    item(&self.texts.weekdays, civil.weekday as usize),
                ),
                ("day", &self.numerals(&civil.day.to_string())),
                ("month", item(months, civil.month as usize - 1)),
                ("year", &self.numerals(&civil.year.to_string())),
            ],
        )
    }

    /// A number of bytes in a unit that a person reads at a glance.
    pub(super) fn bytes(&self, bytes: f64) -> String {
        let t = self.texts;
        let (unit, value) = match bytes {
            b if b < 1e6 => (&t.kilobytes, b / 1e3),
            b if b < 1e9 => (&t.megabytes, b / 1e6),
            b => (&t.gigabytes, b / 1e9),
        };
        let decimals = usize::from(value < 100.0);
        self.unit(unit, value, decimals)
    }

    /// A number of bytes in a second.
    pub(super) fn rate(&self, bytes: f64) -> String {
        fill(&self.texts.a_second, &[("value", &self.bytes(bytes))])
    }
}

/// Whether a number has rounded to nothing, which has no sign.
fn is_nothing(plain: &str) -> bool {
    !plain.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

/// One item of a list that is written with bars.
fn item(list: &str, index: usize) -> &str {
    list.split('|').nth(index).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Environment, layer};
    use crate::texts::Language;

    /// What is said in a language.
    fn say(language: Language, what: impl FnOnce(&Words<'_>) -> String) -> String {
        let coordinator = milieu::Coordinator::new();
        crate::defaults::assign(&coordinator).unwrap();
        let mut cx = coordinator.context::<Environment>().unwrap();
        let cx = cx.enter(layer::Language(language.code()));
        what(&Words::new(&cx.sw.pi.text))
    }

    #[test]
    fn numbers_follow_the_language() {
        use Language::{Ar, De, En};
        assert_eq!(say(En, |w| w.number(-3.26, 1)), "−3.3");
        assert_eq!(
            say(De, |w| w.quantity(Quantity::Temperature, 16.1)),
            "16,1 °C"
        );
        assert_eq!(say(Ar, |w| w.number(-10.5, 1)), "\u{61c}-١٠٫٥");
        assert_eq!(say(En, |w| w.number(-0.04, 1)), "0.0");
        assert_eq!(say(En, |w| w.change(-0.04, 1)), "±0.0");
        assert_eq!(say(En, |w| w.change(1.25, 1)), "+1.2");
        assert_eq!(say(En, |w| w.bytes(1_234_567.0)), "1.2 MB");
        assert_eq!(say(De, |w| w.rate(512.0)), "0,5 kB/s");
    }

    #[test]
    fn dates_follow_the_language_and_new_yorks_clock() {
        use Language::{De, En};
        let time = Time::parse("2013-05-09T02:00").unwrap();
        assert_eq!(say(En, |w| w.date(time)), "Wednesday, 8 May 2013");
        assert_eq!(say(De, |w| w.date(time)), "Mittwoch, 8. Mai 2013");
        assert_eq!(say(En, |w| w.clock(time)), "22:00");
        assert_eq!(say(En, |w| w.zone(time).to_owned()), "EDT");
        assert_eq!(say(En, |w| w.compass(350.0).to_owned()), "N");
    }
}
