//! Stacks of threads with roles: how deep they are, and what is learned of that.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milieu::Milieu;
use milieu::threads::{Mediator, Mode, Policy, Role, Spawned, StackSize, View};
use support::{Machine, open_in};

/// Which tables the process has is of the process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn role(name: &str) -> Role {
    Role::new(name).expect("a role")
}

/// Waits, for as long as it takes.
fn until(what: impl Fn() -> bool) {
    while !what() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Uses that much of its stack.
#[inline(never)]
fn use_stack(bytes: usize) -> u8 {
    let frame = std::hint::black_box([1_u8; 16 << 10]);
    let deeper = match bytes.checked_sub(frame.len()) {
        Some(rest) if rest > 0 => use_stack(rest),
        _ => 0,
    };
    std::hint::black_box(&frame)[bytes % frame.len()].wrapping_add(deeper)
}

/// A thread that uses as much of its stack as it is told to, until it is dropped.
struct Digging {
    thread: Option<Spawned<JoinHandle<()>>>,
    dig: Option<Sender<usize>>,
    done: Receiver<()>,
}

impl Digging {
    fn of(mediator: &Mediator, role: &str, stack: u64) -> Digging {
        let (dig, orders): (_, Receiver<usize>) = channel();
        let (tell, done) = channel();
        let builder = mediator.thread(role).expect("a role");
        let builder = builder.stack(StackSize::of_bytes(stack).expect("a size"));
        let thread = builder.spawn(move || {
            tell.send(()).expect("somebody listens");
            for bytes in orders {
                use_stack(bytes);
                tell.send(()).expect("somebody listens");
            }
        });
        let digging = Digging {
            thread: Some(thread.expect("a thread")),
            dig: Some(dig),
            done,
        };
        digging.done.recv().expect("it runs");
        digging
    }

    fn dig(&self, bytes: usize) {
        let dig = self.dig.as_ref().expect("it runs");
        dig.send(bytes).expect("it runs");
        self.done.recv().expect("it does so");
    }

    /// The size of its stack and the most of it that was used, in KiB.
    fn stack(&self) -> (u32, u32) {
        let thread = self.thread.as_ref().expect("it was begun");
        let entry = thread.entry().expect("it is listed");
        (entry.stack_kib, entry.stack_kib_peak)
    }
}

impl Drop for Digging {
    fn drop(&mut self) {
        drop(self.dig.take());
        let ended = self.thread.take().map(Spawned::<JoinHandle<()>>::join);
        assert!(ended.is_none_or(|it| it.is_ok()) || thread::panicking());
    }
}

#[test]
fn the_table_tells_how_deep_threads_are_that_run() {
    let _alone = alone();
    let policy = Policy {
        mode: Mode::Learn,
        ..Policy::default()
    };
    let milieu = Milieu::in_memory();
    let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
    let mediator = mediator.start().expect("memory");
    // Larger than those of threads that have ended, of which the C library makes new ones.
    let pool = Digging::of(&mediator, "pool", 4 << 20);
    let other = Digging::of(&mediator, "other", 4 << 20);
    // Others are told what was noted when it began.
    let view = View::of_process(std::process::id()).expect("our own");
    let viewed = || {
        let (_, entry) = view.with_role(role("pool")).next().expect("listed");
        (entry.stack_kib, entry.stack_kib_peak)
    };
    let (kib, peak) = viewed();
    if kib == 0 {
        // Where the kernel tells nothing of stacks, nothing is known.
        return;
    }
    assert!((4096..4200).contains(&kib), "{kib}");
    assert!((1..256).contains(&peak), "{peak}");

    pool.dig(300 << 10);
    let (_, deeper) = pool.stack();
    assert!((300..1000).contains(&deeper), "{deeper}");
    assert!(other.stack().1 < 256);
    let of_role = mediator.with_role(role("pool")).next().expect("listed");
    assert_eq!((of_role.stack_kib, of_role.stack_kib_peak), (kib, deeper));
    assert_eq!(viewed(), (kib, deeper), "it is noted for others, too");

    // Without anybody in this process asking, the mediator's thread looks at it.
    pool.dig(1 << 20);
    until(|| viewed().1 >= 1 << 10);
    assert_eq!(viewed().0, kib);
}

#[test]
fn what_was_learned_of_stacks_is_there_in_the_next_run() {
    let _alone = alone();
    let machine = Machine::new();
    let policy = Policy {
        mode: Mode::Force,
        runs_min: 2,
        threads_min: 2,
        ..Policy::default()
    };
    let deep = 300 << 10;
    let mut sizes = Vec::new();
    for run in 1..=3 {
        let milieu = machine.open();
        let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
        let mediator = mediator.start().expect("memory");
        for _ in 0..2 {
            let builder = mediator.thread("pool").expect("a role");
            let thread = builder.spawn(move || use_stack(deep)).expect("a thread");
            let known = thread.clone();
            thread.join().expect("it ends well");
            assert!(known.entry().is_none());
        }
        let Some(learned) = mediator.learned(role("pool")) else {
            // Where the kernel tells nothing of stacks, nothing is learned.
            return;
        };
        assert!(learned.peak_bytes >= deep as u64, "{learned:?}");
        assert_eq!((learned.runs, learned.threads), (run, 2 * u64::from(run)));
        mediator.persist_stacks(&milieu).expect("it can be written");
        let stacks = milieu.coordinator().require_lock();
        let keys = stacks.entries();
        let kept = |what: &str| {
            let name = format!("/pool/stack/learned/{what}");
            keys.iter()
                .find(|it| it.name == name)
                .map(|it| it.text.to_owned())
        };
        if kept("build").is_none() {
            // Linked without a build id.
            return;
        }
        assert_eq!(kept("threads"), Some(learned.threads.to_string()));
        assert!(machine.text().contains("peak"), "{}", machine.text());
        let waiting = mediator.thread("pool").expect("a role");
        let waiting = waiting.spawn(move || use_stack(deep)).expect("a thread");
        sizes.push(policy.enough_bytes(learned.peak_bytes));
        waiting.join().expect("what was learned is enough");
    }
    assert!(sizes.iter().all(|it| *it < 2 << 20), "{sizes:?}");
    // Another build has other threads.
    let text = machine.text();
    let build = text.lines().find(|it| it.contains("build")).expect("kept");
    let other = text.replace(
        build,
        &build.replace(build.split('=').nth(1).unwrap(), " 00ff"),
    );
    let machine = Machine::new().user(&other);
    let milieu = machine.open();
    let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
    let mediator = mediator.start().expect("memory");
    assert_eq!(mediator.learned(role("pool")), None);
}

#[test]
fn threads_that_never_end_are_learned_as_well() {
    let _alone = alone();
    let machine = Machine::new();
    let policy = Policy {
        mode: Mode::Learn,
        ..Policy::default()
    };
    let milieu = machine.open();
    let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
    let mediator = mediator.start().expect("memory");
    let pool: Vec<_> = (0..3)
        .map(|_| Digging::of(&mediator, "pool", 4 << 20))
        .collect();
    pool[1].dig(500 << 10);
    let Some(learned) = mediator.learned(role("pool")) else {
        // Where the kernel tells nothing of stacks, nothing is learned.
        return;
    };
    assert_eq!((learned.runs, learned.threads), (1, 3));
    assert!(learned.peak_bytes >= 500 << 10, "{learned:?}");
    mediator.persist_stacks(&milieu).expect("it can be written");
    // Who ends after that counts once.
    drop(pool);
    assert_eq!(mediator.learned(role("pool")).map(|it| it.threads), Some(3));
    drop(mediator);

    if !machine.text().contains("build") {
        // Linked without a build id.
        return;
    }
    let milieu = machine.open();
    let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
    let mediator = mediator.start().expect("memory");
    assert_eq!(mediator.learned(role("pool")), Some(learned));
}

/// What a process of its own is told by, which does what [`runs`] does.
const CASE: &str = "STACKS_CASE";
const FOLDER: &str = "STACKS_FOLDER";

#[inline(never)]
fn overflow(depth: u64) -> u64 {
    if depth == u64::MAX {
        return 0;
    }
    let frame = [depth; 64];
    let frame = std::hint::black_box(&frame);
    overflow(depth + 1) + frame[1]
}

/// A run of a program with a pool of threads, which is deep in one of them or not.
fn runs(folder: &Path, is_deep: bool) {
    let milieu = open_in(folder);
    let policy = Policy {
        mode: Mode::Force,
        runs_min: 2,
        threads_min: 2,
        ..Policy::default()
    };
    let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
    let mediator = mediator.start().expect("memory");
    let has_overflowed = mediator
        .learned(role("pool"))
        .is_some_and(|it| it.has_overflowed);
    for _ in 0..2 {
        let pool = mediator.thread("pool").expect("a role");
        let (ask, asked) = channel::<()>();
        let thread = pool.spawn(move || {
            let _ = asked.recv();
            if is_deep { overflow(0) } else { 0 }
        });
        let thread = thread.expect("a thread");
        let kib = loop {
            // It may not have begun yet.
            match thread.entry().map(|it| it.stack_kib) {
                Some(kib) if kib > 0 => break kib,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        };
        println!("stack={kib} overflowed={has_overflowed}");
        drop(ask);
        thread.join().expect("it ends well");
    }
    mediator.persist_stacks(&milieu).expect("it can be written");
}

#[test]
fn child_of_the_other_tests() {
    let Ok(case) = std::env::var(CASE) else {
        return;
    };
    // No core: these deaths are meant.
    let limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel reads one such structure.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) };
    let folder = std::env::var_os(FOLDER).expect("the parent says it");
    runs(Path::new(&folder), case == "deep");
}

