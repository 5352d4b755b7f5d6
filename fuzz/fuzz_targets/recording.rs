//! Recordings: whatever stands in a file, its rows are replayed or told as bad,
//! and the end is reached.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use milieu_adapters::replay::{self, Column, Pace, TimeFormat};
use milieu_stream::Status;
use milieu_stream::drive::Stepped;
use milieu_transfer::{Origin, Stream, Time};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("milieu-fuzz-recording-{}", std::process::id());
    std::env::temp_dir().join(name)
});

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    std::fs::write(&*FILE, bytes).unwrap();
    let replay = match kind % 4 {
        0 => replay::csv(&*FILE),
        1 => replay::csv(&*FILE)
            .names(["time", "n", "text"])
            .time("time", TimeFormat::UnixSeconds)
            .column("n", Column::Integer),
        2 => replay::json_lines(&*FILE).time("time", TimeFormat::UnixMilliseconds),
        _ => replay::nmea(&*FILE),
    };
    let stream = Stream {
        name: "/fuzz".parse().unwrap(),
        origin: Origin("fuzz".into()),
        incarnation: 1,
    };
    let mut sources = Stepped::new(Time::from_seconds(0));
    let id = sources.add(stream, replay.pace(Pace::Immediate).passes(2));
    let mut events = 0;
    for _ in 0..1000 {
        events += sources.poll(id).len();
        let status = sources.status(id).unwrap();
        if let Status::Failing(why) = status {
            assert!(!why.contains("panicked"), "{why}");
        }
        if sources.due().is_none() {
            assert!(events <= 2 * bytes.len());
            return;
        }
    }
    panic!("there is no end");
});
