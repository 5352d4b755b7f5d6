//! Peers that do what they should not, and peers in threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::network::{Network, Which, flow};
use milieu_stream::engine::{
    Capabilities, Channel, CloseReason, Engine, Frame, Hub, News, Parcel, Payload, PeerId, Port,
    Refused,
};
use milieu_stream::link::message::{self, Message};
use milieu_stream::link::{Bounds, Refusals, Terms};
use milieu_stream::names::{Binding, Query, Rights, Scope};
use milieu_stream::{Delivery, End, Overflow, Streams, SystemClock, operators};
use milieu_transfer::{Offer, Origin, Time};

/// A port that says whatever a test wants.
struct Stranger {
    port: Port,
    sequence: u64,
    heard: Vec<News>,
}

const CONTROL: Channel = Channel(0);

impl Stranger {
    fn new(net: &Network) -> Stranger {
        let port = net.hub.join("stranger");
        net.settle();
        Stranger {
            port,
            sequence: 0,
            heard: Vec::new(),
        }
    }

    fn listen(&mut self) {
        while self.port.poll(Waker::noop(), &mut self.heard).is_ready() {}
    }

    fn submit(&mut self, to: PeerId, channel: Channel, bytes: Vec<u8>) -> Result<(), Refused> {
        self.sequence += 1;
        let frame = Frame {
            incarnation: 1,
            sequence: self.sequence,
            time: Time::from_seconds(0),
            mode: 1,
            schema: 1,
            payload: Payload::Bytes(bytes.into()),
        };
        self.port.submit(&mut VecDeque::from([Parcel {
            to,
            channel,
            frame,
            receipt: None,
        }]))
    }

    fn say(&mut self, net: &Network, to: Which, messages: &[Message]) {
        let mut bytes = message::begin();
        for message in messages {
            message::encode(message, &mut bytes);
        }
        assert_eq!(self.submit(net.port(to), CONTROL, bytes), Ok(()));
        net.settle();
    }

    fn hello(&mut self, net: &Network, to: Which) {
        let hello = Message::Hello {
            origin: "stranger".into(),
            incarnation: 1,
            modes: offers(),
        };
        self.say(net, to, &[hello]);
    }
}

fn offers() -> Vec<Offer> {
    vec!["data-stream/1".parse().unwrap()]
}

fn announce(number: u64, name: &str) -> Message {
    Message::Announce {
        number,
        name: name.parse().unwrap(),
        retains: false,
    }
}

fn want(number: u64, channel: u32) -> Message {
    Message::Want {
        number,
        channel,
        delivery: Delivery::default(),
        modes: offers(),
    }
}

/// Two machines that serve each other, whatever the stranger does meanwhile.
fn unharmed(terms: Terms, stranger: impl FnOnce(&mut Stranger, &Network, Which)) -> Refusals {
    let mut net = Network::new(Hub::new().apart());
    let a = net.machine_of("a", 1, terms);
    let b = net.machine("b");
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    let mut other = Stranger::new(&net);
    stranger(&mut other, &net, a);
    net.settle();
    let _ = publisher.publish(1);
    net.settle();
    assert!(reader.try_next().is_some());
    net.audit();
    let refusals = net.link(a).refusals().unwrap();
    other.port.close(CloseReason::Misbehaved);
    net.settle();
    let _ = publisher.publish(2);
    net.settle();
    assert!(reader.try_next().is_some());
    refusals
}

#[test]
fn garbage_is_refused_and_counted() {
    let refusals = unharmed(Terms::open(), |stranger, net, a| {
        for bytes in [
            vec![],
            vec![9],
            vec![1, 77],
            vec![1, 2, 0xff],
            vec![0xff; 70_000],
        ] {
            assert_eq!(stranger.submit(net.port(a), CONTROL, bytes), Ok(()));
            net.settle();
        }
    });
    assert_eq!(refusals.malformed, 5);
}

