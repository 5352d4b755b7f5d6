//! One application of a step: a process under a minder, and what it says.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::group;
use super::minder::{Report, has_ended};
use super::profile::Profiler;
use super::protocol::{self, Measured, Message, Start};
use crate::Value;
use crate::catalogue::{Entry, Ready, fill};

/// How much of its output is kept: the end.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// How much it can be told: as much as a pipe holds, so that telling ends although
/// nobody reads.
const START_BYTES_MAX: usize = 60 << 10;
/// The longest line that can be a message.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// What runs the minder: a program and its first arguments, which are followed by
/// `--group` and a path for each control group, the path of the report, the program
/// and the arguments of the application.
#[derive(Clone, Debug)]
pub struct Minder {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

/// What is around an application.
pub(super) struct Around {
    /// Where its minder writes how it ended.
    pub report: PathBuf,
    /// Its control groups, which the minder makes.
    pub groups: Vec<PathBuf>,
    /// What runs it, and the folder for what that writes.
    pub profile: Option<(Profiler, PathBuf)>,
}

/// Something that happened to an application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Happened {
    /// It said this.
    Said(Message),
    /// It ended; nothing more will happen to it.
    Ended(Box<Ended>),
    /// Its host does not answer.
    Lost(String),
}

/// A running application, which ends with this.
pub(crate) struct Process {
    minder: Arc<Running>,
    /// Open as long as the application is to run.
    input: Option<ChildStdin>,
}

/// A minder, as long as its number is its own.
struct Running {
    pid: Pid,
    is_reaped: Mutex<bool>,
    groups: Vec<PathBuf>,
}

impl Running {
    /// Tells it to end, if it still runs.
    fn stop(&self) {
        let is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*is_reaped {
            let _ = kill(self.pid, Signal::SIGTERM);
        }
    }

    /// Waits until it has ended. What is left of a minder that was killed itself are
    /// its groups, of processes and for control, which are killed.
    fn wait(&self, mut child: Child, report: &Path) -> Option<Report> {
        has_ended(self.pid);
        let text = fs::read(report).ok();
        let report = text.and_then(|text| serde_json::from_slice(&text).ok());
        let mut is_reaped = self
            .is_reaped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if report.is_none() {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        // A minder that has ended well has removed them.
        for path in &self.groups {
            group::remove(path);
        }
        let _ = child.wait();
        *is_reaped = true;
        report
    }
}

/// What a process wrote.
#[derive(Default)]
struct Output {
    text: Vec<u8>,
    is_cut: bool,
    /// What a pattern matched, the last match of each group.
    matched: BTreeMap<String, String>,
}

impl Output {
    fn add(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        if self.text.len() > 2 * OUTPUT_BYTES_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.text.len() > OUTPUT_BYTES_MAX {
            self.text.drain(..self.text.len() - OUTPUT_BYTES_MAX);
            self.is_cut = true;
        }
    }
}

/// How a process ended, and what it wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub report: Option<Report>,
    pub output: String,
    /// What the pattern of its kind found, or why it found nothing; for kinds that
    /// have one.
    pub measured: Option<Result<BTreeMap<String, Measured>, String>>,
}

impl Ended {
    /// What it wrote, if it succeeded.
    pub fn said(self) -> Result<String, String> {
        let report = self.report.ok_or("it was ended from outside")?;
        match (report.refused, report.status, report.signal) {
            (Some(why), _, _) => Err(why),
            (None, Some(0), _) => Ok(self.output),
            (None, Some(status), _) => Err(format!("it ended with {status}: {}", self.output)),
            (None, None, _) => Err("it was ended by a signal".into()),
        }
    }
}

