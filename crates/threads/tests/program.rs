//! A program with real threads: where the kernel has them, and that they return.
//!
//! Nothing here depends on how long anything takes. What needs a privilege, or a
//! control group, is tried on whatever rungs work on this machine.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use milieu_threads::attributes::{Attributes, Priority, Role, StackSize};
use milieu_threads::kernel;
use milieu_threads::mediator::Settings;
use milieu_threads::program::{Program, StartError};
use milieu_threads::rung::{Return, Rung, guard, probe, scheduling};
use milieu_threads::table::{Region, Scheduling, TableError, View};

/// What the kernel does is of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn nobody(_: u32) {}

fn role(name: &str) -> Attributes {
    Attributes::of(Role::new(name).expect("a role"))
}

fn critical(nice: i32) -> Attributes {
    role("critical").time_critical(Priority::new(nice).expect("a nice value"))
}

fn identity() -> u64 {
    // SAFETY: has no arguments.
    #[allow(clippy::unnecessary_cast, reason = "narrower on 32 bits")]
    let identity = unsafe { libc::pthread_self() } as u64;
    identity
}

/// A thread that waits, and where it is known.
struct Waiting {
    identity: u64,
    tid: u32,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    fn new() -> Waiting {
        let (tell, told) = channel();
        let (end, ended): (_, Receiver<()>) = channel();
        let thread = std::thread::spawn(move || {
            let known = (identity(), kernel::thread_id());
            tell.send(known).expect("somebody listens");
            let _ = ended.recv();
        });
        let (identity, tid) = told.recv().expect("a thread");
        Waiting {
            identity,
            tid,
            end: Some(end),
            thread: Some(thread),
        }
    }

    fn listed(program: &Program, attributes: &Attributes) -> Waiting {
        let thread = Waiting::new();
        let listed = program.began(thread.identity, thread.tid, attributes, false);
        listed.expect("a line");
        thread
    }

    fn region(&self, program: &Program) -> Region {
        let entry = program.table().lines().entry(self.identity);
        entry.expect("it is listed").region
    }

    /// Policy and group, as the kernel has them.
    fn state(&self) -> (Scheduling, String) {
        let group = std::fs::read_to_string(format!("/proc/self/task/{}/cgroup", self.tid));
        let scheduling = scheduling::of(self.tid);
        (scheduling.expect("it waits"), group.expect("it waits"))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.end.take());
        let thread = self.thread.take().map(JoinHandle::join);
        assert!(thread.is_none_or(|it| it.is_ok()));
    }
}

/// A program on each rung that works here and from which threads return.
fn programs(act: impl Fn(Rung, &Program)) {
    let works = |it: &&milieu_threads::rung::Report| it.verdict == Ok(Return::Always);
    for report in probe().iter().filter(works) {
        let program = Program::start(256, Some(report.rung), Settings::default(), nobody);
        act(report.rung, &program.expect("it was probed"));
    }
}

#[test]
fn threads_go_to_their_regions_and_return() {
    let _alone = alone();
    programs(|rung, program| {
        let ordinary: Vec<_> = (0..3)
            .map(|_| Waiting::listed(program, &role("worker")))
            .collect();
        let before: Vec<_> = ordinary.iter().map(Waiting::state).collect();
        let urgent = Waiting::listed(program, &role("probe"));
        let urgent_before = urgent.state();
        let returned = || ordinary.iter().map(Waiting::state).collect::<Vec<_>>() == before;

        for way in ["its attributes", "its end"] {
            program.set(urgent.identity, &critical(0)).expect("listed");
            assert_eq!(urgent.region(program), Region::Fast, "{rung}");
            for thread in &ordinary {
                assert_eq!(thread.region(program), Region::Lazy, "{rung}");
            }
            assert_eq!(returned(), rung == Rung::Realtime, "{rung}");
            match way {
                "its end" => program.ended(urgent.identity).expect("listed"),
                _ => program
                    .set(urgent.identity, &role("probe"))
                    .expect("listed"),
            }
            for thread in &ordinary {
                assert_eq!(thread.region(program), Region::Own, "{rung}");
            }
            assert!(returned(), "{rung}, after {way}");
            if way != "its end" {
                assert_eq!(urgent.state(), urgent_before, "{rung}");
            }
        }
        assert_eq!(program.refused(), (0, None), "{rung}");
    });
}

