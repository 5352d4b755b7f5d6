//! Several machines, one naming tree.

use std::num::NonZeroU32;

use crate::network::{Network, flow};
use milieu_stream::engine::{CloseReason, Hub, Passage};
use milieu_stream::link::{PeerView, Presence, Terms};
use milieu_stream::names::{Rights, Scope};
use milieu_stream::{Delivery, End, Flow, Overflow, Reason, Subscriber};
use milieu_transfer::{Event, Private, Span, Time};

fn values(subscriber: &mut Subscriber) -> Vec<i64> {
    let next = std::iter::from_fn(|| subscriber.try_next());
    next.map(|event| *event.get::<i64>().expect("a number"))
        .collect()
}

#[test]
fn events_of_another_machine_are_as_ones_own() {
    let mut net = Network::new(Hub::new());
    let (a, b) = (net.machine("a"), net.machine("b"));
    let mut exact = net.subscribe(b, "/t");
    let mut wild = net.subscribe(b, "/*");
    let mut filtered = net.subscribe_to(b, &flow("/t | filter value > 1"));
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    net.settle();
    let event = {
        let mut own = net.subscribe(a, "/t");
        let _ = publisher.publish(1);
        own.try_next().unwrap()
    };
    let _ = publisher.publish(2);
    net.settle();
    let here = exact.try_next().unwrap();
    assert!(here.is(&event), "both have the very event");
    assert_eq!(values(&mut exact), [2]);
    assert_eq!(values(&mut wild), [1, 2]);
    assert_eq!(values(&mut filtered), [2]);
    // However many read it, it has come once.
    let sent = net.out(a, "/t");
    assert_eq!(sent.len(), 1);
    assert!(matches!(sent[0], End::Out { sent: 2, .. }), "{sent:?}");
    net.audit();
}

#[test]
fn what_nobody_reads_is_not_sent() {
    let mut net = Network::new(Hub::new());
    let (a, b) = (net.machine("a"), net.machine("b"));
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    net.settle();
    let _ = publisher.publish(1);
    net.settle();
    assert!(net.out(a, "/t").is_empty());
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    let _ = publisher.publish(2);
    net.settle();
    assert_eq!(values(&mut reader), [2]);
    drop(reader);
    net.settle();
    assert!(net.out(a, "/t").is_empty());
    let ended = net.link(a).ended().unwrap();
    assert!(
        matches!(
            ended[0],
            End::Out {
                offered: 1,
                sent: 1,
                ..
            }
        ),
        "{ended:?}"
    );
    let _ = publisher.publish(3);
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    let _ = publisher.publish(4);
    net.settle();
    assert_eq!(values(&mut reader), [4]);
}

#[test]
fn late_subscribers_get_what_is_retained() {
    let mut net = Network::new(Hub::new());
    let (a, b, c) = (net.machine("a"), net.machine("b"), net.machine("c"));
    let publisher = net.streams(a).retaining_publisher::<i64>("/t").unwrap();
    let _ = publisher.publish(1);
    net.settle();
    let mut first = net.subscribe(b, "/t");
    net.settle();
    assert_eq!(values(&mut first), [1]);
    // Of the same machine, and of another.
    let mut second = net.subscribe(b, "/t");
    let mut third = net.subscribe(c, "/t");
    net.settle();
    assert_eq!(values(&mut second), [1]);
    assert_eq!(values(&mut third), [1]);
    drop((first, second));
    net.settle();
    let _ = publisher.publish(2);
    // What it was while nobody read it is not true any more.
    let mut fourth = net.subscribe(b, "/t");
    net.settle();
    assert_eq!(values(&mut fourth), [2]);
    net.audit();
}

#[test]
fn a_machine_that_returns_finds_its_subscribers() {
    let mut net = Network::new(Hub::new());
    let (a, b) = (net.machine("a"), net.machine("b"));
    let mut reader = net.subscribe(b, "/**");
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    net.settle();
    let _ = publisher.publish(1);
    net.settle();
    net.kill(a);
    net.settle();
    assert_eq!(net.names(b), Vec::<String>::new());
    let peers = net.link(b).peers().unwrap();
    let gone = PeerView {
        name: "a".into(),
        presence: Presence::Left(CloseReason::Lost),
        identity: Some(("a".into(), 1)),
        names: 1,
    };
    assert_eq!(peers, [gone]);
    let a = net.machine_of("a", 2, Terms::open());
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    net.settle();
    let _ = publisher.publish(2);
    net.settle();
    let seen: Vec<Event> = std::iter::from_fn(|| reader.try_next()).collect();
    let lives = seen.iter().map(|event| {
        let header = event.header();
        (header.stream.incarnation, header.sequence)
    });
    assert!(lives.eq([(1, 1), (2, 1)]));
    net.audit();
}

