//! `cargo xtask cross`: what is for small machines is built for them, and its
//! tests run in an emulator of processes, or as they are where the kernel can.

mod programs;

use std::process::Command;

use anyhow::Result;

use crate::linker;
use crate::process;
use crate::table::{self, Align};
use crate::targets::{self, Target};

/// Build for other machines and run the tests in an emulator.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only for these: i386, armhf, arm64, riscv64.
    #[arg(long, value_name = "MACHINE")]
    target: Vec<String>,
    /// Only these packages, such as `milieu-context`.
    #[arg(short, long, value_name = "PACKAGE")]
    package: Vec<String>,
    /// Leave out integration tests, which take most of the time; the programs in
    /// C and C++ run.
    #[arg(long)]
    short: bool,
    /// Build the tests, and run none.
    #[arg(long)]
    no_run: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    /// Print what is not run, and why.
    #[arg(long)]
    list: bool,
}

/// What small machines have.
pub const PACKAGES: &[&str] = &[
    "milieu-keys",
    "milieu-expressions",
    "milieu-transfer",
    "milieu-context",
    "milieu-store",
    "milieu-stream",
    THREADS,
    CAPI,
];

/// Its tests run one after the other on an emulated machine: while a thread maps memory,
/// what qemu-user says in `/proc/self/maps` may lack mappings that are there.
const THREADS: &str = "milieu-threads";

/// Its other tests compile programs for this machine.
const CAPI: &str = "milieu-capi";

/// A test that says nothing on an emulated machine.
struct Skip {
    /// The name, or how it begins.
    test: &'static str,
    /// Whether only an emulator keeps it from running.
    emulated: bool,
    why: &'static str,
}

const NO_TRIAL: &str =
    "tries rungs in a child that has the parent's memory, which qemu-user does not have";

const NO_GROWTH: &str = "maps memory that the kernel makes larger, as qemu-user does not";

const SKIPS: &[Skip] = &[
    Skip {
        test: "mistakes_are_found_when_the_program_is_compiled",
        emulated: false,
        why: "it is about the compiler, which is this machine's, and runs there",
    },
    Skip {
        test: "trace::of_",
        emulated: true,
        why: "stops a process at its system calls by ptrace, which qemu-user does not have",
    },
    Skip {
        test: "with_a_limit_threads_return_without_a_privilege",
        emulated: true,
        why: "starts its own program once more, which without the emulator is none",
    },
    Skip {
        test: "every_rung_says_whether_it_works_and_what_would_help",
        emulated: true,
        why: NO_TRIAL,
    },
    Skip {
        test: "rung::tests::threads_that_the_program_runs_in_real_time_are_left_alone",
        emulated: true,
        why: NO_TRIAL,
    },
    Skip {
        test: "without_a_privilege_threads_are_lazy_from_the_beginning",
        emulated: true,
        why: NO_TRIAL,
    },
    Skip {
        test: "stack::arena::tests::nobody_has_what_another_has",
        emulated: true,
        why: NO_GROWTH,
    },
    Skip {
        test: "stack::arena::tests::stacks_",
        emulated: true,
        why: NO_GROWTH,
    },
    Skip {
        test: "stack::arena::tests::what_",
        emulated: true,
        why: NO_GROWTH,
    },
];

/// How the tests went on one machine.
pub struct Outcome {
    target: &'static Target,
    /// What is missing here, and what installs it.
    lacks: Option<(String, String)>,
    pub passed: u64,
    pub failed: u64,
}

/// Builds and runs; `false` where a test fails.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.list {
        for skip in SKIPS {
            process::print(&format!("{}: {}\n", skip.test, skip.why))?;
        }
        return Ok(true);
    }
    let named = arguments.target.iter().map(|name| targets::named(name));
    let mut chosen: Vec<&Target> = named.collect::<Result<_>>()?;
    if chosen.is_empty() {
        chosen = targets::ALL.iter().filter(|it| !it.is_here()).collect();
    }
    let mut packages: Vec<&str> = arguments.package.iter().map(String::as_str).collect();
    if packages.is_empty() {
        packages = PACKAGES.to_vec();
    }
    let mut outcomes = Vec::new();
    for target in chosen {
        let outcome = on(target, &packages, arguments.short, arguments.no_run)?;
        if arguments.json {
            process::print(&format!("{}\n", outcome.json()))?;
        }
        outcomes.push(outcome);
    }
    if !arguments.json {
        process::print(&shown(&outcomes))?;
    }
    Ok(outcomes
        .iter()
        .all(|it| it.failed == 0 && it.lacks.is_none()))
}

