//! Streams go on after a restart as if there had been none.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use milieu_stream::language::Language;
use milieu_stream::{
    CannotRestore, Catalogue, Definition, Delivery, Fate, Flow, Functions, Inputs, Operator,
    Output, Publisher, Streams, Subscriber, SystemClock, VirtualClock, WhyNot, operators,
};
use milieu_transfer::{Event, Map, Origin, Rights, Time, Value};
use proptest::prelude::*;

const FLOWS: [&str; 12] = [
    "/numbers | extreme highest of=number window=1m",
    "/numbers | aggregate mean, count, percentile(90) 10s of=number by=key",
    "/numbers | aggregate sum 6s of=number every=2s | change",
    "/numbers | deduplicate within=5s of=number",
    "/numbers | debounce 2s by=key",
    "/numbers | members key while=number < 6 within=5s | transform members",
    "/numbers | hysteresis on=number > 6 off=number < 3",
    "/numbers | sample 3s by=key",
    "/numbers | throttle 3s",
    "/numbers, /others | join as=\"a b\" fresh=5s",
    "/numbers, /others | merge | change of=number by=key least=2",
    "/numbers | outliers of=number count=5",
];

/// A life of a program.
struct Life {
    streams: Streams,
    clock: VirtualClock,
    publishers: Vec<Publisher<Value>>,
    subscribers: Vec<Subscriber>,
}

impl Life {
    fn new(now: i64, snapshot: Option<Vec<u8>>) -> Life {
        let clock = VirtualClock::new(Time::from_seconds(now));
        let origin = Origin("test".into());
        let streams = Streams::new(operators::catalogue(), clock.clone(), origin, 1);
        if let Some(snapshot) = snapshot {
            streams.restore(snapshot).expect("it was written so");
        }
        let subscribers = FLOWS.map(|text| subscribe(&streams, text)).into();
        let names = ["/numbers", "/others"];
        let publishers = names
            .map(|name| streams.publisher(name).expect("free"))
            .into();
        Life {
            streams,
            clock,
            publishers,
            subscribers,
        }
    }

    fn pass(&mut self, until: i64) {
        let until = Time::from_seconds(until);
        while let Some(due) = self.streams.due().filter(|due| *due <= until) {
            self.clock.set(due.max(self.streams.now()));
            self.streams.wake();
        }
        self.clock.set(until);
    }

    fn says(&self, publisher: usize, key: u8, number: u8) {
        let mut body = Map::default();
        body.set("key".into(), format!("k{key}").as_str().into());
        body.set("number".into(), i64::from(number).into());
        let _ = self.publishers[publisher].publish(body.into());
    }

    fn heard(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        for (flow, subscriber) in FLOWS.iter().zip(&mut self.subscribers) {
            while let Some(event) = subscriber.try_next() {
                let value = event.value(Rights::ALL);
                heard.push(format!("{flow}: {:?} {value:?}", event.time()));
            }
        }
        heard
    }

    fn audit(&self) {
        let view = self.streams.view().expect("nothing runs here");
        view.audit().expect("the books balance");
    }
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_restart_is_not_noticed(
        steps in prop::collection::vec((0..4_i64, 0..2_usize, 0..3_u8, 0..10_u8, 0..6_u8), 1..60),
    ) {
        let mut steady = Life::new(1000, None);
        let mut restarted = Life::new(1000, None);
        let mut now = 1000;
        for (wait, publisher, key, number, restart) in steps {
            now += wait;
            for life in [&mut steady, &mut restarted] {
                life.pass(now);
                life.says(publisher, key, number);
            }
            prop_assert_eq!(steady.heard(), restarted.heard());
            if restart == 0 {
                let snapshot = restarted.streams.snapshot().expect("nothing runs here");
                restarted = Life::new(now, Some(snapshot.clone()));
                let again = restarted.streams.snapshot().expect("nothing runs here");
                prop_assert_eq!(&snapshot, &again, "all of it was restored");
                prop_assert_eq!(restarted.streams.not_restored(), Some(Vec::new()));
                // Late subscribers get the set as it is, which is all they get.
                let heard = restarted.heard();
                prop_assert!(heard.iter().all(|line| line.contains("members")), "{:?}", heard);
            }
        }
        for life in [&mut steady, &mut restarted] {
            life.pass(now + 200);
            life.audit();
        }
        prop_assert_eq!(steady.heard(), restarted.heard());
    }