#[test]
fn whoever_leaves_says_so() {
    let mut net = Network::new(Hub::new());
    let (a, b) = (net.machine("a"), net.machine("b"));
    let _publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    net.settle();
    assert_eq!(net.names(b), ["/t"]);
    net.leave(a);
    net.settle();
    assert_eq!(net.names(b), Vec::<String>::new());
    let peers = net.link(b).peers().unwrap();
    assert_eq!(peers[0].presence, Presence::Left(CloseReason::Done));
}

#[test]
fn a_later_life_takes_the_place_of_one_that_has_not_been_missed() {
    let mut net = Network::new(Hub::new());
    let (old, b) = (net.machine("a"), net.machine("b"));
    let mut reader = net.subscribe(b, "/t");
    let earlier = net.streams(old).publisher::<i64>("/t").unwrap();
    net.settle();
    let new = net.machine_of("a", 2, Terms::open());
    let later = net.streams(new).publisher::<i64>("/t");
    // It has not heard of the other yet.
    let later = later.unwrap();
    net.settle();
    let _ = earlier.publish(1);
    let _ = later.publish(2);
    net.settle();
    assert_eq!(values(&mut reader), [2]);
    drop(later);
    net.settle();
    let _ = earlier.publish(3);
    net.settle();
    assert_eq!(values(&mut reader), [3]);
}

#[test]
fn a_name_stands_for_the_first_of_several_publishers() {
    let mut net = Network::new(Hub::new());
    let (b, a, c) = (net.machine("b"), net.machine("a"), net.machine("c"));
    let of_b = net.streams(b).publisher::<i64>("/t").unwrap();
    let of_a = net.streams(a).publisher::<i64>("/t").unwrap();
    let mut readers = [a, b, c].map(|machine| net.subscribe(machine, "/t"));
    net.settle();
    let _ = of_a.publish(1);
    let _ = of_b.publish(2);
    net.settle();
    // Each its own, and others the first.
    assert_eq!(readers.each_mut().map(values), [vec![1], vec![2], vec![1]]);
    // What is known from others is taken.
    assert!(net.streams(c).publisher::<i64>("/t").is_err());
    drop(of_a);
    net.settle();
    let _ = of_b.publish(3);
    net.settle();
    assert_eq!(readers.each_mut().map(values), [vec![3], vec![3], vec![3]]);
    drop(of_b);
    net.settle();
    let _of_c = net.streams(c).publisher::<i64>("/t").unwrap();
    net.audit();
}

#[test]
fn names_do_not_go_round() {
    let mut net = Network::new(Hub::new());
    let machines = ["a", "b", "c"].map(|name| net.machine(name));
    let publisher = net.streams(machines[0]).publisher::<i64>("/t").unwrap();
    let mut readers = machines.map(|machine| net.subscribe(machine, "/**"));
    net.settle();
    let _ = publisher.publish(1);
    net.settle();
    assert_eq!(readers.each_mut().map(values), [[1], [1], [1]]);
    drop(publisher);
    net.settle();
    for machine in machines {
        assert_eq!(net.names(machine), Vec::<String>::new());
    }
}

