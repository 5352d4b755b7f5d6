//! An event to a subscriber on another machine, in the same thread, beside one
//! on the same machine.
//!
//! It answers as `xtask/measure` says.

use std::hint::black_box;
use std::process::ExitCode;

use measure::{Loop, Operation, alone, answer};
use milieu_stream::engine::Hub;
use milieu_stream::link::Terms;
use milieu_stream::{Delivery, Flow, Streams, VirtualClock, operators};
use milieu_transfer::{Origin, Time};

static OPERATIONS: &[Operation] = &[
    alone("publish-here", here),
    alone("publish-there", || there(Hub::new(), 1)),
    alone("publish-there-64", || there(Hub::new(), 64)),
    alone("publish-there-bytes", || there(Hub::new().apart(), 1)),
];

fn streams(name: &str) -> Streams {
    let clock = VirtualClock::new(Time::from_seconds(0));
    Streams::new(operators::catalogue(), clock, Origin(name.into()), 1)
}

/// A publisher and a queue on one machine.
fn here() -> Loop {
    let streams = streams("a");
    let publisher = streams.publisher::<f64>("/t").expect("it is free");
    let flow = Flow::Stream("/t".into());
    let mut reader = streams
        .subscribe(&flow, Delivery::default())
        .expect("a flow");
    Box::new(move |times| {
        for _ in 0..times {
            let _ = publisher.publish(black_box(5.0));
            black_box(reader.try_next().expect("it is there"));
        }
    })
}

/// A publisher on one machine and a queue on another, which is polled after so
/// many events.
fn there(hub: Hub, batch: u64) -> Loop {
    let machines = ["a", "b"].map(|name| {
        let streams = streams(name);
        let link = streams.join(hub.join(name), Terms::open().typed::<f64>());
        (streams, link)
    });
    let publisher = machines[0].0.publisher::<f64>("/t").expect("it is free");
    let flow = Flow::Stream("/t".into());
    let subscribed = machines[1].0.subscribe(&flow, Delivery::default());
    let mut reader = subscribed.expect("a flow");
    while machines.iter().filter(|(_, link)| link.poll()).count() > 0 {}
    Box::new(move |times| {
        for time in 1..=times {
            let _ = publisher.publish(black_box(5.0));
            if time % batch == 0 || time == times {
                for (_, link) in &machines {
                    link.poll();
                }
                let seen = std::iter::from_fn(|| reader.try_next()).count() as u64;
                assert!(seen == batch || time == times, "all have come");
            }
        }
    })
}

fn main() -> ExitCode {
    answer(OPERATIONS)
}
