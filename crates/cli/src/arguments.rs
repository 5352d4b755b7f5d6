//! Values on the command line that several nouns read.

use std::time::Duration;

/// Reads a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "give a number of seconds from 0".to_owned())
}
