//! Looking at the graph: rates, and how long events take.

use std::num::NonZeroU32;

use milieu_diagnostics::Source;
use milieu_stream::language::Language;
use milieu_stream::{Delivery, Flow, Overflow, Streams, View, VirtualClock, operators};
use milieu_transfer::{Origin, Quality, Span, Time};

struct World {
    clock: VirtualClock,
    now: Time,
    streams: Streams,
}

impl World {
    fn new() -> World {
        let now = Time::from_seconds(1_000_000);
        let clock = VirtualClock::new(now);
        let origin = Origin("here".into());
        let streams = Streams::new(operators::catalogue(), clock.clone(), origin, 1);
        World {
            clock,
            now,
            streams,
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let source = Source::new("flow", text);
        let document = Language::Pipeline.parse(&source, self.streams.catalogue());
        document.unwrap().subscriptions.pop().unwrap().flow
    }

    fn passes(&mut self, milliseconds: i64) {
        self.now = self.now + Span::from_nanoseconds(milliseconds * 1_000_000);
        self.clock.set(self.now);
    }

    fn look(&self) -> View {
        let view = self.streams.look().unwrap();
        view.audit().unwrap();
        view
    }
}

fn milliseconds(span: Option<Span>) -> f64 {
    span.unwrap().seconds() * 1e3
}

/// What may be read of a duration of so many milliseconds.
fn is_near(span: Option<Span>, truth: f64) -> bool {
    (milliseconds(span) / truth - 1.0).abs() <= 0.125
}

#[test]
fn rates_are_those_of_the_last_seconds() {
    let mut world = World::new();
    let flow = world.flow("/n | filter value > 0");
    let _heard = world.streams.listen(&flow, |_| ()).unwrap();
    let publisher = world.streams.publisher::<i64>("/n").unwrap();
    for value in 0..1000 {
        let _ = publisher.publish(value);
    }
    let first = world.look();
    assert!(first.nodes.iter().all(|node| node.rate.is_none()));
    // A second in which four come, of which one passes.
    for value in [-1, 0, -2, 3] {
        world.passes(250);
        let _ = publisher.publish(value);
    }
    let view = world.look();
    let rates = |view: &View| -> Vec<Option<f64>> {
        let nodes = view.nodes.iter().map(|node| node.rate);
        let edges = view.edges.iter().map(|edge| edge.rate);
        let subscribers = view.subscribers.iter().map(|it| it.rate);
        nodes.chain(edges).chain(subscribers).collect()
    };
    let [source, names, filter] = &view.nodes[..] else {
        panic!("{:?}", view.nodes)
    };
    let kinds = [&source.kind, &names.kind, &filter.kind].map(|kind| &**kind);
    let of = |kind: &str| view.nodes[kinds.iter().position(|it| *it == kind).unwrap()].rate;
    assert_eq!(of("source"), Some(4.0));
    assert_eq!(of("names"), Some(4.0));
    assert_eq!(of("filter"), Some(1.0));
    assert_eq!(view.subscribers[0].rate, Some(1.0));
    assert!(view.edges.iter().all(|edge| edge.rate == Some(4.0)));
    // What comes and goes is compared to no other that had its number.
    drop(_heard);
    let flow = world.flow("/n | filter value > 1");
    let _heard = world.streams.listen(&flow, |_| ()).unwrap();
    let view = world.look();
    let filter = view.nodes.iter().find(|node| &*node.kind == "filter");
    assert_eq!(filter.unwrap().rate, None);
    assert_eq!(view.subscribers[0].rate, None);
    // Whoever looks now and then compares to the look before.
    world.passes(1_000);
    world.look();
    for _ in 0..60 {
        world.passes(500);
        let _ = publisher.publish(0);
    }
    let view = world.look();
    let source = view.nodes.iter().find(|node| &*node.kind == "source");
    assert_eq!(source.unwrap().rate, Some(2.0));
    // Looks of long ago say nothing.
    world.passes(200_000);
    assert!(rates(&world.look()).iter().all(Option::is_none));
    world.passes(1_000);
    assert!(rates(&world.look()).iter().all(|rate| *rate == Some(0.0)));
}

#[test]
fn how_long_events_take_is_measured_while_somebody_looks() {
    let mut world = World::new();
    let flow = world.flow("/n");
    let _heard = world.streams.listen(&flow, |_| ()).unwrap();
    let capacity = NonZeroU32::new(3).unwrap();
    let delivery = Delivery::Every {
        capacity,
        overflow: Overflow::DropOldest,
    };
    let mut queue = world.streams.subscribe(&flow, delivery).unwrap();
    let publisher = world.streams.publisher::<i64>("/n").unwrap();
    let _ = publisher.publish(0);
    assert!(queue.try_next().is_some());
    let view = world.look();
    assert!(view.subscribers.iter().all(|it| it.delays.is_none()));

    // Five come, a tenth of a second apart; the first two make room. The first
    // one that is taken waited for three tenths.
    for value in 1..=5 {
        let age = Some(Span::from_seconds(2));
        let quality = Quality {
            age,
            ..Quality::default()
        };
        let _ = publisher.publish_at(world.now, Some(quality), value);
        world.passes(100);
    }
    assert_eq!(queue.try_next().unwrap().get(), Some(&3_i64));
    let view = world.look();
    let [callback, queued] = &view.subscribers[..] else {
        panic!("{:?}", view.subscribers)
    };
    let delays = callback.recent.as_deref().unwrap();
    assert_eq!(delays.latency.count(), 5);
    assert_eq!(milliseconds(delays.latency.max()), 0.0);
    assert!(is_near(delays.age.quantile(0.5), 2000.0));
    let delays = queued.recent.as_deref().unwrap();
    assert_eq!(delays.latency.count(), 3);
    assert_eq!(milliseconds(delays.latency.max()), 300.0);
    assert!(is_near(delays.latency.quantile(0.5), 200.0), "{delays:?}");
    assert_eq!(milliseconds(delays.age.max()), 2300.0);

    // Recent is what came since the look that rates are compared to.
    while queue.try_next().is_some() {}
    world.passes(5_000);
    world.look();
    world.passes(5_000);
    let _ = publisher.publish(6);
    world.passes(10);
    assert!(queue.try_next().is_some());
    let view = world.look();
    let queued = &view.subscribers[1];
    let recent = &queued.recent.as_deref().unwrap().latency;
    assert_eq!(recent.count(), 1, "{recent:?}");
    assert!(is_near(recent.quantile(0.99), 10.0));
    assert_eq!(queued.delays.as_deref().unwrap().latency.count(), 4);

    // Nobody has looked for long: nothing is measured, and then again.
    world.passes(121_000);
    let _ = publisher.publish(7);
    assert!(queue.try_next().is_some());
    let count = |view: &View| {
        view.subscribers[1]
            .delays
            .as_deref()
            .unwrap()
            .latency
            .count()
    };
    assert_eq!(count(&world.look()), 4);
    let _ = publisher.publish(8);
    assert!(queue.try_next().is_some());
    assert_eq!(count(&world.look()), 5);
}

#[test]
fn what_operators_make_by_time_is_late_by_as_long_as_they_were_woken_late() {
    let mut world = World::new();
    let flow = world.flow("/n | sample every=1s");
    let _heard = world.streams.listen(&flow, |_| ()).unwrap();
    let publisher = world.streams.publisher::<i64>("/n").unwrap();
    world.look();
    let _ = publisher.publish(1);
    world.passes(1_250);
    world.streams.wake();
    let view = world.look();
    let delays = view.subscribers[0].delays.as_deref().unwrap();
    assert_eq!(delays.latency.count(), 1);
    assert_eq!(milliseconds(delays.latency.max()), 250.0);
    assert_eq!(milliseconds(delays.age.max()), 1250.0);
}

#[test]
fn faults_are_shown_whether_filters_are_tested_together_or_not() {
    let world = World::new();
    let text = "/n | filter value > 0 | filter value.x > 0";
    let flow = world.flow(text);
    let _heard = world.streams.listen(&flow, |_| ()).unwrap();
    let publisher = world.streams.publisher::<i64>("/n").unwrap();
    let _ = publisher.publish(1);
    let fault = |world: &World| {
        let nodes = world.look().nodes.into_iter();
        let filters = nodes.filter(|node| node.flow == Some(world.flow(text)));
        filters.last().unwrap().fault
    };
    let together = fault(&world).unwrap();
    assert!(together.contains("`value.x > 0`"), "{together}");
    // Somebody who looks at what lies between takes the filters apart.
    let between = world.flow("/n | filter value > 0");
    let _between = world.streams.listen(&between, |_| ()).unwrap();
    let _ = publisher.publish(2);
    assert_eq!(fault(&world), Some(together));
}
