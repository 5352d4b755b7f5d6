//! Equal flows are one, and those that are not are not; and what can be seen of it.

use milieu_diagnostics::{Source, render};
use milieu_stream::language::Language;
use milieu_stream::{
    Delivery, Flow, Published, Publisher, Streams, Subscriber, VirtualClock, operators,
};
use milieu_transfer::{Origin, Rights, Time, Value};

const GUIDE: &str = include_str!("../../../docs/subscriptions.md");

struct Stage {
    streams: Streams,
    clock: VirtualClock,
}

impl Stage {
    fn new() -> Stage {
        let clock = VirtualClock::new(Time::from_seconds(0));
        let mut catalogue = operators::catalogue();
        let functions = catalogue.functions_mut();
        functions.condition("hot", |value: &i64| *value > 32);
        functions.condition("cold", |value: &i64| *value < 0);
        Stage {
            streams: Streams::new(catalogue, clock.clone(), Origin("test".into()), 1),
            clock,
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let source = Source::new("flow", text);
        let read = Language::Pipeline.subscription(&source, self.streams.catalogue());
        let read = read.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)));
        read.flow
    }

    fn subscribe(&self, text: &str) -> Subscriber {
        let subscribed = self
            .streams
            .subscribe(&self.flow(text), Delivery::default());
        subscribed.unwrap_or_else(|found| panic!("{text}: {}", found.message))
    }

    fn nodes(&self) -> usize {
        let view = self.streams.view().expect("nothing runs here");
        view.audit().expect("the books balance");
        view.nodes.len()
    }

    fn pass(&self, second: i64) {
        let until = Time::from_seconds(second);
        while let Some(due) = self.streams.due().filter(|due| *due <= until) {
            self.clock.set(due);
            self.streams.wake();
        }
        self.clock.set(until);
    }
}

/// The rows of the table of the guide: what is rewritten, two flows that are equal,
/// and one that is not.
fn rows() -> Vec<[String; 4]> {
    let (_, rest) = GUIDE
        .split_once("## What counts as equal")
        .expect("its heading");
    let (section, _) = rest.split_once("\n## ").expect("another one follows");
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1);
    let cells = |line: &str| -> Vec<String> {
        let line = line.replace("\\|", "\u{0}");
        let cells = line.trim_matches('|').split('|');
        let cells = cells.map(|cell| cell.trim().trim_matches('`').replace('\u{0}', "|"));
        cells.collect()
    };
    let rows = rows.map(|line| cells(line).try_into().unwrap_or_else(|_| panic!("{line}")));
    rows.collect()
}

#[test]
fn what_the_guide_calls_equal_is_one_and_what_it_does_not_is_not() {
    let rows = rows();
    assert!(rows.len() >= 12, "{rows:?}");
    for [rule, one, other, another] in rows {
        assert_ne!(one, other, "{rule}");
        let stage = Stage::new();
        let _first = stage.subscribe(&one);
        let before = stage.nodes();
        let second = stage.subscribe(&other);
        assert_eq!(
            stage.nodes(),
            before,
            "{rule}: `{one}` and `{other}` are one"
        );
        drop(second);
        let _third = stage.subscribe(&another);
        assert!(
            stage.nodes() > before,
            "{rule}: `{one}` and `{another}` are two"
        );
        assert_ne!(stage.flow(&one), stage.flow(&another), "{rule}");
    }
}

/// Whole numbers at these seconds.
fn publish(stage: &Stage, publisher: &Publisher<i64>, seconds: impl Iterator<Item = i64>) {
    for second in seconds {
        stage.pass(second);
        let published = publisher.publish(second * second % 17);
        assert!(matches!(published, Published::Accepted(_)));
    }
}

/// The bodies of what came, with the second at which their windows begin.
fn windows(subscriber: &mut Subscriber) -> Vec<(f64, Value)> {
    let events = std::iter::from_fn(|| subscriber.try_next());
    let bodies = events.map(|event| event.value(Rights::ALL).expect("it can be read"));
    let start = |body: &Value| match body.field("start") {
        Some(Value::Time(time)) => (*time - Time::from_seconds(0)).seconds(),
        other => panic!("{other:?}"),
    };
    bodies.map(|body| (start(&body), body)).collect()
}

