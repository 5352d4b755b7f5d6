//! Streams over HTTP, as clients that are no Rust programs see them: raw
//! requests, `curl`, a WebSocket client, Python.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::client::{self, Client, TOKEN, eventually};
use milieu_adapters::component::Components;
use milieu_adapters::http::{self, Access, Bounds, Serving, Settings, Token};
use milieu_stream::names::{Rights, Scope};
use milieu_stream::{Status, Streams, SystemClock, operators};
use milieu_transfer::{Cbor, DataStream, Limits, Mode, Origin, Value};
use tungstenite::{Message, client::IntoClientRequest};

#[derive(serde::Serialize, serde::Deserialize)]
struct Reading {
    celsius: f64,
}

fn streams() -> Streams {
    let origin = Origin("station-1".into());
    Streams::new(operators::catalogue(), SystemClock, origin, 1)
}

fn access(rights: Rights) -> Access {
    Access::new(Token::new(TOKEN).unwrap(), rights).measuring()
}

fn served(streams: &Streams) -> (Serving, Client) {
    served_with(streams, |settings| settings)
}

fn served_with(streams: &Streams, change: impl FnOnce(Settings) -> Settings) -> (Serving, Client) {
    let settings = Settings::new(access(Rights::all()));
    let serving = http::serve(streams, change(settings)).unwrap();
    let client = Client::of(serving.address());
    (serving, client)
}

fn scope(names: &[&str]) -> Scope {
    Scope::parse(names.iter().copied()).unwrap()
}

#[test]
fn events_come_as_server_sent_events() {
    let streams = streams();
    let (_serving, client) = served(&streams);
    let publisher = streams.publisher("/weather/temperature").unwrap();
    let mut events = client
        .subscribe("/events?flow=/weather/temperature%20|%20filter%20value.celsius%20%3E%2030");
    assert!(
        events.head.contains("content-type: text/event-stream"),
        "{}",
        events.head
    );
    assert_eq!(events.line(), ":");
    assert_eq!(events.line(), "");
    for celsius in [20.0, 31.5] {
        let _ = publisher.publish(Reading { celsius });
    }
    let line = events.line();
    let event: serde_json::Value =
        serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(event["name"], "/weather/temperature");
    assert_eq!(event["sequence"], 2);
    assert_eq!(event["value"]["celsius"], 31.5);
}

#[test]
fn events_come_as_lines_and_in_other_modes() {
    let streams = streams();
    let (_serving, client) = served(&streams);
    let publisher = streams.retaining_publisher("/a").unwrap();
    let _ = publisher.publish(Reading { celsius: 1.0 });
    let mut lines = client.subscribe_as("/events?flow=/a", "application/x-ndjson");
    assert!(lines.line().starts_with("{\"name\":\"/a\""));
    let mut events = client.subscribe("/events?flow=/a&mode=cbor");
    assert_eq!((&*events.line(), &*events.line()), (":", ""));
    let text = events.line();
    let bytes = client::from_base64(text.strip_prefix("data: ").unwrap());
    let event = Cbor::default().decode(&bytes, &Limits::default(), milieu_transfer::Rights::NONE);
    assert_eq!(event.unwrap().header().stream.name.as_str(), "/a");
    for mode in milieu_transfer::Modes::standard().offers() {
        let answer = client.get(&format!("/latest?flow=/a&mode={}", mode.name));
        assert_eq!(answer.status, 200, "{}", mode.name);
    }
    let refused = client.get_as("/events?flow=/a&mode=cbor", "application/x-ndjson");
    assert_eq!(refused.status, 406);
    // A mode can be named in the flow, as elsewhere.
    let said = client.get("/latest?flow=/a%20|%20subscribe%20mode=cbor");
    assert!(said.head.contains("application/cbor"), "{}", said.head);
}

