//! Streams from and to an MQTT broker: a real one, and hostile ones.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use crate::broker::{self, Broker, Wire};
use crate::client::eventually;
use milieu_adapters::component::Components;
use milieu_adapters::mqtt::{
    self, Bounds, Connection, Device, Entity, Input, Output, Payload, Settings,
};
use milieu_stream::{Delivery, Flow, Status, Streams, Subscriber, SystemClock, operators};
use milieu_transfer::{Cbor, Event, Json, Limits, Origin, Rights, Value};

#[derive(serde::Serialize, serde::Deserialize)]
struct Reading {
    celsius: f64,
}

fn streams() -> Streams {
    let origin = Origin("station-1".into());
    Streams::new(operators::catalogue(), SystemClock, origin, 1)
}

fn all(streams: &Streams) -> Subscriber {
    streams
        .subscribe(&Flow::Stream("/**".into()), Delivery::default())
        .unwrap()
}

fn settings(port: u16) -> Settings {
    Settings::new("station-1", "127.0.0.1", port)
}

fn working(streams: &Streams, settings: Settings) -> Connection {
    let connection = mqtt::connect(streams, settings).unwrap();
    is_working(&connection);
    connection
}

#[track_caller]
fn is_working(connection: &Connection) {
    let component = connection.component();
    assert!(
        eventually(|| component.status() == Status::Working),
        "{}",
        component.status()
    );
}

#[track_caller]
fn is_failing(connection: &Connection) -> String {
    let component = connection.component();
    assert!(eventually(|| matches!(
        component.status(),
        Status::Failing(_)
    )));
    component.status().to_string()
}

#[track_caller]
fn next(subscriber: &mut Subscriber) -> (String, Value) {
    let event = subscriber
        .wait_for(Duration::from_secs(30))
        .expect("an event");
    (event.header().stream.name.as_str().to_owned(), body(&event))
}

fn body(event: &Event) -> Value {
    event.value(Rights::NONE).unwrap()
}

