//! The books of links balance whatever the engine does: frames are lost, doubled
//! and turned round, machines die and come back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::network::{Network, Which};
use milieu_stream::engine::{Chances, Hub, Passage, PeerId, Schedule};
use milieu_stream::link::Terms;
use milieu_stream::{Delivery, EndView};
use milieu_stream::{End, Overflow, Publisher, Reason, Subscriber};
use milieu_transfer::{Span, Time};
use proptest::prelude::*;

const MACHINES: usize = 3;
const NAMES: [&str; 3] = ["/x", "/y", "/z"];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A machine publishes so many events of a name, if it can have the name.
    Publish(usize, usize, u8),
    /// It gives the name up.
    GiveUp(usize, usize),
    /// It subscribes to a name, or no longer.
    Subscribe(usize, usize),
    Unsubscribe(usize, usize),
    /// It is polled.
    Poll(usize),
    /// All are, until there is nothing to do.
    Settle,
    /// Time passes, and frames arrive.
    Pass(u8),
    /// It dies, and comes back.
    Die(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (m, n) = (0..MACHINES, 0..NAMES.len());
    let step = prop_oneof![
        24 => (m.clone(), n.clone(), 1..8_u8).prop_map(|(m, n, k)| Step::Publish(m, n, k)),
        2 => (m.clone(), n.clone()).prop_map(|(m, n)| Step::GiveUp(m, n)),
        6 => (m.clone(), n.clone()).prop_map(|(m, n)| Step::Subscribe(m, n)),
        2 => (m.clone(), n).prop_map(|(m, n)| Step::Unsubscribe(m, n)),
        20 => m.clone().prop_map(Step::Poll),
        10 => Just(Step::Settle),
        16 => (1..5_u8).prop_map(Step::Pass),
        1 => m.prop_map(Step::Die),
    ];
    proptest::collection::vec(step, 1..300)
}

/// What the engine has done with the frames of an edge.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    frames: u64,
    copies: u64,
    lost: u64,
}

#[derive(Default)]
struct Engine {
    /// By receiver and channel, which no other edge ever has.
    edges: HashMap<(PeerId, u32), Carried>,
    is_calm: bool,
}

struct Slot {
    which: Which,
    lives: u64,
    publishers: [Option<Publisher<u64>>; NAMES.len()],
    readers: [Option<Subscriber>; NAMES.len()],
    /// The last event that it has published of each name.
    said: [u64; NAMES.len()],
    /// The last event that came, by name, incarnation and origin.
    last: HashMap<(usize, String, u64), u64>,
}

struct Model {
    net: Network,
    engine: Arc<Mutex<Engine>>,
    slots: Vec<Slot>,
    seconds: i64,
    published: u64,
}

fn terms() -> Terms {
    Terms {
        window: 4.try_into().unwrap(),
        delivery: Delivery::Every {
            capacity: 3.try_into().unwrap(),
            overflow: Overflow::DropOldest,
        },
        ..Terms::open().typed::<u64>()
    }
}

impl Model {
    fn new(seed: u64, is_apart: bool) -> Model {
        let engine = Arc::new(Mutex::new(Engine::default()));
        let known = Arc::clone(&engine);
        let mut chances = Chances {
            seed,
            lost: 250,
            doubled: 150,
            way_max: Span::from_seconds(3),
        };
        let hub = Hub::scheduled(move |passage: &Passage| {
            let mut engine = known.lock().unwrap();
            let ways = match engine.is_calm {
                true => vec![Span::from_seconds(1)],
                false => chances.pass(passage),
            };
            let edge = (passage.to, passage.channel.0);
            let carried = engine.edges.entry(edge).or_default();
            carried.frames += 1;
            carried.copies += ways.len() as u64;
            carried.lost += u64::from(ways.is_empty());
            ways
        });
        let mut net = Network::new(if is_apart { hub.apart() } else { hub });
        let slots = (0..MACHINES)
            .map(|index| Slot {
                which: net.machine_of(&format!("m{index}"), 1, terms()),
                lives: 1,
                publishers: Default::default(),
                readers: Default::default(),
                said: Default::default(),
                last: HashMap::new(),
            })
            .collect();
        Model {
            net,
            engine,
            slots,
            seconds: 0,
            published: 0,
        }
    }

    fn publish(&mut self, m: usize, n: usize) {
        let slot = &mut self.slots[m];
        if slot.publishers[n].is_none() {
            slot.publishers[n] = self.net.streams(slot.which).publisher(NAMES[n]).ok();
        }
        if let Some(publisher) = &slot.publishers[n] {
            self.published += 1;
            slot.said[n] = self.published;
            let _ = publisher.publish(self.published);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish(m, n, count) => (0..count).for_each(|_| self.publish(m, n)),
            Step::GiveUp(m, n) => self.slots[m].publishers[n] = None,
            Step::Subscribe(m, n) => {
                let slot = &mut self.slots[m];
                let reader = &mut slot.readers[n];
                reader.get_or_insert_with(|| self.net.subscribe(slot.which, NAMES[n]));
            }
            Step::Unsubscribe(m, n) => self.slots[m].readers[n] = None,
            Step::Poll(m) => _ = self.net.link(self.slots[m].which).poll(),
            Step::Settle => self.net.settle(),
            Step::Pass(seconds) => {
                self.seconds += i64::from(seconds);
                self.net.hub.advance(Time::from_seconds(self.seconds));
            }
            Step::Die(m) => {
                let slot = &mut self.slots[m];
                self.net.kill(slot.which);
                slot.lives += 1;
                slot.publishers = Default::default();
                slot.readers = Default::default();
                slot.which = self.net.machine_of(&format!("m{m}"), slot.lives, terms());
            }
        }
    }

