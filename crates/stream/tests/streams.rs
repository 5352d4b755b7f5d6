//! Streams of a process: threads, queues, callbacks, time.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use milieu_stream::{
    CannotPublish, Catalogue, Definition, Delivery, Fate, Feed, Flow, Inputs, Operator, Output,
    Overflow, Published, Reason, Source, Status, Streams, SystemClock, VirtualClock, Wait,
};
use milieu_transfer::{Event, Origin, Span, Time};

const SOON: Duration = Duration::from_secs(20);

/// Holds events for a tenth of a second.
struct Delay(Vec<(Time, Event)>);

impl Operator for Delay {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        let later = out.now() + Span::from_nanoseconds(100_000_000);
        self.0.push((later, event.clone()));
        Fate::Held
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        let ripe = self.0.partition_point(|(time, _)| *time <= out.now());
        for (_, event) in self.0.drain(..ripe) {
            out.pass(event);
        }
    }

    fn due(&self) -> Option<Time> {
        self.0.first().map(|(time, _)| *time)
    }

    fn held(&self) -> usize {
        self.0.len()
    }
}

static DELAY: Definition = Definition {
    name: "delay",
    summary: "",
    inputs: Inputs::One,
    parameters: &[],
    make: |_| Ok(Box::new(Delay(Vec::new()))),
};

fn streams() -> Streams {
    Streams::new(
        Catalogue::new([&DELAY]),
        SystemClock,
        Origin("test".into()),
        1,
    )
}

fn numbers() -> Flow {
    Flow::Stream("/numbers".into())
}

fn every(capacity: u32, overflow: Overflow) -> Delivery {
    let capacity = NonZeroU32::new(capacity).expect("more than none");
    Delivery::Every { capacity, overflow }
}

fn number(event: &Event) -> u64 {
    *event.get::<u64>().expect("a number")
}

fn accepted(published: Published) {
    assert!(matches!(published, Published::Accepted(_)));
}

fn audit(streams: &Streams) {
    let view = streams.view().expect("nothing runs in this thread");
    view.audit().expect("the books balance");
}

#[test]
fn a_subscription_that_was_closed_ends_after_what_it_had() {
    let streams = streams();
    let mut closing = streams
        .subscribe(&numbers(), every(2, Overflow::Close))
        .unwrap();
    let publisher = streams.publisher::<u64>("/numbers").unwrap();
    (1..=3).for_each(|value| accepted(publisher.publish(value)));
    for expected in 1..=2 {
        assert!(!closing.is_ended());
        assert_eq!(number(&closing.wait_for(SOON).unwrap()), expected);
    }
    assert!(closing.is_ended());
    assert!(closing.wait_for(SOON).is_none());
}

