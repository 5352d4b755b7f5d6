//! What this machine's own sensors say: load, pressure-stall information,
//! memory, network, thermal zones, hardware monitors, batteries.
//!
//! Everything is read below a root folder that is handed in, so that a test
//! shows the station a machine it does not have. A sensor that is absent is
//! absent from the snapshot; one that is there and cannot be read, or says
//! what it cannot mean, is a reading with a [`Failure`], never a panic.

mod files;
mod proc;
mod sys;

use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a sensor that is there has no reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The file, below the root.
    pub file: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

/// What a sensor that is there says, or why it does not.
pub type Reading<T> = Result<T, Failure>;

/// The load averages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Runnable and waiting threads, mean of the last minute.
    pub one: f64,
    /// Mean of five minutes.
    pub five: f64,
    /// Mean of fifteen minutes.
    pub fifteen: f64,
    /// Processors that share it, if the machine says.
    pub processors: Option<u32>,
}

/// What threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Processors.
    Cpu,
    /// Disks.
    Io,
    /// Memory.
    Memory,
}

/// Pressure-stall information: the share of time, in percent, that some
/// thread stood waiting for the resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pressure {
    /// In the last ten seconds.
    pub ten_seconds: f64,
    /// In the last minute.
    pub minute: f64,
}

/// Main memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All there is.
    pub total: u64,
    /// What programs could get without swapping.
    pub available: u64,
}

/// Traffic of one network interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interface {
    /// `eth0`, for instance.
    pub name: String,
    /// Bytes received since it came up.
    pub received: u64,
    /// Bytes sent since it came up.
    pub sent: u64,
    /// Bytes received and sent in a second; `None` at the first look and when
    /// the counters started anew.
    pub rates: Option<(f64, f64)>,
}

/// What a hardware sensor measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Degrees Celsius.
    Temperature,
    /// Turns in a minute.
    Fan,
    /// Volts.
    Voltage,
    /// Amperes.
    Current,
    /// Watts.
    Power,
    /// Percent of relative humidity.
    Humidity,
}

/// A thermal zone or one channel of a hardware monitor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Channel {
    /// Its label, or the chip's name and the channel's.
    pub label: String,
    /// What it measures.
    pub kind: Kind,
    /// Its value in the unit of its kind.
    pub value: Reading<f64>,
}

/// A battery or a power adapter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Supply {
    /// `BAT0`, for instance.
    pub name: String,
    /// What it says of itself.
    pub state: Reading<SupplyState>,
}

/// The state of a power supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SupplyState {
    /// A battery.
    Battery {
        /// How full it is.
        percent: u32,
        /// What it does.
        status: BatteryStatus,
    },
    /// An adapter and whether it is plugged in.
    Adapter {
        /// Whether it gives power.
        online: bool,
    },
}

/// What a battery does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BatteryStatus {
    /// It fills.
    Charging,
    /// It empties.
    Discharging,
    /// It is full.
    Full,
    /// Anything else.
    Idle,
}

/// Everything the machine said at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// The load averages.
    pub load: Option<Reading<Load>>,
    /// Pressure-stall information of each resource that the kernel watches.
    pub pressure: Vec<(Resource, Reading<Pressure>)>,
    /// Main memory.
    pub memory: Option<Reading<Memory>>,
    /// Network interfaces other than the loopback.
    pub network: Option<Reading<Vec<Interface>>>,
    /// Thermal zones and hardware monitors.
    pub channels: Vec<Channel>,
    /// Batteries and power adapters.
    pub supplies: Vec<Supply>,
    /// The last values of each number worth a curve, oldest first, by a name
    /// such as `load` or `pressure cpu`.
    pub curves: BTreeMap<String, VecDeque<f64>>,
}

/// How many values a curve keeps.
pub const CURVE: usize = 60;

