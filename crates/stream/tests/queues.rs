//! Queues between threads: nothing is lost, nothing comes twice, books balance.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use milieu_stream::{Delivery, Flow, Overflow, Streams, Subscriber, SystemClock, operators};
use milieu_transfer::Origin;

/// Miri interprets each step of it.
const EVENTS: u64 = if cfg!(miri) { 30 } else { 20_000 };

/// Publishes in this thread while another takes, in one of several ways.
fn check(delivery: Delivery, take: impl Fn(&mut Subscriber) -> Option<u64> + Sync) {
    let streams = Streams::new(
        operators::catalogue(),
        SystemClock,
        Origin("here".into()),
        1,
    );
    let publisher = streams.publisher::<u64>("/t").unwrap();
    let flow = Flow::Stream("/t".into());
    let mut subscriber = streams.subscribe(&flow, delivery).unwrap();
    let is_done = AtomicBool::new(false);
    let (taken, subscriber) = thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let mut taken = Vec::new();
            loop {
                // What was published before it was done is seen after it.
                let was_done = is_done.load(Ordering::Acquire);
                match take(&mut subscriber) {
                    Some(sequence) => taken.push(sequence),
                    None if was_done => return (taken, subscriber),
                    None => thread::yield_now(),
                }
            }
        });
        for value in 1..=EVENTS {
            let _ = publisher.publish(value);
        }
        is_done.store(true, Ordering::Release);
        taker.join().unwrap()
    });
    assert!(taken.is_sorted_by(|a, b| a < b), "{taken:?}");
    assert_eq!(taken.last(), Some(&EVENTS));
    let tally = subscriber.tally();
    assert_eq!((tally.taken, tally.waiting), (taken.len() as u64, 0));
    assert_eq!(tally.taken + tally.dropped.total(), EVENTS);
    let view = streams.view().unwrap();
    view.audit().unwrap();
    let shown = &view.subscribers[0];
    assert_eq!((shown.offered, &shown.tally), (EVENTS, &tally));
}

fn every(capacity: u32) -> Delivery {
    Delivery::Every {
        capacity: NonZeroU32::new(capacity).unwrap(),
        overflow: Overflow::DropOldest,
    }
}

fn sequence(event: Option<milieu_transfer::Event>) -> Option<u64> {
    event.map(|event| event.header().sequence)
}

#[test]
fn whoever_looks_again_and_again_has_all() {
    for delivery in [
        every(1 << 20),
        every(1),
        every(2),
        every(7),
        Delivery::Latest,
    ] {
        check(delivery, |subscriber| sequence(subscriber.try_next()));
    }
}

#[test]
fn whoever_waits_has_all() {
    for delivery in [every(1 << 20), every(3), Delivery::Latest] {
        check(delivery, |subscriber| {
            sequence(subscriber.wait_for(Duration::from_millis(20)))
        });
    }
}