#[test]
fn stopping_restores_everything() {
    let _alone = alone();
    let limits = || std::fs::read_to_string("/proc/self/limits").expect("limits");
    let limits_before = limits();
    programs(|rung, program| {
        let ordinary = Waiting::new();
        let urgent = Waiting::new();
        let before = [ordinary.state(), urgent.state()];
        for (thread, attributes) in [(&ordinary, role("worker")), (&urgent, critical(3))] {
            let listed = program.began(thread.identity, thread.tid, &attributes, false);
            listed.expect("a line");
        }
        assert_ne!([ordinary.state(), urgent.state()], before, "{rung}");
        program.stop();
        assert_eq!([ordinary.state(), urgent.state()], before, "{rung}");
        // Nobody is moved any more, whatever comes.
        program
            .set(ordinary.identity, &critical(0))
            .expect("listed");
        assert_eq!([ordinary.state(), urgent.state()], before, "{rung}");
        assert_eq!(limits(), limits_before);
    });
}

#[test]
fn what_the_program_wishes_meanwhile_is_had_on_return() {
    let _alone = alone();
    programs(|rung, program| {
        let ordinary = Waiting::listed(program, &role("worker"));
        let urgent = Waiting::listed(program, &critical(0));
        let own = program.own(ordinary.identity).expect("listed");
        let wish = Scheduling {
            nice: own.nice.max(11),
            policy: libc::SCHED_BATCH as u8,
            ..own
        };
        for thread in [&ordinary, &urgent] {
            let region = thread.region(program);
            program.wish(thread.identity, wish).expect("permitted");
            assert_eq!(thread.region(program), region, "{rung}");
            assert_eq!(program.own(thread.identity), Ok(wish), "{rung}");
            // What it had before is none that it wishes for.
            program.take_wishes();
            assert_eq!(program.own(thread.identity), Ok(wish), "{rung}");
        }
        program
            .set(urgent.identity, &role("probe"))
            .expect("listed");
        for thread in [&ordinary, &urgent] {
            assert_eq!(thread.state().0, wish, "{rung}");
        }
        // At home it is had at once.
        let nicer = Scheduling { nice: 15, ..wish };
        program.wish(ordinary.identity, nicer).expect("permitted");
        assert_eq!(ordinary.state().0, nicer);
    });
}

/// What others say of threads, as `renice` does.
#[test]
fn what_is_asked_of_the_kernel_meanwhile_is_had_on_return() {
    let _alone = alone();
    programs(|rung, program| {
        let ordinary = Waiting::listed(program, &role("worker"));
        let urgent = Waiting::listed(program, &critical(0));
        let own = program.own(ordinary.identity).expect("listed");
        let wish = Scheduling {
            nice: own.nice.max(11),
            ..own
        };
        for thread in [&ordinary, &urgent] {
            let before = (thread.region(program), thread.state());
            // SAFETY: has no memory.
            let said = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread.tid, 11) };
            assert_eq!(said, 0, "{rung}");
            program.take_wishes();
            assert_eq!(program.own(thread.identity), Ok(wish), "{rung}");
            let (region, (mut now, group)) = (thread.region(program), thread.state());
            // Where that is no part of the means it stays.
            if now.nice == wish.nice {
                now.nice = own.nice;
            }
            assert_eq!((region, (now, group)), before, "{rung}");
        }
        program
            .set(urgent.identity, &role("probe"))
            .expect("listed");
        for thread in [&ordinary, &urgent] {
            assert_eq!(thread.state().0, wish, "{rung}");
        }
    });
}

#[test]
fn who_is_bound_to_be_lazy_is_so_whoever_is_urgent() {
    let _alone = alone();
    programs(|rung, program| {
        let bound = Waiting::listed(program, &role("indexer"));
        let before = bound.state();
        program
            .set(bound.identity, &role("indexer").lazy())
            .expect("listed");
        assert_eq!(bound.region(program), Region::Lazy, "{rung}");
        assert_ne!(bound.state(), before, "{rung}");
        let urgent = Waiting::listed(program, &critical(0));
        assert_eq!(bound.region(program), Region::Lazy, "{rung}");
        program.ended(urgent.identity).expect("listed");
        assert_eq!(bound.region(program), Region::Lazy, "{rung}");
        // Whom an urgent thread waits for is urgent all the same.
        let urgent = Waiting::listed(program, &critical(0));
        program.waits(urgent.identity, bound.tid);
        assert_eq!(bound.region(program), Region::Fast, "{rung}");
        program.served(urgent.identity);
        assert_eq!(bound.region(program), Region::Lazy, "{rung}");
        program
            .set(bound.identity, &role("indexer"))
            .expect("listed");
        program.ended(urgent.identity).expect("listed");
        assert_eq!(bound.state(), before, "{rung}");
    });
}

