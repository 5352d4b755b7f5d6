//! Operators that take long: where they run, and whom they hold up.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use milieu_stream::language::Language;
use milieu_stream::{
    Blocking, Delivery, Flow, Functions, NodeView, Published, Publisher, Reason, Streams,
    Subscriber, SystemClock, VirtualClock, operators,
};
use milieu_transfer::{Origin, Span, Time};

const SOON: Duration = Duration::from_secs(60);

/// What the functions below do, as tests want it.
struct Gate {
    /// Says when a function has begun with a number.
    begun: Receiver<u64>,
    /// Lets it go on.
    go: Sender<()>,
    /// Numbers that were let through.
    through: Receiver<u64>,
}

fn with(
    register: impl FnOnce(&mut Functions),
    clock: impl milieu_stream::Clock + 'static,
) -> Streams {
    let mut catalogue = operators::catalogue();
    register(catalogue.functions_mut());
    Streams::new(catalogue, clock, Origin("test".into()), 1)
}

impl Gate {
    /// A gate, and what waits at it with a number.
    fn new() -> (Gate, impl Fn(u64) + Send + Sync + 'static) {
        let (begins, begun) = channel();
        let (go, goes) = channel();
        let (passes, through) = channel();
        let goes = Mutex::new(goes);
        let wait = move |number| {
            let _ = begins.send(number);
            let goes = goes
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let _ = goes.recv_timeout(SOON);
            let _ = passes.send(number);
        };
        (Gate { begun, go, through }, wait)
    }

    /// Lets a function through that is to have begun with a number.
    fn pass(&self, number: u64) {
        assert_eq!(self.begun.recv_timeout(SOON), Ok(number));
        self.go.send(()).expect("it waits");
        assert_eq!(self.through.recv_timeout(SOON), Ok(number));
    }
}

/// `$slow` doubles a number as soon as it is let.
fn gated(clock: impl milieu_stream::Clock + 'static) -> (Streams, Gate) {
    let (gate, wait) = Gate::new();
    let streams = with(
        |functions| {
            functions.transform_blocking("slow", move |number: &u64| {
                wait(*number);
                number * 2
            });
        },
        clock,
    );
    (streams, gate)
}

fn flow(streams: &Streams, text: &str) -> Flow {
    let source = milieu_diagnostics::Source::new("flow", text);
    let document = Language::Pipeline.parse(&source, streams.catalogue());
    document.expect("a flow").subscriptions.remove(0).flow
}

fn subscribe(streams: &Streams, text: &str) -> Subscriber {
    let flow = flow(streams, text);
    streams
        .subscribe(&flow, Delivery::default())
        .expect("it can be run")
}

fn publish(publisher: &Publisher<u64>, number: u64) {
    assert!(matches!(publisher.publish(number), Published::Accepted(_)));
}

fn next(subscriber: &mut Subscriber) -> u64 {
    let event = subscriber.wait_for(SOON).expect("an event in time");
    *event.get::<u64>().expect("a number")
}

fn node(streams: &Streams, kind: &str) -> NodeView {
    let view = streams.view().expect("nothing runs in this thread");
    view.audit().expect("the books balance");
    let mut nodes = view.nodes.into_iter();
    nodes
        .find(|node| &*node.kind == kind)
        .expect("a node of that kind")
}

/// Waits until something is so.
fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "it does not become so");
        thread::sleep(Duration::from_millis(1));
    }
}

fn terms(threads: usize, capacity: u32) -> Blocking {
    Blocking {
        threads: NonZeroUsize::new(threads).expect("some"),
        capacity: NonZeroU32::new(capacity).expect("some"),
        ..Blocking::default()
    }
}

#[test]
fn an_operator_that_sleeps_holds_nobody_up() {
    let sleeps = |functions: &mut Functions| {
        functions.transform_blocking("slow", |number: &u64| {
            thread::sleep(Duration::from_millis(200));
            number * 2
        });
    };
    let streams = with(sleeps, SystemClock);
    let _driving = streams.drive().expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let mut slow = subscribe(&streams, "/numbers | transform $slow");
    let mut plain = subscribe(&streams, "/numbers");
    let begun = Instant::now();
    for number in 0..10 {
        publish(&numbers, number);
        assert_eq!(next(&mut plain), number);
    }
    let plain = begun.elapsed();
    for number in 0..10 {
        assert_eq!(next(&mut slow), number * 2, "in their order");
    }
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert!(plain * 2 < begun.elapsed(), "ten events took {plain:?}");
    let books = node(&streams, "transform").books;
    assert_eq!((books.received, books.used, books.published), (10, 10, 10));
}

