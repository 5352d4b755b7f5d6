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
