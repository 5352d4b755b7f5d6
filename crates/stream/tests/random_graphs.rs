//! Random graphs against a model that knows of every event by its number: each
//! subscriber hears what its flow makes of what was published while it was there,
//! nothing twice and nothing else, and the books of each node say the same.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU32;

use crate::random::Random;
use milieu_diagnostics::Source;
use milieu_stream::language::Language;
use milieu_stream::{
    Catalogue, Definition, Delivery, Fate, Flow, Inputs, Operator, Output, Overflow, Parameter,
    Publisher, Reason, Streams, Subscriber, VirtualClock, operators,
};
use milieu_transfer::{Event, Origin, Rights, Span, Time, Value};

const SEEDS: u64 = 150;
const STEPS: usize = 80;
const NAMES: [&str; 3] = ["/a", "/b", "/c/d"];
/// What `transform` adds: so much that one number is never taken for another.
const ADDED: i64 = 1_000_000;
const DELAY: Span = Span::from_nanoseconds(10_000_000_000);

/// Holds each event for ten seconds.
struct Delay(VecDeque<(Time, Event)>);

impl Operator for Delay {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        self.0.push_back((out.now() + DELAY, event.clone()));
        Fate::Held
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        while self.due().is_some_and(|due| due <= out.now()) {
            let Some((_, event)) = self.0.pop_front() else {
                break;
            };
            out.pass(event);
        }
    }

    fn due(&self) -> Option<Time> {
        self.0.front().map(|(due, _)| *due)
    }

    fn held(&self) -> usize {
        self.0.len()
    }

    /// Whoever comes later gets what it holds: in the model equal flows are one.
    fn is_like(&self, _: &dyn Operator, _: Time) -> bool {
        true
    }
}

static DELAYING: Definition = Definition {
    name: "delay",
    summary: "Holds each event for ten seconds.",
    inputs: Inputs::One,
    parameters: &[],
    make: |_| Ok(Box::new(Delay(VecDeque::new()))),
};

fn catalogue() -> Catalogue {
    let all = operators::catalogue();
    Catalogue::new(all.iter().chain([&DELAYING]).collect::<Vec<_>>())
}

/// A pipeline of so many operators one behind the other.
fn pipeline(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(6) == 0 {
        return random.of(&["/a", "/b", "/c/d", "/*", "/**"]).to_owned();
    }
    let input = pipeline(random, depth - 1);
    match random.below(6) {
        0 | 1 => {
            let modulus = 2 + random.below(3);
            let rest = random.below(modulus);
            format!("({input}) | filter value % {modulus} != {rest}")
        }
        2 => format!("({input}) | transform value + {ADDED}"),
        3 => format!("({input}) | delay"),
        _ => {
            let other = pipeline(random, depth - 1);
            format!("({input}), ({other}) | merge")
        }
    }
}

/// What is to be heard by numbers, how often each.
type Numbers = BTreeMap<i64, u64>;

/// A flow that somebody reads.
#[derive(Default)]
struct Read {
    received: Numbers,
    dropped: Numbers,
    /// With when they are due.
    held: VecDeque<(Time, i64)>,
}

struct Heard {
    flow: Flow,
    subscriber: Subscriber,
    /// How many events may wait.
    capacity: usize,
    expected: Numbers,
    got: Numbers,
}

struct World {
    streams: Streams,
    clock: VirtualClock,
    publishers: BTreeMap<&'static str, Publisher<i64>>,
    read: HashMap<Flow, Read>,
    subscribers: Vec<Heard>,
    number: i64,
}

fn whole(numbers: &Numbers) -> u64 {
    numbers.values().sum()
}

fn number(event: &Event) -> i64 {
    match event.value(Rights::ALL).expect("it can be read") {
        Value::Int(number) => number,
        other => panic!("{other:?}"),
    }
}

/// Whether a name has an event of another.
fn covers(name: &str, of: &str) -> bool {
    match name {
        "/**" => true,
        "/*" => of.matches('/').count() == 1,
        name => name == of,
    }
}