struct Ran {
    output: Output,
}

impl Ran {
    fn of(case: &str, machine: &Machine) -> Ran {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child_of_the_other_tests", "--nocapture"])
            .env(CASE, case)
            .env(FOLDER, machine.folder())
            .output();
        let output = output.expect("this program runs");
        let is_well = output.status.success() == (case != "deep");
        assert!(is_well, "{}", String::from_utf8_lossy(&output.stderr));
        Ran { output }
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The stacks of its threads in KiB, and whether it knew of an overflow.
    fn said(&self) -> Vec<(u32, bool)> {
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        let said = stdout.lines().filter_map(|line| {
            let (_, said) = line.split_once("stack=")?;
            let (kib, overflowed) = said.split_once(" overflowed=")?;
            Some((kib.parse().ok()?, overflowed == "true"))
        });
        said.collect()
    }

    fn is_tuned(&self) -> bool {
        let said = self.said();
        assert!(!said.is_empty(), "{}", self.stderr());
        said.iter().all(|(kib, _)| *kib < 1 << 10)
    }
}

#[test]
fn who_has_overflowed_a_learned_stack_is_not_tuned_again() {
    let _alone = alone();
    let machine = Machine::new();
    let policy = Policy::default();
    let milieu = machine.open();
    let mediator = Mediator::options().unmediated().stacks(&milieu, policy);
    let mediator = mediator.start().expect("memory");
    if Digging::of(&mediator, "pool", 4 << 20).stack().0 == 0 {
        // Where the kernel tells nothing of stacks, nothing is learned.
        return;
    }
    drop(mediator);

    let learning = [0; 2].map(|_| Ran::of("shallow", &machine));
    if !machine.text().contains("build") {
        // Linked without a build id.
        return;
    }
    assert!(!learning[0].is_tuned() && !learning[1].is_tuned());
    let file = machine.user_file().with_file_name(".hello.ini.stacks");
    let lines = || {
        let text = std::fs::read_to_string(&file).expect("it was noted");
        text.lines().filter(|it| it.contains("role=pool")).count()
    };
    assert!(!file.exists());

    let deep = Ran::of("deep", &machine);
    assert!(deep.is_tuned(), "{:?}", deep.said());
    assert!(deep.output.status.signal().is_some());
    let report = deep.stderr();
    let line = report.lines().find(|it| it.starts_with("milieu: thread "));
    let line = line.unwrap_or_else(|| panic!("{report}"));
    assert!(
        line.contains(" `pool` has overflowed its stack of "),
        "{line}"
    );
    assert!(line.contains("; its size is not tuned again: "), "{line}");
    // What Rust says of it comes after that.
    let rust = report.find("fatal runtime error: stack overflow");
    assert!(rust > report.find("milieu: thread "), "{report}");
    assert_eq!(lines(), 1);

    // It knows, has stacks as it asks for them, and takes it over into its settings.
    let next = Ran::of("shallow", &machine);
    assert!(!next.is_tuned() && next.said().iter().all(|it| it.1));
    assert!(
        machine.text().contains("overflowed = 1"),
        "{}",
        machine.text()
    );
    // However often that happens, and whoever removes the file.
    Ran::of("deep", &machine);
    assert_eq!(lines(), 2);
    Ran::of("shallow", &machine);
    assert_eq!(lines(), 1);
    std::fs::remove_file(&file).expect("it is there");
    let later = Ran::of("shallow", &machine);
    assert!(!later.is_tuned() && later.said().iter().all(|it| it.1));

    // Where it cannot be noted, that is said, and everything is as before.
    std::fs::create_dir(&file).expect("it is not there");
    let unnoted = Ran::of("deep", &machine).stderr();
    assert_eq!(unnoted.matches("that is not noted").count(), 1, "{unnoted}");
    assert!(unnoted.contains("fatal runtime error: stack overflow"));
    Ran::of("shallow", &machine);
}
