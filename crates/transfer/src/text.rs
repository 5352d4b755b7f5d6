//! Points in time and distances as text: RFC 3339, and ISO 8601 in seconds.

use std::fmt;
use std::str::FromStr;

use crate::time::{Span, Time};

const SECOND: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// RFC 3339 in UTC, as `2013-01-01T12:00:00.25Z`; as many digits of a fraction
/// as are needed, in threes.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.nanoseconds().div_euclid(SECOND);
        let (year, month, day) = date(seconds.div_euclid(DAY_SECONDS));
        let of_day = seconds.rem_euclid(DAY_SECONDS);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        fraction(f, self.nanoseconds().rem_euclid(SECOND))?;
        f.write_str("Z")
    }
}

/// ISO 8601 in seconds, as `PT1.5S` or `-PT0.001S`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.nanoseconds();
        let sign = if nanoseconds < 0 { "-" } else { "" };
        let length = nanoseconds.unsigned_abs();
        write!(f, "{sign}PT{}", length / SECOND.unsigned_abs())?;
        #[allow(clippy::cast_possible_wrap, reason = "less than a second")]
        fraction(f, (length % SECOND.unsigned_abs()) as i64)?;
        f.write_str("S")
    }
}

fn fraction(f: &mut fmt::Formatter<'_>, nanoseconds: i64) -> fmt::Result {
    match nanoseconds {
        0 => Ok(()),
        n if n % 1_000_000 == 0 => write!(f, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => write!(f, ".{:06}", n / 1_000),
        n => write!(f, ".{n:09}"),
    }
}

/// A text that is no point in time or no distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError(&'static str);

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for TimeError {}

const NOT_TIME: TimeError =
    TimeError("expected a point in time as 2013-01-01T12:00:00.25Z or …+01:00 (RFC 3339)");
const OUTSIDE: TimeError = TimeError("the time lies outside of the years from 1678 to 2261");
const NOT_SPAN: TimeError =
    TimeError("expected a distance in time in seconds, as PT1.5S or -PT60S (ISO 8601)");

/// RFC 3339 with any offset; digits of a fraction beyond the ninth are dropped.
/// A leap second is the second after it.
impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Time, TimeError> {
        let mut rest = text.as_bytes();
        let date = |rest: &mut &[u8]| {
            let year = digits(rest, 4)?;
            let month = after(rest, b"-").and_then(|()| digits(rest, 2))?;
            let day = after(rest, b"-").and_then(|()| digits(rest, 2))?;
            let exists = (1..=12).contains(&month) && (1..=length(year, month)).contains(&day);
            exists.then(|| days(year, month, day))
        };
        let clock = |rest: &mut &[u8], last_second: i64| {
            let hour = digits(rest, 2)?;
            let minute = after(rest, b":").and_then(|()| digits(rest, 2))?;
            let second = match last_second {
                0 => 0,
                _ => after(rest, b":").and_then(|()| digits(rest, 2))?,
            };
            let exists = hour < 24 && minute < 60 && second <= last_second;
            exists.then_some(hour * 3600 + minute * 60 + second)
        };
        let days = date(&mut rest).ok_or(NOT_TIME)?;
        after(&mut rest, b"Tt ").ok_or(NOT_TIME)?;
        let of_day = clock(&mut rest, 60).ok_or(NOT_TIME)?;
        let nanoseconds = parse_fraction(&mut rest).ok_or(NOT_TIME)?;
        let offset = match rest.split_first() {
            Some((b'Z' | b'z', tail)) => {
                rest = tail;
                0
            }
            Some((sign @ (b'+' | b'-'), tail)) => {
                rest = tail;
                let offset = clock(&mut rest, 0).ok_or(NOT_TIME)?;
                if *sign == b'-' { -offset } else { offset }
            }
            _ => return Err(NOT_TIME),
        };
        if !rest.is_empty() {
            return Err(NOT_TIME);
        }
        let seconds = days * DAY_SECONDS + of_day - offset;
        // In more bits, because the first second of all begins outside.
        let time = i128::from(seconds) * i128::from(SECOND) + i128::from(nanoseconds);
        let time = i64::try_from(time).map_err(|_| OUTSIDE)?;
        Ok(Time::from_nanoseconds(time))
    }
}

impl FromStr for Span {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Span, TimeError> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let text = text.strip_prefix("PT").and_then(|t| t.strip_suffix('S'));
        let mut rest = text.ok_or(NOT_SPAN)?.as_bytes();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 || count > 12 {
            return Err(NOT_SPAN);
        }
        let seconds = digits(&mut rest, count).ok_or(NOT_SPAN)?;
        let nanoseconds = parse_fraction(&mut rest).ok_or(NOT_SPAN)?;
        if !rest.is_empty() {
            return Err(NOT_SPAN);
        }
        let length = i128::from(seconds) * i128::from(SECOND) + i128::from(nanoseconds);
        let length = if negative { -length } else { length };
        let length = i64::try_from(length).map_err(|_| NOT_SPAN)?;
        Ok(Span::from_nanoseconds(length))
    }
}

fn after(rest: &mut &[u8], any: &[u8]) -> Option<()> {
    let (first, tail) = rest.split_first()?;
    any.contains(first).then(|| *rest = tail)
}

fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (number, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    number.iter().try_fold(0, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + i64::from(byte - b'0'))
    })
}

fn parse_fraction(rest: &mut &[u8]) -> Option<i64> {
    if after(rest, b".").is_none() {
        return Some(0);
    }
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, tail) = rest.split_at(count);
    *rest = tail;
    let nine = number
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(9);
    (count > 0).then(|| nine.fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0')))
}

/// Year, month and day of a day counted from 1970-01-01. Years are counted from
/// March and in eras of 400, so that the leap day is the last one.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// The inverse of [`date`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn length(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        for (nanoseconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_356_998_400_250_000_000, "2013-01-01T00:00:00.250Z"),
            (951_782_400_000_000_001, "2000-02-29T00:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            let time = Time::from_nanoseconds(nanoseconds);
            assert_eq!(time.to_string(), text);
            assert_eq!(text.parse(), Ok(time));
        }
        let outside = "1677-09-21T00:12:43.145224191Z".parse::<Time>();
        assert_eq!(outside, Err(OUTSIDE));
        let offset = "2013-01-01T01:30:00.25+01:30".parse();
        assert_eq!(offset, "2013-01-01T00:00:00.25Z".parse::<Time>());
    }

    #[test]
    fn every_day_is_found_again() {
        for day in -106_000..106_000 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
            assert!((1..=length(year, month)).contains(&of_month));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2013",
            "2013-02-29T00:00:00Z",
            "2013-01-01T24:00:00Z",
            "2013-01-01T00:00:00",
            "2013-01-01T00:00:00.Z",
            "2013-01-01T00:00:00Zx",
            "9999-01-01T00:00:00Z",
            "+013-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn distances_are_written_and_read() {
        for (nanoseconds, text) in [
            (0, "PT0S"),
            (1_500_000_000, "PT1.500S"),
            (-1_000, "-PT0.000001S"),
            (i64::MIN, "-PT9223372036.854775808S"),
        ] {
            let span = Span::from_nanoseconds(nanoseconds);
            assert_eq!(span.to_string(), text);
            assert_eq!(text.parse(), Ok(span));
        }
        for text in ["", "PTS", "1S", "PT1", "PT1.S", "PT9999999999S", "PT-1S"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
