//! What a receiver's sentences say together.

use milieu_transfer::{Span, Time};
use serde::{Deserialize, Serialize};

use super::sentence::Sentence;

const METRES_PER_SECOND_PER_KNOT: f64 = 1852.0 / 3600.0;

/// Where a receiver is, and how it moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// North is positive.
    pub latitude_degrees: f64,
    /// East is positive.
    pub longitude_degrees: f64,
    /// Above mean sea level.
    pub altitude_metres: Option<f64>,
    /// Over ground.
    pub speed_metres_per_second: Option<f64>,
    /// Over ground, clockwise from true north.
    pub course_degrees: Option<f64>,
    /// How it is known.
    pub fix: Fix,
    /// From how many satellites.
    pub satellites: Option<u32>,
    /// By how much the satellites' places make it less exact horizontally.
    pub horizontal_dilution: Option<f64>,
    /// The receiver's time, which is that of the satellites.
    pub time: Option<Time>,
}

/// How a position is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// From satellites.
    Satellites,
    /// From satellites and a correction.
    Differential,
    /// From the carriers of satellites and a correction.
    RealTimeKinematic,
    /// Likewise, not yet exact.
    RealTimeKinematicFloat,
    /// By dead reckoning.
    Estimated,
    /// Somebody has put it in.
    Manual,
    /// It is made up.
    Simulated,
}

/// Puts the sentences of a receiver together.
#[derive(Debug, Default)]
pub struct Receiver {
    moment: Option<Moment>,
    /// The kind of sentence that was the last of the moment before.
    last_kind: String,
    /// The last date, and the time of its day at which it was said.
    date: Option<(Time, i64)>,
    has_fix: Option<bool>,
}

/// What sentences with one time of day have said.
#[derive(Debug, Default)]
struct Moment {
    of_day: i64,
    kind: String,
    is_told: bool,
    place: Option<(f64, f64)>,
    altitude_metres: Option<f64>,
    speed_metres_per_second: Option<f64>,
    course_degrees: Option<f64>,
    fix: Option<Fix>,
    satellites: Option<u32>,
    horizontal_dilution: Option<f64>,
    date: Option<Time>,
}

impl Receiver {
    /// Whether the receiver knew where it is when it last said so; nothing if it
    /// has not said anything about that.
    #[must_use]
    pub fn has_fix(&self) -> Option<bool> {
        self.has_fix
    }

    /// Takes a line, and tells of each position that is known by it: mostly
    /// none or one, and two where the receiver has changed its ways.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn sentence(&mut self, line: &str, mut told: impl FnMut(Position)) -> Result<(), String> {
        let sentence = Sentence::parse(line)?;
        // The fields of each kind: time of day, latitude.
        let (time, place) = match sentence.kind {
            "RMC" => (0, 2),
            "GGA" | "GNS" => (0, 1),
            "GLL" => (4, 0),
            _ => return Ok(()),
        };
        let Some(of_day) = sentence.time_of_day(time)? else {
            self.has_fix = Some(false);
            return Ok(());
        };
        let latitude = sentence.degrees(place, 90.0)?;
        let longitude = sentence.degrees(place + 2, 180.0)?;
        let said = said(&sentence)?;
        if self
            .moment
            .as_ref()
            .is_none_or(|moment| moment.of_day != of_day)
        {
            if let Some(ended) = self.moment.take() {
                self.last_kind.clone_from(&ended.kind);
                self.tell(&ended, &mut told);
            }
        }
        let mut moment = self.moment.take().unwrap_or_default();
        moment.of_day = of_day;
        sentence.kind.clone_into(&mut moment.kind);
        self.has_fix = Some(said.fix.is_some());
        if said.fix.is_some() {
            moment.place = latitude.zip(longitude).or(moment.place);
        }
        moment.add(said);
        if let Some(date) = moment.date {
            self.date = Some((date, of_day));
        }
        if moment.kind == self.last_kind {
            self.tell(&moment, &mut told);
            moment.is_told = true;
        }
        self.moment = Some(moment);
        Ok(())
    }

    /// Tells of the position of the last moment, when no more lines come.
    pub fn finish(&mut self, mut told: impl FnMut(Position)) {
        if let Some(moment) = self.moment.take() {
            self.tell(&moment, &mut told);
        }
    }

    fn tell(&self, moment: &Moment, told: &mut impl FnMut(Position)) {
        let (false, Some((latitude_degrees, longitude_degrees)), Some(fix)) =
            (moment.is_told, moment.place, moment.fix)
        else {
            return;
        };
        told(Position {
            latitude_degrees,
            longitude_degrees,
            altitude_metres: moment.altitude_metres,
            speed_metres_per_second: moment.speed_metres_per_second,
            course_degrees: moment.course_degrees,
            fix,
            satellites: moment.satellites,
            horizontal_dilution: moment.horizontal_dilution,
            time: self.time(moment),
        });
    }

    /// The date is that of the moment, or of one earlier on the same day.
    fn time(&self, moment: &Moment) -> Option<Time> {
        let known = self.date.filter(|(_, at)| *at <= moment.of_day);
        let date = moment.date.or(known.map(|(date, _)| date))?;
        Some(date + Span::from_nanoseconds(moment.of_day))
    }
}

