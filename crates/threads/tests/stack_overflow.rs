//! Overflows: they are reported and noted, and then everything is as without us.
//!
//! What happens ends the process, so each test runs the one that begins with `child_`
//! in a process of its own.

mod common;

use std::ffi::{CString, c_int, c_void};
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{dig, on_stack_of, own_stack};
use milieu_threads::stack::{
    AlternateStack, Asked, Entry, Key, Name, Peak, Process, ReportStack, Watch, load, page_bytes,
    thread,
};

static WATCH: Watch = Watch::new();

const CASE: &str = "STACK_OVERFLOW_CASE";
const PROFILE: &str = "STACK_OVERFLOW_PROFILE";
const BYTES: usize = 256 << 10;
const EXIT: c_int = 7;

fn key() -> Key {
    Key::parse(b"ab+1").unwrap()
}

/// Runs a case in a process of its own; what it said, and what the profile says then.
fn run(case: &str) -> (Output, Vec<Entry>) {
    let name = format!("stack-overflow-{case}-{}", std::process::id());
    let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_other_tests", "--nocapture"])
        .env(CASE, case)
        .env(PROFILE, &profile)
        .output()
        .unwrap();
    let path = CString::new(profile.as_os_str().as_bytes()).unwrap();
    let mut entries = Vec::new();
    load(&path, &mut |it| entries.push(*it), &mut |wrong| {
        panic!("{wrong}")
    })
    .unwrap();
    for file in [profile.clone(), profile.with_extension("lock")] {
        let _ = std::fs::remove_file(file);
    }
    (output, entries)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_reported(output: &Output) -> bool {
    stderr(output).contains("has overflowed its stack")
}

#[inline(never)]
fn overflow(depth: u64) -> u64 {
    if depth == u64::MAX {
        return 0;
    }
    let frame = [depth; 64];
    let frame = std::hint::black_box(&frame);
    overflow(depth + 1) + frame[1]
}

/// What a thread does when somebody watches over it.
fn watched<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    on_stack_of(BYTES, None, None, || {
        let mut memory = [MaybeUninit::<u8>::uninit(); 64 << 10];
        // SAFETY: the memory is that of this frame, which the guard leaves first.
        let alternate = unsafe { AlternateStack::enter(&mut memory) };
        assert!(alternate.is_some());
        let stack = own_stack(&Process::own().unwrap(), Some(BYTES));
        let seat = WATCH
            .live
            .enter(&key(), Name::new(b"gas-detection"))
            .unwrap();
        WATCH.live.creates(seat, Asked::Default(BYTES as u64));
        let standing = WATCH.enter(thread(), 0, &stack, 0, Some(seat)).unwrap();
        let result = work();
        WATCH.leave(standing);
        drop(alternate);
        result
    })
}

fn action(function: usize, flags: c_int) -> libc::sigaction {
    // SAFETY: all zeros are an action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = function;
    action.sa_flags = flags;
    action
}

/// As the program would, which does not know of the watch.
fn program_sets(function: usize, flags: c_int) -> libc::sigaction {
    let mut before = action(libc::SIG_DFL, 0);
    // SAFETY: both are actions.
    let said = unsafe { WATCH.change(&action(function, flags), &mut before) };
    assert_eq!(said, Some(0));
    before
}

extern "C" fn says_so_and_ends(signal: c_int) {
    assert_eq!(signal, libc::SIGSEGV);
    // SAFETY: the bytes are there.
    unsafe { libc::write(2, c"the program's own".as_ptr().cast(), 17) };
    // SAFETY: nothing has to be done before.
    unsafe { libc::_exit(EXIT) }
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);

fn page() -> usize {
    page_bytes() as usize
}