#[test]
fn a_control_frame_that_is_an_event_is_refused() {
    let mut net = Network::new(Hub::new());
    let a = net.machine("a");
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    let mut own = net.subscribe(a, "/t");
    let _ = publisher.publish(1);
    let event = own.try_next().unwrap();
    let mut stranger = Stranger::new(&net);
    let frame = Frame {
        incarnation: 1,
        sequence: 1,
        time: Time::from_seconds(0),
        mode: 0,
        schema: 0,
        payload: Payload::Event(event),
    };
    let parcel = Parcel {
        to: net.port(a),
        channel: CONTROL,
        frame,
        receipt: None,
    };
    assert_eq!(stranger.port.submit(&mut VecDeque::from([parcel])), Ok(()));
    net.settle();
    assert_eq!(net.link(a).refusals().unwrap().malformed, 1);
}

#[test]
fn what_comes_before_the_hello_and_on_wrong_channels_is_refused() {
    let refusals = unharmed(Terms::open(), |stranger, net, a| {
        stranger.say(net, a, &[announce(1, "/s"), want(1, 5)]);
        assert!(!net.names(a).contains(&"/s".to_owned()));
        stranger.hello(net, a);
        // A name that there never was, and the channel of control.
        stranger.say(net, a, &[want(99, 5), want(1, 0)]);
        let other_life = Message::Hello {
            origin: "stranger".into(),
            incarnation: 2,
            modes: Vec::new(),
        };
        stranger.say(net, a, &[other_life]);
    });
    assert_eq!(refusals.misplaced, 5);
}

#[test]
fn absurd_credit_and_events_that_nobody_wants_harm_nobody() {
    let refusals = unharmed(Terms::open(), |stranger, net, a| {
        stranger.port.grant(net.port(a), Channel(7), u64::MAX);
        stranger.hello(net, a);
        stranger.say(net, a, &[want(1, 7)]);
        let refused = stranger.submit(net.port(a), Channel(7), vec![1]);
        assert_eq!(refused, Err(Refused::NoCredit));
    });
    assert_eq!(refusals, Refusals::default());
}

#[test]
fn a_flood_ends_where_credit_ends() {
    unharmed(Terms::open(), |stranger, net, a| {
        let mut taken = 0;
        while stranger.submit(net.port(a), CONTROL, vec![1]).is_ok() {
            taken += 1;
        }
        assert!((1..=16).contains(&taken), "{taken}");
    });
}

/// The ends of edges to the stranger.
fn own(net: &Network, a: Which) -> Vec<End> {
    let links = net.streams(a).view().unwrap().ends.into_iter();
    let its = links.filter(|link| &*link.peer == "stranger");
    its.map(|link| link.end).collect()
}

/// How much waits for the stranger.
fn waiting(net: &Network, a: Which) -> u64 {
    let waits = |end: &End| match end {
        End::Out { waiting, .. } => *waiting,
        End::In { .. } => 0,
    };
    own(net, a).iter().map(waits).sum()
}

#[test]
fn a_name_that_is_wanted_again_has_one_edge() {
    let refusals = unharmed(Terms::open(), |stranger, net, a| {
        stranger.hello(net, a);
        for channel in 1..=100 {
            stranger.say(net, a, &[want(1, channel)]);
        }
        assert_eq!(own(net, a).len(), 1);
    });
    assert_eq!(refusals.misplaced, 99);
}

#[test]
fn a_peer_that_hears_nothing_ends_no_more_edges_than_its_bounds() {
    let bounds = Bounds {
        names: 3,
        edges: 4,
        waiting: 100,
    };
    let terms = Terms {
        bounds,
        ..Terms::open()
    };
    let refusals = unharmed(terms, |stranger, net, a| {
        stranger.hello(net, a);
        let publisher = net.streams(a).publisher::<i64>("/u").unwrap();
        net.settle();
        for channel in 1..=10 {
            let delivery = Delivery::Every {
                capacity: 1.try_into().unwrap(),
                overflow: Overflow::Close,
            };
            let wanted = Message::Want {
                number: 2,
                channel,
                delivery,
                modes: offers(),
            };
            stranger.say(net, a, &[wanted]);
            for value in 1..=2 {
                let _ = publisher.publish(value);
                net.settle();
            }
            assert_eq!(own(net, a).len(), 0);
        }
    });
    assert_eq!(refusals.full, 10 - 4);
}

