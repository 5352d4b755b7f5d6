//! This machine: load, pressure, memory, network, disks, temperatures, hardware
//! monitors, batteries.
//!
//! ```
//! use std::time::Duration;
//! use milieu_adapters::machine;
//!
//! let load = machine::load().every(Duration::from_secs(10));
//! // A machine that is not this one:
//! let other = machine::battery().below("/tmp/machine");
//! ```
//!
//! Each source has one type of events and publishes one event for each thing of
//! its kind (each network interface, each battery) every five seconds, or every
//! minute where things change slowly. What is absent is left out; where a source
//! finds nothing at all, its status says what should be there. What is there and
//! says something impossible is left out too, and told by the status.
//!
//! No source here needs any right.

mod disks;
mod files;
mod load;
mod memory;
mod network;
mod power;
mod pressure;
mod rates;
mod temperature;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use milieu_stream::{Feed, Source, Wait};

use crate::failure::Failure;
use crate::interval::Interval;
use files::Files;

pub use disks::{DiskSpace, DiskTraffic, disk_space, disk_traffic};
pub use load::{Load, load};
pub use memory::{Memory, memory};
pub use network::{Network, network};
pub use power::{Battery, Charge, Mains, battery, mains};
pub use pressure::{Pressure, Resource, Stall, pressure};
pub use temperature::{Quantity, Sensor, Thermal, hwmon, thermal};

/// How often what changes quickly is read.
const OFTEN: Duration = Duration::from_secs(5);

/// How often what changes slowly is read.
const SELDOM: Duration = Duration::from_secs(60);

/// Reads and publishes; a failure does not keep it from publishing the rest.
type Read = Box<dyn FnMut(&Files, &mut Feed<'_>) -> Result<(), Failure> + Send>;

/// A source that reads files of the kernel every so often.
pub struct Sampler {
    files: Files,
    interval: Interval,
    read: Read,
}

impl Sampler {
    fn new(
        every: Duration,
        read: impl FnMut(&Files, &mut Feed<'_>) -> Result<(), Failure> + Send + 'static,
    ) -> Sampler {
        Sampler {
            files: Files::below("/"),
            interval: Interval::new(every),
            read: Box::new(read),
        }
    }

    /// Reads every so often, aligned to the clock.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Sampler {
        self.interval = Interval::new(interval);
        self
    }

    /// Looks for `proc` and `sys` in this folder.
    #[must_use]
    pub fn below(mut self, root: impl Into<PathBuf>) -> Sampler {
        self.files = Files::below(root);
        self
    }
}

impl Source for Sampler {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        if self.interval.begins(feed.now()) {
            match (self.read)(&self.files, feed) {
                Ok(()) => feed.working(),
                Err(failure) => feed.failing(failure),
            }
        }
        self.interval.wait()
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sampler = f.debug_struct("Sampler");
        sampler.field("files", &self.files);
        sampler.field("interval", &self.interval);
        sampler.finish_non_exhaustive()
    }
}

/// The first of several failures, so that one broken sensor hides no other.
#[derive(Default)]
struct First(Option<Failure>);

impl First {
    /// The value, or nothing and the failure remembered.
    fn good<T>(&mut self, result: Result<T, Failure>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(failure) => {
                self.0.get_or_insert(failure);
                None
            }
        }
    }

    fn result(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), Err)
    }
}