/// Makes the page writable that was hit: virtual machines handle faults like this.
extern "C" fn opens_the_page(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands over a description.
    let address = unsafe { (*info).si_addr() } as usize;
    let page = page();
    let start = (address - address % page) as *mut c_void;
    // SAFETY: the page is one of the mapping that the case has made.
    let said = unsafe { libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) };
    assert_eq!(said, 0);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn child_of_the_other_tests() {
    let Ok(case) = std::env::var(CASE) else {
        return;
    };
    let path = std::env::var_os(PROFILE).unwrap();
    let path = Box::leak(CString::new(path.as_bytes()).unwrap().into_boxed_c_str());
    // What Rust's own library has set does not belong to the cases.
    if case != "rust" {
        // SAFETY: the default action is one.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
    }
    // No core: these deaths are meant.
    let limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel reads one such structure.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &limit) };
    // SAFETY: it is that function, and nobody else arms one in this process.
    assert!(unsafe { WATCH.arm(libc::sigaction, Some(path)) });
    assert!(WATCH.sees_overflows());
    let own = says_so_and_ends as extern "C" fn(c_int) as usize;
    let opens = opens_the_page as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    match &*case {
        "default" | "rust" => {
            watched(|| overflow(0));
        }
        "own" => {
            assert_eq!(
                program_sets(own, libc::SA_ONSTACK).sa_sigaction,
                libc::SIG_DFL
            );
            let before = program_sets(own, libc::SA_ONSTACK);
            assert_eq!(
                (before.sa_sigaction, before.sa_flags),
                (own, libc::SA_ONSTACK)
            );
            watched(|| overflow(0));
        }
        "elsewhere" => {
            program_sets(own, libc::SA_ONSTACK);
            // SAFETY: it is not safe, which is the case.
            watched(|| unsafe { std::ptr::without_provenance::<u8>(16).read_volatile() });
        }
        "nobody" => {
            // SAFETY: it is not safe, which is the case.
            watched(|| unsafe { std::ptr::without_provenance::<u8>(16).read_volatile() });
        }
        "neighbour" => {
            // The guard page of another thread's stack: a wild pointer, no overflow.
            let low = watched(|| own_stack(&Process::own().unwrap(), Some(BYTES)).low);
            let stack = milieu_threads::stack::Stack {
                low,
                high: low + BYTES as u64,
                guard_bytes: page_bytes(),
            };
            WATCH.enter(1, 0, &stack, 0, None).unwrap();
            // SAFETY: it is not safe, which is the case.
            unsafe { std::ptr::without_provenance::<u8>(low as usize - 8).read_volatile() };
        }
        "virtual-machine" => {
            program_sets(opens, libc::SA_ONSTACK | libc::SA_SIGINFO);
            // SAFETY: a mapping of its own is in nobody's way, and all writes are in it.
            let sum = watched(|| unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let start = libc::mmap(null_mut(), 9 * page(), libc::PROT_NONE, flags, -1, 0);
                let pages = (0..9).map(|index| start.cast::<u8>().add(index * page()));
                pages
                    .map(|page| {
                        page.write_volatile(2);
                        u32::from(page.read_volatile())
                    })
                    .sum::<u32>()
            });
            assert_eq!((sum, HANDLED.load(Ordering::Relaxed)), (18, 9));
            watched(|| overflow(0));
        }
        "aside" => {
            program_sets(own, 0);
            assert!(!WATCH.sees_overflows());
            watched(|| overflow(0));
        }
        "aside-elsewhere" => {
            program_sets(own, 0);
            // SAFETY: it is not safe, which is the case.
            watched(|| unsafe { std::ptr::without_provenance::<u8>(16).read_volatile() });
        }
        "sent" => {
            // SAFETY: no memory is involved.
            unsafe { libc::raise(libc::SIGSEGV) };
        }
        "ignored" => {
            program_sets(libc::SIG_IGN, 0);
            // SAFETY: no memory is involved.
            unsafe { libc::raise(libc::SIGSEGV) };
            std::process::exit(EXIT);
        }
        "once" => {
            program_sets(
                opens,
                libc::SA_ONSTACK | libc::SA_SIGINFO | libc::SA_RESETHAND,
            );
            // SAFETY: a mapping of its own is in nobody's way.
            watched(|| unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let start = libc::mmap(null_mut(), 2 * page(), libc::PROT_NONE, flags, -1, 0);
                start.cast::<u8>().write_volatile(1);
                std::io::stderr()
                    .write_all(b"the first was handled")
                    .unwrap();
                start.cast::<u8>().add(page()).write_volatile(1);
            });
        }
        "forked" => {
            watched(|| {
                // SAFETY: the child does what a child may do, and ends.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let standing = {
                        let mut own = 0;
                        WATCH.each(|number, _, _| own = number);
                        assert_ne!(own, thread());
                        WATCH.forked(None);
                        let mut left = 0;
                        WATCH.each(|_, _, _| left += 1);
                        assert_eq!(left, 0);
                        let stack = own_stack(&Process::own().unwrap(), Some(BYTES));
                        let seat = WATCH.live.enter(&key(), Name::NONE);
                        WATCH.enter(thread(), 0, &stack, 0, seat).unwrap()
                    };
                    WATCH.forked(Some(standing));
                    overflow(0);
                }
                let mut status = 0;
                // SAFETY: the kernel writes one number.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
                let mut left = 0;
                WATCH.each(|number, _, _| left += usize::from(number == thread()));
                assert_eq!(left, 1);
            });
            std::process::exit(EXIT);
        }
        other => panic!("there is no case {other}"),
    }
}