#[test]
fn the_latest_event_is_there_at_once_or_waited_for() {
    let streams = streams();
    let (_serving, client) = served(&streams);
    let kept = streams.retaining_publisher("/kept").unwrap();
    let _ = kept.publish(Reading { celsius: 21.5 });
    let answer = client.get("/latest?flow=/kept");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("application/json"));
    assert_eq!(answer.json()["value"]["celsius"], 21.5);

    let nothing = client.get("/latest?flow=/nobody&wait=0");
    assert_eq!((nothing.status, nothing.reason()), (404, "nothing".into()));
    let nothing = client.get("/latest?flow=/nobody&wait=NaN");
    assert_eq!(nothing.status, 404);

    let passing = streams.publisher("/passing").unwrap();
    let asking = std::thread::spawn({
        let client = client.clone();
        move || client.get("/latest?flow=/passing&wait=30")
    });
    while !asking.is_finished() {
        let _ = passing.publish(Reading { celsius: 3.0 });
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(asking.join().unwrap().json()["value"]["celsius"], 3.0);
}

#[test]
fn events_come_over_a_web_socket_in_the_mode_that_is_named() {
    let streams = streams();
    let (serving, client) = served(&streams);
    let publisher = streams.retaining_publisher("/a").unwrap();
    let _ = publisher.publish(Reading { celsius: 1.0 });
    let mut json = client.web_socket("/socket?flow=/a").unwrap();
    let text = json.read().unwrap().into_text().unwrap();
    assert!(text.contains("\"celsius\":1.0"), "{text}");

    // A mode whose frames build on each other, and a client that has lost its place.
    let mut other = client
        .web_socket("/socket?flow=/a&mode=data-stream")
        .unwrap();
    let mode = DataStream::default();
    let none = milieu_transfer::Rights::NONE;
    let mut decoder = mode.decoder(Limits::default(), none);
    let first = other.read().unwrap().into_data();
    assert_eq!(decoder.decode(&first).unwrap().header().sequence, 1);
    let _ = publisher.publish(Reading { celsius: 2.0 });
    let second = other.read().unwrap().into_data();
    assert!(second.len() < first.len());
    assert_eq!(decoder.decode(&second).unwrap().header().sequence, 2);
    let mut late = mode.decoder(Limits::default(), none);
    assert!(late.decode(&second).is_err());
    other.send(Message::text("key")).unwrap();
    let key = other.read().unwrap().into_data();
    assert_eq!(late.decode(&key).unwrap().header().sequence, 2);

    // Whoever says something else is told so, and let go.
    other.send(Message::text("drop table")).unwrap();
    assert!(matches!(other.read().unwrap(), Message::Close(Some(_))));
    assert_eq!(serving.component().errors("message"), 1);
    assert!(eventually(|| serving.component().sent() == 5));
}

#[test]
fn a_browser_shows_its_token_as_a_protocol() {
    let streams = streams();
    let (serving, client) = served(&streams);
    let publisher = streams.retaining_publisher("/a").unwrap();
    let _ = publisher.publish(Reading { celsius: 1.0 });
    let address = serving.address();
    let ask = |token: &str, origin: String| {
        let mut request = format!("ws://{address}/socket?flow=/a")
            .into_client_request()
            .unwrap();
        let protocols = format!("milieu, bearer.{token}").parse().unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocols);
        request
            .headers_mut()
            .insert("origin", origin.parse().unwrap());
        tungstenite::client(request, TcpStream::connect(address).unwrap()).map_err(drop)
    };
    let (mut socket, answer) = ask(TOKEN, format!("http://{address}")).unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "milieu");
    assert!(socket.read().unwrap().is_text());
    assert!(ask("fedcba9876543210", format!("http://{address}")).is_err());
    assert!(ask(TOKEN, "http://evil.example".into()).is_err());
    assert_eq!(serving.component().errors("origin"), 1);
    drop(client);
}

