//! What watching costs: the way of a commit to a callback, and doing nothing.
//!
//! `list` prints the names, `count OPERATION N` executes one of them `N` times,
//! `time [OPERATION…]` prints a line of JSON for each with its `name` and `value`:
//!
//! - `watch-commit`: ns at the median from the order to another process to
//!   commit until the callback here runs with the change. The files lie in
//!   memory, so what a disk takes for the commit does not count;
//! - `watch-idle`: how often in two seconds the thread that watches was put on a
//!   processor or went to sleep, and the ns that it ran.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use milieu_keys::{Name, Namespace};
use milieu_store::watch::{Filter, Pace, Registration, Watch};
use milieu_store::{Change, Place, Store, Strategy};

const OPERATIONS: [&str; 2] = ["watch-commit", "watch-idle"];
const ROUNDS: usize = 201;
const IDLE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| *word != "--bench")
        .collect();
    match words.as_slice() {
        ["list"] => OPERATIONS.iter().for_each(|name| println!("{name}")),
        ["count", name, times] if OPERATIONS.contains(name) => {
            let Ok(times) = times.parse::<usize>() else {
                return usage();
            };
            let mut watched = Watched::new();
            for _ in 0..times {
                match *name {
                    "watch-commit" => drop(watched.commit()),
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        }
        ["time", names @ ..] => {
            for name in OPERATIONS {
                if names.is_empty() || names.contains(&name) {
                    let (value, unit) = match name {
                        "watch-commit" => (commit(), "ns"),
                        _ => (idle(), "switches and ns"),
                    };
                    println!("{{\"name\":\"{name}\",\"value\":{value},\"unit\":\"{unit}\"}}");
                }
            }
        }
        ["write", path] => write(Path::new(path)),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: list | count OPERATION N | time [OPERATION…]");
    ExitCode::from(2)
}

/// The median of many.
fn commit() -> u128 {
    let mut watched = Watched::new();
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| watched.commit()).collect();
    times.sort_unstable();
    times[ROUNDS / 2].as_nanos()
}

fn idle() -> u128 {
    let mut watched = Watched::new();
    watched.commit();
    // A busy machine may take its time for the last of what was to be done.
    let mut before = 0;
    while before != counted() {
        before = counted();
        std::thread::sleep(Duration::from_millis(200));
    }
    std::thread::sleep(IDLE);
    u128::from(counted() - before)
}

/// What the kernel counts of the thread that watches.
fn counted() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("the kernel shows threads");
    let mut tasks = tasks.map(|task| task.expect("and all of them").path());
    let name = |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap_or_default();
    let task = tasks.find(|task| name(task).trim() == "milieu-watch");
    let task = task.expect("the thread runs");
    let read = |file| fs::read_to_string(task.join(file)).expect("the thread can be looked at");
    let number = |text: &str| text.parse::<u64>().expect("the kernel counts");
    let schedule = read("schedstat");
    // How long it ran, how long it waited for a processor, how often it got one.
    let schedule: Vec<u64> = schedule.split_whitespace().map(number).collect();
    let status = read("status");
    let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
    let switches = switches.filter_map(|line| line.split_whitespace().last());
    schedule[0] + schedule[2] + switches.map(number).sum::<u64>()
}

/// A watched store, and another process that commits when it is told to.
struct Watched {
    folder: PathBuf,
    order: ChildStdin,
    writer: Child,
    called: Receiver<Instant>,
    /// Holds the callback, and is dropped before the watch.
    _registration: Registration,
    _watch: Watch,
}

impl Watched {
    fn new() -> Watched {
        let memory = Path::new("/dev/shm");
        let temporary = std::env::temp_dir();
        let folder = if memory.is_dir() { memory } else { &temporary };
        let folder = folder.join(format!("milieu-watch-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        let path = folder.join("app.ini");
        fs::write(&path, "[/sw/pi]\nlanguage = de\n").expect("the folder was just made");
        let store = Store::read(vec![place(&path)]).expect("the file is right");
        let watch = Watch::start(&store, Pace::default()).expect("files can be watched");
        let (call, called) = channel();
        let registration = watch.on_change(store.keys(), Filter::all(), move |_| {
            let _ = call.send(Instant::now());
        });
        let program = std::env::current_exe().expect("this program has a path");
        let mut writer = Command::new(program)
            .arg("write")
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("this program runs");
        let order = writer.stdin.take().expect("it was asked for");
        Watched {
            folder,
            order,
            writer,
            called,
            _registration: registration,
            _watch: watch,
        }
    }

    /// Has the other process commit, and says how long it took to know of it.
    fn commit(&mut self) -> Duration {
        let start = Instant::now();
        self.order.write_all(b".").expect("the other process runs");
        let called = self.called.recv_timeout(Duration::from_secs(20));
        called.expect("the callback is called") - start
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.writer.kill();
        let _ = self.writer.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The other process.
fn write(path: &Path) {
    let mut store = Store::read(vec![place(path)]).expect("the file is right");
    let name = Name::parse("/sw/pi/count").expect("a name");
    for (count, _) in std::io::stdin().lock().bytes().enumerate() {
        let change = [Change::set(name.clone(), count.to_string())];
        store
            .commit(Namespace::User, &change, Strategy::Ours)
            .expect("the file can be written");
    }
}

fn place(path: &Path) -> Place {
    Place::new(Namespace::User, path.to_owned())
}
