//! The steps of `cargo xtask ci`, cheapest first.

use std::cmp::Reverse;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;

use super::harness::Harness;
use super::{Outcome, Pace, Step, Surroundings, examples};
use crate::metadata::{Package, Target};
use crate::{boot, built, cross, experiment, fuzz, goals, process, targets, tidy};

/// Where steps build that share nothing with the others.
const MINIMUM: &str = "target/minimum";
const LOOM: &str = "target/loom";
const MIRI: &str = "target/miri";
const THREAD: &str = "target/thread";
/// What is built for this machine by its name, where it is the most common one: with the
/// address sanitizer, and libraries of tests.
const SANITIZED: &str = "target/x86_64-unknown-linux-gnu";

/// Every step, in the order in which they run.
pub const ALL: &[Step] = &[
    Step {
        name: "format",
        checks: "every source is formatted as rustfmt does",
        pace: Pace::Works,
        run: format,
        leaves: &[],
    },
    Step {
        name: "tidy",
        checks: "the repository keeps its rules",
        pace: Pace::Works,
        run: tidy,
        leaves: &[],
    },
    Step {
        name: "clippy",
        checks: "no warning of the compiler or of clippy",
        pace: Pace::Works,
        run: clippy,
        leaves: &[],
    },
    Step {
        name: "test",
        checks: "the tests of all packages, documentation samples included",
        pace: Pace::Works,
        run: test,
        leaves: &["target/tmp", "target/tests"],
    },
    Step {
        name: "examples",
        checks: "every example runs and ends",
        pace: Pace::Works,
        run: |surroundings| examples::run(&surroundings.metadata),
        leaves: &[],
    },
    Step {
        name: "experiments",
        checks: "every experiment runs, and what holds on any machine holds",
        pace: Pace::Waits,
        run: |_| experiment::quick().map(|(passed, failed)| Outcome::named(passed, failed)),
        leaves: &[],
    },
    Step {
        name: "boot",
        checks: "the mediator works under systemd and with control groups of version 2",
        pace: Pace::Waits,
        run: boot,
        leaves: &["target/xtask/boot"],
    },
    Step {
        name: "docs",
        checks: "the documentation builds without a warning",
        pace: Pace::Fills,
        run: docs,
        leaves: &["target/doc"],
    },
    Step {
        name: "features",
        checks: "every feature builds alone, and so does none",
        pace: Pace::Fills,
        run: features,
        leaves: &[],
    },
    Step {
        name: "minimum",
        checks: "the crates build with the minimum Rust version",
        pace: Pace::Fills,
        run: minimum,
        leaves: &[MINIMUM],
    },
    Step {
        name: "loom",
        checks: "the model checker finds no interleaving that breaks what threads share",
        pace: Pace::Works,
        run: loom,
        leaves: &[LOOM],
    },
    Step {
        name: "miri",
        checks: "the unsafe code does nothing undefined",
        pace: Pace::Works,
        run: miri,
        leaves: &[MIRI, SANITIZED],
    },
    Step {
        name: "threads",
        checks: "no program in C or C++ has a data race, with the library or in it",
        pace: Pace::Works,
        run: threads,
        leaves: &[THREAD],
    },
    Step {
        name: "fuzz",
        checks: "no parser breaks on generated input, and the targets have no warning",
        pace: Pace::Works,
        run: fuzz,
        leaves: &["fuzz/target"],
    },
    Step {
        name: "cross",
        checks: "contexts, files and streams work on a machine of 32 bits",
        pace: Pace::Works,
        run: cross,
        leaves: &[],
    },
    Step {
        name: "goals",
        checks: "the goals that repeat on any machine are held",
        pace: Pace::Works,
        run: goals,
        leaves: &[],
    },
];

fn format(_: &Surroundings) -> Result<Outcome> {
    all([
        process::cargo(["fmt", "--all", "--check"]),
        process::cargo(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]),
    ])
}

fn tidy(_: &Surroundings) -> Result<Outcome> {
    tidy::outcome().map(|(passed, failed)| Outcome::counted(passed, failed))
}

fn clippy(_: &Surroundings) -> Result<Outcome> {
    let mut cargo = process::cargo(["clippy", "--workspace", "--all-targets"]);
    cargo.args(["--all-features", "--", "-D", "warnings"]);
    all([cargo])
}