#[test]
fn who_comes_late_to_a_shared_window_sees_what_it_would_alone() {
    for text in [
        "/n | aggregate count, sum, median 10s",
        "/n | aggregate mean, slope window=10s every=5s",
        "/n | aggregate sum window=10s by=value % 3",
        "/n | aggregate mean window=10s every=2s offset=1s lateness=3s",
    ] {
        // It comes in the middle of a window, with others there, or alone.
        let late = |others: bool| {
            let stage = Stage::new();
            let publisher = stage.streams.publisher("/n").expect("free");
            let _early = others.then(|| stage.subscribe(text));
            publish(&stage, &publisher, 1..25);
            stage.pass(25);
            let mut late = stage.subscribe(text);
            publish(&stage, &publisher, 26..60);
            stage.pass(80);
            windows(&mut late)
        };
        let (shared, alone) = (late(true), late(false));
        assert!(alone.len() >= 4, "{text}: {alone:?}");
        assert!(alone[0].0 < 25.0, "it began before: {text}: {alone:?}");
        assert_eq!(shared, alone, "{text}");
    }
}

/// Numbers, one after the other at once.
fn say(publisher: &Publisher<i64>, numbers: &[i64]) {
    for number in numbers {
        let published = publisher.publish(*number);
        assert!(matches!(published, Published::Accepted(_)));
    }
}

/// How many nodes run for those who came late; each says whose copy it is.
fn copies(stage: &Stage) -> usize {
    let view = stage.streams.view().expect("nothing runs here");
    view.audit().expect("the books balance");
    let copies = view.nodes.iter().filter(|node| node.copy_of.is_some());
    for copy in copies.clone() {
        let mut nodes = view.nodes.iter();
        let first = nodes.find(|node| Some(node.id) == copy.copy_of);
        let first = first.expect("it is there");
        assert_eq!((&first.flow, first.copy_of), (&copy.flow, None));
    }
    copies.count()
}

/// How many events of a flow came in, where it runs.
fn received(stage: &Stage, kind: &str) -> Vec<u64> {
    let view = stage.streams.view().expect("nothing runs here");
    let nodes = view.nodes.iter().filter(|node| &*node.kind == kind);
    nodes.map(|node| node.books.received).collect()
}

#[test]
fn a_window_is_shared_from_the_close_of_the_last_that_was_open() {
    let stage = Stage::new();
    let publisher = stage.streams.publisher("/n").expect("free");
    let text = "/n | aggregate sum 10s";
    let mut early = stage.subscribe(text);
    publish(&stage, &publisher, 1..4);
    let mut late = stage.subscribe(text);
    assert_eq!(copies(&stage), 1);
    publish(&stage, &publisher, 4..10);
    stage.pass(10);
    assert_eq!((copies(&stage), windows(&mut late).len()), (1, 0));
    stage.pass(11);
    assert_eq!(
        copies(&stage),
        0,
        "in the step in which the window was closed"
    );
    publish(&stage, &publisher, 12..20);
    assert_eq!(received(&stage, "aggregate"), [17]);
    stage.pass(21);
    let sums = |subscriber: &mut Subscriber| -> Vec<Value> {
        let windows = windows(subscriber).into_iter();
        windows
            .map(|(_, body)| body.field("sum").expect("a sum").clone())
            .collect()
    };
    let of = |seconds: std::ops::Range<i64>| -> Value {
        seconds
            .map(|second| second * second % 17)
            .sum::<i64>()
            .into()
    };
    let number = |value: Value| match value {
        Value::Int(number) => Value::Double(number as f64),
        other => other,
    };
    assert_eq!(sums(&mut early), [number(of(1..10)), number(of(12..20))]);
    assert_eq!(sums(&mut late), [number(of(4..10)), number(of(12..20))]);
}

