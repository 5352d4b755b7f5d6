//! Load, pressure, memory and network from procfs.

use super::files::{failure, read, shortened};
use super::{Failure, Interface, Load, Memory, Pressure, Reading, Resource};
use std::path::Path;

/// The load averages from `/proc/loadavg`: `0.04 0.39 0.23 1/123 4567`.
pub(super) fn load(root: &Path) -> Option<Reading<Load>> {
    const FILE: &str = "proc/loadavg";
    read(root, FILE).map(|text| {
        let text = text?;
        let mut numbers = text.split_whitespace().map(|word| number(FILE, word));
        let mut next = || {
            numbers
                .next()
                .unwrap_or_else(|| Err(failure(FILE, "it has less than three numbers")))
        };
        Ok(Load {
            one: next()?,
            five: next()?,
            fifteen: next()?,
            processors: processors(root),
        })
    })
}

/// How many processors are online: `0-3,5`.
fn processors(root: &Path) -> Option<u32> {
    let text = read(root, "sys/devices/system/cpu/online")?.ok()?;
    let mut count = 0u32;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// Pressure-stall information; its lines are
/// `some avg10=0.04 avg60=0.39 avg300=0.23 total=5584267`.
pub(super) fn pressure(root: &Path) -> Vec<(Resource, Reading<Pressure>)> {
    let files = [
        (Resource::Cpu, "proc/pressure/cpu"),
        (Resource::Io, "proc/pressure/io"),
        (Resource::Memory, "proc/pressure/memory"),
    ];
    files
        .into_iter()
        .filter_map(|(resource, file)| {
            let text = read(root, file)?;
            Some((resource, text.and_then(|text| stalls(file, &text))))
        })
        .collect()
}

fn stalls(file: &str, text: &str) -> Reading<Pressure> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("some "))
        .ok_or_else(|| failure(file, "it has no line that begins with `some`"))?;
    let field = |name: &str| {
        let value = line
            .split_whitespace()
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value =
            value.ok_or_else(|| failure(file, format!("its line `some` has no `{name}`")))?;
        number(file, value)
    };
    Ok(Pressure {
        ten_seconds: field("avg10")?,
        minute: field("avg60")?,
    })
}

/// Main memory from `/proc/meminfo`. Kernels before 3.14 do not say what is
/// available; free, buffers and cache come near it.
pub(super) fn memory(root: &Path) -> Option<Reading<Memory>> {
    const FILE: &str = "proc/meminfo";
    read(root, FILE).map(|text| {
        let text = text?;
        let field = |name: &str| -> Reading<Option<u64>> {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let Some(value) = value else { return Ok(None) };
            let kilobytes = value
                .trim()
                .strip_suffix("kB")
                .map(str::trim)
                .and_then(|v| v.parse::<u64>().ok());
            let bytes = kilobytes.and_then(|k| k.checked_mul(1024));
            bytes
                .map(Some)
                .ok_or_else(|| failure(FILE, format!("its `{name}` is not a number of kB")))
        };
        let total = field("MemTotal")?.ok_or_else(|| failure(FILE, "it has no `MemTotal`"))?;
        let available = match field("MemAvailable")? {
            Some(available) => available,
            None => ["MemFree", "Buffers", "Cached"]
                .into_iter()
                .try_fold(0u64, |sum, name| {
                    Ok::<_, Failure>(sum.saturating_add(field(name)?.unwrap_or(0)))
                })?,
        };
        Ok(Memory {
            total,
            available: available.min(total),
        })
    })
}

/// Byte counters of the interfaces that have seen traffic, from
/// `/proc/net/dev`, without the loopback.
pub(super) fn network(root: &Path) -> Option<Reading<Vec<Interface>>> {
    const FILE: &str = "proc/net/dev";
    read(root, FILE).map(|text| {
        let text = text?;
        let mut interfaces = Vec::new();
        for (index, line) in text
            .lines()
            .enumerate()
            .skip(2)
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let broken = || {
                failure(
                    FILE,
                    format!("line {} is not a name, a colon and counters", index + 1),
                )
            };
            // The name may hold a colon itself; counters cannot.
            let (name, counters) = line.rsplit_once(':').ok_or_else(broken)?;
            let counters: Vec<&str> = counters.split_whitespace().collect();
            let counter = |i: usize| {
                counters
                    .get(i)
                    .and_then(|c| c.parse::<u64>().ok())
                    .ok_or_else(broken)
            };
            let (received, sent) = (counter(0)?, counter(8)?);
            let name = name.trim();
            if name != "lo" && (received > 0 || sent > 0) {
                interfaces.push(Interface {
                    name: shortened(name).to_owned(),
                    received,
                    sent,
                    rates: None,
                });
            }
        }
        Ok(interfaces)
    })
}

/// A finite number that is not negative.
fn number(file: &str, word: &str) -> Reading<f64> {
    match word.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(failure(
            file,
            format!("`{}` is not a number from 0 up", shortened(word)),
        )),
    }
}
