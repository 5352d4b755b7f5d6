//! Two critical threads that answer timers beside many that work, as in Figure 10; but the
//! two and the many are of different programs, neither of which knows of Milieu, and what
//! mediates is `milieu thread mediate`, by rules.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use experiments::{Failed, number as parameter, text, whole};
use milieu_bench::run::protocol::Start;
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::Numbers;
use super::contention::{self, Run};
use super::waits;
use super::work::{self, Ending, Gate};

/// With this argument the program answers timers.
pub const ANSWERS: &str = "--answer-timers";
/// With this argument the program always has something to do.
pub const TOILS: &str = "--toil";
/// With this argument it says how long its threads waited meanwhile.
pub const WAITS: &str = "--wait";
/// With this argument critical threads nearly always work.
pub const BUSY: &str = "--be-busy";

/// Who is who. Nobody else on this machine is moved.
const RULES: &str = "only tek-*\ncritical tek-answers probe\ncritical tek-answers display\n";
/// Threads that are critical by that, of which one or the other program has some.
const CRITICAL: u64 = 2;

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get() as u64;
    let workers = (whole(start, "threads")? * cores).to_string();
    let events = whole(start, "events")?.to_string();
    let work_ms = parameter(start, "work")?.to_string();
    let programs = Programs::new()?;
    let rung = text(start, "rung")?;
    let works = programs.mediator(&rung, &[])?.is_some();
    let run = |is_mediated: bool| -> Result<Run, Failed> {
        let others = programs.start("tek-toils", &[TOILS, &workers])?;
        let mediator = match is_mediated && works {
            true => programs.mediator(&rung, &[])?,
            false => None,
        };
        let answers = programs.start("tek-answers", &[ANSWERS, &events, &work_ms])?;
        if let Some(mediator) = &mediator {
            mediator.wait_until_found(CRITICAL)?;
        }
        let mut sum: Run = answers.end()?;
        sum.add(others.end()?);
        Ok(sum)
    };
    contention::compare(whole(start, "pairs")?, works, run)
}

/// How long threads wait of one program beside critical ones of another that leave them next
/// to nothing, as `waits` measures within a program.
pub fn waits(start: &Start) -> Result<Numbers, Failed> {
    let cores = thread::available_parallelism()?.get() as u64;
    let workers = (whole(start, "threads")? * cores).to_string();
    let wait = (parameter(start, "wait")? / 1e3).to_string();
    let turn = whole(start, "turn")?.to_string();
    let programs = Programs::new()?;
    let turn_max = whole(start, "turn_max")?.to_string();
    let settings = [
        "--wait-max",
        &wait,
        "--turn",
        &turn,
        "--turn-max",
        &turn_max,
    ];
    let mut others = programs.start("tek-toils", &[WAITS, &workers])?;
    let mediator = programs.mediator(&text(start, "rung")?, &settings)?;
    let busy = programs.start("tek-answers", &[BUSY, &cores.to_string()])?;
    if let Some(mediator) = &mediator {
        mediator.wait_until_found(cores)?;
    }
    others.go()?;
    let used = || mediator.as_ref().map_or(Ok(0.0), Mediator::processor);
    let (begun, before) = (work::now(), used()?);
    thread::sleep(Duration::from_secs_f64(parameter(start, "seconds")?));
    let mediators = (used()? - before) / (work::now() - begun);
    let waits_ms: Vec<f64> = others.end()?;
    let share = busy.end()?;
    let mut numbers = waits::numbers(mediator.is_some(), &waits_ms, share);
    numbers.push(("mediator_share", mediators));
    Ok(numbers)
}

/// Programs under names that rules can tell apart, and where a mediator of theirs is found.
struct Programs(TempDir);

