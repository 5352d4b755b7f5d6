//! That sharing cannot be observed: whoever subscribes, and whenever, gets what a
//! flow of its own would give, that began when it came.
//!
//! A random play is done once with all its subscribers, and then once more for
//! each of them, without the others. What it hears has to be the same, event by
//! event and at the same times, but for the numbers that operators give to what
//! they make.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::random::Random;
use milieu_diagnostics::{Source, render};
use milieu_stream::language::Language;
use milieu_stream::{
    Catalogue, Definition, Delivery, Fate, Flow, Inputs, Named, Operator, Output, Publisher,
    Streams, Subscriber, VirtualClock, operators,
};
use milieu_transfer::{Event, Origin, Quality, Rights, Span, Time, Value};

/// Holds each event for two seconds, and says nothing of what it remembers.
#[derive(Default)]
struct Delay(Vec<(Time, Event)>);

impl Operator for Delay {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        let due = out.now() + Span::from_seconds(2);
        self.0.push((due, event.clone()));
        Fate::Held
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        let ripe = self.0.partition_point(|(due, _)| *due <= out.now());
        self.0.drain(..ripe).for_each(|(_, event)| out.pass(event));
    }

    fn due(&self) -> Option<Time> {
        self.0.first().map(|(due, _)| *due)
    }

    fn held(&self) -> usize {
        self.0.len()
    }
}

/// Counts to three again and again, and can be kept.
#[derive(Default)]
struct Beat(u64);

impl Operator for Beat {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        self.0 = self.0 % 3 + 1;
        out.emit(event.time(), None, self.0);
        Fate::Used
    }

    fn snapshot(&self) -> Value {
        Value::Uint(self.0)
    }
}

static DEFINITIONS: [Definition; 2] = [
    Definition {
        name: "delay",
        summary: "",
        inputs: Inputs::One,
        parameters: &[],
        make: |_| Ok(Box::new(Delay::default())),
    },
    Definition {
        name: "beat",
        summary: "",
        inputs: Inputs::One,
        parameters: &[],
        make: |_| Ok(Box::new(Beat::default())),
    },
];

fn catalogue() -> Catalogue {
    let all = operators::catalogue();
    let mut catalogue = Catalogue::new(all.iter().chain(&DEFINITIONS).collect::<Vec<_>>());
    let functions = catalogue.functions_mut();
    functions.condition("even", |value: &i64| value % 2 == 0);
    functions.value("third", |value: &i64| value / 3);
    functions.transform("doubled", |value: &i64| value * 2);
    functions.transform_blocking("slowly", |value: &i64| value + 3);
    catalogue
}

/// Operators that make of whole numbers whole numbers, or let them pass.
const STEPS: &[&str] = &[
    "filter value > 2",
    "filter $even",
    "transform value + 1",
    "transform $doubled",
    "transform $slowly",
    "delay",
    "beat",
    "change",
    "change of=value / 3",
    "change least=3",
    "change by=value % 3 of=value / 3",
    "change by=value % 2 of=$third groups=2 forget=4s",
    "extreme window=5s",
    "extreme highest window=20s",
    "extreme lowest window=7s by=value % 2 lateness=0s",
    "outliers count=4",
    "outliers count=3 by=value % 2 least=2",
    "deduplicate",
    "deduplicate within=4s of=value % 4",
    "deduplicate within=30s of=value % 5 remember=3",
    "debounce 2s",
    "debounce 3s of=value % 3",
    "debounce 1s by=value % 2",
    "sample 3s",
    "sample 4s by=value % 3",
    "throttle 3s",
    "throttle 4s by=value % 3",
];

