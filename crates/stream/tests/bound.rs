//! Names that stand for what a flow says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use milieu_stream::language::Language;
use milieu_stream::names::{Binding, LayerValues, Query, Rights, Scope, Service};
use milieu_stream::{
    CannotName, Delivery, Flow, Publisher, Streams, Subscriber, VirtualClock, operators,
};
use milieu_transfer::{Map, Origin, Time, Value};

struct Stage {
    streams: Streams,
    clock: VirtualClock,
    presence: Publisher<Value>,
}

const DEVICES: &str =
    "/presence | members '/devices/' + device while=room == '005' && present within=1m";

impl Stage {
    fn new() -> Stage {
        let clock = VirtualClock::new(Time::from_seconds(0));
        let origin = Origin("test".into());
        let streams = Streams::new(operators::catalogue(), clock.clone(), origin, 1);
        Stage {
            presence: streams.publisher("/presence").expect("free"),
            streams,
            clock,
        }
    }

    fn flow(&self, text: &str) -> Flow {
        let source = milieu_diagnostics::Source::new("flow", text);
        let document = Language::Pipeline.parse(&source, self.streams.catalogue());
        document.expect("a flow").subscriptions.remove(0).flow
    }

    fn subscribe(&self, text: &str) -> Subscriber {
        let delivery = Delivery::default();
        let flow = self.flow(text);
        self.streams
            .subscribe(&flow, delivery)
            .expect("it can be run")
    }

    fn says(&self, device: &str, room: &str, present: bool) {
        let mut body = Map::default();
        body.set("device".into(), device.into());
        body.set("room".into(), room.into());
        body.set("present".into(), present.into());
        let _ = self.presence.publish(body.into());
    }

    fn pass(&self, second: i64) {
        let until = Time::from_seconds(second);
        while let Some(due) = self.streams.due().filter(|due| *due <= until) {
            self.clock.set(due);
            self.streams.wake();
        }
        self.clock.set(until);
    }

    fn audit(&self) {
        let view = self.streams.view().expect("nothing runs here");
        view.audit().expect("the books balance");
    }
}

fn numbers(subscriber: &mut Subscriber) -> Vec<u64> {
    let events = std::iter::from_fn(|| subscriber.try_next());
    events
        .filter_map(|event| event.get::<u64>().copied())
        .collect()
}

#[test]
fn members_join_and_leave_and_those_who_stay_lose_nothing() {
    let stage = Stage::new();
    let names = ["/devices/lamp", "/devices/door", "/devices/fan"];
    let publishers = names.map(|name| stage.streams.publisher::<u64>(name).expect("free"));
    let devices = stage.flow(DEVICES);
    let bound = stage
        .streams
        .bind_flow("/labs/005/devices", &devices)
        .expect("free");
    let mut seen = stage.subscribe("/labs/005/devices");
    let mut direct = stage.subscribe("/devices/lamp");
    let mut number = 0;
    let mut all = || {
        for publisher in &publishers {
            let _ = publisher.publish(number);
            number += 1;
        }
    };
    all();
    assert_eq!(numbers(&mut seen), [0_u64; 0]);
    stage.says("lamp", "005", true);
    all();
    assert_eq!(numbers(&mut seen), [3]);
    stage.says("door", "005", true);
    all();
    assert_eq!(numbers(&mut seen), [6, 7]);
    // The door goes elsewhere, the fan comes, the lamp stays.
    stage.says("door", "006", true);
    stage.says("fan", "005", true);
    stage.says("lamp", "005", true);
    all();
    assert_eq!(numbers(&mut seen), [9, 11]);
    stage.says("fan", "005", false);
    all();
    assert_eq!(numbers(&mut seen), [12]);
    assert_eq!(numbers(&mut direct), [0, 3, 6, 9, 12]);
    // Nothing is heard of the lamp for a minute.
    stage.pass(59);
    all();
    assert_eq!(numbers(&mut seen), [15]);
    stage.pass(60);
    all();
    assert_eq!(numbers(&mut seen), [0_u64; 0]);
    assert_eq!(bound.fault(), None);
    stage.audit();
    drop(bound);
    let name = Query::parse("/labs/005/devices").expect("a query");
    assert_eq!(stage.streams.list(name, Rights::all()), Some(Vec::new()));
}

