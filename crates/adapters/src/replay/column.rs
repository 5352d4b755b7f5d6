//! What the fields of a row are.

use milieu_transfer::{Time, Value};

use crate::failure::shortened;

/// What a column of a CSV file holds. An empty field is always
/// [`Value::Null`]: an observation that is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// Numbers where they are finite ones, `true` and `false`, otherwise texts.
    /// Numbers are [`Value::Double`], also whole ones, because the next may be
    /// none.
    #[default]
    Guessed,
    /// Texts, also those that look like numbers.
    Text,
    /// Numbers.
    Number,
    /// Whole numbers.
    Integer,
    /// `true` and `false`, or `1` and `0`.
    Flag,
    /// Points in time.
    Time(TimeFormat),
}

/// How points in time are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// RFC 3339: `2013-05-08T14:00:00.5+02:00`, with `T` or a blank.
    #[default]
    Rfc3339,
    /// Likewise without a zone, in UTC: `2013-05-08 14:00:00`.
    Utc,
    /// Seconds since 1970-01-01 00:00 UTC, perhaps with a fraction.
    UnixSeconds,
    /// Milliseconds since then.
    UnixMilliseconds,
    /// Nanoseconds since then.
    UnixNanoseconds,
}

impl Column {
    /// What a field says.
    pub(super) fn value(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let number = || text.parse().ok().filter(|number: &f64| number.is_finite());
        let value = match self {
            Column::Text => Some(Value::from(text)),
            Column::Number => number().map(Value::Double),
            Column::Integer => text.parse().ok().map(Value::Int),
            Column::Flag => match text {
                "true" | "1" => Some(Value::Bool(true)),
                "false" | "0" => Some(Value::Bool(false)),
                _ => None,
            },
            Column::Time(format) => return format.of_text(text).map(Value::Time),
            Column::Guessed => match text {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => Some(number().map_or_else(|| Value::from(text), Value::Double)),
            },
        };
        let expected = match self {
            Column::Integer => "a whole number",
            Column::Flag => "`true` or `false`",
            _ => "a number",
        };
        value.ok_or_else(|| format!("`{}` is not {expected}", shortened(text)))
    }
}

impl TimeFormat {
    /// The time that a text says.
    pub(super) fn of_text(self, text: &str) -> Result<Time, String> {
        let text = text.trim();
        let parsed = match self {
            TimeFormat::Rfc3339 => with_t(text).parse().ok(),
            TimeFormat::Utc => (with_t(text) + "Z").parse().ok(),
            _ => nanoseconds(text, self.digits()).map(Time::from_nanoseconds),
        };
        let text = shortened(text);
        parsed.ok_or_else(|| format!("`{text}` is not a point in time as {}", self.example()))
    }

    /// The time that a value of JSON says.
    pub(super) fn of_value(self, value: &Value) -> Result<Time, String> {
        match value {
            Value::Text(text) => self.of_text(text),
            Value::Int(number) => self.of_text(&number.to_string()),
            Value::Uint(number) => self.of_text(&number.to_string()),
            Value::Double(number) => self.of_text(&number.to_string()),
            _ => Err(format!("the time is not written as {}", self.example())),
        }
    }

    /// How many digits a fraction of its unit may have.
    fn digits(self) -> usize {
        match self {
            TimeFormat::UnixMilliseconds => 6,
            TimeFormat::UnixNanoseconds => 0,
            _ => 9,
        }
    }

    fn example(self) -> &'static str {
        match self {
            TimeFormat::Rfc3339 => "2013-05-08T14:00:00Z",
            TimeFormat::Utc => "2013-05-08 14:00:00",
            TimeFormat::UnixSeconds => "seconds since 1970",
            TimeFormat::UnixMilliseconds => "milliseconds since 1970",
            TimeFormat::UnixNanoseconds => "nanoseconds since 1970",
        }
    }
}

/// A blank between date and time of day is allowed, and is a `T` to us.
fn with_t(text: &str) -> String {
    text.replacen(' ', "T", 1)
}

/// A decimal number without its point, which has so many digits behind it;
/// further ones are dropped.
fn nanoseconds(text: &str, digits: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_negative = whole.starts_with('-');
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if unsigned.is_empty() || !is_digits(unsigned) || !is_digits(fraction) {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(digits)];
    let number: i64 = format!("{unsigned}{fraction:0<digits$}").parse().ok()?;
    Some(if is_negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_format() {
        let expected: Time = "2013-05-08T14:00:00.5Z".parse().unwrap();
        for (format, text) in [
            (TimeFormat::Rfc3339, "2013-05-08T16:00:00.5+02:00"),
            (TimeFormat::Rfc3339, "2013-05-08 14:00:00.5Z"),
            (TimeFormat::Utc, "2013-05-08 14:00:00.5"),
            (TimeFormat::Utc, "2013-05-08T14:00:00.500"),
            (TimeFormat::UnixSeconds, "1368021600.5"),
            (TimeFormat::UnixSeconds, "1368021600.5000000001"),
            (TimeFormat::UnixMilliseconds, "1368021600500"),
            (TimeFormat::UnixNanoseconds, "1368021600500000000"),
        ] {
            assert_eq!(format.of_text(text), Ok(expected), "{text}");
        }
        let before = TimeFormat::UnixSeconds.of_text("-1.25").unwrap();
        assert_eq!(before.nanoseconds(), -1_250_000_000);
        let number = Value::Double(1_368_021_600.5);
        assert_eq!(TimeFormat::UnixSeconds.of_value(&number), Ok(expected));
    }

    #[test]
    fn what_is_no_time_is_refused_with_an_example() {
        for (format, text, example) in [
            (TimeFormat::Rfc3339, "yesterday", "2013-05-08T14:00:00Z"),
            (
                TimeFormat::Utc,
                "2013-05-08 14:00:00Z",
                "2013-05-08 14:00:00",
            ),
            (TimeFormat::UnixSeconds, "1e9", "seconds since 1970"),
            (TimeFormat::UnixSeconds, "--1", "seconds since 1970"),
            (TimeFormat::UnixSeconds, ".5", "seconds since 1970"),
            (TimeFormat::UnixSeconds, "99999999999999999999", "seconds"),
        ] {
            let error = format.of_text(text).unwrap_err();
            assert!(error.contains(example), "{error}");
        }
    }

    #[test]
    fn fields_are_what_their_column_says() {
        let value = |column: Column, text: &str| column.value(text).unwrap();
        assert_eq!(value(Column::Guessed, " 4 "), Value::Double(4.0));
        assert_eq!(value(Column::Guessed, "nan"), Value::from("nan"));
        assert_eq!(value(Column::Guessed, "true"), Value::Bool(true));
        assert_eq!(value(Column::Text, "007"), Value::from("007"));
        assert_eq!(value(Column::Integer, "7"), Value::Int(7));
        assert_eq!(value(Column::Flag, "0"), Value::Bool(false));
        assert_eq!(value(Column::Integer, ""), Value::Null);
        for column in [Column::Number, Column::Integer, Column::Flag] {
            let error = column.value("often").unwrap_err();
            assert!(error.contains("`often` is not"), "{error}");
        }
    }
}