    /// Events come in their order, each once, and as they were published.
    fn read(&mut self) {
        for slot in &mut self.slots {
            for (n, reader) in slot.readers.iter_mut().enumerate() {
                let Some(reader) = reader else { continue };
                while let Some(event) = reader.try_next() {
                    let header = event.header();
                    assert_eq!(header.stream.name.as_str(), NAMES[n]);
                    let body = *event.get::<u64>().expect("a number");
                    let life = header.stream.incarnation;
                    let publisher = (n, header.stream.origin.0.to_string(), life);
                    let last = slot.last.insert(publisher, body).unwrap_or(0);
                    assert!(body > last && body <= self.published);
                }
            }
        }
    }

    fn links(&self, m: usize) -> Vec<EndView> {
        let view = self.net.streams(self.slots[m].which).view();
        view.expect("nothing runs").ends
    }

    /// At any time: what is at one end is at the other, lost, or on its way.
    fn check(&self) {
        self.net.audit();
        let engine = self.engine.lock().unwrap();
        let in_flight = self.net.hub.in_flight();
        for receiver in 0..MACHINES {
            let to = self.net.port(self.slots[receiver].which);
            for link in self.links(receiver) {
                let End::In { arrived, .. } = link.end else {
                    continue;
                };
                let carried = engine.edges.get(&(to, link.channel));
                let carried = carried.copied().unwrap_or_default();
                let is_its = |it: &&milieu_stream::engine::InFlight| {
                    (it.to, it.channel.0) == (to, link.channel)
                };
                let flying = in_flight.iter().filter(is_its).count() as u64;
                let name = &link.name;
                // Of a sender that has died, what was on its way is lost too.
                if self.is_there(&link.peer, name, receiver, link.channel) {
                    assert_eq!(carried.copies, arrived + flying, "{name} {carried:?}");
                }
            }
        }
        for sender in 0..MACHINES {
            for link in self.links(sender) {
                let End::Out { sent, .. } = link.end else {
                    continue;
                };
                let Some(to) = self.slots.iter().position(|slot| {
                    let edge = (self.net.port(slot.which), link.channel);
                    engine.edges.get(&edge).is_some_and(|it| it.frames > 0)
                        && self.name(slot) == *link.peer
                }) else {
                    continue;
                };
                let edge = (self.net.port(self.slots[to].which), link.channel);
                assert_eq!(engine.edges[&edge].frames, sent, "{link:?}");
            }
        }
    }

    fn name(&self, slot: &Slot) -> String {
        let at = self.slots.iter().position(|it| it.which == slot.which);
        format!("m{}", at.expect("it is one of them"))
    }

    /// Whether the sender of an edge has it still, so that its frames are too.
    fn is_there(&self, peer: &str, name: &str, receiver: usize, channel: u32) -> bool {
        let receiver = format!("m{receiver}");
        (0..MACHINES).any(|m| {
            let is_it = |link: &EndView| {
                *link.name == *name
                    && *link.peer == *receiver
                    && link.channel == channel
                    && matches!(link.end, End::Out { .. })
            };
            format!("m{m}") == peer && self.links(m).iter().any(is_it)
        })
    }

    /// Nothing is lost any more: in the end all have everything.
    fn calm(&mut self) {
        self.engine.lock().unwrap().is_calm = true;
        self.seconds += 1000;
        self.net.pass(Time::from_seconds(self.seconds));
        self.read();
        self.check();
        assert!(self.net.hub.in_flight().is_empty());
        // An edge that lost its last frames learns of that by the next one.
        for _ in 0..2 {
            for m in 0..MACHINES {
                for n in 0..NAMES.len() {
                    if self.slots[m].publishers[n].is_some() {
                        self.publish(m, n);
                    }
                }
            }
            self.seconds += 1000;
            self.net.pass(Time::from_seconds(self.seconds));
        }
        self.check();
        let engine = self.engine.lock().unwrap();
        for slot in &self.slots {
            let view = self.net.streams(slot.which).view().unwrap();
            for link in &view.ends {
                let End::In {
                    arrived,
                    dropped,
                    missing,
                    ..
                } = &link.end
                else {
                    continue;
                };
                let carried = engine.edges[&(self.net.port(slot.which), link.channel)];
                let distinct = arrived - dropped.of(Reason::Duplicate);
                assert_eq!(carried.frames, distinct + carried.lost, "{link:?}");
                assert_eq!(*missing, carried.lost, "{link:?}");
            }
        }
        drop(engine);
        // Who reads a name that somebody publishes has its last event.
        for n in 0..NAMES.len() {
            let published = |slot: &Slot| slot.publishers[n].is_some().then_some(slot.said[n]);
            let last: Vec<u64> = self.slots.iter().filter_map(published).collect();
            for slot in &mut self.slots {
                let Some(reader) = &mut slot.readers[n] else {
                    continue;
                };
                let seen = std::iter::from_fn(|| reader.try_next()).last();
                let seen = seen.and_then(|event| event.get::<u64>().copied());
                let is_one = seen.is_some_and(|seen| last.contains(&seen));
                assert!(
                    is_one || last.is_empty(),
                    "{n} {:?} {seen:?} {last:?}",
                    slot.which
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn events_are_accounted_for(seed: u64, is_apart: bool, steps in steps()) {
        let mut model = Model::new(seed, is_apart);
        for step in steps {
            model.step(step);
            model.read();
            model.check();
        }
        model.calm();
    }
}