    #[test]
    fn what_is_no_snapshot_is_refused(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
        let streams = Life::new(0, None).streams;
        let headed = [b"milieu streams 2".as_slice(), &garbage].concat();
        for bytes in [garbage, headed] {
            prop_assert!(streams.restore(bytes).is_err());
        }
    }
}

#[test]
fn damaged_and_foreign_snapshots_are_refused_with_reasons() {
    let mut life = Life::new(1000, None);
    life.says(0, 1, 5);
    life.pass(1001);
    let snapshot = life.streams.snapshot().expect("nothing runs here");
    let fresh = || {
        let clock = VirtualClock::new(Time::from_seconds(0));
        Streams::new(operators::catalogue(), clock, Origin("test".into()), 1)
    };
    for length in 0..snapshot.len() {
        let wrong = fresh().restore(snapshot[..length].to_vec());
        let expected = match length {
            0..=15 => CannotRestore::NoSnapshot,
            _ => CannotRestore::Damaged,
        };
        assert_eq!(wrong, Err(expected), "{length}");
    }
    let mut earlier = snapshot.clone();
    earlier[15] = b'1';
    assert_eq!(fresh().restore(earlier), Err(CannotRestore::Version));
    assert_eq!(
        fresh().restore(b"[section]\n".to_vec()),
        Err(CannotRestore::NoSnapshot)
    );
    // Bytes that are changed somewhere harm nobody, whatever they become.
    for at in (16..snapshot.len()).step_by(7) {
        let mut changed = snapshot.clone();
        changed[at] ^= 0x41;
        let streams = fresh();
        if streams.restore(changed).is_ok() {
            let _all = FLOWS.map(|text| subscribe(&streams, text));
            streams
                .view()
                .expect("nothing runs here")
                .audit()
                .expect("the books balance");
        }
    }
}

#[test]
fn what_is_not_restored_is_told_and_what_waits_is_not_lost() {
    let mut life = Life::new(1000, None);
    life.says(0, 1, 5);
    life.pass(1001);
    let mut snapshot = life.streams.snapshot().expect("nothing runs here");
    // A program that knows less: `throttle` is gone.
    let known = operators::catalogue();
    let fewer = known
        .iter()
        .filter(|definition| definition.name != "throttle");
    let fewer = milieu_stream::Catalogue::new(fewer);
    let clock = VirtualClock::new(Time::from_seconds(1001));
    let streams = Streams::new(fewer, clock, Origin("test".into()), 1);
    let early = subscribe(&streams, FLOWS[0]);
    streams
        .restore(snapshot.clone())
        .expect("it was written so");
    let told = streams.not_restored().expect("nothing runs here");
    let why = |text: &str| {
        let mut told = told.iter();
        told.find(|one| one.flow.contains(text))
            .map(|one| one.why.clone())
    };
    assert_eq!(why("extreme"), Some(WhyNot::Runs));
    assert_eq!(why("deduplicate"), Some(WhyNot::Waits));
    let unknown = why("throttle").expect("it is told");
    assert!(
        matches!(&unknown, WhyNot::Unknown(why) if why.contains("`throttle`")),
        "{unknown:?}"
    );
    drop(early);

    // Nobody subscribes for a while, and then somebody does.
    for _ in 0..10 {
        let idle = Streams::new(
            operators::catalogue(),
            VirtualClock::new(Time::from_seconds(1001)),
            Origin("test".into()),
            1,
        );
        idle.restore(snapshot).expect("it was written so");
        snapshot = idle.snapshot().expect("nothing runs here");
    }
    let mut again = Life::new(1001, Some(snapshot.clone()));
    again.says(0, 1, 5);
    assert!(
        again.heard().iter().all(|line| !line.starts_with(FLOWS[3])),
        "it came before"
    );
    // Not for ever, though.
    for _ in 0..20 {
        let idle = Streams::new(
            operators::catalogue(),
            VirtualClock::new(Time::from_seconds(1001)),
            Origin("test".into()),
            1,
        );
        idle.restore(snapshot).expect("it was written so");
        snapshot = idle.snapshot().expect("nothing runs here");
    }
    assert!(snapshot.len() < 64, "{}", snapshot.len());
}

