//! The process between the harness and an application: it leaves nothing running.
//!
//! ```text
//! harness ─▶ minder ─▶ application ─▶ whatever that starts
//! ```
//!
//! The minder runs one command, with its own standard streams, and waits. When
//! the command has ended, when it is told to end (SIGTERM, SIGINT, SIGHUP) or when
//! the harness dies, it ends all that the command has started, also what has made
//! a session of its own: orphans become the minder's children. Then it writes
//! what all of them used: what was counted for their control group, if they have
//! one, and what the kernel adds up for the children of a process.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid, getppid};
use serde::{Deserialize, Serialize};

use super::counters::Network;
use super::group::Group;

/// How long a command that was told to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How a command ended, and what it and all that it started used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// Its exit status, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What was used.
    pub resources: Resources,
}

/// What the processes of an application used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Resources {
    /// From start to end.
    pub elapsed_seconds: f64,
    /// In the application's own code.
    pub user_seconds: f64,
    /// In the kernel for it.
    pub system_seconds: f64,
    /// The most memory that one of its processes had, in bytes. `None`: less than
    /// the minder itself, which is all that the kernel says then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// The most memory that one of its processes was seen to have while it ran: it had
    /// this at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_seen: Option<u64>,
    /// The most memory that all of its processes had together, in bytes: with what
    /// the kernel holds for them, and files that it keeps in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_together_bytes_max: Option<u64>,
    /// How often a processor went from one of its processes to something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// How often one of those that were waited for waited for something.
    pub switches_voluntary: u64,
    /// How often the processor was taken from one of those that were waited for.
    pub switches_involuntary: u64,
    /// Pages that had to be read from a disk.
    pub faults_major: u64,
    /// What it sent and received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What has counted the figures: `processor`, `largest-process`, `memory`,
    /// `switches`, `network`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted_by: BTreeMap<String, String>,
}

/// Runs a command and writes a [`Report`]. This is all that the process does;
/// `program` and `arguments` are the command, and `groups` control groups, which are
/// made for it.
///
/// # Errors
/// The report cannot be written.
pub fn mind(
    program: &str,
    arguments: &[String],
    report: &Path,
    groups: &[PathBuf],
) -> io::Result<()> {
    let harness = getppid();
    let told = signals()?;
    prctl::set_child_subreaper(true)?;
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    // It may have died before it could be noticed.
    if getppid() != harness {
        return Ok(());
    }
    let mut group = Group::make(groups);
    let mut written = Report::default();
    group.enter();
    let started = Instant::now();
    let child = Command::new(program).args(arguments).spawn();
    group.leave();
    let mut memory = Memory::begin();
    match child {
        Ok(child) => {
            let status = wait(child, &told, &mut memory);
            written.status = status.and_then(|status| status.code());
            written.signal = status.and_then(|status| status.signal());
            group.end();
            end_descendants();
        }
        Err(error) => written.refused = Some(format!("`{program}` cannot be run: {error}")),
    }
    written.resources = used(started.elapsed(), &memory);
    group.read(&mut written.resources);
    group.remove();
    // The harness sees the whole report or none.
    let text = serde_json::to_vec(&written)?;
    let half = report.with_extension("half");
    fs::write(&half, text)?;
    fs::rename(&half, report)
}

/// Signals that tell the minder to end.
fn signals() -> io::Result<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&told))?;
    }
    Ok(told)
}

/// Waits for the command; tells it to end when the minder is told so.
fn wait(mut child: Child, told: &AtomicBool, memory: &mut Memory) -> Option<ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?);
    let (ended, waits) = mpsc::channel();
    // It is not reaped before nobody can want to kill it any more.
    thread::spawn(move || {
        has_ended(pid);
        let _ = ended.send(());
    });
    let mut deadline = None;
    while let Err(RecvTimeoutError::Timeout) = waits.recv_timeout(Duration::from_millis(10)) {
        memory.look(pid);
        match deadline {
            None if told.load(Ordering::Acquire) => {
                deadline = Some(Instant::now() + GRACE);
                let _ = kill(pid, Signal::SIGTERM);
            }
            Some(deadline) if Instant::now() >= deadline => {
                let _ = kill(pid, Signal::SIGKILL);
            }
            _ => {}
        }
    }
    child.wait().ok()
}