#[test]
fn what_a_lazy_thread_begins_returns_to_what_that_had() {
    let _alone = alone();
    programs(|rung, program| {
        let urgent = Waiting::listed(program, &critical(0));
        let (end, ended): (_, Receiver<()>) = channel();
        let (tell, told) = channel();
        let creator = std::thread::spawn({
            let me = move || (identity(), kernel::thread_id());
            move || {
                tell.send((me(), None)).expect("somebody listens");
                // Told by who asks that it is listed.
                let _ = ended.recv();
                let child = Waiting::new();
                tell.send((me(), Some(child))).expect("somebody listens");
            }
        });
        let ((creating, tid), _) = told.recv().expect("a thread");
        let before = scheduling::of(tid).expect("it waits");
        let listed = program.began(creating, tid, &role("worker"), false);
        listed.expect("a line");
        let own = program.own(creating).expect("listed");
        end.send(()).expect("it waits");
        let child = told.recv().expect("a thread").1.expect("another");
        let listed = program.began_by(Some(own), child.identity, child.tid, &role("worker"), false);
        listed.expect("a line");
        creator.join().expect("it has ended");
        assert_eq!(child.region(program), Region::Lazy, "{rung}");
        program.ended(urgent.identity).expect("listed");
        assert_eq!(child.region(program), Region::Own, "{rung}");
        let group = std::fs::read_to_string("/proc/self/cgroup").expect("the group");
        assert_eq!(child.state(), (before, group), "{rung}");
    });
}

/// As when a mediator of the whole device comes, and goes again.
#[test]
fn a_program_rests_while_somebody_else_moves_its_threads() {
    let _alone = alone();
    programs(|rung, program| {
        let limit = || kernel_limit(libc::RLIMIT_RTTIME);
        let ordinary = Waiting::listed(program, &role("worker"));
        let mut own = ordinary.state();
        let urgent = Waiting::listed(program, &critical(0));
        let (urgent_state, guarded) = (urgent.state(), limit());
        assert_eq!(ordinary.region(program), Region::Lazy, "{rung}");
        for _ in 0..2 {
            assert!(program.rest() && program.is_resting(), "{rung}");
            assert!(!program.rest(), "{rung}");
            for thread in [&ordinary, &urgent] {
                assert_eq!(thread.region(program), Region::Own, "{rung}");
            }
            assert_eq!(ordinary.state(), own, "{rung}");
            assert_eq!(program.tick(kernel::boot_time_ns()), None, "{rung}");
            // Whatever happens meanwhile moves nobody.
            let late = Waiting::listed(program, &critical(-5));
            assert_eq!(ordinary.state(), own, "{rung}");
            assert_eq!(late.region(program), Region::Own, "{rung}");
            // What it has by then is what it returns to.
            own.0.nice += 1;
            scheduling::set(ordinary.tid, &own.0).expect("it is permitted");
            program.go_on(nobody).expect("it did work");
            assert!(!program.is_resting());
            assert_eq!(ordinary.region(program), Region::Lazy, "{rung}");
            assert_eq!(urgent.state(), urgent_state, "{rung}");
            assert_eq!(late.region(program), Region::Fast, "{rung}");
            assert_eq!(limit(), guarded, "{rung}");
            assert_eq!(program.own(ordinary.identity), Ok(own.0), "{rung}");
            program.ended(late.identity).expect("listed");
        }
        program.stop();
        program.go_on(nobody).expect("it has nothing to do");
        assert_eq!(ordinary.state(), own, "{rung}");
    });
}

fn kernel_limit(resource: libc::__rlimit_resource_t) -> u64 {
    kernel_limits(resource).rlim_cur
}

fn kernel_limits(resource: libc::__rlimit_resource_t) -> libc::rlimit64 {
    let mut limit = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes to `limit`.
    assert_eq!(unsafe { libc::getrlimit64(resource, &mut limit) }, 0);
    limit
}

