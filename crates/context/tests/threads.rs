//! Several threads: what is visible when, waking, and nobody starving.

mod support;

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use milieu_context::Context;
use support::*;

environment! { mod env;
    accuracy: i32 = "/algorithm/%battery_low%/accuracy" { "default" = "10" };
    plain: i64 = "/plain";
    text: Text = "/text" { "default" = "first" };
}
use env::{Environment, at};

const ROUNDS: i64 = size(2000, 20, 10);

#[test]
fn a_loop_sees_constants_until_it_synchronizes() {
    let coordinator = coordinator(&[("/algorithm/yes/accuracy", "3")]);
    let mut reader = coordinator.context::<Environment>().unwrap();
    let mut writer = coordinator.context::<Environment>().unwrap();
    let (ready, start) = (Arc::new(Barrier::new(2)), AtomicBool::new(false));
    thread::scope(|scope| {
        let waiting = ready.clone();
        scope.spawn(move || {
            waiting.wait();
            for i in 1..=ROUNDS {
                writer.set::<at::plain>(i).unwrap();
                writer.set::<at::text>(&i.to_string()).unwrap();
            }
            writer.activate(BatteryLow("yes")).unwrap();
        });
        ready.wait();
        start.store(true, Ordering::Relaxed);
        let mut last = 0;
        while reader.accuracy == 10 {
            let (plain, text) = (reader.plain, reader.text.to_string());
            for _ in 0..100 {
                assert_eq!((reader.plain, reader.text.as_str()), (plain, text.as_str()));
            }
            // A value's text and its number change one after the other, so the
            // text is at most one behind, and nothing goes back.
            assert!(plain >= last, "{plain} after {last}");
            if text != "first" {
                let text: i64 = text.parse().unwrap();
                assert!(text == plain || text + 1 == plain, "{text} and {plain}");
            }
            last = plain;
            reader.sync();
        }
    });
    assert_eq!((reader.plain, reader.accuracy), (ROUNDS, 3));
}

#[test]
fn a_later_block_sees_no_more_than_the_last_synchronization() {
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<Environment>().unwrap();
    let mut other = coordinator.context::<Environment>().unwrap();
    other.with(BatteryLow("yes"), |other| {
        other.set::<at::accuracy>(3).unwrap()
    });
    cx.with(BatteryLow("yes"), |cx| assert_eq!(cx.accuracy, 10));
    cx.sync();
    cx.with(BatteryLow("yes"), |cx| assert_eq!(cx.accuracy, 3));
}

#[test]
fn an_assignment_brings_no_news_of_others() {
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<Environment>().unwrap();
    let mut other = coordinator.context::<Environment>().unwrap();
    other.set::<at::plain>(1).unwrap();
    cx.set::<at::text>("mine").unwrap();
    assert_eq!((cx.plain, cx.text.as_str()), (0, "mine"));
    // The later assignment of the same key is the other's; one sees it when one asks.
    other.set::<at::text>("theirs").unwrap();
    assert_eq!(cx.text, "mine");
    cx.sync();
    assert_eq!((cx.plain, cx.text.as_str()), (1, "theirs"));
}

#[test]
fn sixty_four_threads_agree_in_the_end() {
    let threads = size(64, 4, 3);
    let rounds = size(20, 20, 8);
    let coordinator = coordinator(&[("/algorithm/yes/accuracy", "3")]);
    let all: Vec<_> = (0..threads)
        .map(|i| {
            let mut cx = coordinator.context::<Environment>().unwrap();
            thread::spawn(move || {
                for round in 0..rounds {
                    match (i + round) % 4 {
                        0 => cx.activate(BatteryLow("yes")).unwrap(),
                        1 => cx.deactivate::<BatteryLow>().unwrap(),
                        2 => cx.set::<at::plain>(i64::from(i * 100 + round)).unwrap(),
                        _ => cx.with(BatteryLow("yes"), Context::sync),
                    }
                }
                cx
            })
        })
        .collect();
    let mut all: Vec<_> = all
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    all.iter_mut().for_each(Context::sync);
    let first = (all[0].accuracy, all[0].plain, all[0].layers());
    for cx in &all {
        assert_eq!((cx.accuracy, cx.plain, cx.layers()), first);
    }
}