#[test]
fn events_of_a_thread_keep_their_order_and_none_is_lost() {
    const THREADS: u64 = 4;
    const EACH: u64 = 5000;
    let streams = streams();
    let mut all = streams
        .subscribe(&numbers(), every(100_000, Overflow::DropNewest))
        .unwrap();
    let publisher = Arc::new(streams.publisher::<u64>("/numbers").unwrap());
    let publish = |thread: u64| {
        let publisher = Arc::clone(&publisher);
        move || (0..EACH).for_each(|i| accepted(publisher.publish(thread * EACH + i)))
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| thread::spawn(publish(thread)))
        .collect();
    let mut last = [None; THREADS as usize];
    for _ in 0..THREADS * EACH {
        let value = number(&all.wait_for(SOON).expect("all arrive"));
        let last = &mut last[(value / EACH) as usize];
        assert!(*last < Some(value), "{value} after {last:?}");
        *last = Some(value);
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(all.try_next().map(|event| number(&event)), None);
    audit(&streams);
}

#[test]
fn a_full_queue_does_what_it_was_told() {
    let heard = |overflow| {
        let streams = streams();
        let mut some = streams.subscribe(&numbers(), every(2, overflow)).unwrap();
        let publisher = streams.publisher("/numbers").unwrap();
        let accepted = (0..4_u64).map(|i| publisher.publish(i));
        let accepted = accepted
            .filter(|published| *published != Published::Refused)
            .count();
        audit(&streams);
        let tally = some.tally();
        let heard: Vec<u64> = std::iter::from_fn(|| some.try_next())
            .map(|e| number(&e))
            .collect();
        (heard, accepted, tally.dropped.of(Reason::Overflow))
    };
    assert_eq!(heard(Overflow::DropOldest), (vec![2, 3], 4, 2));
    assert_eq!(heard(Overflow::DropNewest), (vec![0, 1], 4, 2));
    assert_eq!(heard(Overflow::Refuse), (vec![0, 1], 2, 0));
    // The one that has ended it is lost.
    assert_eq!(heard(Overflow::Close), (vec![0, 1], 4, 1));
}

#[test]
fn the_latest_value_takes_the_place_of_older_ones() {
    let streams = streams();
    let mut latest = streams.subscribe(&numbers(), Delivery::Latest).unwrap();
    let publisher = streams.publisher("/numbers").unwrap();
    for i in 0..10_u64 {
        accepted(publisher.publish(i));
    }
    assert_eq!(latest.tally().dropped.of(Reason::Superseded), 9);
    assert_eq!(latest.try_next().map(|event| number(&event)), Some(9));
    assert!(latest.try_next().is_none());
    audit(&streams);
}

#[test]
fn a_closed_queue_ends_after_what_is_in_it() {
    let streams = streams();
    let mut some = streams
        .subscribe(&numbers(), every(1, Overflow::Close))
        .unwrap();
    let publisher = streams.publisher("/numbers").unwrap();
    accepted(publisher.publish(1_u64));
    accepted(publisher.publish(2_u64));
    assert_eq!(some.wait().map(|event| number(&event)), Some(1));
    assert!(some.wait().is_none(), "it does not wait for ever");
    assert_eq!(streams.view().unwrap().subscribers.len(), 0);
}

#[test]
fn a_slow_subscriber_slows_nobody() {
    let streams = streams();
    let slow = streams
        .subscribe(&numbers(), every(10, Overflow::DropOldest))
        .unwrap();
    let mut quick = streams
        .subscribe(&numbers(), every(2000, Overflow::DropOldest))
        .unwrap();
    let publisher = streams.publisher("/numbers").unwrap();
    for i in 0..1000_u64 {
        accepted(publisher.publish(i));
    }
    assert!((0..1000).all(|i| quick.try_next().map(|event| number(&event)) == Some(i)));
    assert_eq!(
        (slow.tally().waiting, slow.tally().dropped.total()),
        (10, 990)
    );
    audit(&streams);
}

#[test]
fn callbacks_may_publish_subscribe_and_leave() {
    let streams = streams();
    let echo = Arc::new(streams.publisher::<u64>("/echo").unwrap());
    let publisher = streams.publisher::<u64>("/numbers").unwrap();
    let (heard, hearing) = mpsc::channel();
    let inner = streams.clone();
    let guards = Arc::new(Mutex::new(Vec::new()));
    let (kept, own) = (Arc::clone(&guards), Arc::clone(&echo));
    let outer = streams.listen(&numbers(), move |event| {
        let value = number(event);
        if value == 1 {
            let heard = heard.clone();
            let echoed = Flow::Stream("/echo".into());
            let guard = inner.listen(&echoed, move |event| heard.send(number(event)).unwrap());
            kept.lock().unwrap().push(guard.unwrap());
            assert!(inner.view().is_none(), "nobody can be asked from in here");
            assert!(inner.is_inside());
        }
        accepted(own.publish(value * 10));
    });
    for value in [1, 2] {
        accepted(publisher.publish(value));
    }
    assert_eq!(hearing.try_iter().collect::<Vec<_>>(), [10, 20]);
    assert!(!streams.is_inside());
    drop(outer);
    guards.lock().unwrap().clear();
    accepted(publisher.publish(3));
    accepted(echo.publish(4));
    assert_eq!(hearing.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    audit(&streams);
}

#[test]
fn a_name_has_one_publisher_and_is_free_again() {
    let streams = streams();
    let first = streams.publisher::<u64>("/numbers").unwrap();
    let second = streams.publisher::<u64>("/numbers");
    let said = second.err().expect("it is taken").to_string();
    assert!(
        said.contains("`/numbers` has a publisher already"),
        "{said}"
    );
    assert!(matches!(
        streams.publisher::<u64>("../up"),
        Err(CannotPublish::NoName(_))
    ));
    drop(first);
    streams.publisher::<u64>("/numbers").unwrap();
}

#[test]
fn tasks_are_woken() {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::{Context, Poll, Wake, Waker};

    use futures_core::Stream;

    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let streams = streams();
    let mut some = streams.subscribe(&numbers(), Delivery::default()).unwrap();
    let publisher = streams.publisher("/numbers").unwrap();
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut next = Box::pin(poll_fn(|cx| Pin::new(&mut some).poll_next(cx)));
    assert!(next.as_mut().poll(&mut cx).is_pending());
    accepted(publisher.publish(7_u64));
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Some(event)) = next.as_mut().poll(&mut cx) else {
        panic!("it has come");
    };
    assert_eq!(number(&event), 7);
}

#[test]
fn operators_are_woken_in_virtual_time() {
    let clock = VirtualClock::new(Time::from_seconds(1000));
    let streams = Streams::new(
        Catalogue::new([&DELAY]),
        clock.clone(),
        Origin("test".into()),
        1,
    );
    let catalogue = streams.catalogue().clone();
    let flow = catalogue.operation(&DELAY, Vec::new(), vec![numbers()]);
    let mut late = streams.subscribe(&flow, Delivery::default()).unwrap();
    let publisher = streams.publisher("/numbers").unwrap();
    accepted(publisher.publish(1_u64));
    streams.wake();
    assert!(late.try_next().is_none());
    let due = streams.due().expect("something waits");
    assert_eq!(
        due - Time::from_seconds(1000),
        Span::from_nanoseconds(100_000_000)
    );
    clock.set(due);
    streams.wake();
    assert_eq!(late.try_next().map(|event| number(&event)), Some(1));
    assert_eq!(streams.due(), None);
    audit(&streams);
}

/// Counts, every millisecond.
struct Count(u64);

impl Source for Count {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        feed.publish(feed.now(), self.0);
        feed.working();
        self.0 += 1;
        Wait::Until(feed.now() + Span::from_nanoseconds(1_000_000))
    }
}

