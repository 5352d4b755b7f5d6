//! `cargo xtask boot`: tests that this machine cannot run, in one that is booted for them.
//!
//! It has a kernel of its own, systemd, and control groups of version 2 alone, and is
//! emulated, processors and all. Debian's packages are what it is made of; they stay
//! below the folder of the build, and nothing is written but there. `xtask/boot` is what
//! runs inside.

mod image;
mod programs;

use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// Boot a machine with systemd and control groups of version 2, and run tests there.
#[derive(clap::Args)]
pub struct Arguments {
    /// Make its disk anew, of the packages of today.
    #[arg(long)]
    anew: bool,
    /// Of the test programs only those that are about control groups.
    #[arg(long)]
    short: bool,
}

/// What runs programs of the machine, and in what package it is.
const NEEDED: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("mmdebstrap", "mmdebstrap"),
    ("genext2fs", "genext2fs"),
    ("strip", "binutils"),
    ("gcc", "gcc"),
];

/// Far more than it takes, on a machine that does much else.
const SECONDS_MAX: &str = "900";

/// What `timeout` says where it has ended a program.
const TIMED_OUT: i32 = 124;

/// How the tests went.
#[derive(Default, Debug, PartialEq)]
pub struct Outcome {
    pub passed: u64,
    pub failed: u64,
    /// Those that have names.
    pub failures: Vec<String>,
    is_done: bool,
    has_hung: bool,
}

/// Boots and tests; `false` if something failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if let Some((lacks, remedy)) = lacks() {
        eprintln!("not booted, as {lacks}; this line does it: {remedy}");
        return Ok(false);
    }
    let outcome = boot(arguments.anew, arguments.short)?;
    for failure in &outcome.failures {
        process::print(&format!("failed: {failure}\n"))?;
    }
    let (passed, failed) = (outcome.passed, outcome.failed);
    process::print(&format!("{passed} passed, {failed} failed\n"))?;
    Ok(failed == 0)
}

/// What keeps this machine from doing it, with the command that mends it.
pub fn lacks() -> Option<(String, String)> {
    if image::release().is_none() || !cfg!(target_arch = "x86_64") {
        return Some((
            "the machine is made of Debian's packages for amd64, as this one is not".to_owned(),
            "sudo mmdebstrap bookworm debian && sudo chroot debian".to_owned(),
        ));
    }
    let missing = NEEDED.iter().filter(|it| !process::has_program(it.0));
    let packages: Vec<&str> = missing.map(|it| it.1).collect();
    if packages.is_empty() {
        return None;
    }
    let packages = packages.join(" ");
    Some((
        format!("{packages} is not installed"),
        format!("sudo apt-get install -y --no-install-recommends {packages}"),
    ))
}

/// Makes the machine, if there is none, and tests in it.
pub fn boot(anew: bool, short: bool) -> Result<Outcome> {
    let folder = process::scratch("boot")?;
    // Packages come from elsewhere, mostly; programs are built meanwhile.
    std::thread::scope(|scope| {
        let image = scope.spawn(|| image::make(&folder, anew));
        let programs = programs::make(&folder, short);
        let image = image.join().unwrap_or_else(|panic| resume_unwind(panic));
        programs.and(image)
    })?;
    let first = run_machine(&folder)?;
    if !first.is_of_the_emulator() {
        return Ok(first);
    }
    eprintln!("{}\nbooted once more", first.failures.join("\n"));
    run_machine(&folder)
}

/// Boots it, until it has ended. That it has not come to its end is a failure as well.
fn run_machine(folder: &Path) -> Result<Outcome> {
    let console = folder.join("console");
    let machine = machine(folder, &console);
    eprintln!("$ {}", process::display(&machine));
    let mut outcome = Outcome::default();
    let status = process::pass_through(machine, |line| outcome.take(line))?;
    outcome.has_hung = status.code() == Some(TIMED_OUT);
    if !outcome.is_done {
        let said = std::fs::read(&console).unwrap_or_default();
        let said = process::tail(&String::from_utf8_lossy(&said));
        outcome.fails(format!(
            "the machine has not come to its end ({status}); its kernel said last:\n{said}"
        ));
    }
    Ok(outcome)
}

