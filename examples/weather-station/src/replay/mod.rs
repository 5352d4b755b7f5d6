//! The recorded year, and what the stations had reported by a point in time.

mod plausible;
pub mod recording;
pub mod weather;

pub use recording::{Airport, Observation, Quantity, Reading, Recording, Why};

use crate::time::{HOUR, Time};

/// An observation older than this is history, not the current weather.
pub const FRESH: i64 = 90 * 60;

/// The fastest replay: a day in a second.
pub const SPEED_MAX: u32 = 86_400;

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
    /// A time within it: behind its end comes its beginning.
    #[must_use]
    pub fn wrapped(&self, time: Time) -> Time {
        let span = self.end().0 - self.first().0;
        self.first()
            .plus((time.0 - self.first().0).rem_euclid(span))
    }

    /// How much of it lies behind, 0 to 1.
    #[must_use]
    pub fn progress(&self, now: Time) -> f64 {
        (now.0 - self.first().0) as f64 / (self.end().0 - self.first().0) as f64
    }

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
        Recording::read(recording::csv("".as_ref())).unwrap()
    }

    fn time(text: &str) -> Time {
        Time::parse(text).unwrap()
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
    fn times_outside_the_recording_are_wrapped_into_it() {
        let year = year();
        for (outside, within) in [
            ("2013-05-08T12:30", "2013-05-08T12:30"),
            ("2013-01-01T05:00", "2013-12-30T23:00"),
            ("2013-12-31T00:00", "2013-01-01T06:00"),
            ("2014-02-01T00:00", "2013-02-02T06:00"),
            ("1970-01-01T00:00", "2013-10-27T00:00"),
        ] {
            assert_eq!(year.wrapped(time(outside)), time(within), "{outside}");
        }
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