#[test]
fn operators_run_where_their_flow_is_published() {
    let mut net = Network::new(Hub::new());
    let (a, b, c) = (net.machine("a"), net.machine("b"), net.machine("c"));
    let source = net.streams(a).publisher::<i64>("/t").unwrap();
    net.settle();
    let _hot = net
        .streams(b)
        .publish("/hot", &flow("/t | filter value > 9"))
        .unwrap();
    let mut reader = net.subscribe(c, "/hot");
    net.settle();
    for value in [1, 10, 5, 20] {
        let _ = source.publish(value);
    }
    net.settle();
    assert_eq!(values(&mut reader), [10, 20]);
    assert!(matches!(net.out(b, "/hot")[0], End::Out { sent: 2, .. }));
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Patient {
    room: u32,
    pulse: Private<u32>,
}

fn pulse(event: &Event) -> (u64, bool) {
    use milieu_transfer::Rights;
    let value = event.value(Rights::ALL).unwrap();
    let patient: Patient = value.to(Rights::ALL).unwrap();
    (u64::from(patient.room), patient.pulse.is_present())
}

#[test]
fn private_fields_reach_only_those_who_may_read_them() {
    for hub in [Hub::new(), Hub::new().apart()] {
        let mut net = Network::new(hub);
        let terms = Terms::with(|peer| Rights {
            private: match &*peer.name {
                "doctor" => Scope::all(),
                _ => Scope::none(),
            },
            ..Rights::all()
        });
        let ward = net.machine_of("ward", 1, terms);
        let (doctor, visitor) = (net.machine("doctor"), net.machine("visitor"));
        let second = net.machine("visitor-2");
        let publisher = net.streams(ward).publisher::<Patient>("/patient").unwrap();
        let readers = [doctor, visitor, second].map(|machine| net.subscribe(machine, "/patient"));
        net.settle();
        for room in [5, 6] {
            let pulse = Private::new(70);
            let _ = publisher.publish(Patient { room, pulse });
        }
        net.settle();
        let seen = readers
            .map(|mut reader| [(); 2].map(|()| pulse(&reader.try_next().expect("it has come"))));
        assert_eq!(seen[0], [(5, true), (6, true)]);
        assert_eq!(seen[1], [(5, false), (6, false)]);
        assert_eq!(seen[2], [(5, false), (6, false)]);
        let view = net.streams(ward).view().unwrap();
        assert_eq!(view.ends.len(), 3);
    }
}

#[test]
fn a_name_that_may_not_be_read_is_not_announced() {
    let mut net = Network::new(Hub::new());
    let terms = Terms::with(|_| Rights {
        read: Scope::parse(["/public/**"]).unwrap(),
        ..Rights::all()
    });
    let (a, b) = (net.machine_of("a", 1, terms), net.machine("b"));
    let _secret = net.streams(a).publisher::<i64>("/secret").unwrap();
    let _public = net.streams(a).publisher::<i64>("/public/t").unwrap();
    net.settle();
    assert_eq!(net.names(b), ["/public/t"]);
}

#[test]
fn a_name_that_may_not_be_published_is_refused() {
    let mut net = Network::new(Hub::new());
    let terms = Terms::with(|_| Rights {
        publish: Scope::parse(["/guests/**"]).unwrap(),
        ..Rights::all()
    });
    let (a, b) = (net.machine_of("a", 1, terms), net.machine("b"));
    let _other = net.streams(b).publisher::<i64>("/system/t").unwrap();
    let _guest = net.streams(b).publisher::<i64>("/guests/t").unwrap();
    net.settle();
    assert_eq!(net.names(a), ["/guests/t"]);
    assert_eq!(net.link(a).refusals().unwrap().denied, 1);
}

#[test]
fn what_many_want_in_one_form_is_encoded_once() {
    let mut net = Network::new(Hub::new().apart());
    let a = net.machine("a");
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    let others: Vec<_> = (0..10).map(|n| net.machine(&format!("b{n}"))).collect();
    let mut readers: Vec<_> = others.iter().map(|b| net.subscribe(*b, "/t")).collect();
    net.settle();
    for value in 1..=100 {
        let _ = publisher.publish(value);
    }
    net.settle();
    for reader in &mut readers {
        assert!(values(reader).into_iter().eq(1..=100));
    }
    assert_eq!(net.link(a).encodings(), Some(100));
    net.audit();
}

#[test]
fn sides_that_know_no_mode_in_common_say_so() {
    let mut net = Network::new(Hub::new().apart());
    let a = net.machine("a");
    let b = net.machine_of(
        "b",
        1,
        Terms {
            modes: milieu_transfer::Modes::default(),
            ..Terms::open()
        },
    );
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    let _ = publisher.publish(1);
    net.settle();
    assert!(reader.try_next().is_none());
    assert_eq!(net.names(b), Vec::<String>::new());
}

/// A machine that is not polled gets what its delivery says, and the others get
/// everything meanwhile.
fn slow(overflow: Overflow, apart: bool) -> (Vec<i64>, Vec<End>) {
    let hub = Hub::new();
    let mut net = Network::new(if apart { hub.apart() } else { hub });
    let a = net.machine("a");
    let slow = net.machine_of(
        "slow",
        1,
        Terms {
            window: NonZeroU32::new(4).unwrap(),
            delivery: Delivery::Every {
                capacity: NonZeroU32::new(3).unwrap(),
                overflow,
            },
            ..Terms::open().typed::<i64>()
        },
    );
    let quick = net.machine("quick");
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    let (mut of_slow, mut of_quick) = (net.subscribe(slow, "/t"), net.subscribe(quick, "/t"));
    net.settle();
    for value in 1..=20 {
        let _ = publisher.publish(value);
        net.settle_but(slow);
        assert_eq!(values(&mut of_quick), [value]);
    }
    net.audit();
    let edges = net.out(a, "/t");
    net.settle();
    for value in 21..=22 {
        let _ = publisher.publish(value);
        net.settle();
    }
    net.audit();
    (values(&mut of_slow), edges)
}

#[test]
fn a_slow_machine_loses_what_its_delivery_says_and_holds_up_nobody() {
    for apart in [false, true] {
        let (seen, edges) = slow(Overflow::DropOldest, apart);
        assert_eq!(seen, [1, 2, 3, 4, 18, 19, 20, 21, 22]);
        let dropped = edges.iter().find_map(|end| match end {
            End::Out {
                dropped,
                waiting,
                sent,
                ..
            } if *waiting > 0 => {
                assert_eq!((*sent, *waiting), (4, 3));
                Some(dropped.of(Reason::Overflow))
            }
            _ => None,
        });
        assert_eq!(dropped, Some(13));
        for overflow in [Overflow::DropNewest, Overflow::Refuse] {
            assert_eq!(slow(overflow, apart).0, [1, 2, 3, 4, 5, 6, 7, 21, 22]);
        }
        // What ended is not read again.
        assert_eq!(slow(Overflow::Close, apart).0, [1, 2, 3, 4]);
    }
}

#[test]
fn losses_are_noticed_and_counted_and_mend() {
    // Frames of events that are lost; delta builds on those before.
    let lost = [3, 4, 8];
    let hub = Hub::scheduled(move |passage: &Passage| {
        let is_event = passage.channel.0 > 0;
        match is_event && lost.contains(&passage.sequence) {
            true => vec![],
            false => vec![Span::ZERO],
        }
    });
    let mut net = Network::new(hub.apart());
    let (a, b) = (net.machine("a"), net.machine("b"));
    let publisher = net.streams(a).publisher::<Vec<i64>>("/t").unwrap();
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    for value in 1..=10_i64 {
        let _ = publisher.publish((0..20).map(|n| n + value * i64::from(n == 9)).collect());
        net.settle();
    }
    let seen: Vec<u64> = std::iter::from_fn(|| reader.try_next())
        .map(|event| event.header().sequence)
        .collect();
    // The frame after a loss builds on what is lost; the next one says all.
    assert_eq!(seen, [1, 2, 6, 7, 10]);
    let view = net.streams(b).view().unwrap();
    let End::In {
        arrived,
        taken,
        dropped,
        missing,
    } = &view.ends[0].end
    else {
        panic!("{view:?}");
    };
    assert_eq!((*arrived, *taken, *missing), (7, 5, 3));
    assert_eq!(dropped.of(Reason::Lost), 2);
    net.audit();
}

#[test]
fn a_window_that_is_lost_whole_does_not_stop_an_edge() {
    let hub = Hub::scheduled(move |passage: &Passage| {
        match passage.channel.0 > 0 && passage.sequence < 40 {
            true => vec![],
            false => vec![Span::ZERO],
        }
    });
    let mut net = Network::new(hub);
    let a = net.machine("a");
    let b = net.machine_of(
        "b",
        1,
        Terms {
            window: NonZeroU32::new(8).unwrap(),
            ..Terms::open()
        },
    );
    let publisher = net.streams(a).publisher::<i64>("/t").unwrap();
    let mut reader = net.subscribe(b, "/t");
    net.settle();
    for value in 1..=60 {
        let _ = publisher.publish(value);
        net.settle();
    }
    assert!(values(&mut reader).into_iter().eq(40..=60));
    net.audit();
}

#[test]
fn what_is_said_arrives_whatever_is_lost() {
    let mut count = 0;
    // Of the control frames two of three are lost, and the rest comes twice.
    let hub = Hub::scheduled(move |_: &Passage| {
        count += 1;
        match count % 3 {
            0 => vec![Span::from_seconds(1), Span::from_seconds(3)],
            _ => vec![],
        }
    });
    let mut net = Network::new(hub);
    let (a, b) = (net.machine("a"), net.machine("b"));
    let mut kept = Vec::new();
    for n in 0..20 {
        let name = format!("/t/{n}");
        let publisher = net.streams(a).publisher::<i64>(&name).unwrap();
        if n % 2 == 0 {
            kept.push(publisher);
        }
        net.settle();
    }
    let reader = net.subscribe(b, "/**");
    net.pass(Time::from_seconds(1000));
    assert_eq!(net.names(b).len(), 10);
    assert_eq!(net.streams(a).view().unwrap().ends.len(), 10);
    drop(reader);
    net.pass(Time::from_seconds(2000));
    assert_eq!(net.streams(a).view().unwrap().ends.len(), 0);
}

#[test]
fn a_thousand_machines_in_one_thread() {
    let hub = Hub::scheduled(|_: &Passage| vec![Span::from_seconds(1)]);
    let mut net = Network::new(hub);
    let machines: Vec<_> = (0..1000).map(|n| net.machine(&format!("m{n}"))).collect();
    let flow = Flow::Stream("/*/t".into());
    let publishers: Vec<_> = (0..3)
        .map(|n| {
            net.streams(machines[n * 300])
                .publisher::<i64>(&format!("/{n}/t"))
                .unwrap()
        })
        .collect();
    let mut readers: Vec<_> = machines
        .iter()
        .map(|m| net.subscribe_to(*m, &flow))
        .collect();
    net.pass(Time::from_seconds(100));
    for (value, publisher) in (0..).zip(&publishers) {
        let _ = publisher.publish(value);
    }
    net.pass(Time::from_seconds(200));
    for reader in &mut readers {
        let mut seen = values(reader);
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
    }
}