#[test]
fn what_is_pushed_becomes_events() {
    let streams = streams();
    let (serving, client) = served(&streams);
    let mut all = client.web_socket("/socket?flow=/lab/**").unwrap();
    let answer = client.post(
        "/events?name=/lab/door",
        "application/json",
        b"{\"open\":true}",
    );
    assert_eq!(
        (answer.status, answer.json()["accepted"].as_u64()),
        (200, Some(1))
    );
    let event: serde_json::Value =
        serde_json::from_str(&all.read().unwrap().into_text().unwrap()).unwrap();
    assert_eq!(
        (&event["name"], &event["value"]["open"]),
        (&"/lab/door".into(), &true.into())
    );
    assert_eq!(event["origin"], "station-1");

    let lines = b"1\n\n2\n3";
    let answer = client.post("/events?name=/lab/count", "application/x-ndjson", lines);
    assert_eq!(answer.json()["accepted"], 3);
    assert_eq!(client.get("/latest?flow=/lab/count").json()["value"], 3);

    // With their own names and times, several at once.
    let lines = b"{\"name\":\"/lab/a\",\"time\":\"2013-01-01T12:00:00Z\",\"value\":1}\n\
                  {\"name\":\"/lab/b\",\"time\":\"2013-01-01T12:00:01Z\",\"value\":2}\n";
    let answer = client.post("/events", "application/x-ndjson", lines);
    assert_eq!(answer.json()["accepted"], 2);
    let latest = client.get("/latest?flow=/lab/b").json();
    assert_eq!(latest["time"], "2013-01-01T12:00:01Z");

    let mut bytes = Vec::new();
    let value = Value::Text("binary".into());
    let none = milieu_transfer::Rights::NONE;
    Cbor::default()
        .encode_value(&value, none, &mut bytes)
        .unwrap();
    let answer = client.post("/events?name=/lab/c", "application/cbor", &bytes);
    assert_eq!(answer.status, 200);
    assert_eq!(client.get("/latest?flow=/lab/c").json()["value"], "binary");
    assert_eq!(serving.component().received(), 7);
}

