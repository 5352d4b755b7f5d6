//! Dates and times as text: ISO 8601, RFC 3339, RFC 2822 and formats of
//! `strptime`. Only the text is checked; no clock and no time zone database is
//! asked.

/// How a date is to be written.
#[derive(Clone, Debug)]
pub(super) enum Dates {
    /// Any date, time, or date and time of ISO 8601.
    Iso,
    /// A date of ISO 8601: calendar, week or ordinal.
    Date,
    /// A time of day of ISO 8601, with or without an offset.
    Time,
    /// A date and a time of ISO 8601.
    DateTime,
    /// As in Internet protocols: `2013-05-06T12:00:00Z`.
    Rfc3339,
    /// As in mails: `Mon, 06 May 2013 12:00:00 +0000`.
    Rfc2822,
    /// A format of `strptime`: `%d.%m.%Y`.
    Format(String),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl Dates {
    /// The way of writing that `check/date` names; `None` asks for
    /// `check/date/format`.
    pub(super) fn parse(text: &str) -> Option<Dates> {
        Some(match text.to_ascii_lowercase().as_str() {
            "" | "iso8601" => Dates::Iso,
            "date" => Dates::Date,
            "time" => Dates::Time,
            "datetime" => Dates::DateTime,
            "rfc3339" => Dates::Rfc3339,
            "rfc2822" => Dates::Rfc2822,
            _ => return None,
        })
    }

    /// A format of `strptime`; the error says what is wrong with it.
    pub(super) fn format(format: &str) -> Result<Dates, String> {
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                continue;
            }
            match rest.next() {
                Some(c) if "YymdeHIMSpjbBhaAzTFDR%".contains(c) => {}
                Some(c) => return Err(format!("`%{c}` is not known here")),
                None => return Err("a single `%` stands at the end".to_owned()),
            }
        }
        Ok(Dates::Format(format.to_owned()))
    }

    pub(super) fn accepts(&self, text: &str) -> bool {
        let mut cursor = Cursor { text, at: 0 };
        let read = match self {
            Dates::Iso => {
                return [Dates::DateTime, Dates::Date, Dates::Time]
                    .iter()
                    .any(|form| form.accepts(text));
            }
            Dates::Date => cursor.iso_date(),
            Dates::Time => cursor.iso_time(),
            Dates::DateTime => cursor.iso_date_time(),
            Dates::Rfc3339 => cursor.rfc3339(),
            Dates::Rfc2822 => cursor.rfc2822(),
            Dates::Format(format) => cursor.format(format),
        };
        read.is_some() && cursor.at == text.len()
    }

    /// What to give instead, with an example.
    pub(super) fn remedy(&self) -> String {
        let (what, example) = match self {
            Dates::Iso => ("a date or time of ISO 8601", "2013-05-06T12:00:00Z"),
            Dates::Date => ("a date of ISO 8601", "2013-05-06"),
            Dates::Time => ("a time of ISO 8601", "12:00:00"),
            Dates::DateTime => ("a date and time of ISO 8601", "2013-05-06T12:00:00"),
            Dates::Rfc3339 => ("a date and time of RFC 3339", "2013-05-06T12:00:00Z"),
            Dates::Rfc2822 => ("a date of RFC 2822", "Mon, 06 May 2013 12:00:00 +0000"),
            Dates::Format(format) => return format!("give a date in the format `{format}`"),
        };
        format!("give {what}, such as `{example}`")
    }
}

