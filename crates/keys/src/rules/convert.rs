//! How values of an old key become those of today's.
//!
//! | conversion                 | `5`     | `yes`   | of keys that are     |
//! |----------------------------|---------|---------|----------------------|
//! | `yes -> true, no -> false` | `5`     | `true`  | of any type          |
//! | `not`                      | refused | `false` | booleans             |
//! | `* 1000`, `/ 8 + 0.5`      | `5000`  | refused | numbers              |
//! | the unit `ms`              | `5 ms`  | `yes`   | quantities with unit |
//!
//! What a table does not list stays as it is, and so does a quantity that has
//! its unit already. Steps of arithmetic are taken from left to right, exactly;
//! rounding comes last, and only where the digits would not end.

use super::Type;
use super::types::{float_text, parse_boolean};
use super::units::Decimal;
use std::borrow::Cow;

/// How a value of the old key becomes one of today's.
#[derive(Clone, Debug)]
pub(super) struct Conversion {
    /// As the specification writes it.
    pub(super) key: String,
    pub(super) value: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Texts, and what each becomes.
    Table(Vec<(String, String)>),
    /// The opposite boolean.
    Not,
    /// Steps, one after the other.
    Arithmetic(Vec<(Step, Ratio)>),
    /// Numbers without a unit were in this one.
    Unit(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Times,
    Divide,
    Plus,
    Minus,
}

impl Conversion {
    pub(super) fn rule(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    /// Converts; the error says why that is not possible and what to give.
    pub(super) fn apply<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, String> {
        match &self.kind {
            Kind::Table(table) => {
                let found = table.iter().find(|(old, _)| old == text);
                Ok(found.map_or(Cow::Borrowed(text), |(_, new)| Cow::Owned(new.clone())))
            }
            Kind::Not => match parse_boolean(text) {
                Some(value) => Ok(Cow::Borrowed(if value { "false" } else { "true" })),
                None => Err("is not a boolean; give `true` or `false`".to_owned()),
            },
            Kind::Arithmetic(steps) => {
                let number = Ratio::parse(text)
                    .ok_or("is not a number that can be converted; give one such as `12.5`")?;
                let result = steps.iter().try_fold(number, |number, &(step, operand)| {
                    number.step(step, operand)
                });
                let result = result.ok_or("is too large or too exact to be converted")?;
                Ok(Cow::Owned(result.text()))
            }
            Kind::Unit(unit) => match text.parse::<f64>() {
                Ok(_) => Ok(Cow::Owned(format!("{text} {unit}"))),
                Err(_) => Ok(Cow::Borrowed(text)),
            },
        }
    }
}

impl Kind {
    /// Reads what `was/#/convert` says of a key of that type; the error says
    /// what is wrong and the way out.
    pub(super) fn parse(text: &str, type_: Type) -> Result<Kind, (String, String)> {
        let complain = |why: &str, help: &str| Err((why.to_owned(), help.to_owned()));
        let text = text.trim();
        if text == "not" {
            return match type_ {
                Type::Boolean => Ok(Kind::Not),
                _ => complain(
                    "only booleans have an opposite",
                    "make it `type=boolean`, or write a table such as `yes -> all, no -> none`",
                ),
            };
        }
        if text.starts_with(['*', '/', '+', '-']) && !text.contains("->") {
            if !type_.is_number() {
                return complain(
                    "only numbers can be calculated with",
                    "give the key a type that is a number, or write a table: `old -> new`",
                );
            }
            return arithmetic(text).map(Kind::Arithmetic).ok_or_else(|| {
                (
                    "it is no calculation".to_owned(),
                    "write for example `* 1000`, `/ 60` or `* 9 / 5 + 32`".to_owned(),
                )
            });
        }
        table(text).map(Kind::Table)
    }
}

/// Reads `* 9 / 5 + 32`.
fn arithmetic(text: &str) -> Option<Vec<(Step, Ratio)>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let step = match sign {
            '*' => Step::Times,
            '/' => Step::Divide,
            '+' => Step::Plus,
            '-' => Step::Minus,
            _ => return None,
        };
        rest = rest[1..].trim_start();
        let end = rest.find([' ', '\t', '*', '/']).unwrap_or(rest.len());
        let operand = Ratio::parse(&rest[..end])?;
        if operand.numerator == 0 && matches!(step, Step::Times | Step::Divide) {
            return None;
        }
        steps.push((step, operand));
        rest = rest[end..].trim_start();
    }
    Some(steps)
}

