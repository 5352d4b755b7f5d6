//! Thermal zones, hardware monitors and power supplies from sysfs.

use super::files::{failure, folder, integer, read, shortened, word};
use super::{BatteryStatus, Channel, Kind, Reading, Supply, SupplyState};
use std::path::Path;

/// Temperatures that a machine can have; drivers of sensors that are not
/// connected report others.
const TEMPERATURE: std::ops::RangeInclusive<f64> = -60.0..=200.0;

/// The temperatures of `/sys/class/thermal/thermal_zone*`.
pub(super) fn thermal(root: &Path) -> Vec<Channel> {
    const FOLDER: &str = "sys/class/thermal";
    folder(root, FOLDER, "thermal_zone")
        .into_iter()
        .filter_map(|zone| {
            let value = scaled(root, &format!("{FOLDER}/{zone}/temp"), Kind::Temperature)?;
            let label = word(root, &format!("{FOLDER}/{zone}/type")).unwrap_or(zone);
            Some(Channel {
                label,
                kind: Kind::Temperature,
                value,
            })
        })
        .collect()
}

/// The channels of `/sys/class/hwmon/hwmon*`.
pub(super) fn monitors(root: &Path) -> Vec<Channel> {
    const FOLDER: &str = "sys/class/hwmon";
    let mut channels = Vec::new();
    for monitor in folder(root, FOLDER, "hwmon") {
        let path = format!("{FOLDER}/{monitor}");
        let chip = word(root, &format!("{path}/name")).unwrap_or(monitor);
        for (prefix, kind) in [
            ("temp", Kind::Temperature),
            ("fan", Kind::Fan),
            ("in", Kind::Voltage),
            ("curr", Kind::Current),
            ("power", Kind::Power),
            ("humidity", Kind::Humidity),
        ] {
            for input in folder(root, &path, prefix) {
                let Some(channel) = input.strip_suffix("_input") else {
                    continue;
                };
                let numbered = channel[prefix.len()..].bytes().all(|b| b.is_ascii_digit());
                if !numbered {
                    continue;
                }
                let Some(value) = scaled(root, &format!("{path}/{input}"), kind) else {
                    continue;
                };
                let label = word(root, &format!("{path}/{channel}_label"))
                    .unwrap_or_else(|| channel.to_owned());
                channels.push(Channel {
                    label: format!("{chip} {label}"),
                    kind,
                    value,
                });
            }
        }
    }
    channels
}

/// A raw integer in the unit of its kind.
fn scaled(root: &Path, file: &str, kind: Kind) -> Option<Reading<f64>> {
    let divisor = match kind {
        Kind::Fan => 1.0,
        Kind::Power => 1e6,
        Kind::Temperature | Kind::Voltage | Kind::Current | Kind::Humidity => 1e3,
    };
    integer(root, file).map(|raw| {
        let value = raw? as f64 / divisor;
        let believable = match kind {
            Kind::Temperature => TEMPERATURE.contains(&value),
            Kind::Humidity => (0.0..=100.0).contains(&value),
            Kind::Fan => value >= 0.0,
            Kind::Voltage | Kind::Current | Kind::Power => true,
        };
        if believable {
            Ok(value)
        } else {
            Err(failure(
                file,
                format!("{value} cannot be; the sensor is probably not connected"),
            ))
        }
    })
}

/// The supplies of `/sys/class/power_supply`.
pub(super) fn supplies(root: &Path) -> Vec<Supply> {
    const FOLDER: &str = "sys/class/power_supply";
    folder(root, FOLDER, "")
        .into_iter()
        .filter_map(|name| {
            let path = format!("{FOLDER}/{name}");
            let state = match word(root, &format!("{path}/type"))?.as_str() {
                "Battery" => battery(root, &path)?,
                "Mains" | "USB" => {
                    integer(root, &format!("{path}/online"))?.map(|online| SupplyState::Adapter {
                        online: online != 0,
                    })
                }
                _ => return None,
            };
            Some(Supply {
                name: shortened(&name).to_owned(),
                state,
            })
        })
        .collect()
}

/// `None` if the slot is empty.
fn battery(root: &Path, path: &str) -> Option<Reading<SupplyState>> {
    let file = format!("{path}/capacity");
    let percent = integer(root, &file)?;
    let status = match read(root, &format!("{path}/status")) {
        Some(Ok(text)) => match text.trim() {
            "Charging" => BatteryStatus::Charging,
            "Discharging" => BatteryStatus::Discharging,
            "Full" => BatteryStatus::Full,
            _ => BatteryStatus::Idle,
        },
        _ => BatteryStatus::Idle,
    };
    Some(percent.and_then(|percent| match u32::try_from(percent) {
        Ok(percent @ 0..=100) => Ok(SupplyState::Battery { percent, status }),
        _ => Err(failure(&file, format!("{percent} is not a percentage"))),
    }))
}