#[test]
fn waiting_wakes_on_news_and_at_the_deadline() {
    let coordinator = coordinator(&[]);
    let waiter = coordinator.context::<Environment>().unwrap();
    let before = Instant::now();
    assert!(!waiter.wait(Instant::now() + Duration::from_millis(10)));
    assert!(before.elapsed() >= Duration::from_millis(10));
    let (done, wait) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let mut waiter = waiter;
        assert!(waiter.wait(None));
        waiter.sync();
        done.send(waiter.plain).unwrap();
    });
    let mut cx = coordinator.context::<Environment>().unwrap();
    cx.set::<at::plain>(4).unwrap();
    assert_eq!(wait.recv_timeout(Duration::from_secs(60)), Ok(4));
    waiting.join().unwrap();
}

#[test]
fn an_action_may_join_threads_that_wait_for_the_layer() {
    let coordinator = coordinator(&[("/algorithm/yes/accuracy", "0")]);
    let mut worker = coordinator.context::<Environment>().unwrap();
    let thread = thread::spawn(move || {
        while worker.accuracy > 0 {
            worker.wait(None);
            worker.sync();
        }
    });
    let thread = std::sync::Mutex::new(Some(thread));
    let joined = Arc::new(AtomicBool::new(false));
    let noted = joined.clone();
    let _shutdown = coordinator.on_activation::<BatteryLow>(move |_| {
        // Published before, or this would wait for ever.
        thread.lock().unwrap().take().unwrap().join().unwrap();
        noted.store(true, Ordering::SeqCst);
    });
    let mut cx = coordinator.context::<Environment>().unwrap();
    cx.activate(BatteryLow("yes")).unwrap();
    assert!(joined.load(Ordering::SeqCst));
}

#[test]
fn switching_without_a_pause_starves_nobody() {
    let rounds = size(5000, 10, 5);
    let coordinator = coordinator(&[]);
    let stop = AtomicBool::new(false);
    let switches = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut cx = coordinator.context::<Environment>().unwrap();
        let (stop, switches) = (&stop, &switches);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                cx.activate(BatteryLow("yes")).unwrap();
                cx.deactivate::<BatteryLow>().unwrap();
                switches.fetch_add(1, Ordering::Relaxed);
            }
        });
        // This thread gets its work done, however often the other switches.
        let mut reader = coordinator.context::<Environment>().unwrap();
        for i in 0..rounds {
            reader.sync();
            reader.with(Session("anna"), |reader| {
                reader.set::<at::plain>(i).unwrap()
            });
        }
        while switches.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn whoever_switches_a_layer_learns_of_all_others() {
    let coordinator = coordinator(&[("/algorithm/yes/accuracy", "3")]);
    let mut first = coordinator.context::<Environment>().unwrap();
    let mut second = coordinator.context::<Environment>().unwrap();
    first.activate(BatteryLow("yes")).unwrap();
    first.set::<at::plain>(1).unwrap();
    assert_eq!((second.accuracy, second.plain), (10, 0));
    second.activate(Session("anna")).unwrap();
    assert_eq!((second.accuracy, second.plain), (3, 1));
    // Also where the switch itself is none.
    first.deactivate::<BatteryLow>().unwrap();
    second.deactivate::<BatteryLow>().unwrap();
    assert_eq!(second.accuracy, 10);
}

#[test]
fn one_publication_wakes_all_who_sleep() {
    let threads = size(64, 3, 3);
    let coordinator = coordinator(&[]);
    let (tell, told) = mpsc::channel();
    for _ in 0..threads {
        let mut sleeper = coordinator.context::<Environment>().unwrap();
        let tell = tell.clone();
        thread::spawn(move || {
            let awake = sleeper.wait(Instant::now() + Duration::from_secs(60));
            sleeper.sync();
            tell.send((awake, sleeper.plain)).unwrap();
        });
    }
    let mut cx = coordinator.context::<Environment>().unwrap();
    cx.set::<at::plain>(1).unwrap();
    for _ in 0..threads {
        assert_eq!(told.recv().unwrap(), (true, 1));
    }
}
