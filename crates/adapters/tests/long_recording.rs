//! Recordings are read as they are replayed. This is a program of its own,
//! because it measures the memory of all of it.

mod support;

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use milieu_adapters::replay::{self, Pace, TimeFormat};
use milieu_stream::Status;
use support::Watched;
use tempfile::tempdir;

const ROWS: usize = 32 * 1024;

/// The most memory that this program has ever used, in kilobytes.
fn memory_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn a_long_recording_is_not_kept_in_memory() {
    let root = tempdir().unwrap();
    let path = root.path().join("rows.csv");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    writeln!(file, "time,text").unwrap();
    let text = "x".repeat(1000);
    for row in 0..ROWS {
        writeln!(file, "{row},{text}").unwrap();
    }
    file.flush().unwrap();
    let rows = replay::csv(&path).time("time", TimeFormat::UnixSeconds);
    let mut source = Watched::new(rows.pace(Pace::Immediate));
    let before = memory_kilobytes();
    let mut count = source.poll().len();
    while *source.status() == Status::Working {
        count += source.poll().len();
    }
    assert_eq!(count, ROWS);
    let length_kilobytes = fs::metadata(&path).unwrap().len() / 1024;
    let grown = memory_kilobytes() - before;
    assert!(
        grown < length_kilobytes / 4,
        "{grown} of {length_kilobytes} kilobytes"
    );
}
