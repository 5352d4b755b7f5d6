//! Main memory and swap.

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::{OFTEN, Sampler};
use crate::failure::Failure;

const FILE: &str = "proc/meminfo";

/// Main memory and swap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// All there is.
    pub total_bytes: u64,
    /// What programs could get without swapping.
    pub available_bytes: u64,
    /// How much of it is not available.
    pub used_percent: f64,
    /// All swap.
    pub swap_total_bytes: u64,
    /// Swap that holds nothing.
    pub swap_free_bytes: u64,
}

/// Main memory, as [`Memory`], from `/proc/meminfo`.
#[must_use]
pub fn memory() -> Sampler {
    Sampler::new(OFTEN, |files, feed| {
        let memory = read(files)?;
        feed.publish(feed.now(), memory);
        Ok(())
    })
}

/// Kernels before 3.14 do not say what is available; free, buffers and cache
/// come near it.
fn read(files: &Files) -> Result<Memory, Failure> {
    let text = files.need(FILE, "mount procfs at /proc")?;
    let field = |name: &str| -> Result<Option<u64>, Failure> {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let Some(value) = value else { return Ok(None) };
        let kilobytes = value.trim().strip_suffix("kB").map(str::trim);
        let kilobytes = kilobytes.and_then(|number| number.parse::<u64>().ok());
        let bytes = kilobytes.and_then(|number| number.checked_mul(1024));
        let failure = || files.failure(FILE, format!("its `{name}` is not a number of kB"));
        bytes.map(Some).ok_or_else(failure)
    };
    let total = field("MemTotal")?.filter(|total| *total > 0);
    let total_bytes = total.ok_or_else(|| files.failure(FILE, "it has no `MemTotal`"))?;
    let available = match field("MemAvailable")? {
        Some(available) => available,
        None => {
            let mut sum = 0u64;
            for name in ["MemFree", "Buffers", "Cached"] {
                sum = sum.saturating_add(field(name)?.unwrap_or(0));
            }
            sum
        }
    };
    let available_bytes = available.min(total_bytes);
    let used = (total_bytes - available_bytes) as f64;
    Ok(Memory {
        total_bytes,
        available_bytes,
        used_percent: used / total_bytes as f64 * 100.0,
        swap_total_bytes: field("SwapTotal")?.unwrap_or(0),
        swap_free_bytes: field("SwapFree")?.unwrap_or(0),
    })
}
