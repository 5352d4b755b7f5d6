//! Points in time, calendar dates and New York's clock, as far as an hourly
//! recording needs them.
//!
//! A [`Time`] is a number of seconds; it never asks the machine what time it
//! is. Whoever needs "now" is handed it.

use std::fmt;

/// One hour in seconds.
pub const HOUR: i64 = 3600;

/// One day in seconds.
pub const DAY: i64 = 24 * HOUR;

/// Seconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// A date and a time of day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year, 2013 for instance.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 is Sunday, 6 is Saturday.
    pub weekday: u32,
}

impl Time {
    /// The time of a date in UTC; `None` if there is no such date.
    #[must_use]
    pub fn from_civil(
        year: i64,
        month: u32,
        day: u32,
        hour: u32,
        minute: u32,
        second: u32,
    ) -> Option<Time> {
        if !(1..=12).contains(&month)
            || day == 0
            || day > days_of_month(year, month)
            || hour > 23
            || minute > 59
            || second > 59
        {
            return None;
        }
        let days = days_from_civil(year, month, day);
        Some(Time(
            days * DAY + i64::from(hour) * HOUR + i64::from(minute) * 60 + i64::from(second),
        ))
    }

    /// Reads `2013-05-08T14:00:00Z`; seconds and the `Z` may be left out, as
    /// a browser's date input does, and so may the whole time of day.
    #[must_use]
    pub fn parse(text: &str) -> Option<Time> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, clock) = text.split_once('T').unwrap_or((text, "00:00"));
        let mut date = date.splitn(3, '-').map(digits);
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let mut clock = clock.splitn(3, ':').map(digits);
        let (hour, minute) = (clock.next()??, clock.next()??);
        let second = clock.next().unwrap_or(Some(0))?;
        Time::from_civil(i64::from(year), month, day, hour, minute, second)
    }

    /// The date and time of day in UTC.
    #[must_use]
    pub fn civil(self) -> Civil {
        let days = self.0.div_euclid(DAY);
        let seconds = self.0.rem_euclid(DAY) as u32;
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            weekday: (days + 4).rem_euclid(7) as u32,
        }
    }

    /// The full hour at or before this time.
    #[must_use]
    pub fn floor_hour(self) -> Time {
        Time(self.0.div_euclid(HOUR) * HOUR)
    }

    /// This time, later by `seconds`.
    #[must_use]
    pub fn plus(self, seconds: i64) -> Time {
        Time(self.0 + seconds)
    }
}

impl From<milieu::transfer::Time> for Time {
    fn from(time: milieu::transfer::Time) -> Time {
        Time(time.nanoseconds().div_euclid(1_000_000_000))
    }
}

impl From<Time> for milieu::transfer::Time {
    fn from(time: Time) -> milieu::transfer::Time {
        milieu::transfer::Time::from_seconds(time.0)
    }
}

/// As in the recording: `2013-05-08T14:00:00Z`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self.civil();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )
    }
}

/// What clocks in New York show at `time`, and whether it is summer time
/// there: from the second Sunday of March to the first of November, as the
/// Energy Policy Act of 2005 has it.
#[must_use]
pub fn new_york(time: Time) -> (Civil, bool) {
    let year = time.civil().year;
    // Both changes happen at two in the morning of the clock that ends.
    let begins = sunday(year, 3, 2).plus(7 * HOUR);
    let ends = sunday(year, 11, 1).plus(6 * HOUR);
    let summer = begins <= time && time < ends;
    let offset = if summer { -4 } else { -5 };
    (time.plus(offset * HOUR).civil(), summer)
}

/// Midnight of the `nth` Sunday of a month.
fn sunday(year: i64, month: u32, nth: i64) -> Time {
    let first = days_from_civil(year, month, 1);
    let weekday = (first + 4).rem_euclid(7);
    Time((first + (7 - weekday) % 7 + (nth - 1) * 7) * DAY)
}

/// A number written in one to four plain digits.
fn digits(text: &str) -> Option<u32> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn days_of_month(year: i64, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01. Years are counted from March, so that the leap day
/// is the last of its year and months follow one formula.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = i64::from((month + 9) % 12);
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
    let month = if month < 10 { month + 3 } else { month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_out_as_they_came_in() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2013-12-30T23:00:00Z",
            "2000-02-29T12:34:56Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(
                Time::parse(text).map(|t| t.to_string()).as_deref(),
                Some(text)
            );
        }
        assert_eq!(
            Time::parse("2013-05-08T14:30"),
            Time::parse("2013-05-08T14:30:00Z")
        );
        assert_eq!(
            Time::parse("2013-05-08"),
            Time::parse("2013-05-08T00:00:00Z")
        );
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2013",
            "2013-02-29",
            "2013-13-01",
            "2013-05-08T24:00",
            "2013-05-08T1:60",
            "+013-05-08",
            "2013-05-08T00:00:00+01",
            "99999-01-01",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn weekdays_and_every_day_of_four_centuries() {
        assert_eq!(Time::parse("2013-05-08").unwrap().civil().weekday, 3);
        for days in -150_000..150_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn new_york_keeps_summer_time() {
        let hour = |text: &str| new_york(Time::parse(text).unwrap());
        assert_eq!(
            (hour("2013-03-10T06:59").0.hour, hour("2013-03-10T06:59").1),
            (1, false)
        );
        assert_eq!(
            (hour("2013-03-10T07:00").0.hour, hour("2013-03-10T07:00").1),
            (3, true)
        );
        assert_eq!(
            (hour("2013-11-03T05:59").0.hour, hour("2013-11-03T05:59").1),
            (1, true)
        );
        assert_eq!(
            (hour("2013-11-03T06:00").0.hour, hour("2013-11-03T06:00").1),
            (1, false)
        );
    }
}
