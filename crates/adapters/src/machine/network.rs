//! Traffic of network interfaces.

use serde::{Deserialize, Serialize};

use super::files::Files;
use super::rates::Rates;
use super::{First, OFTEN, Sampler};
use crate::failure::Failure;

const FILE: &str = "proc/net/dev";

/// What has gone through a network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// `eth0`, for instance.
    pub interface: String,
    /// Whether it has a link, if it knows.
    pub is_up: Option<bool>,
    /// Since it came to be.
    pub received_bytes: u64,
    /// Since it came to be.
    pub sent_bytes: u64,
    /// Received packets that were broken or for which there was no room.
    pub receive_failures: u64,
    /// Packets that could not be sent.
    pub send_failures: u64,
    /// Since the event before; nothing in the first one, and when counters
    /// began anew.
    pub received_bytes_per_second: Option<f64>,
    /// Since the event before, likewise.
    pub sent_bytes_per_second: Option<f64>,
}

/// Traffic, as one [`Network`] for each interface but the loopback, from
/// `/proc/net/dev`.
#[must_use]
pub fn network() -> Sampler {
    let mut rates = Rates::new();
    Sampler::new(OFTEN, move |files, feed| {
        let text = files.need(FILE, "mount procfs at /proc")?;
        let mut failures = First::default();
        rates.look(feed.now());
        for (number, line) in text.lines().enumerate().skip(2) {
            if line.trim().is_empty() {
                continue;
            }
            let read = read(files, number + 1, line);
            let Some(mut network) = failures.good(read).filter(|n| n.interface != "lo") else {
                continue;
            };
            let counters = [network.received_bytes, network.sent_bytes];
            if let Some([received, sent]) = rates.of(&network.interface, counters) {
                network.received_bytes_per_second = Some(received);
                network.sent_bytes_per_second = Some(sent);
            }
            feed.publish(feed.now(), network);
        }
        failures.result()
    })
}

/// `eth0: ` and sixteen counters, of which the first half is about receiving.
fn read(files: &Files, number: usize, line: &str) -> Result<Network, Failure> {
    let broken = || {
        let reason = format!("line {number} is not a name, a colon and counters");
        files.failure(FILE, reason)
    };
    // The name may hold a colon itself; counters cannot.
    let (name, counters) = line.rsplit_once(':').ok_or_else(broken)?;
    let counters: Vec<&str> = counters.split_whitespace().collect();
    let counter = |index: usize| {
        let counter = counters
            .get(index)
            .and_then(|word| word.parse::<u64>().ok());
        counter.ok_or_else(broken)
    };
    let interface = name.trim().to_owned();
    Ok(Network {
        is_up: is_up(files, &interface),
        interface,
        received_bytes: counter(0)?,
        sent_bytes: counter(8)?,
        receive_failures: counter(2)?.saturating_add(counter(3)?),
        send_failures: counter(10)?.saturating_add(counter(11)?),
        received_bytes_per_second: None,
        sent_bytes_per_second: None,
    })
}

fn is_up(files: &Files, interface: &str) -> Option<bool> {
    match files
        .word(&format!("sys/class/net/{interface}/operstate"))?
        .as_str()
    {
        "up" => Some(true),
        "unknown" => None,
        _ => Some(false),
    }
}