#[test]
fn services_are_members_too_and_whoever_comes_later_sees_them() {
    let stage = Stage::new();
    let attributes = [("kind", "printer")];
    let printer = Service::new("ipp://23/", attributes, Time::MAX).expect("a service");
    let _printer = stage
        .streams
        .serve("/devices/printer", printer)
        .expect("free");
    let published = stage
        .streams
        .publish("/labs/005/changes", &stage.flow(DEVICES));
    let _published = published.expect("free");
    let mut changes = stage.subscribe(DEVICES);
    stage.says("printer", "005", true);
    // Where it is published the set is there for those that come after the event.
    let bound = stage
        .streams
        .bind_flow("/labs/005/devices", &stage.flow("/labs/005/changes"));
    let _bound = bound.expect("free");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let members = Query::parse("/labs/005/devices").expect("a query");
    let _watching = stage.streams.watch(members, Rights::all(), move |changes| {
        into.lock().expect("unharmed").push(format!("{changes:?}"));
    });
    stage.says("printer", "006", true);
    let heard = heard.lock().expect("unharmed");
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].contains("/devices/printer"), "{heard:?}");
    assert!(!heard[1].contains("/devices/printer"), "{heard:?}");
    let shown = |value: Value| format!("{:?} {:?}", value.field("joined"), value.field("left"));
    let events = std::iter::from_fn(|| changes.try_next());
    let bodies: Vec<String> = events
        .map(|event| shown(event.value(milieu_transfer::Rights::ALL).expect("a value")))
        .collect();
    assert_eq!(bodies.len(), 2);
    assert!(
        bodies[0].starts_with("Some(List([Text(\"/devices/printer\")]))"),
        "{bodies:?}"
    );
    assert!(
        bodies[1].ends_with("Some(List([Text(\"/devices/printer\")]))"),
        "{bodies:?}"
    );
}

#[test]
fn what_leads_to_itself_is_refused() {
    let stage = Stage::new();
    let circle = stage.flow("/labs/*/devices | members value");
    let refused = stage.streams.bind_flow("/labs/005/devices", &circle);
    let Err(CannotName::Refused(refusal)) = refused else {
        panic!("it reads itself");
    };
    assert!(
        refusal.message.contains("would lead to itself"),
        "{refusal}"
    );
    // Nothing is left of it.
    assert!(stage.streams.view().expect("nothing runs").nodes.len() == 1);

    // By way of what another flow publishes.
    let through = stage.flow("/labs/005/devices | filter value > 3");
    let _published = stage.streams.publish("/high", &through).expect("free");
    let circle = stage.flow("/high | members device");
    assert!(
        stage
            .streams
            .bind_flow("/labs/005/devices", &circle)
            .is_err()
    );

    // By what is put there later: the name keeps what it had.
    let later = stage.flow("/later, /presence | merge | members '/devices/' + device");
    let bound = stage
        .streams
        .bind_flow("/labs/005/devices", &later)
        .expect("free");
    let lamp = stage
        .streams
        .publisher::<u64>("/devices/lamp")
        .expect("free");
    let mut seen = stage.subscribe("/labs/005/devices");
    stage.says("lamp", "", true);
    let _ = lamp.publish(1);
    assert_eq!(numbers(&mut seen), [1]);
    let binding = milieu_stream::names::Binding::new([Query::parse("/high").expect("a query")]);
    let named = stage
        .streams
        .bind("/later", binding.expect("small"))
        .expect("free");
    stage.says("other", "", true);
    let fault = bound.fault().expect("it leads to itself now");
    assert!(fault.contains("would lead to itself"), "{fault}");
    let _ = lamp.publish(2);
    assert_eq!(numbers(&mut seen), [2]);
    stage.audit();

    // One member that would: the others hold.
    drop(named);
    let sets = stage.streams.publisher::<Value>("/sets").expect("free");
    let bound = stage
        .streams
        .bind_flow("/set", &stage.flow("/sets"))
        .expect("free");
    let mut seen = stage.subscribe("/set");
    let _ = sets.publish(
        vec![
            Value::from("/set"),
            "/devices/*".into(),
            "/devices/lamp".into(),
        ]
        .into(),
    );
    let _ = lamp.publish(3);
    assert_eq!(numbers(&mut seen), [3]);
    assert!(bound.fault().is_some());
    let _ = sets.publish("/devices/lamp".into());
    assert_eq!(bound.fault(), None);
}

#[test]
fn a_binding_never_leads_further_than_its_author_may_read() {
    let stage = Stage::new();
    let lamp = stage
        .streams
        .publisher::<u64>("/devices/lamp")
        .expect("free");
    let diary = stage
        .streams
        .publisher::<u64>("/private/diary")
        .expect("free");
    let sets = stage.streams.publisher::<Value>("/sets").expect("free");
    let rights = Rights {
        read: Scope::parse(["/sets", "/devices/**"]).expect("queries"),
        publish: Scope::parse(["/guests/**"]).expect("queries"),
        ..Rights::default()
    };
    let author = stage.streams.reader(LayerValues::new(), rights);
    let flow = stage.flow("/sets");
    assert!(author.bind_flow("/labs/005/devices", &flow).is_err());
    let bound = author
        .bind_flow("/guests/all", &flow)
        .expect("it may publish there");
    let _ = sets.publish(vec![Value::from("/private/diary"), "/devices/lamp".into()].into());
    // Whoever may read all does not read it by this name.
    let mut seen = stage.subscribe("/guests/all");
    let (_, _) = (lamp.publish(1), diary.publish(2));
    assert_eq!(numbers(&mut seen), [1]);
    assert!(bound.fault().is_some());
}

