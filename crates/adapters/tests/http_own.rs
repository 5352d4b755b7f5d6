//! What a program adds to a server of its own: pages, and components for `/ready`.

use std::sync::{Arc, Mutex};

use crate::client::{Client, TOKEN, eventually};
use milieu_adapters::component::{Component, Components};
use milieu_adapters::http::{self, Access, Page, Serving, Settings, Token};
use milieu_stream::names::Rights;
use milieu_stream::{Flow, Status, Streams, SystemClock, operators};
use milieu_transfer::Origin;

fn streams() -> Streams {
    let origin = Origin("station-1".into());
    Streams::new(operators::catalogue(), SystemClock, origin, 1)
}

fn settings() -> Settings {
    let access = Access::new(Token::new(TOKEN).unwrap(), Rights::all());
    Settings::new(access.measuring())
}

fn served(settings: Settings) -> (Serving, Client) {
    let serving = http::serve(&streams(), settings).unwrap();
    let client = Client::of(serving.address());
    (serving, client)
}

#[test]
fn pages_are_shown_to_everybody() {
    let made = format!("made at {}", 7);
    let settings = settings()
        .page(Page::new("/", "text/html; charset=utf-8", b"<p>Hello"))
        .page(Page::new("/made.txt", "text/plain", made.into_bytes()))
        .page(Page::new("/a/:b/*c", "image/png", [0_u8, 255].to_vec()))
        .page(Page::new("/caf%C3%A9", "text/plain", Vec::new()));
    let (serving, client) = served(settings);
    for client in [client.clone(), client.without_token()] {
        let answer = client.get("/");
        assert_eq!((answer.status, answer.body()), (200, "<p>Hello".into()));
        for line in [
            "content-type: text/html; charset=utf-8",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
        ] {
            assert!(answer.head.contains(line), "{line}: {}", answer.head);
        }
        assert_eq!(client.get("/made.txt").body(), "made at 7");
        let answer = client.get("/a/:b/*c");
        assert!(
            answer.head.contains("content-type: image/png"),
            "{}",
            answer.head
        );
        assert!(answer.head.contains("content-length: 2"), "{}", answer.head);
        assert_eq!(client.get("/caf%C3%A9").status, 200);
        assert_eq!(client.get("/made.txt?new").status, 200);
        assert_eq!(client.get("/ping").body(), "pong\n");
    }
    // They stand there and nowhere else, and are only shown.
    for other in ["/made", "/made.txt/", "/a/x/y", "/caf%c3%a9"] {
        assert_eq!(client.get(other).status, 404, "{other}");
        assert_eq!(client.without_token().get(other).status, 401, "{other}");
    }
    assert_eq!(client.post("/", "text/plain", b"no").status, 405);
    assert_eq!(serving.component().errors("token"), 4);
}

#[test]
fn pages_that_cannot_be_are_refused() {
    for (path, kind, says) in [
        ("/ping", "text/plain", "the server answers there itself"),
        ("/ready", "text/plain", "the server answers there itself"),
        ("/metrics", "text/plain", "the server answers there itself"),
        ("/latest", "text/plain", "the server answers there itself"),
        ("/socket", "text/plain", "the server answers there itself"),
        ("/events", "text/plain", "the server answers there itself"),
        (
            "/",
            "text/plain",
            "the page `/`: another page has this path",
        ),
        (
            "page.html",
            "text/html",
            "the page `page.html`: a path begins with `/`",
        ),
        ("/{name}", "text/html", "a blank as `%20`"),
        ("/a", "html", "the page `/a`: `html` is no media type"),
        ("/a", "text/html\r\nSet-Cookie: a=b", "is no media type"),
    ] {
        let settings = settings()
            .page(Page::new("/", "text/plain", b""))
            .page(Page::new(path, kind, b""));
        let error = http::serve(&streams(), settings).expect_err("it is refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_component_of_the_program_says_how_it_is() {
    let components = Components::new();
    let (_serving, client) = served(settings().components(&components));
    let kind = format!("bus_{}", 1);
    let display: Arc<Component> = components.add("the \"display\"", kind);
    let ready = || {
        let answer = client.get("/ready");
        (answer.status, answer.body())
    };
    let starting = "the \"display\": starting\n";
    assert_eq!(ready(), (503, starting.into()));
    display.say(Status::Working);
    assert_eq!(ready(), (200, "ready\n".into()));
    display.say(Status::Failing("it is dark; plug it in".into()));
    let failing = "the \"display\": failing: it is dark; plug it in\n";
    assert_eq!(ready(), (503, failing.into()));
    assert_eq!(client.without_token().get("/ready").status, 503);
    display.say(Status::Ended);
    assert_eq!(ready().0, 200);
    let metrics = client.get("/metrics").body();
    let labels = "component_id=\"the \\\"display\\\"\",component_type=\"bus_1\"";
    assert!(metrics.contains(labels), "{metrics}");
    // Of one that is asked the answer counts.
    let asked = components.watch("bus", "spi", || Status::Starting);
    asked.say(Status::Working);
    assert_eq!(ready(), (503, "bus: starting\n".into()));
    drop((asked, display));
    assert_eq!(ready().0, 200);
    assert!(!client.get("/metrics").body().contains("display"));
}

/// What a client publishes ends the server, in the server's own thread.
#[test]
fn a_server_ends_where_it_was_asked_to() {
    let streams = streams();
    let kept: Arc<Mutex<Option<Serving>>> = Arc::default();
    let serving = http::serve(&streams, settings()).unwrap();
    let client = Client::of(serving.address());
    *kept.lock().unwrap() = Some(serving);
    let taken = Arc::clone(&kept);
    let flow = Flow::Stream("/quit".into());
    let _listening = streams.listen(&flow, move |_| drop(taken.lock().unwrap().take()));
    // Whether the answer still comes is not said.
    let _ = client.try_post("/events?name=/quit", "application/json", b"1");
    let gone = || kept.lock().is_ok_and(|it| it.is_none()) && client.try_get("/ping").is_none();
    assert!(eventually(gone));
}
