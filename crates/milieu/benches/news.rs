//! How long a change takes from another process into a contextual value.
//!
//! It answers as `xtask/measure` says, with one operation:
//!
//! - `watch-value`: ns at the median from the order to another process to
//!   commit until a context here, which waits for news and synchronizes, reads
//!   the new value. The files lie in memory, so what a disk takes for the commit
//!   does not count.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use milieu::keys::{Name, Namespace};
use milieu::store::{Change, Place, Store, Strategy};
use milieu::{Context, Environment, Milieu, Start, Watching};

const OPERATION: &str = "watch-value";
const KEY: &str = "/sw/pi/count";
const ROUNDS: usize = 201;
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Environment)]
#[environment(root = "/sw/pi")]
struct Settings {
    #[key(default = 0)]
    count: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words = arguments.iter().map(String::as_str);
    let words: Vec<&str> = words.filter(|word| *word != "--bench").collect();
    match words.as_slice() {
        ["list"] => println!("{OPERATION}"),
        ["count", OPERATION, times] => {
            let Ok(times) = times.parse::<usize>() else {
                return usage();
            };
            let mut watched = Watched::new();
            (0..times).for_each(|_| _ = watched.change());
        }
        ["time", names @ ..] if names.is_empty() || names.contains(&OPERATION) => {
            let value = median().as_nanos();
            println!("{{\"name\":\"{OPERATION}\",\"value\":{value},\"unit\":\"ns\"}}");
        }
        ["time", ..] => {}
        ["write", path] => write(Path::new(path)),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: list | count OPERATION N | time [OPERATION…]");
    ExitCode::from(2)
}

fn median() -> Duration {
    let mut watched = Watched::new();
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| watched.change()).collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

/// A program with a context, and another process that commits when it is told to.
struct Watched {
    folder: PathBuf,
    order: ChildStdin,
    writer: Child,
    cx: Context<Settings>,
    _watching: Watching,
    _milieu: Milieu,
}

impl Watched {
    fn new() -> Watched {
        let memory = Path::new("/dev/shm");
        let temporary = std::env::temp_dir();
        let folder = if memory.is_dir() { memory } else { &temporary };
        let folder = folder.join(format!("milieu-watch-value-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        let path = folder.join("pi.ini");
        let builder = Milieu::builder("pi").files(vec![place(&path)]);
        let Start::Run(milieu) = builder.start().expect("there is no file yet") else {
            unreachable!("no command line was given");
        };
        let cx = milieu.context().expect("a valid environment");
        let watching = milieu.watch(|_| ()).expect("files can be watched");
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
            cx,
            _watching: watching,
            _milieu: *milieu,
        }
    }

    /// Has the other process commit, and says how long it took to read it.
    fn change(&mut self) -> Duration {
        let expected = self.cx.count + 1;
        let start = Instant::now();
        self.order.write_all(b".").expect("the other process runs");
        while self.cx.count != expected {
            assert!(start.elapsed() < PATIENCE, "no news");
            self.cx.wait(start + PATIENCE);
            self.cx.sync();
        }
        start.elapsed()
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
    let name = Name::parse(KEY).expect("a name");
    for (count, _) in std::io::stdin().lock().bytes().enumerate() {
        let change = [Change::set(name.clone(), (count + 1).to_string())];
        store
            .commit(Namespace::User, &change, Strategy::Ours)
            .expect("the file can be written");
    }
}

fn place(path: &Path) -> Place {
    Place::new(Namespace::User, path)
}
