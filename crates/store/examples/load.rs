//! Measures how long loading takes: prints nanoseconds per key.
//!
//! `cargo run --release -p milieu-store --example load [KEYS] [ROUNDS]`
//! builds INI text of 10,000 keys, in sections and as full names, loads each
//! from a file into a key set, 50 times, and prints one line each:
//! `sections 10000 keys: 150 ns/key, 1.50 ms (fastest of 50)`.
//! Reading the file is part of it; the file is in the page cache.

use std::fmt::Write;
use std::time::{Duration, Instant};

use milieu_keys::Namespace;
use milieu_store::{Place, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let keys = arguments.next().transpose()?.unwrap_or(10_000);
    let rounds = arguments.next().transpose()?.unwrap_or(50);
    let path = std::env::temp_dir().join(format!("milieu-load-{}.ini", std::process::id()));
    for (shape, text) in [("sections", sections(keys)), ("full names", full_names(keys)), ("shuffled", shuffled(keys))] {
        std::fs::write(&path, text)?;
        let mut fastest = Duration::MAX;
        for _ in 0..rounds {
            let place = Place { namespace: Namespace::User, path: path.clone() };
            let start = Instant::now();
            let store = Store::read(vec![place])?;
            fastest = fastest.min(start.elapsed());
            assert_eq!(store.keys().len(), keys, "every key was loaded");
        }
        let each = fastest.as_nanos() as f64 / keys as f64;
        let whole = fastest.as_secs_f64() * 1e3;
        println!("{shape} {keys} keys: {each:.0} ns/key, {whole:.2} ms (fastest of {rounds})");
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

/// What a station with sessions keeps: ten keys for each of them.
fn sections(keys: usize) -> String {
    let mut text = String::new();
    for key in 0..keys {
        if key % 10 == 0 {
            writeln!(text, "\n[/sw/pi/session{:05}]", key / 10).expect("memory");
        }
        writeln!(text, "setting_{} = value {key}", key % 10).expect("memory");
    }
    text
}

/// The same keys in the shape of CoElektra's configuration file (section IV-A).
fn full_names(keys: usize) -> String {
    let line = |key: usize| format!("/sw/pi/session{:05}/setting_{} = value {key}\n", key / 10, key % 10);
    (0..keys).map(line).collect()
}

/// The same keys in no order, as a file that grew by appending has them.
fn shuffled(keys: usize) -> String {
    let mut lines: Vec<String> = full_names(keys).lines().map(|line| format!("{line}\n")).collect();
    let mut state = 1_u64;
    for last in (1..lines.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        lines.swap(last, (state >> 33) as usize % (last + 1));
    }
    lines.concat()
}