/// Operators whose results are maps; a number is made of each.
const MAPS: &[(&str, &str)] = &[
    ("aggregate count, sum, median 5s", "count"),
    (
        "aggregate mean, slope window=6s every=2s lateness=0s",
        "count",
    ),
    (
        "aggregate sum, last window=4s by=value % 3 offset=1s lateness=3s",
        "count",
    ),
    ("aggregate maximum, deviation, first count=3", "count"),
    ("aggregate mean count=4 by=value % 2", "count"),
    ("aggregate sum, change session=2s", "count"),
    (
        "aggregate count session=3s by=value % 2 lateness=2s",
        "count",
    ),
    ("hysteresis value > 9 off=value < 4", "value ? 8 : 3"),
    (
        "hysteresis $even off=value % 3 == 0 by=value % 2",
        "value ? 5 : 1",
    ),
    ("vote sensor=value % 3 fresh=6s", "sensors"),
    (
        "vote majority sensor=value % 4 of=value / 3 by=value % 2 fresh=4s",
        "sensors",
    ),
    ("members value % 7 while=value % 5 > 1", "size(members)"),
    ("members value % 7 within=4s", "size(joined)"),
];

const JOINS: &[(&str, &str)] = &[
    ("join \"x y\"", "{value: x * 3 + y}"),
    ("join \"x y\" fresh=3s optional=true", "{value: x}"),
    ("join \"x y\" on=value % 2", "{value: x + y}"),
];

const SEEDS: u64 = 200;

/// Sources; of the last two the last event is retained.
const NAMES: [&str; 4] = ["/a", "/b", "/kept", "/held"];

/// Where a flow may be published. Nothing else is read together with it: by which
/// way an event comes first that goes partly through published names, nobody says.
const NAMED: &str = "/deep/named";

/// A flow whose operators lie so deep in each other; notes what it is made of.
fn flow(random: &mut Random, depth: usize, parts: &mut Vec<String>) -> String {
    if depth == 0 {
        return random.of(&["/a", "/a", "/b", "/kept", "/*"]).to_owned();
    }
    let input = flow(random, depth - 1, parts);
    let mut other = |random: &mut Random| {
        let shorter = random.below(depth);
        // Mostly it comes from the same source by another way.
        match parts.is_empty() || random.below(3) == 0 {
            true => flow(random, shorter, parts),
            false => parts[random.below(parts.len())].clone(),
        }
    };
    let made = match random.below(10) {
        0..5 => format!("({input}) | {}", random.of(STEPS)),
        5..7 => {
            let (operator, number) = random.of(MAPS);
            format!("({input}) | {operator} | transform {number}")
        }
        7 | 8 => {
            let (operator, number) = random.of(JOINS);
            let other = other(random);
            format!("({input}), ({other}) | {operator} | transform {number} | transform value")
        }
        _ => format!("({input}), ({}) | merge", other(random)),
    };
    parts.push(made.clone());
    made
}

/// What happens, one after the other.
#[derive(Clone, Debug)]
enum Step {
    /// This flow is subscribed to by the next subscriber.
    Subscribe(String),
    Leave(usize),
    /// A name, a number, how old that is already, and whether its sensor failed.
    Publish(usize, i64, i64, bool),
    /// A source goes, or comes again.
    Switch(usize),
    /// A flow is published under a name, instead of what was before.
    Name(String),
    /// So many seconds pass.
    Pass(i64),
}

fn play(random: &mut Random, flows: &[String]) -> Vec<Step> {
    let mut steps = vec![Step::Subscribe(random.of(&[flows[0].as_str()]).to_owned())];
    let mut count = 1;
    for _ in 0..40 + random.below(60) {
        steps.push(match random.below(20) {
            0..3 if count < 8 => {
                count += 1;
                Step::Subscribe(flows[random.below(flows.len())].clone())
            }
            3 => Step::Leave(random.below(count)),
            4 if random.below(3) == 0 => Step::Switch(random.below(NAMES.len())),
            5 if random.below(3) == 0 => Step::Name(flows[random.below(flows.len())].clone()),
            4..8 => Step::Pass(random.of(&[1, 1, 2, 3, 8])),
            _ => Step::Publish(
                random.below(NAMES.len()),
                random.below(14) as i64,
                random.of(&[0, 0, 0, 1, 4, -1]),
                random.below(15) == 0,
            ),
        });
    }
    steps.push(Step::Pass(40));
    steps
}