#[test]
fn an_edge_that_was_refused_is_the_fault_of_nobody_else() {
    let stage = Stage::new();
    let streams = &stage.streams;
    let out = streams.publish("/out", &stage.flow("/room | filter value > 0"));
    let _out = out.expect("free");
    let _bound = streams
        .bind_flow("/room", &stage.flow("/presence | members device"))
        .expect("free");
    stage.says("/out", "005", true);
    let publisher = streams
        .publisher::<u64>("/x")
        .expect("it depends on nothing");
    let mut seen = stage.subscribe("/x");
    let _ = publisher.publish(7);
    assert_eq!(numbers(&mut seen), [7]);
    stage.audit();
}

#[test]
fn a_name_that_is_to_stand_for_too_many_stands_for_some() {
    const TOO_MANY: usize = 65_537;
    let stage = Stage::new();
    let sets = stage.streams.publisher::<Value>("/sets").expect("free");
    let bound = stage
        .streams
        .bind_flow("/all", &stage.flow("/sets"))
        .expect("free");
    let first = stage.streams.publisher::<u64>("/n/0").expect("free");
    let mut seen = stage.subscribe("/all");
    let name = |n: usize| Value::from(format!("/n/{n}"));
    let _ = sets.publish((0..TOO_MANY).map(name).collect::<Vec<_>>().into());
    let _ = first.publish(7);
    assert_eq!(numbers(&mut seen), [7]);
    let fault = bound.fault().expect("one is left out");
    assert!(fault.contains("65536"), "{fault}");
}

#[test]
fn members_that_come_and_go_leave_nothing_behind() {
    let stage = Stage::new();
    let mut seen = stage.subscribe(DEVICES);
    for second in 0..30 {
        stage.pass(second);
        stage.says("lamp", "005", true);
        stage.says("lamp", "005", false);
    }
    stage.says("lamp", "005", true);
    while seen.try_next().is_some() {}
    // It is looked at when the first minute is over, and then not before another.
    stage.pass(60);
    assert_eq!(stage.streams.due(), Some(Time::from_seconds(89)));
    stage.pass(89);
    assert!(seen.try_next().is_some(), "it has left");
    assert_eq!(stage.streams.due(), None);
}

/// What is in both sets, before and after, loses and doubles nothing, whoever
/// publishes meanwhile.
#[test]
fn who_stays_loses_nothing_while_others_publish() {
    const REBINDINGS: usize = 3000;
    let stage = Stage::new();
    let streams = &stage.streams;
    let names = ["/m/0", "/m/1", "/m/2", "/m/3"];
    let publishers = names.map(|name| streams.publisher::<u64>(name).expect("free"));
    let set = |names: &[&str]| {
        let targets = names.iter().map(|name| Query::parse(name).expect("a name"));
        Binding::new(targets).expect("a set")
    };
    // By hand, and by what a flow says.
    let sets = streams.publisher::<Vec<String>>("/sets").expect("free");
    let by_flow = stage.flow("/sets");
    let _by_flow = streams.bind_flow("/by_flow", &by_flow).expect("free");
    let by_hand = streams.bind("/by_hand", set(&names[..1])).expect("free");
    let _ = sets.publish(vec![names[0].to_owned()]);
    let room = Delivery::Every {
        capacity: std::num::NonZeroU32::MAX,
        overflow: milieu_stream::Overflow::DropOldest,
    };
    // Behind an operator, beside it, and by a name for that name.
    let _alias = streams.bind("/alias", set(&["/by_hand"])).expect("free");
    let texts = [
        "/by_hand",
        "/by_hand | filter value >= 0",
        "/alias",
        "/by_flow",
    ];
    let mut seen = texts.map(|text| {
        let subscribed = streams.subscribe(&stage.flow(text), room);
        subscribed.expect("it can be run")
    });
    let is_over = AtomicBool::new(false);
    let published = thread::scope(|scope| {
        let publishing = publishers.each_ref().map(|publisher| {
            scope.spawn(|| {
                let mut count = 0;
                while !is_over.load(Ordering::Acquire) {
                    let _ = publisher.publish(count);
                    count += 1;
                    thread::yield_now();
                }
                count
            })
        });
        for time in 0..REBINDINGS {
            // The first stays; the others come and go.
            let members = &names[..=time % 3 + 1];
            by_hand.rebind(set(members)).expect("they are names");
            let said = members.iter().map(|name| (*name).to_owned());
            let _ = sets.publish(said.collect());
        }
        is_over.store(true, Ordering::Release);
        publishing.map(|thread| thread.join().expect("it publishes"))
    });
    assert!(published[0] > 0);
    for (subscriber, text) in seen.iter_mut().zip(texts) {
        let events: Vec<_> = std::iter::from_fn(|| subscriber.try_next()).collect();
        let of = |name: &str| -> Vec<u64> {
            let of_it = events.iter();
            let of_it = of_it.filter(|event| event.header().stream.name.as_str() == name);
            let numbers = of_it.map(|event| *event.get::<u64>().expect("a number"));
            numbers.collect()
        };
        assert!(
            of(names[0]).into_iter().eq(0..published[0]),
            "{text}: who stays is heard once"
        );
        for name in &names[1..] {
            let is_rising = of(name).windows(2).all(|pair| pair[0] < pair[1]);
            assert!(is_rising, "{text}: {name} is heard twice or out of order");
        }
    }
    stage.audit();
}
