//! What many clients over HTTP want is encoded once.

use crate::client::{self, Client, TOKEN, eventually};
use milieu_adapters::http::{self, Access, Bounds, Settings, Token};
use milieu_stream::names::{Rights, Scope};
use milieu_stream::{Streams, SystemClock, operators};
use milieu_transfer::Origin;

#[derive(serde::Serialize, serde::Deserialize)]
struct Reading {
    celsius: f64,
}

/// What `/metrics` says of encodings.
fn encodings(client: &Client) -> u64 {
    let text = client.get("/metrics").body();
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("component_encodings_total{"));
    let count = line.and_then(|line| line.rsplit_once(' '));
    count
        .and_then(|(_, count)| count.parse().ok())
        .expect("a count")
}

#[test]
fn what_many_want_is_encoded_once() {
    const CLIENTS: usize = 1000;
    let streams = Streams::new(operators::catalogue(), SystemClock, Origin("o".into()), 1);
    let bounds = Bounds {
        connections: CLIENTS + 100,
        ..Bounds::default()
    };
    let some = Rights {
        read: Scope::parse(["/a", "/b"]).unwrap(),
        ..Rights::default()
    };
    let all = Access::new(Token::new(TOKEN).unwrap(), Rights::all()).measuring();
    let guest = Access::new(Token::new("a-guest-with-some-rights").unwrap(), some);
    let settings = Settings::new(all).access(guest).bounds(bounds);
    let serving = http::serve(&streams, settings).unwrap();
    let client = Client::of(serving.address());
    let publisher = streams.publisher("/a").unwrap();
    let flow = "flow=/a%20|%20transform%20celsius";
    let read = |events: &mut client::Lines, number: f64| {
        let line = events.line();
        assert!(line.contains(&format!("\"value\":{number}")), "{line}");
        assert_eq!(events.line(), "");
    };
    let mut all: Vec<_> = (0..CLIENTS)
        .map(|_| client.subscribe(&format!("/events?{flow}")))
        .collect();
    for events in &mut all {
        assert_eq!((&*events.line(), &*events.line()), (":", ""));
    }
    for number in 1..=5 {
        let celsius = f64::from(number) + 0.5;
        let _ = publisher.publish(Reading { celsius });
        all.iter_mut().for_each(|events| read(events, celsius));
        assert_eq!(encodings(&client), u64::try_from(number).unwrap());
    }
    // Most leave; a WebSocket in another mode, and readers with other rights.
    all.truncate(2);
    let mut socket = client
        .web_socket(&format!("/socket?{flow}&mode=delta"))
        .unwrap();
    let guest = client.with_token("a-guest-with-some-rights");
    let mut guests = [(); 2].map(|()| guest.subscribe(&format!("/events?{flow}")));
    for events in &mut guests {
        assert_eq!((&*events.line(), &*events.line()), (":", ""));
    }
    let before = encodings(&client);
    let _ = publisher.publish(Reading { celsius: 9.5 });
    all.iter_mut()
        .chain(&mut guests)
        .for_each(|events| read(events, 9.5));
    let _ = socket.read().unwrap();
    assert_eq!(encodings(&client) - before, 3);
    // When nobody wants a mode any more, nothing is encoded in it.
    drop((socket, guests));
    assert!(eventually(|| streams.view().unwrap().subscribers.len() == 2));
    let before = encodings(&client);
    let _ = publisher.publish(Reading { celsius: 10.5 });
    all.iter_mut().for_each(|events| read(events, 10.5));
    assert_eq!(encodings(&client) - before, 1);
    streams.view().unwrap().audit().unwrap();
}
