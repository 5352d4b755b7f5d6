//! `cargo xtask instructions`: what an operation costs in instructions.
//!
//! A benchmark without a harness of its own (`harness = false`) answers three
//! requests, most by way of `xtask/measure`; `cargo xtask bench` uses the third:
//!
//! | arguments | what the program does |
//! |---|---|
//! | `list` | prints the names of its operations, one a line |
//! | `count OPERATION N` | prepares, then executes the operation `N` times |
//! | `time [OPERATION…]` | prints a JSON line for each with `name`, `value` in ns, perhaps `ratio` |
//!
//! An operation is counted by running it under callgrind `N` and `2 N` times:
//! the difference is free of start-up and preparation. What is left of them, a
//! random seed of a hash table for instance, is less than the last of the three
//! decimals, because `N` grows until the operation outweighs it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::metadata::{Metadata, Package};
use crate::process;

/// Count the instructions of each operation of one benchmark, exactly.
///
/// Prints a JSON line for each operation with `name` and `value`. Needs valgrind.
#[derive(clap::Args)]
pub struct Arguments {
    /// The package that has the benchmark.
    #[arg(short, long)]
    package: String,
    /// The benchmark, a `[[bench]]` that answers `list` and `count`.
    #[arg(long, default_value = "operations")]
    bench: String,
    /// How often an operation is executed in the shorter of its two runs; cheap
    /// ones are executed more often.
    #[arg(short = 'n', long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,
    /// Only these operations.
    #[arg(value_name = "OPERATION")]
    operations: Vec<String>,
}

/// Counts and prints.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if !process::has_program("valgrind") {
        bail!("instructions are counted by valgrind, which is not here: apt-get install valgrind");
    }
    let program = build(&arguments.package, &arguments.bench)?;
    let operations = chosen(operations(&program)?, &arguments.operations)?;
    // Its own: benchmarks that are counted side by side have operations of one name.
    let folder = tempfile::tempdir_in(process::scratch("callgrind")?)
        .context("there is no place for what valgrind counts")?;
    let counted = process::side_by_side(&operations, |operation| {
        count(&program, operation, arguments.times, folder.path())
    });
    for (operation, value) in operations.iter().zip(counted) {
        let line = json!({"name": operation, "value": value?});
        process::print(&format!("{line}\n"))?;
    }
    Ok(true)
}

/// Builds a benchmark and says where its program lies.
///
/// Those of the same name are built as well, with the features that all packages which
/// have benchmarks want together: whatever two benchmarks share is built once. Those of
/// one name are all built, so one that CI does not ask for has a name of its own.
pub fn build(package: &str, bench: &str) -> Result<PathBuf> {
    let metadata = Metadata::read()?;
    let mut cargo = process::cargo(["bench", "--quiet", "--no-run"]);
    cargo.args(["--message-format=json-render-diagnostics", "--bench", bench]);
    // What others want takes the compiler long, and nothing of it is measured.
    let measured = |it: &&Package| it.is_in("crates") && it.targets_of("bench").next().is_some();
    for package in metadata.packages.iter().filter(measured) {
        cargo.args(["--package", &package.name]);
    }
    let messages = process::output(cargo)?;
    let mut packages = metadata.packages.iter();
    let Some(owner) = packages.find(|it| it.name == package) else {
        bail!("there is no package `{package}`");
    };
    program_in(&messages, &owner.manifest_path, bench)
        .with_context(|| format!("building {package} made no program for the benchmark `{bench}`"))
}