/// The emulator. Its first serial line is the kernel's, its second what the tests say.
fn machine(folder: &Path, console: &Path) -> Command {
    let mut machine = process::command("timeout");
    machine.args([
        SECONDS_MAX,
        "qemu-system-x86_64",
        "-nodefaults",
        "-no-user-config",
    ]);
    // The machine is the same wherever it is booted. In qemu 7.2 an exchange of 16 bytes
    // may destroy the flags, interrupts among them.
    machine.args(["-accel", "tcg,thread=multi", "-cpu", "qemu64,-cx16,-svm"]);
    machine.args(["-smp", "2", "-m", "1024", "-display", "none", "-no-reboot"]);
    machine
        .arg("-kernel")
        .arg(folder.join(image::KERNEL))
        .args([
            "-append",
            "root=/dev/nvme0n1 rw console=ttyS0 quiet panic=-1 systemd.getty_auto=no",
        ]);
    // The kernel reads the first without further drivers, and nothing is written to them.
    // They are of two kinds, as two of one kind are found in any order.
    for (name, device) in [
        (image::ROOT, "nvme,serial=root"),
        (programs::DISK, "virtio-blk-pci"),
    ] {
        let path = folder.join(name);
        let path = path.display();
        machine.arg("-drive");
        machine.arg(format!(
            "file={path},format=raw,if=none,snapshot=on,id={name}"
        ));
        machine.args(["-device", &format!("{device},drive={name}")]);
    }
    machine
        .arg("-serial")
        .arg(format!("file:{}", console.display()));
    machine.args(["-serial", "stdio"]);
    machine
}

impl Outcome {
    /// Takes in a line that the machine has said.
    fn take(&mut self, line: &str) {
        if let Some((passed, failed)) = process::test_counts(line) {
            self.passed += passed;
            self.failed += failed;
        } else if let Some(test) = failed_test(line) {
            self.failures.push(test.to_owned());
        } else if line.starts_with("ok ") {
            self.passed += 1;
        } else if let Some(check) = line.strip_prefix("failed ") {
            self.fails(check.to_owned());
        }
        self.is_done |= line == "done";
    }

    /// Whether all that has failed is that the machine ended by itself, early: the emulator's
    /// doing, or of the kernel in it. One that hangs may have been starved by what is tested.
    fn is_of_the_emulator(&self) -> bool {
        !self.is_done && !self.has_hung && self.failed == 1 && self.failures.len() == 1
    }

    fn fails(&mut self, what: String) {
        self.failed += 1;
        self.failures.push(what);
    }
}

/// The name of a test that a test program says has failed.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_and_tests_are_counted_and_named() {
        let mut outcome = Outcome::default();
        for line in [
            "ok it starts",
            "failed it stops: because",
            "test a::b ... FAILED",
            "test a::c ... ok",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored",
            "something else",
            "done",
        ] {
            outcome.take(line);
        }
        assert_eq!(
            outcome,
            Outcome {
                passed: 2,
                failed: 2,
                failures: vec!["it stops: because".to_owned(), "a::b".to_owned()],
                is_done: true,
                has_hung: false,
            }
        );
    }

    #[test]
    fn what_has_failed_before_the_machine_ended_is_not_the_emulators() {
        let ended_after = |lines: &[&str], has_hung| {
            let mut outcome = Outcome {
                has_hung,
                ..Outcome::default()
            };
            lines.iter().for_each(|line| outcome.take(line));
            outcome.fails("it has not come to its end".to_owned());
            outcome.is_of_the_emulator()
        };
        assert!(ended_after(&["ok it starts", "test a::c ... ok"], false));
        assert!(!ended_after(&["ok it starts"], true));
        assert!(!ended_after(&["failed it stops: because"], false));
        // The harness had not said so of the whole program yet.
        assert!(!ended_after(&["test a::b ... FAILED"], false));
        let result = "test result: FAILED. 1 passed; 1 failed; 0 ignored";
        assert!(!ended_after(&[result], false));
    }
}