impl Process {
    /// Starts an application. What happens to it goes to `happened`, with `index`.
    pub fn start(
        minder: &Minder,
        entry: &Entry,
        start: &Start,
        around: Around,
        index: usize,
        happened: &Sender<(usize, Happened)>,
    ) -> Result<Process, String> {
        let Around {
            report,
            groups,
            profile,
        } = around;
        let told = |text: &String| {
            fill(text, &start.parameters)
                .map_err(|name| format!("`{{{name}}}` in its command is no parameter"))
        };
        let mut command = entry
            .command
            .iter()
            .map(told)
            .collect::<Result<Vec<_>, _>>()?;
        if let Some((profiler, folder)) = profile {
            command = profiler.before(&folder, command)?;
        }
        let mut line = serde_json::to_string(start).map_err(|error| error.to_string())?;
        line.push('\n');
        if line.len() > START_BYTES_MAX {
            return Err("its parameters have more than 60 KiB".into());
        }
        let mut minded = Command::new(&minder.program);
        minded.args(&minder.arguments);
        for path in &groups {
            minded.arg("--group").arg(path);
        }
        minded.arg(&report).args(&command);
        for (name, value) in &entry.environment {
            minded.env(name, told(value)?);
        }
        if let Some(folder) = &entry.folder {
            minded.current_dir(folder);
        }
        // A terminal's signals are for the harness, which tells its processes.
        std::os::unix::process::CommandExt::process_group(&mut minded, 0);
        minded
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = minded
            .spawn()
            .map_err(|error| format!("{} cannot be run: {error}", minder.program.display()))?;
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            // Whoever does not read what it is told need not.
            let _ = input.write_all(line.as_bytes());
        }
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(read(out, Some(entry), index, happened));
        }
        if let Some(out) = child.stderr.take() {
            readers.push(read(out, None, index, happened));
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).map_err(|error| error.to_string())?);
        let minder = Arc::new(Running {
            pid,
            is_reaped: Mutex::new(false),
            groups,
        });
        let (waits, happened) = (Arc::clone(&minder), happened.clone());
        let has_pattern = entry.result.is_some();
        thread::spawn(move || {
            let ended = ended(waits.wait(child, &report), readers, has_pattern);
            let _ = happened.send((index, Happened::Ended(Box::new(ended))));
        });
        Ok(Process { minder, input })
    }

    /// Tells it to end.
    pub fn stop(&mut self) {
        self.input = None;
        self.minder.stop();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a process that has ended leaves, once all that it wrote is read.
fn ended(report: Option<Report>, readers: Vec<JoinHandle<Output>>, has_pattern: bool) -> Ended {
    let mut output = String::new();
    let mut matched = BTreeMap::new();
    for reader in readers {
        let mut read = reader.join().unwrap_or_default();
        read.cut();
        if read.is_cut {
            output.push_str("[…]\n");
        }
        output.push_str(&String::from_utf8_lossy(&read.text));
        matched.append(&mut read.matched);
    }
    Ended {
        report,
        output,
        measured: has_pattern.then(|| measurement(&matched)),
    }
}

/// Reads what a process writes, in a thread. Messages are no output.
fn read(
    out: impl Read + Send + 'static,
    entry: Option<&Entry>,
    index: usize,
    happened: &Sender<(usize, Happened)>,
) -> JoinHandle<Output> {
    let happened = happened.clone();
    let is_protocol = entry.is_some_and(|entry| entry.result.is_none());
    let result = entry.and_then(|entry| entry.result.clone());
    let ready = entry.and_then(|entry| match &entry.ready {
        Some(Ready::Shows(pattern)) => Some(pattern.clone()),
        _ => None,
    });
    thread::spawn(move || {
        let mut output = Output::default();
        let mut out = BufReader::new(out);
        let mut line = Vec::new();
        while let Ok(1..) = next_line(&mut out, &mut line) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            if is_protocol {
                if let Some(message) = protocol::message(text) {
                    let _ = happened.send((index, Happened::Said(message)));
                    continue;
                }
            }
            if let Some(groups) = ready.as_ref().and_then(|ready| ready.groups(text)) {
                let groups = groups.into_iter();
                let told = groups.map(|(name, text)| (name, Value::guess(&text)));
                let ready = Message::Ready(told.collect());
                let _ = happened.send((index, Happened::Said(ready)));
            }
            if let Some(mut groups) = result.as_ref().and_then(|result| result.groups(text)) {
                output.matched.append(&mut groups);
            }
            output.add(&line);
        }
        output
    })
}

/// The next line, or a part of a very long one; 0: there is none.
fn next_line(out: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    out.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)
}

/// What a pattern has found in the output.
fn measurement(matched: &BTreeMap<String, String>) -> Result<BTreeMap<String, Measured>, String> {
    if matched.is_empty() {
        return Err("its pattern matched nothing in the output".into());
    }
    let numbers = matched.iter().map(|(name, text)| {
        let number: f64 = text
            .trim()
            .replace(',', "")
            .parse()
            .map_err(|_| format!("`{text}`, matched for `{name}`, is no number"))?;
        Ok((name.clone(), Measured::Number(number)))
    });
    numbers.collect()
}
