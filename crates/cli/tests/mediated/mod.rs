//! A mediator and programs of a test's own, so that nothing else on the machine is touched.
//!
//! The programs are copies of those of the system, or others, under names of their own, and
//! the rules are about these names only.

#![allow(dead_code)] // Each test uses its own part.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Far more than anything here takes, on a machine that does much else.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub const OTHER: u64 = 0;
pub const ROUND_ROBIN: u64 = 2;
pub const IDLE: u64 = 5;

pub struct Device {
    pub folder: tempfile::TempDir,
    /// What the names of this test's programs begin with.
    pub prefix: String,
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub fn number(&self) -> u32 {
        self.0.id()
    }

    /// A field of the kernel's line about its first thread, as proc(5) numbers them.
    pub fn field(&self, number: usize) -> i64 {
        field(self.number(), number).expect("it runs")
    }

    pub fn policy(&self) -> u64 {
        self.field(41) as u64
    }

    pub fn signal(&self, name: &str) {
        let number = self.number().to_string();
        let sent = Command::new("kill").args(["-s", name, &number]).status();
        assert!(sent.unwrap().success());
    }
}

pub fn field(process: u32, number: usize) -> Option<i64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let rest = text.rsplit_once(')')?.1;
    rest.split_whitespace().nth(number - 3)?.parse().ok()
}

/// Waits until it is so; a turn, in which it may be, can be over after a few milliseconds.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Device {
    pub fn new(test: &str, rules: &str) -> Device {
        let folder = tempfile::tempdir().unwrap();
        // Names have 15 bytes at most.
        let prefix = format!("m{}{test}", std::process::id());
        assert!(prefix.len() < 14, "{prefix}");
        let rules = format!("only {prefix}*\n{}", rules.replace("PREFIX", &prefix));
        fs::write(folder.path().join("rules"), rules).unwrap();
        Device { folder, prefix }
    }

    /// A copy of a program of the system, under a name of this test's.
    pub fn program(&self, name: &str, of: &str) -> Command {
        let path = self.folder.path().join(format!("{}{name}", self.prefix));
        if !path.exists() {
            let original = ["/bin", "/usr/bin"]
                .map(|it| Path::new(it).join(of))
                .into_iter()
                .find(|it| it.exists());
            // Another process writes it: what this one has open for writing, children
            // that other tests are starting have open still, and it could not be run.
            let original = original.expect("every system has it");
            let copied = Command::new("cp").args([&original, &path]).status();
            assert!(copied.unwrap().success());
        }
        let mut command = Command::new(path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    pub fn waiting(&self, name: &str) -> Running {
        Running(self.program(name, "sleep").arg("1000").spawn().unwrap())
    }

    pub fn milieu(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command.args(["thread", "mediate", "--folder"]);
        command.arg(self.path("run")).args(arguments);
        command
    }

    /// What the mediator says of itself, and of each thread.
    pub fn status(&self) -> Vec<Value> {
        let output = self.milieu(&["--status", "--json"]).output().unwrap();
        let lines = text(&output.stdout);
        let lines = lines.lines().map(|it| serde_json::from_str(it).unwrap());
        lines.collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the mediator and waits until it is ready; none where this machine has
    /// not what the rung needs.
    pub fn mediator(&self, rung: &str, more: &[&str]) -> Option<(Running, News)> {
        let mut child = self
            .milieu(&["--rung", rung, "--json", "--rules"])
            .arg(self.path("rules"))
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut news = News(BufReader::new(child.stdout.take().unwrap()));
        match news.next() {
            Some(line) => {
                assert_eq!(line["is"], "ready", "{line}");
                Some((Running(child), news))
            }
            None => {
                let output = child.wait_with_output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(
                    error.contains("cannot be moved and brought back"),
                    "{error}"
                );
                assert_eq!(output.status.code(), Some(2));
                eprintln!("skipped, the rung {rung} does not work here");
                None
            }
        }
    }
}

/// What a mediator tells.
pub struct News(pub BufReader<ChildStdout>);

impl News {
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.0.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    pub fn until(&mut self, is: &str) -> Value {
        while let Some(line) = self.next() {
            if line["is"] == is {
                return line;
            }
        }
        panic!("it has never told of `{is}`");
    }
}

/// Ends the mediator as `systemctl stop` does.
pub fn end(mut mediator: Running) -> Option<i32> {
    mediator.signal("TERM");
    mediator.0.wait().unwrap().code()
}

/// The preload's folder, where it was built.
pub fn preload() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_milieu"));
    let built = program.parent()?.parent()?.join("preload");
    built.join("libmilieu_preload.so").exists().then_some(built)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
