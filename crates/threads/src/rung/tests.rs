//! What rungs do to threads of this process, and that they take it back.

use std::string::ToString;
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::attributes::Priority;

/// A thread that waits, by its number, until the function has ended.
fn with_thread(act: impl FnOnce(u32)) {
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let waiting = thread::spawn(move || {
        tell.send(kernel::thread_id()).expect("somebody listens");
        let _ = ended.recv();
    });
    act(told.recv().expect("a thread"));
    drop(end);
    waiting.join().expect("it has waited");
}

fn group_of(tid: u32) -> std::string::String {
    std::fs::read_to_string(std::format!("/proc/self/task/{tid}/cgroup")).expect("a list")
}

#[test]
fn every_rung_says_whether_it_works_and_what_would_help() {
    let reports = probe();
    for report in reports {
        let told = match report.verdict {
            Ok(returns) => returns.to_string(),
            Err(obstacle) => obstacle.to_string(),
        };
        assert!(!told.is_empty(), "{}", report.rung);
    }
    // Whoever may do nothing may do this.
    for rung in [Rung::Idle, Rung::Nice] {
        let report = reports.iter().find(|it| it.rung == rung);
        assert!(report.is_some_and(|it| it.verdict.is_ok()), "{reports:?}");
    }
    let best = best(&reports).expect("one works");
    assert!(best <= Rung::Idle, "{best}");
}

#[test]
fn probing_leaves_this_thread_alone() {
    let before = (
        scheduling::of(kernel::thread_id()),
        group_of(kernel::thread_id()),
    );
    let _ = probe();
    let after = (
        scheduling::of(kernel::thread_id()),
        group_of(kernel::thread_id()),
    );
    assert_eq!(before, after);
}

/// On every rung that works here, threads come back to exactly what they had.
#[test]
fn what_was_had_is_had_again() {
    for rung in Rung::ALL {
        let Ok(means) = Means::open(rung) else {
            continue;
        };
        if means.returns() == Return::Never {
            continue;
        }
        with_thread(|tid| {
            let mut own = scheduling::of(tid).expect("it waits");
            own.nice = own.nice.max(7);
            scheduling::set(tid, &own).expect("it may be nicer");
            let group = group_of(tid);
            let slice_ns = || scheduling::slice_ns_of(tid).expect("it waits");
            let usual_ns = slice_ns();
            let fast = Placement::Fast(Priority::new(7).expect("a nice value"));
            let mut from = Placement::Own;
            for to in [
                fast,
                Placement::Lazy,
                Placement::Bound,
                fast,
                Placement::Own,
                Placement::Lazy,
                Placement::Own,
                Placement::Bound,
                Placement::Own,
            ] {
                means.apply(tid, from, to, &own).expect("it works");
                let now = scheduling::of(tid).expect("it waits");
                // Kernels that do not tell know of none, and others of ordinary threads.
                let is_ordinary = i32::from(now.policy) == libc::SCHED_OTHER;
                match super::slice_ns(rung, to) {
                    _ if usual_ns == 0 || !is_ordinary => {}
                    0 => assert_eq!(slice_ns(), usual_ns, "{rung} {to:?}"),
                    wanted => assert_eq!(slice_ns(), wanted, "{rung} {to:?}"),
                }
                match (rung, to) {
                    (Rung::Realtime, Placement::Fast(_)) => {
                        assert_eq!(i32::from(now.policy), libc::SCHED_RR);
                        assert!(now.is_reset_on_fork && now.realtime_priority >= 1);
                    }
                    (Rung::Idle, Placement::Lazy | Placement::Bound)
                    | (Rung::Realtime | Rung::Nice, Placement::Bound) => {
                        assert_eq!(i32::from(now.policy), libc::SCHED_IDLE);
                    }
                    (Rung::Nice, Placement::Lazy) => assert_eq!(now.nice, 19),
                    (Rung::Cgroup, Placement::Lazy | Placement::Bound) => {
                        assert_ne!(group_of(tid), group);
                    }
                    (_, Placement::Fast(_)) => assert_eq!(group_of(tid), group),
                    _ => assert_eq!((now, group_of(tid)), (own, group.clone()), "{rung} {to:?}"),
                }
                from = to;
            }
        });
    }
}

/// Giving up a rung brings home whoever is in its group.
#[test]
fn a_group_that_is_given_up_leaves_nobody_behind() {
    let Ok(means) = Means::open(Rung::Cgroup) else {
        return;
    };
    with_thread(|tid| {
        let group = group_of(tid);
        let own = scheduling::of(tid).expect("it waits");
        let lazy = means.apply(tid, Placement::Own, Placement::Lazy, &own);
        lazy.expect("it works");
        assert_ne!(group_of(tid), group);
        drop(means);
        assert_eq!(group_of(tid), group);
    });
}

#[test]
fn threads_that_the_program_runs_in_real_time_are_left_alone() {
    let own = Scheduling {
        policy: libc::SCHED_FIFO as u8,
        realtime_priority: 3,
        ..Scheduling::default()
    };
    let means = Means::open(Rung::Idle).expect("it always works");
    with_thread(|tid| {
        let before = scheduling::of(tid);
        let lazy = means.apply(tid, Placement::Own, Placement::Lazy, &own);
        lazy.expect("nothing is done");
        assert_eq!(scheduling::of(tid), before);
    });
}

