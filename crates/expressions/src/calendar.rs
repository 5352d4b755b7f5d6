//! Points and distances in time as texts, and their parts in the calendar.

use milieu_transfer::{Span, Time};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A point in time in the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
    /// From 0.
    pub day_of_year: i64,
    /// From 0, which is Sunday.
    pub day_of_week: i64,
    /// Nanoseconds since midnight.
    pub time: i64,
}

impl Date {
    /// The date in a zone that is so far east of UTC.
    pub(crate) fn of(time: Time, east: Span) -> Date {
        let wide = i128::from(time.nanoseconds()) + i128::from(east.nanoseconds());
        let days = narrow(wide.div_euclid(i128::from(DAY)));
        let time = narrow(wide.rem_euclid(i128::from(DAY)));
        let mut year = 1970 + (days * 400).div_euclid(146_097);
        while days_before(year) > days {
            year -= 1;
        }
        while days_before(year + 1) <= days {
            year += 1;
        }
        let day_of_year = days - days_before(year);
        let (mut month, mut day) = (1, day_of_year);
        while day >= days_of(year, month) {
            day -= days_of(year, month);
            month += 1;
        }
        Date {
            year,
            month,
            day: day + 1,
            day_of_year,
            // 1970 began on a Thursday.
            day_of_week: (days + 4).rem_euclid(7),
            time,
        }
    }
}