/// Waits until a child has ended, which keeps its number until it is reaped.
pub(super) fn has_ended(pid: Pid) {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(pid), flags) == Err(Errno::EINTR) {}
}

/// Kills what the command has left, until nothing is there.
fn end_descendants() {
    loop {
        for child in children() {
            let _ = kill(child, Signal::SIGKILL);
        }
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return,
            // Whose parent dies becomes our child only then.
            Ok(WaitStatus::StillAlive) => thread::sleep(Duration::from_millis(1)),
            _ => {}
        }
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let children = processes.filter_map(|process| {
        let path = process.ok()?.path();
        let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // Behind the name, which may have anything in it: the state, the parent.
        let (_, behind) = stat.rsplit_once(')')?;
        let parent: i32 = behind.split_whitespace().nth(1)?.parse().ok()?;
        (Pid::from_raw(parent) == getpid()).then_some(Pid::from_raw(pid))
    });
    children.collect()
}

/// The most memory that a process had, where the kernel does not say it.
///
/// What it says of a child is at least what the minder had when it started that:
/// for a moment it was the minder's memory. Below that, processes are looked at
/// while they run, more rarely with time.
struct Memory {
    floor_bytes: u64,
    seen_bytes: Option<u64>,
    next: Instant,
    pause: Duration,
}

impl Memory {
    fn begin() -> Memory {
        let own = getrusage(UsageWho::RUSAGE_SELF).map_or(u64::MAX, |own| bytes(own.max_rss()));
        Memory {
            floor_bytes: own,
            seen_bytes: None,
            next: Instant::now(),
            pause: Duration::from_millis(10),
        }
    }

    /// Looks at a process and those that it has started, if it is time to.
    fn look(&mut self, pid: Pid) {
        const PAUSE_MAX: Duration = Duration::from_secs(1);
        if Instant::now() < self.next {
            return;
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.next = Instant::now() + self.pause;
        let mut processes = vec![pid.to_string()];
        while let Some(process) = processes.pop() {
            let path = Path::new("/proc").join(&process);
            let status = fs::read_to_string(path.join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            self.seen_bytes = self.seen_bytes.max(kib.map(|kib| kib * 1024));
            for thread in fs::read_dir(path.join("task"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let children = fs::read_to_string(thread.path().join("children"));
                let children = children.unwrap_or_default();
                processes.extend(children.split_whitespace().map(str::to_owned));
            }
        }
    }
}

/// The kernel counts in KiB.
fn bytes(kib: nix::libc::c_long) -> u64 {
    u64::try_from(kib).unwrap_or(0) * 1024
}

/// What the children that have ended used.
fn used(elapsed: Duration, memory: &Memory) -> Resources {
    let mut resources = Resources {
        elapsed_seconds: elapsed.as_secs_f64(),
        ..Resources::default()
    };
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return resources;
    };
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a few years")]
    let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
    let count = |count: nix::libc::c_long| u64::try_from(count).unwrap_or(0);
    resources.user_seconds = seconds(usage.user_time());
    resources.system_seconds = seconds(usage.system_time());
    resources.switches_voluntary = count(usage.voluntary_context_switches());
    resources.switches_involuntary = count(usage.involuntary_context_switches());
    resources.faults_major = count(usage.major_page_faults());
    let largest = Some(bytes(usage.max_rss())).filter(|bytes| *bytes > memory.floor_bytes);
    resources.memory_bytes_max = largest;
    resources.memory_bytes_seen = memory.seen_bytes.filter(|_| largest.is_none());
    let by = ["processor", "switches", "largest-process"].map(|it| (it.into(), "rusage".into()));
    resources.counted_by = by.into_iter().collect();
    if largest.is_none() {
        resources.counted_by.remove("largest-process");
    }
    resources
}
