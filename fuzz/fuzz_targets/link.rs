//! What a peer says to a link, whatever bytes come.
//!
//! The input is control frames, each after a byte that says how long it is. A
//! hello comes before them, so that the rest is listened to.
#![no_main]

use std::collections::VecDeque;
use std::task::Waker;

use libfuzzer_sys::fuzz_target;
use milieu_stream::engine::{Channel, Engine, Frame, Hub, Parcel, Payload};
use milieu_stream::link::{Bounds, Terms, message};
use milieu_stream::{Delivery, Flow, Streams, VirtualClock, operators};
use milieu_transfer::{Origin, Time};

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    let mut frames = Vec::new();
    while let Some((&length, after)) = rest.split_first() {
        let (frame, after) = after.split_at(after.len().min(usize::from(length)));
        read(frame);
        frames.push(frame);
        rest = after;
    }
    read(input);
    hear(&frames);
});

/// What can be read is written as it was.
fn read(bytes: &[u8]) {
    if let Ok(messages) = message::decode(bytes) {
        let mut again = message::begin();
        for message in &messages {
            message::encode(message, &mut again);
        }
        assert_eq!(again, bytes, "{messages:?}");
    }
    if let Ok(question) = message::decode_question(bytes) {
        assert_eq!(message::encode_question(question), bytes);
    }
}

/// A machine that hears this serves others as before, and takes no more than
/// the peer's bounds.
fn hear(frames: &[&[u8]]) {
    let hub = Hub::new().apart();
    let clock = VirtualClock::new(Time::from_seconds(0));
    let machine = |name: &str| {
        let origin = Origin(name.into());
        let streams = Streams::new(operators::catalogue(), clock.clone(), origin, 1);
        let port = hub.join(name);
        let id = port.id();
        let bounds = Bounds {
            names: 8,
            edges: 8,
            waiting: 8,
        };
        let terms = Terms {
            bounds,
            ..Terms::open()
        };
        let link = streams.join(port, terms);
        (streams, link, id)
    };
    let (a, b) = (machine("a"), machine("b"));
    let settle = || while a.1.poll() | b.1.poll() {};
    let publisher = a.0.publisher::<i64>("/t").expect("it is free");
    let wanted = Flow::Stream("/t".into());
    let mut reader = b.0.subscribe(&wanted, Delivery::default()).expect("a flow");
    let all = Flow::Stream("/**".into());
    let every = a.0.subscribe(&all, Delivery::default()).expect("a flow");
    settle();

    let mut stranger = hub.join("stranger");
    settle();
    let mut hello = message::begin();
    let said = message::Message::Hello {
        origin: "stranger".into(),
        incarnation: 1,
        modes: vec!["data-stream/1".parse().expect("an offer")],
    };
    message::encode(&said, &mut hello);
    for (sequence, bytes) in (1..).zip([&hello[..]].iter().chain(frames)) {
        let frame = Frame {
            incarnation: 1,
            sequence,
            time: Time::from_seconds(0),
            mode: 0,
            schema: 0,
            payload: Payload::Bytes((*bytes).into()),
        };
        let parcel = Parcel {
            to: a.2,
            channel: Channel(0),
            frame,
            receipt: None,
        };
        let said = stranger.submit(&mut VecDeque::from([parcel]));
        assert_eq!(said, Ok(()), "it has credit again");
        settle();
        let mut news = Vec::new();
        let _ = stranger.poll(Waker::noop(), &mut news);
    }
    let _ = publisher.publish(7);
    settle();
    assert!(reader.try_next().is_some(), "others are served");
    let view = a.0.view().expect("nothing runs");
    assert_eq!(view.audit(), Ok(()));
    assert!(view.ends.len() <= 1 + 2 * 8);
    drop(every);
}
