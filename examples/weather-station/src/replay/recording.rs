//! The recording: comma-separated text in, observations of three airports out.
//!
//! Nothing is lost on the way: a row that cannot be read becomes a [`Skipped`]
//! with its line and a reason, an empty field stays a missing reading, and a
//! reading that cannot be is kept beside the rule it breaks.

use super::plausible;
use crate::time::{HOUR, Time};
use std::fmt;

/// An airport with a weather station in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Airport {
    /// Newark Liberty.
    Ewr,
    /// John F. Kennedy.
    Jfk,
    /// LaGuardia.
    Lga,
}

impl Airport {
    /// All of them, in the order of the recording.
    pub const ALL: [Airport; 3] = [Airport::Ewr, Airport::Jfk, Airport::Lga];

    /// Three letters, as in the recording.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Airport::Ewr => "EWR",
            Airport::Jfk => "JFK",
            Airport::Lga => "LGA",
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Airport::Ewr => "Newark Liberty",
            Airport::Jfk => "John F. Kennedy",
            Airport::Lga => "LaGuardia",
        }
    }

    /// Latitude and longitude in degrees, north and east positive.
    #[must_use]
    pub fn position(self) -> (f64, f64) {
        match self {
            Airport::Ewr => (40.69, -74.17),
            Airport::Jfk => (40.64, -73.78),
            Airport::Lga => (40.78, -73.87),
        }
    }

    /// The airport of a code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Airport> {
        Airport::ALL
            .into_iter()
            .find(|airport| airport.code() == code)
    }
}

/// Why a reading cannot be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It lies outside what this place has ever seen, by a wide margin.
    OutOfRange {
        /// The lowest value that would have been believed.
        lowest: f64,
        /// The highest.
        highest: f64,
    },
    /// It jumps away from the reading before and the next one jumps back.
    Spike {
        /// The reading before.
        before: f64,
        /// The reading after.
        after: f64,
    },
}

/// One field of an observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// The station did not report it.
    Missing,
    /// A reading to be believed.
    Plausible(f64),
    /// A reading that cannot be, and why.
    Implausible(f64, Why),
}

impl Reading {
    /// The value, if it is to be believed.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Reading::Plausible(value) => Some(value),
            _ => None,
        }
    }

    /// The value as it was reported, believed or not.
    #[must_use]
    pub fn reported(self) -> Option<f64> {
        match self {
            Reading::Missing => None,
            Reading::Plausible(value) | Reading::Implausible(value, _) => Some(value),
        }
    }
}

/// The quantities of an observation, in the order of [`Observation::readings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Degrees Celsius.
    Temperature,
    /// Degrees Celsius.
    DewPoint,
    /// Percent.
    Humidity,
    /// Degrees, where the wind comes from; 0 with calm air, 360 is north.
    WindDirection,
    /// Metres per second.
    WindSpeed,
    /// Millimetres in the hour.
    Precipitation,
    /// Hectopascal at sea level.
    Pressure,
    /// Kilometres.
    Visibility,
}

impl Quantity {
    /// All of them, in the order of the fields.
    pub const ALL: [Quantity; 8] = [
        Quantity::Temperature,
        Quantity::DewPoint,
        Quantity::Humidity,
        Quantity::WindDirection,
        Quantity::WindSpeed,
        Quantity::Precipitation,
        Quantity::Pressure,
        Quantity::Visibility,
    ];

    /// The column's name in the recording, with its unit.
    #[must_use]
    pub fn column(self) -> &'static str {
        match self {
            Quantity::Temperature => "temperature_celsius",
            Quantity::DewPoint => "dew_point_celsius",
            Quantity::Humidity => "humidity_percent",
            Quantity::WindDirection => "wind_direction_degrees",
            Quantity::WindSpeed => "wind_speed_metres_per_second",
            Quantity::Precipitation => "precipitation_millimetres",
            Quantity::Pressure => "pressure_hectopascal",
            Quantity::Visibility => "visibility_kilometres",
        }
    }
}

/// What one station reported for one hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// When.
    pub time: Time,
    /// One reading for each of [`Quantity::ALL`].
    pub readings: [Reading; 8],
}

