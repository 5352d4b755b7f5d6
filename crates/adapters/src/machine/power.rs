//! Power supplies: batteries and mains.

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::{First, Sampler};
use crate::failure::Failure;
use std::time::Duration;

const FOLDER: &str = "sys/class/power_supply";

/// Drivers ask a controller at each reading, which takes some of them a while.
const INTERVAL: Duration = Duration::from_secs(15);

/// The state of a battery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Battery {
    /// `BAT0`, for instance.
    pub supply: String,
    /// Whether the machine runs on it; if not, it is one of a device such as a
    /// mouse.
    pub powers_machine: bool,
    /// How full it is.
    pub level_percent: f64,
    /// What it does.
    pub charge: Charge,
    /// What it gives or takes now, if it says; always positive.
    pub power_watts: Option<f64>,
    /// Its voltage now, if it says.
    pub voltage_volts: Option<f64>,
}

/// What a battery does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// It fills.
    Charging,
    /// It empties.
    Discharging,
    /// It is full.
    Full,
    /// It is connected, and neither fills nor empties.
    NotCharging,
    /// It does not say.
    Unknown,
}

/// Whether a mains adapter or USB port gives power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mains {
    /// `AC`, for instance.
    pub supply: String,
    /// Whether it gives power.
    pub is_online: bool,
}

/// Batteries, as one [`Battery`] each, from `/sys/class/power_supply`.
#[must_use]
pub fn battery() -> Sampler {
    Sampler::new(INTERVAL, |files, feed| {
        let mut failures = First::default();
        let supplies = supplies(files, &["Battery"], "there is no battery here")?;
        for supply in supplies {
            if let Some(Some(battery)) = failures.good(read(files, supply)) {
                feed.publish(feed.now(), battery);
            }
        }
        failures.result()
    })
}

/// Mains adapters and USB ports that give power, as one [`Mains`] each, from
/// `/sys/class/power_supply`.
#[must_use]
pub fn mains() -> Sampler {
    Sampler::new(INTERVAL, |files, feed| {
        let mut failures = First::default();
        let supplies = supplies(files, &["Mains", "USB"], "there is no adapter here")?;
        for supply in supplies {
            let online = files.integer(&format!("{FOLDER}/{supply}/online"));
            if let Some(Some(online)) = failures.good(online) {
                let is_online = online != 0;
                feed.publish(feed.now(), Mains { supply, is_online });
            }
        }
        failures.result()
    })
}

/// The supplies of these types.
fn supplies(files: &Files, types: &[&str], otherwise: &str) -> Result<Vec<String>, Failure> {
    let mut supplies = files.folder(FOLDER, "")?;
    supplies.retain(|supply| {
        let of = files.word(&format!("{FOLDER}/{supply}/type"));
        of.is_some_and(|of| types.contains(&of.as_str()))
    });
    if supplies.is_empty() {
        let reason = format!("{otherwise}, or its driver is not loaded");
        return Err(files.failure(FOLDER, reason));
    }
    Ok(supplies)
}

/// Nothing: the slot is empty.
fn read(files: &Files, supply: String) -> Result<Option<Battery>, Failure> {
    let file = |name: &str| format!("{FOLDER}/{supply}/{name}");
    let number = |name: &str| files.integer(&file(name));
    // The kernel gives micro-units, and a sign that drivers do not agree on.
    let micro = |name: &str| {
        let number = files.integer(&file(name)).ok().flatten();
        number.map(|number| number.unsigned_abs() as f64 / 1e6)
    };
    if number("present")? == Some(0) {
        return Ok(None);
    }
    let share = |now: &str, full: &str| {
        let (now, full) = (micro(now)?, micro(full)?);
        (full > 0.0).then(|| (now / full * 100.0).min(100.0))
    };
    let level = match number("capacity")? {
        Some(level) => Some(level as f64),
        None => share("energy_now", "energy_full").or_else(|| share("charge_now", "charge_full")),
    };
    let Some(level_percent) = level else {
        let reason = "the battery does not say how full it is";
        return Err(files.failure(&file("capacity"), reason));
    };
    if !(0.0..=100.0).contains(&level_percent) {
        let reason = format!("{level_percent} is not a percentage");
        return Err(files.failure(&file("capacity"), reason));
    }
    let voltage_volts = micro("voltage_now");
    let from_current = || Some(micro("current_now")? * voltage_volts?);
    let charge = match files.word(&file("status")).as_deref() {
        Some("Charging") => Charge::Charging,
        Some("Discharging") => Charge::Discharging,
        Some("Full") => Charge::Full,
        Some("Not charging") => Charge::NotCharging,
        _ => Charge::Unknown,
    };
    Ok(Some(Battery {
        powers_machine: files.word(&file("scope")).as_deref() != Some("Device"),
        level_percent,
        charge,
        power_watts: micro("power_now").or_else(from_current),
        voltage_volts,
        supply,
    }))
}