/// Many a test waits or has one thread, so the test programs run side by side: as Cargo
/// would start them, which itself takes longer than many of them.
fn test(surroundings: &Surroundings) -> Result<Outcome> {
    let test = || {
        let mut cargo = process::cargo(["test", "--workspace", "--all-features"]);
        cargo.env(SEED, SEED_VALUE);
        cargo
    };
    let mut programs = built::tests(test())?;
    programs.sort_by_cached_key(|it| place(&it.name, &it.source));
    let mut samples = test();
    samples.args(["--doc", "--no-fail-fast"]);
    let in_package = |program: built::Program| {
        let package = surroundings.package(|it| it.manifest_path == program.manifest_path)?;
        Ok((program, package))
    };
    let programs = programs.into_iter().map(in_package);
    let start = |(program, package): &(built::Program, &Package)| {
        let mut command = program.start(package);
        command.env(SEED, SEED_VALUE);
        command
    };
    let ran = tests_side_by_side(&programs.collect::<Result<Vec<_>>>()?, start)?;
    Ok(tests(samples)?.and(ran))
}

/// A change is judged by what it changes, and not by cases that it is the first to meet;
/// runs by hand meet others each time.
const SEED: &str = "PROPTEST_RNG_SEED";
const SEED_VALUE: &str = "20021";

fn docs(_: &Surroundings) -> Result<Outcome> {
    // Libraries only: the program and the facade are both named `milieu`.
    let mut cargo = process::cargo(["doc", "--workspace", "--lib", "--no-deps", "--all-features"]);
    cargo.env("RUSTDOCFLAGS", "-Dwarnings");
    all_beside([cargo])
}

fn features(surroundings: &Surroundings) -> Result<Outcome> {
    let mut commands = Vec::new();
    for package in &surroundings.metadata.packages {
        let named = package.features.keys().filter(|name| *name != "default");
        let named: Vec<&String> = named.collect();
        if named.is_empty() {
            continue;
        }
        let check = || process::cargo(["check", "--no-default-features", "-p", &package.name]);
        commands.push(check());
        for feature in named {
            let mut cargo = check();
            cargo.args(["--features", feature]);
            commands.push(cargo);
        }
    }
    all_beside(commands)
}

fn minimum(surroundings: &Surroundings) -> Result<Outcome> {
    let libraries: Vec<_> = surroundings
        .metadata
        .packages
        .iter()
        .filter(|package| package.is_in("crates"))
        .collect();
    let Some(version) = libraries
        .iter()
        .find_map(|package| package.rust_version.as_ref())
    else {
        anyhow::bail!("no package states its minimum Rust version (`rust-version`)");
    };
    let toolchain = match version.matches('.').count() {
        1 => format!("{version}.0"),
        _ => version.clone(),
    };
    if !process::has_toolchain(&toolchain) {
        return Ok(Outcome::NotRun {
            lacks: format!("Rust {toolchain} is not installed"),
            remedy: format!("rustup toolchain install {toolchain} --profile minimal"),
        });
    }
    let mut cargo = process::cargo_of(&toolchain, ["check", "--all-features"]);
    for package in libraries {
        cargo.args(["--package", &package.name]);
    }
    cargo.env("CARGO_TARGET_DIR", MINIMUM);
    all_beside([cargo])
}

/// Each model of contexts is a process of its own: those that share one wait for each
/// other whenever the checker maps a stack.
fn loom(_: &Surroundings) -> Result<Outcome> {
    let test = |words: &Vec<String>| {
        let mut cargo = process::cargo(["test", "--profile", "models"]);
        cargo
            .args(words)
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", LOOM);
        cargo
    };
    let owned = |words: &[&str]| words.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    // Built together, so that what they share has one set of features.
    let packages = owned(&["-p", CONTEXT, "-p", "milieu-stream", "-p", "milieu-threads"]);
    let of = |words: &[&str]| [packages.clone(), owned(words)].concat();
    let list = of(&["--test", "loom", "--", "--list", "--format=terse"]);
    let list = process::output(test(&list))?;
    let models = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let models = models.map(|name| of(&["--test", "loom", "--", "--exact", name]));
    let models: Vec<_> = models.collect();
    anyhow::ensure!(!models.is_empty(), "{CONTEXT} has no models:\n{list}");
    let ran = tests_side_by_side(&models, test)?;
    Ok(ran.and(tests(test(&of(&["--lib"])))?))
}