/// Reads `yes -> true, 'a, b' -> ''`.
fn table(text: &str) -> Result<Vec<(String, String)>, (String, String)> {
    let mut table: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        let wrong = || {
            (
                "it is no table of values".to_owned(),
                "write for example `yes -> true, no -> false`, and quotes around texts with \
                 `,` or `->`; or `not`, or a calculation such as `* 1000`"
                    .to_owned(),
            )
        };
        let (old, behind) = operand(rest, "->").ok_or_else(wrong)?;
        rest = behind.strip_prefix("->").ok_or_else(wrong)?;
        let (new, behind) = operand(rest, ",").ok_or_else(wrong)?;
        if table.iter().any(|(earlier, _)| *earlier == old) {
            return Err((
                format!("`{old}` is listed twice"),
                "say once what it becomes".to_owned(),
            ));
        }
        table.push((old, new));
        rest = behind;
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(table),
            None => return Err(wrong()),
        }
    }
}

/// A text in quotes or up to `end`, and what comes behind it and its blanks.
fn operand<'a>(text: &'a str, end: &str) -> Option<(String, &'a str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    if let Some(quote) = quote {
        let (inside, behind) = text[1..].split_once(quote)?;
        return Some((inside.to_owned(), behind.trim_start()));
    }
    let at = text.find(end).unwrap_or(text.len());
    let word = text[..at].trim_end();
    (!word.is_empty()).then(|| (word.to_owned(), &text[at..]))
}

/// An exact number: `numerator / denominator` in lowest terms, the denominator
/// above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        let divisor = gcd(numerator.checked_abs()?, denominator.checked_abs()?);
        let divisor = divisor * denominator.signum();
        Some(Ratio {
            numerator: numerator.checked_div(divisor)?,
            denominator: denominator.checked_div(divisor)?,
        })
    }

    /// Reads `12.5` or `1.25e1`.
    fn parse(text: &str) -> Option<Ratio> {
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let Decimal { digits, places } = Decimal::parse(digits)?;
        let exponent: i32 = exponent.parse().ok()?;
        let shift = exponent.checked_sub(i32::try_from(places).ok()?)?;
        let power = 10_i128.checked_pow(shift.unsigned_abs())?;
        match shift < 0 {
            true => Ratio::new(digits, power),
            false => Ratio::new(digits.checked_mul(power)?, 1),
        }
    }

    fn step(self, step: Step, operand: Ratio) -> Option<Ratio> {
        let Ratio {
            numerator: a,
            denominator: b,
        } = self;
        let Ratio {
            numerator: c,
            denominator: d,
        } = operand;
        match step {
            Step::Times => Ratio::new(a.checked_mul(c)?, b.checked_mul(d)?),
            Step::Divide => Ratio::new(a.checked_mul(d)?, b.checked_mul(c)?),
            Step::Plus | Step::Minus => {
                let (a, c) = (a.checked_mul(d)?, c.checked_mul(b)?);
                let sum = match step {
                    Step::Plus => a.checked_add(c)?,
                    _ => a.checked_sub(c)?,
                };
                Ratio::new(sum, b.checked_mul(d)?)
            }
        }
    }

    /// Plain digits where they end, and else those of the nearest `double`.
    fn text(self) -> String {
        /// More digits behind the point than anybody wrote.
        const PLACES_MAX: u32 = 18;
        for places in 0..=PLACES_MAX {
            let power = 10_i128.pow(places);
            if power % self.denominator == 0 {
                let Some(digits) = self.numerator.checked_mul(power / self.denominator) else {
                    break;
                };
                return decimal(digits, places as usize);
            }
        }
        float_text(
            Type::Double,
            self.numerator as f64 / self.denominator as f64,
        )
    }
}

/// `digits / 10^places`, written out.
fn decimal(digits: i128, places: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", digits.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    match fraction {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    match b {
        0 => a.max(1),
        b => gcd(b, a % b),
    }
}
