//! A program that has a mediator of its own, by the crate `milieu`, runs with the preload:
//! one of the two mediates, and the other tells it.

mod support;

use std::env;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use milieu::threads::{Attributes, Mediator, Priority, Region, Return, Rung, Thread, probe};
use milieu_threads::rung::scheduling;
use support::{NATIVE, World};

/// Says that this process is the program, and whether threads return in it.
const INSIDE: &str = "MILIEU_TEST_RETURNS";

/// Far more than anything here takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How the kernel schedules a thread.
fn policy(thread: &Thread) -> i32 {
    let entry = thread.entry().expect("it runs");
    scheduling::of(entry.tid).expect("it runs").policy.into()
}

fn region(thread: &Thread) -> Region {
    thread.entry().expect("it runs").region
}

#[test]
fn a_mediator_in_a_program_leaves_threads_to_the_preload() {
    if let Ok(returns) = env::var(INSIDE) {
        return in_the_program(returns == "yes");
    }
    let reports = probe();
    let idle = reports.iter().find(|it| it.rung == Rung::Idle);
    let returns = match idle.expect("it was tried").verdict {
        Ok(Return::Always) => "yes",
        _ => "no",
    };
    let itself = env::current_exe().expect("it runs");
    let test = "a_mediator_in_a_program_leaves_threads_to_the_preload";
    let setting = format!("{INSIDE}={returns}");
    let world = World {
        starter: &["env", &setting],
        ..World::served("rung=idle;wait=never;spin=100000")
    };
    world.run(&itself, &["--exact", test, "--nocapture"]).well();
    // Without the preload it mediates itself.
    assert!(NATIVE.settings.is_none());
    let mediator = Mediator::options().rung(Rung::Idle).start();
    let mediator = mediator.expect("it always works");
    assert!(!mediator.is_joined() && mediator.rung().is_some());
}

fn in_the_program(returns: bool) {
    let mediator = Mediator::start().expect("there is memory");
    assert!(mediator.is_joined());
    assert_eq!(mediator.rung(), None);
    let (end, ended) = channel::<()>();
    let probe = mediator.thread("probe").expect("a role");
    let probe = probe.critical(Priority::new(-5).expect("a nice value"));
    let probe = probe.spawn(move || ended.recv()).expect("a thread");
    until("it is in the fast region", || {
        probe.entry().is_some() && region(&probe) == Region::Fast
    });
    let begin = |role: &str, is_excluded: bool| {
        let (end, ended) = channel::<()>();
        let thread = mediator.thread(role).expect("a role");
        let thread = if is_excluded {
            thread.excluded()
        } else {
            thread
        };
        let thread = thread.spawn(move || ended.recv()).expect("a thread");
        until("it has begun", || thread.entry().is_some());
        (end, thread)
    };
    let (end_pool, pool) = begin("pool", false);
    until("it is in the lazy region", || region(&pool) == Region::Lazy);
    assert_eq!(policy(&pool), libc::SCHED_IDLE);
    let found = mediator
        .threads()
        .find(|it| it.attributes.role().as_str() == "pool");
    assert_eq!(found.map(|it| it.region), Some(Region::Lazy));
    if returns {
        // Where they cannot, it is decided before anybody can say so.
        let (end_free, free) = begin("free", true);
        until("it is left alone", || policy(&free) == libc::SCHED_OTHER);
        drop(end_free);
        let _ = free.join();
        // What it is for changes: nobody is critical any more.
        let plain = Attributes::of(probe.attributes().role());
        probe.set(&plain).expect("it runs");
        until("it has returned", || policy(&pool) == libc::SCHED_OTHER);
        let critical = plain.time_critical(Priority::default());
        mediator.set_role(&critical);
        until("it is lazy again", || policy(&pool) == libc::SCHED_IDLE);
        let tid = pool.entry().expect("it runs").tid;
        drop(mediator);
        let now = scheduling::of(tid).expect("it runs");
        assert_eq!(i32::from(now.policy), libc::SCHED_OTHER);
    }
    drop((end, end_pool));
    assert!(probe.join().is_ok() && pool.join().is_ok());
}