#[test]
fn what_does_not_fit_is_counted_and_so_is_what_is_on_the_way() {
    let (streams, gate) = gated(SystemClock);
    let _driving = streams.drive_with(terms(1, 4)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let mut slow = subscribe(&streams, "/numbers | transform $slow");
    publish(&numbers, 0);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(0));
    for number in 1..10 {
        publish(&numbers, number);
    }
    // One is at work, four wait, and the five that waited longest made room.
    let seen = node(&streams, "transform");
    assert_eq!(seen.held, 5);
    assert_eq!(seen.books.dropped.of(Reason::Overflow), 5);
    for _ in 0..5 {
        gate.go.send(()).expect("it waits");
    }
    let made: Vec<u64> = (0..5).map(|_| next(&mut slow)).collect();
    assert_eq!(made, [0, 12, 14, 16, 18]);
    assert_eq!(node(&streams, "transform").held, 0);
}

#[test]
fn a_panic_breaks_the_operator_and_nobody_else() {
    let panics = |functions: &mut Functions| {
        functions.transform_blocking("picky", |number: &u64| {
            assert!(*number != 3, "it cannot stand a 3");
            number + 100
        });
        functions.transform_blocking("double", |number: &u64| number * 2);
    };
    let streams = with(panics, SystemClock);
    let _driving = streams.drive_with(terms(1, 64)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let mut picky = subscribe(&streams, "/numbers | transform $picky");
    let mut double = subscribe(&streams, "/numbers | transform $double");
    for number in 0..10 {
        publish(&numbers, number);
    }
    for number in 0..10 {
        assert_eq!(next(&mut double), number * 2);
    }
    // What was made before it broke is there.
    for number in 0..3 {
        assert_eq!(next(&mut picky), number + 100);
    }
    let broken = |view: &NodeView| view.broken.clone();
    until(|| {
        let view = streams.view().expect("nothing runs here");
        view.nodes.iter().any(|node| node.broken.is_some())
    });
    let view = streams.view().expect("nothing runs here");
    view.audit().expect("the books balance");
    let said = view.nodes.iter().find_map(broken).expect("one is broken");
    assert!(said.contains("it cannot stand a 3"), "{said}");
    publish(&numbers, 10);
    assert_eq!(next(&mut double), 20);
    assert!(picky.try_next().is_none());
}

#[test]
fn one_that_does_not_come_back_is_given_up_and_its_thread_replaced() {
    let clock = VirtualClock::new(Time::from_seconds(1000));
    let (streams, gate) = gated(clock.clone());
    let blocking = Blocking {
        limit: Span::from_nanoseconds(5_000_000_000),
        ..terms(1, 64)
    };
    let driving = streams.drive_with(blocking).expect("a thread");
    let hanging = streams.publisher::<u64>("/hanging").expect("free");
    let mut hangs = subscribe(&streams, "/hanging | transform $slow");
    publish(&hanging, 1);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(1));
    publish(&hanging, 2);
    clock.set(Time::from_seconds(1004));
    streams.wake();
    assert_eq!(node(&streams, "transform").broken, None);
    clock.set(Time::from_seconds(1005));
    streams.wake();
    let given_up = node(&streams, "transform");
    let said = given_up.broken.expect("it was given up");
    assert!(said.contains("longer than PT5S"), "{said}");
    assert_eq!(given_up.books.dropped.of(Reason::Broken), 2);
    assert!(hangs.try_next().is_none());
    drop(hangs);

    // The only thread hangs still, and another works.
    let others = streams.publisher::<u64>("/others").expect("free");
    let mut works = subscribe(&streams, "/others | transform $slow");
    publish(&others, 3);
    // Both hold out for one gate: whoever gets through first, both do.
    gate.go.send(()).expect("one waits");
    gate.go.send(()).expect("one waits");
    assert_eq!(next(&mut works), 6);
    drop(driving);
}