impl World {
    fn new() -> World {
        let clock = VirtualClock::new(Time::from_seconds(0));
        World {
            streams: Streams::new(catalogue(), clock.clone(), Origin("test".into()), 1),
            clock,
            publishers: BTreeMap::new(),
            read: HashMap::new(),
            subscribers: Vec::new(),
            number: 0,
        }
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(12) {
            0 | 1 => self.subscribe(random),
            2 if !self.subscribers.is_empty() => {
                let at = random.below(self.subscribers.len());
                self.hear(at);
                self.subscribers.swap_remove(at);
                self.forget();
            }
            3 => {
                let name = random.of(&NAMES);
                if self.publishers.remove(name).is_none() {
                    let publisher = self.streams.publisher(name).expect("it is free");
                    self.publishers.insert(name, publisher);
                }
            }
            4 => self.pass(Span::from_seconds(1 + random.below(15) as i64)),
            5 if !self.subscribers.is_empty() => self.hear(random.below(self.subscribers.len())),
            _ => self.publish(random.of(&NAMES)),
        }
        self.check();
    }

    fn subscribe(&mut self, random: &mut Random) {
        let depth = random.below(6);
        let text = pipeline(random, depth);
        let source = Source::new("flow", text);
        let flow = Language::Pipeline.flow(&source, self.streams.catalogue());
        let flow = flow.expect("a flow");
        let capacity = random.of(&[2, 1 << 20]);
        let delivery = Delivery::Every {
            capacity: NonZeroU32::new(capacity).expect("some"),
            overflow: random.of(&[Overflow::DropOldest, Overflow::DropNewest]),
        };
        let subscriber = self
            .streams
            .subscribe(&flow, delivery)
            .expect("it can be run");
        flow.visit(&mut |part| {
            self.read.entry(part.clone()).or_default();
        });
        self.subscribers.push(Heard {
            flow,
            subscriber,
            capacity: capacity as usize,
            expected: Numbers::new(),
            got: Numbers::new(),
        });
    }

    /// What nobody reads any more is gone, with what it held.
    fn forget(&mut self) {
        let mut kept = HashMap::new();
        for heard in &self.subscribers {
            heard.flow.visit(&mut |part| {
                if let Some(read) = self.read.remove(part) {
                    kept.insert(part.clone(), read);
                }
            });
        }
        self.read = kept;
    }

    fn publish(&mut self, name: &'static str) {
        let Some(publisher) = self.publishers.get(name) else {
            return;
        };
        self.number += 1;
        let _ = publisher.publish(self.number);
        let flows: Vec<Flow> = self.read.keys().cloned().collect();
        for flow in flows {
            if matches!(&flow, Flow::Stream(text) if covers(text, name)) {
                self.receive(&flow, self.number);
            }
        }
    }

    /// Tells all that read a flow of an event of it.
    fn tell(&mut self, flow: &Flow, number: i64) {
        for heard in self
            .subscribers
            .iter_mut()
            .filter(|heard| heard.flow == *flow)
        {
            *heard.expected.entry(number).or_default() += 1;
        }
        let readers: Vec<Flow> = self.read.keys().cloned().collect();
        for reader in readers {
            if let Flow::Operation(operation) = &reader {
                for _ in operation.inputs.iter().filter(|input| *input == flow) {
                    self.receive(&reader, number);
                }
            }
        }
    }

    fn receive(&mut self, flow: &Flow, number: i64) {
        let due = self.streams.now() + DELAY;
        let read = self.read.get_mut(flow).expect("it is read");
        *read.received.entry(number).or_default() += 1;
        let Flow::Operation(operation) = flow else {
            return self.tell(flow, number);
        };
        match &*operation.operator {
            "filter" => {
                let Some((_, Parameter::Expression(text))) = operation.parameters.first() else {
                    panic!("it has a condition");
                };
                let digits = text.split(|letter: char| !letter.is_ascii_digit());
                let digits = digits.filter_map(|digits| digits.parse().ok());
                let [modulus, rest] = digits.collect::<Vec<i64>>()[..] else {
                    panic!("{text}");
                };
                match number % modulus != rest {
                    true => self.tell(flow, number),
                    false => *read.dropped.entry(number).or_default() += 1,
                }
            }
            "transform" => self.tell(flow, number + ADDED),
            "delay" => read.held.push_back((due, number)),
            _ => self.tell(flow, number),
        }
    }