/// The operations that a benchmark's program knows.
pub fn operations(program: &Path) -> Result<Vec<String>> {
    let mut list = process::command(&program.to_string_lossy());
    list.arg("list");
    let text = process::output(list)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The known operations that are asked for, in the order of the program.
pub fn chosen(known: Vec<String>, asked: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = asked.iter().find(|operation| !known.contains(operation)) {
        bail!(
            "the benchmark has no operation `{unknown}`; it has {}",
            known.join(", ")
        );
    }
    Ok(known
        .into_iter()
        .filter(|operation| asked.is_empty() || asked.contains(operation))
        .collect())
}

fn program_in(messages: &str, manifest: &Path, bench: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| {
            message["reason"] == "compiler-artifact"
                && message["manifest_path"].as_str().map(Path::new) == Some(manifest)
                && message["target"]["name"] == bench
        })
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// A difference of so many instructions leaves no trace of the preparation.
const ENOUGH: u64 = 1_000_000;

/// Instructions of one execution, with three decimals.
fn count(program: &Path, operation: &str, times: u64, folder: &Path) -> Result<f64> {
    let mut times = times;
    let mut taken = difference(program, operation, times, folder)?;
    let more = more_often(times, taken);
    if more > times {
        times = more;
        taken = difference(program, operation, times, folder)?;
    }
    Ok((taken as f64 / times as f64 * 1000.0).round() / 1000.0)
}

/// How often to execute an operation that took so many instructions so often.
fn more_often(times: u64, difference: u64) -> u64 {
    if difference >= ENOUGH {
        return times;
    }
    // Ten times enough, so that the second round is the last one.
    let factor = 10 * ENOUGH / difference.max(1);
    times.saturating_mul(factor).min(10 * ENOUGH)
}

/// Instructions that `times` more executions take; the two runs go side by side.
fn difference(program: &Path, operation: &str, times: u64, folder: &Path) -> Result<u64> {
    let (short, long) = std::thread::scope(|scope| {
        let short = scope.spawn(|| instructions(program, operation, times, folder));
        let long = instructions(program, operation, 2 * times, folder);
        (short.join().expect("the short run does not panic"), long)
    });
    let (short, long) = (short?, long?);
    long.checked_sub(short).with_context(|| {
        format!(
            "`{operation}` took {short} instructions {times} times and only {long} twice as often: \
             its preparation does not repeat"
        )
    })
}

fn instructions(program: &Path, operation: &str, times: u64, folder: &Path) -> Result<u64> {
    let file = folder.join(format!("{operation}.{times}.out"));
    let mut valgrind = process::command("valgrind");
    valgrind
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["count", operation, &times.to_string()]);
    process::output(valgrind)?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("valgrind left no {}", file.display()))?;
    total(&text).with_context(|| format!("{} states no total", file.display()))
}

/// The number in callgrind's line `totals: 123`.
fn total(text: &str) -> Option<u64> {
    text.lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_operations_are_executed_more_often() {
        assert_eq!(more_often(1000, 3_968_000), 1000);
        assert_eq!(more_often(1000, 6_057), 1_650_000);
        assert_eq!(more_often(1000, 0), 10 * ENOUGH);
    }

    #[test]
    fn the_total_is_read_from_the_end_of_callgrinds_file() {
        assert_eq!(
            total("events: Ir\nfn=(1) main\n3 7\ntotals: 4711\n"),
            Some(4711)
        );
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn the_program_is_the_one_of_the_benchmark() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/a","target":{"name":"milieu_a"},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/a","target":{"name":"operations"},"executable":"/target/1"}
{"reason":"compiler-artifact","manifest_path":"/b","target":{"name":"operations"},"executable":"/target/2"}
{"reason":"build-finished","success":true}"#;
        let program = |manifest: &str, bench| program_in(messages, Path::new(manifest), bench);
        assert_eq!(program("/a", "operations"), Some("/target/1".into()));
        assert_eq!(program("/b", "operations"), Some("/target/2".into()));
        assert_eq!(program("/b", "other"), None);
    }

    #[test]
    fn an_unknown_operation_is_named_beside_the_known_ones() {
        let known = || vec!["read".to_owned(), "sync".to_owned()];
        assert_eq!(chosen(known(), &[]).unwrap(), known());
        assert_eq!(chosen(known(), &["sync".to_owned()]).unwrap(), ["sync"]);
        let message = chosen(known(), &["synk".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(message.contains("`synk`; it has read, sync"), "{message}");
    }
}
