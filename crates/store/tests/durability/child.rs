//! Processes that a test starts: this program once more, in another role.
//!
//! A child says lines on its standard error, each with one system call, so that
//! a line is said whole or not at all; it waits for its parent by reading a line.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStderr, ChildStdin, Command, Stdio};

/// Names the role; without it, this is not a child.
const ROLE: &str = "MILIEU_TEST_ROLE";

/// What the role is about.
const ARGUMENTS: &str = "MILIEU_TEST_ARGUMENTS";

/// Not a test but what the children of the tests run.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let arguments = std::env::var(ARGUMENTS).unwrap();
    let arguments: Vec<&str> = arguments.split('\n').collect();
    match role.as_str() {
        "commit" => super::trace::child(&arguments),
        "count" => super::kills::child(&arguments),
        "as" => super::owners::child(&arguments),
        "write" => super::processes::child(&arguments),
        _ => panic!("there is no role {role}"),
    }
}

/// Says a line to the parent.
pub fn say(line: &str) {
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Waits until the parent says a line.
pub fn wait() {
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

/// A child as its parent sees it.
pub struct Child {
    process: std::process::Child,
    said: BufReader<ChildStderr>,
    told: ChildStdin,
}

impl Child {
    pub fn start(role: &str, arguments: &[impl AsRef<str>]) -> Child {
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["child::role", "--exact", "--nocapture"])
            .env(ROLE, role)
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Child {
            said: BufReader::new(process.stderr.take().unwrap()),
            told: process.stdin.take().unwrap(),
            process,
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line, if there is one before the child ends.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.strip_suffix('\n').map(str::to_owned)
    }

    /// What it said and was not yet heard.
    pub fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.hear()).collect()
    }

    /// Lets it go on.
    pub fn tell(&mut self) {
        self.told.write_all(b"\n").unwrap();
    }

    /// Kills it, and does not wait for that to have happened.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Kills it.
    pub fn end(&mut self) {
        self.kill();
        self.process.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the body of a test in a process of its own, which it may do to what it likes.
pub fn alone(test: &str, body: impl FnOnce()) -> Option<std::process::Output> {
    const ALONE: &str = "MILIEU_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        body();
        return None;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in said.lines().filter(|line| line.starts_with("SKIPPED")) {
        say(line);
    }
    Some(output)
}
