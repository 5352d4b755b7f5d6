//! The recorded year, replayed: a clock that runs faster than ours, and what
//! the stations report by it.
//!
//! The clock is arithmetic on a duration that is handed in, so a test decides
//! what time it is. Changing the speed never moves the clock; only
//! [`Clock::seek`] does. Behind the last hour comes the first.

mod plausible;
mod recording;
pub mod weather;

pub use recording::{
    Airport, NoRecording, Observation, Quantity, Reading, Recording, Skipped, Why,
};

use crate::time::{HOUR, Time};
use std::time::Duration;

/// An observation older than this is history, not the current weather.
pub const FRESH: i64 = 90 * 60;

/// The fastest replay: a day in a second.
pub const SPEED_MAX: u32 = 86_400;

/// A clock for a recording, driven by a monotonic duration.
#[derive(Clone, Debug)]
pub struct Clock {
    first: Time,
    end: Time,
    /// The replayed time at `since`, in milliseconds after `first`.
    position_ms: i64,
    since: Duration,
    speed: u32,
}

impl Clock {
    /// A clock that shows `start` at the duration `now` and runs `speed`
    /// times as fast as ours.
    #[must_use]
    pub fn new(recording: &Recording, start: Time, now: Duration, speed: u32) -> Clock {
        let mut clock = Clock {
            first: recording.first(),
            end: recording.end(),
            position_ms: 0,
            since: now,
            speed,
        };
        clock.seek(start, now);
        clock
    }

    /// What it shows at the duration `now`.
    #[must_use]
    pub fn now(&self, now: Duration) -> Time {
        self.first.plus(self.position(now) / 1000)
    }

    /// How fast it runs; 0 is paused.
    #[must_use]
    pub fn speed(&self) -> u32 {
        self.speed
    }

    /// Lets it run at another speed from `now` on.
    pub fn set_speed(&mut self, speed: u32, now: Duration) {
        self.position_ms = self.position(now);
        self.since = now;
        self.speed = speed.min(SPEED_MAX);
    }

    /// Sets it to another time; one outside the recording is wrapped into it.
    pub fn seek(&mut self, to: Time, now: Duration) {
        self.position_ms = (to.0 - self.first.0).rem_euclid(self.span()) * 1000;
        self.since = now;
    }

    /// How much of the recording lies behind, 0 to 1.
    #[must_use]
    pub fn progress(&self, now: Duration) -> f64 {
        self.position(now) as f64 / (self.span() * 1000) as f64
    }

    /// How long until it shows the next full hour, when the stations report;
    /// `None` while it is paused.
    #[must_use]
    pub fn until_next_hour(&self, now: Duration) -> Option<Duration> {
        let hour_ms = HOUR * 1000;
        let phase = (self.first.0 * 1000 + self.position(now)).rem_euclid(hour_ms);
        let left = (hour_ms - phase) as u64;
        (self.speed > 0).then(|| Duration::from_millis(left.div_ceil(u64::from(self.speed))))
    }

    fn span(&self) -> i64 {
        (self.end.0 - self.first.0).max(1)
    }

    fn position(&self, now: Duration) -> i64 {
        let elapsed = now.saturating_sub(self.since).as_millis() * u128::from(self.speed);
        let span_ms = self.span() as u128 * 1000;
        ((self.position_ms as u128 + elapsed) % span_ms) as i64
    }
}

/// The latest an airport reported by a point in time.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// The latest observation.
    pub observation: &'a Observation,
    /// How old it is, in seconds.
    pub age: i64,
}

impl Current<'_> {
    /// Whether it still describes the weather.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.age <= FRESH
    }
}

/// One hour of a chart.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// The full hour.
    pub time: Time,
    /// What was reported in it, if anything was.
    pub observation: Option<&'a Observation>,
}

