//! Which thread runs when and where (Figure 2): an event that one critical thread reads
//! and another shows, beside threads that always have something to do.
//!
//! Each thread looks at the clock all the time: where it finds much more of it gone than
//! looking takes, it had no processor meanwhile. That takes no privilege, and the
//! kernel's own account of processor time says whether it is true.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use experiments::{Failed, number as parameter, text, whole};
use milieu::threads::{Mediator, Priority, Region, Role, Rung, Settings};
use milieu_bench::run::protocol::Start;
use nix::sched::sched_getcpu;
use serde_json::json;

use super::work::{self, Ending, Events, Gate};
use super::{Numbers, mean, number, options};

/// Whoever has not looked for so long, in seconds, had no processor.
const GAP: f64 = 200e-6;

/// A time in which a thread had a processor.
#[derive(Clone, Copy)]
struct Piece {
    processor: usize,
    from: f64,
    until: f64,
}

/// When a thread had a processor.
#[derive(Default)]
struct Recorder {
    pieces: Vec<Piece>,
    /// What the kernel says that it had, in seconds, while it was recorded.
    processor_time: f64,
}

impl Recorder {
    /// Works, and takes down when that was, for as long as it is to.
    fn work(&mut self, mut goes_on: impl FnMut() -> bool) {
        let begun = work::processor();
        self.look(f64::NEG_INFINITY);
        while goes_on() {
            spin();
            let last = self.pieces.last().map_or(0.0, |it| it.until);
            self.look(last);
        }
        self.processor_time += work::processor() - begun;
    }

    /// It has a processor now, and had the same one since `last` if that is a moment ago.
    fn look(&mut self, last: f64) {
        let (now, processor) = (work::now(), sched_getcpu().unwrap_or(0));
        match self.pieces.last_mut() {
            Some(piece) if piece.processor == processor && now - last < GAP => piece.until = now,
            _ => self.pieces.push(Piece {
                processor,
                from: now,
                until: now,
            }),
        }
    }

    fn seconds(&self) -> f64 {
        self.pieces.iter().map(|it| it.until - it.from).sum()
    }
}

