//! The shipped code, model-checked: every interleaving of a few threads, up to
//! a number of preemptions, under the memory model of Rust.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p milieu-context --release --test loom
//! ```
//!
//! Bounds. Each model has at most three threads with a context each, two layers
//! and two values. Explored are all interleavings with at most the number of
//! preemptions that the model states, or with `ANY` number of them; a preemption
//! is a switch to another thread while the running one could go on, and switches
//! from threads that block are free. A check of every change explores at most
//! `PREEMPTIONS` of those that are stated; with `MILIEU_LOOM=long` all. One run
//! has at most `BRANCHES` operations on locks, atomics and condition variables.
//! What loom does not model: spurious wake-ups, deadlines (`wait` is called
//! without one), reference counts, and the counters named in `src/sync.rs`.

#![cfg(loom)]

mod support;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, Wake, Waker},
};

use loom::{
    cell::UnsafeCell,
    sync::{
        Condvar, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};
use milieu_context::{Context, Coordinator, value};
use milieu_keys::{Key, Name, Namespace, Origin, SourceOf};
use support::*;

environment! { mod env; v: i32 = "/v/%a%"; w: i32 = "/w/%b%"; }
use env::{Environment, at};

/// Most operations of one run; the models need a few hundred.
const BRANCHES: usize = 5_000;

/// For models that are small enough to explore without a bound.
const ANY: usize = usize::MAX;

/// Most preemptions where there is a bound, unless all are wanted that a model states.
const PREEMPTIONS: usize = 3;

fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let most = match std::env::var_os("MILIEU_LOOM") {
        Some(_) => preemptions,
        None => preemptions.min(PREEMPTIONS),
    };
    builder.preemption_bound = (preemptions != ANY).then_some(most);
    builder.max_branches = BRANCHES;
    builder.check(run);
}

type Cx = Context<Environment>;

fn open<const COUNT: usize>() -> (Coordinator, [Cx; COUNT]) {
    let coordinator = Coordinator::new();
    let contexts = std::array::from_fn(|_| coordinator.context().unwrap());
    (coordinator, contexts)
}

/// Which of the two layers are active.
fn active(cx: &Cx) -> [bool; 2] {
    [cx.layer::<A>().is_some(), cx.layer::<B>().is_some()]
}

#[test]
fn switches_are_seen_in_their_order() {
    model(4, || {
        let (coordinator, [mut one, mut two, mut three]) = open();
        coordinator.assign("/v/1", "1", None).unwrap();
        let first = thread::spawn(move || {
            one.activate(A("1")).unwrap();
            assert_eq!(one.v, 1);
            one
        });
        let second = thread::spawn(move || {
            two.activate(B("1")).unwrap();
            assert!(active(&two)[1], "an own switch is in force at once");
            two.deactivate::<A>().unwrap();
            assert!(!active(&two)[0]);
            two
        });
        let mut seen = [active(&three), [false; 2], [false; 2]];
        for seen in &mut seen[1..] {
            three.sync();
            *seen = active(&three);
            assert_eq!(three.v, i32::from(seen[0]), "values follow from layers");
        }
        let (mut one, mut two) = (first.join().unwrap(), second.join().unwrap());
        for cx in [&mut one, &mut two, &mut three] {
            cx.sync();
        }
        let last = active(&three);
        assert_eq!([active(&one), active(&two)], [last; 2]);
        assert!(last[1]);
        // `b` comes and stays; `a` comes once and goes at most once.
        let way = [seen[0], seen[1], seen[2], last];
        let changes = |layer: usize| way.windows(2).filter(move |w| w[0][layer] != w[1][layer]);
        assert!(
            changes(1).count() == 1 && changes(0).count() <= 2,
            "{way:?}"
        );
    });
}

