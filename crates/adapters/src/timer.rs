//! Timers: every so often, or at times of day.
//!
//! ```
//! use std::time::Duration;
//! use milieu_adapters::timer;
//!
//! let quarters = timer::every(Duration::from_secs(15 * 60));
//! let meals = timer::daily(["07:30".parse()?, "12:00".parse()?]).zone("Europe/Berlin")?;
//! # Ok::<(), milieu_adapters::Failure>(())
//! ```
//!
//! The time of a [`Tick`] is the one that was asked for, however late the
//! machine was. What passed while the machine slept, or was leapt over when its
//! clock was set, is one tick that says how many it stands for.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;
use milieu_stream::{Feed, Source, Wait};
use milieu_transfer::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, shortened};

/// Nobody needs more of them in one tick, and counting them takes time.
const DAYS_COUNTED: u64 = 10_000;

/// The time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// How many ticks before this one were missed.
    pub missed: u64,
}

/// A source of ticks.
#[derive(Clone, Debug)]
pub struct Timer {
    schedule: Schedule,
    due: Option<Time>,
}

#[derive(Clone, Debug)]
enum Schedule {
    Every(Span),
    Daily {
        times: Vec<TimeOfDay>,
        zone: TimeZone,
    },
}

/// Ticks every so often, aligned to the clock: every quarter of an hour is at
/// 00:00, 00:15, … UTC. Less than a millisecond is a millisecond.
#[must_use]
pub fn every(interval: Duration) -> Timer {
    let interval = interval.max(Duration::from_millis(1));
    Timer {
        schedule: Schedule::Every(interval.into()),
        due: None,
    }
}

/// Ticks at times of day, by the time zone of this machine.
///
/// A time that a day leaves out because clocks are put forward comes as much
/// later; one that it has twice comes the first time.
#[must_use]
pub fn daily(times: impl IntoIterator<Item = TimeOfDay>) -> Timer {
    let mut times: Vec<TimeOfDay> = times.into_iter().collect();
    times.sort();
    times.dedup();
    let zone = TimeZone::system();
    Timer {
        schedule: Schedule::Daily { times, zone },
        due: None,
    }
}

impl Timer {
    /// Means the times of day of this time zone: `Europe/Berlin`, `UTC`. It
    /// makes no difference to [`every`].
    ///
    /// # Errors
    /// If this machine knows no such time zone.
    pub fn zone(mut self, name: &str) -> Result<Timer, Failure> {
        let found = TimeZone::get(name).map_err(|_| {
            let reason = "this machine knows no such time zone; \
                          `Europe/Berlin` is one, if tzdata is installed";
            Failure::new(format_args!("time zone `{}`", shortened(name)), reason)
        })?;
        if let Schedule::Daily { zone, .. } = &mut self.schedule {
            *zone = found;
        }
        Ok(self)
    }
}

impl Source for Timer {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let now = feed.now();
        if let Some(due) = self.due.filter(|due| *due <= now) {
            let (time, missed) = self.schedule.last(due, now);
            feed.publish(time, Tick { missed });
        }
        feed.working();
        let next = self.schedule.next(now);
        self.due = Some(next);
        Wait::Until(next)
    }
}

impl Schedule {
    /// The first tick after this time.
    fn next(&self, after: Time) -> Time {
        match self {
            Schedule::Every(interval) => after.aligned(*interval) + *interval,
            Schedule::Daily { times, zone } => next_of_day(times, zone, after).unwrap_or(Time::MAX),
        }
    }

    /// The last tick until now, of which the first was due, and how many came
    /// before it.
    fn last(&self, due: Time, now: Time) -> (Time, u64) {
        match self {
            Schedule::Every(interval) => {
                let last = now.aligned(*interval);
                let missed = (last - due).nanoseconds() / interval.nanoseconds();
                (last, missed.max(0).unsigned_abs())
            }
            Schedule::Daily { .. } => {
                let mut last = due;
                for missed in 0..DAYS_COUNTED {
                    let next = self.next(last);
                    if next > now {
                        return (last, missed);
                    }
                    last = next;
                }
                (last, DAYS_COUNTED)
            }
        }
    }
}

fn next_of_day(times: &[TimeOfDay], zone: &TimeZone, after: Time) -> Option<Time> {
    let start = Timestamp::from_nanosecond(after.nanoseconds().into()).ok()?;
    let mut date = start.to_zoned(zone.clone()).date();
    // A day may be leapt over where a country changes its side of the date line.
    for _ in 0..4 {
        for time in times {
            let zoned = date.to_datetime(time.0).to_zoned(zone.clone()).ok()?;
            let nanoseconds = i64::try_from(zoned.timestamp().as_nanosecond()).ok()?;
            let time = Time::from_nanoseconds(nanoseconds);
            if time > after {
                return Some(time);
            }
        }
        date = date.tomorrow().ok()?;
    }
    None
}

/// A time of day: `07:30` or `23:59:59`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(civil::Time);

impl FromStr for TimeOfDay {
    type Err = Failure;

    fn from_str(text: &str) -> Result<TimeOfDay, Failure> {
        let number = |text: &str| -> Option<i8> {
            let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok())?
        };
        let parse = || {
            let mut parts = text.split(':');
            let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
            let second = parts.next().map_or(Some(0), number)?;
            let is_whole = parts.next().is_none();
            is_whole.then(|| civil::Time::new(hour, minute, second, 0).ok())?
        };
        parse().map(TimeOfDay).ok_or_else(|| {
            let reason = "that is no time of day; `07:30` is one, from `00:00` to `23:59:59`";
            Failure::new(format_args!("`{}`", shortened(text)), reason)
        })
    }
}
