//! Pressure-stall information: how long threads had to wait.

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::{First, OFTEN, Sampler};
use crate::failure::Failure;

/// What threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Processors.
    Cpu,
    /// Disks.
    Io,
    /// Main memory.
    Memory,
}

/// How long threads had to wait for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// The resource.
    pub resource: Resource,
    /// At least one thread waited.
    pub some: Stall,
    /// No thread could go on because all waited, if the kernel says.
    pub full: Option<Stall>,
}

/// The share of time in which threads waited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Of the last ten seconds.
    pub ten_seconds_percent: f64,
    /// Of the last minute.
    pub one_minute_percent: f64,
    /// Of the last five minutes.
    pub five_minutes_percent: f64,
    /// Altogether since the machine started.
    pub total_seconds: f64,
}

/// What threads wait for, as one [`Pressure`] for each resource, from
/// `/proc/pressure`.
#[must_use]
pub fn pressure() -> Sampler {
    Sampler::new(OFTEN, |files, feed| {
        let resources = [
            (Resource::Cpu, "proc/pressure/cpu"),
            (Resource::Io, "proc/pressure/io"),
            (Resource::Memory, "proc/pressure/memory"),
        ];
        let mut failures = First::default();
        for (resource, file) in resources {
            if let Some(pressure) = failures.good(read(files, resource, file)) {
                feed.publish(feed.now(), pressure);
            }
        }
        failures.result()
    })
}

fn read(files: &Files, resource: Resource, file: &str) -> Result<Pressure, Failure> {
    let remedy = "boot a kernel with CONFIG_PSI and, where it is off, with `psi=1`";
    let text = files.need(file, remedy)?;
    let stall = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| {
            stall(line).ok_or_else(|| {
                files.failure(
                    file,
                    format!("its line `{name}` is none of shares and a total"),
                )
            })
        })
    };
    let some = stall("some ")
        .unwrap_or_else(|| Err(files.failure(file, "it has no line that begins with `some`")))?;
    Ok(Pressure {
        resource,
        some,
        full: stall("full ").transpose()?,
    })
}

/// `avg10=0.04 avg60=0.39 avg300=0.23 total=5584267`, the total in microseconds.
fn stall(line: &str) -> Option<Stall> {
    let field = |name: &str| {
        let mut pairs = line.split_whitespace();
        let value: f64 = pairs
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?
            .parse()
            .ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    Some(Stall {
        ten_seconds_percent: field("avg10")?,
        one_minute_percent: field("avg60")?,
        five_minutes_percent: field("avg300")?,
        total_seconds: field("total")? / 1e6,
    })
}
