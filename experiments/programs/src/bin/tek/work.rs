//! Work, events that come from another process, and what the kernel says of a thread.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use experiments::Failed;
use nix::time::{ClockId, clock_gettime};

/// With this argument the program sends events.
pub const EVENTS: &str = "--send-events";

/// The time of a clock, in seconds.
pub fn seconds(clock: ClockId) -> f64 {
    clock_gettime(clock).map_or(0.0, |it| Duration::from(it).as_secs_f64())
}

/// The time by which processes agree, in seconds.
pub fn now() -> f64 {
    seconds(ClockId::CLOCK_MONOTONIC)
}

/// Sleeps until that time has come.
pub fn sleep_until(due: f64) {
    let rest = Duration::try_from_secs_f64(due - now());
    std::thread::sleep(rest.unwrap_or_default());
}

/// The processor time of this thread, in seconds.
pub fn processor() -> f64 {
    seconds(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// A unit of work: some tens of microseconds.
pub fn unit() {
    let mut state = 1_u64;
    for _ in 0..20_000 {
        state = std::hint::black_box(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
}

/// Works until this thread has had so many milliseconds of a processor.
pub fn work(milliseconds: f64) {
    let end = processor() + milliseconds / 1e3;
    while processor() < end {
        unit();
    }
}

/// Threads wait here until all of them are there.
#[derive(Default)]
pub struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn pass(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(is_open, |it| !*it));
    }

    pub fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}

/// Nobody waits any more when this goes, so that a scope ends whose threads could not
/// all begin.
pub struct Ending<'g> {
    pub gate: &'g Gate,
    pub is_over: &'g AtomicBool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.gate.open();
    }
}

/// Events from a process of its own: the next one comes a moment after the last was
/// dealt with, and says when it was sent.
pub struct Events(Child);

impl Events {
    pub fn new() -> Result<Events, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(EVENTS);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Events(piped.spawn()?))
    }

    /// Waits for the next one; when it was sent.
    pub fn next(&mut self) -> Option<f64> {
        self.0.stdin.as_mut()?.write_all(b"n").ok()?;
        let mut sent = [0; 8];
        self.0.stdout.as_mut()?.read_exact(&mut sent).ok()?;
        Some(f64::from_ne_bytes(sent))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Sends events until nobody asks for one.
pub fn send_events() {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut asked = [0];
    while input.read_exact(&mut asked).is_ok() {
        std::thread::sleep(Duration::from_millis(fastrand::u64(20..40)));
        let sent = now().to_ne_bytes();
        if output
            .write_all(&sent)
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
    }
}

/// How often this thread has given the processor away, and how often it was taken.
pub fn switches() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let of = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
    };
    (
        of("voluntary_ctxt_switches:"),
        of("nonvoluntary_ctxt_switches:"),
    )
}