/// What a machine has to tell a peer that takes nothing is what is so.
#[test]
fn what_comes_and_goes_is_not_told_to_a_peer_that_took_nothing_meanwhile() {
    unharmed(Terms::open(), |stranger, net, a| {
        stranger.hello(net, a);
        stranger.say(net, a, &[announce(1, "/s")]);
        for _ in 0..50 {
            let publisher = net.streams(a).publisher::<i64>("/u").unwrap();
            let reader = net.subscribe(a, "/s");
            net.settle();
            drop((publisher, reader));
            net.settle();
        }
        let _publisher = net.streams(a).publisher::<i64>("/v").unwrap();
        let _reader = net.subscribe(a, "/s");
        net.settle();
        stranger.port.grant(net.port(a), CONTROL, 100);
        net.settle();
        stranger.listen();
        let mut told = Vec::new();
        for news in &stranger.heard {
            if let News::Frame(_, CONTROL, frame) = news {
                let Payload::Bytes(bytes) = &frame.payload else {
                    panic!("{frame:?}");
                };
                told.extend(message::decode(bytes).unwrap());
            }
        }
        let told: Vec<_> = told.iter().map(std::mem::discriminant).collect();
        let hello = Message::Hello {
            origin: "a".into(),
            incarnation: 1,
            modes: Vec::new(),
        };
        let expected = [hello, announce(1, "/t"), announce(52, "/v"), want(1, 51)];
        assert_eq!(told, expected.each_ref().map(std::mem::discriminant));
    });
}

#[test]
fn a_peer_without_a_place_for_events_is_sent_what_it_takes_at_once() {
    let terms = Terms {
        bounds: Bounds {
            waiting: 0,
            ..Bounds::default()
        },
        ..Terms::open()
    };
    let refusals = unharmed(terms, |stranger, net, a| {
        stranger.hello(net, a);
        let publisher = net.streams(a).publisher::<i64>("/u").unwrap();
        net.settle();
        stranger.say(net, a, &[want(2, 1)]);
        let _ = publisher.publish(1);
        net.settle();
        net.audit();
        assert_eq!(waiting(net, a), 0);
    });
    assert_eq!(refusals, Refusals::default());
}

#[test]
fn a_peer_has_no_more_than_its_bounds() {
    let terms = Terms {
        bounds: Bounds {
            names: 3,
            edges: 2,
            waiting: 4,
        },
        ..Terms::open()
    };
    let refusals = unharmed(terms, |stranger, net, a| {
        stranger.hello(net, a);
        let names: Vec<_> = (1..=5).map(|n| announce(n, &format!("/s/{n}"))).collect();
        stranger.say(net, a, &names);
        assert_eq!(net.names(a).len(), 1 + 3);
        let publishers = (2..=5).map(|n| format!("/u/{n}"));
        let publishers = publishers.map(|name| net.streams(a).publisher::<i64>(&name).unwrap());
        let publishers: Vec<_> = publishers.collect();
        net.settle();
        let wants: Vec<_> = [2, 3, 4, 5, 1].map(|n| want(n, n as u32)).into();
        stranger.say(net, a, &wants);
        assert_eq!(own(net, a).len(), 2);
        // Nobody takes what waits for it, and it is little on all edges together.
        for _ in 0..10 {
            publishers.iter().for_each(|of| _ = of.publish(1));
            net.settle();
        }
        assert_eq!(waiting(net, a), 4);
    });
    assert_eq!(refusals.full, 2 + 3);
}

#[test]
fn a_name_that_is_guessed_is_not_sent() {
    let terms = Terms::with(|peer| match &*peer.name {
        "b" => Rights::all(),
        _ => Rights::default(),
    });
    let refusals = unharmed(terms, |stranger, net, a| {
        stranger.listen();
        let told = stranger.heard.iter();
        let told = told.filter(|news| matches!(news, News::Frame(..))).count();
        assert_eq!(told, 0, "it has no right to know of the name");
        stranger.hello(net, a);
        stranger.say(net, a, &[announce(1, "/s"), want(1, 5)]);
        assert_eq!(net.names(a), ["/t"]);
        assert_eq!(net.out(a, "/t").len(), 1);
    });
    assert_eq!(refusals.denied, 2);
}

