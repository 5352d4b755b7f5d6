//! The lazy group where the controller of processors belongs to version 2 of control
//! groups: it is idle, critical threads come before it, and everything is as it was when
//! the last program beside it has gone, however it goes.
//!
//! `cargo xtask boot` starts a machine that is such a one. Elsewhere the tests say that
//! they are skipped. Nothing depends on absolute time.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use milieu_threads::attributes::{Attributes, Priority, Role};
use milieu_threads::kernel;
use milieu_threads::mediator::Settings;
use milieu_threads::program::Program;
use milieu_threads::rung::{Rung, probe};

/// What a group says is of all programs in it: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn nobody(_: u32) {}

fn role(name: &str) -> Attributes {
    Attributes::of(Role::new(name).expect("a role"))
}

fn critical() -> Attributes {
    role("probe").time_critical(Priority::new(0).expect("a nice value"))
}

/// The group that this process is in.
struct Home {
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

/// What it says and has.
#[derive(Debug, PartialEq)]
struct State {
    kind: String,
    handed_on: String,
    lazy: Vec<String>,
}

impl Home {
    /// None where this machine, or this group, is none for these tests.
    fn new() -> Option<Home> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let text = fs::read_to_string("/proc/self/cgroup").expect("it is there");
        let name = text.lines().find_map(|it| it.strip_prefix("0::/"));
        let folder = Path::new("/sys/fs/cgroup").join(name.unwrap_or_default());
        let controllers = fs::read_to_string(folder.join("cgroup.controllers"));
        let has_cpu = controllers.is_ok_and(|it| it.split_whitespace().any(|it| it == "cpu"));
        let works = |rung| {
            probe()
                .iter()
                .any(|it| it.rung == rung && it.verdict.is_ok())
        };
        if !has_cpu || !works(Rung::Cgroup) {
            let said = "skipped: the group has no controller `cpu` of version 2 that is delegated";
            let _ = writeln!(std::io::stderr(), "{said}");
            return None;
        }
        Some(Home {
            folder,
            _alone: alone,
        })
    }

    fn says(&self, file: &str) -> String {
        let text = fs::read_to_string(self.folder.join(file));
        text.unwrap_or_else(|error| panic!("{file}: {error}"))
            .trim()
            .to_owned()
    }

    fn state(&self) -> State {
        let entries = fs::read_dir(&self.folder).expect("it is there");
        let names = entries.map(|it| it.expect("a name").file_name().into_string());
        let names = names.map(|it| it.expect("letters"));
        State {
            kind: self.says("cgroup.type"),
            handed_on: self.says("cgroup.subtree_control"),
            lazy: names.filter(|it| it.starts_with("milieu-lazy-")).collect(),
        }
    }

    fn program(&self) -> Program {
        let settings = Settings {
            // Nobody returns because of the time.
            lazy_wait_ns_max: None,
            ..Settings::default()
        };
        Program::start(16, Some(Rung::Cgroup), settings, nobody).expect("it was tried")
    }
}