#[test]
fn the_last_subscriber_may_leave_while_it_works() {
    let (streams, gate) = gated(SystemClock);
    let _driving = streams.drive_with(terms(1, 64)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    for round in 0..20 {
        let slow = subscribe(&streams, "/numbers | transform $slow");
        publish(&numbers, round);
        publish(&numbers, 1000);
        assert_eq!(gate.begun.recv_timeout(SOON), Ok(round));
        drop(slow);
        let view = streams.view().expect("nothing runs here");
        assert!(view.nodes.iter().all(|node| &*node.kind != "transform"));
        view.audit().expect("the books balance");
        gate.go.send(()).expect("it waits");
        // Or the next one might go in its stead.
        assert_eq!(gate.through.recv_timeout(SOON), Ok(round));
    }
    // What waited is not begun with any more, and a new one starts anew.
    let mut slow = subscribe(&streams, "/numbers | transform $slow");
    publish(&numbers, 7);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(7));
    gate.go.send(()).expect("it waits");
    assert_eq!(next(&mut slow), 14);
}

#[test]
fn without_threads_it_runs_in_place() {
    let ran_in = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&ran_in);
    let here = move |functions: &mut Functions| {
        functions.transform_blocking("slow", move |number: &u64| {
            note.lock().expect("unharmed").push(thread::current().id());
            number * 2
        });
    };
    let streams = with(here, VirtualClock::new(Time::from_seconds(1)));
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let mut slow = subscribe(&streams, "/numbers | transform $slow | filter value > 2");
    for number in 0..4 {
        publish(&numbers, number);
    }
    let made: Vec<u64> = std::iter::from_fn(|| slow.try_next())
        .map(|event| *event.get::<u64>().expect("a number"))
        .collect();
    assert_eq!(made, [4, 6]);
    assert_eq!(
        *ran_in.lock().expect("unharmed"),
        vec![thread::current().id(); 4]
    );
    assert_eq!(node(&streams, "transform").books.published, 4);
}

/// Many operators on few threads: each has its turn, and keeps its order.
#[test]
fn few_threads_serve_many() {
    let streams = with(
        |functions| {
            for operator in 0..20 {
                functions.transform_blocking(&format!("f{operator}"), move |number: &u64| {
                    number * operator
                });
            }
        },
        SystemClock,
    );
    let _driving = streams.drive_with(terms(2, 4096)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let text = |operator| format!("/numbers | transform $f{operator}");
    let mut all: Vec<Subscriber> = (0..20)
        .map(|operator| subscribe(&streams, &text(operator)))
        .collect();
    for number in 0..200 {
        publish(&numbers, number);
    }
    for (operator, subscriber) in all.iter_mut().enumerate() {
        let made: Vec<u64> = (0..200).map(|_| next(subscriber)).collect();
        let expected: Vec<u64> = (0..200).map(|number| number * operator as u64).collect();
        assert_eq!(made, expected);
    }
    let view = streams.view().expect("nothing runs here");
    view.audit().expect("the books balance");
}

#[test]
fn what_is_left_when_hands_go_is_done_by_the_next_ones() {
    let (streams, gate) = gated(SystemClock);
    let driving = streams.drive_with(terms(1, 64)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let others = streams.publisher::<u64>("/others").expect("free");
    let mut begun = subscribe(&streams, "/numbers | transform $slow");
    let mut called = subscribe(&streams, "/others | transform $slow");
    publish(&numbers, 1);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(1));
    publish(&numbers, 2);
    // The only thread never comes to this one.
    publish(&others, 3);
    drop(driving);
    gate.go.send(()).expect("it waits");
    assert_eq!(next(&mut begun), 2);
    assert_eq!(node(&streams, "transform").held, 1);
    let _driving = streams.drive_with(terms(1, 64)).expect("a thread");
    for _ in 0..2 {
        gate.go.send(()).expect("they wait");
    }
    assert_eq!(next(&mut begun), 4);
    assert_eq!(next(&mut called), 6);
}

#[test]
fn what_hangs_in_hands_that_went_harms_no_others() {
    let clock = VirtualClock::new(Time::from_seconds(1000));
    let (streams, gate) = gated(clock.clone());
    let limited = |seconds| Blocking {
        limit: Span::from_seconds(seconds),
        ..terms(1, 64)
    };
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let others = streams.publisher::<u64>("/others").expect("free");
    let driving = streams.drive_with(limited(5)).expect("a thread");
    let _hangs = subscribe(&streams, "/numbers | transform $slow");
    publish(&numbers, 1);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(1));
    drop(driving);
    let driving = streams.drive_with(limited(100)).expect("a thread");
    let leaves = subscribe(&streams, "/others | transform $slow");
    publish(&others, 2);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(2));
    drop(driving);
    let _driving = streams.drive_with(limited(100)).expect("a thread");
    drop(leaves);
    // It is given up on the terms of those that are at work.
    clock.set(Time::from_seconds(1005));
    streams.wake();
    let given_up = node(&streams, "transform").broken.expect("it was given up");
    assert!(given_up.contains("longer than PT5S"), "{given_up}");
    for _ in 0..3 {
        gate.go.send(()).expect("they wait");
    }
    let mut works = subscribe(&streams, "/others | transform $slow");
    publish(&others, 3);
    assert_eq!(next(&mut works), 6);
}