#[test]
fn what_waits_for_an_operator_that_blocks_is_worked_on_in_the_next_life() {
    let (begins, begun) = channel();
    let (go, goes) = channel::<()>();
    let goes = Mutex::new(goes);
    let streams = |register: &dyn Fn(&mut Functions)| {
        let mut catalogue = operators::catalogue();
        register(catalogue.functions_mut());
        Streams::new(catalogue, SystemClock, Origin("test".into()), 1)
    };
    let goes = Arc::new(goes);
    let first = streams(&|functions| {
        let (begins, goes) = (begins.clone(), Arc::clone(&goes));
        functions.transform_blocking("slow", move |number: &i64| {
            let _ = begins.send(());
            let _ = goes.lock().map(|goes| goes.recv());
            number * 2
        });
    });
    let driving = first.drive().expect("a thread");
    let numbers = first.publisher::<i64>("/numbers").expect("free");
    let slow = subscribe(&first, "/numbers | transform $slow");
    for number in 1..=3 {
        let _ = numbers.publish(number);
    }
    begun
        .recv_timeout(Duration::from_secs(20))
        .expect("it begins");
    let snapshot = first.snapshot().expect("nothing runs here");
    drop((slow, driving, go));

    let second = streams(&|functions| {
        functions.transform_blocking("slow", |number: &i64| number * 2);
    });
    second.restore(snapshot).expect("it was written so");
    let _driving = second.drive().expect("a thread");
    let mut slow = subscribe(&second, "/numbers | transform $slow");
    let made: Vec<Option<i64>> = (0..3)
        .map(|_| slow.wait_for(Duration::from_secs(20)))
        .map(|event| event?.get::<i64>().copied())
        .collect();
    assert_eq!(made, [Some(2), Some(4), Some(6)]);
    second
        .view()
        .expect("nothing runs here")
        .audit()
        .expect("the books balance");
}

/// No streams yet, at this second.
fn idle(catalogue: Catalogue, now: i64) -> Streams {
    let clock = VirtualClock::new(Time::from_seconds(now));
    Streams::new(catalogue, clock, Origin("test".into()), 1)
}

/// A snapshot of one flow that has had one event.
fn of_one_flow() -> Vec<u8> {
    let streams = idle(operators::catalogue(), 1000);
    let _high = subscribe(&streams, FLOWS[0]);
    let numbers = streams.publisher::<Value>("/numbers").expect("free");
    let mut body = Map::default();
    body.set("number".into(), 5_i64.into());
    let _ = numbers.publish(body.into());
    streams.snapshot().expect("nothing runs here")
}

#[test]
fn counts_without_measure_are_taken_as_they_are_or_refused() {
    let numbers = [i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX];
    // The count of restarts is the last of it, that of events comes before.
    for (before_the_end, number) in numbers
        .map(|n| (8, n))
        .into_iter()
        .chain(numbers.map(|n| (17, n)))
    {
        let mut snapshot = of_one_flow();
        let at = snapshot.len() - before_the_end;
        snapshot[at..at + 8].copy_from_slice(&number.to_le_bytes());
        let streams = idle(operators::catalogue(), 1000);
        let is_too_many = before_the_end == 17 && number > i64::MAX as u64;
        streams.restore(snapshot).expect("the others are well");
        let told = streams.not_restored().expect("nothing runs here");
        let is_refused = matches!(told[0].why, WhyNot::Refused(_));
        assert_eq!(is_refused, is_too_many, "{number}");
        let mut high = subscribe(&streams, FLOWS[0]);
        let numbers = streams.publisher::<Value>("/numbers").expect("free");
        let mut body = Map::default();
        body.set("number".into(), 6_i64.into());
        let _ = numbers.publish(body.into());
        let event = high.try_next().expect("it is a new high");
        assert!(event.header().sequence > 0);
    }
}