/// Reads the machine's sensors, again and again.
#[derive(Debug)]
pub struct Sampler {
    root: PathBuf,
    traffic: Option<(Duration, Vec<Interface>)>,
    curves: BTreeMap<String, VecDeque<f64>>,
}

impl Sampler {
    /// A sampler of the machine whose file system begins at `root`.
    #[must_use]
    pub fn new(root: impl AsRef<Path>) -> Sampler {
        Sampler {
            root: root.as_ref().to_owned(),
            traffic: None,
            curves: BTreeMap::new(),
        }
    }

    /// Reads everything. `now` is a monotonic time, for rates.
    pub fn sample(&mut self, now: Duration) -> Snapshot {
        let root = &self.root;
        let network =
            proc::network(root).map(|interfaces| interfaces.map(|i| self.with_rates(i, now)));
        let mut snapshot = Snapshot {
            load: proc::load(&self.root),
            pressure: proc::pressure(&self.root),
            memory: proc::memory(&self.root),
            network,
            channels: sys::thermal(&self.root),
            supplies: sys::supplies(&self.root),
            curves: BTreeMap::new(),
        };
        snapshot.channels.extend(sys::monitors(&self.root));
        self.remember(&snapshot);
        snapshot.curves.clone_from(&self.curves);
        snapshot
    }

    fn with_rates(&mut self, mut interfaces: Vec<Interface>, now: Duration) -> Vec<Interface> {
        if let Some((then, before)) = &self.traffic {
            let seconds = now.saturating_sub(*then).as_secs_f64();
            for interface in &mut interfaces {
                let Some(old) = before.iter().find(|i| i.name == interface.name) else {
                    continue;
                };
                let received = interface.received.checked_sub(old.received);
                let sent = interface.sent.checked_sub(old.sent);
                if let (Some(received), Some(sent), true) = (received, sent, seconds > 0.0) {
                    interface.rates = Some((received as f64 / seconds, sent as f64 / seconds));
                }
            }
        }
        self.traffic = Some((now, interfaces.clone()));
        interfaces
    }

    /// Appends the numbers worth a curve. A sensor that has gone takes its
    /// curve along; one that failed this time leaves its curve as it is.
    fn remember(&mut self, snapshot: &Snapshot) {
        let mut seen: Vec<(String, Option<f64>)> = Vec::new();
        if let Some(load) = &snapshot.load {
            seen.push(("load".to_owned(), load.as_ref().ok().map(|l| l.one)));
        }
        for (resource, pressure) in &snapshot.pressure {
            seen.push((
                resource.curve().to_owned(),
                pressure.as_ref().ok().map(|p| p.ten_seconds),
            ));
        }
        if let Some(memory) = &snapshot.memory {
            let used = memory
                .as_ref()
                .ok()
                .map(|m| m.total.saturating_sub(m.available) as f64);
            seen.push(("memory".to_owned(), used));
        }
        if let Some(Ok(interfaces)) = &snapshot.network {
            for interface in interfaces {
                let (received, sent) = interface.rates.unzip();
                seen.push((format!("received {}", interface.name), received));
                seen.push((format!("sent {}", interface.name), sent));
            }
        }
        for channel in &snapshot.channels {
            seen.push((
                format!("channel {}", channel.label),
                channel.value.as_ref().ok().copied(),
            ));
        }
        self.curves
            .retain(|name, _| seen.iter().any(|(n, _)| n == name));
        for (name, value) in seen {
            let curve = self.curves.entry(name).or_default();
            if let Some(value) = value {
                if curve.len() == CURVE {
                    curve.pop_front();
                }
                curve.push_back(value);
            }
        }
    }
}

impl Resource {
    /// The name of its curve.
    #[must_use]
    pub fn curve(self) -> &'static str {
        match self {
            Resource::Cpu => "pressure cpu",
            Resource::Io => "pressure io",
            Resource::Memory => "pressure memory",
        }
    }
}

#[cfg(test)]
mod tests;