#[test]
fn who_drives_a_second_time_does_not_end_the_first() {
    let ran_in = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&ran_in);
    let here = move |functions: &mut Functions| {
        functions.transform_blocking("slow", move |number: &u64| {
            let name = thread::current().name().map(ToOwned::to_owned);
            note.lock().expect("unharmed").push(name);
            number * 2
        });
    };
    let streams = with(here, SystemClock);
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let mut slow = subscribe(&streams, "/numbers | transform $slow");
    let first = streams.drive_with(terms(1, 64)).expect("a thread");
    let second = streams.drive_with(terms(1, 64)).expect("a thread");
    publish(&numbers, 1);
    assert_eq!(next(&mut slow), 2);
    drop(second);
    publish(&numbers, 2);
    assert_eq!(next(&mut slow), 4);
    let third = streams.drive_with(terms(1, 64)).expect("a thread");
    drop(first);
    publish(&numbers, 3);
    assert_eq!(next(&mut slow), 6);
    drop(third);
    let ran_in = ran_in.lock().expect("unharmed");
    let theirs = Some("milieu-blocking".to_owned());
    assert_eq!(*ran_in, vec![theirs; 3]);
}

#[test]
fn what_was_made_before_it_is_given_up_is_published() {
    let clock = VirtualClock::new(Time::from_seconds(1000));
    let (streams, gate) = gated(clock.clone());
    let blocking = Blocking {
        limit: Span::from_seconds(5),
        ..terms(1, 64)
    };
    let _driving = streams.drive_with(blocking).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let holds = streams.publisher::<u64>("/holds").expect("free");
    let mut slow = subscribe(&streams, "/numbers | transform $slow");
    publish(&numbers, 1);
    publish(&numbers, 2);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(1));
    // While this runs nobody fetches what is made.
    let Gate { begun, go, .. } = gate;
    let (begun, let_go) = (Mutex::new(begun), go.clone());
    let flow = flow(&streams, "/holds");
    let _listening = streams.listen(&flow, move |_| {
        let_go.send(()).expect("it waits");
        let begun = begun.lock().expect("unharmed");
        assert_eq!(begun.recv_timeout(SOON), Ok(2));
        clock.set(Time::from_seconds(1005));
    });
    publish(&holds, 0);
    assert_eq!(next(&mut slow), 2);
    streams.wake();
    let given_up = node(&streams, "transform").broken.expect("it was given up");
    assert!(given_up.contains("longer than PT5S"), "{given_up}");
    go.send(()).expect("it waits");
}

/// `$even` says of a number whether it is even, as soon as it is let.
fn asked() -> (Streams, Gate) {
    let (gate, wait) = Gate::new();
    let streams = with(
        |functions| {
            functions.condition_blocking("even", move |number: &u64| {
                wait(*number);
                number % 2 == 0
            });
        },
        SystemClock,
    );
    (streams, gate)
}

