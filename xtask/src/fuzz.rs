//! `cargo xtask fuzz`: libFuzzer on everything that reads what others wrote.
//!
//! The targets are the programs in `fuzz/fuzz_targets`, one for each parser.
//! They are built with the coverage that libFuzzer needs and with the address
//! sanitizer, which also lets it see what texts are compared with; all of that
//! is in the stable toolchain, so no further tool is needed. `cargo fuzz` of
//! those who have it works on the same folder. A short round does without the
//! sanitizer, which takes longer to build than the round to run: the little code
//! that is unsafe has tests of its own under it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// What makes a program one that libFuzzer can steer.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// What finds wrong accesses to memory as well.
const SANITIZER: &str = "-Zsanitizer=address";

/// For a few seconds a target: the compiler's time is more than what it saves.
const SHORT: [&str; 4] = [
    "--config",
    "profile.release.opt-level = 1",
    "--config",
    "profile.release.package.\"*\".opt-level = 0",
];

/// The compiler that lints the targets as it builds them, which spares a build for it.
const LINTING: &str = "clippy-driver";

/// Feed the parsers with generated input for a while.
///
/// What was found stays in fuzz/corpus for the next run; an input that breaks
/// something is kept in fuzz/artifacts, and the way to repeat it is printed.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these targets.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Run one target on this input alone, as to repeat a failure.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Print the targets, one a line.
    #[arg(long)]
    list: bool,
}

/// Runs the targets; `false` if one of them found something.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let known = targets()?;
    if let Some(unknown) = arguments.targets.iter().find(|name| !known.contains(name)) {
        bail!(
            "there is no target `{unknown}`; there are {}",
            known.join(", ")
        );
    }
    let chosen: Vec<&String> = known
        .iter()
        .filter(|name| arguments.targets.is_empty() || arguments.targets.contains(name))
        .collect();
    if arguments.list {
        for target in chosen {
            process::print(&format!("{target}\n"))?;
        }
        return Ok(true);
    }
    build(building(&[COVERAGE, &[SANITIZER]].concat())?)?;
    if let Some(input) = &arguments.input {
        let [target] = chosen[..] else {
            bail!("an input belongs to one target: name it");
        };
        let input = std::path::absolute(input)?;
        return Ok(program(target)?.arg(input).status()?.success());
    }
    let (_, failed) = each(&chosen, arguments.seconds, None)?;
    Ok(failed.is_empty())
}

/// Lints and builds all targets and runs them, which takes so many seconds together;
/// how many passed, which failed.
pub fn short_round(seconds: u64) -> Result<(u64, Vec<String>)> {
    let mut cargo = building(&[COVERAGE, &["-Dwarnings"]].concat())?;
    cargo.args(SHORT).env("RUSTC_WORKSPACE_WRAPPER", LINTING);
    build(cargo)?;
    let targets = targets()?;
    let each_takes = share(seconds, targets.len(), process::processors());
    // A change is judged by what it changes: runs by hand meet other inputs.
    let seed = Some(20021);
    each(&targets.iter().collect::<Vec<_>>(), each_takes, seed)
}

/// How many whole seconds each target has when all of them, so many at once,
/// shall end after `seconds`; one at least.
fn share(seconds: u64, targets: usize, at_once: usize) -> u64 {
    let turns = targets.div_ceil(at_once).max(1) as u64;
    (seconds / turns).max(1)
}

fn each(targets: &[&String], seconds: u64, seed: Option<u32>) -> Result<(u64, Vec<String>)> {
    let mut passed = 0;
    let mut failed = Vec::new();
    let found = process::side_by_side(targets, |target| one(target, seconds, seed));
    for (target, success) in targets.iter().zip(found) {
        if success? {
            passed += 1;
        } else {
            eprintln!(
                "{target} found something; repeat it with `cargo xtask fuzz {target} --input FILE`, \
                 the file named above; keep the file in fuzz/seeds/{target} once it is mended"
            );
            failed.push((*target).clone());
        }
    }
    Ok((passed, failed))
}

/// The names of the programs, from their sources.
fn targets() -> Result<Vec<String>> {
    let folder = folder().join("fuzz_targets");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_source = path.extension()? == "rs";
            is_source.then(|| path.file_stem()?.to_str().map(str::to_owned))?
        })
        .collect();
    names.sort();
    Ok(names)
}

