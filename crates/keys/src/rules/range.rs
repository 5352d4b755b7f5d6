//! Ranges of numbers: `0-10`, `-5--1`, `0.5-1.5`, `1-5,8`, `0-inf`.

use std::cmp::Ordering;
use std::fmt;

/// A number whose comparison is exact between whole numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    pub(super) fn parse(text: &str) -> Option<Number> {
        if let Ok(whole) = text.parse() {
            return Some(Number::Whole(whole));
        }
        let float: f64 = text.parse().ok()?;
        (!float.is_nan()).then_some(Number::Float(float))
    }

    fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (a, b) => a
                .float()
                .partial_cmp(&b.float())
                .expect("a number that is not NaN"),
        }
    }

    fn float(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(number) => write!(f, "{number}"),
            Number::Float(number) => write!(f, "{number}"),
        }
    }
}

/// A list of single numbers and of intervals that include both ends.
#[derive(Clone, Debug)]
pub(super) struct Range {
    intervals: Vec<(Number, Number)>,
}

impl Range {
    /// Reads a range; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Range, String> {
        let mut intervals = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let (low, rest) = number(part)?;
            let rest = rest.trim_start();
            let high = match rest.strip_prefix('-') {
                None if rest.is_empty() => low,
                None => return Err(format!("`{rest}` does not continue the number before it")),
                Some(end) => match number(end.trim_start())? {
                    (high, "") => high,
                    (_, rest) => return Err(format!("`{rest}` is left over at the end")),
                },
            };
            if low.compare(high) == Ordering::Greater {
                return Err(format!(
                    "`{part}` is empty, because {low} is more than {high}"
                ));
            }
            intervals.push((low, high));
        }
        Ok(Range { intervals })
    }

    pub(super) fn contains(&self, number: Number) -> bool {
        self.intervals.iter().any(|&(low, high)| {
            number.compare(low) != Ordering::Less && number.compare(high) != Ordering::Greater
        })
    }

    /// Whether the range names an infinite number, so that it is allowed.
    pub(super) fn is_infinite(&self) -> bool {
        self.intervals
            .iter()
            .any(|&(low, high)| low.float().is_infinite() || high.float().is_infinite())
    }
}

impl fmt::Display for Range {
    /// As a person says it: `1 to 5, 8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(low, high)) in self.intervals.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if low.compare(high) == Ordering::Equal {
                write!(f, "{low}")?;
            } else {
                write!(f, "{low} to {high}")?;
            }
        }
        Ok(())
    }
}

/// Splits a number off the start.
fn number(text: &str) -> Result<(Number, &str), String> {
    let bytes = text.as_bytes();
    let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    if text[at..].starts_with("inf") {
        at += 3;
    } else {
        let mut previous = 0;
        while let Some(&byte) = bytes.get(at) {
            let sign_of_exponent = matches!(byte, b'-' | b'+') && matches!(previous, b'e' | b'E');
            if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || sign_of_exponent) {
                break;
            }
            previous = byte;
            at += 1;
        }
    }
    let (digits, rest) = text.split_at(at);
    match Number::parse(digits) {
        Some(number) => Ok((number, rest)),
        None if text.is_empty() => Err("a number is missing".to_owned()),
        None => Err(format!("`{text}` does not begin with a number")),
    }
}