#[test]
fn no_assignment_is_lost_and_all_are_seen_in_order() {
    model(5, || {
        let (coordinator, [mut one, mut two, mut three]) = open();
        let first = thread::spawn(move || {
            one.set::<at::v>(1).unwrap();
            one.set::<at::w>(1).unwrap();
            assert_eq!((one.v, one.w), (1, 1));
            one
        });
        let second = thread::spawn(move || {
            two.set::<at::v>(2).unwrap();
            assert_eq!(two.v, 2, "an own assignment is in force at once");
            two
        });
        three.sync();
        assert!(three.w == 0 || three.v != 0, "one assigned `v` before `w`");
        let late: Cx = coordinator.context().unwrap();
        assert!(late.w >= three.w && (late.w == 0 || late.v != 0));
        drop(three);
        let (mut one, mut two) = (first.join().unwrap(), second.join().unwrap());
        one.sync();
        two.sync();
        let fresh: Cx = coordinator.context().unwrap();
        assert_eq!([(one.v, one.w), (two.v, two.w)], [(fresh.v, fresh.w); 2]);
        assert!(
            fresh.w == 1 && (late.v == 0 || fresh.v != 0),
            "nothing is undone"
        );
    });
}

#[test]
fn switches_and_assignments_have_one_order() {
    model(4, || {
        let (_coordinator, [mut one, mut two, mut three]) = open();
        let first = thread::spawn(move || {
            one.activate(A("1")).unwrap();
            // Under the name that it has with the layer.
            one.set::<at::v>(5).unwrap();
            one.deactivate::<A>().unwrap();
        });
        let second = thread::spawn(move || {
            two.sync();
            let is_active = active(&two)[0];
            two.set::<at::v>(7).unwrap();
            assert_eq!(two.v, 7);
            is_active
        });
        three.sync();
        assert!(active(&three)[0] || matches!(three.v, 0 | 7));
        assert!(!active(&three)[0] || matches!(three.v, 0 | 5 | 7));
        first.join().unwrap();
        let was_active = second.join().unwrap();
        three.sync();
        assert_eq!(
            (active(&three)[0], three.v),
            (false, if was_active { 0 } else { 7 })
        );
        three.with(A("1"), |cx| {
            assert!(cx.v == 5 || was_active && cx.v == 7);
        });
    });
}

#[test]
fn contexts_come_and_go_while_others_publish() {
    environment! { mod other; v: i32 = "/v/%a%"; typed: i32 = "/loaded"; }
    model(5, || {
        let coordinator = coordinator(&[("/loaded", "4")]);
        let mut one: Cx = coordinator.context().unwrap();
        let shared = coordinator.clone();
        let first = thread::spawn(move || {
            // Registers an environment, which types the keys that are there.
            let mut cx: Context<other::Environment> = shared.context().unwrap();
            assert_eq!(cx.typed, 4);
            cx.sync();
            cx.v
        });
        let shared = coordinator.clone();
        let second = thread::spawn(move || {
            let mut cx: Cx = shared.context().unwrap();
            cx.activate(A("1")).unwrap();
            drop(cx);
        });
        one.set::<at::v>(3).unwrap();
        drop(one);
        let seen = first.join().unwrap();
        second.join().unwrap();
        assert!(matches!(seen, 0 | 3), "{seen}");
        let mut last: Cx = coordinator.context().unwrap();
        assert_eq!(active(&last), [true, false]);
        last.without::<A, _>(|cx| assert_eq!(cx.v, 3));
    });
}

#[test]
fn a_switch_that_several_make_at_once_acts_once() {
    model(ANY, || {
        let (coordinator, [mut one, mut two]) = open();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let _registration = coordinator.on_activation::<A>(move |_| {
            counted.fetch_add(1, Relaxed);
        });
        let first = thread::spawn(move || one.activate(A("1")).unwrap());
        two.activate(A("1")).unwrap();
        first.join().unwrap();
        assert_eq!(count.load(Relaxed), 1);
    });
}

#[test]
fn of_two_halves_of_a_cycle_one_is_refused() {
    environment! { mod cycle;
        one: Text = "/c/%two%/one" { "default" = "x" };
        two: Text = "/c/%one%/two" { "default" = "y" };
    }
    model(ANY, || {
        let coordinator = Coordinator::new();
        let mut one: Context<cycle::Environment> = coordinator.context().unwrap();
        let mut two: Context<cycle::Environment> = coordinator.context().unwrap();
        let first = thread::spawn(move || {
            let result = one.activate(value::<cycle::at::one>());
            (result.is_ok(), one)
        });
        let second = two.activate(value::<cycle::at::two>()).is_ok();
        let (first, mut one) = first.join().unwrap();
        assert!(first != second, "exactly one of them");
        one.sync();
        two.sync();
        let expected = if first { "one" } else { "two" };
        for cx in [one, two] {
            let layers = cx.layers();
            assert_eq!(layers.len(), 1);
            assert_eq!(&*layers[0].0, expected);
        }
    });
}

