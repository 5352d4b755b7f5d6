//! Distances in time as people write them: `10m`, `1h30m`, `250ms`, `1.5s`.

use std::fmt;

use crate::time::Span;

/// Units, the longest first, in nanoseconds.
const UNITS: [(&str, i64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Span {
    /// Reads a distance as people write it: `10m`, `1h30m`, `250ms`, `1.5s`, `2d`.
    /// Units (`d`, `h`, `m`, `s`, `ms`, `us`, `ns`) follow each other from the
    /// longest to the shortest; the last number may have a fraction of no less
    /// than a nanosecond. Nothing: it is none.
    #[must_use]
    pub fn from_units(text: &str) -> Option<Span> {
        parse(text)
    }

    /// As [`from_units`](Span::from_units) reads it: whole numbers of units, as
    /// few as possible.
    pub fn in_units(self) -> impl fmt::Display {
        Written(self)
    }
}

fn parse(text: &str) -> Option<Span> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut sum: i128 = 0;
    let mut units = UNITS.iter();
    loop {
        let (whole, behind) = digits(rest);
        let (fraction, behind) = match behind.strip_prefix('.') {
            Some(behind) => Some(digits(behind)).filter(|(fraction, _)| !fraction.is_empty())?,
            None => ("", behind),
        };
        let letters = behind.len() - behind.trim_start_matches(char::is_alphabetic).len();
        let (unit, behind) = behind.split_at(letters);
        let unit = if unit == "µs" { "us" } else { unit };
        let (_, length) = units.find(|(name, _)| *name == unit)?;
        sum += amount(whole, fraction, *length)?;
        match (behind, fraction) {
            ("", _) => break,
            (_, "") => rest = behind,
            _ => return None,
        }
    }
    let sum = if negative { -sum } else { sum };
    i64::try_from(sum).ok().map(Span::from_nanoseconds)
}

fn digits(text: &str) -> (&str, &str) {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(count)
}

/// So many units, in nanoseconds.
fn amount(whole: &str, fraction: &str, length: i64) -> Option<i128> {
    let length = i128::from(length);
    let whole: i128 = whole.parse().ok().filter(|&n: &i128| n <= 1 << 64)?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 15 {
        return None;
    }
    let digits = u32::try_from(fraction.len()).ok()?;
    let parts = fraction.parse::<i128>().unwrap_or(0) * length;
    let scale = 10_i128.pow(digits);
    (parts % scale == 0).then(|| whole * length + parts / scale)
}

struct Written(Span);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.nanoseconds();
        if nanoseconds == 0 {
            return f.write_str("0s");
        }
        if nanoseconds < 0 {
            f.write_str("-")?;
        }
        let mut rest = nanoseconds.unsigned_abs();
        for (unit, length) in UNITS {
            let length = length.unsigned_abs();
            if rest >= length {
                write!(f, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_read_and_written() {
        for (text, nanoseconds, written) in [
            ("10m", 600_000_000_000, "10m"),
            ("1h30m", 5_400_000_000_000, "1h30m"),
            ("90m", 5_400_000_000_000, "1h30m"),
            ("250ms", 250_000_000, "250ms"),
            ("1.5s", 1_500_000_000, "1s500ms"),
            ("1m0.50s", 60_500_000_000, "1m500ms"),
            ("2d", 172_800_000_000_000, "2d"),
            ("-3us", -3_000, "-3us"),
            ("3µs", 3_000, "3us"),
            ("0s", 0, "0s"),
            ("0.000000001s", 1, "1ns"),
            (
                "9223372036854775807ns",
                i64::MAX,
                "106751d23h47m16s854ms775us807ns",
            ),
        ] {
            let span = Span::from_nanoseconds(nanoseconds);
            assert_eq!(parse(text), Some(span), "{text}");
            assert_eq!(Written(span).to_string(), written);
            assert_eq!(parse(written), Some(span), "{written}");
        }
        let least = Span::from_nanoseconds(i64::MIN);
        assert_eq!(parse(&Written(least).to_string()), Some(least));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "-",
            "m",
            "10",
            "10x",
            "10 m",
            "1m1h",
            "1m1m",
            "1.5m3s",
            "1.s",
            ".5s",
            "0.1ns",
            "1.5",
            "1e3s",
            "--1s",
            "9223372036854775808ns",
            "200000d",
            "+1s",
            "99999999999999999999999999999999999999999d",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