/// Builds for one machine and runs the tests.
pub fn on(
    target: &'static Target,
    packages: &[&str],
    short: bool,
    no_run: bool,
) -> Result<Outcome> {
    let mut outcome = Outcome {
        target,
        lacks: target
            .lacks(!no_run)
            .or_else(|| target.lacks_start().filter(|_| !short && !no_run)),
        passed: 0,
        failed: 0,
    };
    if let Some((lacks, remedy)) = &outcome.lacks {
        eprintln!(
            "{}: not run, as {lacks}; this line does it: {remedy}",
            target.name
        );
        return Ok(outcome);
    }
    let is_alone = |it: &&str| match *it {
        THREADS => !target.runs_here(),
        CAPI => !short,
        _ => false,
    };
    let (alone, together): (Vec<&str>, Vec<&str>) = packages.iter().partition(|it| is_alone(it));
    let alone = alone.chunks(1).map(<[&str]>::to_vec);
    // What is built by one command is built with the same features, and only once.
    for packages in alone.chain([together]).filter(|it| !it.is_empty()) {
        let has_capi = packages.contains(&CAPI);
        let which: &[&str] = match (has_capi, short) {
            (true, _) => &["--lib", "--test", "boundary", "--test", "layout"],
            (false, true) => &["--lib"],
            (false, false) => &["--lib", "--tests"],
        };
        outcome.test(&packages, which, no_run)?;
        if has_capi {
            let mut build = cargo("build", &packages, which);
            build_with(target, &mut build)?;
            process::output(build)?;
            let (passed, failed) = programs::run(target, no_run)?;
            outcome.passed += passed;
            outcome.failed += failed;
        }
    }
    Ok(outcome)
}

/// Tells Cargo to do this with these targets of packages.
fn cargo(what: &str, packages: &[&str], which: &[&str]) -> Command {
    let mut cargo = process::cargo([what]);
    cargo.args(which);
    for package in packages {
        cargo.args(["-p", package]);
    }
    cargo
}

/// Tells Cargo to build for it, alike whatever is built, so that nothing is built twice.
fn build_with(target: &Target, cargo: &mut Command) -> Result<()> {
    target.build_with(cargo);
    let flags = linker::fast();
    let flags: Vec<_> = flags.iter().map(|it| format!("-Clink-arg={it}")).collect();
    cargo.env("RUSTFLAGS", flags.join(" "));
    if !target.runs_here() {
        // Emulation takes longer than compiling.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    }
    // Lines of code in backtraces are not worth their megabytes here.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
    Ok(())
}

impl Outcome {
    /// Builds and runs these tests of packages.
    fn test(&mut self, packages: &[&str], which: &[&str], no_run: bool) -> Result<()> {
        let mut cargo = cargo("test", packages, which);
        cargo.arg("--no-fail-fast");
        build_with(self.target, &mut cargo)?;
        if no_run {
            cargo.arg("--no-run");
        }
        cargo.arg("--");
        let emulated = !self.target.runs_here();
        if emulated && packages.contains(&THREADS) {
            cargo.arg("--test-threads=1");
        }
        for skip in SKIPS.iter().filter(|skip| emulated || !skip.emulated) {
            cargo.args(["--skip", skip.test]);
        }
        eprintln!("$ {}", process::display(&cargo));
        let status = process::pass_through(cargo, |line| {
            if let Some((passed, failed)) = process::test_counts(line) {
                self.passed += passed;
                self.failed += failed;
            }
        })?;
        if !status.success() {
            // What did not build has failed as well.
            self.failed = self.failed.max(1);
        }
        Ok(())
    }

    /// What keeps this machine from doing it, with the command that mends it.
    pub fn lacks(&self) -> Option<(String, String)> {
        self.lacks.clone()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.target.name,
            "passed": self.passed,
            "failed": self.failed,
            "lacks": self.lacks.as_ref().map(|(lacks, _)| lacks),
        })
    }
}

fn shown(outcomes: &[Outcome]) -> String {
    let columns = [
        ("machine", Align::Left),
        ("passed", Align::Right),
        ("failed", Align::Right),
        ("", Align::Left),
    ];
    let row = |outcome: &Outcome| {
        let remark = match &outcome.lacks {
            Some((lacks, _)) => format!("not run: {lacks}"),
            None if outcome.target.runs_here() => "not emulated".to_owned(),
            None => outcome.target.emulator.to_owned(),
        };
        vec![
            outcome.target.name.to_owned(),
            outcome.passed.to_string(),
            outcome.failed.to_string(),
            remark,
        ]
    };
    let rows: Vec<_> = outcomes.iter().map(row).collect();
    table::render(&columns, &rows)
}
