//! Ten thousand of everything in one process, and a thousand of the same.
//!
//! The allocator of this test counts the bytes of all threads. It is a program
//! with one test, so that nobody else asks for memory or starts threads meanwhile.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use milieu_diagnostics::Source as Text;
use milieu_stream::language::Language;
use milieu_stream::{
    Delivery, Feed, Flow, Overflow, Source, Streams, Subscriber, SystemClock, Wait, operators,
};
use milieu_transfer::{Origin, Rights, Value};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged, so all
// that it promises holds; the counter is not part of the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, and the pointer is
        // one that `System` gave.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn live() -> isize {
    LIVE.load(Ordering::Relaxed)
}

const MANY: usize = 10_000;
const EQUAL: usize = 1000;
const NAMES: usize = 100_000;

/// The most that a subscription may cost.
const BOUND: isize = 1024;

const EVERY: Delivery = Delivery::Every {
    capacity: NonZeroU32::new(64).expect("more than none"),
    overflow: Overflow::DropOldest,
};

/// Says one number, and then waits for what never comes.
struct Once(u64);

impl Source for Once {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        feed.publish(feed.now(), self.0);
        Wait::Ended
    }
}

fn streams() -> Streams {
    Streams::new(
        operators::catalogue(),
        SystemClock,
        Origin("test".into()),
        1,
    )
}

fn flow(text: &str) -> Flow {
    let document = Language::Pipeline.parse(&Text::new("flow", text), &operators::catalogue());
    document.expect("a good flow").subscriptions[0].flow.clone()
}

fn source(n: usize) -> String {
    format!("/campus/house-{}/sensor-{n}", n / 100)
}

/// How many threads this process has; nothing where the system does not say.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// What each of many subscriptions costs, to a source each, in bytes, and how
/// many threads there are with all of them.
fn cost(streams: &Streams, rest: &str) -> (isize, Option<usize>) {
    let mut subscribers = Vec::with_capacity(MANY);
    let before = live();
    for n in 0..MANY {
        let flow = flow(&(source(n) + rest));
        subscribers.push(streams.subscribe(&flow, EVERY).expect("a good flow"));
    }
    let cost = (live() - before) / MANY as isize;
    println!("a subscription to {}{rest}: {cost} bytes", source(0));
    let threads = threads();
    for (n, subscriber) in subscribers.iter_mut().enumerate() {
        let event = subscriber.try_next().expect("the last one is retained");
        assert_eq!(event.get(), Some(&(n as u64 + 1)));
    }
    (cost, threads)
}

/// Equal flows run once, and each of their subscribers gets every event.
fn equal(streams: &Streams) {
    let nodes = || streams.view().expect("this is no callback").nodes.len();
    let publisher = streams.publisher::<u64>("/equal").expect("a free name");
    let before = nodes();
    let flow = flow("/equal | filter value > 10 | aggregate mean count=2");
    let subscribe = |_| streams.subscribe(&flow, EVERY).expect("a good flow");
    let mut subscribers: Vec<Subscriber> = (0..EQUAL).map(subscribe).collect();
    assert_eq!(nodes() - before, 3, "a name, a filter and an aggregate");
    for value in [5, 11, 13] {
        let _ = publisher.publish(value);
    }
    let view = streams.view().expect("this is no callback");
    view.audit().expect("the books balance");
    let filter = view.nodes.iter().find(|node| &*node.kind == "filter");
    assert_eq!(filter.expect("there is one").books.received, 3);
    for subscriber in &mut subscribers {
        let events: Vec<_> = std::iter::from_fn(|| subscriber.try_next()).collect();
        let Ok(Value::Map(means)) = events[0].value(Rights::ALL) else {
            panic!("{events:?}");
        };
        let mean = means.get(&"mean".into());
        assert_eq!((events.len(), mean), (1, Some(&Value::Double(12.0))));
    }
    drop(subscribers);
    assert_eq!(nodes(), before, "nobody is left");
}

#[test]
fn ten_thousand_sources_and_subscriptions_and_a_hundred_thousand_names() {
    let streams = streams();
    let driving = streams.drive().expect("a thread");
    let at_first = threads();
    let polled = Arc::new(AtomicU64::new(0));
    let sources: Vec<_> = (0..MANY)
        .map(|n| {
            driving
                .source(&source(n), Once(n as u64 + 1))
                .expect("a free name")
        })
        .collect();
    let seen = Arc::clone(&polled);
    let all = flow("/campus/**");
    let listening = streams.listen(&all, move |_| _ = seen.fetch_add(1, Ordering::Relaxed));
    let listening = listening.expect("a good flow");
    let patience = Instant::now() + Duration::from_secs(60);
    while polled.load(Ordering::Relaxed) < MANY as u64 {
        assert!(Instant::now() < patience, "{polled:?} have spoken");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(listening);
    let names: Vec<_> = (MANY..NAMES)
        .map(|n| streams.publisher::<f64>(&format!("/others/{n:06}")))
        .map(|publisher| publisher.expect("a free name"))
        .collect();

    let (plain, with_plain) = cost(&streams, "");
    let (filtered, with_filtered) = cost(&streams, " | filter value > 0");
    equal(&streams);
    let most = with_plain.max(with_filtered).max(threads());
    assert_eq!(most, at_first, "nothing needed a thread of its own");
    assert!(plain <= BOUND, "{plain} bytes a subscription");

    drop((names, sources));
    let view = streams.view().expect("this is no callback");
    assert_eq!(view.nodes.len(), 0, "all are gone");
    // What the goals `stream/subscription-bytes` and its like read.
    println!("{{\"name\":\"subscription-bytes\",\"value\":{plain}}}");
    println!("{{\"name\":\"subscription-filtered-bytes\",\"value\":{filtered}}}");
    if let (Some(most), Some(at_first)) = (most, at_first) {
        let more = most - at_first;
        println!("{{\"name\":\"threads-more\",\"value\":{more}}}");
    }
}