/// What somebody hears: when, and all that can be seen of it.
type Heard = Vec<(Time, String)>;

struct World {
    streams: Streams,
    clock: VirtualClock,
    publishers: Vec<Option<Publisher<i64>>>,
    named: Option<Named>,
    subscribers: Vec<Option<Subscriber>>,
    heard: Vec<Heard>,
}

impl World {
    fn new() -> World {
        let clock = VirtualClock::new(Time::from_seconds(1000));
        let streams = Streams::new(catalogue(), clock.clone(), Origin("test".into()), 1);
        let mut world = World {
            streams,
            clock,
            publishers: Vec::new(),
            named: None,
            subscribers: Vec::new(),
            heard: Vec::new(),
        };
        world.publishers.resize_with(NAMES.len(), || None);
        (0..NAMES.len()).for_each(|name| world.switch(name));
        world
    }

    fn switch(&mut self, name: usize) {
        let publisher = &mut self.publishers[name];
        if publisher.take().is_none() {
            let new = match name {
                0 | 1 => self.streams.publisher(NAMES[name]),
                _ => self.streams.retaining_publisher(NAMES[name]),
            };
            *publisher = Some(new.expect("free"));
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let source = Source::new("flow", text);
        let flow = Language::Pipeline.flow(&source, self.streams.catalogue());
        flow.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)))
    }

    /// Does a play; where somebody is given, without all others.
    fn play(mut self, steps: &[Step], alone: Option<usize>) -> Vec<Heard> {
        for step in steps {
            let here = |who: usize| alone.is_none_or(|alone| alone == who);
            match step {
                Step::Subscribe(text) => {
                    let flow = self.flow(text);
                    let subscriber = here(self.subscribers.len()).then(|| {
                        let subscribed = self.streams.subscribe(&flow, Delivery::default());
                        subscribed.expect("a good flow")
                    });
                    self.subscribers.push(subscriber);
                    self.heard.push(Vec::new());
                }
                Step::Leave(who) => {
                    self.hear();
                    if let Some(subscriber) = self.subscribers.get_mut(*who) {
                        *subscriber = None;
                    }
                }
                Step::Publish(name, number, age, failed) => {
                    let time = self.streams.now() - Span::from_seconds(*age);
                    let quality = failed.then(|| Quality {
                        failure: Some("broken".into()),
                        ..Quality::default()
                    });
                    if let Some(publisher) = &self.publishers[*name] {
                        let _ = publisher.publish_at(time, quality, *number);
                    }
                }
                Step::Switch(name) => self.switch(*name),
                Step::Name(text) => {
                    self.named = None;
                    // One that reads the name is refused, with others and without.
                    self.named = self.streams.publish(NAMED, &self.flow(text)).ok();
                }
                Step::Pass(seconds) => self.pass(*seconds),
            }
            self.hear();
            let view = self.streams.view().expect("nothing runs here");
            view.audit().expect("the books balance");
        }
        self.hear();
        (self.subscribers, self.named) = (Vec::new(), None);
        self.publishers.clear();
        let view = self.streams.view().expect("nothing runs here");
        assert_eq!(view.nodes, [], "all are gone");
        self.heard
    }

    fn pass(&mut self, seconds: i64) {
        let until = self.streams.now() + Span::from_seconds(seconds);
        while let Some(due) = self.streams.due().filter(|due| *due <= until) {
            self.clock.set(due.max(self.streams.now()));
            self.streams.wake();
            self.hear();
        }
        self.clock.set(until);
    }

    fn hear(&mut self) {
        let now = self.streams.now();
        for (subscriber, heard) in self.subscribers.iter_mut().zip(&mut self.heard) {
            let Some(subscriber) = subscriber else {
                continue;
            };
            while let Some(event) = subscriber.try_next() {
                heard.push((now, seen(&event)));
            }
        }
    }
}

