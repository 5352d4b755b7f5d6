//! Programs in languages with run times of their own, which do a portion of work with
//! many threads for each line that they read.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use experiments::Failed;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::side::{Process, Side, succeeded};
use crate::{Program, Running};

/// The argument by which this program itself is one.
pub const SHORT_THREADS: &str = "short-threads";

/// A program and its arguments.
pub struct Worker {
    program: PathBuf,
    arguments: Vec<String>,
}

/// Eight threads, of which each fills and sorts tables of objects.
pub fn java(scratch: &Path, size: u64) -> Result<Worker, Failed> {
    let source = scratch.join("Load.java");
    fs::write(&source, include_str!("Load.java"))?;
    let mut compiler = Command::new("javac");
    compiler.arg("-J-Xmx128m").arg("-d").arg(scratch);
    succeeded(compiler.arg(&source))?;
    let folder = scratch.to_string_lossy().into_owned();
    let options = ["-Xmx128m", "-XX:-UsePerfData", "-cp"].map(str::to_owned);
    let rest = [folder, "Load".to_owned(), size.to_string()];
    Ok(Worker {
        program: "java".into(),
        arguments: options.into_iter().chain(rest).collect(),
    })
}

/// Keys are derived and text is compressed, in the threads of its pool.
pub fn node(scratch: &Path, size: u64) -> Result<Worker, Failed> {
    script(scratch, "node", "load.js", include_str!("load.js"), size)
}

/// Eight threads, of which each compresses and computes digests.
pub fn python(scratch: &Path, size: u64) -> Result<Worker, Failed> {
    script(scratch, "python3", "load.py", include_str!("load.py"), size)
}

/// Threads that are created and joined, one after the other.
pub fn short_threads(size: u64) -> Result<Worker, Failed> {
    Ok(Worker {
        program: std::env::current_exe()?,
        arguments: vec![SHORT_THREADS.to_owned(), size.to_string()],
    })
}

fn script(
    scratch: &Path,
    program: &str,
    name: &str,
    text: &str,
    size: u64,
) -> Result<Worker, Failed> {
    let path = scratch.join(name);
    fs::write(&path, text)?;
    Ok(Worker {
        program: program.into(),
        arguments: vec![path.to_string_lossy().into_owned(), size.to_string()],
    })
}

impl Program for Worker {
    fn start(&self, side: &Side) -> Result<Box<dyn Running>, Failed> {
        let mut command = side.command(&self.program)?;
        command.args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let mut running = Pipes {
            name: self.program.to_string_lossy().into_owned(),
            side: side.clone(),
            input,
            output: output.ok_or("no output")?,
            process: Process::new(child),
        };
        running.work()?;
        Ok(Box::new(running))
    }
}

struct Pipes {
    name: String,
    side: Side,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    process: Process,
}

impl Pipes {
    fn line(&mut self, line: &[u8]) -> Result<(), Failed> {
        let mut input = self.input.as_ref().ok_or("it has ended")?;
        let mut answer = String::new();
        let told = input
            .write_all(line)
            .and_then(|()| self.output.read_line(&mut answer));
        match told {
            Ok(_) if answer.trim() == "done" => Ok(()),
            _ => {
                // Whatever it says, it has ended, or is of no use.
                let said = self.side.said();
                let last = said.lines().last().unwrap_or("nothing");
                let way = self.side.way.name();
                Err(format!("{}, {way}, answers {answer:?} and says {last}", self.name).into())
            }
        }
    }
}

impl Running for Pipes {
    fn work(&mut self) -> Result<f64, Failed> {
        let begun = Instant::now();
        self.line(b"work\n")?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn processor(&mut self) -> Result<f64, Failed> {
        self.process.processor()
    }

    fn during(&mut self, look: &mut dyn FnMut(u32) -> Result<(), Failed>) -> Result<(), Failed> {
        self.line(b"hold\n")?;
        look(self.process.child()?.id())?;
        self.line(b"go on\n")
    }

    fn end(self: Box<Self>) -> Result<(), Failed> {
        let Pipes {
            name,
            side,
            input,
            process,
            ..
        } = *self;
        drop(input);
        let status = process.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(side.failed(&name, status)),
        }
    }
}

/// A program of Rust's standard library that knows nothing of Milieu.
///
/// It has one processor: as threads come one by one, no more than one has something to do,
/// and on which of several they are decides more than what they do.
pub fn create_and_join() {
    let itself = Pid::from_raw(0);
    let first = sched_getaffinity(itself).and_then(|all| {
        let mut processors = 0..CpuSet::count();
        let first = processors.find(|it| all.is_set(*it) == Ok(true));
        let mut one = CpuSet::new();
        one.set(first.unwrap_or(0)).map(|()| one)
    });
    if let Err(error) = first.and_then(|one| sched_setaffinity(itself, &one)) {
        eprintln!("no processor can be chosen: {error}");
    }
    let count: u64 = std::env::args()
        .nth(2)
        .and_then(|it| it.parse().ok())
        .unwrap_or(1);
    let mut held = Vec::new();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "hold" => {
                let (hold, holds) = std::sync::mpsc::channel::<()>();
                let holds = std::sync::Arc::new(std::sync::Mutex::new(holds));
                for _ in 0..64 {
                    let (holds, (tell, told)) = (holds.clone(), std::sync::mpsc::channel());
                    std::thread::spawn(move || {
                        let _ = tell.send(());
                        let _ = holds.lock().map(|it| it.recv());
                    });
                    let _ = told.recv();
                }
                held.push(hold);
            }
            "go on" => held.clear(),
            _ => {
                for number in 0..count {
                    let thread = std::thread::spawn(move || std::hint::black_box(number));
                    let _ = thread.join();
                }
            }
        }
        println!("done");
    }
}