#[test]
fn an_overflow_is_reported_and_noted_and_kills_as_ever() {
    let (output, entries) = run("default");
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSEGV),
        "{}",
        stderr(&output)
    );
    let report = stderr(&output);
    let line = report
        .lines()
        .find(|line| line.starts_with("milieu: "))
        .unwrap();
    assert!(
        line.contains(" `gas-detection` has overflowed its stack of 262144 bytes"),
        "{line}"
    );
    assert!(
        line.ends_with("; its size is not tuned again: ab+1"),
        "{line}"
    );
    let [entry] = entries[..] else {
        panic!("{entries:?}")
    };
    assert_eq!(entry.key, key());
    assert_eq!((entry.overflow_bytes, entry.threads), (BYTES as u64, 0));
    assert_eq!(entry.role, Name::new(b"gas-detection"));
    assert!(entry.learned().has_overflowed);
}

#[test]
fn the_handler_of_the_program_comes_after() {
    let (output, entries) = run("own");
    assert_eq!(output.status.code(), Some(EXIT), "{}", stderr(&output));
    assert!(stderr(&output).ends_with("the program's own"));
    assert!(is_reported(&output) && entries.len() == 1);
}

#[test]
fn that_of_rust_too() {
    let (output, entries) = run("rust");
    assert!(output.status.signal().is_some(), "{}", stderr(&output));
    assert!(is_reported(&output) && entries.len() == 1);
}

#[test]
fn other_faults_are_the_program_s() {
    let (output, entries) = run("elsewhere");
    assert_eq!(output.status.code(), Some(EXIT), "{}", stderr(&output));
    assert!(!is_reported(&output) && entries.is_empty());
    for case in ["nobody", "neighbour"] {
        let (output, entries) = run(case);
        assert_eq!(
            output.status.signal(),
            Some(libc::SIGSEGV),
            "{case}: {}",
            stderr(&output)
        );
        assert!(!is_reported(&output) && entries.is_empty(), "{case}");
    }
}

#[test]
fn a_program_that_lives_on_faults_goes_on_doing_so_and_is_watched() {
    let (output, entries) = run("virtual-machine");
    assert!(is_reported(&output), "{}", stderr(&output));
    assert_eq!(entries.len(), 1);
}

#[test]
fn a_handler_without_an_alternate_stack_is_left_in_its_place() {
    let (output, entries) = run("aside");
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSEGV),
        "{}",
        stderr(&output)
    );
    assert!(!is_reported(&output) && entries.is_empty());
    let (output, _) = run("aside-elsewhere");
    assert_eq!(output.status.code(), Some(EXIT), "{}", stderr(&output));
}

#[test]
fn a_signal_that_somebody_sends_does_what_it_did() {
    let (output, _) = run("sent");
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSEGV),
        "{}",
        stderr(&output)
    );
    let (output, _) = run("ignored");
    assert_eq!(output.status.code(), Some(EXIT), "{}", stderr(&output));
}

#[test]
fn a_handler_for_once_handles_once() {
    let (output, entries) = run("once");
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSEGV),
        "{}",
        stderr(&output)
    );
    // An emulator of processes says so as well when its program dies.
    assert!(stderr(&output).contains("the first was handled"));
    assert!(!is_reported(&output) && entries.is_empty());
}

#[test]
fn a_child_of_a_fork_knows_only_itself() {
    let (output, entries) = run("forked");
    assert_eq!(output.status.code(), Some(EXIT), "{}", stderr(&output));
    assert!(is_reported(&output) && entries.len() == 1);
}