/// All that can be seen of an event, but for the number of one that was made here.
fn seen(event: &Event) -> String {
    let header = event.header();
    let name = header.stream.name.as_str();
    let number = NAMES.contains(&name).then_some(header.sequence);
    let body = event.value(Rights::ALL).expect("it can be read");
    format!(
        "{name} {number:?} {:?} {:?} {body:?}",
        header.time, header.quality
    )
}

/// Does a play with all and with each alone. Tells how much was heard, and of the
/// first who heard something else what that was.
fn compare(steps: &[Step]) -> Result<usize, String> {
    let together = World::new().play(steps, None);
    let flows = steps.iter().filter_map(|step| match step {
        Step::Subscribe(text) => Some(text),
        _ => None,
    });
    for (who, (flow, with_others)) in flows.zip(&together).enumerate() {
        let all = World::new().play(steps, Some(who));
        let alone = &all[who];
        let mut pairs = with_others.iter().zip(alone);
        let at = pairs.position(|(a, b)| a != b);
        let at = at.unwrap_or(with_others.len().min(alone.len()));
        if with_others != alone {
            let (with_others, alone) = (with_others.get(at), alone.get(at));
            return Err(format!(
                "{flow}\n  with others {with_others:?}\n  alone       {alone:?}\n  in {steps:?}"
            ));
        }
    }
    Ok(together.iter().map(Vec::len).sum())
}

fn seeds(count: u64) -> Range<u64> {
    match std::env::var("MILIEU_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("MILIEU_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..count,
    }
}

/// What a late subscriber to each operator can tell of those before it.
#[test]
fn each_operator_gives_late_subscribers_what_it_would_give_them_alone() {
    let steps = STEPS.iter().map(|step| (*step, false));
    let maps = MAPS.iter().map(|(operator, _)| (*operator, false));
    let joins = JOINS.iter().map(|(join, _)| (*join, true));
    let all: Vec<(&str, bool)> = steps.chain(maps).chain(joins).collect();
    for definition in operators::catalogue().iter().map(|known| known.name) {
        let is_it = |(text, _): &(&str, _)| text.split(' ').next() == Some(definition);
        assert!(
            definition == "merge" || all.iter().any(is_it),
            "{definition}"
        );
    }
    let (mut heard, mut wrong) = (BTreeMap::new(), BTreeMap::new());
    for (operator, joins) in all {
        for inputs in if joins {
            ["/a, /b", "/kept, /a"]
        } else {
            ["/a", "/kept"]
        } {
            let flow = format!("{inputs} | {operator}");
            for seed in seeds(12) {
                let steps = play(&mut Random::new(seed), std::slice::from_ref(&flow));
                match compare(&steps) {
                    Ok(count) => *heard.entry(operator).or_insert(0) += count,
                    Err(told) => {
                        wrong.entry(operator).or_insert((seed, told));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "MILIEU_SEED repeats it: {wrong:#?}");
    if std::env::var_os("MILIEU_SEED").is_none() {
        let silent = heard.iter().find(|(_, count)| **count < 20);
        assert_eq!(silent, None, "it says too little");
    }
}

#[test]
fn chains_give_late_subscribers_what_they_would_give_them_alone() {
    let mut heard = 0;
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let mut flows = Vec::new();
        for _ in 0..=random.below(3) {
            let depth = 1 + random.below(4);
            flow(&mut random, depth, &mut flows);
        }
        let (one, other) = (random.of(STEPS), random.of(STEPS));
        flows.push(format!("{NAMED} | {one} | {other}"));
        match compare(&play(&mut random, &flows)) {
            Ok(count) => heard += count,
            Err(told) => panic!("MILIEU_SEED={seed} repeats it: {told}"),
        }
    }
    assert!(heard > 0, "nobody said anything");
}