#[test]
fn what_is_wrong_with_a_push_is_said_and_changes_nothing() {
    let streams = streams();
    let bounds = Bounds {
        names: 2,
        body: Limits {
            bytes: 2000,
            depth: 8,
        },
        ..Bounds::default()
    };
    let (serving, client) = served_with(&streams, |settings| settings.bounds(bounds));
    let _taken = streams.publisher::<Reading>("/taken").unwrap();
    let json = "application/json";
    let deep = format!("{}1{}", "[".repeat(9), "]".repeat(9));
    let climbing = b"{\"name\":\"/x/../y\",\"time\":\"2013-01-01T12:00:00Z\"}";
    let cases: [(&str, &str, &[u8], u16, &str); 13] = [
        ("?name=/x", json, b"{", 400, "malformed"),
        ("?name=/x", json, b"1 2", 400, "malformed"),
        ("?name=/x", json, b"\xFF", 400, "malformed"),
        (
            "?name=/x",
            "application/x-ndjson",
            b"1\n2\n{",
            400,
            "malformed",
        ),
        ("?name=/x", json, deep.as_bytes(), 400, "too_deep"),
        ("?name=/x", json, &[b' '; 2001], 413, "too_large"),
        ("?name=/x", "text/plain", b"1", 415, "mode"),
        ("?name=/x/../y", json, b"1", 400, "name"),
        ("?name=/x/*", json, b"1", 400, "name"),
        ("?name=x", json, b"1", 400, "name"),
        ("?name=/taken", json, b"1", 409, "taken"),
        ("", json, b"1", 400, "malformed"),
        ("", json, climbing, 400, "malformed"),
    ];
    for (query, media_type, body, status, reason) in cases {
        let before = serving.component().errors(reason);
        let answer = client.post(&format!("/events{query}"), media_type, body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(
            (answer.status, &*answer.reason()),
            (status, reason),
            "{query} {shown}"
        );
        assert_eq!(serving.component().errors(reason), before + 1);
    }
    assert_eq!(client.get("/latest?flow=/x&wait=0").status, 404);
    for (name, status) in [("/a", 200), ("/b", 200), ("/c", 507), ("/a", 200)] {
        let answer = client.post(&format!("/events?name={name}"), json, b"1");
        assert_eq!(answer.status, status, "{name}");
    }
}

#[test]
fn rights_are_kept_whatever_is_asked_for() {
    let streams = streams();
    let rights = Rights {
        read: scope(&["/labs/005/**"]),
        publish: scope(&["/guests/*"]),
        ..Rights::default()
    };
    let settings = Settings::new(Access::new(Token::new(TOKEN).unwrap(), rights));
    let serving = http::serve(&streams, settings).unwrap();
    let client = Client::of(serving.address());
    let mine = streams.retaining_publisher("/labs/005/heat").unwrap();
    let others = streams.retaining_publisher("/labs/006/heat").unwrap();
    let mut all = client.web_socket("/socket?flow=/**").unwrap();
    let _ = others.publish(Reading { celsius: 6.0 });
    let _ = mine.publish(Reading { celsius: 5.0 });
    // A wildcard reaches as far as the right, and no further.
    let text = all.read().unwrap().into_text().unwrap();
    assert!(text.contains("/labs/005/heat"), "{text}");
    for path in [
        "/latest?flow=/labs/006/heat",
        "/events?flow=/labs/006/**",
        "/latest?flow=/labs/005/heat,/labs/006/heat%20|%20merge",
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, &*answer.reason()), (403, "right"), "{path}");
    }
    let json = "application/json";
    assert_eq!(
        client.post("/events?name=/guests/anna", json, b"1").status,
        200
    );
    for path in [
        "/events?name=/labs/005/heat",
        "/events?name=/guests/a/b",
        "/events?name=/guests",
    ] {
        let answer = client.post(path, json, b"1");
        assert_eq!((answer.status, &*answer.reason()), (403, "right"), "{path}");
    }
    let event = b"{\"name\":\"/labs/005/x\",\"time\":\"2013-01-01T12:00:00Z\"}";
    assert_eq!(client.post("/events", json, event).status, 403);
    assert_eq!(client.get("/metrics").status, 403);
    assert_eq!(serving.component().errors("right"), 8);
}

#[test]
fn nobody_is_answered_without_a_token() {
    let streams = streams();
    let (serving, client) = served(&streams);
    let paths = [
        "/events?flow=/a",
        "/latest?flow=/a",
        "/socket?flow=/a",
        "/metrics",
        "/nothing",
    ];
    let tokens = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer 0123456789abcdeF",
        "Basic MDEyMzQ1Njc4OWFiY2RlZg==",
    ];
    for path in paths {
        for token in tokens {
            let answer = client.raw(&format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\nConnection: close\r\n\r\n"
            ));
            assert_eq!(
                (answer.status, &*answer.reason()),
                (401, "token"),
                "{path} {token}"
            );
        }
    }
    assert_eq!(serving.component().errors("token"), 25);
    assert_eq!(client.without_token().get("/ping").status, 200);
    assert_eq!(client.without_token().get("/ready").status, 200);
    let wrong = client.with_token("fedcba9876543210");
    assert_eq!(
        (wrong.get("/ping").status, wrong.get("/ready").status),
        (200, 200)
    );
    let rebound = client.raw("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!((rebound.status, rebound.body()), (200, "pong\n".into()));
}