#[test]
fn who_is_excluded_or_runs_in_real_time_is_left_alone() {
    let _alone = alone();
    programs(|rung, program| {
        let excluded = Waiting::new();
        let before = excluded.state();
        let listed = program.began(excluded.identity, excluded.tid, &role("logger"), true);
        listed.expect("a line");
        let urgent = Waiting::listed(program, &critical(0));
        assert_eq!(excluded.state(), before, "{rung}");
        program
            .set(excluded.identity, &critical(-20))
            .expect("listed");
        assert_eq!(excluded.state(), before, "{rung}");

        let ordinary = Waiting::listed(program, &role("worker"));
        assert_eq!(ordinary.region(program), Region::Lazy);
        let fifo = Scheduling {
            policy: libc::SCHED_FIFO as u8,
            realtime_priority: 2,
            ..Scheduling::default()
        };
        let is_permitted = program.wish(ordinary.identity, fifo).is_ok();
        assert_eq!(ordinary.region(program), Region::Own, "{rung}");
        if is_permitted {
            assert_eq!(
                i32::from(ordinary.state().0.policy),
                libc::SCHED_FIFO,
                "{rung}"
            );
            let wish = before.0;
            program.wish(ordinary.identity, wish).expect("permitted");
            assert_eq!(ordinary.region(program), Region::Lazy, "{rung}");
        }
        drop(urgent);
    });
}

#[test]
fn who_has_the_lock_is_boosted() {
    let _alone = alone();
    programs(|rung, program| {
        let owner = Waiting::listed(program, &role("worker"));
        let waiter = Waiting::listed(program, &critical(-1));
        assert_eq!(owner.region(program), Region::Lazy);
        program.waits(waiter.identity, owner.tid);
        assert_eq!(owner.region(program), Region::Fast);
        if rung == Rung::Realtime {
            let [owner, waiter] = [&owner, &waiter].map(|it| it.state().0.realtime_priority);
            assert_eq!(owner, waiter);
        }
        program.served(waiter.identity);
        assert_eq!(owner.region(program), Region::Lazy);
    });
}

