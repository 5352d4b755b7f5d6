//! Whoever may do nothing has critical threads all the same: what a lazy thread is, it is
//! from its beginning.
//!
//! The test starts itself again in a process that has neither CAP_SYS_NICE nor a limit
//! that would let a thread return. Times are compared with those of the same threads as
//! the kernel has them, and with nothing else.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use milieu::threads::{Mediator, Options, Priority, Return, Rung, Settings};
use milieu_threads::kernel;
use milieu_threads::rung::scheduling;

/// What the process is told by that may do nothing.
const IS_UNPRIVILEGED: &str = "MILIEU_TEST_UNPRIVILEGED";

/// How many threads that always have something to do are there for each processor.
const BUSY: usize = 8;
/// What the critical thread does each time it is wanted, and how often it is.
const WORK: Duration = Duration::from_millis(5);
const TIMES: usize = 11;
/// How much sooner it has done that, at least, and how often that is tried: a machine may
/// have other things to do.
const SOONER: u32 = 3;
const TRIES: usize = 5;

/// The processor time of this thread.
fn used() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one such structure.
    let said = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(said, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn is_idle() -> bool {
    let own = scheduling::of(kernel::thread_id()).expect("it runs");
    i32::from(own.policy) == libc::SCHED_IDLE
}

/// How long a critical thread takes from when it is wanted until it has done its work,
/// beside threads that are always busy; the median.
fn answers(options: Options, is_mediated: bool) -> Duration {
    let mediator = options.only_own().start().expect("anybody may");
    let expected = is_mediated.then_some((Rung::Idle, Return::Never));
    assert_eq!(mediator.rung(), expected);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    let mut taken = thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        for _ in 0..BUSY * processors {
            let (tell, is_over) = (tell.clone(), &is_over);
            let worker = mediator.thread("worker").expect("a role");
            let worker = worker.spawn_scoped(scope, move || {
                tell.send(is_idle()).expect("somebody listens");
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            worker.expect("a thread");
        }
        let are_idle = told.iter().take(BUSY * processors).all(|it| it);
        let probe = mediator.thread("probe").expect("a role");
        let probe = probe.critical(Priority::new(-5).expect("a nice value"));
        let probe = probe.spawn_scoped(scope, || {
            let answer = || {
                const PAUSE: Duration = Duration::from_millis(2);
                let wanted = Instant::now() + PAUSE;
                thread::sleep(PAUSE);
                let begun = used();
                while used() - begun < WORK {
                    std::hint::spin_loop();
                }
                wanted.elapsed()
            };
            let taken: Vec<_> = (0..TIMES).map(|_| answer()).collect();
            (is_idle(), taken)
        });
        let taken = probe.expect("a thread").join();
        // Before anything is claimed: the others would never end.
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(are_idle, is_mediated, "it is decided when they begin");
        let (is_idle, taken) = taken.expect("it ends well");
        assert!(!is_idle);
        taken
    });
    taken.sort();
    taken[TIMES / 2]
}

/// What the process does that may do nothing.
fn compare() {
    assert!(!scheduling::has_privilege() && !scheduling::may_have_nice(0));
    let options = || Mediator::options().settings(Settings::default());
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let mediated = answers(options().rung(Rung::Idle), true);
        let unmediated = answers(options().unmediated(), false);
        if mediated * SOONER < unmediated {
            return;
        }
        seen.push((mediated, unmediated));
    }
    panic!("mediated and unmediated: {seen:?}");
}

#[test]
fn without_a_privilege_a_critical_thread_is_not_kept_waiting_by_lazy_ones() {
    if std::env::var_os(IS_UNPRIVILEGED).is_some() {
        return compare();
    }
    let limited = || {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        const CAP_SYS_NICE: libc::c_ulong = 23;
        // SAFETY: the kernel reads such a structure; the other call has no memory.
        let is_limited = unsafe {
            libc::setrlimit(libc::RLIMIT_NICE, &raw const none) == 0
                && (!scheduling::has_privilege()
                    || libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0) == 0)
        };
        match is_limited {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        }
    };
    let mut tests = Command::new(std::env::current_exe().expect("this program"));
    tests
        .args([
            "--exact",
            "without_a_privilege_a_critical_thread_is_not_kept_waiting_by_lazy_ones",
        ])
        .env(IS_UNPRIVILEGED, "");
    // SAFETY: it makes system calls, and nothing else.
    unsafe { tests.pre_exec(limited) };
    match tests.output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("not tested: this user cannot give up the privilege ({error})");
        }
        ran => {
            let ran = ran.expect("this program runs");
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(said.contains("test result: ok. 1 passed"), "{said}");
        }
    }
}