    fn pass(&mut self, span: Span) {
        let until = self.streams.now() + span;
        loop {
            let dues = self.read.values().filter_map(|read| read.held.front());
            let due = dues.map(|(due, _)| *due).min();
            assert_eq!(self.streams.due(), due, "when something is to happen next");
            let Some(due) = due.filter(|due| *due <= until) else {
                break;
            };
            self.clock.set(due);
            self.streams.wake();
            let flows: Vec<Flow> = self.read.keys().cloned().collect();
            for flow in flows {
                let read = self.read.get_mut(&flow).expect("it is read");
                let ripe = read.held.partition_point(|(ripe, _)| *ripe <= due);
                let ripe: Vec<i64> = read.held.drain(..ripe).map(|(_, number)| number).collect();
                ripe.into_iter().for_each(|number| self.tell(&flow, number));
            }
        }
        self.clock.set(until);
    }

    /// Takes all that a subscriber has, and compares.
    fn hear(&mut self, at: usize) {
        let Heard {
            flow,
            subscriber,
            capacity,
            expected,
            got,
        } = &mut self.subscribers[at];
        while let Some(event) = subscriber.try_next() {
            *got.entry(number(&event)).or_default() += 1;
        }
        let (tally, offered) = (subscriber.tally(), whole(expected));
        assert_eq!(tally.taken, whole(got), "{flow:?}");
        assert_eq!(tally.dropped.of(Reason::Overflow), offered - whole(got));
        for (number, times) in &*got {
            let at_most = expected.get(number).copied().unwrap_or_default();
            assert!(*times <= at_most, "{number} of {flow:?} came {times} times");
        }
        if offered <= *capacity as u64 || *capacity > 2 {
            assert_eq!(got, expected, "{flow:?}");
        }
    }

    /// The books say of each node what the model knows of it.
    fn check(&self) {
        let view = self.streams.view().expect("nothing runs here");
        view.audit().expect("the books balance");
        let nodes = view.nodes.iter().filter(|node| node.flow.is_some());
        assert_eq!(
            nodes.clone().count(),
            self.read.len(),
            "equal flows are one"
        );
        for node in nodes {
            let flow = node.flow.as_ref().expect("it has one");
            let read = &self.read[flow];
            assert_eq!(node.books.received, whole(&read.received), "{flow:?}");
            let dropped = &node.books.dropped;
            assert_eq!(
                dropped.of(Reason::Filtered),
                whole(&read.dropped),
                "{flow:?}"
            );
            assert_eq!(dropped.total(), whole(&read.dropped), "{flow:?}");
            assert_eq!(node.held, read.held.len() as u64, "{flow:?}");
        }
    }
}

#[test]
fn every_event_is_where_the_model_says() {
    let seeds = match std::env::var("MILIEU_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("MILIEU_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let (mut heard, mut lost) = (0, 0);
    for seed in seeds {
        let told = Told(seed);
        let mut random = Random::new(seed);
        let mut world = World::new();
        for _ in 0..STEPS {
            world.step(&mut random);
        }
        world.pass(Span::from_seconds(100));
        for at in 0..world.subscribers.len() {
            world.hear(at);
            heard += whole(&world.subscribers[at].got);
            lost += whole(&world.subscribers[at].expected) - whole(&world.subscribers[at].got);
        }
        world.check();
        drop(told);
    }
    assert!(heard > 100 && lost > 10, "{heard} heard, {lost} lost");
}

/// Says which seed it was if a test fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("MILIEU_SEED={} repeats it", self.0);
        }
    }
}
