//! The shipped code under a model checker: every interleaving, up to a bound.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p milieu-context --release --test loom
//! ```
//!
//! Each model has at most three threads with a context each, and two layers.
//! Bounds: `PREEMPTIONS` preemptions in an execution, which is what finds nearly
//! all concurrency defects in practice; within them the search is complete.
#![cfg(loom)]

mod support;

use std::sync::Arc;

use loom::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
use milieu_context::{Context, Coordinator};
use support::*;

environment! { mod env;
    a: i32 = "/a/%a%";
    both: i32 = "/ab/%a%/%b%";
    plain: i32 = "/plain";
}
use env::{Environment, at};

const PREEMPTIONS: usize = 3;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

fn open() -> Coordinator {
    coordinator(&[("/a/1", "1"), ("/a/2", "2"), ("/ab/1/1", "11"), ("/ab/1/%", "10")])
}

fn context(coordinator: &Coordinator) -> Context<Environment> {
    coordinator.context().expect("a valid environment")
}

/// What a context is worth must be a function of its layers alone.
fn consistent(cx: &Context<Environment>) {
    let (a, b) = (cx.layer::<A>(), cx.layer::<B>());
    let expected = match a.as_deref() {
        Some("1") => 1,
        Some("2") => 2,
        _ => 0,
    };
    assert_eq!(cx.a, expected);
    let both = match (a.as_deref(), b.as_deref()) {
        (Some("1"), Some("1")) => 11,
        (Some("1"), None) => 10,
        _ => 0,
    };
    assert_eq!(cx.both, both);
}

#[test]
fn three_contexts_agree_in_the_end() {
    check(|| {
        let coordinator = open();
        let spawn = |run: fn(&mut Context<Environment>)| {
            let mut cx = context(&coordinator);
            thread::spawn(move || {
                run(&mut cx);
                consistent(&cx);
                cx
            })
        };
        let one = spawn(|cx| {
            cx.activate(A("1")).unwrap();
            cx.deactivate::<A>().unwrap();
            cx.activate(A("2")).unwrap();
        });
        let two = spawn(|cx| {
            cx.activate(B("1")).unwrap();
            cx.sync();
        });
        let mut three = context(&coordinator);
        three.activate(A("1")).unwrap();
        consistent(&three);
        let mut all = vec![one.join().unwrap(), two.join().unwrap(), three, context(&coordinator)];
        for cx in &mut all {
            cx.sync();
            consistent(cx);
        }
        let layers = all[3].layers();
        assert!(all.iter().all(|cx| cx.layers() == layers));
        assert_eq!(all[0].layer::<B>().as_deref(), Some("1"));
    });
}

#[test]
fn assignments_come_in_one_order() {
    check(|| {
        let coordinator = open();
        let writer = |value: i32| {
            let mut cx = context(&coordinator);
            thread::spawn(move || {
                cx.set::<at::plain>(value).unwrap();
                assert_eq!(cx.plain, value, "seen here at once");
                cx.sync();
                cx
            })
        };
        let mut reader = context(&coordinator);
        let (one, two) = (writer(1), writer(2));
        assert_eq!(reader.plain, 0, "nothing appears between synchronizations");
        reader.sync();
        let first = reader.plain;
        reader.sync();
        // Never back to what was before.
        assert!(reader.plain != 0 || first == 0);
        let mut all = [one.join().unwrap(), two.join().unwrap(), reader];
        all.iter_mut().for_each(Context::sync);
        let last = all[0].plain;
        assert!(last == 1 || last == 2);
        assert!(all.iter().all(|cx| cx.plain == last));
        let held = coordinator.require_lock();
        let plain = held.entries().into_iter().find(|entry| entry.name == "/plain");
        assert_eq!(plain.map(|entry| entry.text.to_owned()), Some(last.to_string()));
    });
}

#[test]
fn no_wake_up_is_lost() {
    check(|| {
        let coordinator = open();
        let mut waiter = context(&coordinator);
        let waiting = thread::spawn(move || {
            assert!(waiter.wait(None));
            waiter.sync();
            assert_eq!(waiter.a, 1);
        });
        let mut cx = context(&coordinator);
        cx.activate(A("1")).unwrap();
        drop(cx);
        waiting.join().unwrap();
    });
}

#[test]
fn a_held_key_set_stands_still_and_lets_everything_through_later() {
    check(|| {
        let coordinator = open();
        let mut writer = context(&coordinator);
        let writing = thread::spawn(move || {
            writer.set::<at::plain>(1).unwrap();
            writer.activate(A("1")).unwrap();
            assert_eq!((writer.plain, writer.a), (1, 1), "own changes are seen at once");
            writer.sync();
            assert_eq!((writer.plain, writer.a), (1, 1));
        });
        let mut reader = context(&coordinator);
        let held = coordinator.require_lock();
        let count = held.entries().len();
        reader.sync();
        let seen = (reader.plain, reader.a);
        reader.sync();
        assert_eq!((reader.plain, reader.a), seen, "nothing changes while it is held");
        assert_eq!(held.entries().len(), count);
        drop(held);
        writing.join().unwrap();
        reader.sync();
        assert_eq!((reader.plain, reader.a), (1, 1));
    });
}

#[test]
fn an_action_does_not_outlive_its_registration() {
    check(|| {
        let coordinator = open();
        let alive = Arc::new(AtomicUsize::new(1));
        let seen = alive.clone();
        let registration = coordinator.on_activation::<A>(move |_| {
            assert_eq!(seen.load(Ordering::SeqCst), 1, "runs after its registration is gone");
        });
        let mut cx = context(&coordinator);
        let activating = thread::spawn(move || cx.activate(A("1")).unwrap());
        drop(registration);
        alive.store(0, Ordering::SeqCst);
        activating.join().unwrap();
    });
}

#[test]
fn contexts_come_and_go() {
    check(|| {
        let coordinator = open();
        let other = coordinator.clone();
        let coming = thread::spawn(move || {
            let cx = context(&other);
            consistent(&cx);
            let fork = cx.fork();
            drop(cx);
            consistent(&fork);
        });
        let mut cx = context(&coordinator);
        cx.activate(A("1")).unwrap();
        cx.activate(B("1")).unwrap();
        drop(cx);
        coming.join().unwrap();
        consistent(&context(&coordinator));
    });
}
