//! Positions from receivers that speak NMEA 0183.
//!
//! ```
//! use milieu_adapters::{command, nmea, serial};
//!
//! let here = serial::lines("/dev/ttyACM0").format(nmea::positions());
//! let shared = command::lines("gpspipe", ["-r"]).format(nmea::positions());
//! ```
//!
//! What several sentences say of one moment becomes one [`Position`]. Which
//! sentence is the last of a moment is learnt from the receiver, so that a
//! position is known as soon as it has come.
//!
//! Source: NMEA 0183, as receivers write it; sentences GGA, GLL, GNS and RMC of
//! all satellite systems.

mod receiver;
mod sentence;

pub use receiver::{Fix, Position, Receiver};

use crate::format::Format;

/// Lines of a receiver as [`Position`]s. While it has no fix, the status says
/// so.
#[must_use]
pub fn positions() -> Format {
    let mut receiver = Receiver::default();
    let mut has_begun = false;
    Format::with(move |feed, line| {
        let mut found = Vec::new();
        let taken = receiver.sentence(line, |position| found.push(position));
        for position in found {
            feed.publish(feed.now(), position);
        }
        match taken {
            // The first line is mostly the end of one.
            Err(_) if !has_begun => {}
            Err(why) => return Err(why),
            Ok(()) => has_begun = true,
        }
        if receiver.has_fix() == Some(false) {
            feed.failing("the receiver has no fix; give its antenna a view of the sky");
        }
        Ok(())
    })
}