/// Some microseconds of work.
fn spin() {
    let mut state = 1_u64;
    for _ in 0..1000 {
        state = std::hint::black_box(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
}

/// What became of an event.
struct Answer {
    sent: f64,
    /// When it was read, and when it was shown.
    read: f64,
    shown: f64,
    /// Of the other threads, how many were in the lazy region then.
    lazy: f64,
}

/// What the threads are to do.
struct Load {
    workers: u64,
    events: u64,
    work_ms: f64,
}

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get() as u64;
    let load = Load {
        workers: whole(start, "threads")? * cores,
        events: whole(start, "events")?,
        work_ms: parameter(start, "work")?,
    };
    let rung = match text(start, "rung")?.as_str() {
        "default" => None,
        _ => super::rung(start)?,
    };
    let (answers, lanes) = run(&load, rung)?;
    show(&answers, &lanes)?;
    let of_answers = |each: fn(&Answer) -> f64| answers.iter().map(each).collect::<Vec<_>>();
    let pieces = lanes.iter().take(2).map(|(_, it)| it.pieces.len() as u64);
    let (seen, had) = lanes.iter().fold((0.0, 0.0), |(seen, had), (_, it)| {
        (seen + it.seconds(), had + it.processor_time)
    });
    Ok(vec![
        ("works", f64::from(u8::from(rung.is_some()))),
        ("events", number(answers.len() as u64)),
        (
            "response_ms",
            mean(&of_answers(|it| (it.shown - it.sent) * 1e3)),
        ),
        ("read_ms", mean(&of_answers(|it| (it.read - it.sent) * 1e3))),
        (
            "pieces",
            number(pieces.sum()) / number(answers.len() as u64),
        ),
        ("lazy_percent", mean(&of_answers(|it| it.lazy)) * 100.0),
        ("seen_ratio", seen / had),
    ])
}

/// What the chart is drawn of: lines for each event and for each thread, in milliseconds
/// since a moment before the first event. Other threads are one lane.
fn show(answers: &[Answer], lanes: &[(&'static str, Recorder)]) -> Result<(), Failed> {
    let first = answers.first().ok_or("no event was answered")?.sent - 2e-3;
    let last = answers.last().map_or(first, |it| it.shown) + 2e-3;
    let ms = |time: f64| ((time - first) * 1e6).round() / 1e3;
    let mut out = std::io::stdout().lock();
    for answer in answers {
        let times = [answer.sent, answer.read, answer.shown].map(ms);
        writeln!(out, "{}", json!({"event": times}))?;
    }
    for (name, lane) in lanes {
        let pieces = lane.pieces.iter();
        let pieces = pieces.filter(|it| it.until > first && it.from < last);
        let pieces: Vec<_> = pieces
            .map(|it| (it.processor, ms(it.from.max(first)), ms(it.until.min(last))))
            .collect();
        writeln!(out, "{}", json!({"lane": name, "ran": pieces}))?;
    }
    Ok(())
}

type Lanes = Vec<(&'static str, Recorder)>;

fn run(load: &Load, rung: Option<Rung>) -> Result<(Vec<Answer>, Lanes), Failed> {
    // They come from a process that nobody here has put anywhere.
    let mut source = Events::new()?;
    // Without turns for the lazy: there may be one just when an event comes.
    let settings = Settings {
        lazy_wait_ns_max: None,
        ..Settings::default()
    };
    let mediator = options(rung).settings(settings).start()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let (hand_on, handed) = channel::<(f64, f64)>();
    thread::scope(|scope| -> Result<_, Failed> {
        let (gate, is_over, mediator) = (&gate, &is_over, &mediator);
        let _ending = Ending { gate, is_over };
        let mut workers = Vec::new();
        for _ in 0..load.workers {
            let worker = mediator.thread("service/worker")?;
            let toil = move || {
                gate.pass();
                let mut recorder = Recorder::default();
                recorder.work(|| !is_over.load(Ordering::Relaxed));
                recorder
            };
            workers.push(worker.spawn_scoped(scope, toil)?);
        }
        let probe = mediator
            .thread("urgent/probe")?
            .critical(Priority::default());
        let probe = probe.spawn_scoped(scope, move || {
            gate.pass();
            let mut recorder = Recorder::default();
            for _ in 0..load.events {
                let Some(sent) = mediator.blocking(|| source.next()) else {
                    break;
                };
                for_so_long(&mut recorder, load.work_ms);
                if hand_on.send((sent, work::now())).is_err() {
                    break;
                }
            }
            recorder
        })?;
        let display = mediator.thread("urgent/display")?;
        let display = display.critical(Priority::default());
        let display = display.spawn_scoped(scope, move || {
            gate.pass();
            let (mut recorder, mut answers) = (Recorder::default(), Vec::new());
            while let Ok((sent, read)) = mediator.blocking(|| handed.recv()) {
                for_so_long(&mut recorder, load.work_ms);
                let shown = work::now();
                answers.push(Answer {
                    sent,
                    read,
                    shown,
                    lazy: lazy(mediator),
                });
            }
            (recorder, answers)
        })?;
        gate.open();
        let ended = |_| "a thread has panicked";
        let probe = probe.join().map_err(ended);
        let display = display.join().map_err(ended);
        is_over.store(true, Ordering::Relaxed);
        let (display, answers) = display?;
        let mut lanes = vec![("probe", probe?), ("display", display)];
        for worker in workers {
            lanes.push(("others", worker.join().map_err(ended)?));
        }
        Ok((answers, lanes))
    })
}

/// Works until this thread has had so many milliseconds of a processor.
fn for_so_long(recorder: &mut Recorder, milliseconds: f64) {
    let end = work::processor() + milliseconds / 1e3;
    recorder.work(|| work::processor() < end);
}

/// The share of the other threads that are in the lazy region.
fn lazy(mediator: &Mediator) -> f64 {
    let Ok(role) = Role::new("service/worker") else {
        return f64::NAN;
    };
    let (mut all, mut lazy) = (0_u32, 0_u32);
    for thread in mediator.with_role(role) {
        all += 1;
        lazy += u32::from(thread.region == Region::Lazy);
    }
    // None may have begun yet on a busy machine.
    f64::from(lazy) / f64::from(all.max(1))
}
