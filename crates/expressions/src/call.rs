//! What functions mean: on values of any kind, by CEL's definition.

use milieu_transfer::{Span, Time, Value};
use regex_lite::{Regex, RegexBuilder};

use crate::calendar::{Date, parse_span, parse_time, parse_zone, show_span, show_time};
use crate::dynamic::show;
use crate::fault::Wrong;
use crate::function::Function;
use crate::kind::{Kind, unshared};

type Result<T> = std::result::Result<T, Wrong>;

/// How much memory a compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 18;

/// Calls a function.
pub(crate) fn call(function: Function, arguments: &[Value]) -> Result<Value> {
    let mismatch = || {
        let kinds = arguments.iter().map(Kind::of).collect();
        Wrong::NoOverload(function.name(), kinds)
    };
    let (first, second) = match arguments {
        [first] => (unshared(first), None),
        [first, second] => (unshared(first), Some(unshared(second))),
        _ => return Err(mismatch()),
    };
    match (function, first, second) {
        (Function::Dyn, value, None) => Ok(value.clone()),
        (Function::Type, value, None) => Ok(Kind::of(value).value()),
        (Function::Size, value, None) => size(value).ok_or_else(mismatch),
        (Function::Contains, Value::Text(a), Some(Value::Text(b))) => Ok(a.contains(&**b).into()),
        (Function::StartsWith, Value::Text(a), Some(Value::Text(b))) => {
            Ok(a.starts_with(&**b).into())
        }
        (Function::EndsWith, Value::Text(a), Some(Value::Text(b))) => Ok(a.ends_with(&**b).into()),
        (Function::Matches, Value::Text(a), Some(Value::Text(b))) => {
            Ok(pattern(b)?.is_match(a).into())
        }
        (Function::Int, value, None) => to_int(value).ok_or_else(mismatch)?,
        (Function::Uint, value, None) => to_uint(value).ok_or_else(mismatch)?,
        (Function::Double, value, None) => to_double(value).ok_or_else(mismatch)?,
        (Function::Text, value, None) => to_text(value).ok_or_else(mismatch)?,
        (Function::Bool, value, None) => to_bool(value).ok_or_else(mismatch)?,
        (Function::Bytes, Value::Bytes(_), None)
        | (Function::Span, Value::Span(_), None)
        | (Function::Time, Value::Time(_), None) => Ok(first.clone()),
        (Function::Bytes, Value::Text(text), None) => Ok(Value::Bytes(text.as_bytes().into())),
        (Function::Span, Value::Text(text), None) => {
            let span = parse_span(text).map(Value::Span);
            span.ok_or_else(|| no_conversion(first, Kind::Span))
        }
        (Function::Time, Value::Text(text), None) => {
            let time = parse_time(text).map(Value::Time);
            time.ok_or_else(|| no_conversion(first, Kind::Time))
        }
        (Function::Time, Value::Int(seconds), None) => {
            let nanoseconds = seconds.checked_mul(1_000_000_000);
            let time = nanoseconds.map(Time::from_nanoseconds).map(Value::Time);
            time.ok_or(Wrong::Overflow)
        }
        (part, Value::Span(span), None) => part_of_span(part, *span).ok_or_else(mismatch),
        (part, Value::Time(time), zone) => {
            let east = match zone {
                None => Span::ZERO,
                Some(Value::Text(zone)) => {
                    parse_zone(zone).ok_or_else(|| Wrong::NoZone(zone.to_string()))?
                }
                Some(_) => return Err(mismatch()),
            };
            part_of_time(part, *time, east).ok_or_else(mismatch)
        }
        _ => Err(mismatch()),
    }
}

/// A compiled regular expression; matching takes time proportional to the text.
pub(crate) fn pattern(text: &str) -> Result<Regex> {
    let regex = RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .build();
    regex.map_err(|error| Wrong::NoPattern(error.to_string()))
}

fn count(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn size(value: &Value) -> Option<Value> {
    Some(count(match value {
        Value::Text(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return None,
    }))
}

fn no_conversion(value: &Value, kind: Kind) -> Wrong {
    Wrong::NoConversion(show(value), kind)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range is checked, and towards zero is what CEL asks for"
)]
fn to_int(value: &Value) -> Option<Result<Value>> {
    Some(match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(number) => i64::try_from(*number)
            .map(Value::Int)
            .map_err(|_| Wrong::Overflow),
        Value::Double(number) if *number > i64::MIN as f64 && *number < i64::MAX as f64 => {
            Ok(Value::Int(*number as i64))
        }
        Value::Double(_) => Err(Wrong::Overflow),
        Value::Text(text) => text
            .parse()
            .map(Value::Int)
            .map_err(|_| no_conversion(value, Kind::Int)),
        Value::Time(time) => Ok(Value::Int(time.nanoseconds().div_euclid(1_000_000_000))),
        _ => return None,
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the range is checked, and towards zero is what CEL asks for"
)]
fn to_uint(value: &Value) -> Option<Result<Value>> {
    Some(match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(number) => u64::try_from(*number)
            .map(Value::Uint)
            .map_err(|_| Wrong::Overflow),
        Value::Double(number) if *number >= 0.0 && *number < u64::MAX as f64 => {
            Ok(Value::Uint(*number as u64))
        }
        Value::Double(_) => Err(Wrong::Overflow),
        Value::Text(text) => text
            .parse()
            .map(Value::Uint)
            .map_err(|_| no_conversion(value, Kind::Uint)),
        _ => return None,
    })
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the nearest double is what is asked for"
)]
fn to_double(value: &Value) -> Option<Result<Value>> {
    Some(match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::Text(text) => text
            .parse()
            .map(Value::Double)
            .map_err(|_| no_conversion(value, Kind::Double)),
        _ => return None,
    })
}

fn to_bool(value: &Value) -> Option<Result<Value>> {
    Some(match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::Text(text) => match &**text {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
            _ => Err(no_conversion(value, Kind::Bool)),
        },
        _ => return None,
    })
}

fn to_text(value: &Value) -> Option<Result<Value>> {
    Some(Ok(Value::from(match value {
        Value::Text(_) => return Some(Ok(value.clone())),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(Err(no_conversion(value, Kind::Text))),
        },
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Time(time) => show_time(*time),
        Value::Span(span) => show_span(*span),
        _ => return None,
    })))
}

fn part_of_span(part: Function, span: Span) -> Option<Value> {
    let unit = match part {
        Function::Hours => 3_600_000_000_000,
        Function::Minutes => 60_000_000_000,
        Function::Seconds => 1_000_000_000,
        Function::Milliseconds => 1_000_000,
        _ => return None,
    };
    Some(Value::Int(span.nanoseconds() / unit))
}

fn part_of_time(part: Function, time: Time, east: Span) -> Option<Value> {
    let date = Date::of(time, east);
    let seconds = date.time / 1_000_000_000;
    Some(Value::Int(match part {
        Function::FullYear => date.year,
        Function::Month => date.month - 1,
        Function::Date => date.day,
        Function::DayOfMonth => date.day - 1,
        Function::DayOfWeek => date.day_of_week,
        Function::DayOfYear => date.day_of_year,
        Function::Hours => seconds / 3600,
        Function::Minutes => seconds / 60 % 60,
        Function::Seconds => seconds % 60,
        Function::Milliseconds => date.time / 1_000_000 % 1000,
        _ => return None,
    }))
}