/// The rights of a name that others want are kept also between the moment at which
/// it comes to stand for another one and the next poll.
#[test]
fn a_name_that_is_bound_to_another_one_sends_nothing_of_that() {
    let terms = Terms {
        rights: Arc::new(|_| {
            Arc::new(Rights {
                read: Scope::parse(["/a"]).unwrap(),
                ..Rights::all()
            })
        }),
        ..Terms::open().typed::<i64>()
    };
    let mut net = Network::new(Hub::new());
    let a = net.machine_of("a", 1, terms);
    let b = net.machine("b");
    let streams = net.streams(a);
    let open = streams.publisher::<i64>("/a").unwrap();
    let secret = streams.retaining_publisher::<i64>("/secret").unwrap();
    let _ = secret.publish(1);
    let mut reader = net.subscribe(b, "/a");
    net.settle();
    let _ = open.publish(2);
    net.settle();
    assert_eq!(reader.try_next().unwrap().get::<i64>(), Some(&2));
    drop(open);
    let to = Binding::new([Query::parse("/secret").unwrap()]).unwrap();
    let bound = streams.bind("/a", to).unwrap();
    let _ = secret.publish(3);
    net.settle();
    assert!(reader.try_next().is_none());
    // A publisher that takes its place before anybody looks is read again.
    drop(bound);
    let open = net.streams(a).publisher::<i64>("/a").unwrap();
    let _ = open.publish(4);
    net.settle();
    let _ = open.publish(5);
    net.settle();
    assert_eq!(reader.try_next().unwrap().get::<i64>(), Some(&5));
    net.audit();
}

#[test]
fn questions_that_are_none_are_answered_so() {
    let refusals = unharmed(Terms::open(), |stranger, net, a| {
        let to = net.port(a);
        let known = message::encode_question(message::Question::Whole(3));
        for (number, question) in (1..).zip([vec![], vec![1], vec![1, 9], known]) {
            assert_eq!(stranger.port.request(to, number, question.into()), Ok(()));
        }
        net.settle();
        stranger.listen();
        let replies = stranger.heard.iter().filter_map(|news| match news {
            News::Reply(_, _, answer) => answer.clone(),
            _ => None,
        });
        let replies: Vec<_> = replies.collect();
        assert_eq!(replies, vec![Arc::from([0_u8]); 4]);
    });
    assert_eq!(refusals.malformed, 3);
}

#[test]
fn events_that_nobody_can_read_are_dropped_and_counted() {
    let mut net = Network::new(Hub::new().apart());
    let a = net.machine("a");
    let mut reader = net.subscribe(a, "/s");
    let mut stranger = Stranger::new(&net);
    stranger.hello(&net, a);
    stranger.say(&net, a, &[announce(1, "/s")]);
    let to = net.port(a);
    stranger.sequence = 0;
    // A mode that is none of those that were offered, and bytes that are no event.
    for mode in [0, 2, u32::MAX, 1] {
        stranger.sequence += 1;
        let frame = Frame {
            incarnation: 1,
            sequence: stranger.sequence,
            time: Time::from_seconds(0),
            mode,
            schema: 1,
            payload: Payload::Bytes(vec![0xff; 10].into()),
        };
        let parcel = Parcel {
            to,
            channel: Channel(1),
            frame,
            receipt: None,
        };
        assert_eq!(stranger.port.submit(&mut VecDeque::from([parcel])), Ok(()));
    }
    net.settle();
    assert!(reader.try_next().is_none());
    let view = net.streams(a).view().unwrap();
    let End::In { arrived, taken, .. } = view.ends[0].end else {
        panic!("{view:?}");
    };
    assert_eq!((arrived, taken), (4, 0));
    net.audit();
}