/// An operator that panics when it is asked for what it is called.
struct Frail(&'static str);

impl Operator for Frail {
    fn event(&mut self, _: usize, _: &Event, _: &mut Output<'_>) -> Fate {
        Fate::Used
    }

    fn due(&self) -> Option<Time> {
        assert_ne!(self.0, "due");
        None
    }

    fn held(&self) -> usize {
        assert_ne!(self.0, "held");
        0
    }

    fn snapshot(&self) -> Value {
        assert_ne!(self.0, "snapshot");
        Value::Int(1)
    }

    fn restore(&mut self, _: &Value) -> Result<(), String> {
        assert_ne!(self.0, "restore");
        Ok(())
    }
}

const fn frail(name: &'static str) -> Definition {
    Definition {
        name,
        summary: "",
        inputs: Inputs::One,
        parameters: &[],
        make: |arguments| Ok(Box::new(Frail(arguments.definition.name))),
    }
}

static FRAIL: [Definition; 4] = [
    frail("due"),
    frail("held"),
    frail("restore"),
    frail("snapshot"),
];

#[test]
fn an_operator_that_panics_where_no_event_runs_harms_nobody_else() {
    let life = |snapshot: Option<Vec<u8>>| {
        let known = operators::catalogue();
        let streams = idle(Catalogue::new(known.iter().chain(&FRAIL)), 1000);
        if let Some(snapshot) = snapshot {
            streams.restore(snapshot).expect("it was written so");
        }
        let flows = FRAIL
            .iter()
            .map(|frail| format!("/numbers | {}", frail.name));
        let frail: Vec<_> = flows.map(|flow| subscribe(&streams, &flow)).collect();
        let mut high = subscribe(&streams, FLOWS[0]);
        let numbers = streams.publisher::<Value>("/numbers").expect("free");
        let mut body = Map::default();
        body.set("number".into(), 5_i64.into());
        let _ = numbers.publish(body.into());
        let heard = high.try_next().is_some();
        let view = streams.view().expect("nothing runs here");
        view.audit().expect("the books balance");
        let broken = view.nodes.iter().filter(|node| node.broken.is_some());
        let mut broken: Vec<String> = broken.map(|node| node.kind.to_string()).collect();
        broken.sort();
        let snapshot = streams.snapshot().expect("nothing runs here");
        let told = streams.not_restored().expect("nothing runs here");
        let told: Vec<(String, bool)> = told
            .into_iter()
            .map(|told| (told.flow, matches!(told.why, WhyNot::NotKept(_))))
            .collect();
        // Those that leave are asked once more.
        drop((frail, high));
        assert!(streams.snapshot().is_some());
        (heard, broken, told, snapshot)
    };
    let flow = |name: &str| format!("/numbers | {name}");
    let (heard, broken, told, snapshot) = life(None);
    assert!(heard);
    assert_eq!(broken, ["due"]);
    assert_eq!(told, [(flow("snapshot"), true)]);
    let (heard, broken, told, _) = life(Some(snapshot));
    assert!(!heard, "it was as high before");
    assert_eq!(broken, ["due", "held", "restore"]);
    let refused = ["held", "restore"].map(|name| (flow(name), false));
    assert_eq!(told, [&refused[..], &[(flow("snapshot"), true)]].concat());
}

#[test]
fn what_an_operator_remembers_to_have_had_does_not_come_again() {
    const COUNTS: [&str; 4] = [
        "/numbers | members key | aggregate count 20s",
        "/numbers | members key | transform members | aggregate count 20s",
        "/numbers | members key | filter true | aggregate count 20s",
        "/set | aggregate count 20s",
    ];
    let life = |snapshot: Option<Vec<u8>>, now: i64, flows: &[&str], is_named_first: bool| {
        let clock = VirtualClock::new(Time::from_seconds(now));
        let catalogue = operators::catalogue();
        let streams = Streams::new(catalogue, clock.clone(), Origin("test".into()), 1);
        if let Some(snapshot) = snapshot {
            streams.restore(snapshot).expect("it was written so");
        }
        let members = flow(&streams, "/numbers | members key");
        let name = || streams.publish("/set", &members).expect("it is free");
        let early = is_named_first.then(name);
        let subscribers: Vec<_> = flows.iter().map(|text| subscribe(&streams, text)).collect();
        let named = early.unwrap_or_else(name);
        let numbers = streams.publisher::<Value>("/numbers").expect("free");
        (streams, clock, numbers, subscribers, named)
    };
    let joins = |numbers: &Publisher<Value>, key: &str| {
        let mut body = Map::default();
        body.set("key".into(), key.into());
        let _ = numbers.publish(body.into());
    };
    let counted = |streams: &Streams, clock: &VirtualClock, counts: Vec<Subscriber>| {
        clock.set(Time::from_seconds(1021));
        streams.wake();
        streams
            .view()
            .expect("nothing runs here")
            .audit()
            .expect("the books balance");
        let counts = counts.into_iter().map(|mut count| {
            let event = count.try_next().expect("the window has ended");
            let value = event.value(Rights::ALL).expect("a number");
            assert!(count.try_next().is_none());
            format!("{value:?}")
        });
        counts.collect::<Vec<_>>()
    };
    let one = {
        let (streams, clock, numbers, counts, _named) = life(None, 1001, &COUNTS[..1], true);
        joins(&numbers, "a");
        counted(&streams, &clock, counts).remove(0)
    };
    for (is_named_first, is_dropped, lives) in
        [(true, false, 1), (false, true, 1), (true, false, 3)]
    {
        let (streams, _, numbers, counts, named) = life(None, 1001, &COUNTS, is_named_first);
        joins(&numbers, "a");
        let before = streams.snapshot().expect("nothing runs here");
        if is_dropped {
            drop((counts, named));
        }
        let mut snapshot = streams.snapshot().expect("nothing runs here");
        assert_eq!(snapshot, before);
        for _ in 1..lives {
            let streams = idle(operators::catalogue(), 1002);
            streams.restore(snapshot).expect("it was written so");
            snapshot = streams.snapshot().expect("nothing runs here");
        }
        let again = life(Some(snapshot), 1003, &COUNTS, is_named_first);
        let (streams, clock, _numbers, mut counts, _named) = again;
        // Who comes new has had nothing.
        counts.push(subscribe(
            &streams,
            "/numbers | members key | aggregate count 18s",
        ));
        let mut counted = counted(&streams, &clock, counts);
        assert!(counted.pop().is_some_and(|new| new.contains("Uint(1)")));
        assert_eq!(counted, [&*one; 4], "{is_named_first} {is_dropped} {lives}");
    }

    // Who was not there when the set changed is told.
    let (streams, _, numbers, counts, _named) = life(None, 1001, &COUNTS[..1], true);
    joins(&numbers, "a");
    let snapshot = streams.snapshot().expect("nothing runs here");
    drop(counts);
    let (streams, _, numbers, _, _named) = life(Some(snapshot), 1002, &[], true);
    joins(&numbers, "b");
    let snapshot = streams.snapshot().expect("nothing runs here");
    let (streams, clock, _numbers, counts, _named) = life(Some(snapshot), 1003, &COUNTS[..1], true);
    let counted = counted(&streams, &clock, counts);
    assert_eq!(counted, [one.replace("Uint(1)", "Uint(2)")]);
}

#[test]
fn what_lies_deep_is_kept_and_what_lies_too_deep_costs_no_other() {
    const FLOWS: [&str; 3] = [
        "/deep | debounce 2s",
        "/deeper | debounce 2s",
        "/flat | debounce 2s",
    ];
    let life = |snapshot: Option<Vec<u8>>| {
        let clock = VirtualClock::new(Time::from_seconds(1000));
        let catalogue = operators::catalogue();
        let streams = Streams::new(catalogue, clock.clone(), Origin("test".into()), 1);
        if let Some(snapshot) = snapshot {
            streams.restore(snapshot).expect("it was written so");
        }
        let subscribers = FLOWS.map(|text| subscribe(&streams, text));
        (streams, clock, subscribers)
    };
    let nested = |depth| (1..depth).fold(Value::Null, |value, _| vec![value].into());
    // Bodies may be as deep as the first.
    let bodies = [nested(128), nested(300), nested(1)];
    let (streams, _, _all) = life(None);
    for (name, body) in ["/deep", "/deeper", "/flat"].into_iter().zip(&bodies) {
        let publisher = streams.publisher::<Value>(name).expect("free");
        let _ = publisher.publish(body.clone());
    }
    let mut snapshot = streams.snapshot().expect("nothing runs here");
    let told = streams.not_restored().expect("nothing runs here");
    let told: Vec<_> = told.iter().map(|told| (&*told.flow, &told.why)).collect();
    assert!(
        matches!(told[..], [("/deeper | debounce 2s", WhyNot::NotKept(_))]),
        "{told:?}"
    );
    let heard = |(streams, clock, all): (Streams, VirtualClock, [Subscriber; 3])| {
        clock.set(Time::from_seconds(1002));
        streams.wake();
        all.map(|mut one| Some(one.try_next()?.value(Rights::ALL).expect("a value")))
    };
    let [deep, deeper, flat] = heard(life(Some(snapshot.clone())));
    assert_eq!(deep.as_ref(), Some(&bodies[0]));
    assert_eq!(deeper, None);
    assert_eq!(flat.as_ref(), Some(&bodies[2]));

    // One that is damaged costs no other: what is not restored is told.
    let at = snapshot.windows(6).position(|part| part == b"/deep ");
    let text = at.expect("it is there") + FLOWS[0].len();
    // After the text come a tag and the length of the state.
    snapshot[text + 9] ^= 0xff;
    let damaged = life(Some(snapshot));
    let told = damaged.0.not_restored().expect("nothing runs here");
    assert!(
        matches!(&told[..], [told] if told.flow == FLOWS[0] && matches!(told.why, WhyNot::Refused(_))),
        "{told:?}"
    );
    let [deep, _, flat] = heard(damaged);
    assert_eq!((deep, flat.as_ref()), (None, Some(&bodies[2])));
}

#[test]
fn what_waits_for_an_operator_that_blocks_is_not_lost_where_nobody_drives() {
    let (begins, begun) = channel();
    let (go, goes) = channel::<()>();
    let goes = Mutex::new(goes);
    let slow = move |number: &i64| {
        let _ = begins.send(());
        let _ = goes.lock().map(|goes| goes.recv());
        number * 2
    };
    let streams = |slow: Box<dyn Fn(&i64) -> i64 + Send + Sync>| {
        let mut catalogue = operators::catalogue();
        catalogue.functions_mut().transform_blocking("slow", slow);
        Streams::new(catalogue, SystemClock, Origin("test".into()), 1)
    };
    let soon = Duration::from_secs(20);
    let first = streams(Box::new(slow));
    let driving = first.drive().expect("a thread");
    let numbers = first.publisher::<i64>("/numbers").expect("free");
    let mut slow = subscribe(&first, "/numbers | transform $slow");
    for number in 0..=3 {
        let _ = numbers.publish(number);
    }
    go.send(()).expect("it waits");
    let made = slow.wait_for(soon).expect("an event in time");
    assert_eq!(made.header().sequence, 1);
    for _ in 0..2 {
        begun.recv_timeout(soon).expect("it begins");
    }
    let snapshot = first.snapshot().expect("nothing runs here");
    drop((slow, driving, go));

    let second = streams(Box::new(|number| number * 2));
    second.restore(snapshot).expect("it was written so");
    let numbers = second.publisher::<i64>("/numbers").expect("free");
    let mut slow = subscribe(&second, "/numbers | transform $slow");
    let _ = numbers.publish(4);
    let made = std::iter::from_fn(|| slow.try_next());
    let made = made.map(|event| (event.header().sequence, event.get::<i64>().copied()));
    let made: Vec<(u64, Option<i64>)> = made.collect();
    let expected = [(2, Some(2)), (3, Some(4)), (4, Some(6)), (5, Some(8))];
    assert_eq!(made, expected);
    let view = second.view().expect("nothing runs here");
    view.audit().expect("the books balance");
}

#[test]
fn all_who_come_soon_after_a_restart_go_on_from_before_it() {
    let text = "/numbers | extreme highest of=number window=10d";
    let clock = VirtualClock::new(Time::from_seconds(1000));
    let life = |clock: &VirtualClock| {
        let origin = Origin("test".into());
        Streams::new(operators::catalogue(), clock.clone(), origin, 1)
    };
    let says = |numbers: &Publisher<Value>, number: i64| {
        let mut body = Map::default();
        body.set("number".into(), number.into());
        let _ = numbers.publish(body.into());
    };
    let heard = |subscriber: &mut Subscriber| -> Vec<i64> {
        let events = std::iter::from_fn(|| subscriber.try_next());
        let bodies = events.map(|event| event.value(Rights::ALL).expect("it can be read"));
        let numbers = bodies.map(|body| match body.field("number") {
            Some(Value::Int(number)) => *number,
            other => panic!("{other:?}"),
        });
        numbers.collect()
    };
    let first = life(&clock);
    let numbers = first.publisher::<Value>("/numbers").expect("free");
    let early = subscribe(&first, text);
    says(&numbers, 20);
    let late = subscribe(&first, text);
    says(&numbers, 10);
    // It is what those know who came first that is kept, while they are there.
    let snapshot = first.snapshot().expect("nothing runs here");
    drop(early);
    let without = first.snapshot().expect("nothing runs here");
    assert_ne!(snapshot, without);
    drop(late);
    assert_eq!(first.snapshot().expect("nothing runs here"), without);

    let second = life(&clock);
    second.restore(snapshot).expect("it is one");
    let numbers = second.publisher::<Value>("/numbers").expect("free");
    let mut first_one = subscribe(&second, text);
    says(&numbers, 15);
    says(&numbers, 21);
    clock.set(Time::from_seconds(1030));
    let mut soon = subscribe(&second, text);
    says(&numbers, 19);
    says(&numbers, 22);
    clock.set(Time::from_seconds(1061));
    let mut anew = subscribe(&second, text);
    says(&numbers, 3);
    assert_eq!(heard(&mut first_one), [21, 22]);
    assert_eq!(heard(&mut soon), [22], "20 was there before the restart");
    assert_eq!(heard(&mut anew), [3]);
}