#[test]
fn no_wake_up_is_lost() {
    model(ANY, || {
        let (_coordinator, [mut one, mut two, mut three]) = open();
        let sleeper = |mut cx: Cx| {
            thread::spawn(move || {
                while active(&cx) != [true, true] {
                    assert!(cx.wait(None));
                    cx.sync();
                }
            })
        };
        let other = thread::spawn(move || {
            one.activate(B("1")).unwrap();
        });
        let sleeping = sleeper(two.fork());
        three.activate(A("1")).unwrap();
        other.join().unwrap();
        sleeping.join().unwrap();
        two.sync();
        assert_eq!(active(&two), [true, true]);
    });
}

#[test]
fn a_wake_up_reaches_every_sleeper() {
    model(ANY, || {
        let (_coordinator, [one, two, mut three]) = open();
        let sleepers = [one, two].map(|mut cx| {
            thread::spawn(move || {
                assert!(cx.wait(None));
                cx.sync();
                assert_eq!(cx.v, 1);
            })
        });
        three.set::<at::v>(1).unwrap();
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}

/// What wakes the thread that polls.
#[derive(Default)]
struct Alarm {
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.bell.notify_one();
    }
}

fn block_on(future: impl Future) {
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(alarm.clone());
    let mut task = TaskContext::from_waker(&waker);
    let mut future = pin!(future);
    while let Poll::Pending = future.as_mut().poll(&mut task) {
        let mut rung = alarm.rung.lock().unwrap();
        while !*rung {
            rung = alarm.bell.wait(rung).unwrap();
        }
        *rung = false;
    }
}

#[test]
fn a_task_that_waits_is_woken() {
    model(4, || {
        let (_coordinator, [mut one, mut two, mut three]) = open();
        let task = thread::spawn(move || {
            while active(&one) != [true, false] || one.v != 2 {
                block_on(one.changed());
                one.sync();
            }
        });
        let other = thread::spawn(move || two.set::<at::v>(2).unwrap());
        three.activate(A("")).unwrap();
        three.with(A("1"), |cx| cx.set::<at::v>(2).unwrap());
        three.activate(A("1")).unwrap();
        task.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_registration_that_is_dropped_has_no_action_running() {
    /// What the action uses and its owner frees.
    struct Resource(UnsafeCell<usize>);
    // SAFETY: this is what the model checks: all access is ordered.
    unsafe impl Sync for Resource {}
    // SAFETY: as above.
    unsafe impl Send for Resource {}
    model(ANY, || {
        let (coordinator, [mut one, mut two]) = open();
        let resource = Arc::new(Resource(UnsafeCell::new(0)));
        let used = resource.clone();
        let registration = coordinator.on_activation::<A>(move |_| {
            // SAFETY: only one thread activates, and the owner waits.
            used.0.with_mut(|count| unsafe { *count += 1 });
        });
        let acting = thread::spawn(move || {
            one.activate(A("1")).unwrap();
            one.activate(A("2")).unwrap();
        });
        drop(registration);
        // SAFETY: no action runs any more, and none will.
        let count = resource.0.with_mut(|count| unsafe { *count });
        acting.join().unwrap();
        // SAFETY: as above.
        assert_eq!(count, resource.0.with(|count| unsafe { *count }));
        two.sync();
        assert_eq!(two.layer::<A>().as_deref(), Some("2"));
    });
}

#[test]
fn a_held_key_set_stands_still_and_then_goes_on_in_order() {
    model(5, || {
        let (coordinator, [mut one, mut two]) = open();
        let holder = thread::spawn(move || {
            let held = coordinator.require_lock();
            let read = || -> Vec<String> {
                let entries = held.entries();
                entries
                    .iter()
                    .map(|entry| format!("{}={}", entry.name, entry.text))
                    .collect()
            };
            let first = read();
            let mut late: Cx = coordinator.context().unwrap();
            assert_eq!(late.v != 0, !first.is_empty(), "it opens with what is held");
            late.sync();
            assert_eq!((first, late.v != 0), (read(), late.v != 0));
            drop(held);
        });
        let publisher = thread::spawn(move || {
            one.set::<at::v>(1).unwrap();
            one.activate(B("1")).unwrap();
            assert_eq!(
                (one.v, active(&one)),
                (1, [false, true]),
                "own ones at once"
            );
            one.sync();
            assert_eq!((one.v, active(&one)), (1, [false, true]), "and they stay");
        });
        two.sync();
        assert!(two.v == 1 || !active(&two)[1], "`v` came first");
        holder.join().unwrap();
        publisher.join().unwrap();
        two.sync();
        assert_eq!((two.v, active(&two)), (1, [false, true]));
        assert!(!two.has_news());
    });
}

#[test]
fn what_is_published_during_a_hold_wakes_at_its_end() {
    model(ANY, || {
        let (coordinator, [mut one, mut two]) = open();
        let sleeper = thread::spawn(move || {
            while !active(&one)[0] {
                assert!(one.wait(None));
                one.sync();
            }
        });
        let holder = thread::spawn(move || drop(coordinator.require_lock()));
        two.activate(A("1")).unwrap();
        sleeper.join().unwrap();
        holder.join().unwrap();
    });
}

#[test]
fn the_key_set_is_held_by_one_thread_at_a_time() {
    struct Inside(UnsafeCell<usize>);
    // SAFETY: this is what the model checks: the hold orders all access.
    unsafe impl Sync for Inside {}
    // SAFETY: as above.
    unsafe impl Send for Inside {}
    model(ANY, || {
        let (coordinator, [mut one]) = open();
        let inside = Arc::new(Inside(UnsafeCell::new(0)));
        let threads = [(); 2].map(|()| {
            let (coordinator, inside) = (coordinator.clone(), inside.clone());
            thread::spawn(move || {
                let held = coordinator.require_lock();
                let again = coordinator.require_lock();
                // SAFETY: the key set is held.
                inside.0.with_mut(|count| unsafe { *count += 1 });
                drop(held);
                // SAFETY: it still is.
                inside.0.with_mut(|count| unsafe { *count += 1 });
                drop(again);
            })
        });
        one.activate(A("1")).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        // SAFETY: the threads have ended.
        assert_eq!(inside.0.with(|count| unsafe { *count }), 4);
        one.sync();
        assert!(!one.has_news());
    });
}

#[test]
fn an_array_is_seen_as_a_whole() {
    environment! { mod lists; list: Array<i32> = "/l/#"; }
    type Cx = Context<lists::Environment>;
    model(3, || {
        let coordinator = Coordinator::new();
        let [mut one, mut three]: [Cx; 2] = std::array::from_fn(|_| coordinator.context().unwrap());
        let first = thread::spawn(move || {
            one.set::<lists::at::list>(&[1, 2]).unwrap();
            one.unset::<lists::at::list>();
            assert!(one.list.is_empty());
            one
        });
        let second = thread::spawn(move || coordinator.assign("/l/#1", "5", None).unwrap());
        for _ in 0..2 {
            three.sync();
            let seen = &three.list[..];
            assert!(matches!(seen, [] | [1, 2] | [1, 5]), "{seen:?}");
        }
        let mut one = first.join().unwrap();
        second.join().unwrap();
        for cx in [&mut one, &mut three] {
            cx.sync();
            assert!(cx.list.is_empty());
        }
    });
}

#[test]
fn what_is_uncovered_is_what_the_last_removal_left() {
    let key = |namespace, text| {
        let name = Name::parse("/w/%").unwrap();
        Key::new(namespace, &name, text, Origin::new(SourceOf::Program))
    };
    model(4, move || {
        let keys = [key(Namespace::System, "7"), key(Namespace::User, "2")];
        let coordinator = Coordinator::with_keys(&keys.into_iter().collect());
        let [mut one, mut two, mut three]: [Cx; 3] =
            std::array::from_fn(|_| coordinator.context().unwrap());
        let first = thread::spawn(move || {
            one.unset::<at::w>();
            assert_eq!(one.w, 7);
            one
        });
        let second = thread::spawn(move || {
            two.set::<at::w>(3).unwrap();
            assert_eq!(two.w, 3);
            two
        });
        three.sync();
        assert!(matches!(three.w, 2 | 3 | 7));
        let (mut one, mut two) = (first.join().unwrap(), second.join().unwrap());
        for cx in [&mut one, &mut two, &mut three] {
            cx.sync();
        }
        assert_eq!([one.w, two.w], [three.w; 2]);
        assert!(matches!(three.w, 3 | 7));
    });
}