/// What a sentence says besides time of day and place.
fn said(sentence: &Sentence<'_>) -> Result<Moment, String> {
    let mut said = Moment::default();
    let letter = |index: usize| sentence.text(index);
    match sentence.kind {
        "RMC" => {
            let valid = letter(1) == "A";
            let fix = of_letters(letter(11), Fix::Satellites);
            said.fix = fix.filter(|_| valid);
            let knots = sentence.number(6)?;
            said.speed_metres_per_second = knots.map(|knots| knots * METRES_PER_SECOND_PER_KNOT);
            said.course_degrees = sentence.number(7)?;
            said.date = sentence.date(8)?.and_then(|[year, month, day]| {
                format!("{year:04}-{month:02}-{day:02}T00:00:00Z")
                    .parse()
                    .ok()
            });
        }
        "GLL" => {
            let valid = letter(5) == "A";
            said.fix = of_letters(letter(6), Fix::Satellites).filter(|_| valid);
        }
        kind => {
            said.fix = match kind {
                "GNS" => of_letters(letter(5), Fix::Satellites).filter(|_| !letter(5).is_empty()),
                _ => of_digit(letter(5)),
            };
            let satellites = sentence.number(6)?;
            said.satellites = satellites.map(|number| number as u32);
            said.horizontal_dilution = sentence.number(7)?;
            said.altitude_metres = sentence.number(8)?;
        }
    }
    Ok(said)
}

/// The fix that the best of these letters means; early receivers write none.
fn of_letters(letters: &str, otherwise: Fix) -> Option<Fix> {
    if letters.is_empty() {
        return Some(otherwise);
    }
    let best = [
        ('R', Fix::RealTimeKinematic),
        ('F', Fix::RealTimeKinematicFloat),
        ('D', Fix::Differential),
        ('P', Fix::Satellites),
        ('A', Fix::Satellites),
        ('E', Fix::Estimated),
        ('M', Fix::Manual),
        ('S', Fix::Simulated),
    ];
    let best = best.iter().find(|(letter, _)| letters.contains(*letter));
    best.map(|(_, fix)| *fix)
}

fn of_digit(digit: &str) -> Option<Fix> {
    match digit {
        "1" | "3" => Some(Fix::Satellites),
        "2" => Some(Fix::Differential),
        "4" => Some(Fix::RealTimeKinematic),
        "5" => Some(Fix::RealTimeKinematicFloat),
        "6" => Some(Fix::Estimated),
        "7" => Some(Fix::Manual),
        "8" => Some(Fix::Simulated),
        _ => None,
    }
}

impl Moment {
    fn add(&mut self, said: Moment) {
        self.altitude_metres = said.altitude_metres.or(self.altitude_metres);
        let speed = said.speed_metres_per_second;
        self.speed_metres_per_second = speed.or(self.speed_metres_per_second);
        self.course_degrees = said.course_degrees.or(self.course_degrees);
        self.fix = said.fix.or(self.fix);
        self.satellites = said.satellites.or(self.satellites);
        self.horizontal_dilution = said.horizontal_dilution.or(self.horizontal_dilution);
        self.date = said.date.or(self.date);
    }
}