fn is_leap(year: u32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The weekday of a date, Monday being 0.
fn weekday(year: u32, month: u32, day: u32) -> u32 {
    // Days since 1 March of year 0, of a calendar that begins in March.
    let (y, m) = if month > 2 {
        (year + 400, month - 3)
    } else {
        (year + 399, month + 9)
    };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    (days + 2) % 7
}

fn weeks_of_year(year: u32) -> u32 {
    // A year has 53 weeks when it begins or ends on a Thursday.
    if weekday(year, 1, 1) == 3 || weekday(year, 12, 31) == 3 {
        53
    } else {
        52
    }
}

fn is_date(year: u32, month: u32, day: u32) -> Option<()> {
    let valid = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    valid.then_some(())
}

/// Reads a text from the front; `None` is a text that does not fit.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    /// A number of at least and at most so many digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self.rest().bytes().take(most);
        let count = count.take_while(u8::is_ascii_digit).count();
        if count < least {
            return None;
        }
        let number = self.rest()[..count].parse().ok()?;
        self.at += count;
        Some(number)
    }

    /// A number of exactly so many digits, at most `max`.
    fn number(&mut self, digits: usize, max: u32) -> Option<u32> {
        self.digits(digits, digits).filter(|&n| n <= max)
    }

    /// One of the words, whole or its first three letters, in any case.
    fn word(&mut self, words: &[&str]) -> Option<usize> {
        let rest = self.rest();
        let begins = |n: usize, word: &str| {
            rest.get(..n)
                .is_some_and(|start| start.eq_ignore_ascii_case(&word[..n]))
        };
        let (index, count) = words.iter().enumerate().find_map(|(index, word)| {
            [word.len(), 3]
                .into_iter()
                .find(|&count| begins(count, word))
                .map(|count| (index, count))
        })?;
        self.at += count;
        Some(index)
    }

    fn iso_date(&mut self) -> Option<()> {
        let year = self.number(4, 9999)?;
        let extended = self.eat("-");
        if self.eat("W") {
            let week = self.number(2, weeks_of_year(year))?;
            let day_follows = if extended { self.eat("-") } else { true };
            if day_follows && (extended || self.rest().starts_with(|c: char| c.is_ascii_digit())) {
                self.number(1, 7).filter(|&day| day > 0)?;
            }
            return (week > 0).then_some(());
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 3 {
            let days = if is_leap(year) { 366 } else { 365 };
            return self.number(3, days).filter(|&day| day > 0).map(|_| ());
        }
        let month = self.number(2, 12)?;
        if extended {
            self.expect("-")?;
        }
        let day = self.number(2, 31)?;
        is_date(year, month, day)
    }

    /// Hours, minutes, seconds; seconds may be missing and have a fraction.
    fn clock(&mut self, extended: Option<bool>, seconds: bool) -> Option<()> {
        self.number(2, 23)?;
        let colon = self.eat(":");
        if extended.is_some_and(|extended| extended != colon) {
            return None;
        }
        self.number(2, 59)?;
        let more = if colon {
            self.eat(":")
        } else {
            self.rest().starts_with(|c: char| c.is_ascii_digit())
        };
        if more {
            // 60 is a leap second.
            self.number(2, 60)?;
            if self.eat(".") || self.eat(",") {
                self.digits(1, 9)?;
            }
        } else if seconds {
            return None;
        }
        Some(())
    }

    fn iso_time(&mut self) -> Option<()> {
        self.clock(None, false)?;
        if self.rest().is_empty() || self.eat("Z") {
            return Some(());
        }
        self.sign()?;
        self.number(2, 23)?;
        if !self.rest().is_empty() {
            self.eat(":");
            self.number(2, 59)?;
        }
        Some(())
    }

    fn iso_date_time(&mut self) -> Option<()> {
        self.iso_date()?;
        if !self.eat("T") {
            self.expect(" ")?;
        }
        self.iso_time()
    }

    fn sign(&mut self) -> Option<()> {
        (self.eat("+") || self.eat("-")).then_some(())
    }

    fn rfc3339(&mut self) -> Option<()> {
        let year = self.number(4, 9999)?;
        self.expect("-")?;
        let month = self.number(2, 12)?;
        self.expect("-")?;
        let day = self.number(2, 31)?;
        is_date(year, month, day)?;
        if !(self.eat("T") || self.eat("t")) {
            self.expect(" ")?;
        }
        self.clock(Some(true), true)?;
        if self.eat("Z") || self.eat("z") {
            return Some(());
        }
        self.sign()?;
        self.number(2, 23)?;
        self.expect(":")?;
        self.number(2, 59).map(|_| ())
    }

    fn rfc2822(&mut self) -> Option<()> {
        let stated = self.word(&WEEKDAYS);
        if stated.is_some() {
            self.expect(", ")?;
        }
        let day = self.digits(1, 2)?;
        self.expect(" ")?;
        let month = u32::try_from(self.word(&MONTHS)?).ok()? + 1;
        self.expect(" ")?;
        let year = self.number(4, 9999)?;
        is_date(year, month, day)?;
        if stated.is_some_and(|stated| stated as u32 != weekday(year, month, day)) {
            return None;
        }
        self.expect(" ")?;
        self.clock(Some(true), false)?;
        self.expect(" ")?;
        if self.eat("GMT") || self.eat("UT") {
            return Some(());
        }
        self.sign()?;
        self.number(2, 23)?;
        self.number(2, 59).map(|_| ())
    }

    fn format(&mut self, format: &str) -> Option<()> {
        let (mut year, mut month, mut day) = (None, None, None);
        let mut directives = format.chars();
        while let Some(c) = directives.next() {
            if c != '%' {
                self.expect(c.encode_utf8(&mut [0; 4]))?;
                continue;
            }
            match directives.next()? {
                'Y' => year = Some(self.number(4, 9999)?),
                'y' => year = Some(2000 + self.number(2, 99)?),
                'm' => month = Some(self.digits(1, 2)?),
                'd' => day = Some(self.digits(1, 2)?),
                'e' => {
                    self.eat(" ");
                    day = Some(self.digits(1, 2)?);
                }
                'b' | 'B' | 'h' => month = Some(u32::try_from(self.word(&MONTHS)?).ok()? + 1),
                'a' | 'A' => drop(self.word(&WEEKDAYS)?),
                'H' => drop(self.digits(1, 2).filter(|&h| h <= 23)?),
                'I' => drop(self.digits(1, 2).filter(|h| (1..=12).contains(h))?),
                'M' => drop(self.digits(1, 2).filter(|&m| m <= 59)?),
                'S' => drop(self.digits(1, 2).filter(|&s| s <= 60)?),
                'p' => {
                    let half = self.rest().get(..2)?;
                    let valid = ["AM", "PM"].iter().any(|h| h.eq_ignore_ascii_case(half));
                    valid.then_some(())?;
                    self.at += 2;
                }
                'j' => drop(self.digits(1, 3).filter(|d| (1..=366).contains(d))?),
                'z' => {
                    if !self.eat("Z") {
                        self.sign()?;
                        self.number(2, 23)?;
                        self.eat(":");
                        self.number(2, 59)?;
                    }
                }
                'T' => self.format("%H:%M:%S")?,
                'R' => self.format("%H:%M")?,
                'F' => self.format("%Y-%m-%d")?,
                'D' => self.format("%m/%d/%y")?,
                '%' => self.expect("%")?,
                _ => return None,
            }
        }
        // A part that the format does not name does not restrict the others:
        // 2000 is a leap year, January has 31 days.
        is_date(year.unwrap_or(2000), month.unwrap_or(1), day.unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekdays_and_weeks_follow_the_calendar() {
        assert_eq!(weekday(1970, 1, 1), 3);
        assert_eq!(weekday(2013, 5, 6), 0);
        assert_eq!(weekday(2000, 2, 29), 1);
        assert_eq!(weeks_of_year(2015), 53);
        assert_eq!(weeks_of_year(2016), 52);
        assert_eq!(weeks_of_year(2020), 53);
    }
}
