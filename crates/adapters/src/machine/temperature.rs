//! Thermal zones and hardware monitors.

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::{First, OFTEN, Sampler};
use crate::failure::Failure;

/// The temperature of a thermal zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thermal {
    /// `thermal_zone0`, for instance.
    pub zone: String,
    /// What it is the temperature of: `x86_pkg_temp`.
    pub label: String,
    /// In degrees Celsius.
    pub temperature_celsius: f64,
}

/// What a channel of a hardware monitor measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensor {
    /// The monitor: `coretemp`.
    pub chip: String,
    /// Its channel: `temp1`.
    pub channel: String,
    /// What the channel is connected to, or the channel again.
    pub label: String,
    /// What is measured, and in which unit.
    pub quantity: Quantity,
    /// How much, in the unit of the quantity.
    pub value: f64,
}

/// What is measured, and in which unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Temperature in degrees Celsius.
    TemperatureCelsius,
    /// Speed of a fan in turns in a minute.
    FanTurnsPerMinute,
    /// Voltage in volts.
    VoltageVolts,
    /// Current in amperes.
    CurrentAmperes,
    /// Power in watts.
    PowerWatts,
    /// Relative humidity in percent.
    HumidityPercent,
}

/// Temperatures, as one [`Thermal`] for each zone, from `/sys/class/thermal`.
#[must_use]
pub fn thermal() -> Sampler {
    const FOLDER: &str = "sys/class/thermal";
    Sampler::new(OFTEN, |files, feed| {
        let mut failures = First::default();
        let zones = files.folder(FOLDER, "thermal_zone")?;
        if zones.is_empty() {
            let reason = "there are no thermal zones; load the driver of the processor's sensor";
            return Err(files.failure(FOLDER, reason));
        }
        for zone in zones {
            let file = format!("{FOLDER}/{zone}/temp");
            let measured = measured(files, &file, Quantity::TemperatureCelsius);
            if let Some(Some(temperature_celsius)) = failures.good(measured) {
                let label = files.word(&format!("{FOLDER}/{zone}/type"));
                feed.publish(
                    feed.now(),
                    Thermal {
                        label: label.unwrap_or_else(|| zone.clone()),
                        zone,
                        temperature_celsius,
                    },
                );
            }
        }
        failures.result()
    })
}

/// What hardware monitors measure, as one [`Sensor`] for each channel, from
/// `/sys/class/hwmon`.
#[must_use]
pub fn hwmon() -> Sampler {
    const FOLDER: &str = "sys/class/hwmon";
    Sampler::new(OFTEN, |files, feed| {
        let mut failures = First::default();
        let monitors = files.folder(FOLDER, "hwmon")?;
        if monitors.is_empty() {
            let reason = "there are no hardware monitors; load their drivers \
                          (`sensors-detect` of lm-sensors finds them)";
            return Err(files.failure(FOLDER, reason));
        }
        for monitor in monitors {
            let path = format!("{FOLDER}/{monitor}");
            let chip = files.word(&format!("{path}/name")).unwrap_or(monitor);
            let inputs = files.folder(&path, "");
            for input in failures.good(inputs).unwrap_or_default() {
                let Some((channel, quantity)) = channel(&input) else {
                    continue;
                };
                let measured = measured(files, &format!("{path}/{input}"), quantity);
                let Some(Some(value)) = failures.good(measured) else {
                    continue;
                };
                let label = files.word(&format!("{path}/{channel}_label"));
                let sensor = Sensor {
                    chip: chip.clone(),
                    channel: channel.to_owned(),
                    label: label.unwrap_or_else(|| channel.to_owned()),
                    quantity,
                    value,
                };
                feed.publish(feed.now(), sensor);
            }
        }
        failures.result()
    })
}

/// The channel whose value is in this file, and what it measures.
fn channel(file: &str) -> Option<(&str, Quantity)> {
    let channel = file.strip_suffix("_input")?;
    let letters = channel.trim_end_matches(|c: char| c.is_ascii_digit());
    let quantity = match letters {
        "temp" => Quantity::TemperatureCelsius,
        "fan" => Quantity::FanTurnsPerMinute,
        "in" => Quantity::VoltageVolts,
        "curr" => Quantity::CurrentAmperes,
        "power" => Quantity::PowerWatts,
        "humidity" => Quantity::HumidityPercent,
        _ => return None,
    };
    Some((channel, quantity))
}

/// A raw whole number in the unit of its quantity.
fn measured(files: &Files, file: &str, quantity: Quantity) -> Result<Option<f64>, Failure> {
    let Some(raw) = files.integer(file)? else {
        return Ok(None);
    };
    let divisor = match quantity {
        Quantity::FanTurnsPerMinute => 1.0,
        Quantity::PowerWatts => 1e6,
        _ => 1e3,
    };
    let value = raw as f64 / divisor;
    // Drivers of sensors that are not connected report what cannot be.
    let is_possible = match quantity {
        Quantity::TemperatureCelsius => (-60.0..=200.0).contains(&value),
        Quantity::HumidityPercent => (0.0..=100.0).contains(&value),
        Quantity::FanTurnsPerMinute => value >= 0.0,
        _ => true,
    };
    if is_possible {
        Ok(Some(value))
    } else {
        let reason = format!("{value} cannot be; the sensor is probably not connected");
        Err(files.failure(file, reason))
    }
}
