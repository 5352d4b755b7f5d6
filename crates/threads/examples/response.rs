//! How fast two critical threads answer beside many that compute: the paper's
//! Figure 10 in small, each rung beside the default in one run.
//!
//! Two critical threads work 10 ms for each event, which a socket brings; the others
//! compute. By default, and on each rung that works here, it prints a JSON line with
//! the mean and the worst response, how many times faster than the default the mean
//! is, and what the others got done in proportion to their processor time. Without
//! arguments it is small, to show that it works; `response 50 100` has 50 threads
//! for each core and 100 events.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use milieu_threads::attributes::{Attributes, Priority, Role};
use milieu_threads::kernel;
use milieu_threads::mediator::Settings;
use milieu_threads::program::Program;
use milieu_threads::rung::{Rung, probe};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What an event takes, of processor time.
const WORK: Duration = Duration::from_millis(10);

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse());
    let per_core: usize = arguments.next().transpose()?.unwrap_or(2);
    let events: usize = arguments.next().transpose()?.unwrap_or(3);
    let cores = thread::available_parallelism()?.get();
    let mut default = None;
    for rung in std::iter::once(None).chain(Rung::ALL.map(Some)) {
        let name = rung.map_or("default", Rung::name);
        let works = |it: &milieu_threads::rung::Report| Some(it.rung) == rung && it.verdict.is_ok();
        if rung.is_some() && !probe().iter().any(works) {
            eprintln!("{name}: does not work here");
            continue;
        }
        let (responses, done) = run(rung, per_core * cores, events)?;
        let mean = responses.iter().sum::<f64>() / responses.len() as f64;
        let worst = responses.iter().copied().fold(0.0, f64::max);
        let (default_mean, default_done) = *default.get_or_insert((mean, done));
        println!(
            "{{\"name\":\"{name}\",\"threads\":{},\"mean_ms\":{mean:.1},\"worst_ms\":{worst:.1},\
             \"times_faster\":{:.1},\"background_ratio\":{:.3}}}",
            per_core * cores,
            default_mean / mean,
            done / default_done,
        );
    }
    Ok(())
}

/// Milliseconds from each event to its answer, and what the others got done in a
/// second of processor time.
fn run(rung: Option<Rung>, others: usize, events: usize) -> Result<(Vec<f64>, f64), Failure> {
    let program = Program::start(1024, rung, Settings::default(), |_| {})?;
    let program = Arc::new(program);
    let start = Instant::now();
    // Whoever sends events and looks after the rest comes from elsewhere.
    program.began(
        identity(),
        kernel::thread_id(),
        &Attributes::default(),
        true,
    )?;
    let is_over = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let cpu = Arc::new(AtomicU64::new(0));
    let computing: Vec<_> = (0..others)
        .map(|_| {
            let (program, is_over) = (program.clone(), is_over.clone());
            let (done, cpu) = (done.clone(), cpu.clone());
            thread::spawn(move || {
                let attributes = Attributes::of(Role::new("background").unwrap_or_default());
                let listed = program.began(identity(), kernel::thread_id(), &attributes, false);
                while !is_over.load(Ordering::Relaxed) {
                    compute();
                    done.fetch_add(1, Ordering::Relaxed);
                }
                let used = kernel::thread_cpu_ns(kernel::thread_id());
                cpu.fetch_add(used.unwrap_or(0), Ordering::Relaxed);
                listed.and_then(|_| program.ended(identity()))
            })
        })
        .collect();
    let mut critical: Vec<_> = ["probe", "display"]
        .into_iter()
        .map(|role| answering(&program, role, start))
        .collect::<Result<_, _>>()?;
    // Both are where they belong before anything is measured.
    for (ready, _) in &mut critical {
        ready.read_exact(&mut [0; 8])?;
    }
    let mut responses = Vec::new();
    for _ in 0..events {
        thread::sleep(Duration::from_millis(100));
        program.tick(kernel::boot_time_ns());
        for (ask, _) in &mut critical {
            let sent = start.elapsed().as_nanos() as u64;
            ask.write_all(&sent.to_ne_bytes())?;
        }
        // Who answers takes the time: the answer has to wait for nobody.
        for (answer, _) in &mut critical {
            let mut nanoseconds = [0; 8];
            answer.read_exact(&mut nanoseconds)?;
            responses.push(u64::from_ne_bytes(nanoseconds) as f64 / 1e6);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    for (ask, thread) in critical {
        drop(ask);
        thread
            .join()
            .map_err(|_| "a critical thread has failed")??;
    }
    for thread in computing {
        thread.join().map_err(|_| "a thread has failed")??;
    }
    program.ended(identity())?;
    let seconds = cpu.load(Ordering::Relaxed) as f64 / 1e9;
    Ok((responses, done.load(Ordering::Relaxed) as f64 / seconds))
}

type Answering = (UnixStream, JoinHandle<Result<(), Failure>>);

/// A critical thread that works for each event and answers.
fn answering(
    program: &Arc<Program>,
    role: &'static str,
    start: Instant,
) -> Result<Answering, Failure> {
    let (ask, mut asked) = UnixStream::pair()?;
    let program = program.clone();
    let thread = thread::spawn(move || {
        let attributes = Attributes::of(Role::new(role)?).time_critical(Priority::default());
        program.began(identity(), kernel::thread_id(), &attributes, false)?;
        let mut sent = [0; 8];
        asked.write_all(&sent)?;
        while asked.read(&mut sent)? == sent.len() {
            let tid = kernel::thread_id();
            let end = kernel::thread_cpu_ns(tid).unwrap_or(0) + WORK.as_nanos() as u64;
            while kernel::thread_cpu_ns(tid).is_some_and(|it| it < end) {
                compute();
            }
            let response = start.elapsed().as_nanos() as u64 - u64::from_ne_bytes(sent);
            asked.write_all(&response.to_ne_bytes())?;
        }
        program.ended(identity())?;
        Ok(())
    });
    Ok((ask, thread))
}

fn compute() {
    for number in 0..20_000u64 {
        std::hint::black_box(number.wrapping_mul(number));
    }
}

fn identity() -> u64 {
    // SAFETY: has no arguments.
    #[allow(clippy::unnecessary_cast, reason = "narrower on 32 bits")]
    let identity = unsafe { libc::pthread_self() } as u64;
    identity
}
