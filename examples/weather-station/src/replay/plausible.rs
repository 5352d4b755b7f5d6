//! Which readings cannot be, and why.
//!
//! Two rules, the ones that weather services apply first: a value outside
//! what the place can see, and a spike, a value that jumps away from its
//! neighbours and back. A reading that breaks a rule is marked, never removed.

use super::recording::{Observation, Quantity, Reading, Why};
use crate::time::HOUR;

/// The lowest and the highest value to be believed near New York. The records
/// there lie well inside: −26 to 41 °C; a gust of 54 m/s; 955 to 1050 hPa.
const fn limits(quantity: Quantity) -> (f64, f64) {
    match quantity {
        Quantity::Temperature => (-40.0, 50.0),
        Quantity::DewPoint => (-50.0, 35.0),
        Quantity::Humidity => (0.0, 100.0),
        Quantity::WindDirection => (0.0, 360.0),
        Quantity::WindSpeed => (0.0, 75.0),
        Quantity::Precipitation => (0.0, 150.0),
        Quantity::Pressure => (920.0, 1070.0),
        Quantity::Visibility => (0.0, 100.0),
    }
}

/// How far a quantity may jump away and back within neighbouring hours;
/// `None` where jumps are the weather's nature.
const fn spike(quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::Temperature | Quantity::DewPoint => Some(12.0),
        Quantity::Pressure => Some(8.0),
        _ => None,
    }
}

/// Neighbours further apart than this say nothing about a spike between them.
const NEIGHBOURHOOD: i64 = 3 * HOUR;

/// Marks the implausible readings of one station, in order of time.
pub(super) fn check(observations: &mut [Observation]) {
    for quantity in Quantity::ALL {
        let (lowest, highest) = limits(quantity);
        for observation in observations.iter_mut() {
            let reading = &mut observation.readings[quantity as usize];
            if let Reading::Plausible(value) = *reading {
                if value < lowest || value > highest {
                    *reading = Reading::Implausible(value, Why::OutOfRange { lowest, highest });
                }
            }
        }
        let Some(jump) = spike(quantity) else {
            continue;
        };
        for middle in 1..observations.len().saturating_sub(1) {
            let [a, b, c] = [
                &observations[middle - 1],
                &observations[middle],
                &observations[middle + 1],
            ];
            if c.time.0 - a.time.0 > NEIGHBOURHOOD {
                continue;
            }
            let (Some(before), Some(value), Some(after)) =
                (a.value(quantity), b.value(quantity), c.value(quantity))
            else {
                continue;
            };
            let (away, back) = (value - before, value - after);
            if away.abs() > jump && back.abs() > jump && away.signum() == back.signum() {
                observations[middle].readings[quantity as usize] =
                    Reading::Implausible(value, Why::Spike { before, after });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording::{self, Airport, Recording};
    use super::*;

    #[test]
    fn the_shipped_year_has_one_impossible_wind_and_one_impossible_hour_of_frost() {
        let year = Recording::read(recording::csv("".as_ref())).unwrap();
        let mut found = Vec::new();
        for airport in Airport::ALL {
            for observation in year.observations(airport) {
                for quantity in Quantity::ALL {
                    if let Reading::Implausible(value, why) = observation.get(quantity) {
                        found.push((
                            airport.code(),
                            observation.time.to_string(),
                            quantity,
                            value,
                            why,
                        ));
                    }
                }
            }
        }
        let frost = "2013-05-09T02:00:00Z".to_owned();
        assert_eq!(
            found,
            [
                (
                    "EWR",
                    "2013-02-12T08:00:00Z".to_owned(),
                    Quantity::WindSpeed,
                    468.7,
                    Why::OutOfRange {
                        lowest: 0.0,
                        highest: 75.0
                    }
                ),
                (
                    "JFK",
                    frost.clone(),
                    Quantity::Temperature,
                    -10.5,
                    Why::Spike {
                        before: 13.9,
                        after: 14.0
                    }
                ),
                (
                    "JFK",
                    frost,
                    Quantity::DewPoint,
                    -11.1,
                    Why::Spike {
                        before: 9.4,
                        after: 12.0
                    }
                ),
            ]
        );
    }

    #[test]
    fn a_front_is_no_spike() {
        let at = |hour: i64, value: f64| {
            let mut readings = [Reading::Missing; 8];
            readings[Quantity::Temperature as usize] = Reading::Plausible(value);
            Observation {
                time: crate::time::Time(hour * HOUR),
                readings,
            }
        };
        let mut front = [at(0, 28.0), at(1, 14.0), at(2, 13.0)];
        check(&mut front);
        assert_eq!(
            front[1].get(Quantity::Temperature),
            Reading::Plausible(14.0)
        );
        // Across a gap of five hours nobody knows.
        let mut gap = [at(0, 28.0), at(3, 5.0), at(5, 28.0)];
        check(&mut gap);
        assert_eq!(gap[1].get(Quantity::Temperature), Reading::Plausible(5.0));
        let mut spike = [at(0, 14.0), at(1, 28.0), at(2, 13.0)];
        check(&mut spike);
        assert_eq!(
            spike[1].get(Quantity::Temperature),
            Reading::Implausible(
                28.0,
                Why::Spike {
                    before: 14.0,
                    after: 13.0
                }
            )
        );
    }
}