impl Observation {
    /// One of its readings.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Reading {
        self.readings[quantity as usize]
    }

    /// One of its values, if it is there and to be believed.
    #[must_use]
    pub fn value(&self, quantity: Quantity) -> Option<f64> {
        self.get(quantity).value()
    }
}

/// A row that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The line in the file, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// A file that is no recording at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRecording {
    /// The file's name.
    pub file: String,
    /// What is wrong and what to do.
    pub reason: String,
}

impl fmt::Display for NoRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

impl std::error::Error for NoRecording {}

/// Everything that was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    stations: [Vec<Observation>; 3],
    /// The rows that could not be read.
    pub skipped: Vec<Skipped>,
    first: Time,
    last: Time,
}

impl Recording {
    /// Reads comma-separated text; `file` is its name in errors.
    ///
    /// # Errors
    /// If the first line does not name the columns, or no row can be read.
    pub fn parse(file: &str, text: &str) -> Result<Recording, NoRecording> {
        let no = |reason: String| NoRecording {
            file: file.to_owned(),
            reason,
        };
        let mut lines = text.lines().enumerate();
        let header: Vec<&str> = lines
            .next()
            .map(|(_, line)| line.trim_end().split(',').collect())
            .unwrap_or_default();
        let column = |name: &str| {
            header.iter().position(|c| *c == name).ok_or_else(|| {
                no(format!("line 1 does not name the column `{name}`; the first line must name all ten columns, as in data/weather-2013.csv"))
            })
        };
        let columns = Columns {
            time: column("time")?,
            station: column("station")?,
            quantities: {
                let mut found = [0; 8];
                for quantity in Quantity::ALL {
                    found[quantity as usize] = column(quantity.column())?;
                }
                found
            },
            count: header.len(),
        };
        let mut stations: [Vec<Observation>; 3] = Default::default();
        let mut skipped = Vec::new();
        for (index, line) in lines {
            if line.trim().is_empty() {
                continue;
            }
            match columns.row(line.trim_end()) {
                Ok((airport, observation)) => stations[airport as usize].push(observation),
                Err(reason) => skipped.push(Skipped {
                    line: index + 1,
                    reason,
                }),
            }
        }
        for observations in &mut stations {
            // A stable sort: of two rows for one hour the later one counts.
            observations.sort_by_key(|o| o.time);
            observations.reverse();
            observations.dedup_by_key(|o| o.time);
            observations.reverse();
            plausible::check(observations);
        }
        let first = stations
            .iter()
            .filter_map(|s| s.first())
            .map(|o| o.time)
            .min();
        let last = stations
            .iter()
            .filter_map(|s| s.last())
            .map(|o| o.time)
            .max();
        match (first, last) {
            (Some(first), Some(last)) => Ok(Recording {
                stations,
                skipped,
                first,
                last,
            }),
            _ => Err(no(match skipped.first() {
                Some(s) => format!(
                    "no row can be read; the first, line {}: {}",
                    s.line, s.reason
                ),
                None => "it has no rows below its header".to_owned(),
            })),
        }
    }

    /// When the recording begins.
    #[must_use]
    pub fn first(&self) -> Time {
        self.first
    }

    /// When its last hour ends.
    #[must_use]
    pub fn end(&self) -> Time {
        self.last.plus(HOUR)
    }

    /// What a station reported, in order of time.
    #[must_use]
    pub fn observations(&self, airport: Airport) -> &[Observation] {
        &self.stations[airport as usize]
    }
}

/// Where each field stands in a row.
struct Columns {
    time: usize,
    station: usize,
    quantities: [usize; 8],
    count: usize,
}