/// A thread that works until it is told to end.
struct Spinning {
    identity: u64,
    tid: u32,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinning {
    fn new() -> Spinning {
        let (tell, told) = channel();
        let end = Arc::new(AtomicBool::new(false));
        let is_over = end.clone();
        let thread = std::thread::spawn(move || {
            let known = (kernel::identity(), kernel::thread_id());
            tell.send(known).expect("somebody listens");
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (identity, tid) = told.recv().expect("a thread");
        let thread = Some(thread);
        Spinning {
            identity,
            tid,
            end,
            thread,
        }
    }

    fn listed(program: &Program, attributes: &Attributes) -> Spinning {
        let it = Spinning::new();
        let listed = program.began(it.identity, it.tid, attributes, false);
        listed.expect("a line");
        it
    }

    fn group(&self) -> String {
        let path = format!("/proc/self/task/{}/cgroup", self.tid);
        let text = fs::read_to_string(path).expect("it runs");
        let name = text.lines().find_map(|it| it.strip_prefix("0::"));
        name.expect("it is in one").to_owned()
    }

    /// For how long it has had a processor, and has waited for one.
    fn times(&self) -> [u64; 2] {
        let path = format!("/proc/self/task/{}/schedstat", self.tid);
        let text = fs::read_to_string(path).expect("it runs");
        let mut words = text.split(' ').map(|it| it.parse().expect("a number"));
        [words.next(), words.next()].map(|it| it.expect("two of them"))
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|it| it.is_ok()));
    }
}

#[test]
fn lazy_threads_are_in_a_threaded_group_that_is_idle() {
    let Some(home) = Home::new() else { return };
    let before = home.state();
    assert_eq!(before.lazy, [""; 0]);
    let program = home.program();
    let worker = Spinning::listed(&program, &role("worker"));
    let own = worker.group();
    let probe = Spinning::listed(&program, &critical());
    let name = home.state().lazy;
    assert_eq!(name.len(), 1, "{name:?}");
    assert_eq!(worker.group(), format!("{own}/{}", name[0]));
    assert_eq!(probe.group(), own);
    let lazy = |file: &str| home.says(&format!("{}/{file}", name[0]));
    assert_eq!(
        (lazy("cpu.idle"), lazy("cgroup.type")),
        ("1".into(), "threaded".into())
    );
    assert_eq!(lazy("cgroup.threads"), worker.tid.to_string());
    program.set(probe.identity, &role("probe")).expect("listed");
    assert_eq!(worker.group(), own);
    program.set(probe.identity, &critical()).expect("listed");
    assert_ne!(worker.group(), own);
    program.stop();
    assert_eq!(worker.group(), own);
    assert_eq!(home.state(), before);
    assert_eq!(program.refused(), (0, None));
}

/// Of the processor that threads fight for, the critical one has nearly all, and what it
/// had before when it is critical no more. It waits for who is not lazy, as this test's
/// own thread.
#[test]
fn a_critical_thread_has_the_processor_while_lazy_ones_want_it() {
    let Some(home) = Home::new() else { return };
    let program = home.program();
    // Those that begin here have this processor and no other.
    let fight = OneProcessor::new();
    let lazy = [(); 3].map(|()| Spinning::listed(&program, &role("worker")));
    let probe = Spinning::listed(&program, &role("probe"));
    drop(fight);
    // Its share, and how often as long as it has had the processor it has waited for it.
    let look = || {
        let had = || lazy.iter().map(|it| it.times()[0]).sum::<u64>();
        let (others, [ran, waited]) = (had(), probe.times());
        // Until as much was had as takes many slices.
        loop {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let now = probe.times();
            let others = had() - others;
            let (ran, waited) = (now[0] - ran, now[1] - waited);
            if ran + others > 400_000_000 {
                let share = ran as f64 / (ran + others) as f64;
                break (share, waited as f64 / ran as f64);
            }
        }
    };
    let before = look();
    program.set(probe.identity, &critical()).expect("listed");
    let critical = look();
    program.set(probe.identity, &role("probe")).expect("listed");
    let after = look();
    let _ = writeln!(
        std::io::stderr(),
        "shares of the processor: {:.3}, critical {:.3}, {:.3}; waits for as long as it runs: \
         {:.2}, critical {:.2}, {:.2}",
        before.0,
        critical.0,
        after.0,
        before.1,
        critical.1,
        after.1
    );
    for (share, waited) in [before, after] {
        assert!((0.1..0.5).contains(&share), "{share}");
        assert!(critical.1 < waited / 5.0, "{} of {waited}", critical.1);
    }
    assert!(critical.0 > 0.9, "{}", critical.0);
    program.stop();
}

/// This thread has one processor while it lives, and whom it begins, for good.
struct OneProcessor(libc::cpu_set_t);

impl OneProcessor {
    fn new() -> OneProcessor {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: the sets are bits, of which none may be set, and of this size.
        unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(libc::sched_getaffinity(0, size, &raw mut before), 0);
            let first = (0..1024).find(|it| libc::CPU_ISSET(*it, &before));
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(first.expect("it runs on one"), &mut one);
            assert_eq!(libc::sched_setaffinity(0, size, &raw const one), 0);
            OneProcessor(before)
        }
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // SAFETY: a set of this size.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) };
    }
}

/// Programs in one group use the same controller: who goes first leaves it to the others.
#[test]
fn who_goes_first_does_not_take_the_controller_from_others() {
    let Some(home) = Home::new() else { return };
    let before = home.state();
    for first_goes_first in [true, false] {
        let [first, second] = [(); 2].map(|()| {
            let program = home.program();
            let worker = Spinning::listed(&program, &role("worker"));
            let probe = Spinning::listed(&program, &critical());
            (program, worker, probe)
        });
        let (goes, stays) = match first_goes_first {
            true => (first, second),
            false => (second, first),
        };
        assert_eq!(home.state().lazy.len(), 2);
        goes.0.stop();
        // Another one comes, looks, and goes.
        assert!(
            probe()
                .iter()
                .any(|it| it.rung == Rung::Cgroup && it.verdict.is_ok())
        );
        let left = home.state().lazy;
        assert_eq!(left.len(), 1);
        assert!(stays.1.group().ends_with(&left[0]));
        assert_eq!(home.says(&format!("{}/cpu.idle", left[0])), "1");
        stays.0.stop();
        assert_eq!(home.state(), before);
    }
}

const KILLED: &str = "MILIEU_TEST_IS_KILLED";

/// What a program leaves behind that is killed, the next one beside it removes.
#[test]
fn a_program_that_is_killed_leaves_an_empty_group_to_the_next() {
    let Some(home) = Home::new() else { return };
    if std::env::var_os(KILLED).is_some() {
        let program = home.program();
        let _threads = [role("worker"), critical()].map(|it| Spinning::listed(&program, &it));
        println!("begun");
        std::thread::sleep(std::time::Duration::from_secs(600));
        return;
    }
    let before = home.state();
    let mut child = Killed::start();
    let lazy = home.state().lazy;
    assert_eq!(lazy.len(), 1);
    assert_ne!(home.says(&format!("{}/cgroup.threads", lazy[0])), "");
    child.0.kill().expect("it runs");
    child.0.wait().expect("it has ended");
    assert_eq!(home.state().lazy, lazy);
    assert_eq!(home.says(&format!("{}/cgroup.threads", lazy[0])), "");
    drop(home.program());
    assert_eq!(home.state(), before);
}

/// This test once more, as a program of its own.
struct Killed(Child);

impl Killed {
    fn start() -> Killed {
        let mut command = Command::new(std::env::current_exe().expect("a path"));
        let test = "a_program_that_is_killed_leaves_an_empty_group_to_the_next";
        command
            .args(["--exact", test, "--nocapture"])
            .env(KILLED, "1")
            .stdout(Stdio::piped());
        let mut child = Killed(command.spawn().expect("it starts"));
        let out = child.0.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(out).lines();
        let begun = lines.any(|it| it.is_ok_and(|it| it.ends_with("begun")));
        assert!(begun, "it has ended");
        child
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
