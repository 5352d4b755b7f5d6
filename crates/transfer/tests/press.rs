//! Receivers that take events from queues of their own share what is encoded.

use std::collections::VecDeque;
use std::sync::Arc;

use milieu_transfer::{
    Cbor, DataStream, Decode, Delta, Error, Event, Header, Limits, Map, Mode, Name, Origin, Place,
    Press, Rights, Stream, Time, Value,
};
use proptest::prelude::*;

fn stream() -> Arc<Stream> {
    Arc::new(Stream {
        name: Name::root(),
        origin: Origin("o".into()),
        incarnation: 1,
    })
}

fn event(stream: &Arc<Stream>, sequence: u64) -> Event {
    let header = Header {
        stream: Arc::clone(stream),
        time: Time::from_seconds(sequence as i64),
        sequence,
        quality: None,
    };
    let mut body = Map::default();
    let number = sequence as i64;
    body.set("number".into(), number.into());
    body.set("third".into(), (number / 3).into());
    Event::of_value(header, body.into())
}

fn modes() -> [Arc<dyn Mode>; 3] {
    [
        Arc::new(Cbor::default()),
        Arc::new(Delta::default()),
        Arc::new(DataStream::default()),
    ]
}

#[test]
fn a_thousand_that_keep_up_cost_one_encoding() {
    let stream = stream();
    for mode in modes() {
        let mut press = Press::new(mode, Rights::NONE, 64);
        let mut places: Vec<Place> = (0..1000).map(|_| press.join()).collect();
        for sequence in 1..=10 {
            let event = event(&stream, sequence);
            let frames: Vec<Arc<[u8]>> = places
                .iter_mut()
                .map(|place| press.frame(place, &event).expect("it can be said"))
                .collect();
            assert!(frames.iter().all(|frame| Arc::ptr_eq(frame, &frames[0])));
            assert_eq!(press.encodings(), sequence);
        }
    }
}

#[test]
fn what_cannot_be_said_is_an_error_for_each_and_disturbs_no_other() {
    let stream = stream();
    for mode in modes() {
        let mut press = Press::new(Arc::clone(&mode), Rights::NONE, 64);
        let (mut one, mut other) = (press.join(), press.join());
        let mut decoder = mode.decoder(Limits::default(), Rights::NONE);
        for sequence in 1..=3 {
            let header = event(&stream, 100 + sequence).header().clone();
            let wrong = Event::of_value(header, Value::Link(0));
            for place in [&mut one, &mut other] {
                assert_eq!(press.frame(place, &wrong), Err(Error::Dangling(0)));
            }
            let event = event(&stream, sequence);
            let frame = press.frame(&mut one, &event).expect("it can be said");
            let read = decoder.decode(&frame).expect("it can be read");
            assert_eq!(read.header().sequence, sequence);
        }
    }
}

/// A receiver: its queue, which has room for four, and its decoder.
struct Receiver {
    queue: VecDeque<Event>,
    place: Place,
    decoder: Box<dyn Decode>,
    last: Option<Event>,
}

impl Receiver {
    fn take(&mut self, press: &mut Press) {
        let Some(event) = self.queue.pop_front() else {
            return;
        };
        let frame = press
            .frame(&mut self.place, &event)
            .expect("it can be said");
        self.read(&frame, &event);
        self.last = Some(event);
    }

    fn read(&mut self, frame: &[u8], event: &Event) {
        let read = self
            .decoder
            .decode(frame)
            .expect("it has all that it needs");
        assert_eq!(read.header(), event.header());
        assert_eq!(read.value(Rights::NONE), event.value(Rights::NONE));
    }
}

proptest! {
    /// Whoever is slow, loses events, comes late, leaves or asks again can read
    /// every frame that it gets.
    #[test]
    fn every_frame_can_be_read(
        steps in prop::collection::vec((0..10_u8, 0..6_usize), 1..200),
        kind in 0..3_usize,
    ) {
        let stream = stream();
        let mode = Arc::clone(&modes()[kind]);
        let mut press = Press::new(Arc::clone(&mode), Rights::NONE, 6);
        let mut receivers: Vec<Receiver> = Vec::new();
        let mut sequence = 0;
        let mut newest: Option<Event> = None;
        for (step, which) in steps {
            let known = receivers.len();
            match step {
                0 => receivers.push(Receiver {
                    // A stream that keeps its last event gives it at once.
                    queue: newest.iter().filter(|_| which < 4).cloned().collect(),
                    place: press.join(),
                    decoder: mode.decoder(Limits::default(), Rights::NONE),
                    last: None,
                }),
                1 if known > 2 => {
                    let gone = receivers.remove(which % known);
                    press.leave(&gone.place);
                }
                2 if known > 0 => {
                    let receiver = &mut receivers[which % known];
                    if let Some(event) = receiver.last.clone() {
                        let frame = press.again(&mut receiver.place, &event).expect("as before");
                        receiver.read(&frame, &event);
                    }
                }
                3..=5 => {
                    sequence += 1;
                    let event = event(&stream, sequence);
                    newest = Some(event.clone());
                    for receiver in &mut receivers {
                        if receiver.queue.len() == 4 {
                            receiver.queue.pop_front();
                        }
                        receiver.queue.push_back(event.clone());
                    }
                }
                _ if known > 0 => receivers[which % known].take(&mut press),
                _ => {}
            }
        }
        for receiver in &mut receivers {
            while !receiver.queue.is_empty() {
                receiver.take(&mut press);
            }
        }
    }
}
