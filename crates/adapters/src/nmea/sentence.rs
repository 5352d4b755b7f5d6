//! One line of NMEA 0183.

/// No sentence is longer; the standard says 82.
const LENGTH_MAX: usize = 256;

/// A sentence whose checksum is right.
pub(super) struct Sentence<'a> {
    /// What it says: `RMC`. Whoever says it (`GP`, `GN`) is left out.
    pub(super) kind: &'a str,
    fields: Vec<&'a str>,
}

impl<'a> Sentence<'a> {
    /// Reads `$GPGLL,5300.97914,N,00259.98174,E,125926,A*28`.
    pub(super) fn parse(line: &'a str) -> Result<Sentence<'a>, String> {
        let line = line.trim();
        if line.len() > LENGTH_MAX {
            return Err(format!("it is longer than {LENGTH_MAX} bytes"));
        }
        let body = line.strip_prefix('$').or_else(|| line.strip_prefix('!'));
        let body = body.ok_or("it does not begin with `$`")?;
        let (body, checksum) = body.rsplit_once('*').ok_or("it has no checksum")?;
        let is_hex = checksum.len() == 2 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
        let said = u8::from_str_radix(checksum, 16).ok().filter(|_| is_hex);
        let said = said.ok_or("its checksum is not two hexadecimal digits")?;
        let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
        if sum != said {
            return Err(format!("its checksum is {sum:02X}, and it says {said:02X}"));
        }
        let mut fields = body.split(',');
        let address = fields.next().unwrap_or_default();
        Ok(Sentence {
            kind: address.get(2..).unwrap_or_default(),
            fields: fields.collect(),
        })
    }

    /// A field, counted from 0; a missing one is empty.
    pub(super) fn text(&self, index: usize) -> &'a str {
        self.fields.get(index).copied().unwrap_or_default()
    }

    /// A number, if the field has one.
    pub(super) fn number(&self, index: usize) -> Result<Option<f64>, String> {
        let text = self.text(index);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse() {
            Ok(number) if f64::is_finite(number) => Ok(Some(number)),
            _ => Err(format!("`{text}` stands where a number should")),
        }
    }

    /// A latitude or longitude in degrees, if both of its fields have something:
    /// `5300.97914,N`.
    pub(super) fn degrees(&self, index: usize, max: f64) -> Result<Option<f64>, String> {
        let (text, side) = (self.text(index), self.text(index + 1));
        if text.is_empty() || side.is_empty() {
            return Ok(None);
        }
        let wrong = || format!("`{text},{side}` is not a latitude or longitude");
        let minutes_at = text.find('.').unwrap_or(text.len());
        let split = minutes_at.checked_sub(2).ok_or_else(wrong)?;
        let (degrees, minutes) = text.split_at_checked(split).ok_or_else(wrong)?;
        let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !is_plain(text) || degrees.is_empty() {
            return Err(wrong());
        }
        let degrees: f64 = degrees.parse().map_err(|_| wrong())?;
        let minutes: f64 = minutes.parse().map_err(|_| wrong())?;
        let value = degrees + minutes / 60.0;
        let sign = match side {
            "N" | "E" => 1.0,
            "S" | "W" => -1.0,
            _ => return Err(wrong()),
        };
        if minutes >= 60.0 || value > max {
            return Err(wrong());
        }
        Ok(Some(sign * value))
    }

    /// Nanoseconds of the day, if the field has something: `110124.25`.
    pub(super) fn time_of_day(&self, index: usize) -> Result<Option<i64>, String> {
        let text = self.text(index);
        if text.is_empty() {
            return Ok(None);
        }
        let read = || {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let [hours, minutes, seconds] = pairs(whole)?;
            let is_digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
            let is_time = hours < 24 && minutes < 60 && seconds < 61;
            if !is_time || !is_digits || fraction.len() > 9 {
                return None;
            }
            let nanoseconds: i64 = format!("{fraction:0<9}").parse().ok()?;
            Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanoseconds)
        };
        let time = read().ok_or_else(|| format!("`{text}` is not a time of day"));
        time.map(Some)
    }

    /// Year, month and day, if the field has something: `310317`.
    pub(super) fn date(&self, index: usize) -> Result<Option<[i64; 3]>, String> {
        let text = self.text(index);
        if text.is_empty() {
            return Ok(None);
        }
        let date = pairs(text).filter(|[day, month, _]| {
            let [day, month] = [day, month].map(|number| *number);
            (1..=31).contains(&day) && (1..=12).contains(&month)
        });
        let [day, month, year] = date.ok_or_else(|| format!("`{text}` is not a date"))?;
        // The first receivers are of the eighties.
        let century = if year >= 80 { 1900 } else { 2000 };
        Ok(Some([century + year, month, day]))
    }
}

/// Three numbers of two digits each.
fn pairs(text: &str) -> Option<[i64; 3]> {
    let is_digits = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits {
        return None;
    }
    let pair = |at: usize| text[at..at + 2].parse().ok();
    Some([pair(0)?, pair(2)?, pair(4)?])
}
