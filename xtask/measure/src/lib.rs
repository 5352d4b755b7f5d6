//! What benchmarks have in common: they list, count and time their operations.
//!
//! A benchmark without a harness of its own hands its operations to [`answer`],
//! and answers as `xtask/src/instructions.rs` asks:
//!
//! - `list` names them;
//! - `count NAME N` executes one N times, for counting instructions by the
//!   difference of two runs;
//! - `time [NAME…]` prints a JSON line each: `value` in nanoseconds, and for some
//!   the `ratio` to what they are compared with, measured alternately in one run.

use std::process::ExitCode;
use std::time::Instant;

/// Executes an operation a number of times.
pub type Loop = Box<dyn FnMut(u64)>;

/// What is measured.
pub struct Operation {
    name: &'static str,
    make: fn() -> Loop,
    /// What it is compared with.
    limit: Option<fn() -> Loop>,
}

/// An operation by itself.
#[must_use]
pub const fn alone(name: &'static str, make: fn() -> Loop) -> Operation {
    Operation {
        name,
        make,
        limit: None,
    }
}

/// An operation beside what it is compared with: a physical limit, a peer.
#[must_use]
pub const fn paired(name: &'static str, make: fn() -> Loop, limit: fn() -> Loop) -> Operation {
    Operation {
        name,
        make,
        limit: Some(limit),
    }
}

/// Does what the arguments of the program ask for.
#[must_use]
pub fn answer(operations: &[Operation]) -> ExitCode {
    answer_fixed(operations, || ())
}

/// As [`answer`], where something that is random has to be fixed before counting.
#[must_use]
pub fn answer_fixed(operations: &[Operation], fix: fn()) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words = arguments.iter().map(String::as_str);
    let words: Vec<&str> = words.filter(|word| *word != "--bench").collect();
    match words.as_slice() {
        ["list"] => operations.iter().for_each(|it| println!("{}", it.name)),
        ["count", name, times] => {
            let operation = operations.iter().find(|it| it.name == *name);
            let (Some(operation), Ok(times)) = (operation, times.parse()) else {
                return usage();
            };
            fix();
            (operation.make)()(times);
        }
        ["time", names @ ..] => {
            let wanted = |it: &&Operation| names.is_empty() || names.contains(&it.name);
            for operation in operations.iter().filter(wanted) {
                let (value, ratio) = time(operation);
                let ratio = ratio.map_or_else(String::new, |it| format!(",\"ratio\":{it:.3}"));
                let name = operation.name;
                println!("{{\"name\":\"{name}\",\"value\":{value:.2}{ratio}}}");
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

/// Nanoseconds an execution, and over its limit: the least of alternate rounds.
fn time(operation: &Operation) -> (f64, Option<f64>) {
    let mut run = (operation.make)();
    let mut times = 1;
    while {
        let start = Instant::now();
        run(times);
        start.elapsed().as_millis() < 5
    } {
        times *= 2;
    }
    let round = |run: &mut Loop| {
        let start = Instant::now();
        run(times);
        start.elapsed().as_secs_f64() * 1e9 / times as f64
    };
    let mut limit = operation.limit.map(|make| make());
    let (mut least, mut least_limit) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..15 {
        least = least.min(round(&mut run));
        if let Some(limit) = &mut limit {
            least_limit = least_limit.min(round(limit));
        }
    }
    (least, limit.map(|_| least / least_limit))
}