impl Programs {
    fn new() -> Result<Programs, Failed> {
        let folder = tempfile::tempdir()?;
        for name in ["tek-toils", "tek-answers"] {
            std::fs::copy(std::env::current_exe()?, folder.path().join(name))?;
        }
        std::fs::write(folder.path().join("rules"), RULES)?;
        Ok(Programs(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts one, and waits until all of its threads are there.
    fn start(&self, name: &str, arguments: &[&str]) -> Result<Program, Failed> {
        let mut command = Command::new(self.path(name));
        command.args(arguments).stdin(Stdio::piped());
        let mut child = Running(command.stdout(Stdio::piped()).spawn()?);
        let output = child.0.stdout.take().ok_or("it has no pipe")?;
        let mut output = BufReader::new(output);
        output.read_line(&mut String::new())?;
        Ok(Program { child, output })
    }

    /// Starts a mediator; none if the rung does not work here.
    fn mediator(&self, rung: &str, settings: &[&str]) -> Result<Option<Mediator<'_>>, Failed> {
        let mut command = self.milieu();
        command.args(settings);
        command.args(["--rung", rung, "--json", "--rules"]);
        command.arg(self.path("rules"));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Running(command.spawn()?);
        let output = child.0.stdout.take().ok_or("it has no pipe")?;
        let mut output = BufReader::new(output);
        let is_ready = output.read_line(&mut String::new())? > 0;
        Ok(is_ready.then_some(Mediator {
            child,
            programs: self,
            _output: output,
        }))
    }

    fn milieu(&self) -> Command {
        let mut command = Command::new("milieu");
        command.args(["thread", "mediate", "--folder"]);
        command.arg(self.path("run"));
        command
    }
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that has begun, and goes on when its input ends.
struct Program {
    child: Running,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// It measures from now on.
    fn go(&mut self) -> Result<(), Failed> {
        let input = self.child.0.stdin.as_mut();
        Ok(input.ok_or("it has no pipe")?.write_all(b"g")?)
    }

    /// What it has measured.
    fn end<T: serde::de::DeserializeOwned>(mut self) -> Result<T, Failed> {
        drop(self.child.0.stdin.take());
        Ok(serde_json::from_reader(self.output)?)
    }
}

/// A mediator that runs.
struct Mediator<'p> {
    child: Running,
    programs: &'p Programs,
    /// It may go on telling.
    _output: BufReader<ChildStdout>,
}

impl Mediator<'_> {
    /// The processor time that it has had, in seconds.
    fn processor(&self) -> Result<f64, Failed> {
        let number = i32::try_from(self.child.0.id())?;
        let clock = clock_getcpuclockid(Pid::from_raw(number))?;
        Ok(Duration::from(clock.now()?).as_secs_f64())
    }

    /// Waits until it has found so many critical threads: it looks once a second.
    fn wait_until_found(&self, critical: u64) -> Result<(), Failed> {
        const LOOKS: u32 = 600;
        for _ in 0..LOOKS {
            let output = self.programs.milieu().args(["--status", "--json"]).output();
            // Of the mediator; the lines after it are of threads.
            let status = output?.stdout;
            let first = status.split(|it| *it == b'\n').next().unwrap_or_default();
            let status: Value = serde_json::from_slice(first)?;
            if status["fast"] == critical {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err("the mediator does not find the critical threads".into())
    }
}

impl Drop for Mediator<'_> {
    /// Everybody has what he had when it has ended.
    fn drop(&mut self) {
        let number = i32::try_from(self.child.0.id()).unwrap_or_default();
        if kill(Pid::from_raw(number), Signal::SIGTERM).is_ok() {
            let _ = self.child.0.wait();
        }
    }
}

/// The program of so many threads that work, until the input ends.
pub fn toil(arguments: &[String]) -> Result<(), Failed> {
    let [workers] = arguments else {
        return Err("how many?".into());
    };
    let workers: u64 = workers.parse()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let sum = thread::scope(|scope| -> Result<Run, Failed> {
        let (gate, is_over) = (&gate, &is_over);
        let _ending = Ending { gate, is_over };
        let toil = || contention::toil(0, gate, is_over);
        let begin = |_| thread::Builder::new().spawn_scoped(scope, toil);
        let threads = (0..workers).map(begin).collect::<Result<Vec<_>, _>>()?;
        gate.open();
        wait_to_go_on()?;
        is_over.store(true, Ordering::Relaxed);
        sum(threads)
    })?;
    tell(&sum)
}

/// The program of two threads that each answer so many timers by some work, when the input
/// has ended.
pub fn answer(arguments: &[String]) -> Result<(), Failed> {
    let [events, work_ms] = arguments else {
        return Err("how many, and by how much work?".into());
    };
    let (events, work_ms): (u64, f64) = (events.parse()?, work_ms.parse()?);
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let sum = thread::scope(|scope| -> Result<Run, Failed> {
        let (gate, is_over) = (&gate, &is_over);
        let _ending = Ending { gate, is_over };
        let answers = || {
            gate.pass();
            contention::answer(events, work_ms, || {
                let due = work::now() + f64::from(fastrand::u16(20..40)) / 1e3;
                work::sleep_until(due);
                Some(due)
            })
        };
        let begin = |name: &str| {
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, answers)
        };
        let threads = vec![begin("probe")?, begin("display")?];
        wait_to_go_on()?;
        gate.open();
        sum(threads)
    })?;
    tell(&sum)
}

/// The program of so many threads that always work: how long they waited, from when the input
/// says so until it ends.
pub fn wait(arguments: &[String]) -> Result<(), Failed> {
    let [workers] = arguments else {
        return Err("how many?".into());
    };
    let workers: u64 = workers.parse()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let waits_ms = thread::scope(|scope| -> Result<Vec<f64>, Failed> {
        let (gate, is_over) = (&gate, &is_over);
        let _ending = Ending { gate, is_over };
        let begin = |_| thread::Builder::new().spawn_scoped(scope, || waits::wait(gate, is_over));
        let threads = (0..workers).map(begin).collect::<Result<Vec<_>, _>>()?;
        println!();
        std::io::stdin().read_exact(&mut [0])?;
        gate.open();
        std::io::stdin().read_to_end(&mut Vec::new())?;
        is_over.store(true, Ordering::Relaxed);
        let mut waits_ms = Vec::new();
        for thread in threads {
            waits_ms.extend(thread.join().map_err(|_| "a thread has panicked")?);
        }
        Ok(waits_ms)
    })?;
    tell(&waits_ms)
}

/// The program of so many critical threads that nearly always work, until the input ends:
/// what they had of a processor each.
pub fn be_busy(arguments: &[String]) -> Result<(), Failed> {
    let [threads] = arguments else {
        return Err("how many?".into());
    };
    let threads: u64 = threads.parse()?;
    let (gate, is_over) = (Gate::default(), AtomicBool::new(false));
    let begun = work::now();
    let used = thread::scope(|scope| -> Result<f64, Failed> {
        let (gate, is_over) = (&gate, &is_over);
        let _ending = Ending { gate, is_over };
        gate.open();
        let begin = |_| {
            let thread = thread::Builder::new().name("probe".to_owned());
            thread.spawn_scoped(scope, || waits::be_busy(gate, is_over))
        };
        let all = (0..threads).map(begin).collect::<Result<Vec<_>, _>>()?;
        wait_to_go_on()?;
        is_over.store(true, Ordering::Relaxed);
        let mut used = 0.0;
        for thread in all {
            used += thread.join().map_err(|_| "a thread has panicked")?;
        }
        Ok(used)
    })?;
    tell(&(used / (work::now() - begun) / super::number(threads)))
}

/// What several threads have measured.
fn sum(threads: Vec<thread::ScopedJoinHandle<'_, Run>>) -> Result<Run, Failed> {
    let mut sum = Run::default();
    for thread in threads {
        sum.add(thread.join().map_err(|_| "a thread has panicked")?);
    }
    Ok(sum)
}

/// Says that all threads are there, and waits until the input ends.
fn wait_to_go_on() -> Result<(), Failed> {
    println!();
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn tell(measured: &impl serde::Serialize) -> Result<(), Failed> {
    Ok(serde_json::to_writer(std::io::stdout(), measured)?)
}