#[test]
fn a_page_of_somebody_else_gets_nothing() {
    let streams = streams();
    let (serving, client) = served_with(&streams, |settings| {
        settings
            .host("station.example")
            .origin("https://dashboard.example")
    });
    let ask = |host: &str, more: &str| {
        client.raw(&format!(
            "GET /latest?flow=/a&wait=0 HTTP/1.1\r\n{host}Authorization: Bearer {TOKEN}\r\n{more}Connection: close\r\n\r\n"
        ))
    };
    for host in [
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:9",
        "[::1]:9",
        "STATION.example",
    ] {
        assert_eq!(ask(&format!("Host: {host}\r\n"), "").status, 404, "{host}");
    }
    let rebound = [
        "Host: evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: \r\n",
        "Host: [::1\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
    ];
    for host in rebound {
        assert_eq!(ask(host, "").status, 421, "{host}");
    }
    assert_eq!(serving.component().errors("host"), 5);
    let host = "Host: 127.0.0.1:8080\r\n";
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "https://dashboard.example.evil.example",
    ] {
        let answer = ask(host, &format!("Origin: {origin}\r\n"));
        assert_eq!(answer.status, 403, "{origin}");
        assert!(!answer.head.contains("access-control"));
    }
    assert_eq!(ask(host, "Origin: http://127.0.0.1:8080\r\n").status, 404);
    let known = ask(host, "Origin: https://dashboard.example\r\n");
    assert!(
        known
            .head
            .contains("access-control-allow-origin: https://dashboard.example")
    );
    let preflight = |origin: &str| {
        client.raw(&format!(
            "OPTIONS /events HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
        ))
    };
    let answer = preflight("https://dashboard.example");
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .head
            .contains("access-control-allow-headers: authorization")
    );
    assert_eq!(preflight("https://evil.example").status, 403);
}

#[test]
fn others_are_let_in_only_if_that_is_asked_for() {
    let streams = streams();
    let settings = || Settings::new(access(Rights::all()));
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let refused = http::serve(&streams, settings().address(everywhere)).unwrap_err();
    assert!(
        refused.to_string().contains("address_for_others"),
        "{refused}"
    );
    let serving = http::serve(&streams, settings().address_for_others(everywhere)).unwrap();
    let taken = settings().address(([127, 0, 0, 1], serving.address().port()).into());
    let refused = http::serve(&streams, taken).unwrap_err();
    assert!(
        refused.to_string().contains("choose another port"),
        "{refused}"
    );
}

#[test]
fn flows_that_change_something_or_are_too_large_are_refused() {
    let streams = streams();
    let (_serving, client) = served(&streams);
    let many = "/a,".repeat(70) + "/a%20|%20merge";
    let long = format!("/{}", "a".repeat(2000));
    let slashes = "/".repeat(6500);
    for flow in [
        "/a%20|%20publish%20/b",
        "/a%20|%20activate%20x",
        "let%20x=/a",
        "",
        "/a%20|%20nonsense",
        "/a;/b",
        "/a/../b",
        "relative",
        "/a/%23",
        "/a%0A%0A|",
        &many,
        &long,
        &slashes,
        &"(".repeat(5000),
    ] {
        let answer = client.get(&format!("/latest?wait=0&flow={flow}"));
        assert_eq!(answer.status, 400, "{flow}: {}", answer.body());
    }
    assert_eq!(client.get("/latest").status, 400);
    assert_eq!(client.get("/latest?flow=/a&mode=nonsense").status, 406);
    assert_eq!(client.get("/ping").status, 200);
}

#[test]
fn a_slow_client_loses_events_and_keeps_nobody_waiting() {
    let streams = streams();
    let bounds = Bounds {
        queue_events: 8,
        ..Bounds::default()
    };
    let (serving, client) = served_with(&streams, |settings| settings.bounds(bounds));
    let publisher = streams.publisher("/a").unwrap();
    let mut stuck = client.subscribe("/events?flow=/a%20|%20subscribe%20overflow=refuse");
    assert_eq!(stuck.line(), ":");
    let mut quick = client.web_socket("/socket?flow=/a").unwrap();
    let large = "x".repeat(100_000);
    for number in 0..200 {
        let _ = publisher.publish(format!("{number} {large}"));
        let text = quick.read().unwrap().into_text().unwrap();
        assert!(text.contains(&format!("\"{number} x")));
    }
    // More than a megabyte or two fits into no socket.
    assert!(
        streams
            .view()
            .unwrap()
            .subscribers
            .iter()
            .any(|one| one.tally.dropped.total() > 20)
    );
    // What was lost is said once the client reads again, and is counted.
    let mut lost = 0;
    while lost <= 20 {
        if let Some(count) = stuck.line().strip_prefix("data: ") {
            lost += count.parse().unwrap_or(0);
        }
    }
    drop(stuck);
    assert!(eventually(
        || serving.component().discarded("overflow") >= lost
    ));
    assert!(eventually(|| streams.view().unwrap().subscribers.len() == 1));
}

