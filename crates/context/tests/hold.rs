//! Holding the key set still, while everybody goes on.

mod support;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use milieu_context::{Context, Coordinator};
use support::*;

environment! { mod env;
    accuracy: i32 = "/algorithm/%battery_low%/accuracy" { "default" = "10" };
    plain: i64 = "/plain";
}
use env::{Environment, at};

fn open() -> (Coordinator, Context<Environment>, Context<Environment>) {
    let coordinator = coordinator(&[("/algorithm/yes/accuracy", "3")]);
    let (first, second) = (
        coordinator.context().unwrap(),
        coordinator.context().unwrap(),
    );
    (coordinator, first, second)
}

#[test]
fn publications_come_in_order_at_the_release() {
    let (coordinator, mut cx, mut peer) = open();
    let held = coordinator.require_lock();
    for i in 1..=5 {
        cx.set::<at::plain>(i).unwrap();
    }
    cx.activate(BatteryLow("yes")).unwrap();
    cx.deactivate::<BatteryLow>().unwrap();
    peer.set::<at::plain>(6).unwrap();
    peer.sync();
    cx.sync();
    assert_eq!((cx.plain, peer.plain), (5, 6), "each sees its own");
    assert!(held.entries().iter().all(|entry| entry.name != "/plain"));
    drop(held);
    cx.sync();
    peer.sync();
    assert_eq!((cx.plain, peer.plain), (6, 6));
    assert_eq!((cx.accuracy, peer.accuracy), (10, 10));
}

#[test]
fn own_changes_stay_on_top_of_what_was_published_before() {
    let (coordinator, mut cx, mut peer) = open();
    peer.set::<at::plain>(1).unwrap();
    peer.activate(BatteryLow("yes")).unwrap();
    let held = coordinator.require_lock();
    cx.set::<at::plain>(2).unwrap();
    assert_eq!(cx.accuracy, 10, "an assignment does not synchronize");
    cx.sync();
    assert_eq!((cx.plain, cx.accuracy), (2, 3));
    drop(held);
    peer.sync();
    assert_eq!(peer.plain, 2);
}

#[test]
fn a_second_hold_does_not_bring_old_changes_back() {
    let (coordinator, mut cx, mut peer) = open();
    let held = coordinator.require_lock();
    cx.set::<at::plain>(1).unwrap();
    drop(held);
    peer.sync();
    peer.set::<at::plain>(2).unwrap();
    let held = coordinator.require_lock();
    cx.sync();
    assert_eq!(cx.plain, 2);
    drop(held);
    cx.sync();
    assert_eq!(cx.plain, 2);
}

#[test]
fn contexts_made_meanwhile_see_what_is_held() {
    let (coordinator, mut cx, _) = open();
    let held = coordinator.require_lock();
    cx.set::<at::plain>(1).unwrap();
    let mut late = coordinator.context::<Environment>().unwrap();
    let fork = cx.fork();
    assert_eq!((late.plain, fork.plain), (0, 1));
    drop(held);
    late.sync();
    assert_eq!(late.plain, 1);
}

#[test]
fn another_thread_waits_for_the_lock_and_for_nothing_else() {
    let (coordinator, mut cx, _) = open();
    let held = coordinator.require_lock();
    let (tell, told) = mpsc::channel();
    let other = coordinator.clone();
    let waiting = thread::spawn(move || {
        cx.sync();
        cx.activate(BatteryLow("yes")).unwrap();
        cx.set::<at::plain>(3).unwrap();
        tell.send("served").unwrap();
        let held = other.require_lock();
        tell.send("locked").unwrap();
        held.entries()
            .into_iter()
            .any(|entry| entry.name == "/plain" && entry.text == "3")
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("served"));
    assert!(told.recv_timeout(Duration::from_millis(20)).is_err());
    drop(held);
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("locked"));
    assert!(waiting.join().unwrap());
}

#[test]
fn keys_come_in_the_order_of_their_names_with_who_said_so() {
    let (coordinator, mut cx, _) = open();
    cx.set::<at::plain>(1).unwrap();
    coordinator
        .assign("/algorithm-x", "free text", None)
        .unwrap();
    let held = coordinator.require_lock();
    let names: Vec<&str> = held.entries().iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["/algorithm/yes/accuracy", "/algorithm-x", "/plain"]);
    assert_eq!(held.assigned().len(), 3);
}

#[test]
fn a_switch_counts_though_those_that_it_follows_are_not_seen_yet() {
    let (coordinator, mut cx, mut peer) = open();
    let ran = Arc::new(Mutex::new(String::new()));
    let (on, off) = (ran.clone(), ran.clone());
    let _registrations = [
        coordinator.on_activation::<BatteryLow>(move |_| on.lock().unwrap().push('+')),
        coordinator.on_deactivation::<BatteryLow>(move |_| off.lock().unwrap().push('-')),
    ];
    let held = coordinator.require_lock();
    cx.activate(BatteryLow("yes")).unwrap();
    peer.activate(BatteryLow("yes")).unwrap();
    assert_eq!(*ran.lock().unwrap(), "+", "it was active already");
    let mut third = coordinator.context::<Environment>().unwrap();
    third.deactivate::<BatteryLow>().unwrap();
    assert_eq!(*ran.lock().unwrap(), "+-");
    assert_eq!((cx.accuracy, peer.accuracy, third.accuracy), (3, 3, 10));
    drop(held);
    for cx in [&mut cx, &mut peer, &mut third] {
        cx.sync();
        assert_eq!((cx.accuracy, cx.layers().len()), (10, 0));
    }
    assert_eq!(*ran.lock().unwrap(), "+-");
}

#[test]
fn others_read_enter_and_serve_during_a_long_hold() {
    let (coordinator, mut cx, _) = open();
    let requests = size(500, 3, 2);
    cx.set::<at::plain>(-1).unwrap();
    let served = AtomicUsize::new(0);
    thread::scope(|scope| {
        let held = coordinator.require_lock();
        let keys = || -> Vec<(String, String)> {
            let entries = held.entries().into_iter();
            entries.map(|e| (e.name.into(), e.text.into())).collect()
        };
        let before = keys();
        for _ in 0..2 {
            let mut cx = coordinator.context::<Environment>().unwrap();
            let served = &served;
            scope.spawn(move || {
                for request in 0..requests {
                    cx.sync();
                    cx.with(BatteryLow("yes"), |cx| {
                        assert_eq!(cx.accuracy, 3);
                        cx.set::<at::plain>(request).unwrap();
                        assert_eq!(cx.plain, request);
                    });
                    cx.activate(Session("anna")).unwrap();
                    cx.deactivate::<Session>().unwrap();
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // It is held until all is served, as by somebody with a slow disk.
        while served.load(Ordering::SeqCst) < 2 * usize::try_from(requests).unwrap() {
            thread::yield_now();
        }
        assert_eq!(keys(), before);
        cx.sync();
        assert_eq!(cx.plain, -1);
    });
    cx.sync();
    assert_eq!(cx.plain, requests - 1);
}
