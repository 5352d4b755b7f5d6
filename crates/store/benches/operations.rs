//! What the operations of the store cost.
//!
//! `list` prints their names, `count OPERATION N` executes one of them `N`
//! times, `time [OPERATION…]` prints a line of JSON for each with its `name`
//! and the nanoseconds of its fastest execution as `value`.
//!
//! Loading includes reading the file, which is in the page cache.

use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use milieu_keys::Namespace;
use milieu_store::ini::Document;
use milieu_store::{Place, Store};

/// How many keys the files have.
const KEYS: usize = 10_000;
/// How often an operation is timed.
const ROUNDS: usize = 100;

/// An operation: its name, the text that it works on, and one execution.
type Operation = (&'static str, fn() -> String, fn(&Path, &str));

const OPERATIONS: [Operation; 4] = [
    ("load-10000", sections, load),
    ("load-10000-full-names", full_names, load),
    ("load-10000-shuffled", shuffled, load),
    ("edit-10000", sections, edit),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "--bench")
        .collect();
    match words.as_slice() {
        ["list"] => OPERATIONS.iter().for_each(|(name, ..)| println!("{name}")),
        ["count", name, times] => {
            let (Some(operation), Ok(times)) = (find(name), times.parse()) else {
                return usage();
            };
            with_file(operation, |execute| {
                (0..times).for_each(|_: usize| execute())
            });
        }
        ["time", names @ ..] => {
            let all = names.is_empty();
            for operation in OPERATIONS
                .iter()
                .filter(|(name, ..)| all || names.contains(name))
            {
                let fastest = with_file(operation, fastest);
                println!(
                    "{{\"name\":\"{}\",\"value\":{}}}",
                    operation.0,
                    fastest.as_nanos()
                );
            }
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: list | count OPERATION N | time [OPERATION…]");
    ExitCode::from(2)
}

fn find(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|(other, ..)| *other == name)
}

/// Hands out the execution of an operation, with its file in place meanwhile.
fn with_file<T>((name, text, execute): &Operation, run: impl FnOnce(&dyn Fn()) -> T) -> T {
    let path: PathBuf =
        std::env::temp_dir().join(format!("milieu-{name}-{}.ini", std::process::id()));
    let text = text();
    std::fs::write(&path, &text).expect("the folder for temporary files can be written");
    let result = run(&|| execute(&path, &text));
    std::fs::remove_file(&path).expect("the file was just there");
    result
}

fn fastest(execute: &dyn Fn()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        execute();
        start.elapsed()
    };
    (0..ROUNDS).map(time).min().expect("there are rounds")
}

/// Reads a file into a key set, as a program does when it starts.
fn load(path: &Path, _: &str) {
    let place = Place {
        namespace: Namespace::User,
        path: path.to_owned(),
    };
    let store = Store::read(vec![place]).expect("the file is right");
    assert_eq!(black_box(&store).keys().len(), KEYS);
    // Giving the memory back is no part of starting.
    std::mem::forget(store);
}

/// Reads a document, gives one key a value and writes the text.
fn edit(_: &Path, text: &str) {
    let (mut document, _) = Document::parse(text);
    let name = milieu_keys::Name::parse("/sw/pi/session00500/setting_5").expect("a name");
    assert!(document.set(&name, "changed").is_some());
    black_box(document.to_string());
}

/// What a station with sessions keeps: ten keys for each of them.
fn sections() -> String {
    let mut text = String::new();
    for key in 0..KEYS {
        if key % 10 == 0 {
            writeln!(text, "\n[/sw/pi/session{:05}]", key / 10).expect("memory");
        }
        writeln!(text, "setting_{} = value {key}", key % 10).expect("memory");
    }
    text
}

/// The same keys in the shape of CoElektra's configuration file (section IV-A).
fn full_names() -> String {
    let line = |key| {
        format!(
            "/sw/pi/session{:05}/setting_{} = value {key}\n",
            key / 10,
            key % 10
        )
    };
    (0..KEYS).map(line).collect()
}

/// The same keys in no order, as a file that grew by appending has them.
fn shuffled() -> String {
    let mut lines: Vec<String> = full_names()
        .lines()
        .map(|line| format!("{line}\n"))
        .collect();
    let mut state = 1_u64;
    for last in (1..lines.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        lines.swap(last, (state >> 33) as usize % (last + 1));
    }
    lines.concat()
}