#[test]
fn payloads_of_all_kinds_become_events() {
    if !broker::is_here() {
        return;
    }
    let broker = Broker::started();
    broker.publish("home/kept", b"true", &["-r"]);
    let streams = streams();
    let home = Flow::Stream("/mqtt/home/**".into());
    let mut events = streams.subscribe(&home, Delivery::default()).unwrap();
    let mut others = all(&streams);
    let connection = working(
        &streams,
        settings(broker.port).input(Input::new("#", "/mqtt")),
    );
    assert_eq!(
        next(&mut events),
        ("/mqtt/home/kept".into(), Value::Bool(true))
    );
    let cases: [(&[u8], Value); 5] = [
        (b"21.5", Value::Double(21.5)),
        (b"\"ON\"", Value::Text("ON".into())),
        (b"ON", Value::Text("ON".into())),
        (b"\xFF\x00", Value::Bytes([0xFF, 0].as_slice().into())),
        (b"", Value::Null),
    ];
    for (payload, value) in cases {
        broker.publish("home/heat", payload, &[]);
        assert_eq!(next(&mut events), ("/mqtt/home/heat".into(), value));
    }
    broker.publish("home/json", br#"{"a":[1]}"#, &[]);
    assert_eq!(
        next(&mut events).1.field("a"),
        Some(&Value::List([Value::Int(1)].as_slice().into()))
    );
    // The broker's own topics are not below `#`, and ours is.
    assert!(eventually(|| connection.component().received() >= 8));
    while let Some(event) = others.try_next() {
        let name = event.header().stream.name.as_str();
        let is_home = name.starts_with("/mqtt/home/");
        assert!(is_home || name == "/mqtt/milieu/station-1/status", "{name}");
    }
}

#[test]
fn payloads_of_one_mode_are_held_to_it() {
    if !broker::is_here() {
        return;
    }
    let broker = Broker::started();
    let streams = streams();
    let mut events = all(&streams);
    let bounds = Bounds {
        payload: Limits {
            bytes: 1000,
            depth: 8,
        },
        names: 2,
    };
    let connection = working(
        &streams,
        settings(broker.port)
            .bounds(bounds)
            .input(Input::new("json/#", "/in").payload(Payload::body(Json)))
            .input(Input::new("event/+", "/in").payload(Payload::event(Json)))
            .input(Input::new("any/+", "/in")),
    );
    let component = connection.component();
    let count = |topic: &str, payload: &[u8], reason: &str| {
        let before = component.errors(reason);
        broker.publish(topic, payload, &[]);
        assert!(
            eventually(|| component.errors(reason) == before + 1),
            "{topic} {reason}"
        );
    };
    let deep = format!("{}1{}", "[".repeat(9), "]".repeat(9));
    count("json/a", b"ON", "malformed");
    count("json/a", b"", "malformed");
    count("json/a", &[b' '; 1001], "too_large");
    count("any/a", deep.as_bytes(), "too_deep");
    count("event/a", b"21.5", "malformed");
    count("event/a", br#"{"name":"/x","time":"now"}"#, "malformed");
    count("json/../a", b"1", "name");
    count("json//a", b"1", "name");
    count("json/*", b"1", "name");
    count("json/%x%", b"1", "name");
    count(&format!("json{}", "/a".repeat(70)), b"1", "name");
    let event = br#"{"name":"/elsewhere","time":"2013-01-01T12:00:00Z","quality":{"failure":"stuck"},"value":3}"#;
    broker.publish("event/a", event, &[]);
    let event = events.wait_for(Duration::from_secs(30)).unwrap();
    // The topic says the name; the payload the time and the quality.
    assert_eq!(event.header().stream.name.as_str(), "/in/event/a");
    assert_eq!(event.time().to_string(), "2013-01-01T12:00:00Z");
    assert!(event.header().quality.as_ref().unwrap().failure.is_some());
    broker.publish("json/b", b"1", &[]);
    assert_eq!(next(&mut events).0, "/in/json/b");
    count("json/c", b"1", "full");
    assert_eq!(component.status(), Status::Working);
}

#[test]
fn flows_go_to_topics() {
    if !broker::is_here() {
        return;
    }
    let broker = Broker::started();
    let streams = streams();
    let flow = || Flow::Stream("/weather".into());
    let _connection = working(
        &streams,
        settings(broker.port)
            .output(Output::new(flow(), "out/plain"))
            .output(
                Output::new(flow(), "out/kept")
                    .retained()
                    .payload(Payload::event(Json)),
            )
            .output(
                Output::new(flow(), "out/cbor")
                    .retained()
                    .payload(Payload::body(Cbor::default())),
            ),
    );
    let heard = broker.listen("out/plain");
    let publisher = streams.publisher("/weather").unwrap();
    let _ = publisher.publish(Reading { celsius: 21.5 });
    heard.wait_for(r#"out/plain {"celsius":21.5}"#);
    assert!(eventually(|| broker.retained("out/kept").len() == 1));
    let kept = broker.retained("out/#");
    assert!(
        kept.iter()
            .any(|line| line.starts_with(r#"out/kept {"name":"/weather""#)),
        "{kept:?}"
    );
    assert!(kept.iter().all(|line| !line.starts_with("out/plain")));

    // Another process reads them, in the mode that was named.
    let other = self::streams();
    let mut events = all(&other);
    let input = Input::new("out/cbor", "/").payload(Payload::body(Cbor::default()));
    let _reading = working(
        &other,
        Settings::new("other", "127.0.0.1", broker.port).input(input),
    );
    let (name, value) = next(&mut events);
    assert_eq!(
        (&*name, value.field("celsius")),
        ("/out/cbor", Some(&Value::Double(21.5)))
    );
}

#[test]
fn a_broker_that_is_down_is_said_to_be_and_waited_for() {
    if !broker::is_here() {
        return;
    }
    let mut broker = Broker::reserved();
    let streams = streams();
    let mut events = all(&streams);
    let components = Components::new();
    let capacity = 4.try_into().unwrap();
    let overflow = milieu_stream::Overflow::DropOldest;
    let output = Output::new(Flow::Stream("/out".into()), "out")
        .retained()
        .delivery(Delivery::Every { capacity, overflow });
    let connection = mqtt::connect(
        &streams,
        settings(broker.port)
            .components(&components)
            .input(Input::new("in/+", "/"))
            .output(output),
    )
    .unwrap();
    let said = is_failing(&connection);
    assert!(said.contains("is the broker running there?"), "{said}");
    assert!(!components.is_ready());
    let publisher = streams.publisher("/out").unwrap();
    for number in 0..10 {
        let _ = publisher.publish(number);
    }
    for number in 0..10 {
        assert_eq!(
            next(&mut events),
            ("/out".into(), Value::Int(number)),
            "nobody waits for it"
        );
    }
    broker.start();
    is_working(&connection);
    assert!(components.is_ready());
    assert!(eventually(|| connection.component().sent() == 4));
    assert_eq!(connection.component().discarded("overflow"), 6);
    assert!(eventually(|| broker.retained("out") == ["out 9"]));

    // It goes and comes back.
    broker.stop();
    is_failing(&connection);
    broker.start();
    is_working(&connection);
    broker.publish("in/x", b"7", &[]);
    assert_eq!(next(&mut events), ("/in/x".into(), Value::Int(7)));
    assert!(connection.component().errors("connection") >= 2);
}

#[test]
fn it_is_known_whether_it_is_there() {
    if !broker::is_here() {
        return;
    }
    let broker = Broker::started();
    let wire = Wire::to(broker.port);
    let streams = streams();
    let connection = working(&streams, settings(wire.port));
    let status = "milieu/station-1/status";
    assert!(eventually(
        || broker.retained(status) == [format!("{status} online")]
    ));
    let heard = broker.listen(status);
    // Its last will, and then it is back.
    wire.cut();
    heard.wait_for(&format!("{status} offline"));
    heard.wait_for(&format!("{status} online"));
    drop(connection);
    assert!(eventually(
        || broker.retained(status) == [format!("{status} offline")]
    ));
}

#[test]
fn home_assistant_discovers_devices_and_finds_no_orphans() {
    if !broker::is_here() {
        return;
    }
    let broker = Broker::started();
    let streams = streams();
    let device = |id: &str, entities: &[&str]| {
        let device = Device::new(id, "Weather station").about("mf", "Milieu");
        entities.iter().fold(device, |device, id| {
            let entity = Entity::new(*id, "sensor", id, &format!("weather/{id}"));
            device.entity(entity.option("unit_of_measurement", "°C"))
        })
    };
    broker.publish(
        "homeassistant/device/foreign/config",
        br#"{"o":{"name":"other"}}"#,
        &["-r"],
    );
    let topic = |id: &str| format!("homeassistant/device/{id}/config");
    let first = working(
        &streams,
        settings(broker.port)
            .device(device("roof", &["heat", "rain"]))
            .device(device("cellar", &["heat"])),
    );
    assert!(eventually(|| broker.retained("homeassistant/#").len() == 3));
    let kept = broker.retained(&topic("roof"));
    let said: serde_json::Value = serde_json::from_str(kept[0].split_once(' ').unwrap().1).unwrap();
    assert_eq!(said["dev"]["ids"][0], "roof");
    assert_eq!(said["dev"]["mf"], "Milieu");
    assert_eq!(said["o"]["name"], "milieu");
    assert_eq!(said["availability_topic"], "milieu/station-1/status");
    let heat = &said["cmps"]["heat"];
    assert_eq!(
        (&heat["p"], &heat["state_topic"]),
        (&"sensor".into(), &"weather/heat".into())
    );
    assert_eq!(
        (&heat["unique_id"], &heat["unit_of_measurement"]),
        (&"roof_heat".into(), &"°C".into())
    );

    // Home Assistant has started again and wants to hear it once more.
    let heard = broker.listen(&topic("cellar"));
    broker.publish("homeassistant/status", b"online", &[]);
    assert!(eventually(|| heard.text().contains("\"ids\":[\"cellar\"]")));
    drop(heard);

    // The program has started again with less than before.
    drop(first);
    let heard = broker.listen(&topic("roof"));
    let second = working(
        &streams,
        settings(broker.port).device(device("roof", &["heat"])),
    );
    assert!(
        eventually(|| heard.text().contains(r#""rain":{"p":"sensor"}"#)),
        "{}",
        heard.text()
    );
    assert!(eventually(|| {
        let kept = broker.retained("homeassistant/#");
        kept.len() == 2
            && kept
                .iter()
                .all(|line| !line.contains("rain") && !line.contains("cellar"))
    }));
    // For good.
    second.withdraw();
    assert_eq!(
        broker.retained("homeassistant/#").len(),
        1,
        "that of others is left alone"
    );
    broker.forget(&topic("foreign"));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_connected() {
    let streams = streams();
    let refused = |settings: Settings| match mqtt::connect(&streams, settings) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it should be refused"),
    };
    for id in ["", "#", "a/b", "a b", &"a".repeat(65)] {
        let said = refused(Settings::new(id, "127.0.0.1", 1));
        assert!(
            said.contains("client id") || said.contains("topic"),
            "{said}"
        );
    }
    for filter in ["", "a/#/b", "a+", "\0"] {
        let said = refused(settings(1).input(Input::new(filter, "/x")));
        assert!(said.contains("the filter"), "{said}");
    }
    for under in ["x", "/x/../y", "/*"] {
        refused(settings(1).input(Input::new("a", under)));
    }
    for topic in ["", "a/#", "a\n"] {
        let flow = Flow::Stream("/a".into());
        assert!(refused(settings(1).output(Output::new(flow, topic))).contains("the topic"));
    }
    let device = || Device::new("a", "A");
    assert!(refused(settings(1).device(device()).device(device())).contains("twice"));
    refused(settings(1).device(Device::new("a/b", "A")));
    refused(settings(1).device(device().entity(Entity::new("x", "../y", "X", "t"))));
}

/// What a hostile broker says after it has taken the connection.
fn attacks() -> Vec<Vec<u8>> {
    let publish = |topic: &[u8], payload: &[u8]| {
        let mut body = vec![0, 0];
        body[0] = (topic.len() >> 8) as u8;
        body[1] = (topic.len() & 0xFF) as u8;
        body.extend_from_slice(topic);
        body.extend_from_slice(payload);
        let mut packet = vec![0x30];
        let mut length = body.len();
        loop {
            let more = length >= 128;
            packet.push((length % 128) as u8 | if more { 0x80 } else { 0 });
            length /= 128;
            if !more {
                break;
            }
        }
        packet.extend_from_slice(&body);
        packet
    };
    vec![
        // A length of five bytes; one of 256 MiB; one beyond the payload.
        vec![0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
        vec![0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1],
        vec![0x30, 0x02, 0xFF, 0xFF],
        // Topics that are empty, no UTF-8, 65,000 slashes, unasked, the broker's own.
        publish(b"", b"1"),
        publish(b"in/\xFF\xFE", b"1"),
        publish(&[b'/'; 65_000], b"1"),
        publish(b"unasked", b"1"),
        publish(b"$SYS/in", b"1"),
        publish(b"in/#", b"1"),
        publish(b"in/a\0b", b"1"),
        // Packets of the wrong role, and acknowledgements of what was never sent.
        vec![0x10, 0x00],
        vec![0x82, 0x05, 0, 1, 0, 0, 0],
        vec![0xE0, 0x00],
        vec![0xC0, 0x00],
        vec![0x40, 0x02, 0xFF, 0xFF],
        vec![0x50, 0x02, 0xFF, 0xFF],
        vec![0x62, 0x02, 0xFF, 0xFF],
        vec![0x70, 0x02, 0xFF, 0xFF],
        vec![0x70, 0x02, 0x00, 0x00],
        vec![0x90, 0x03, 0x00, 0x01, 0x80],
        vec![0x90, 0x02, 0x00, 0x01],
        vec![0xB0, 0x02, 0xFF, 0xFF],
        vec![0x40, 0x00],
        vec![0x20, 0x02, 0x00, 0x00],
        // A quality of service that there is not, and none at all of what follows.
        vec![0x36, 0x05, 0, 1, b'a', 0, 1],
        vec![0x00, 0x00],
        vec![0xF0, 0x00],
        vec![0xFF; 4096],
    ]
}

#[test]
fn a_hostile_broker_harms_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let streams = streams();
    let mut events = all(&streams);
    let settings = settings(port)
        .input(Input::new("in/+", "/"))
        .output(Output::new(Flow::Stream("/out".into()), "out"))
        .device(Device::new("roof", "Roof"));
    let connection = mqtt::connect(&streams, settings).unwrap();
    let publisher = streams.publisher("/out").unwrap();
    for (at, attack) in attacks().into_iter().enumerate() {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let mut said = [0; 4096];
        let _ = stream.read(&mut said);
        stream.write_all(&[0x20, 0x02, 0, 0]).unwrap();
        let _ = stream.write_all(&attack);
        // Behind it comes a good message, which the client reads if it still listens.
        let _ = stream.write_all(b"\x30\x07\x00\x04in/x7");
        while let Ok(1..) = stream.read(&mut said) {}
        // Others have their events all the time.
        let _ = publisher.publish(at as u64);
        loop {
            let (name, value) = next(&mut events);
            match &*name {
                "/in/x" => assert_eq!(value, Value::Int(7)),
                "/out" => break assert_eq!(value, Value::Uint(at as u64)),
                other => panic!("nobody asked for {other}"),
            }
        }
        drop(stream);
    }
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&[0x20, 0x02, 0, 0]).unwrap();
    stream.write_all(b"\x30\x07\x00\x04in/x8").unwrap();
    assert!(
        eventually(|| {
            let event = events.wait_for(Duration::from_millis(10));
            event.is_some_and(|event| body(&event) == Value::Int(8))
        }),
        "{}",
        connection.component().status()
    );
    // One that refuses us, and one that says nothing.
    drop(stream);
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&[0x20, 0x02, 0, 5]).unwrap();
    assert!(eventually(
        || is_failing(&connection).contains("name and password")
    ));
}