#[test]
fn a_condition_that_takes_long_holds_nobody_up() {
    let (streams, gate) = asked();
    let _driving = streams.drive_with(terms(2, 4)).expect("threads");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    // Among filters that would be tested together otherwise.
    let text = "/numbers | filter value > 1 | filter $even | filter value < 9";
    let mut even = subscribe(&streams, text);
    let mut same = subscribe(&streams, text);
    let mut plain = subscribe(&streams, "/numbers | filter value > 1");
    publish(&numbers, 1);
    publish(&numbers, 2);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(2));
    (3..=6).for_each(|number| publish(&numbers, number));
    assert_eq!([(); 5].map(|()| next(&mut plain)), [2, 3, 4, 5, 6]);
    assert!(even.try_next().is_none());
    let slow = || {
        let view = streams.view().expect("nothing runs here");
        view.audit().expect("the books balance");
        let mut nodes = view.nodes.into_iter();
        let is_it = |node: &NodeView| node.label().contains("$even");
        let found: Vec<NodeView> = nodes.by_ref().filter(is_it).collect();
        assert_eq!(found.len(), 1, "equal flows share it");
        found[0].clone()
    };
    assert_eq!((slow().held, slow().books.received), (5, 5));
    gate.go.send(()).expect("it waits");
    assert_eq!(gate.through.recv_timeout(SOON), Ok(2));
    (3..=6).for_each(|number| gate.pass(number));
    for subscriber in [&mut even, &mut same] {
        assert_eq!(
            [(); 3].map(|()| next(subscriber)),
            [2, 4, 6],
            "in their order"
        );
    }
    until(|| slow().held == 0);
    let books = slow().books;
    assert_eq!((books.received, books.passed), (5, 3));
    assert_eq!(books.dropped.of(Reason::Filtered), 2);
    // What does not fit makes room, counted: one is at work, four wait.
    publish(&numbers, 2);
    assert_eq!(gate.begun.recv_timeout(SOON), Ok(2));
    (3..=8).for_each(|number| publish(&numbers, number));
    assert_eq!(slow().books.dropped.of(Reason::Overflow), 2);
    // The last subscriber may leave meanwhile.
    drop((even, same));
    let view = streams.view().expect("nothing runs here");
    view.audit().expect("the books balance");
    assert!(
        view.nodes
            .iter()
            .all(|node| !node.label().contains("$even"))
    );
    gate.go.send(()).expect("it waits");
    assert_eq!(gate.through.recv_timeout(SOON), Ok(2));
    let mut even = subscribe(&streams, text);
    publish(&numbers, 4);
    gate.pass(4);
    assert_eq!(next(&mut even), 4);
}

#[test]
fn whatever_computes_by_a_function_that_takes_long_runs_elsewhere() {
    let here = thread::current().id();
    let ran_in = Arc::new(Mutex::new(Vec::new()));
    let streams = with(
        |functions| {
            let (by_body, by_event) = (Arc::clone(&ran_in), Arc::clone(&ran_in));
            let note = |ran: &Mutex<Vec<_>>| {
                let mut ran = ran.lock().expect("nobody panics");
                ran.push(thread::current().id());
            };
            functions.value_blocking("half", move |number: &u64| {
                note(&by_body);
                number / 2
            });
            functions.value_of_event_blocking("same", move |event| {
                note(&by_event);
                event.get::<u64>().copied().ok_or(Reason::Type)
            });
        },
        SystemClock,
    );
    let driving = streams.drive_with(terms(1, 64)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    for text in [
        "/numbers | transform $half",
        "/numbers | transform $same",
        "/numbers | change of=$half",
        "/numbers | deduplicate of=$same",
        "/numbers | filter $half",
    ] {
        let mut reader = subscribe(&streams, text);
        publish(&numbers, 8);
        until(|| {
            let view = streams.view().expect("nothing runs here");
            view.audit().expect("the books balance");
            let mut nodes = view.nodes.iter();
            let slow = nodes.find(|node| node.label().contains('$'));
            slow.is_some_and(|node| node.books.received == 1 && node.held == 0)
        });
        let came = reader.try_next().is_some();
        // A number is no condition: that is a fault, told as ever.
        assert_eq!(came, !text.contains("filter"), "{text}");
        let ran = std::mem::take(&mut *ran_in.lock().expect("nobody panics"));
        assert!(!ran.is_empty() && !ran.contains(&here), "{text}");
    }
    drop(driving);
}

#[test]
fn who_comes_late_gets_nothing_of_what_waits_for_others() {
    let (streams, gate) = gated(SystemClock);
    let _driving = streams.drive_with(terms(2, 16)).expect("a thread");
    let numbers = streams.publisher::<u64>("/numbers").expect("free");
    let mut early = subscribe(&streams, "/numbers | transform $slow");
    publish(&numbers, 1);
    publish(&numbers, 2);
    let mut late = subscribe(&streams, "/numbers | transform $slow");
    publish(&numbers, 3);
    (0..100_000).for_each(|_| gate.go.send(()).expect("it is there"));
    assert_eq!([(); 3].map(|()| next(&mut early)), [2, 4, 6]);
    assert_eq!(next(&mut late), 6);
    let nodes = || {
        let view = streams.view().expect("nothing runs in this thread");
        view.audit().expect("the books balance");
        let nodes = view.nodes.iter();
        nodes.filter(|node| &*node.kind == "transform").count()
    };
    until(|| {
        publish(&numbers, 4);
        nodes() == 1
    });
    drop((early, late));
    assert_eq!(streams.view().expect("nothing runs here").nodes.len(), 1);
}