/// The package of which all tests are run.
const CONTEXT: &str = "milieu-context";

/// Its tests that go the ways of others, with more text: for an interpreter they are
/// long, so they run under the address sanitizer unless [`INTERPRET_ALL`] is set.
const LONG: [&str; 4] = ["arrays", "defects", "namespaces", "semantics"];
const INTERPRET_ALL: &str = "MILIEU_MIRI";

/// Others that have a little unsafe code, and the tests that go there. They are named
/// together, so that what they share has one set of features and is built once. What is
/// known of a type is kept for as long as the program runs, so leaks are none.
const OTHERS: [&str; 3] = ["milieu-threads", "milieu-stream", "milieu-transfer"];
const OTHERS_TESTS: [&[&str]; 3] = [
    // Of the unit tests those of modules of `milieu-threads` with unsafe code.
    &[
        "--lib",
        "--",
        "promise::",
        "rung::",
        "run::",
        "stack::key",
        "stack::measure",
        "table::",
    ],
    &["--test", "queues"],
    &["--test", "described"],
];

/// Ask the system what Miri has no answer to: they run under the address sanitizer.
const NOT_INTERPRETED: (&[&str], &[&str]) = (
    &[CAPI, "milieu-threads"],
    // Without `stack_overflow`: the sanitizer has the signal and the alternate stack
    // for itself.
    &[
        "--lib",
        "--test",
        "boundary",
        "--test",
        "stack_measure",
        "--test",
        "stack_profile",
        "--test",
        "program",
    ],
);