/// A critical thread that spins is taken out, found by what it uses.
#[test]
fn who_runs_away_is_demoted() {
    let _alone = alone();
    let settings = Settings {
        spin_ns_max: 100_000_000,
        ..Settings::default()
    };
    for rung in [Rung::Idle, Rung::Nice, Rung::Realtime] {
        let Ok(program) = Program::start(16, Some(rung), settings, nobody) else {
            continue;
        };
        if program.rung().is_some_and(|(_, it)| it == Return::Never) {
            continue;
        }
        let ordinary = Waiting::listed(&program, &role("worker"));
        let (tell, told) = channel();
        let end = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_over = end.clone();
        let spinning = std::thread::spawn(move || {
            tell.send((identity(), kernel::thread_id()))
                .expect("somebody listens");
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (identity, tid) = told.recv().expect("a thread");
        let guarded = kernel_limit(libc::RLIMIT_RTTIME);
        let listed = program.began(identity, tid, &critical(0), false);
        listed.expect("a line");
        let entry = || program.table().lines().entry(identity).expect("listed");
        while !entry().is_demoted {
            program.tick(kernel::boot_time_ns());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(entry().region, Region::Own, "{rung}");
        assert_eq!(ordinary.region(&program), Region::Own, "{rung}");
        let policy = scheduling::of(tid).expect("it spins").policy;
        assert_eq!(i32::from(policy), libc::SCHED_OTHER, "{rung}");
        // The kernel has put the limit off, for who runs away next.
        program.tick(kernel::boot_time_ns());
        assert_eq!(kernel_limit(libc::RLIMIT_RTTIME), guarded, "{rung}");
        end.store(true, std::sync::atomic::Ordering::Relaxed);
        spinning.join().expect("it has spun");
    }
}

/// What the program says of its limit holds for its own threads, and after the guard.
#[test]
fn the_limit_of_real_time_is_the_programs_own() {
    let _alone = alone();
    let resource = libc::RLIMIT_RTTIME;
    let before = kernel_limits(resource);
    let limits = |soft| libc::rlimit64 {
        rlim_cur: soft,
        ..before
    };
    let own = |new: Option<libc::rlimit64>| {
        let said = guard::own_limit(new).expect("it is guarded");
        said.map(|it| (it.rlim_cur, it.rlim_max))
    };
    let settings = Settings::default();
    let Ok(program) = Program::start(16, Some(Rung::Realtime), settings, nobody) else {
        return;
    };
    let guarded = kernel_limit(resource);
    assert!(guarded < before.rlim_cur);
    assert_eq!(own(None), Ok((before.rlim_cur, before.rlim_max)));
    own(Some(limits(2_000_000))).expect("it is permitted");
    assert_eq!(own(None), Ok((2_000_000, before.rlim_max)));
    assert_eq!(kernel_limit(resource), guarded);
    let wrong = libc::rlimit64 {
        rlim_cur: 5,
        rlim_max: 4,
    };
    assert_eq!(own(Some(wrong)), Err(kernel::Errno(libc::EINVAL)));
    // A smaller one holds for all.
    own(Some(limits(7_000))).expect("it is permitted");
    assert_eq!(kernel_limit(resource), 7_000);
    own(Some(limits(3_000_000))).expect("it is permitted");
    assert_eq!(kernel_limit(resource), guarded);
    // Past us.
    let past = limits(guarded + 4711);
    // SAFETY: a limit.
    assert_eq!(unsafe { libc::setrlimit64(resource, &raw const past) }, 0);
    program.tick(kernel::boot_time_ns());
    assert_eq!(own(None), Ok((guarded + 4711, before.rlim_max)));
    assert_eq!(kernel_limit(resource), guarded);
    program.stop();
    assert!(guard::own_limit(None).is_none());
    assert_eq!(kernel_limit(resource), guarded + 4711);
    // SAFETY: as it was.
    assert_eq!(unsafe { libc::setrlimit64(resource, &raw const before) }, 0);
}

/// Takes from this thread alone what lets it raise priorities.
fn give_up_privilege() {
    let header = [0x2008_0522_u32, 0];
    let mut sets = [0u32; 6];
    // SAFETY: the third version of the interface has six words.
    unsafe {
        let asked = libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
        assert_eq!(asked, 0);
        for set in &mut sets[..3] {
            *set &= !(1 << 23);
        }
        let given_up = libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
        assert_eq!(given_up, 0);
    }
}

/// Without a privilege it is decided when a thread begins, and never changes.
#[test]
fn without_a_privilege_threads_are_lazy_from_the_beginning() {
    let _alone = alone();
    let unprivileged = std::thread::spawn(|| {
        give_up_privilege();
        let realtime = Program::start(16, Some(Rung::Realtime), Settings::default(), nobody);
        let is_limited = scheduling::priority_max() == 0;
        assert_eq!(realtime.is_err(), is_limited);
        drop(realtime);
        let program = Program::start(16, Some(Rung::Idle), Settings::default(), nobody);
        let program = program.expect("anybody may");
        if program.rung() != Some((Rung::Idle, Return::Never)) {
            // This user may return, by a limit.
            return;
        }
        let urgent = Waiting::listed(&program, &critical(-5));
        let before = urgent.state();
        let ordinary = Waiting::listed(&program, &role("worker"));
        let idle = |it: &Waiting| i32::from(it.state().0.policy) == libc::SCHED_IDLE;
        assert!(idle(&ordinary) && !idle(&urgent));
        program
            .set(ordinary.identity, &critical(0))
            .expect("listed");
        program
            .set(urgent.identity, &role("probe"))
            .expect("listed");
        assert!(idle(&ordinary));
        assert_eq!(urgent.state(), before);
        program.ended(urgent.identity).expect("listed");
        program.stop();
        assert!(idle(&ordinary));
        assert_eq!(program.refused(), (0, None));
    });
    unprivileged.join().expect("it ends well");
}

/// What a child of this test program is told by, which is limited as its name says.
const IS_LIMITED: &str = "MILIEU_TEST_LIMITED";

/// Who may set a nice value of 0 may return to it, and is mediated as the privileged are:
/// the tests above are run again by a child that has such a limit, and nothing else.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn with_a_limit_threads_return_without_a_privilege() {
    const NICE: libc::rlim_t = 20;
    if std::env::var_os(IS_LIMITED).is_some() {
        assert!(!scheduling::has_privilege());
        assert!(scheduling::may_have_nice(0) && !scheduling::may_have_nice(-1));
        for report in probe() {
            if matches!(report.rung, Rung::Idle | Rung::Nice) {
                assert_eq!(report.verdict, Ok(Return::Always), "{}", report.rung);
            }
        }
        return;
    }
    let _alone = alone();
    let limited = || {
        let limit = libc::rlimit {
            rlim_cur: NICE,
            rlim_max: NICE,
        };
        const CAP_SYS_NICE: libc::c_ulong = 23;
        // SAFETY: the kernel reads such a structure; the other call has no memory.
        let is_limited = unsafe {
            libc::setrlimit(libc::RLIMIT_NICE, &raw const limit) == 0
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
        .args(["--exact", "threads_go_to_their_regions_and_return"])
        .args(["stopping_restores_everything"])
        .args(["what_the_program_wishes_meanwhile_is_had_on_return"])
        .args(["who_is_bound_to_be_lazy_is_so_whoever_is_urgent"])
        .args(["what_a_lazy_thread_begins_returns_to_what_that_had"])
        .args(["a_child_has_a_table_of_its_own_and_has_returned"])
        .args(["with_a_limit_threads_return_without_a_privilege"])
        .env(IS_LIMITED, "");
    // SAFETY: it makes system calls, and nothing else.
    unsafe { tests.pre_exec(limited) };
    match tests.output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("not tested: this user can have no such limit ({error})");
        }
        ran => {
            let ran = ran.expect("this program runs");
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(said.contains("test result: ok. 7 passed"), "{said}");
        }
    }
}

/// The child of a fork has a table of its own, in which only its thread is, and is
/// where it was before it was mediated; the parent's is as it was.
#[test]
fn a_child_has_a_table_of_its_own_and_has_returned() {
    let _alone = alone();
    programs(|rung, program| {
        let me = identity();
        let own = scheduling::of(kernel::thread_id()).expect("it runs");
        let group = || std::fs::read("/proc/thread-self/cgroup");
        let group_before = group().expect("a list");
        program
            .began(me, kernel::thread_id(), &role("main"), false)
            .expect("a line");
        let urgent = Waiting::listed(program, &critical(0));
        let others = program.table().lines().iter().count();
        let (mut waits, mut wakes) = UnixStream::pair().expect("two ends");
        program.before_fork(me);
        // SAFETY: the child makes system calls, reads files and exits; what it
        // allocates glibc provides for.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // In the parent it has returned by now, and the child has not.
            let is_woken = waits.read_exact(&mut [0]).is_ok();
            let is_own = is_woken
                && program.after_fork_in_child().is_ok()
                && program.table().lines().iter().count() == 1
                && View::of_process(std::process::id()).is_ok_and(|it| it.iter().count() == 1)
                && scheduling::of(kernel::thread_id()) == Ok(own)
                && group().is_ok_and(|it| it == group_before)
                && program.set(me, &critical(0)).is_ok()
                && program
                    .table()
                    .lines()
                    .entry(me)
                    .is_ok_and(|it| it.region == Region::Fast);
            program.stop();
            // SAFETY: ends this process, and nothing of the test's.
            unsafe { libc::_exit(i32::from(!is_own)) };
        }
        program.after_fork_in_parent();
        program.exclude(me);
        wakes.write_all(&[0]).expect("the child reads");
        let mut status = -1;
        // SAFETY: the child is ours.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "{rung}");
        assert_eq!(program.table().lines().iter().count(), others);
        assert_eq!(urgent.region(program), Region::Fast, "{rung}");
        program.ended(me).expect("listed");
        program.stop();
        assert_eq!(scheduling::of(kernel::thread_id()), Ok(own), "{rung}");
    });
}

#[test]
fn a_program_can_be_listed_without_being_mediated() {
    let _alone = alone();
    let program = Program::start(16, None, Settings::default(), nobody).expect("memory");
    assert_eq!(program.rung(), None);
    let ordinary = Waiting::listed(&program, &role("worker"));
    let before = ordinary.state();
    let attributes = critical(0).with_stack(StackSize::of_bytes(1 << 20).expect("a size"));
    program.set(ordinary.identity, &attributes).expect("listed");
    assert_eq!(program.get(ordinary.identity), Ok(attributes));
    assert_eq!(ordinary.state(), before);
    assert_eq!(program.get(1), Err(TableError::Unknown));

    let view = View::of_process(std::process::id()).expect("our own");
    let found = view.with_role(attributes.role()).next().expect("listed").1;
    assert_eq!(found.tid, ordinary.tid);
    assert!(found.created_us > 0);
    program.ended(ordinary.identity).expect("listed");
    assert_eq!(view.iter().count(), 0);
}

#[test]
fn what_does_not_work_is_told_by_rung_and_remedy() {
    let _alone = alone();
    for report in probe() {
        let Err(obstacle) = report.verdict else {
            continue;
        };
        let refused = Program::start(16, Some(report.rung), Settings::default(), nobody);
        let error = refused.err().expect("it does not work");
        assert_eq!(error, StartError::Rung(report.rung, obstacle));
        assert!(error.to_string().starts_with(report.rung.name()), "{error}");
    }
}
