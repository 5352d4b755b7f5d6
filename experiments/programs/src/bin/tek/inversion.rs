//! A critical thread that needs a lock which a lazy one has, beside many that work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use experiments::{Failed, number as parameter, text, whole};
use milieu::threads::{Mediator, Priority, Rung, Settings};
use milieu_bench::run::protocol::Start;

use super::work::{self, Ending, Gate};
use super::{Numbers, mean, options, percentile, rung};

/// A lock of one kind or the other.
enum Lock<'m> {
    /// Nobody but the critical thread takes it.
    Free,
    Plain(std::sync::Mutex<()>),
    Boosted(&'m milieu::threads::Mutex<()>),
    /// The mediator's own, which threads take that begin and end.
    Own(&'m Mediator),
}

impl Lock<'_> {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        match self {
            Lock::Free => body(),
            Lock::Plain(mutex) => {
                let _held = mutex.lock();
                body()
            }
            Lock::Boosted(mutex) => {
                let _held = mutex.lock();
                body()
            }
            Lock::Own(mediator) => mediator.blocking(body),
        }
    }
}

/// What the threads are to do.
struct Load {
    workers: u64,
    events: u64,
    hold_ms: f64,
    work_ms: f64,
}

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get() as u64;
    let load = Load {
        workers: whole(start, "threads")? * cores,
        events: whole(start, "events")?,
        hold_ms: parameter(start, "hold")?,
        work_ms: parameter(start, "work")?,
    };
    let rung = rung(start)?;
    let means = match text(start, "lock")?.as_str() {
        "default" => None,
        _ => rung,
    };
    let responses = run(&load, means, &text(start, "lock")?)?;
    let free = run(&load, rung, "free")?;
    let p99 = [&responses, &free].map(|it| percentile(it, 0.99));
    Ok(vec![
        ("works", f64::from(u8::from(rung.is_some()))),
        ("response_ms", mean(&responses)),
        ("p99_ms", p99[0]),
        ("free_p99_ms", p99[1]),
        ("ratio", p99[0] / p99[1]),
    ])
}

fn run(load: &Load, rung: Option<Rung>, kind: &str) -> Result<Vec<f64>, Failed> {
    // Without turns for the lazy: those are no inversion, but what the setting says.
    let settings = Settings {
        lazy_wait_ns_max: None,
        ..Settings::default()
    };
    let mediator = options(rung).settings(settings).start()?;
    let mutex = mediator.mutex(());
    let lock = match kind {
        "free" => Lock::Free,
        "boosted" => Lock::Boosted(&mutex),
        "own" => Lock::Own(&mediator),
        "plain" | "default" => Lock::Plain(std::sync::Mutex::new(())),
        other => return Err(format!("`{other}` is no lock").into()),
    };
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    thread::scope(|scope| -> Result<Vec<f64>, Failed> {
        let (gate, is_over, lock) = (&gate, &is_over, &lock);
        let _ending = Ending { gate, is_over };
        for _ in 0..load.workers {
            mediator.thread("worker")?.spawn_scoped(scope, move || {
                gate.pass();
                while !is_over.load(Ordering::Relaxed) {
                    work::unit();
                }
            })?;
        }
        if let Lock::Own(mediator) = lock {
            for _ in 0..load.workers {
                let creates = mediator.thread("creator")?;
                creates.spawn_scoped(scope, move || {
                    gate.pass();
                    while !is_over.load(Ordering::Relaxed) {
                        let Ok(holder) = mediator.thread("holder") else {
                            return;
                        };
                        // It ends before the next one begins.
                        let holder = holder.spawn_scoped(scope, || work::work(load.hold_ms));
                        _ = holder.map(|it| it.join());
                    }
                })?;
            }
        } else {
            mediator.thread("holder")?.spawn_scoped(scope, move || {
                gate.pass();
                while !is_over.load(Ordering::Relaxed) {
                    lock.hold(|| work::work(load.hold_ms));
                    thread::sleep(Duration::from_millis(1));
                }
            })?;
        }
        let critical = mediator.thread("probe")?.critical(Priority::default());
        let critical = critical.spawn_scoped(scope, move || {
            gate.pass();
            let respond = |_| {
                thread::sleep(Duration::from_millis(fastrand::u64(10..30)));
                let begun = work::now();
                lock.hold(|| work::work(load.work_ms));
                (work::now() - begun) * 1e3
            };
            let responses = (0..load.events).map(respond).collect();
            is_over.store(true, Ordering::Relaxed);
            responses
        })?;
        gate.open();
        Ok(critical.join().map_err(|_| "a thread has panicked")?)
    })
}
