//! The engine inside a process keeps the contract of engines.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

use milieu_stream::engine::{
    Chances, Channel, Engine, Frame, Hub, InFlight, News, Parcel, Passage, Payload, PeerId, Port,
    Refused, conformance,
};
use milieu_transfer::{Span, Time};

const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn a_hub_keeps_the_contract() {
    conformance::all(PATIENCE, || {
        let hub = Hub::new();
        move |name: &str| hub.join(name)
    });
}

#[test]
fn a_hub_of_bytes_alone_keeps_the_contract() {
    conformance::all(PATIENCE, || {
        let hub = Hub::new().apart();
        move |name: &str| hub.join(name)
    });
}

#[test]
fn a_schedule_without_losses_keeps_the_contract() {
    conformance::all(PATIENCE, || {
        let hub = Hub::scheduled(|_: &Passage| vec![Span::ZERO]);
        move |name: &str| hub.join(name)
    });
}

const WAY: Channel = Channel(1);

fn frame(sequence: u64) -> Frame {
    Frame {
        incarnation: 1,
        sequence,
        time: Time::from_seconds(0),
        mode: 0,
        schema: 0,
        payload: Payload::Bytes(Vec::new().into()),
    }
}

fn send(port: &mut Port, to: PeerId, sequence: u64) -> Result<(), Refused> {
    let parcel = Parcel {
        to,
        channel: WAY,
        frame: frame(sequence),
        receipt: None,
    };
    port.submit(&mut VecDeque::from([parcel]))
}

fn arrived(port: &mut Port) -> Vec<u64> {
    let mut news = Vec::new();
    let _ = port.poll(Waker::noop(), &mut news);
    let frames = news.into_iter().filter_map(|news| match news {
        News::Frame(_, _, frame) => Some(frame.sequence),
        _ => None,
    });
    frames.collect()
}

#[test]
fn a_schedule_decides_when_and_how_often_frames_arrive() {
    let seconds = Span::from_seconds;
    let hub = Hub::scheduled(move |passage: &Passage| match passage.sequence {
        1 => vec![seconds(3)],
        2 => vec![],
        3 => vec![seconds(1), seconds(2)],
        _ => vec![Span::ZERO],
    });
    hub.advance(Time::from_seconds(100));
    let (mut a, mut b) = (hub.join("a"), hub.join("b"));
    b.grant(a.id(), WAY, 10);
    for sequence in 1..=4 {
        assert_eq!(send(&mut a, b.id(), sequence), Ok(()));
    }
    let in_flight = |sequence| InFlight {
        from: a.id(),
        to: b.id(),
        channel: WAY,
        sequence,
    };
    assert_eq!(hub.in_flight(), [1, 3, 3, 4].map(in_flight));
    assert_eq!(arrived(&mut b), [4]);
    assert_eq!(hub.due(), Some(Time::from_seconds(101)));
    hub.advance(Time::from_seconds(101));
    assert_eq!(arrived(&mut b), [3]);
    hub.advance(Time::from_seconds(110));
    assert_eq!(arrived(&mut b), [3, 1]);
    assert_eq!((hub.due(), hub.in_flight()), (None, Vec::new()));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let hub = Hub::scheduled(Chances {
            seed,
            lost: 200,
            doubled: 200,
            way_max: Span::from_seconds(5),
        });
        hub.advance(Time::from_seconds(0));
        let (mut a, mut b) = (hub.join("a"), hub.join("b"));
        b.grant(a.id(), WAY, 200);
        for sequence in 1..=200 {
            assert_eq!(send(&mut a, b.id(), sequence), Ok(()));
        }
        hub.advance(Time::from_seconds(5));
        arrived(&mut b)
    };
    let once = run(1);
    assert_eq!(once, run(1));
    assert_ne!(once, run(2));
    assert!(!once.is_sorted(), "some overtake others");
    assert!((120..280).contains(&once.len()), "{}", once.len());
}

#[test]
fn what_is_on_its_way_from_a_port_that_dies_is_lost() {
    let hub = Hub::scheduled(|_: &Passage| vec![Span::from_seconds(1)]);
    hub.advance(Time::from_seconds(0));
    let (mut a, mut b) = (hub.join("a"), hub.join("b"));
    b.grant(a.id(), WAY, 10);
    assert_eq!(send(&mut a, b.id(), 1), Ok(()));
    hub.advance(Time::from_seconds(1));
    assert_eq!(send(&mut a, b.id(), 2), Ok(()));
    hub.kill(a.id());
    hub.advance(Time::from_seconds(9));
    assert_eq!(arrived(&mut b), [1]);
    assert_eq!(send(&mut a, b.id(), 3), Err(Refused::Closed));
    assert!(hub.in_flight().is_empty());
}