impl Columns {
    fn row(&self, line: &str) -> Result<(Airport, Observation), String> {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != self.count {
            return Err(format!(
                "{} fields where the header names {}",
                fields.len(),
                self.count
            ));
        }
        let time = Time::parse(fields[self.time]).ok_or_else(|| {
            format!(
                "`{}` is not a time such as 2013-05-08T14:00:00Z",
                fields[self.time]
            )
        })?;
        let airport = Airport::from_code(fields[self.station]).ok_or_else(|| {
            format!(
                "`{}` is not a station; known are EWR, JFK and LGA",
                fields[self.station]
            )
        })?;
        let mut readings = [Reading::Missing; 8];
        for quantity in Quantity::ALL {
            let field = fields[self.quantities[quantity as usize]].trim();
            if field.is_empty() {
                continue;
            }
            match field.parse::<f64>() {
                Ok(value) if value.is_finite() => {
                    readings[quantity as usize] = Reading::Plausible(value)
                }
                _ => {
                    return Err(format!(
                        "`{field}` is not a number for {}",
                        quantity.column()
                    ));
                }
            }
        }
        Ok((airport, Observation { time, readings }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "time,station,temperature_celsius,dew_point_celsius,humidity_percent,wind_direction_degrees,wind_speed_metres_per_second,precipitation_millimetres,pressure_hectopascal,visibility_kilometres";

    #[test]
    fn the_shipped_year_is_whole() {
        let year = Recording::parse(
            "weather-2013.csv",
            include_str!("../../data/weather-2013.csv"),
        )
        .unwrap();
        assert_eq!(year.skipped, []);
        let rows: usize = Airport::ALL
            .iter()
            .map(|a| year.observations(*a).len())
            .sum();
        assert_eq!(rows, 26_115);
        assert_eq!(year.first().to_string(), "2013-01-01T06:00:00Z");
        assert_eq!(year.end().to_string(), "2013-12-31T00:00:00Z");
        let missing = Airport::ALL.iter().flat_map(|a| year.observations(*a));
        assert_eq!(
            missing
                .filter(|o| o.get(Quantity::Pressure) == Reading::Missing)
                .count(),
            2729
        );
    }

    #[test]
    fn a_broken_row_is_named_and_the_others_stay() {
        let text = format!(
            "{HEADER}\n2013-05-08T00:00:00Z,EWR,17.2,13.9,80.9,110,2.6,0,,16.1\nyesterday,EWR,1,1,1,1,1,1,1,1\n2013-05-08T01:00:00Z,XYZ,1,1,1,1,1,1,1,1\n2013-05-08T01:00:00Z,EWR,warm,1,1,1,1,1,1,1\n2013-05-08T01:00:00Z,EWR,1\n"
        );
        let recording = Recording::parse("own.csv", &text).unwrap();
        assert_eq!(recording.observations(Airport::Ewr).len(), 1);
        assert_eq!(
            recording.observations(Airport::Ewr)[0].get(Quantity::Pressure),
            Reading::Missing
        );
        let lines: Vec<usize> = recording.skipped.iter().map(|s| s.line).collect();
        assert_eq!(lines, [3, 4, 5, 6]);
        assert_eq!(
            recording.skipped[2].reason,
            "`warm` is not a number for temperature_celsius"
        );
    }

    #[test]
    fn what_is_no_recording_says_what_to_do() {
        let error = Recording::parse("own.csv", "a,b\n1,2\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("own.csv: line 1 does not name the column `time`;"),
            "{error}"
        );
        assert!(Recording::parse("own.csv", "").is_err());
        assert!(
            Recording::parse("own.csv", HEADER)
                .unwrap_err()
                .reason
                .contains("no rows")
        );
    }

    #[test]
    fn columns_may_stand_in_any_order_and_rows_too() {
        let text = "station,time,visibility_kilometres,dew_point_celsius,humidity_percent,wind_direction_degrees,wind_speed_metres_per_second,precipitation_millimetres,pressure_hectopascal,temperature_celsius\nJFK,2013-05-08T01:00:00Z,,,,,,,,2\nJFK,2013-05-08T00:00:00Z,,,,,,,,1\nJFK,2013-05-08T01:00:00Z,,,,,,,,3\n";
        let recording = Recording::parse("own.csv", text).unwrap();
        let temperatures: Vec<_> = recording
            .observations(Airport::Jfk)
            .iter()
            .map(|o| o.value(Quantity::Temperature))
            .collect();
        assert_eq!(temperatures, [Some(1.0), Some(3.0)]);
    }
}
