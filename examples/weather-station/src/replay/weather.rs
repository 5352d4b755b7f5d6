//! What follows from an observation: how warm it feels, what the sky does,
//! where the sun stands.

use super::{Airport, Observation, Quantity};
use crate::time::{DAY, Time};

/// How warm the air feels, in degrees Celsius: the wind chill of the North
/// American weather services where it is cold and windy, Steadman's heat index
/// in Rothfusz's regression where it is hot and humid, else the temperature.
/// `None` if a reading that it needs is missing or not to be believed.
#[must_use]
pub fn feels_like(observation: &Observation) -> Option<f64> {
    let t = observation.value(Quantity::Temperature)?;
    if t <= 10.0 {
        let kmh = observation.value(Quantity::WindSpeed)? * 3.6;
        if kmh <= 4.8 {
            return Some(t);
        }
        let v = kmh.powf(0.16);
        return Some(13.12 + 0.6215 * t - 11.37 * v + 0.3965 * t * v);
    }
    if t >= 27.0 {
        let r = observation.value(Quantity::Humidity)?;
        if r >= 40.0 {
            let f = t * 1.8 + 32.0;
            let index = -42.379 + 2.049_015_23 * f + 10.143_331_27 * r
                - 0.224_755_41 * f * r
                - 6.837_83e-3 * f * f
                - 5.481_717e-2 * r * r
                + 1.228_74e-3 * f * f * r
                + 8.5282e-4 * f * r * r
                - 1.99e-6 * f * f * r * r;
            return Some((index - 32.0) / 1.8);
        }
    }
    Some(t)
}

/// The weather in one word. The recording says nothing of clouds, so neither
/// does this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No precipitation, good visibility.
    Dry,
    /// Visibility below five kilometres.
    Mist,
    /// Visibility below one kilometre.
    Fog,
    /// Precipitation above freezing.
    Rain,
    /// More than four millimetres in the hour.
    HeavyRain,
    /// Precipitation around freezing.
    Snow,
}

/// The condition that an observation tells of; `None` if precipitation or
/// visibility was not reported.
#[must_use]
pub fn condition(observation: &Observation) -> Option<Condition> {
    let rain = observation.value(Quantity::Precipitation)?;
    let sight = observation.value(Quantity::Visibility)?;
    Some(if rain > 0.0 {
        match observation.value(Quantity::Temperature) {
            Some(t) if t <= 1.0 => Condition::Snow,
            _ if rain > 4.0 => Condition::HeavyRain,
            _ => Condition::Rain,
        }
    } else if sight < 1.0 {
        Condition::Fog
    } else if sight < 5.0 {
        Condition::Mist
    } else {
        Condition::Dry
    })
}

/// The part of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The sun is more than six degrees below the horizon.
    Night,
    /// The sun is within six degrees of the horizon, and it is morning.
    Dawn,
    /// The sun is up.
    Day,
    /// The sun is within six degrees of the horizon, and it is evening.
    Dusk,
}

/// The part of the day at an airport.
#[must_use]
pub fn phase(airport: Airport, time: Time) -> Phase {
    let (elevation, afternoon) = sun(airport, time);
    match elevation {
        e if e < -6.0 => Phase::Night,
        e if e > 6.0 => Phase::Day,
        _ if afternoon => Phase::Dusk,
        _ => Phase::Dawn,
    }
}

/// The sun's elevation in degrees and whether it has passed its height, good
/// to about half a degree: declination by the day of the year, the equation
/// of time left out.
fn sun(airport: Airport, time: Time) -> (f64, bool) {
    let (latitude, longitude) = airport.position();
    let year = Time::from_civil(time.civil().year, 1, 1, 0, 0, 0).unwrap_or_default();
    let day = (time.0 - year.0) as f64 / DAY as f64;
    let declination =
        (-23.44f64).to_radians() * ((day + 10.0) / 365.25 * std::f64::consts::TAU).cos();
    let hour = time.0.rem_euclid(DAY) as f64 / 3600.0 + longitude / 15.0;
    let angle = ((hour - 12.0).rem_euclid(24.0) + 12.0).rem_euclid(24.0) - 12.0;
    let angle = (angle * 15.0).to_radians();
    let latitude = latitude.to_radians();
    let height =
        latitude.sin() * declination.sin() + latitude.cos() * declination.cos() * angle.cos();
    (height.asin().to_degrees(), angle > 0.0)
}

/// The index of the compass point, 0 for north to 15 for north-north-west,
/// that a direction in degrees belongs to.
#[must_use]
pub fn compass_point(degrees: f64) -> usize {
    ((degrees / 22.5).round() as i64).rem_euclid(16) as usize
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use super::*;

    fn observation(values: &[(Quantity, f64)]) -> Observation {
        let mut readings = [Reading::Missing; 8];
        for (quantity, value) in values {
            readings[*quantity as usize] = Reading::Plausible(*value);
        }
        Observation {
            time: Time(0),
            readings,
        }
    }

    #[test]
    fn chill_heat_and_the_mild_between() {
        use Quantity::{Humidity, Temperature, WindSpeed};
        // From the tables of the Canadian and the US weather services.
        let chill = feels_like(&observation(&[
            (Temperature, -10.0),
            (WindSpeed, 30.0 / 3.6),
        ]))
        .unwrap();
        assert_eq!(chill.round(), -20.0);
        let heat = feels_like(&observation(&[(Temperature, 32.22), (Humidity, 70.0)])).unwrap();
        assert_eq!((heat * 1.8 + 32.0).round(), 106.0);
        assert_eq!(feels_like(&observation(&[(Temperature, 18.0)])), Some(18.0));
        assert_eq!(feels_like(&observation(&[(Temperature, 2.0)])), None);
    }

    #[test]
    fn conditions_follow_the_readings() {
        use Quantity::{Precipitation, Temperature, Visibility};
        let of = |rain, sight, t| {
            condition(&observation(&[
                (Precipitation, rain),
                (Visibility, sight),
                (Temperature, t),
            ]))
        };
        assert_eq!(of(0.0, 16.0, 20.0), Some(Condition::Dry));
        assert_eq!(of(0.0, 0.4, 20.0), Some(Condition::Fog));
        assert_eq!(of(0.0, 3.0, 20.0), Some(Condition::Mist));
        assert_eq!(of(0.3, 3.0, 20.0), Some(Condition::Rain));
        assert_eq!(of(9.0, 3.0, 20.0), Some(Condition::HeavyRain));
        assert_eq!(of(0.3, 3.0, -2.0), Some(Condition::Snow));
        assert_eq!(condition(&observation(&[])), None);
    }

    #[test]
    fn the_sun_rises_and_sets() {
        let phase = |text: &str| phase(Airport::Jfk, Time::parse(text).unwrap());
        // Sunrise on 8 May 2013 was at 05:43, sunset at 19:59 summer time.
        assert_eq!(phase("2013-05-08T09:43"), Phase::Dawn);
        assert_eq!(phase("2013-05-08T16:00"), Phase::Day);
        assert_eq!(phase("2013-05-08T23:59"), Phase::Dusk);
        assert_eq!(phase("2013-05-08T05:00"), Phase::Night);
        assert_eq!(phase("2013-12-21T22:00"), Phase::Dusk);
    }

    #[test]
    fn compass_points_wrap() {
        assert_eq!(
            [0.0, 360.0, 349.0, 11.0, 90.0, 225.0].map(compass_point),
            [0, 0, 0, 0, 4, 10]
        );
    }
}