impl Recording {
    /// The latest observation at or before `now`.
    #[must_use]
    pub fn current(&self, airport: Airport, now: Time) -> Option<Current<'_>> {
        let observations = self.observations(airport);
        let after = observations.partition_point(|o| o.time <= now);
        let observation = observations.get(after.checked_sub(1)?)?;
        Some(Current {
            observation,
            age: now.0 - observation.time.0,
        })
    }

    /// The last `hours` full hours up to `now`, oldest first; an hour without
    /// an observation is a slot without one.
    #[must_use]
    pub fn history(&self, airport: Airport, now: Time, hours: usize) -> Vec<Slot<'_>> {
        let observations = self.observations(airport);
        let newest = now.floor_hour();
        (0..hours as i64)
            .rev()
            .map(|back| {
                let time = newest.plus(-back * HOUR);
                // The last report of the hour, were there several.
                let after =
                    observations.partition_point(|o| o.time < time.plus(HOUR) && o.time <= now);
                let observation = after
                    .checked_sub(1)
                    .map(|i| &observations[i])
                    .filter(|o| o.time >= time);
                Slot { time, observation }
            })
            .collect()
    }

    /// How the pressure changed within the last three hours, in hectopascal.
    /// Where an end was not reported, an hour beside it serves; the change is
    /// scaled to three hours.
    #[must_use]
    pub fn pressure_change(&self, airport: Airport, now: Time) -> Option<f64> {
        let slots = self.history(airport, now, 5);
        let pressure = |i: usize| {
            slots[i]
                .observation
                .and_then(|o| o.value(Quantity::Pressure))
        };
        let (late, newest) = [4, 3].into_iter().find_map(|i| Some((i, pressure(i)?)))?;
        let (early, oldest) = [1, 0, 2]
            .into_iter()
            .find_map(|i| Some((i, pressure(i)?)))?;
        (late > early).then(|| (newest - oldest) * 3.0 / (late - early) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn year() -> Recording {
        Recording::parse(
            "weather-2013.csv",
            include_str!("../../data/weather-2013.csv"),
        )
        .unwrap()
    }

    fn time(text: &str) -> Time {
        Time::parse(text).unwrap()
    }

    #[test]
    fn the_clock_keeps_its_place_when_the_speed_changes() {
        let year = year();
        let mut clock = Clock::new(
            &year,
            time("2013-05-08T12:00"),
            Duration::from_secs(100),
            3600,
        );
        assert_eq!(
            clock.now(Duration::from_secs(102)).to_string(),
            "2013-05-08T14:00:00Z"
        );
        clock.set_speed(60, Duration::from_secs(102));
        assert_eq!(
            clock.now(Duration::from_secs(102)).to_string(),
            "2013-05-08T14:00:00Z"
        );
        assert_eq!(
            clock.now(Duration::from_secs(112)).to_string(),
            "2013-05-08T14:10:00Z"
        );
        clock.set_speed(0, Duration::from_secs(112));
        assert_eq!(
            clock.now(Duration::from_secs(9999)).to_string(),
            "2013-05-08T14:10:00Z"
        );
        assert_eq!(clock.until_next_hour(Duration::from_secs(9999)), None);
        clock.set_speed(3600, Duration::from_secs(9999));
        assert_eq!(
            clock.until_next_hour(Duration::from_secs(9999)),
            Some(Duration::from_millis(834))
        );
    }

    #[test]
    fn behind_the_last_hour_comes_the_first() {
        let year = year();
        let clock = Clock::new(&year, time("2013-12-30T23:30"), Duration::ZERO, 3600);
        assert_eq!(
            clock.now(Duration::from_secs(1)).to_string(),
            "2013-01-01T06:30:00Z"
        );
        let odd = Clock::new(&year, time("1999-01-01"), Duration::ZERO, 1);
        assert!(odd.now(Duration::ZERO) >= year.first() && odd.now(Duration::ZERO) < year.end());
        assert!(clock.now(Duration::MAX) < year.end());
    }

    #[test]
    fn a_gap_is_a_slot_without_an_observation() {
        let year = year();
        let now = time("2013-10-26T04:30");
        let current = year.current(Airport::Ewr, now).unwrap();
        assert_eq!(current.observation.time.to_string(), "2013-10-25T23:00:00Z");
        assert!(!current.is_fresh());
        let history = year.history(Airport::Ewr, now, 24);
        assert_eq!(history.len(), 24);
        assert_eq!(
            history.last().unwrap().time.to_string(),
            "2013-10-26T04:00:00Z"
        );
        assert_eq!(
            history
                .iter()
                .filter(|slot| slot.observation.is_none())
                .count(),
            5
        );
    }

    #[test]
    fn before_the_first_observation_there_is_none() {
        let year = year();
        assert!(
            year.current(Airport::Jfk, time("2013-01-01T05:59"))
                .is_none()
        );
        assert!(
            year.history(Airport::Jfk, time("2013-01-01T06:00"), 48)[..47]
                .iter()
                .all(|s| s.observation.is_none())
        );
    }

    #[test]
    fn the_pressure_trend_bridges_a_missing_report() {
        let year = year();
        // 21:00 1012.2, 18:00 and 17:00 not reported, 19:00 1012.
        let change = year
            .pressure_change(Airport::Ewr, time("2013-05-09T21:00"))
            .unwrap();
        assert!((change - (1012.2 - 1012.0) * 1.5).abs() < 1e-9, "{change}");
        assert!(
            year.pressure_change(Airport::Ewr, time("2013-05-08T17:00"))
                .is_none()
        );
    }
}