#[test]
fn connections_and_heads_are_bounded_and_slow_ones_are_closed() {
    let streams = streams();
    let bounds = Bounds {
        connections: 3,
        patience: Duration::from_millis(300),
        ..Bounds::default()
    };
    let (serving, client) = served_with(&streams, |settings| settings.bounds(bounds));
    // They are many and say nothing.
    let mut silent: Vec<TcpStream> = (0..8).map(|_| client.connect()).collect();
    assert!(eventually(|| serving.component().errors("connections") == 5));
    for stream in &mut silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    // WebSockets keep their places.
    let sockets: Vec<_> = (0..3)
        .map(|_| client.web_socket("/socket?flow=/a").unwrap())
        .collect();
    assert!(client.web_socket("/socket?flow=/a").is_err());
    drop(sockets);
    assert!(eventually(|| client.web_socket("/socket?flow=/a").is_ok()));
    assert!(eventually(|| client.try_get("/ping").is_some()));
    let head = format!(
        "GET /ping HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(64 << 10)
    );
    assert!(matches!(
        client.try_raw(&head),
        None | Some(client::Answer { status: 431, .. })
    ));
    let lines = "X: y\r\n".repeat(1000);
    let head = format!("GET /ping HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
    assert!(matches!(
        client.try_raw(&head),
        None | Some(client::Answer { status: 431, .. })
    ));
    // A body that never ends, byte by byte.
    let mut slow = client.connect();
    write!(slow, "POST /events?name=/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n1").unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer);
    assert!(answer.contains("408"), "{answer}");
}

#[test]
fn garbage_harms_nobody() {
    let streams = streams();
    let (_serving, client) = served(&streams);
    let mut good = client.web_socket("/socket?flow=/a").unwrap();
    let publisher = streams.publisher("/a").unwrap();
    for garbage in [&b"\x00\x01\x02\r\n\r\n"[..], b"GET\r\n\r\n", b"\xFF\xFF\xFF\xFF\n", b"GET / HTTP/9\r\n\r\n", b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", b"\x16\x03\x01\x02\x00"] {
        let mut stream = client.connect();
        stream.write_all(garbage).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 2"));
    }
    // A frame of a WebSocket that claims to be huge.
    let mut socket = client.web_socket("/socket?flow=/a").unwrap();
    socket
        .get_mut()
        .write_all(&[
            0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0,
        ])
        .unwrap();
    while socket.read().is_ok() {}
    let _ = publisher.publish(1_u64);
    assert!(good.read().unwrap().is_text());
}

