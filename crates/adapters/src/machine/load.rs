//! The load averages.

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::{OFTEN, Sampler};
use crate::failure::{Failure, shortened};

const FILE: &str = "proc/loadavg";

/// How many threads ran or waited for a processor or a disk, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// In the last minute.
    pub one_minute: f64,
    /// In the last five minutes.
    pub five_minutes: f64,
    /// In the last fifteen minutes.
    pub fifteen_minutes: f64,
    /// Threads that run or could run now, if the kernel says.
    pub runnable_threads: Option<u32>,
    /// All threads, if the kernel says.
    pub threads: Option<u32>,
    /// Processors that share the load, if the kernel says.
    pub processors: Option<u32>,
}

/// The load averages, as [`Load`], from `/proc/loadavg`.
#[must_use]
pub fn load() -> Sampler {
    Sampler::new(OFTEN, |files, feed| {
        let load = read(files)?;
        feed.publish(feed.now(), load);
        Ok(())
    })
}

/// `0.04 0.39 0.23 1/123 4567`.
fn read(files: &Files) -> Result<Load, Failure> {
    let text = files.need(FILE, "mount procfs at /proc")?;
    let mut words = text.split_whitespace();
    let mut average = || {
        let word = words.next().unwrap_or_default();
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => {
                let word = shortened(word);
                let reason = format!("`{word}` stands where a load average should");
                Err(files.failure(FILE, reason))
            }
        }
    };
    let (one_minute, five_minutes, fifteen_minutes) = (average()?, average()?, average()?);
    let threads = words.next().and_then(|word| word.split_once('/'));
    Ok(Load {
        one_minute,
        five_minutes,
        fifteen_minutes,
        runnable_threads: threads.and_then(|(runnable, _)| runnable.parse().ok()),
        threads: threads.and_then(|(_, all)| all.parse().ok()),
        processors: processors(files),
    })
}

/// How many processors are online: `0-3,5`.
fn processors(files: &Files) -> Option<u32> {
    let text = files.read("sys/devices/system/cpu/online").ok()??;
    let mut count = 0u32;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}
