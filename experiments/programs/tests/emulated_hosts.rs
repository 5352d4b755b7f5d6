//! Emulated hosts, where this machine has what that takes.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

const HOSTS: &str = "
[[host]]
name = \"far.example\"
address = \"10.31.0.9\"
delay-ms = 20
rate-mbit = 10
";

struct Hosts(tempfile::NamedTempFile);

impl Hosts {
    /// Nothing where hosts cannot be emulated.
    fn new() -> Option<Hosts> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(HOSTS.as_bytes()).unwrap();
        let hosts = Hosts(file);
        let output = hosts.command(&["--check"]).output().unwrap();
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("not run: hosts cannot be emulated: {why}");
            return None;
        }
        Some(hosts)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_emulated-hosts"));
        command.arg(self.0.path()).args(words);
        command
    }
}

/// Whether a process has this word among its arguments.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap();
    processes.into_iter().any(|process| {
        let line = fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|argument| argument == word.as_bytes())
    })
}

fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_command_is_among_hosts_that_have_names_and_ends_as_it_ends() {
    let Some(hosts) = Hosts::new() else { return };
    let script = "getent hosts far.example; ip -o -4 address show dev link; exit 7";
    let output = hosts.command(&["--", "sh", "-c", script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(
        said.contains("10.31.0.9") && said.contains("10.31.0.1/16"),
        "{said}"
    );
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("far.example (20 ms, 10 Mbit/s)"), "{told}");
}

#[test]
fn a_way_there_and_back_takes_what_the_links_take() {
    let Some(hosts) = Hosts::new() else { return };
    // Nobody listens there, which it takes a way there and back to hear.
    let script = "exec 3<>/dev/tcp/far.example/9";
    let begun = Instant::now();
    let output = hosts
        .command(&["--", "bash", "-c", script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("refused"), "{said}");
    assert!(begun.elapsed() >= Duration::from_millis(40));
}

#[test]
fn nothing_is_left_when_it_is_killed() {
    let Some(hosts) = Hosts::new() else { return };
    let mark = (std::process::id() * 100 + 77).to_string();
    let script = format!("setsid sleep {mark} & sleep {mark}");
    let mut emulated = hosts
        .command(&["--", "sh", "-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| runs(&mark), "it runs");
    emulated.kill().unwrap();
    emulated.wait().unwrap();
    wait_until(|| !runs(&mark), "what ran among the hosts ends");
}

#[test]
fn mistakes_say_what_is_wrong() {
    let file = |text: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Hosts(file)
    };
    let slow = HOSTS.replace("rate-mbit = 10", "rate-mbit = 0");
    for (hosts, word, expected) in [
        (file("host = 1"), "--loopback", "invalid type"),
        (
            file(&slow),
            "--loopback",
            "above 0, and a delay not below: far.example",
        ),
        (
            file(HOSTS),
            "--lose=near.example,1,1",
            "no host near.example",
        ),
    ] {
        let output = hosts.command(&[word, "--", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_is_to_stay_on_a_processor_stays_there() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let ours = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let is_ours = |processor: &usize| ours.is_set(*processor).unwrap_or(false);
    let last = (0..CpuSet::count()).rev().find(is_ours).unwrap();
    write!(file, "processor = {last}\n{HOSTS}").unwrap();
    let script = "grep Cpus_allowed_list /proc/self/status";
    let output = Hosts(file)
        .command(&["--loopback", "--", "sh", "-c", script])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.split_whitespace().last(),
        Some(&*last.to_string()),
        "{said}"
    );
}