#[test]
fn it_says_whether_it_is_ready_and_what_it_has_counted() {
    let streams = streams();
    let components = Components::new();
    let (serving, client) = served_with(&streams, |settings| settings.components(&components));
    assert_eq!(client.get("/ready").status, 200);
    let status = std::sync::Arc::new(std::sync::Mutex::new(Status::Starting));
    let asked = std::sync::Arc::clone(&status);
    let broker = components.watch("mqtt://broker", "mqtt_client", move || {
        asked.lock().unwrap().clone()
    });
    *status.lock().unwrap() = Status::Failing("refused; start it".into());
    let answer = client.get("/ready");
    assert_eq!(
        (answer.status, answer.body()),
        (503, "mqtt://broker: failing: refused; start it\n".into())
    );
    let answer = client.without_token().get("/ready");
    assert_eq!(answer.status, 503);
    assert!(
        !answer.body().contains("broker"),
        "names are for those with a token"
    );
    assert_eq!(client.without_token().get("/ping").status, 200);
    *status.lock().unwrap() = Status::Working;
    assert_eq!(client.get("/ready").status, 200);
    *status.lock().unwrap() = Status::Starting;
    assert_eq!(client.get("/ready").status, 503);
    drop(broker);
    assert_eq!(client.get("/ready").status, 200);

    let publisher = streams.publisher("/weather").unwrap();
    let mut hot = client
        .web_socket("/socket?flow=/weather%20|%20filter%20value.celsius%20%3E%2030")
        .unwrap();
    for celsius in [1.0, 2.0, 31.0] {
        let _ = publisher.publish(Reading { celsius });
    }
    hot.read().unwrap();
    client.post("/events?name=/x", "application/json", b"{");
    client.post("/events?name=/x", "application/json", b"1");
    let answer = client.get("/metrics");
    assert!(answer.head.contains("text/plain; version=0.0.4"));
    let text = answer.body();
    let has = |counter: &str, id: &str, kind: &str, more: &str, count: u64| {
        let host = text
            .split("host=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let line = format!(
            "{counter}{{component_id=\"{id}\",component_type=\"{kind}\",host=\"{host}\"{more}}} {count}\n"
        );
        assert!(text.contains(&line), "{line}\n{text}");
    };
    let hot = "/weather | filter value.celsius > 30";
    let server = format!("http://{}", serving.address());
    has("component_sent_events_total", "/weather", "source", "", 3);
    has("component_received_events_total", hot, "filter", "", 3);
    has("component_sent_events_total", hot, "filter", "", 1);
    has(
        "component_discarded_events_total",
        hot,
        "filter",
        ",reason=\"filtered\"",
        2,
    );
    has("component_sent_events_total", hot, "subscriber", "", 1);
    has(
        "component_received_events_total",
        &server,
        "http_server",
        "",
        1,
    );
    has("component_sent_events_total", &server, "http_server", "", 1);
    has(
        "component_errors_total",
        &server,
        "http_server",
        ",reason=\"malformed\"",
        1,
    );
    assert_prometheus(&text);
}

/// Each line is a comment, or a name with labels and a count; no series twice.
fn assert_prometheus(text: &str) {
    let mut seen = std::collections::HashSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, count) = line.rsplit_once(' ').unwrap();
        count.parse::<u64>().unwrap();
        assert!(
            series.starts_with("component_") && series.ends_with("\"}"),
            "{series}"
        );
        assert!(seen.insert(series), "{series} is there twice");
    }
}

#[test]
fn curl_reads_what_it_is_told() {
    let streams = streams();
    let (serving, _) = served(&streams);
    let publisher = streams.retaining_publisher("/a").unwrap();
    let _ = publisher.publish(Reading { celsius: 21.5 });
    let address = format!("http://{}", serving.address());
    let said = std::process::Command::new("curl")
        .args([
            "-sS",
            "--fail",
            "-G",
            "-H",
            &format!("Authorization: Bearer {TOKEN}"),
        ])
        .args(["--data-urlencode", "flow=/a | filter value.celsius > 20"])
        .arg(format!("{address}/latest"))
        .output();
    let Ok(said) = said else {
        eprintln!("there is no curl here");
        return;
    };
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(
        text.contains("\"celsius\":21.5"),
        "{text} {}",
        String::from_utf8_lossy(&said.stderr)
    );
}

#[test]
fn everything_ends_when_the_guard_is_dropped() {
    let streams = streams();
    let (serving, client) = served(&streams);
    let mut socket = client.web_socket("/socket?flow=/a").unwrap();
    client.post("/events?name=/pushed", "application/json", b"1");
    drop(serving);
    assert!(socket.read().is_err());
    assert!(client.try_get("/ping").is_none());
    assert!(eventually(|| streams
        .view()
        .unwrap()
        .subscribers
        .is_empty()));
    // The names of clients are free again.
    assert!(streams.publisher::<Reading>("/pushed").is_ok());
}