#[test]
fn a_thread_keeps_the_alternate_stack_that_it_has() {
    on_stack_of(BYTES, None, None, || {
        let mut memory = [MaybeUninit::<u8>::uninit(); 64 << 10];
        let mut other = [MaybeUninit::<u8>::uninit(); 64 << 10];
        // SAFETY: the memory is that of this frame, which the guards leave first.
        unsafe {
            assert!(AlternateStack::enter(&mut memory[..1024]).is_none());
            let first = AlternateStack::enter(&mut memory).unwrap();
            assert!(AlternateStack::enter(&mut other).is_none());
            drop(first);
            assert!(AlternateStack::enter(&mut other).is_some());
        }
    });
}

/// As the kernel knows it: where it begins, and how large it is.
fn alternate_stack() -> Option<(usize, usize)> {
    let mut now = std::mem::MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: the kernel writes one such structure.
    let now = unsafe {
        assert_eq!(libc::sigaltstack(null_mut(), now.as_mut_ptr()), 0);
        now.assume_init()
    };
    let is_there = now.ss_flags & libc::SS_DISABLE == 0;
    is_there.then_some((now.ss_sp as usize, now.ss_size))
}

#[test]
fn a_thread_has_an_alternate_stack_that_is_large_enough_and_then_its_own_again() {
    let enters = || {
        let before = alternate_stack();
        let first = ReportStack::enter();
        let large = alternate_stack().expect("either of them");
        assert!(large.1 >= AlternateStack::bytes());
        assert_eq!(first.is_some(), before != Some(large));
        assert!(ReportStack::enter().is_none(), "one is enough");
        drop(first);
        assert_eq!(alternate_stack(), before);
        before
    };
    // A thread of the C library has none.
    assert_eq!(on_stack_of(BYTES, None, None, enters), None);
    // That of Rust's library may be small.
    std::thread::spawn(enters).join().unwrap();
    // Who takes its own away meanwhile does not get it back.
    std::thread::spawn(|| {
        let first = ReportStack::enter();
        let none = libc::stack_t {
            ss_sp: null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: none is needed.
        assert_eq!(unsafe { libc::sigaltstack(&none, null_mut()) }, 0);
        drop(first);
        assert_eq!(alternate_stack(), None);
    })
    .join()
    .unwrap();
}

#[test]
fn threads_stand_where_they_can_be_measured_until_they_leave() {
    // Not the one that the cases use: they have processes of their own.
    static WATCH: Watch = Watch::new();
    let peak = on_stack_of(BYTES, None, None, || {
        let process = Process::own().unwrap();
        let stack = own_stack(&process, Some(BYTES));
        let seat = WATCH.live.enter(&key(), Name::NONE).unwrap();
        let before = process.depth(&stack).unwrap();
        let standing = WATCH.enter(thread(), 7, &stack, 0, Some(seat)).unwrap();
        dig(100 << 10);
        let mut told = Vec::new();
        assert!(WATCH.look(&process, &mut |it| told.push(*it)));
        assert!(!WATCH.look(&process, &mut |it| told.push(*it)));
        assert_eq!(WATCH.look_at(-1, &process), Ok(None));
        let again = WATCH.look_at(thread(), &process).unwrap();
        for running in told.iter().chain(&again) {
            assert_eq!((running.identity, running.thread), (7, thread()));
            assert!(running.peak_bytes >= 100 << 10, "{running:?}");
        }
        assert_eq!(told.len() + again.iter().count(), 3);
        let mut peak = Peak::Unknown;
        WATCH.each(|number, known, its| {
            assert_eq!((number, known, its), (thread(), stack, Some(seat)));
            peak = Peak::between(before, process.depth(&known).unwrap(), known.bytes());
            WATCH.live.measures(seat, peak);
        });
        WATCH.leave(standing);
        peak
    });
    assert!(peak.bytes().unwrap() >= 100 << 10, "{peak:?}");
    WATCH.each(|number, _, _| panic!("{number} has left"));
    let mut seen = Vec::new();
    WATCH
        .live
        .take(|entry| seen.push((entry.threads, entry.peak_bytes)));
    assert_eq!(seen, [(1, peak.bytes().unwrap())]);
}
