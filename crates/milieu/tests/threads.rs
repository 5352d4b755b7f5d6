//! Threads with roles: where they are, what they follow, what is learned of them.
//!
//! Nothing here depends on how long anything takes. What needs a privilege, or a
//! control group, is tried on whatever rungs work on this machine.

mod support;

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milieu::threads::{
    Attributes, Mediator, Mode, Options, Policy, Priority, Region, Return, Role, Rung, Settings,
    Spawned, StackSize, ThreadBuilder, probe,
};
use milieu::{Context, Environment, Error, Milieu, Scope, Text, ThreadLayer, each, layer};
use milieu_threads::kernel;
use milieu_threads::rung::scheduling;
use support::Machine;

layer! { /// The battery is low.
struct BatteryLow = "battery_low"; }

/// What the kernel does is of the process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn role(name: &str) -> Role {
    Role::new(name).expect("a role")
}

fn nice(value: i32) -> Priority {
    Priority::new(value).expect("a nice value")
}

/// Waits, for as long as it takes.
fn until(what: impl Fn() -> bool) {
    while !what() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// The rungs that work here and from which threads return.
fn rungs() -> Vec<Rung> {
    let works = |it: &&milieu::threads::Report| it.verdict == Ok(Return::Always);
    let reports = probe();
    reports.iter().filter(works).map(|it| it.rung).collect()
}

/// Without turns, which a test that has to wait for the processor would see.
fn calm() -> Settings {
    Settings {
        lazy_wait_ns_max: None,
        ..Settings::default()
    }
}

/// The thread of the test is left alone, so that it need not wait for a busy machine.
fn on(rung: Rung) -> Options {
    let options = Mediator::options().rung(rung).settings(calm());
    options.only_own()
}

/// A thread that waits until it is dropped.
struct Waiting {
    thread: Option<Spawned<JoinHandle<()>>>,
    tid: u32,
    end: Option<Sender<()>>,
}

impl Waiting {
    fn of(builder: ThreadBuilder<'_>) -> Waiting {
        let (end, ended): (_, Receiver<()>) = channel();
        let (tell, told) = channel();
        let thread = builder.spawn(move || {
            tell.send(kernel::thread_id()).expect("somebody listens");
            let _ = ended.recv();
        });
        Waiting {
            thread: Some(thread.expect("a thread")),
            tid: told.recv().expect("it runs"),
            end: Some(end),
        }
    }

    fn thread(&self) -> &milieu::threads::Thread {
        self.thread.as_ref().expect("it was begun")
    }

    fn region(&self) -> Region {
        self.thread().entry().expect("it is listed").region
    }

    fn is_idle(&self) -> bool {
        let scheduling = scheduling::of(self.tid).expect("it waits");
        i32::from(scheduling.policy) == libc::SCHED_IDLE
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.end.take());
        let ended = self.thread.take().map(Spawned::<JoinHandle<()>>::join);
        assert!(ended.is_none_or(|it| it.is_ok()) || thread::panicking());
    }
}

#[test]
fn a_thread_is_for_something_before_it_exists() {
    let _alone = alone();
    let mediator = Mediator::options().unmediated().start().expect("memory");
    let probe = mediator.thread("gas-detection").expect("a role");
    let probe = probe.critical(nice(-5));
    let probe = Waiting::of(probe.stack(StackSize::of_bytes(1 << 20).expect("a size")));
    let attributes = probe.thread().attributes();
    assert!(attributes.is_time_critical());
    assert_eq!(attributes.role(), role("gas-detection"));
    assert_eq!(attributes.priority(), nice(-5));

    let entry = probe.thread().entry().expect("it is listed");
    assert_eq!((entry.tid, entry.attributes), (probe.tid, attributes));
    let of_role: Vec<_> = mediator.with_role(role("gas-detection")).collect();
    assert_eq!(of_role, [entry]);
    assert_eq!(mediator.by_thread_id(probe.tid), Some(entry));
    assert!(mediator.threads().any(|it| it == entry));
    assert_eq!(mediator.rung(), None);

    let known = probe.thread().clone();
    let changed = attributes.not_critical();
    known.set(&changed).expect("it runs");
    assert_eq!(known.attributes(), changed);
    drop(probe);
    assert_eq!((known.attributes(), known.entry()), (changed, None));
    assert!(known.set(&attributes).is_err());
    assert_eq!(mediator.with_role(role("gas-detection")).count(), 0);

    assert!(mediator.thread("a//b").is_err());
    let named = thread::scope(|scope| {
        let builder = mediator.thread("net/accept").expect("a role");
        let name = || thread::current().name().map(str::to_owned);
        let of_thread = || mediator.current().role();
        let named = builder.spawn_scoped(scope, move || (name(), of_thread()));
        named.expect("a thread").join().expect("it says its name")
    });
    assert_eq!(named, (Some("net/accept".into()), role("net/accept")));
}