#[test]
fn a_thousand_who_come_into_an_open_window_run_once_for_each_event_between_them() {
    let stage = Stage::new();
    let publisher = stage.streams.publisher("/n").expect("free");
    let text = "/n | filter value >= 0 | aggregate count 1000s";
    let mut all = vec![stage.subscribe(text)];
    let before = stage.nodes();
    for _ in 0..10 {
        say(&publisher, &[1, 2]);
        all.extend((0..100).map(|_| stage.subscribe(text)));
    }
    assert_eq!((stage.nodes(), copies(&stage)), (before + 10, 10));
    say(&publisher, &[3]);
    let mut counts = received(&stage, "aggregate");
    counts.sort_unstable();
    assert_eq!(counts, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21]);
    assert_eq!(
        received(&stage, "filter"),
        [21],
        "what remembers nothing is shared at once"
    );
    stage.pass(1001);
    assert_eq!((stage.nodes(), copies(&stage)), (before, 0));
    say(&publisher, &[4]);
    stage.pass(2001);
    for (at, subscriber) in all.iter_mut().enumerate() {
        let counts = windows(subscriber).into_iter();
        let counts = counts.map(|(_, body)| body.field("count").cloned().expect("a count"));
        let came = at.div_ceil(100);
        let missed = 2 * came as u64;
        let first = Value::Uint(21 - missed);
        assert_eq!(counts.collect::<Vec<_>>(), [first, Value::Uint(1)], "{at}");
    }
}

/// Numbers that come a second after each other, and what has come until a late
/// subscriber shares the operator.
#[test]
fn operators_are_shared_as_soon_as_nothing_can_tell() {
    for (text, before, apart, until) in [
        ("change", &[1, 2][..], &[][..], &[3][..]),
        ("change by=value % 2", &[1, 2], &[3, 3, 3, 3], &[4]),
        (
            "extreme highest window=1000s",
            &[9],
            &[5, 7],
            &[12, 12, 12, 12],
        ),
        ("outliers count=3", &[1, 2], &[3, 4], &[5, 6]),
        ("deduplicate within=3s of=value", &[1], &[2, 3], &[4, 5]),
        ("debounce 3s", &[1], &[], &[2]),
        ("hysteresis value > 5 off=value < 3", &[9], &[4, 4], &[2]),
        ("sample 5s", &[1], &[], &[2]),
        ("throttle 1000s", &[1], &[], &[2]),
        (
            "members value within=4s",
            &[1, 2],
            &[2, 3],
            &[4, 5, 6, 7, 8],
        ),
        (
            "vote sensor=value % 2 fresh=100s",
            &[1, 2],
            &[3, 3],
            &[4, 4, 4, 4],
        ),
        ("aggregate sum session=3s", &[1], &[2, 3], &[]),
        ("aggregate sum count=3", &[1, 2, 3], &[4, 5], &[6, 7, 8, 9]),
        (
            "aggregate sum window=4s every=2s",
            &[1],
            &[2],
            &[3, 4, 5, 6, 7],
        ),
    ] {
        let stage = Stage::new();
        let publisher = stage.streams.publisher("/n").expect("free");
        let second = std::cell::Cell::new(100);
        let says = |numbers: &[i64]| {
            for number in numbers {
                second.set(second.get() + 1);
                stage.pass(second.get());
                say(&publisher, &[*number]);
            }
        };
        let flow = format!("/n | {text}");
        let _early = stage.subscribe(&flow);
        says(before);
        let _late = stage.subscribe(&flow);
        assert_eq!(copies(&stage), 1, "{text}");
        for number in apart {
            says(&[*number]);
            assert_eq!(copies(&stage), 1, "{text}: {number}");
        }
        says(until);
        if text.contains("session") {
            stage.pass(second.get() + 10);
        }
        assert_eq!(copies(&stage), 0, "{text}");
    }
}

