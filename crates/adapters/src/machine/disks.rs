//! Disks: how full they are, and what they are doing.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::rates::Rates;
use super::{First, OFTEN, SELDOM, Sampler};
use crate::failure::Failure;

const MOUNTS: &str = "proc/self/mountinfo";
const STATISTICS: &str = "proc/diskstats";

/// The kernel counts these, whatever the disk.
const SECTOR_BYTES: u64 = 512;

/// How full a file system is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskSpace {
    /// Where it is mounted first.
    pub mount_point: String,
    /// What it lies on: `/dev/sda1`.
    pub device: String,
    /// `ext4`, for instance.
    pub file_system: String,
    /// All there is.
    pub total_bytes: u64,
    /// What a user without special rights can still write.
    pub available_bytes: u64,
    /// How much of what users can have is used, as `df` says it.
    pub used_percent: f64,
}

/// What a disk is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskTraffic {
    /// `sda`, for instance.
    pub device: String,
    /// Since the machine started.
    pub read_bytes: u64,
    /// Since the machine started.
    pub written_bytes: u64,
    /// Since the event before; nothing in the first one, and when counters
    /// began anew.
    pub read_bytes_per_second: Option<f64>,
    /// Since the event before, likewise.
    pub written_bytes_per_second: Option<f64>,
    /// The share of time in which it had something to do, likewise.
    pub busy_percent: Option<f64>,
}

/// How full disks are, as one [`DiskSpace`] for each file system on a local
/// device and for that at `/`, however often it is mounted.
///
/// File systems of the network are left out: one whose server is gone would
/// stop all sources.
#[must_use]
pub fn disk_space() -> Sampler {
    Sampler::new(SELDOM, |files, feed| {
        let text = files.need(MOUNTS, "mount procfs at /proc")?;
        let mut failures = First::default();
        let mut seen = HashSet::new();
        for (index, line) in text.lines().enumerate() {
            let mount = Mount::read(line).ok_or_else(|| {
                let reason = format!("line {} does not describe a mount", index + 1);
                files.failure(MOUNTS, reason)
            });
            let Some(mount) = failures.good(mount) else {
                continue;
            };
            if !mount.is_local() || !seen.insert(mount.number) {
                continue;
            }
            if let Some(Some(space)) = failures.good(mount.space(files)) {
                feed.publish(feed.now(), space);
            }
        }
        failures.result()
    })
}

/// A line of the file of mounts:
/// `36 35 98:0 /root /mnt ro,noatime shared:1 - ext4 /dev/sda1 rw`.
struct Mount<'a> {
    number: &'a str,
    point: String,
    file_system: &'a str,
    device: String,
}

impl Mount<'_> {
    fn read(line: &str) -> Option<Mount<'_>> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let mut system = file_system.split(' ');
        Some(Mount {
            number: mount.next()?,
            point: unescaped(mount.nth(1)?),
            file_system: system.next()?,
            device: unescaped(system.next()?),
        })
    }

    fn is_local(&self) -> bool {
        let on_pool = ["zfs", "btrfs", "bcachefs"].contains(&self.file_system);
        self.device.starts_with("/dev/") || on_pool || self.point == "/"
    }

    /// Nothing: it has no size, or it is out of this process's sight.
    fn space(&self, files: &Files) -> Result<Option<DiskSpace>, Failure> {
        let within = self.point.trim_start_matches('/');
        let path = files.path(within);
        let is_hidden = |error: &rustix::io::Errno| {
            use rustix::io::Errno;
            [Errno::NOENT, Errno::ACCESS, Errno::NOTDIR].contains(error)
        };
        let size = match rustix::fs::statvfs(Path::new(&path)) {
            Ok(size) => size,
            Err(error) if is_hidden(&error) => return Ok(None),
            Err(error) => {
                let reason = format!("its size cannot be had: {error}");
                return Err(files.failure(within, reason));
            }
        };
        if size.f_blocks == 0 {
            return Ok(None);
        }
        let used = size.f_blocks.saturating_sub(size.f_bfree);
        let of = used.saturating_add(size.f_bavail).max(1);
        Ok(Some(DiskSpace {
            mount_point: self.point.clone(),
            device: self.device.clone(),
            file_system: self.file_system.to_owned(),
            total_bytes: size.f_blocks.saturating_mul(size.f_frsize),
            available_bytes: size.f_bavail.saturating_mul(size.f_frsize),
            used_percent: used as f64 / of as f64 * 100.0,
        }))
    }
}

/// The kernel writes blanks and backslashes as `\040`.
fn unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped.filter(|_| byte == b'\\') {
            Some(escaped) => {
                plain.push(escaped);
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// What disks are doing, as one [`DiskTraffic`] for each whole disk that has
/// been used, from `/proc/diskstats`.
#[must_use]
pub fn disk_traffic() -> Sampler {
    let mut rates = Rates::new();
    Sampler::new(OFTEN, move |files, feed| {
        let text = files.need(STATISTICS, "mount procfs at /proc")?;
        let disks = files.folder("sys/block", "")?;
        let mut failures = First::default();
        rates.look(feed.now());
        for (index, line) in text.lines().enumerate() {
            let counters = counters(line).ok_or_else(|| {
                let reason = format!("line {} is not a device and its counters", index + 1);
                files.failure(STATISTICS, reason)
            });
            let Some((device, [read, written, busy])) = failures.good(counters) else {
                continue;
            };
            let is_disk = disks.iter().any(|disk| disk == device);
            if !is_disk || (read == 0 && written == 0) {
                continue;
            }
            let rates = rates.of(device, [read, written, busy]);
            feed.publish(
                feed.now(),
                DiskTraffic {
                    device: device.to_owned(),
                    read_bytes: read,
                    written_bytes: written,
                    read_bytes_per_second: rates.map(|[read, ..]| read),
                    written_bytes_per_second: rates.map(|[_, written, _]| written),
                    // Milliseconds in a second.
                    busy_percent: rates.map(|[.., busy]| (busy / 10.0).min(100.0)),
                },
            );
        }
        failures.result()
    })
}

/// Bytes read and written, and milliseconds in which it was busy.
fn counters(line: &str) -> Option<(&str, [u64; 3])> {
    let mut words = line.split_whitespace().skip(2);
    let device = words.next()?;
    let counters: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let bytes = |index: usize| Some(counters.get(index)?.saturating_mul(SECTOR_BYTES));
    Some((device, [bytes(2)?, bytes(6)?, *counters.get(9)?]))
}
