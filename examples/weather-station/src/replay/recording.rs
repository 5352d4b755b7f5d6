//! The recording: a source of what three airports reported, and all of it.
//!
//! Nothing is lost on the way: a row that cannot be read is told with its line,
//! an empty field stays a missing reading, and a reading that cannot be is kept
//! beside the rule it breaks.

use super::plausible;
use crate::time::{HOUR, Time};
use milieu::stream::Status;
use milieu::stream::drive::Stepped;
use milieu::transfer::{Name, Origin, Stream};
use milieu_adapters::replay::{self, Column, Pace, Replay};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An airport with a weather station in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
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

/// What a station reported for an hour: a row of the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// When, in the recording.
    pub time: milieu::transfer::Time,
    /// Which station.
    pub station: Airport,
    /// Degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Degrees Celsius.
    pub dew_point_celsius: Option<f64>,
    /// Percent.
    pub humidity_percent: Option<f64>,
    /// Where the wind comes from; 0 with calm air, 360 is north.
    pub wind_direction_degrees: Option<f64>,
    /// Metres per second.
    pub wind_speed_metres_per_second: Option<f64>,
    /// Millimetres in the hour.
    pub precipitation_millimetres: Option<f64>,
    /// Hectopascal at sea level.
    pub pressure_hectopascal: Option<f64>,
    /// Kilometres.
    pub visibility_kilometres: Option<f64>,
}

impl From<&Report> for Observation {
    fn from(report: &Report) -> Observation {
        let readings = [
            report.temperature_celsius,
            report.dew_point_celsius,
            report.humidity_percent,
            report.wind_direction_degrees,
            report.wind_speed_metres_per_second,
            report.precipitation_millimetres,
            report.pressure_hectopascal,
            report.visibility_kilometres,
        ];
        Observation {
            time: report.time.into(),
            readings: readings.map(|value| value.map_or(Reading::Missing, Reading::Plausible)),
        }
    }
}

/// A recording as a source: a file, or without a path the year that the program
/// carries.
#[must_use]
pub fn csv(path: &Path) -> Replay {
    let year = include_bytes!("../../data/weather-2013.csv");
    match path.as_os_str().is_empty() {
        true => columns(replay::csv("data/weather-2013.csv").content(year.as_slice())),
        false => columns(replay::csv(path)),
    }
}

fn columns(csv: Replay) -> Replay {
    let number = |csv: Replay, quantity: Quantity| csv.column(quantity.column(), Column::Number);
    let csv = csv.column("station", Column::Text);
    Quantity::ALL
        .into_iter()
        .fold(csv, number)
        .typed::<Report>()
}

/// Everything that was recorded. Pages look back into it, and not into what the
/// stream has said: a page after a jump has a week at once, a spike is known by
/// the reading after it, and where the recording ends only the whole says.
#[derive(Clone, Debug)]
pub struct Recording {
    stations: [Vec<Observation>; 3],
    /// What is to be said of rows that could not be read.
    pub skipped: Option<String>,
    first: Time,
    last: Time,
}

