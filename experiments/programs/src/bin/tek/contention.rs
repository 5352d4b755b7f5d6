//! Two critical threads that answer events beside many that work (Figures 9 and 10), all
//! of one program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use experiments::{Failed, number as parameter, text, whole};
use milieu::threads::{Priority, Rung};
use milieu_bench::run::protocol::Start;

use super::work::{self, Ending, Events, Gate};
use super::{Numbers, mean, number, options, rung};

/// The paper's four groups, and what the threads of each are worth to the kernel
/// where they are not all the same to it.
const GROUPS: [(&str, i32); 4] = [
    ("urgent/worker", 0),
    ("normal/worker", 0),
    ("service/worker", 5),
    ("background/worker", 10),
];

/// What the threads are to do.
struct Load {
    workers: u64,
    events: u64,
    work_ms: f64,
    priority: Priority,
    has_weights: bool,
}

/// What came out of one run.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub struct Run {
    responses_ms: Vec<f64>,
    voluntary: u64,
    involuntary: u64,
    units: u64,
    processor: f64,
    /// The longest for which a worker had no processor.
    wait_ms_max: f64,
}

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get() as u64;
    let load = Load {
        workers: whole(start, "threads")? * cores,
        events: whole(start, "events")?,
        work_ms: parameter(start, "work")?,
        #[expect(clippy::cast_possible_truncation, reason = "a nice value")]
        priority: Priority::new(parameter(start, "priority")? as i32)?,
        has_weights: text(start, "groups")? == "weights",
    };
    let rung = rung(start)?;
    let run = |is_mediated| run(&load, rung.filter(|_| is_mediated));
    compare(whole(start, "pairs")?, rung.is_some(), run)
}

/// Pairs of runs without a mediator and with one, right after each other.
pub fn compare(
    pairs: u64,
    works: bool,
    run: impl Fn(bool) -> Result<Run, Failed>,
) -> Result<Numbers, Failed> {
    let (mut native, mut mediated) = (Run::default(), Run::default());
    for pair in 0..pairs {
        // Which of the two is first takes turns, so that what drifts is the same for both.
        for is_mediated in [pair % 2 == 1, pair % 2 == 0] {
            let sum = match is_mediated {
                true => &mut mediated,
                false => &mut native,
            };
            sum.add(run(is_mediated)?);
        }
    }
    let per_event = |count: u64, of: &Run| number(count) / number(of.responses_ms.len() as u64);
    let work = |of: &Run| number(of.units) / of.processor;
    let (before, after) = (mean(&native.responses_ms), mean(&mediated.responses_ms));
    let switches = [
        per_event(native.involuntary, &native),
        per_event(mediated.involuntary, &mediated),
    ];
    Ok(vec![
        ("works", f64::from(u8::from(works))),
        ("response_default_ms", before),
        ("response_ms", after),
        ("times", before / after),
        ("response_worst_default_ms", worst(&native.responses_ms)),
        ("response_worst_ms", worst(&mediated.responses_ms)),
        ("work_ratio", work(&mediated) / work(&native)),
        ("wait_default_ms", native.wait_ms_max),
        ("wait_ms", mediated.wait_ms_max),
        ("involuntary_default", switches[0]),
        ("involuntary", switches[1]),
        ("voluntary_default", per_event(native.voluntary, &native)),
        ("voluntary", per_event(mediated.voluntary, &mediated)),
    ])
}

fn worst(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}

impl Run {
    /// Takes in what another has measured.
    pub fn add(&mut self, other: Run) {
        self.responses_ms.extend(other.responses_ms);
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.units += other.units;
        self.processor += other.processor;
        self.wait_ms_max = self.wait_ms_max.max(other.wait_ms_max);
    }
}

fn run(load: &Load, rung: Option<Rung>) -> Result<Run, Failed> {
    // They come from processes that nobody here has put anywhere.
    let sources = [Events::new()?, Events::new()?];
    let mediator = options(rung).start()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let mut sum = Run::default();
    thread::scope(|scope| -> Result<(), Failed> {
        let _ending = Ending {
            gate: &gate,
            is_over: &is_over,
        };
        let mut workers = Vec::new();
        for (_, (group, nice)) in (0..load.workers).zip(GROUPS.into_iter().cycle()) {
            let worker = mediator.thread(group)?;
            let nice = if load.has_weights { nice } else { 0 };
            let (gate, is_over) = (&gate, &is_over);
            workers.push(worker.spawn_scoped(scope, move || toil(nice, gate, is_over))?);
        }
        let mut critical = Vec::new();
        for (mut source, role) in sources.into_iter().zip(["urgent/probe", "urgent/display"]) {
            let thread = mediator.thread(role)?.critical(load.priority);
            let (gate, mediator) = (&gate, &mediator);
            let answer = move || {
                gate.pass();
                answer(load.events, load.work_ms, || {
                    mediator.blocking(|| source.next())
                })
            };
            critical.push(thread.spawn_scoped(scope, answer)?);
        }
        gate.open();
        let ended = |_| "a thread has panicked";
        for thread in critical {
            sum.add(thread.join().map_err(ended)?);
        }
        is_over.store(true, Ordering::Relaxed);
        for thread in workers {
            sum.add(thread.join().map_err(ended)?);
        }
        Ok(())
    })?;
    Ok(sum)
}

/// A thread that always has something to do.
pub fn toil(nice: i32, gate: &Gate, is_over: &AtomicBool) -> Run {
    // SAFETY: has no pointers; in Linux it is of this thread alone.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    gate.pass();
    let (begun, mut last) = (work::processor(), work::now());
    let mut run = Run::default();
    loop {
        work::unit();
        run.units += 1;
        let now = work::now();
        run.wait_ms_max = run.wait_ms_max.max((now - last) * 1e3);
        last = now;
        // At the end, so that everybody does something, however busy the machine is.
        if is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    run.processor = work::processor() - begun;
    run
}

/// A thread that answers events, each by some work; `next` waits for one and says since
/// when it is there.
pub fn answer(events: u64, work_ms: f64, mut next: impl FnMut() -> Option<f64>) -> Run {
    let mut run = Run::default();
    // The first finds everything cold.
    let mut before = (0, 0);
    for number in 0..=events {
        let Some(sent) = next() else {
            break;
        };
        work::work(work_ms);
        if number > 0 {
            run.responses_ms.push((work::now() - sent) * 1e3);
        } else {
            before = work::switches();
        }
    }
    let after = work::switches();
    run.voluntary = after.0 - before.0;
    run.involuntary = after.1 - before.1;
    run
}