/// What builds the targets, by a compiler that is told this.
fn building(flags: &[&str]) -> Result<Command> {
    let mut cargo = process::cargo(["build", "--quiet", "--release"]);
    cargo
        .arg("--manifest-path")
        .arg(folder().join("Cargo.toml"))
        // With a target named, these options spare build scripts and macros.
        .args(["--target", &host()?])
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        // The stable compiler has the sanitizer too, behind this door.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", folder().join("target"));
    Ok(cargo)
}

fn build(mut cargo: Command) -> Result<()> {
    eprintln!("building the fuzz targets");
    if cargo.status()?.success() {
        Ok(())
    } else {
        bail!("the fuzz targets do not build")
    }
}

fn one(target: &str, seconds: u64, seed: Option<u32>) -> Result<bool> {
    eprintln!("fuzzing: {target} for {seconds} s");
    let corpus = folder().join("corpus").join(target);
    let artifacts = folder().join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut fuzzer = program(target)?;
    fuzzer.arg(&corpus);
    let seeds = folder().join("seeds").join(target);
    if seeds.is_dir() {
        fuzzer.arg(seeds);
    }
    let dictionary = folder().join("dictionaries").join(format!("{target}.dict"));
    if dictionary.is_file() {
        fuzzer.arg(format!("-dict={}", dictionary.display()));
    }
    if let Some(seed) = seed {
        fuzzer.arg(format!("-seed={seed}"));
    }
    let log = artifacts.join("log");
    fuzzer
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        // An input that takes seconds or gigabytes is a finding too.
        .args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"])
        .args(["-print_final_stats=1", "-verbosity=0", "-detect_leaks=0"])
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .stderr(std::fs::File::create(&log)?);
    let success = fuzzer.status()?.success();
    let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
    if success {
        let inputs = executed(&text).unwrap_or("unknown");
        eprintln!("fuzzed: {target} with {inputs} inputs");
    } else {
        eprintln!("{}", failure(&text));
    }
    Ok(success)
}

/// How many inputs a run says that it has tried.
fn executed(log: &str) -> Option<&str> {
    log.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .map(str::trim)
}

/// What a log says of a failure: the panic or the sanitizer's report without its
/// frames below, and the file that has the input.
fn failure(log: &str) -> String {
    let begins = |line: &&str| line.contains("panicked at") || line.contains("ERROR: ");
    let report = log.lines().skip_while(|line| !begins(line)).take(40);
    let kept = log.lines().filter(|line| line.contains("unit written to"));
    report.chain(kept).collect::<Vec<_>>().join("\n")
}

fn program(target: &str) -> Result<Command> {
    let path = folder()
        .join("target")
        .join(host()?)
        .join("release")
        .join(target);
    Ok(process::command(&path.to_string_lossy()))
}

fn folder() -> PathBuf {
    process::root().join(Path::new("fuzz"))
}

/// The triple of this machine, as `rustc` names it.
pub fn host() -> Result<String> {
    let mut rustc = process::command("rustc");
    rustc.arg("-vV");
    process::output(rustc)?
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("`rustc -vV` names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_for_its_count_and_its_failure() {
        let log = "INFO: Seed\nstat::number_of_executed_units: 56575\n";
        assert_eq!(executed(log), Some("56575"));
        let frames = "    #0 frame\n".repeat(100);
        let log = format!(
            "INFO: Seed\nthread 'main' panicked at src/a.rs:1:\nleft != right\n{frames}\
             artifact_prefix='a/'; Test unit written to a/crash-1\n"
        );
        let shown = failure(&log);
        assert!(shown.starts_with("thread 'main' panicked at src/a.rs:1:\nleft != right\n"));
        assert!(shown.ends_with("written to a/crash-1"), "{shown}");
        assert!(shown.lines().count() < 50);
    }

    #[test]
    fn the_seconds_are_shared_by_the_targets() {
        assert_eq!(share(100, 9, 2), 20);
        assert_eq!(share(100, 20, 2), 10);
        assert_eq!(share(100, 2, 8), 100);
        assert_eq!(share(5, 20, 2), 1);
    }

    #[test]
    fn every_target_is_declared_and_has_seeds() {
        let manifest = std::fs::read_to_string(folder().join("Cargo.toml")).unwrap();
        for target in targets().unwrap() {
            assert!(
                manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")),
                "fuzz/Cargo.toml has no [[bin]] for {target}"
            );
            let seeds = folder().join("seeds").join(&target);
            assert!(
                std::fs::read_dir(&seeds).is_ok_and(|mut files| files.next().is_some()),
                "{} has no seed",
                seeds.display()
            );
        }
    }
}