#[test]
fn a_panic_ends_a_thread_as_any_other_end_does() {
    let _alone = alone();
    let mediator = Mediator::start().expect("some rung works");
    let builder = mediator.thread("probe").expect("a role");
    let failing = builder.critical(nice(0)).spawn(|| {
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    let failing = failing.expect("a thread");
    let known = failing.clone();
    assert!(failing.join().is_err());
    assert!(known.entry().is_none() && known.attributes().is_time_critical());
    assert_eq!(mediator.with_role(role("probe")).count(), 0);
}

#[test]
fn everybody_waits_for_a_critical_thread_and_then_returns() {
    let _alone = alone();
    for rung in rungs() {
        let mediator = Mediator::options()
            .rung(rung)
            .settings(calm())
            .start()
            .expect("probed");
        assert_eq!(mediator.rung(), Some((rung, Return::Always)));
        let worker = Waiting::of(mediator.thread("worker").expect("a role"));
        let excluded = Waiting::of(mediator.thread("logger").expect("a role").excluded());
        let before = scheduling::of(worker.tid);
        let urgent = mediator.thread("probe").expect("a role").critical(nice(0));
        let urgent = Waiting::of(urgent);
        assert_eq!(urgent.region(), Region::Fast, "{rung}");
        assert_eq!(worker.region(), Region::Lazy, "{rung}");
        assert_eq!(excluded.region(), Region::Own, "{rung}");

        // This thread was not begun by the mediator, and waits as well.
        let me = kernel::thread_id();
        let found = || mediator.by_thread_id(me);
        until(|| found().is_some_and(|it| it.region == Region::Lazy));
        drop(urgent);
        assert_eq!(worker.region(), Region::Own, "{rung}");
        assert_eq!(scheduling::of(worker.tid), before, "{rung}");
        assert_eq!(found().map(|it| it.region), Some(Region::Own));

        // It may say what it is for, and is itself from then on.
        let own = Attributes::of(role("main")).time_critical(nice(3));
        mediator.set_current(&own).expect("there is room");
        assert_eq!(mediator.current(), own);
        let listed: Vec<_> = mediator.threads().filter(|it| it.tid == me).collect();
        assert!(matches!(&listed[..], [it] if it.attributes == own && it.region == Region::Fast));
        assert_eq!(worker.region(), Region::Lazy, "{rung}");
        drop(mediator);
        assert_eq!(scheduling::of(worker.tid), before, "{rung}");
        assert_eq!(scheduling::of(me).ok(), before.ok(), "{rung}");
    }
}

#[test]
fn no_thread_inherits_what_its_creator_has_for_being_critical_or_lazy() {
    let _alone = alone();
    for rung in rungs() {
        let mediator = on(rung).start().expect("probed");
        let before = scheduling::of(kernel::thread_id()).expect("it runs");
        let excluded = |mediator: &Mediator| {
            let plain = mediator.thread("plain").expect("a role").excluded();
            let plain = plain.spawn(|| scheduling::of(kernel::thread_id()).expect("it runs"));
            plain.expect("a thread").join().expect("it ends well")
        };
        thread::scope(|scope| {
            let critical = mediator.thread("probe").expect("a role").critical(nice(-7));
            let critical = critical.spawn_scoped(scope, || {
                let worker = mediator.thread("worker").expect("a role");
                let lazily = worker.spawn_scoped(scope, || {
                    let own = mediator.by_thread_id(kernel::thread_id());
                    assert_eq!(own.map(|it| it.region), Some(Region::Lazy), "{rung}");
                    excluded(&mediator)
                });
                let lazily = lazily.expect("a thread").join().expect("it ends well");
                (excluded(&mediator), lazily)
            });
            let critical = critical.expect("a thread").join();
            let (urgently, lazily) = critical.expect("it ends well");
            for inherited in [urgently, lazily] {
                assert_eq!(
                    (inherited.policy, inherited.nice),
                    (before.policy, before.nice),
                    "{rung}"
                );
            }
        });
    }
}

/// Takes from this thread, and those that it begins, what lets it raise priorities.
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

#[test]
fn who_is_lazy_for_ever_hands_that_on_to_no_critical_thread() {
    let _alone = alone();
    let unprivileged = thread::spawn(|| {
        give_up_privilege();
        let mediator = Mediator::options().rung(Rung::Idle).start();
        let mediator = Arc::new(mediator.expect("anybody may"));
        if mediator.rung() != Some((Rung::Idle, Return::Never)) {
            // This user may return, by a limit.
            return;
        }
        let for_worker = mediator.clone();
        let worker = mediator.thread("worker").expect("a role");
        let worker = worker.spawn(move || {
            let mediator = for_worker;
            let is_idle = || {
                let own = scheduling::of(kernel::thread_id()).expect("it runs");
                i32::from(own.policy) == libc::SCHED_IDLE
            };
            assert!(is_idle());
            let critical = || mediator.thread("probe").expect("a role").critical(nice(0));
            let probe = critical().spawn(is_idle).expect("a thread");
            assert!(!probe.join().expect("it ends well"));
            let plain = mediator.thread("logger").expect("a role").excluded();
            assert!(
                !plain
                    .spawn(is_idle)
                    .expect("a thread")
                    .join()
                    .expect("ends")
            );
            thread::scope(|scope| {
                let refused = critical().spawn_scoped(scope, || ()).map(|_| ());
                let refused = refused.expect_err("it would be lazy");
                assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
                let other = mediator.thread("worker").expect("a role");
                let other = other.spawn_scoped(scope, is_idle).expect("a thread");
                assert!(other.join().expect("it ends well"));
            });
        });
        worker.expect("a thread").join().expect("it ends well");
    });
    unprivileged.join().expect("it ends well");
}

#[derive(Environment)]
struct Pool {
    #[key("/pool/%battery_low%/region", default = "fast")]
    region: Text,
    #[key("/pool/%battery_low%/critical", default = false)]
    critical: bool,
    #[key("/pool/priority", default = 0)]
    priority: i32,
    #[key("/pool/%battery_low%/stack", default = 0)]
    stack: u32,
    #[key("/batches/%in_pool%/size", default = 1)]
    batch: i32,
}

#[test]
fn a_layer_makes_a_pool_lazy_and_lets_it_return() {
    let _alone = alone();
    for rung in rungs() {
        let machine = Machine::new().user("/pool/active/region = lazy\n");
        let milieu = machine.open();
        let mut cx = milieu.context::<Pool>().expect("settings");
        let mediator = on(rung).start().expect("probed");
        let threads: Vec<_> = (0..3)
            .map(|_| Waiting::of(mediator.thread("pool").expect("a role")))
            .collect();
        let other = Waiting::of(mediator.thread("other").expect("a role"));
        mediator
            .follow("pool", milieu.context::<Pool>().expect("settings"))
            .expect("it has values below /pool");
        let regions = || threads.iter().map(Waiting::region).collect::<Vec<_>>();
        assert_eq!(regions(), [Region::Own; 3]);

        cx.activate(BatteryLow).expect("it closes no cycle");
        mediator.settle();
        assert_eq!(regions(), [Region::Lazy; 3], "{rung}");
        assert_eq!(other.region(), Region::Own, "{rung}");
        if matches!(rung, Rung::Realtime | Rung::Idle) {
            assert!(threads.iter().all(Waiting::is_idle), "{rung}");
        }
        // One that begins meanwhile is as lazy.
        let late = Waiting::of(mediator.thread("pool").expect("a role"));
        assert_eq!(late.region(), Region::Lazy, "{rung}");

        cx.deactivate::<BatteryLow>().expect("it closes no cycle");
        mediator.settle();
        assert_eq!(regions(), [Region::Own; 3], "{rung}");
        assert_eq!(late.region(), Region::Own, "{rung}");
        assert!(!threads.iter().any(Waiting::is_idle), "{rung}");

        // Values move it as well, and what it is for follows, too.
        cx.set::<at::priority>(-3).expect("a number");
        cx.set::<at::critical>(true).expect("a boolean");
        mediator.settle();
        assert_eq!(regions(), [Region::Fast; 3], "{rung}");
        assert_eq!(threads[0].thread().attributes().priority(), nice(-3));
        assert_eq!(other.region(), Region::Lazy, "{rung}");
    }
}

mod region_first {
    use milieu::{Environment, Text};

    #[derive(Environment)]
    pub struct RegionFirst {
        #[key("/pool/region", default = "lazy")]
        pub region: Text,
        #[key("/pool/priority", default = -2)]
        pub priority: i32,
        #[key("/pool/critical", default = true)]
        pub critical: bool,
    }
}

mod region_last {
    use milieu::{Environment, Text};

    #[derive(Environment)]
    pub struct RegionLast {
        #[key("/pool/critical", default = true)]
        pub critical: bool,
        #[key("/pool/priority", default = -2)]
        pub priority: i32,
        #[key("/pool/region", default = "lazy")]
        pub region: Text,
    }
}

#[test]
fn a_region_bounds_whatever_else_is_said_in_whatever_order() {
    fn check<E: Environment + Send + 'static>() {
        let machine = Machine::new();
        let milieu = machine.open();
        let mediator = Mediator::options().unmediated().start().expect("memory");
        let thread = Waiting::of(mediator.thread("pool").expect("a role"));
        let followed: Context<E> = milieu.context().expect("settings");
        mediator.follow("pool", followed).expect("it has values");
        mediator.settle();
        let attributes = || thread.thread().attributes();
        assert!(attributes().is_lazy() && !attributes().is_time_critical());

        for (region, expected) in [("fast", true), ("own", false), ("lazy", false)] {
            milieu
                .coordinator()
                .assign("/pool/region", region, None)
                .expect("a text");
            mediator.settle();
            assert_eq!(attributes().is_time_critical(), expected, "{region}");
            assert_eq!(attributes().is_lazy(), region == "lazy");
            assert_eq!(attributes().priority(), nice(-2));
            assert_eq!(mediator.role(role("pool")), Some(attributes()));
        }
    }
    let _alone = alone();
    check::<region_first::RegionFirst>();
    check::<region_last::RegionLast>();
}

mod region_alone {
    use milieu::{Environment, Text};

    #[derive(Environment)]
    pub struct RegionAlone {
        #[key("/pool/%battery_low%/region", default = "fast")]
        pub region: Text,
    }
}

#[test]
fn who_is_critical_by_a_builder_is_so_again_when_the_region_is_fast() {
    let _alone = alone();
    let machine = Machine::new().user("/pool/active/region = lazy\n");
    let milieu = machine.open();
    let mut cx = milieu
        .context::<region_alone::RegionAlone>()
        .expect("settings");
    let mediator = Mediator::options().unmediated().start().expect("memory");
    let begin = |priority| {
        let builder = mediator.thread("pool").expect("a role");
        Waiting::of(builder.critical(nice(priority)))
    };
    let before = begin(-5);
    let plain = Waiting::of(mediator.thread("pool").expect("a role"));
    let followed: Context<region_alone::RegionAlone> = milieu.context().expect("settings");
    mediator.follow("pool", followed).expect("it has a value");
    mediator.settle();
    let critical = |it: &Waiting| {
        let attributes = it.thread().attributes();
        let critical = attributes.is_time_critical();
        (
            critical.then(|| attributes.priority()),
            attributes.is_lazy(),
        )
    };
    assert_eq!(critical(&before), (Some(nice(-5)), false));

    cx.activate(BatteryLow).expect("it closes no cycle");
    mediator.settle();
    let late = begin(4);
    let changed = Waiting::of(mediator.thread("pool").expect("a role"));
    for lazy in [&before, &plain, &late, &changed] {
        assert_eq!(critical(lazy), (None, true));
    }
    // It holds until the context changes, and is not forgotten then.
    let own = Attributes::of(role("pool")).time_critical(nice(7));
    changed.thread().set(&own).expect("it runs");
    assert_eq!(critical(&changed), (Some(nice(7)), false));

    cx.deactivate::<BatteryLow>().expect("it closes no cycle");
    mediator.settle();
    assert_eq!(critical(&before), (Some(nice(-5)), false));
    assert_eq!(critical(&plain), (None, false));
    assert_eq!(critical(&late), (Some(nice(4)), false));
    assert_eq!(critical(&changed), (Some(nice(7)), false));

    cx.activate(BatteryLow).expect("it closes no cycle");
    mediator.settle();
    assert_eq!(critical(&changed), (None, true));
}

#[test]
fn a_layer_says_how_large_stacks_are_of_threads_that_begin_later() {
    let _alone = alone();
    // Larger than those of threads that have ended, of which the C library makes new ones.
    const ACTIVE: u64 = 40 << 20;
    const SET: u64 = 50 << 20;
    let machine = Machine::new().user("/pool/active/stack = 41943040\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Pool>().expect("settings");
    let mediator = Mediator::options().unmediated();
    let policy = Policy {
        mode: Mode::Learn,
        ..Policy::default()
    };
    let mediator = mediator.stacks(&milieu, policy).start().expect("memory");
    mediator
        .follow("pool", milieu.context::<Pool>().expect("settings"))
        .expect("it has values below /pool");
    let begin = || Waiting::of(mediator.thread("pool").expect("a role"));
    let asked = |it: &Waiting| it.thread().attributes().stack().map(StackSize::bytes);
    let has = |it: &Waiting| {
        let entry = it.thread().entry().expect("it is listed");
        u64::from(entry.stack_kib) << 10
    };
    let is_about = |bytes: u64, expected: u64| (expected..expected + (1 << 20)).contains(&bytes);

    let usual = begin();
    assert_eq!(asked(&usual), None);
    if has(&usual) == 0 {
        // The kernel tells nothing of stacks.
        return;
    }
    assert!(has(&usual) < ACTIVE);

    cx.activate(BatteryLow).expect("it closes no cycle");
    mediator.settle();
    let large = begin();
    assert_eq!(asked(&large), Some(ACTIVE));
    assert!(is_about(has(&large), ACTIVE), "{}", has(&large));
    assert!(has(&usual) < ACTIVE, "it has begun before");

    cx.deactivate::<BatteryLow>().expect("it closes no cycle");
    mediator.settle();
    let again = begin();
    assert_eq!(asked(&again), None);
    assert!(has(&again) < ACTIVE);

    cx.set::<at::stack>(SET as u32).expect("a number");
    mediator.settle();
    let larger = begin();
    assert_eq!(asked(&larger), Some(SET));
    assert!(is_about(has(&larger), SET), "{}", has(&larger));
    assert!(is_about(has(&large), ACTIVE), "it has begun before");
}

#[test]
fn what_a_role_is_for_may_be_any_function_of_context() {
    let _alone = alone();
    let milieu = Milieu::in_memory();
    let mut cx = milieu.context::<Pool>().expect("settings");
    let mediator = Mediator::options().unmediated().start().expect("memory");
    let thread = Waiting::of(mediator.thread("probe").expect("a role"));
    let followed: Context<Pool> = milieu.context().expect("settings");
    mediator.follow_by(role("probe"), followed, |cx, _| {
        let attributes = Attributes::of(role("another"));
        match cx.priority {
            0 => attributes,
            priority => attributes.time_critical(nice(priority)),
        }
    });
    assert!(!thread.thread().attributes().is_time_critical());
    cx.set::<at::priority>(4).expect("a number");
    mediator.settle();
    // The role itself is what follows.
    let expected = Attributes::of(role("probe")).time_critical(nice(4));
    assert_eq!(thread.thread().attributes(), expected);

    let unrelated = milieu.context::<Pool>().expect("settings");
    let error = mediator.follow("probe", unrelated).expect_err("no values");
    assert!(matches!(error, Error::Role(_)));
    assert!(
        error.to_string().contains("/probe/%battery%/region"),
        "{error}"
    );
}

/// Who is in a pool, by the role of the thread.
struct InPool;
impl ThreadLayer for InPool {
    const ID: &'static str = "in_pool";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        let is_in_pool = scope.role().starts_with("/pool/");
        if is_in_pool { "yes".into() } else { "".into() }
    }
}

#[test]
fn layers_select_threads_by_their_roles() {
    let _alone = alone();
    let machine = Machine::new().user("/batches/yes/size = 64\n");
    let milieu = machine.open();
    let mediator = Mediator::options().unmediated().start().expect("memory");
    let mut cx = mediator.context::<Pool>(&milieu).expect("settings");
    assert_eq!(cx.role(), "");
    cx.activate(each(InPool)).expect("it closes no cycle");
    let size = |role: &str| {
        thread::scope(|scope| {
            let thread = mediator.thread(role).expect("a role");
            let thread = thread.spawn_scoped(scope, || {
                let cx = mediator.context::<Pool>(&milieu).expect("settings");
                (cx.role().to_owned(), cx.batch)
            });
            thread.expect("a thread").join().expect("it ends well")
        })
    };
    assert_eq!(size("pool/3"), ("/pool/3".into(), 64));
    assert_eq!(size("net/accept"), ("/net/accept".into(), 1));
}

#[test]
fn who_runs_away_is_demoted_and_told_of() {
    let _alone = alone();
    for rung in rungs() {
        let (tell, told) = channel();
        let settings = Settings {
            spin_ns_max: 50_000_000,
            ..calm()
        };
        let mediator = on(rung).settings(settings);
        let mediator = mediator.on_demotion(move |it| tell.send(*it).expect("somebody listens"));
        let mediator = mediator.start().expect("probed");
        let end = Arc::new(AtomicBool::new(false));
        let is_over = end.clone();
        let spinning = mediator.thread("probe").expect("a role").critical(nice(0));
        let spinning = spinning.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let spinning = spinning.expect("a thread");
        let demoted = told.recv().expect("the mediator lives");
        assert_eq!(demoted.attributes.role(), role("probe"), "{rung}");
        let entry = spinning.entry().expect("it spins");
        assert_eq!(entry.region, Region::Own, "{rung}");
        // Its attributes give it another chance, which it does not take.
        let attributes = spinning.attributes();
        spinning.set(&attributes).expect("it spins");
        let again = told.recv().expect("the mediator lives");
        assert_eq!(again.tid, demoted.tid, "{rung}");
        end.store(true, Ordering::Relaxed);
        spinning.join().expect("it ends well");
    }
}

#[test]
fn who_blocks_leaves_the_fast_region_if_that_is_wanted() {
    let _alone = alone();
    let settings = Settings {
        leaves_while_blocked: true,
        ..calm()
    };
    for rung in rungs() {
        let mediator = on(rung).settings(settings);
        let mediator = mediator.start().expect("probed");
        let worker = Waiting::of(mediator.thread("worker").expect("a role"));
        thread::scope(|scope| {
            let critical = mediator.thread("probe").expect("a role").critical(nice(0));
            let critical = critical.spawn_scoped(scope, || {
                assert_eq!(worker.region(), Region::Lazy, "{rung}");
                mediator.blocking(|| assert_eq!(worker.region(), Region::Own, "{rung}"));
                assert_eq!(worker.region(), Region::Lazy, "{rung}");
            });
            critical.expect("a thread").join().expect("it ends well");
        });
        assert_eq!(worker.region(), Region::Own, "{rung}");
    }
}

#[test]
fn the_choice_of_a_rung_is_told_with_its_reasons() {
    let _alone = alone();
    let mediator = Mediator::start().expect("some rung works");
    let (rung, returns) = mediator.rung().expect("some rung works");
    let reports = mediator.reports();
    let tried: Vec<Rung> = reports.iter().map(|it| it.rung).collect();
    assert_eq!(tried, Rung::ALL);
    let chosen = reports.iter().find(|it| it.rung == rung).expect("tried");
    assert_eq!(chosen.verdict, Ok(returns));
    for report in reports {
        let text = match report.verdict {
            Ok(returns) => returns.to_string(),
            Err(obstacle) => obstacle.to_string(),
        };
        assert!(!text.is_empty());
    }
    assert_eq!((mediator.refused(), mediator.unlisted()), ((0, None), 0));
}

#[test]
fn who_has_a_mutex_is_as_urgent_as_who_waits_for_it() {
    let _alone = alone();
    for rung in rungs() {
        let mediator = on(rung).start().expect("probed");
        let mutex = mediator.mutex(0);
        thread::scope(|scope| {
            let held = mutex.lock().expect("nobody has panicked");
            mediator
                .set_current(&Attributes::of(role("holder")))
                .expect("there is room");
            let urgent = mediator.thread("probe").expect("a role").critical(nice(2));
            let urgent = urgent.spawn_scoped(scope, || {
                *mutex.lock().expect("nobody has panicked") += 1;
            });
            let urgent = urgent.expect("a thread");
            let me = || mediator.by_thread_id(kernel::thread_id()).expect("listed");
            until(|| me().region == Region::Fast);
            drop(held);
            urgent.join().expect("it ends well");
            assert_ne!(me().region, Region::Fast, "{rung}");
        });
        assert_eq!(*mutex.lock().expect("nobody has panicked"), 1);
    }
}