/// Miri interprets on one processor, so the test programs run side by side.
fn miri(surroundings: &Surroundings) -> Result<Outcome> {
    if process::succeeds_silently(process::cargo_of("nightly", ["miri", "--version"])) {
        let test = |program: &Vec<String>| {
            let mut cargo = process::cargo_of("nightly", ["miri", "test"]);
            cargo.args(program).env("CARGO_TARGET_DIR", MIRI);
            if !program.iter().any(|it| it == CONTEXT) {
                // Files, clocks and time limits are those of the machine.
                cargo.env("MIRIFLAGS", "-Zmiri-ignore-leaks -Zmiri-disable-isolation");
            }
            cargo
        };
        let of = |packages: &[&str], programs: &[&str]| {
            let packages = packages.iter().flat_map(|package| ["-p", package]);
            let words = packages.chain(programs.iter().copied());
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut programs: Vec<_> = OTHERS_TESTS.map(|tests| of(&OTHERS, tests)).into();
        let context = surroundings.package(|it| it.name == CONTEXT)?;
        programs.push(of(&[CONTEXT], &["--lib"]));
        let interpret_all = std::env::var_os(INTERPRET_ALL).is_some();
        let mut long = Vec::new();
        for test in integration_tests(context) {
            if !interpret_all && LONG.contains(&test[1].as_str()) {
                long.extend(test);
            } else {
                programs.push([of(&[CONTEXT], &[]), test].concat());
            }
        }
        // The first names unit tests after its targets, so it comes last.
        let targets = OTHERS_TESTS.iter().rev().copied().flatten().copied();
        let targets: Vec<_> = targets.take_while(|it| *it != "--").collect();
        let built = [of(&[CONTEXT], &["--lib", "--tests"]), of(&OTHERS, &targets)];
        let only_built = |programs| test(&[vec!["--no-run".to_owned()], programs].concat());
        let built = all(built.into_iter().map(only_built))?;
        if built != Outcome::of(true) {
            return Ok(built);
        }
        let ran = tests_side_by_side(&programs, test)?;
        let (mut packages, mut programs) = (NOT_INTERPRETED.0.to_vec(), NOT_INTERPRETED.1.to_vec());
        if !long.is_empty() {
            packages.push(CONTEXT);
            programs.extend(long.iter().map(String::as_str));
        }
        return Ok(ran.and(sanitized(&packages, &programs)?));
    }
    eprintln!(
        "Miri is not installed (rustup toolchain install nightly --component miri,rust-src); \
         the address sanitizer stands in for it"
    );
    let mut outcome = sanitized(&[CONTEXT], &["--lib", "--tests"])?;
    for tests in OTHERS_TESTS {
        outcome = outcome.and(sanitized(&OTHERS, tests)?);
    }
    Ok(outcome.and(sanitized(NOT_INTERPRETED.0, NOT_INTERPRETED.1)?))
}

/// Runs tests of packages under the address sanitizer.
fn sanitized(packages: &[&str], programs: &[&str]) -> Result<Outcome> {
    let host = fuzz::host()?;
    let mut test = process::cargo(["test", "--no-fail-fast", "--target", &host]);
    for package in packages {
        test.args(["-p", package]);
    }
    test.args(programs)
        // The sanitizers are in the stable compiler too, behind this door.
        .env("RUSTC_BOOTSTRAP", "1")
        // With a target named, this spares build scripts and macros, which are there.
        .env("RUSTFLAGS", "-Zsanitizer=address")
        // Leaks are meant; and what stands in a frame shall stand on the stack.
        .env(
            "ASAN_OPTIONS",
            "detect_leaks=0:detect_stack_use_after_return=0",
        );
    tests(test)
}

/// The package of which programs in C and C++ are run, and its tests that run none,
/// or none with what the library does.
const CAPI: &str = "milieu-capi";
const WITHOUT_PROGRAMS: [&str; 6] = ["abi", "boundary", "compilers", "guide", "layout", "refused"];

/// The sanitizer for threads has to know everything that orders threads, so the
/// standard library is built with it, too.
fn threads(surroundings: &Surroundings) -> Result<Outcome> {
    if !process::has_source("nightly") {
        return Ok(Outcome::NotRun {
            lacks: "the nightly compiler's standard library is not here as source".to_owned(),
            remedy: "rustup toolchain install nightly --profile minimal --component rust-src"
                .to_owned(),
        });
    }
    if !process::has_program("cc") {
        return Ok(Outcome::NotRun {
            lacks: "there is no C compiler".to_owned(),
            remedy: "apt-get install build-essential clang libclang-rt-dev".to_owned(),
        });
    }
    let host = fuzz::host()?;
    let test = |programs: &Vec<String>| {
        let mut cargo = process::cargo_of("nightly", ["test", "-Zbuild-std", "--target", &host]);
        // Without backtraces, which take the standard library more packages.
        cargo.arg("-Zbuild-std-features=panic-unwind");
        // As it is by default: without servers and brokers.
        cargo.args(["-p", CAPI, "--no-fail-fast"]);
        cargo
            .args(programs)
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("CARGO_TARGET_DIR", THREAD)
            // The tests build their programs alike.
            .env("MILIEU_SANITIZER", "thread");
        cargo
    };
    let mut programs = integration_tests(surroundings.package(|it| it.name == CAPI)?);
    programs.retain(|it| !WITHOUT_PROGRAMS.contains(&it[1].as_str()));
    let built = all([test(
        &[&["--no-run".to_owned()], &*programs.concat()].concat(),
    )])?;
    if built != Outcome::of(true) {
        return Ok(built);
    }
    tests_side_by_side(&programs, test)
}

fn fuzz(surroundings: &Surroundings) -> Result<Outcome> {
    if !process::has_program("c++") {
        return Ok(Outcome::NotRun {
            lacks: "libFuzzer is built by a C++ compiler, which is not here".to_owned(),
            remedy: "apt-get install g++".to_owned(),
        });
    }
    let (passed, failed) = fuzz::short_round(surroundings.fuzz_seconds)?;
    Ok(Outcome::named(passed, failed))
}

/// Of the machines the one that costs least: most kernels run its programs as
/// they are. `cargo xtask cross` has the others.
fn cross(_: &Surroundings) -> Result<Outcome> {
    let outcome = cross::on(targets::named("i386")?, cross::PACKAGES, true, false)?;
    Ok(match outcome.lacks() {
        Some((lacks, remedy)) => Outcome::NotRun { lacks, remedy },
        None => Outcome::counted(outcome.passed, outcome.failed),
    })
}

/// Without what runs as well on this machine.
fn boot(_: &Surroundings) -> Result<Outcome> {
    if let Some((lacks, remedy)) = boot::lacks() {
        return Ok(Outcome::NotRun { lacks, remedy });
    }
    let outcome = boot::boot(false, true)?;
    Ok(Outcome::Tests {
        passed: outcome.passed,
        failed: outcome.failed,
        failures: outcome.failures,
    })
}

fn goals(_: &Surroundings) -> Result<Outcome> {
    if !process::has_program("valgrind") {
        return Ok(Outcome::NotRun {
            lacks: "instructions are counted by valgrind, which is not here".to_owned(),
            remedy: "apt-get install valgrind".to_owned(),
        });
    }
    let (passed, failed) = goals::repeatable()?;
    Ok(Outcome::counted(passed, failed))
}

/// Runs all of them, also after one has failed.
fn all(commands: impl IntoIterator<Item = Command>) -> Result<Outcome> {
    each(commands, |mut command| {
        eprintln!("$ {}", process::display(&command));
        Ok(command.status()?.success())
    })
}

/// The same where other steps print, too.
fn all_beside(commands: impl IntoIterator<Item = Command>) -> Result<Outcome> {
    each(commands, |command| {
        Ok(process::whole(command)?.status.success())
    })
}

fn each(
    commands: impl IntoIterator<Item = Command>,
    succeeds: impl Fn(Command) -> Result<bool>,
) -> Result<Outcome> {
    let mut failures = Vec::new();
    for command in commands {
        let shown = process::display(&command);
        if !succeeds(command)? {
            failures.push(shown);
        }
    }
    Ok(match failures.len() {
        0 => Outcome::of(true),
        _ => Outcome::Tests {
            passed: 0,
            failed: 1,
            failures,
        },
    })
}

/// Tests that wait for compilers, or repeat what they measure: from the longest to a
/// quarter of a minute.
const LONG_TESTS: [&str; 21] = [
    "dist",
    "weather_station_cpp",
    "streams",
    "bench_known",
    "abi",
    "ui",
    "foreign",
    "cpp",
    "worlds",
    "acts",
    "c",
    "integration",
    "cases",
    "threads",
    "model",
    "sources",
    "guide",
    "refused",
    "durability",
    "compile_fail",
    "compilers",
];

/// In which order tests run: first those that take the longest and then those with the
/// largest source, as the short ones fill what is left.
fn place(name: &str, source: &Path) -> (usize, Reverse<u64>) {
    let place = LONG_TESTS.iter().position(|it| *it == name);
    let bytes = std::fs::metadata(source).map_or(0, |file| file.len());
    (place.unwrap_or(LONG_TESTS.len()), Reverse(bytes))
}

/// What tells Cargo the integration tests of a package, in their order.
fn integration_tests(package: &Package) -> Vec<Vec<String>> {
    let mut targets: Vec<_> = package.targets_of("test").collect();
    targets.sort_by_cached_key(|it| place(&it.name, &it.src_path));
    let option = |it: &Target| vec!["--test".to_owned(), it.name.clone()];
    targets.into_iter().map(option).collect()
}

/// Runs test programs, each by its command, on all processors and counts their tests.
fn tests_side_by_side<T: Sync>(
    programs: &[T],
    command: impl Fn(&T) -> Command + Sync,
) -> Result<Outcome> {
    let run = |program: &T| -> Result<(String, Output)> {
        let command = command(program);
        let shown = process::display(&command);
        Ok((shown, process::whole(command)?))
    };
    let mut ran = Outcome::counted(0, 0);
    for ended in process::side_by_side(programs, run) {
        let (shown, output) = ended?;
        let mut harness = Harness::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            harness.line(line);
        }
        // A program that ended early may have said why where no harness looks.
        let error = String::from_utf8_lossy(&output.stderr);
        let shown = format!("{shown}: {}\n{}", output.status, process::tail(&error));
        ran = ran.and(harness.outcome(output.status.success(), &shown));
    }
    Ok(ran)
}

/// Runs a command that runs tests and counts them.
fn tests(command: Command) -> Result<Outcome> {
    let shown = process::display(&command);
    eprintln!("$ {shown}");
    let mut harness = Harness::default();
    let status = process::pass_through(command, |line| harness.line(line))?;
    Ok(harness.outcome(status.success(), &format!("{shown}: {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_commands_run_after_one_has_failed() {
        let log = process::scratch("test").unwrap().join("later");
        std::fs::write(&log, "").unwrap();
        let shell = |script: String| {
            let mut shell = process::command("sh");
            shell.args(["-c", &script]);
            shell
        };
        let outcome = all([
            shell("exit 1".to_owned()),
            shell(format!("echo later > '{}'", log.display())),
        ]);
        let failures = vec!["sh -c 'exit 1'".to_owned()];
        assert_eq!(
            outcome.unwrap(),
            Outcome::Tests {
                passed: 0,
                failed: 1,
                failures
            }
        );
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "later\n");
    }
}
