//! Snapshots of streams: whatever bytes come, they are refused or restored, and
//! operators go on from what they were given.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_stream::language::Language;
use milieu_stream::{Delivery, Streams, VirtualClock, operators};
use milieu_transfer::{Map, Origin, Time, Value};

const FLOWS: [&str; 6] = [
    "/numbers | extreme highest of=number window=1m",
    "/numbers | aggregate mean, percentile(90) 10s of=number by=key",
    "/numbers | deduplicate within=5s of=number",
    "/numbers | debounce 2s by=key",
    "/numbers | members key while=number < 6 within=5s",
    "/numbers | change of=number by=key",
];

fuzz_target!(|input: &[u8]| {
    let clock = VirtualClock::new(Time::from_seconds(1000));
    let origin = Origin("fuzz".into());
    let streams = Streams::new(operators::catalogue(), clock.clone(), origin, 1);
    // Most inputs are to get behind the head.
    let headed = [b"milieu streams 2".as_slice(), input].concat();
    if streams.restore(input.to_vec()).is_err() && streams.restore(headed).is_err() {
        return;
    }
    let mut subscribers = Vec::new();
    for text in FLOWS {
        let source = milieu_diagnostics::Source::new("flow", text);
        let document = Language::Pipeline.parse(&source, streams.catalogue());
        let flow = document.expect("a flow").subscriptions.remove(0).flow;
        let subscriber = streams.subscribe(&flow, Delivery::default());
        subscribers.push(subscriber.expect("it can be run"));
    }
    let numbers = streams.publisher::<Value>("/numbers").expect("free");
    for number in 0..8_i64 {
        clock.set(Time::from_seconds(1000 + number));
        streams.wake();
        let mut body = Map::default();
        body.set("key".into(), (number % 2).into());
        body.set("number".into(), number.into());
        let _ = numbers.publish(body.into());
    }
    let view = streams.view().expect("nothing runs here");
    view.audit().expect("the books balance");
    assert!(view.nodes.iter().all(|node| node.broken.is_none()));
    let snapshot = streams.snapshot().expect("nothing runs here");
    streams.restore(snapshot).expect("what was written is read");
});
