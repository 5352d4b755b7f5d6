//! A critical thread that needs a lock which a lazy one has, beside many that work: in a
//! program of ours, and in one that knows nothing of Milieu, by `milieu thread run`.

use std::cell::UnsafeCell;
use std::process::{Command, Stdio};
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
    OfTheLibrary(Pthread),
}

/// A lock of the C library.
struct Pthread(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: threads share it by the C library's functions alone.
unsafe impl Sync for Pthread {}

impl Pthread {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        // SAFETY: it stays where it is while threads have it, which unlock it themselves.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
            let held = body();
            libc::pthread_mutex_unlock(self.0.get());
            held
        }
    }
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
            Lock::OfTheLibrary(mutex) => mutex.hold(body),
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
    let lock = text(start, "lock")?;
    let (responses, free) = match (lock.as_str(), rung) {
        ("served", Some(rung)) => (serve(&load, rung, TAKEN)?, serve(&load, rung, FREE)?),
        ("default", _) => (run(&load, None, "default")?, run(&load, rung, FREE)?),
        (kind, _) => (run(&load, rung, kind)?, run(&load, rung, FREE)?),
    };
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
        FREE => Lock::Free,
        "boosted" => Lock::Boosted(&mutex),
        "own" => Lock::Own(&mediator),
        "plain" | "default" | "served" => Lock::Plain(std::sync::Mutex::new(())),
        other => return Err(format!("`{other}` is no lock").into()),
    };
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    thread::scope(|scope| -> Result<Vec<f64>, Failed> {
        let (gate, is_over, lock) = (&gate, &is_over, &lock);
        let _ending = Ending { gate, is_over };
        for _ in 0..load.workers {
            let worker = mediator.thread("worker")?;
            worker.spawn_scoped(scope, move || toil(gate, is_over))?;
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
            let holder = mediator.thread("holder")?;
            holder.spawn_scoped(scope, move || hold(load, lock, gate, is_over))?;
        }
        let critical = mediator.thread("probe")?.critical(Priority::default());
        let critical = critical.spawn_scoped(scope, move || respond(load, lock, gate, is_over))?;
        gate.open();
        Ok(critical.join().map_err(|_| "a thread has panicked")?)
    })
}

/// Always has something to do.
fn toil(gate: &Gate, is_over: &AtomicBool) {
    gate.pass();
    while !is_over.load(Ordering::Relaxed) {
        work::unit();
    }
}

/// Has the lock again and again.
fn hold(load: &Load, lock: &Lock<'_>, gate: &Gate, is_over: &AtomicBool) {
    gate.pass();
    while !is_over.load(Ordering::Relaxed) {
        lock.hold(|| work::work(load.hold_ms));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Needs it now and then; what its work takes then, in milliseconds.
fn respond(load: &Load, lock: &Lock<'_>, gate: &Gate, is_over: &AtomicBool) -> Vec<f64> {
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
}

/// With this argument the program does the same and knows nothing of Milieu.
pub const INVERTS: &str = "--invert";

/// The lock is one that nobody else takes, or one that is taken.
const FREE: &str = "free";
const TAKEN: &str = "taken";

/// The program that knows nothing of Milieu, served; by the name of its thread it is known
/// which is critical.
fn serve(load: &Load, rung: Rung, kind: &str) -> Result<Vec<f64>, Failed> {
    let folder = tempfile::tempdir()?;
    let roles = folder.path().join("roles");
    std::fs::write(&roles, "name probe => probe critical\n")?;
    let mut command = Command::new("milieu");
    command.args(["thread", "run", "--no-mediator", "--no-profile"]);
    command.args([
        "--mode",
        "off",
        "--wait-max",
        "never",
        "--rung",
        rung.name(),
    ]);
    command.arg("--roles").arg(&roles).arg("--");
    command.arg(std::env::current_exe()?).args([INVERTS, kind]);
    for number in [load.workers, load.events] {
        command.arg(number.to_string());
    }
    for milliseconds in [load.hold_ms, load.work_ms] {
        command.arg(milliseconds.to_string());
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the served program ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// That program.
pub fn invert(arguments: &[String]) -> Result<(), Failed> {
    let [kind, workers, events, hold_ms, work_ms] = arguments else {
        return Err("which lock, how many, and for how long?".into());
    };
    let load = Load {
        workers: workers.parse()?,
        events: events.parse()?,
        hold_ms: hold_ms.parse()?,
        work_ms: work_ms.parse()?,
    };
    let lock = match kind.as_str() {
        FREE => Lock::Free,
        _ => Lock::OfTheLibrary(Pthread(libc::PTHREAD_MUTEX_INITIALIZER.into())),
    };
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let responses = thread::scope(|scope| -> Result<Vec<f64>, Failed> {
        let (gate, is_over, lock, load) = (&gate, &is_over, &lock, &load);
        let _ending = Ending { gate, is_over };
        let called = |name: &str| thread::Builder::new().name(name.to_owned());
        for _ in 0..load.workers {
            called("worker").spawn_scoped(scope, move || toil(gate, is_over))?;
        }
        called("holder").spawn_scoped(scope, move || hold(load, lock, gate, is_over))?;
        let critical =
            called("probe").spawn_scoped(scope, move || respond(load, lock, gate, is_over))?;
        gate.open();
        Ok(critical.join().map_err(|_| "a thread has panicked")?)
    })?;
    Ok(serde_json::to_writer(std::io::stdout(), &responses)?)
}