#[test]
fn nice_values_order_real_time_priorities() {
    let own = Scheduling::default();
    for most in [0, 1, 2, 5, 39, 40, 99] {
        let of = |nice: i32| {
            let priority = Priority::new(nice).expect("a nice value");
            scheduling::realtime(priority, &own, most).realtime_priority
        };
        assert_eq!((of(19), of(-20)), (1, most.clamp(1, 40)));
        assert!((-20..19).all(|nice| of(nice) >= of(nice + 1)));
    }
}

#[test]
fn nice_values_of_critical_threads_are_below_the_usual_and_in_order() {
    let of = |nice: i32| scheduling::raised(Priority::new(nice).expect("a nice value"));
    assert_eq!((of(-20), of(0), of(19)), (-20, -10, -1));
    assert!((-20..19).all(|nice| of(nice) <= of(nice + 1)));
}

/// Without the right to the largest share nobody is raised: else a less critical thread might
/// be, and a more critical one not.
#[test]
fn who_may_raise_one_may_raise_all() {
    let own = Scheduling::default();
    for rung in [Rung::Cgroup, Rung::Idle, Rung::Nice] {
        for (least, expected) in [(-20, [-20, -10, -1]), (-19, [0, 0, 19]), (0, [0, 0, 19])] {
            let nice = [-20, 0, 19].map(|priority| {
                let fast = Placement::Fast(Priority::new(priority).expect("a nice value"));
                wanted_by(rung, &|nice| nice >= least, fast, &own).nice
            });
            assert_eq!(nice, expected, "{rung} {least}");
        }
    }
}

/// On every rung: in real time where that is permitted, else as far ahead as may be; and
/// nobody whom it begins inherits it.
#[test]
fn who_mediates_comes_first() {
    for rung in Rung::ALL {
        let mediating = thread::spawn(move || {
            let own = scheduling::of(kernel::thread_id()).expect("it runs");
            come_first(rung);
            let begun = thread::spawn(|| scheduling::of(kernel::thread_id()));
            let begun = begun.join().expect("it has ended").expect("it ran");
            let now = scheduling::of(kernel::thread_id()).expect("it runs");
            (own, now, begun)
        });
        let (own, now, begun) = mediating.join().expect("it has ended");
        let may_be_first = scheduling::has_privilege();
        if may_be_first && rung == Rung::Realtime {
            // Before every thread that is critical.
            assert_eq!(now.realtime_priority, scheduling::priority_max() + 1);
        }
        let is_first = scheduling::is_realtime(now.policy) || now.nice == -20;
        assert!(!may_be_first || is_first, "{rung} {now:?}");
        assert!(!is_first || now.is_reset_on_fork, "{rung} {now:?}");
        assert_eq!((begun.policy, begun.nice), (own.policy, own.nice), "{rung}");
    }
}

/// Rights may have gone since: what a thread was given is none that its program asks for.
#[test]
fn what_a_thread_was_given_is_known_whatever_is_permitted() {
    let own = Scheduling::default();
    let first = Priority::new(-5).expect("a priority");
    for rung in [Rung::Realtime, Rung::Cgroup, Rung::Idle, Rung::Nice] {
        for to in [
            Placement::Own,
            Placement::Lazy,
            Placement::Bound,
            Placement::Fast(first),
        ] {
            for returns in [Return::Always, Return::Never] {
                let given = wanted(rung, returns, to, &own);
                assert!(
                    is_given(rung, to, &own, &given),
                    "{rung} {to:?} {returns:?}"
                );
            }
            let other = Scheduling { nice: 7, ..own };
            assert!(!is_given(rung, to, &own, &other), "{rung} {to:?}");
        }
    }
    let idle = idle(&own);
    for rung in [Rung::Realtime, Rung::Nice] {
        assert!(is_given(rung, Placement::Bound, &own, &idle));
        assert!(!is_given(rung, Placement::Lazy, &own, &idle));
    }
}

/// Whoever begins it may be lazy, or make way in the turn of others.
#[test]
fn what_a_new_thread_has_of_a_lazy_one_is_not_its_own() {
    let own = Scheduling::default();
    for (rung, inherits) in [
        (Rung::Idle, [true, true]),
        (Rung::Nice, [true, true]),
        (Rung::Realtime, [false, true]),
    ] {
        let Ok(means) = Means::open(rung) else {
            continue;
        };
        if means.returns() != Return::Always {
            continue;
        }
        for (to, inherits) in [Placement::Lazy, Placement::Bound]
            .into_iter()
            .zip(inherits)
        {
            let here = means.wanted(to, &own);
            assert_eq!(
                means.is_inherited(0, &here, &own),
                inherits,
                "{rung} {to:?}"
            );
            assert!(!means.is_inherited(0, &here, &here), "{rung} {to:?}");
        }
    }
}
