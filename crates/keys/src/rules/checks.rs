//! The checks of `check/…`, ready to be applied.

use super::formats::{self, FileKind, FileSystem, IpVersion};
use super::{Scalar, dates::Dates, range, range::Range, types::not_among, units::Unit};
use regex_lite::Regex;

/// One check with what it needs.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// As the specification writes it.
    pub(super) key: String,
    pub(super) value: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The unit is there when the key is a string that has one.
    Range(Range, Option<Unit>),
    Choice {
        choices: Vec<String>,
        separator: Option<String>,
    },
    Expression {
        expression: Regex,
        invert: bool,
        message: Option<String>,
    },
    Length {
        min: Option<usize>,
        max: Option<usize>,
    },
    Path(Option<FileKind>),
    Port,
    IpAddress(IpVersion),
    Email,
    Date(Dates),
    /// Of a string; numbers with a unit are read by their type.
    Quantity(Unit),
}

impl Check {
    /// The rule as the specification writes it.
    pub(super) fn rule(&self) -> String {
        if self.value.is_empty() {
            self.key.clone()
        } else {
            format!("{}={}", self.key, self.value)
        }
    }

    /// Checks a value; the error says why it is refused and what to give.
    pub(super) fn apply(&self, text: &str, scalar: Scalar<'_>) -> Result<(), String> {
        match &self.kind {
            Kind::Range(range, unit) => in_range(range, unit.as_ref(), text, scalar),
            Kind::Choice { choices, separator } => match separator {
                None => among(text, choices),
                Some(separator) => text
                    .split(separator.as_str())
                    .map(str::trim)
                    .try_for_each(|part| among(part, choices)),
            },
            Kind::Expression {
                expression,
                invert,
                message,
            } => {
                if expression.is_match(text) != *invert {
                    return Ok(());
                }
                Err(match (message, invert) {
                    (Some(message), _) => format!("is refused: {message}"),
                    (None, false) => "does not match the expression; give one that does".to_owned(),
                    (None, true) => "matches the expression; give one that does not".to_owned(),
                })
            }
            Kind::Length { min, max } => {
                let length = text.chars().count();
                let long_enough = min.is_none_or(|min| length >= min);
                let short_enough = max.is_none_or(|max| length <= max);
                if long_enough && short_enough {
                    return Ok(());
                }
                let least = min.filter(|&min| min > 0).map(|n| format!("at least {n}"));
                let most = max.map(|n| format!("at most {n}"));
                let limits: Vec<String> = least.into_iter().chain(most).collect();
                let limits = limits.join(" and ");
                let noun = if length == 1 {
                    "character"
                } else {
                    "characters"
                };
                Err(format!("has {length} {noun}; give {limits}"))
            }
            Kind::Path(_) => formats::path(text),
            Kind::Port => formats::port(text),
            Kind::IpAddress(version) => formats::ip_address(text, *version),
            Kind::Email => formats::email(text),
            Kind::Date(dates) if dates.accepts(text) => Ok(()),
            Kind::Date(dates) => Err(format!("is not such a date; {}", dates.remedy())),
            Kind::Quantity(unit) => unit.read(text, false).map(|_| ()),
        }
    }

    pub(super) fn apply_to_files(&self, text: &str, files: &dyn FileSystem) -> Result<(), String> {
        let Kind::Path(Some(wanted)) = self.kind else {
            return Ok(());
        };
        let wanted_text = wanted.describe();
        match files.kind(text) {
            Some(found) if found == wanted => Ok(()),
            Some(found) => {
                let found = found.describe();
                Err(format!("is {found}; give the path of {wanted_text}"))
            }
            None => Err(format!(
                "does not exist or cannot be reached; create it, or give the path of {wanted_text}"
            )),
        }
    }
}

fn in_range(
    range: &Range,
    unit: Option<&Unit>,
    text: &str,
    scalar: Scalar<'_>,
) -> Result<(), String> {
    let number = match scalar {
        Scalar::Signed(number) => range::Number::Whole(number.into()),
        Scalar::Unsigned(number) => range::Number::Whole(number.into()),
        Scalar::Float(number) => range::Number::Float(number),
        _ => match unit {
            Some(unit) => range::Number::Float(unit.read(text, false)?.float()),
            None => range::Number::parse(text)
                .ok_or_else(|| format!("is not a number; give one of {range}"))?,
        },
    };
    if range.contains(number) {
        return Ok(());
    }
    let unit = unit.map_or(String::new(), |unit| format!(" {}", unit.base()));
    Err(format!("is out of range; give a number of {range}{unit}"))
}

fn among(text: &str, choices: &[String]) -> Result<(), String> {
    if choices.iter().any(|choice| choice == text) {
        return Ok(());
    }
    Err(not_among(text, choices))
}
