//! Chains of filters are tested together, and nobody can tell: whoever comes,
//! goes and breaks, what is heard and what the books say is the same.

use std::sync::{Arc, Mutex};

use milieu_diagnostics::Source;
use milieu_keys::Name;
use milieu_stream::language::Language;
use milieu_stream::{
    Catalogue, Flow, Machine, Now, Planned, ReaderId, Reason, SourceId, SubscriptionId, operators,
};
use milieu_transfer::{Event, Header, Origin, Stream, Time};

/// Filters, of which a flow has the first so many.
const CONDITIONS: [&str; 5] = [
    "value > 10",
    "value < 90",
    "value % 2 == 0",
    "value != 50",
    "value > 20",
];

fn passes(value: i64, filters: usize) -> bool {
    let conditions = [
        value > 10,
        value < 90,
        value % 2 == 0,
        value != 50,
        value > 20,
    ];
    conditions[..filters].iter().all(|holds| *holds)
}

fn flow(catalogue: &Catalogue, filters: usize) -> Flow {
    let steps = CONDITIONS[..filters]
        .iter()
        .map(|condition| format!(" | filter {condition}"));
    let text = format!("/t{}", steps.collect::<String>());
    let document = Language::Pipeline.parse(&Source::new("flow", text), catalogue);
    document.expect("a good flow").subscriptions[0].flow.clone()
}

struct World {
    machine: Machine,
    source: SourceId,
    stream: Arc<Stream>,
    published: u64,
}

/// A subscriber: how many filters it has before it, and what it should have heard.
struct Subscribed {
    id: SubscriptionId,
    filters: usize,
    heard: Arc<Mutex<Vec<i64>>>,
    expected: Vec<i64>,
}

impl World {
    fn new() -> World {
        let mut machine = Machine::new(Origin("here".into()), 1);
        let stream = Arc::new(Stream {
            name: Name::parse("/t").expect("a name"),
            origin: Origin("here".into()),
            incarnation: 1,
        });
        let clock = Time::default;
        let source = machine.add_source(&Now::new(&clock), Arc::clone(&stream), false);
        World {
            source: source.expect("the name is free"),
            machine,
            stream,
            published: 0,
        }
    }

    fn subscribe(&mut self, catalogue: &Catalogue, filters: usize) -> Subscribed {
        let heard = Arc::<Mutex<Vec<i64>>>::default();
        let into = Arc::clone(&heard);
        let receiver = move |event: &Event| {
            let value = *event.get::<i64>().expect("a number");
            into.lock().expect("nobody panics").push(value);
        };
        let planned = Planned::new(&flow(catalogue, filters), catalogue).expect("a good flow");
        let clock = Time::default;
        let id = self.machine.subscribe(
            &Now::new(&clock),
            planned,
            ReaderId::GLOBAL,
            "test".into(),
            Box::new(receiver),
        );
        Subscribed {
            id,
            filters,
            heard,
            expected: Vec::new(),
        }
    }

    fn publish(&mut self, value: i64) {
        self.published += 1;
        let header = Header {
            stream: Arc::clone(&self.stream),
            time: Time::default(),
            sequence: self.published,
            quality: None,
        };
        let clock = Time::default;
        self.machine
            .publish(&Now::new(&clock), self.source, &Event::new(header, value));
    }
}

/// The same numbers for the same seed, on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

#[test]
fn whoever_comes_and_goes_hears_the_same_as_alone() {
    let catalogue = operators::catalogue();
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut world = World::new();
        let mut all: Vec<Subscribed> = Vec::new();
        for _ in 0..60 {
            match random.below(6) {
                0 | 1 => {
                    let filters = random.below(6) as usize;
                    all.push(world.subscribe(&catalogue, filters));
                }
                2 if !all.is_empty() => {
                    let leaving = all.swap_remove(random.below(all.len() as u64) as usize);
                    assert_eq!(
                        *leaving.heard.lock().unwrap(),
                        leaving.expected,
                        "seed {seed}"
                    );
                    world.machine.unsubscribe(leaving.id);
                }
                _ => {
                    let value = random.below(100) as i64;
                    world.publish(value);
                    let wanting = all.iter_mut().filter(|it| passes(value, it.filters));
                    wanting.for_each(|it| it.expected.push(value));
                }
            }
            let view = world.machine.view();
            view.audit()
                .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
        for it in &all {
            assert_eq!(*it.heard.lock().unwrap(), it.expected, "seed {seed}");
        }
    }
}

#[test]
fn the_books_of_each_filter_are_its_own() {
    let catalogue = operators::catalogue();
    let mut world = World::new();
    let five = world.subscribe(&catalogue, 5);
    let books = |world: &World| -> Vec<(u64, u64)> {
        let nodes = world.machine.view().nodes;
        let filters = nodes.iter().filter(|node| &*node.kind == "filter");
        let books =
            filters.map(|node| (node.books.received, node.books.dropped.of(Reason::Filtered)));
        books.collect()
    };
    (0..100).for_each(|value| world.publish(value));
    let expected = [(100, 11), (89, 10), (79, 40), (39, 1), (38, 5)];
    assert_eq!(books(&world), expected);
    // Somebody who looks at what lies between takes the chain apart.
    let between = world.subscribe(&catalogue, 2);
    assert_eq!(books(&world), expected);
    world.publish(44);
    assert_eq!(books(&world)[1..3], [(90, 10), (80, 40)]);
    assert_eq!(*between.heard.lock().unwrap(), [44]);
    world.machine.unsubscribe(between.id);
    world.publish(45);
    assert_eq!(books(&world)[2], (81, 41));
    assert_eq!(five.heard.lock().unwrap().len(), 34);
}