#[test]
fn sources_and_operators_run_in_real_time() {
    let streams = streams();
    let driving = streams.drive().unwrap();
    let flow = streams
        .catalogue()
        .clone()
        .operation(&DELAY, Vec::new(), vec![numbers()]);
    let mut late = streams.subscribe(&flow, Delivery::default()).unwrap();
    let source = driving.source("/numbers", Count(0)).unwrap();
    for expected in 0..20 {
        let event = late.wait_for(SOON).expect("it comes");
        assert_eq!(number(&event), expected);
        assert!(streams.now() - event.time() >= Span::from_nanoseconds(100_000_000));
    }
    assert_eq!(source.status(), Status::Working);
    audit(&streams);
    drop(source);
    let again = driving.source("/numbers", Count(1000)).unwrap();
    let later = std::iter::from_fn(|| late.wait_for(SOON)).find(|event| number(event) >= 1000);
    assert!(later.is_some(), "the subscription survives the source");
    drop(again);
}

#[test]
fn names_of_a_process_are_published_bound_served_and_watched() {
    use milieu_stream::names::{Binding, LayerValues, Query, Rights, Service};

    let query = |text| Query::parse(text).unwrap();
    let streams = streams();
    let publisher = streams.publisher::<u64>("/numbers").unwrap();
    let copy = streams.publish("/copy", &numbers()).unwrap();
    let bound = streams
        .bind("/rooms/1/numbers", Binding::new([query("/copy")]).unwrap())
        .unwrap();
    let service = Service::new("tcp://here", [("kind", "adder")], Time::MAX).unwrap();
    let served = streams.serve("/services/adder", service).unwrap();
    let listed = |text| {
        let members = streams.list(query(text), Rights::all()).unwrap();
        members
            .iter()
            .map(|member| member.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        listed("/**"),
        ["/copy", "/numbers", "/rooms/1/numbers", "/services/adder"]
    );
    let here = Flow::Stream("/rooms/%room%/numbers".into());
    let mut global = streams.subscribe(&here, Delivery::default()).unwrap();
    let reader = streams.reader(LayerValues::from_iter([("room", "1")]), Rights::all());
    let mut own = reader.subscribe(&here, Delivery::default()).unwrap();
    accepted(publisher.publish(1));
    streams.set_layer("room", "1");
    reader.set_layers(LayerValues::new());
    accepted(publisher.publish(2));
    assert_eq!(own.by_ref().next().map(|event| number(&event)), Some(1));
    assert_eq!(
        (own.try_next().is_none(), number(&global.wait().unwrap())),
        (true, 2)
    );
    let other = streams.publisher::<u64>("/other").unwrap();
    bound
        .rebind(Binding::new([query("/other")]).unwrap())
        .unwrap();
    accepted(publisher.publish(3));
    accepted(other.publish(4));
    assert_eq!(
        (number(&global.wait().unwrap()), global.try_next().is_none()),
        (4, true)
    );
    assert!(matches!(
        streams.publisher::<u64>("/copy"),
        Err(CannotPublish::Refused(_))
    ));
    drop((copy, served));
    assert_eq!(listed("/**"), ["/numbers", "/other", "/rooms/1/numbers"]);
    audit(&streams);
}

#[test]
fn what_sources_say_at_once_can_be_waited_for() {
    struct Once;
    impl Source for Once {
        fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
            thread::sleep(Duration::from_millis(20));
            feed.publish(feed.now(), 7);
            feed.working();
            Wait::Until(Time::MAX)
        }
    }
    struct Blocked(mpsc::Receiver<()>);
    impl Source for Blocked {
        fn poll(&mut self, _: &mut Feed<'_>) -> Wait {
            let _ = self.0.recv();
            Wait::Ended
        }
    }
    let streams = streams();
    let driving = streams.drive().unwrap();
    let a = driving.source("/a", Once).unwrap();
    let b = driving.source("/b", Once).unwrap();
    assert!(driving.has_looked(SOON));
    assert_eq!((a.status(), b.status()), (Status::Working, Status::Working));
    for name in ["/a", "/b"] {
        let flow = Flow::Stream(name.into());
        let mut last = streams.subscribe(&flow, Delivery::Latest).unwrap();
        assert_eq!(last.try_next().unwrap().get(), Some(&7));
    }
    let (go, gone) = mpsc::channel();
    let _slow = driving.source("/c", Blocked(gone)).unwrap();
    assert!(!driving.has_looked(Duration::from_millis(1)));
    go.send(()).unwrap();
    assert!(driving.has_looked(SOON));
}

#[test]
fn a_callback_may_drop_the_driving_that_waits_for_it() {
    let streams = streams();
    let driving = Arc::new(Mutex::new(Some(streams.drive().unwrap())));
    let publisher = streams.publisher::<i32>("/a").unwrap();
    let flow = streams.catalogue().get("delay").unwrap();
    let flow = streams
        .catalogue()
        .operation(flow, Vec::new(), vec![Flow::Stream("/a".into())]);
    let (told, dropped) = mpsc::channel();
    let _delayed = streams.listen(&flow, |_| {}).unwrap();
    let _listening = streams.listen(&Flow::Stream("/a".into()), move |event| {
        if event.get() == Some(&2) {
            // What waits since the first event is due meanwhile, so that the
            // thread asks the machine for it, which is at work here.
            thread::sleep(Duration::from_millis(300));
            let driving = driving.lock().unwrap().take();
            drop(driving);
            let _ = told.send(());
        }
    });
    thread::spawn(move || {
        for number in [1, 2] {
            let _ = publisher.publish(number);
        }
    });
    dropped.recv_timeout(SOON).expect("nobody waits for nobody");
}