#[test]
fn numbers_as_large_as_they_become_harm_nobody() {
    unharmed(Terms::open(), |stranger, net, a| {
        stranger.hello(net, a);
        stranger.say(net, a, &[announce(1, "/s")]);
        // Each reader gets a channel of its own, whose end is added up.
        for channel in 1..=2 {
            let mut reader = net.subscribe(a, "/s");
            net.settle();
            for before in [(1 << 63) - 1, u64::MAX - 1] {
                stranger.sequence = before;
                let sent = stranger.submit(net.port(a), Channel(channel), vec![0xff]);
                assert_eq!(sent, Ok(()));
                net.settle();
            }
            assert!(reader.try_next().is_none());
            drop(reader);
            net.settle();
        }
        let [_, came] = net.link(a).ended().unwrap();
        let End::In {
            arrived, missing, ..
        } = came
        else {
            panic!("{came:?}");
        };
        assert_eq!((arrived, missing), (4, u64::MAX));
    });
}

#[test]
fn an_event_that_is_too_large_is_dropped_and_the_next_one_comes() {
    let mut net = Network::new(Hub::new().apart());
    let (a, b) = (net.machine("a"), net.machine("b"));
    let publisher = net.streams(a).publisher::<String>("/t").unwrap();
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    let Capabilities { bytes_max, .. } = net.hub.join("x").capabilities();
    for length in [1, bytes_max + 1, 2] {
        let _ = publisher.publish("x".repeat(length));
        net.settle();
    }
    let seen: Vec<u64> = std::iter::from_fn(|| reader.try_next())
        .map(|event| event.header().sequence)
        .collect();
    assert_eq!(seen, [1, 3]);
    net.audit();
}

#[test]
fn machines_in_threads_wake_each_other() {
    for is_apart in [false, true] {
        let hub = Hub::new();
        let hub = if is_apart { hub.apart() } else { hub };
        let terms = Terms {
            delivery: Delivery::Every {
                capacity: 50_000.try_into().unwrap(),
                overflow: Overflow::DropNewest,
            },
            ..Terms::open().typed::<u64>()
        };
        let join = |name: &str| {
            let origin = Origin(name.into());
            let streams = Streams::new(operators::catalogue(), SystemClock, origin, 1);
            let driving = streams.drive().unwrap();
            let link = driving.join(hub.join(name), terms.clone()).unwrap();
            (streams, driving, link)
        };
        let (a, b) = (join("a"), join("b"));
        let delivery = Delivery::Every {
            capacity: 50_000.try_into().unwrap(),
            overflow: Overflow::Close,
        };
        let mut reader = b.0.subscribe(&flow("/t"), delivery).unwrap();
        let publisher = a.0.publisher::<u64>("/t").unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while a.0.view().unwrap().ends.is_empty() {
            assert!(Instant::now() < until, "it is wanted");
            std::thread::yield_now();
        }
        let publishing = std::thread::spawn(move || {
            for value in 1..=20_000_u64 {
                let _ = publisher.publish(value);
            }
            publisher
        });
        for value in 1..=20_000 {
            let event = reader.wait_for(Duration::from_secs(20)).expect("it comes");
            assert_eq!(event.get::<u64>(), Some(&value));
        }
        drop(publishing.join().unwrap());
        drop(a);
        drop(b.2);
    }
}

mod messages {
    use milieu_stream::link::message;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// There is one way to write what can be read.
        #[test]
        fn what_can_be_read_is_written_as_it_was(
            tag in 0..8_u8,
            rest in proptest::collection::vec(0..6_u8, 0..12),
        ) {
            let bytes: Vec<u8> = [1, tag].into_iter().chain(rest).collect();
            if let Ok(messages) = message::decode(&bytes) {
                let mut again = message::begin();
                for message in &messages {
                    message::encode(message, &mut again);
                }
                prop_assert_eq!(again, bytes);
            } else if let Ok(question) = message::decode_question(&bytes) {
                prop_assert_eq!(message::encode_question(question), bytes);
            }
        }
    }
}