#[test]
fn a_chain_is_shared_from_its_beginning_on() {
    let stage = Stage::new();
    let publisher = stage.streams.publisher("/n").expect("free");
    let text = "/n | change | aggregate sum 10s | deduplicate of=sum within=30s";
    let mut early = stage.subscribe(text);
    stage.pass(1);
    say(&publisher, &[1, 2]);
    let mut late = stage.subscribe(text);
    assert_eq!(copies(&stage), 3);
    say(&publisher, &[3]);
    assert_eq!(copies(&stage), 2, "the last number that went on is one");
    stage.pass(11);
    assert_eq!(copies(&stage), 1, "the window is closed");
    stage.pass(12);
    say(&publisher, &[4]);
    stage.pass(50);
    say(&publisher, &[5]);
    stage.pass(70);
    assert_eq!(copies(&stage), 0, "what differed is forgotten");
    let starts = |subscriber: &mut Subscriber| -> Vec<f64> {
        windows(subscriber)
            .into_iter()
            .map(|(start, _)| start)
            .collect()
    };
    assert_eq!(starts(&mut early), [0.0, 10.0, 50.0]);
    assert_eq!(starts(&mut late), [0.0, 10.0, 50.0]);
}

#[test]
fn whoever_leaves_early_leaves_the_others_what_they_have() {
    let text = "/n | aggregate sum 10s";
    for leaves in 0..3 {
        let stage = Stage::new();
        let publisher = stage.streams.publisher("/n").expect("free");
        stage.pass(1);
        let mut subscribers = Vec::new();
        for number in [1, 10, 100] {
            subscribers.push(Some(stage.subscribe(text)));
            say(&publisher, &[number]);
        }
        assert_eq!(copies(&stage), 2);
        subscribers[leaves] = None;
        assert_eq!(copies(&stage), 1, "{leaves} leaves");
        stage.pass(11);
        assert_eq!(copies(&stage), 0, "{leaves} leaves");
        for (at, subscriber) in subscribers.iter_mut().enumerate() {
            if let Some(subscriber) = subscriber {
                let sum = windows(subscriber)[0].1.field("sum").cloned();
                assert_eq!(sum, Some(Value::Double([111.0, 110.0, 100.0][at])));
            }
        }
        drop(subscribers);
        assert_eq!(stage.nodes(), 1, "the source");
    }
}

#[test]
fn what_is_retained_comes_in_the_order_of_its_names() {
    let stage = Stage::new();
    let mut early = stage.subscribe("/t/*");
    let publishers = ["/t/b", "/t/a", "/t/c"].map(|name| {
        let publisher = stage.streams.retaining_publisher::<i64>(name);
        publisher.expect("free")
    });
    for (number, publisher) in publishers.iter().enumerate() {
        say(publisher, &[number as i64]);
    }
    let heard = |subscriber: &mut Subscriber| -> Vec<i64> {
        let events = std::iter::from_fn(|| subscriber.try_next());
        events.filter_map(|event| event.get().copied()).collect()
    };
    assert_eq!(heard(&mut early), [0, 1, 2], "as they came");
    assert_eq!(heard(&mut stage.subscribe("/t/*")), [1, 0, 2]);
    drop(early);
    assert_eq!(heard(&mut stage.subscribe("/t/*")), [1, 0, 2], "alone too");
}

#[test]
fn events_that_operators_make_have_numbers_of_their_own() {
    let stage = Stage::new();
    let publisher = stage.streams.publisher("/n").expect("free");
    let doubled = "(/n | transform value * 2)";
    let text = format!("{doubled}, (/n | transform value + 1) | merge | deduplicate");
    let mut both = stage.subscribe(&text);
    say(&publisher, &[3]);
    let mut late = stage.subscribe(&text);
    say(&publisher, &[4]);
    let heard = |subscriber: &mut Subscriber| -> Vec<Value> {
        let events = std::iter::from_fn(|| subscriber.try_next());
        let mut bodies: Vec<Value> = events
            .map(|event| event.value(Rights::ALL).expect("it can be read"))
            .collect();
        bodies.sort_by_key(|body| format!("{body:?}"));
        bodies
    };
    let all = [4, 5, 6, 8].map(Value::Int);
    assert_eq!(heard(&mut both), all, "none is taken for another");
    assert_eq!(heard(&mut late), [5, 8].map(Value::Int));
}