/// Of a number that is known to fit.
fn narrow(wide: i128) -> i64 {
    i64::try_from(wide).unwrap_or(i64::MAX)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from the start of 1970 to the start of a year.
fn days_before(year: i64) -> i64 {
    let leaps = |last: i64| last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400);
    365 * (year - 1970) + leaps(year - 1) - leaps(1969)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads `2026-01-31T12:00:00.5+02:00`.
pub(crate) fn parse_time(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() < 20 {
        return None;
    }
    let number = |from: usize, to: usize| digits(&text[from..to]);
    for (at, sign) in [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')] {
        if bytes[at] != sign {
            return None;
        }
    }
    if !matches!(bytes[10], b'T' | b't') {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &text[19..];
    let mut fraction = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let length = after.find(|c: char| !c.is_ascii_digit())?;
        fraction = nanoseconds(&after[..length])?;
        rest = &after[length..];
    }
    let east = match rest {
        "Z" | "z" => Span::ZERO,
        rest if rest.starts_with(['+', '-']) => parse_zone(rest)?,
        _ => return None,
    };
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    let days = days_before(year) + months + day - 1;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    let all = i128::from(seconds) * i128::from(SECOND) + i128::from(fraction)
        - i128::from(east.nanoseconds());
    i64::try_from(all).ok().map(Time::from_nanoseconds)
}

/// A number of at most nine digits.
fn digits(text: &str) -> Option<i64> {
    let is_one = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_one.then(|| text.parse().ok()).flatten()
}

/// The digits behind a point as nanoseconds; finer ones are cut off.
fn nanoseconds(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nine = format!("{:0<9}", &text[..text.len().min(9)]);
    nine.parse().ok()
}

/// How far east a zone is: `UTC`, `+02:00`, `-05:30`, `02:00`.
pub(crate) fn parse_zone(text: &str) -> Option<Span> {
    if matches!(text, "UTC" | "Z" | "") {
        return Some(Span::ZERO);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    if hours.len() > 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Some(Span::from_seconds(sign * (hours * 3600 + minutes * 60)))
}

/// Writes `2026-01-31T12:00:00.5Z`.
pub(crate) fn show_time(time: Time) -> String {
    let date = Date::of(time, Span::ZERO);
    let (seconds, fraction) = (date.time / SECOND, date.time % SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let Date {
        year, month, day, ..
    } = date;
    let fraction = show_fraction(fraction.unsigned_abs());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

fn show_fraction(nanoseconds: u64) -> String {
    match nanoseconds {
        0 => String::new(),
        nanoseconds => format!(".{nanoseconds:09}")
            .trim_end_matches('0')
            .to_owned(),
    }
}

/// Reads `1h30m`, `-1.5s`, `250ms`.
pub(crate) fn parse_span(text: &str) -> Option<Span> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Span::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut all: i128 = 0;
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit();
        let length = rest.find(|c| !is_digit(c) && c != '.')?;
        let (number, after) = rest.split_at(length);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && part.is_empty() || part.contains('.') || whole.len() > 19 {
            return None;
        }
        let length = after
            .find(|c| is_digit(c) || c == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(length);
        let unit: i128 = match unit {
            "h" => 3600 * i128::from(SECOND),
            "m" => 60 * i128::from(SECOND),
            "s" => i128::from(SECOND),
            "ms" => 1_000_000,
            "us" | "µs" | "μs" => 1000,
            "ns" => 1,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        all = all.checked_add(whole.checked_mul(unit)?)?;
        if !part.is_empty() {
            all += i128::from(nanoseconds(part)?) * unit / i128::from(SECOND);
        }
        rest = next;
    }
    i64::try_from(sign * all).ok().map(Span::from_nanoseconds)
}

/// Writes seconds, `-1.5s`.
pub(crate) fn show_span(span: Span) -> String {
    let nanoseconds = span.nanoseconds();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let positive = nanoseconds.unsigned_abs();
    let second = SECOND.unsigned_abs();
    format!(
        "{sign}{}{}s",
        positive / second,
        show_fraction(positive % second)
    )
}

#[cfg(test)]
mod tests {
    use super::{Date, parse_span, parse_time, parse_zone, show_span, show_time};
    use milieu_transfer::{Span, Time};

    #[test]
    fn times_are_read_and_written() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2026-02-28T23:59:59.5Z",
            "2024-02-29T00:00:00.000000001Z",
            "1900-03-01T12:00:00Z",
            "1678-01-01T00:00:00Z",
            "2261-12-31T23:59:59Z",
            "2000-12-31T00:00:00Z",
        ] {
            let time = parse_time(text).unwrap_or_else(|| panic!("{text} is no time"));
            assert_eq!(show_time(time), text);
        }
        assert_eq!(
            parse_time("1970-01-01T02:00:00+02:00"),
            Some(Time::default())
        );
        assert_eq!(
            parse_time("2009-02-13T23:31:30Z"),
            Some(Time::from_seconds(1_234_567_890))
        );
        for wrong in [
            "2023-02-29T00:00:00Z",
            "2023-02-28T24:00:00Z",
            "2023-02-28T00:00:00",
            "2023-02-28T00:00:00.Z",
            "2023-02-28",
            "2500-01-01T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "ä023-12-01T00:00:00Z",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let day = Span::from_seconds(86_400);
        let mut time = parse_time("1700-01-01T00:00:00Z").unwrap();
        let mut before = Date::of(time, Span::ZERO);
        for _ in 0..146_097 {
            time = time + day;
            let date = Date::of(time, Span::ZERO);
            assert_eq!(date.day_of_week, (before.day_of_week + 1) % 7);
            let next = (before.year, before.month, before.day + 1);
            let is_next = (date.year, date.month, date.day) == next;
            let is_first = date.day == 1 && date.month == before.month % 12 + 1;
            assert!(is_next || is_first, "{before:?}, then {date:?}");
            before = date;
        }
        assert_eq!((before.year, before.month, before.day), (2100, 1, 1));
    }

    #[test]
    fn durations_are_read_and_written() {
        for (text, nanoseconds) in [
            ("1h30m", 5_400_000_000_000),
            ("-1.5s", -1_500_000_000),
            ("250ms", 250_000_000),
            (".5s", 500_000_000),
            ("1us2ns", 1002),
            ("0", 0),
        ] {
            assert_eq!(
                parse_span(text),
                Some(Span::from_nanoseconds(nanoseconds)),
                "{text}"
            );
        }
        for wrong in [
            "",
            "1",
            "s",
            "1d",
            "1.2.3s",
            ".s",
            "-",
            "1h 3m",
            "99999999999h",
        ] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
        assert_eq!(show_span(Span::from_nanoseconds(-1_500_000_000)), "-1.5s");
        assert_eq!(show_span(Span::from_seconds(5400)), "5400s");
    }

    #[test]
    fn zones_move_the_date() {
        let time = parse_time("2026-01-01T00:30:00Z").unwrap();
        let west = Date::of(time, parse_zone("-01:00").unwrap());
        assert_eq!(
            (west.year, west.month, west.day, west.day_of_year),
            (2025, 12, 31, 364)
        );
        assert_eq!(parse_zone("02:00"), parse_zone("+02:00"));
        for wrong in ["Europe/Vienna", "+2", "+25:00", "+02:60", "+02:0"] {
            assert_eq!(parse_zone(wrong), None, "{wrong}");
        }
    }
}