impl Recording {
    /// Reads a recording as a whole.
    ///
    /// # Errors
    /// If it has no row that can be read: why, and what to do.
    pub fn read(recording: Replay) -> Result<Recording, String> {
        let mut rows = Stepped::new(milieu::transfer::Time::from_seconds(0));
        let stream = Stream {
            name: Name::root(),
            origin: Origin("recording".into()),
            incarnation: 1,
        };
        let id = rows.add(stream, recording.pace(Pace::Immediate));
        let mut stations: [Vec<Observation>; 3] = Default::default();
        rows.run(rows.now(), |_, events, _| {
            for report in events.iter().filter_map(|event| event.get::<Report>()) {
                stations[report.station as usize].push(report.into());
            }
        });
        let skipped = match rows.status(id) {
            Some(Status::Failing(why)) => Some(why.to_string()),
            _ => None,
        };
        for observations in &mut stations {
            // A stable sort: of two rows for one hour the later one counts.
            observations.sort_by_key(|o| o.time);
            observations.reverse();
            observations.dedup_by_key(|o| o.time);
            observations.reverse();
            plausible::check(observations);
        }
        let times = || stations.iter().flatten().map(|o| o.time);
        match (times().min(), times().max()) {
            (Some(first), Some(last)) => Ok(Recording {
                stations,
                skipped,
                first,
                last,
            }),
            _ => Err(skipped.unwrap_or_else(|| "the recording has no rows".to_owned())),
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "time,station,temperature_celsius,dew_point_celsius,humidity_percent,wind_direction_degrees,wind_speed_metres_per_second,precipitation_millimetres,pressure_hectopascal,visibility_kilometres";

    fn own(text: &str) -> Result<Recording, String> {
        Recording::read(columns(replay::csv("own.csv").content(text.as_bytes())))
    }

    #[test]
    fn the_shipped_year_is_whole() {
        let year = Recording::read(csv(Path::new(""))).unwrap();
        assert_eq!(year.skipped, None);
        let all = || Airport::ALL.iter().flat_map(|a| year.observations(*a));
        assert_eq!(all().count(), 26_115);
        assert_eq!(year.first().to_string(), "2013-01-01T06:00:00Z");
        assert_eq!(year.end().to_string(), "2013-12-31T00:00:00Z");
        let missing = all().filter(|o| o.get(Quantity::Pressure) == Reading::Missing);
        assert_eq!(missing.count(), 2729);
    }

    #[test]
    fn broken_rows_are_named_and_the_others_stay() {
        let text = format!(
            "{HEADER}\n2013-05-08T00:00:00Z,EWR,17.2,13.9,80.9,110,2.6,0,,16.1\nyesterday,EWR,1,1,1,1,1,1,1,1\n2013-05-08T01:00:00Z,XYZ,1,1,1,1,1,1,1,1\n2013-05-08T01:00:00Z,EWR,1\n2013-05-08T01:00:00Z,EWR,warm,1,1,1,1,1,1,1\n"
        );
        let recording = own(&text).unwrap();
        let observations = recording.observations(Airport::Ewr);
        assert_eq!(observations.len(), 1);
        assert_eq!(observations[0].get(Quantity::Pressure), Reading::Missing);
        let skipped = recording.skipped.unwrap();
        let expected = "own.csv: 4 of 5 rows could not be replayed; the last: line 6: \
                        `temperature_celsius`: `warm` is not a number";
        assert_eq!(skipped, expected);
    }

    #[test]
    fn what_is_no_recording_says_what_to_do() {
        let error = own("a,b\n1,2\n").unwrap_err();
        assert!(error.starts_with("own.csv: it has no column `"), "{error}");
        assert!(own("").is_err());
        assert!(own(HEADER).unwrap_err().contains("no rows"));
        let error = Recording::read(csv(Path::new("/nowhere.csv"))).unwrap_err();
        assert!(error.starts_with("/nowhere.csv: "), "{error}");
    }

    #[test]
    fn columns_may_stand_in_any_order_and_rows_too() {
        let text = "station,time,visibility_kilometres,dew_point_celsius,humidity_percent,wind_direction_degrees,wind_speed_metres_per_second,precipitation_millimetres,pressure_hectopascal,temperature_celsius\nJFK,2013-05-08T01:00:00Z,,,,,,,,2\nJFK,2013-05-08T00:00:00Z,,,,,,,,1\nJFK,2013-05-08T01:00:00Z,,,,,,,,3\n";
        let recording = own(text).unwrap();
        let temperatures: Vec<_> = recording
            .observations(Airport::Jfk)
            .iter()
            .map(|o| o.value(Quantity::Temperature))
            .collect();
        assert_eq!(temperatures, [Some(1.0), Some(3.0)]);
    }
}
