//! Types that derive `Event`: nothing has to be done to publish them, or to receive
//! them as what they extend.

mod network;

use milieu_macros::Event;
use milieu_stream::engine::Hub;
use milieu_stream::link::Terms;
use milieu_stream::names::{Rights, Scope};
use milieu_stream::{Delivery, End, Reason, Streams, Subscriber, SystemClock, operators};
use milieu_transfer::{Event, Kind, Origin, Private, Value};
use network::{Network, Which, flow};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Temperature {
    #[event(id = 1)]
    degrees: f64,
    #[event(id = 2)]
    sensor: Private<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct UnitTemperature {
    #[event(extends)]
    temperature: Temperature,
    #[event(id = 1)]
    unit: String,
}

/// What another program calls a temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Event)]
#[event(crate = milieu_transfer)]
struct Celsius {
    #[event(id = 2)]
    device: Private<String>,
    #[event(id = 1)]
    celsius: f64,
}

fn body(degrees: f64) -> UnitTemperature {
    let sensor = Private::new("bme280".to_owned());
    UnitTemperature {
        temperature: Temperature { degrees, sensor },
        unit: "°C".to_owned(),
    }
}

fn next(subscriber: &mut Subscriber) -> Event {
    subscriber.try_next().expect("an event has come")
}

fn sensor(of: &Temperature) -> Option<&str> {
    let may = milieu_transfer::Rights::READ.may_read().expect("it is");
    of.sensor.open(may).map(|sensor| &**sensor)
}

#[test]
fn in_a_process_a_child_is_received_as_its_parent() {
    let mut catalogue = operators::catalogue();
    let functions = catalogue.functions_mut();
    functions.condition("hot", |of: &Temperature| of.degrees > 30.0);
    let streams = Streams::new(catalogue, SystemClock, Origin("o".into()), 1);
    let mut all = streams.subscribe(&flow("/t"), Delivery::default()).unwrap();
    let hot = network::flow_of("/t | filter $hot", streams.catalogue());
    let mut hot = streams.subscribe(&hot, Delivery::default()).unwrap();
    let publisher = streams.publisher::<UnitTemperature>("/t").unwrap();
    let _ = publisher.publish(body(21.5));
    let _ = publisher.publish(body(32.5));
    let first = next(&mut all);
    let parent = first.get::<Temperature>().expect("the parent");
    assert_eq!((parent.degrees, sensor(parent)), (21.5, Some("bme280")));
    assert_eq!(first.get::<UnitTemperature>(), Some(&body(21.5)));
    let hot = next(&mut hot);
    assert_eq!(hot.get::<Temperature>().map(|it| it.degrees), Some(32.5));
    // Any other type is an event as it is.
    let plain = streams.publisher::<(u8, String)>("/plain").unwrap();
    let mut reader = streams
        .subscribe(&flow("/plain"), Delivery::default())
        .unwrap();
    let _ = plain.publish((7, "seven".to_owned()));
    let event = next(&mut reader);
    assert_eq!(event.get::<(u8, String)>(), Some(&(7, "seven".to_owned())));
}

/// Two machines, one of which publishes and knows the child, while the other knows
/// only its parent.
fn apart(of: Terms, to: Terms) -> (Network, Which, Which) {
    let mut net = Network::new(Hub::new().apart());
    let from = net.machine_of("from", 1, of);
    let to = net.machine_of("to", 1, to);
    (net, from, to)
}

fn travel(net: &Network, from: Which, to: Which) -> Event {
    let publisher = net
        .streams(from)
        .publisher::<UnitTemperature>("/t")
        .unwrap();
    let mut reader = net.subscribe(to, "/t");
    net.settle();
    let _ = publisher.publish(body(21.5));
    net.settle();
    net.audit();
    next(&mut reader)
}

#[test]
fn another_process_that_knows_only_the_parent_receives_the_child() {
    let (net, from, to) = apart(Terms::open(), Terms::open().typed::<Temperature>());
    let event = travel(&net, from, to);
    assert_eq!(event.get::<Temperature>(), Some(&body(21.5).temperature));
    assert_eq!(event.get::<UnitTemperature>(), None);
    // What the parent knows nothing of is there too.
    let value = event.get::<Value>().expect("the whole");
    assert_eq!(value.field("unit"), Some(&"°C".into()));
    // Whoever has not said which type it expects adopts the event.
    let (net, from, to) = apart(Terms::open(), Terms::open());
    let event = travel(&net, from, to);
    let read = Kind::<Temperature>::new().adopt(&event, milieu_transfer::Rights::SET);
    let read = read.expect("a temperature");
    assert_eq!(read.get::<Temperature>(), Some(&body(21.5).temperature));
    // By the ids of fields, whatever they are called here.
    let read = Kind::<Celsius>::new().adopt(&event, milieu_transfer::Rights::SET);
    let read = read.expect("a temperature");
    assert_eq!(read.get::<Celsius>().map(|it| it.celsius), Some(21.5));
}

#[test]
fn private_fields_of_a_parent_reach_those_who_may_read_them() {
    for may_read in [true, false] {
        let terms = Terms::with(move |_| Rights {
            private: if may_read {
                Scope::all()
            } else {
                Scope::none()
            },
            ..Rights::all()
        });
        let (net, from, to) = apart(terms, Terms::open().typed::<Temperature>());
        let event = travel(&net, from, to);
        let temperature = event.get::<Temperature>().expect("its type");
        assert_eq!(temperature.degrees, 21.5);
        assert_eq!(sensor(temperature), may_read.then_some("bme280"));
    }
}

#[test]
fn to_set_private_fields_from_outside_is_a_right_of_its_own() {
    for hub in [Hub::new(), Hub::new().apart()] {
        let mut net = Network::new(hub);
        let from = net.machine("from");
        // It may publish here, and read private fields.
        let terms = Terms::with(|_| Rights {
            set: Scope::none(),
            ..Rights::all()
        });
        let to = net.machine_of("to", 1, terms);
        let publisher = net.streams(from).publisher::<Temperature>("/t").unwrap();
        let mut reader = net.subscribe(to, "/t");
        net.settle();
        let _ = publisher.publish(body(21.5).temperature);
        let _ = publisher.publish(Temperature {
            degrees: 22.5,
            sensor: Private::absent(),
        });
        net.settle();
        let event = next(&mut reader);
        assert_eq!(event.header().sequence, 2, "the first set a private field");
        assert!(reader.try_next().is_none());
        let view = net.streams(to).view().expect("nothing runs");
        let End::In { dropped, taken, .. } = &view.ends[0].end else {
            panic!("it receives");
        };
        assert_eq!((dropped.of(Reason::Denied), *taken), (1, 1));
        net.audit();
    }
}
