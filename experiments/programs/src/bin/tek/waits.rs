//! How long threads wait that are not critical, while critical ones leave them next to
//! nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use experiments::{Failed, number as parameter, whole};
use milieu::threads::{Priority, Settings};
use milieu_bench::run::protocol::Start;

use super::work::{self, Gate};
use super::{Numbers, mean, options, percentile, rung};

/// Whoever has not gone on for so long has waited; less is being taken off for a moment.
const WAIT_MS: f64 = 1.0;

/// How long critical threads work before they block, which they do for a moment: one that
/// is over before anybody else could run would make them run-aways.
const WORK_MS: f64 = 20.0;
const MOMENT: Duration = Duration::from_micros(200);

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get() as u64;
    let workers = whole(start, "threads")? * cores;
    let (seconds, wait_ms) = (parameter(start, "seconds")?, parameter(start, "wait")?);
    let settings = Settings {
        lazy_wait_ns_max: Some(Duration::from_secs_f64(wait_ms / 1e3).as_nanos() as u64),
        turn_percent: u8::try_from(whole(start, "turn")?)?,
        turn_percent_max: u8::try_from(whole(start, "turn_max")?)?,
        ..Settings::default()
    };
    let rung = rung(start)?;
    let mediator = options(rung).settings(settings).start()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let there = AtomicU64::new(0);
    let (waits_ms, critical_share) = thread::scope(|scope| -> Result<_, Failed> {
        let (gate, is_over, there) = (&gate, &is_over, &there);
        let mut waiting = Vec::new();
        for _ in 0..workers {
            let worker = mediator.thread("worker")?;
            waiting.push(worker.spawn_scoped(scope, move || {
                there.fetch_add(1, Ordering::Relaxed);
                wait(gate, is_over)
            })?);
        }
        let mut busy = Vec::new();
        for _ in 0..cores {
            let critical = mediator.thread("busy")?.critical(Priority::default());
            busy.push(critical.spawn_scoped(scope, move || {
                there.fetch_add(1, Ordering::Relaxed);
                be_busy(gate, is_over)
            })?);
        }
        // What it takes to begin beside busy ones is something else.
        while there.load(Ordering::Relaxed) < workers + cores {
            thread::sleep(Duration::from_millis(1));
        }
        let begun = work::now();
        gate.open();
        thread::sleep(Duration::from_secs_f64(seconds));
        is_over.store(true, Ordering::Relaxed);
        let ended = |_| "a thread has panicked";
        let mut used = 0.0;
        for thread in busy {
            used += thread.join().map_err(ended)?;
        }
        let elapsed = work::now() - begun;
        let mut waits_ms = Vec::new();
        for thread in waiting {
            waits_ms.extend(thread.join().map_err(ended)?);
        }
        Ok((waits_ms, used / elapsed / super::number(cores)))
    })?;
    Ok(numbers(rung.is_some(), &waits_ms, critical_share))
}

/// Of all waits, if there were any.
pub fn numbers(works: bool, waits_ms: &[f64], critical_share: f64) -> Numbers {
    let waits_ms = if waits_ms.is_empty() {
        &[0.0]
    } else {
        waits_ms
    };
    vec![
        ("works", f64::from(u8::from(works))),
        ("wait_ms", mean(waits_ms)),
        ("wait_p99_ms", percentile(waits_ms, 0.99)),
        ("wait_worst_ms", percentile(waits_ms, 1.0)),
        ("critical_share", critical_share),
    ]
}

/// Always has something to do; how long it had to wait each time, in milliseconds.
pub fn wait(gate: &Gate, is_over: &AtomicBool) -> Vec<f64> {
    gate.pass();
    let mut waits_ms = Vec::new();
    let mut last = work::now();
    // At the end, so that a wait counts that is cut short by it.
    loop {
        work::unit();
        let now = work::now();
        let wait_ms = (now - last) * 1e3;
        if wait_ms >= WAIT_MS {
            waits_ms.push(wait_ms);
        }
        last = now;
        if is_over.load(Ordering::Relaxed) {
            return waits_ms;
        }
    }
}

/// Nearly always works, but is no run-away; how much processor time it had.
pub fn be_busy(gate: &Gate, is_over: &AtomicBool) -> f64 {
    gate.pass();
    let begun = work::processor();
    while !is_over.load(Ordering::Relaxed) {
        work::work(WORK_MS);
        thread::sleep(MOMENT);
    }
    work::processor() - begun
}
