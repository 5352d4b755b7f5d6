//! Programs in C and C++ that serve streams over HTTP, and that connect to a broker.

#![cfg(all(feature = "http", feature = "mqtt"))]

mod support;

#[path = "../../adapters/tests/broker/mod.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod broker;

/// What the broker waits with.
mod client {
    use std::{
        thread,
        time::{Duration, Instant},
    };

    /// Whether something comes true within a minute.
    pub fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            if is_so() {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

use std::{
    ffi::OsString,
    sync::atomic::{AtomicU32, Ordering},
};

use broker::Broker;
use support::{Language, passes, scratch};

#[test]
fn streams_are_served_over_http_from_c() {
    passes(Language::C, "foreign.c", &scratch("c-foreign"), Vec::new);
}

#[test]
fn streams_are_served_over_http_from_cpp() {
    passes(
        Language::Cpp,
        "foreign.cpp",
        &scratch("cpp-foreign"),
        Vec::new,
    );
}

/// Runs a program with a broker, and looks at what it leaves there: it has said that
/// it goes, and its devices are taken back.
fn with_broker(language: Language, source: &str, folder: &str) {
    if !broker::is_here() {
        return;
    }
    let broker = Broker::started();
    let heard = broker.listen("homeassistant/device/+/config");
    let runs = AtomicU32::new(0);
    let folder = scratch(folder);
    passes(language, source, &folder, || {
        let client = format!("station-{}", runs.fetch_add(1, Ordering::Relaxed));
        [broker.port.to_string(), client]
            .map(OsString::from)
            .to_vec()
    });
    let runs = runs.into_inner();
    let retained = broker.retained("#");
    for run in 0..runs {
        let offline = format!("milieu/station-{run}/status offline");
        assert!(retained.contains(&offline), "{offline}: {retained:?}");
        let announced = format!("homeassistant/device/station-{run}/config {{");
        assert!(heard.text().contains(&announced), "{announced}");
    }
    let kept = |line: &&String| line.contains("/config");
    assert_eq!(retained.iter().find(kept), None);
    assert!(runs > 0);
}

#[test]
fn a_broker_is_spoken_to_from_c() {
    with_broker(Language::C, "foreign.c", "c-broker");
}

#[test]
fn a_broker_is_spoken_to_from_cpp() {
    with_broker(Language::Cpp, "foreign.cpp", "cpp-broker");
}
