//! What clients ask for and send over HTTP: every request has an answer, and
//! none is a failure of the server.
//!
//! The first character says what is asked: `0` the latest event of a flow, `1`
//! and so on to publish in each mode, `9` whatever the request says. The texts
//! are the flow or name, a mode, and a body.
#![no_main]

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use milieu_adapters::http::{self, Access, Serving, Settings, Token};
use milieu_fuzz::texts;
use milieu_stream::names::Rights;
use milieu_stream::{Publisher, Streams, SystemClock, operators};
use milieu_transfer::{Modes, Origin};

const TOKEN: &str = "0123456789abcdef";

/// After so many requests everything begins anew, before all names are taken.
const REQUESTS: usize = 500;

struct Served {
    serving: Serving,
    _publisher: Publisher<f64>,
    connection: Option<BufReader<TcpStream>>,
    left: usize,
}

thread_local! {
    static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) };
}

/// A connection that the server has closed is an error and no signal, as in
/// every program that begins in Rust.
fn survive_closed_connections() {
    let seen = Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGPIPE, seen).unwrap();
}

fuzz_target!(init: survive_closed_connections(), |input: &str| {
    let Some(first) = input.bytes().next().filter(u8::is_ascii_digit) else {
        return;
    };
    let [what, mode, body] = texts(&input[1..]);
    SERVED.with_borrow_mut(|served| {
        if served.as_ref().is_none_or(|served| served.left == 0) {
            *served = Some(Served::new());
        }
        let served = served.as_mut().unwrap();
        served.left -= 1;
        if first == b'9' {
            return served.raw(what);
        }
        let (what, mode) = (encoded(what), encoded(mode));
        let status = if first == b'0' {
            let by = if mode.is_empty() { "" } else { "&mode=" };
            served.ask(&format!("GET /latest?wait=0&flow={what}{by}{mode}"), "", "")
        } else {
            let by = if what.is_empty() { "" } else { "?name=" };
            let offers = Modes::standard().offers();
            let at = usize::from(first - b'1');
            let media_type = Modes::standard().named(&offers[at % offers.len()].name).map_or(
                "application/x-ndjson".to_owned(),
                |mode| mode.media_type().to_owned(),
            );
            let media_type = if first == b'8' { "application/x-ndjson" } else { &media_type };
            served.ask(&format!("POST /events{by}{what}"), media_type, body)
        };
        // Only what is bounded may be full.
        assert!(matches!(status, 200..=499 | 503 | 507), "{status}");
    });
});

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl Served {
    fn new() -> Served {
        let origin = Origin("fuzz".into());
        let streams = Streams::new(operators::catalogue(), SystemClock, origin, 1);
        let publisher = streams.retaining_publisher("/a").unwrap();
        let _ = publisher.publish(21.5);
        let access = Access::new(Token::new(TOKEN).unwrap(), Rights::all());
        Served {
            serving: http::serve(&streams, Settings::new(access)).unwrap(),
            _publisher: publisher,
            connection: None,
            left: REQUESTS,
        }
    }

    fn connection(&mut self) -> BufReader<TcpStream> {
        self.connection.take().unwrap_or_else(|| {
            let stream = TcpStream::connect(self.serving.address()).unwrap();
            let patience = Duration::from_secs(60);
            stream.set_read_timeout(Some(patience)).unwrap();
            stream.set_nodelay(true).unwrap();
            BufReader::new(stream)
        })
    }

    /// The status of the answer to a request that is well formed.
    fn ask(&mut self, request: &str, media_type: &str, body: &str) -> u16 {
        let (host, length) = (self.serving.address(), body.len());
        let request = format!(
            "{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut connection = self.connection();
        connection.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut status, mut length, mut closes) = (0, 0, false);
        loop {
            let mut line = String::new();
            connection.read_line(&mut line).expect("a head in time");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            } else if line == "connection: close" {
                closes = true;
            } else if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        connection.read_exact(&mut answer).expect("a body in time");
        if !closes {
            self.connection = Some(connection);
        }
        status
    }

    /// Anything, on a connection of its own; the server goes on.
    fn raw(&mut self, request: &str) {
        self.connection = None;
        let mut connection = self.connection();
        let stream = connection.get_mut();
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut head = [0; 64];
        let _ = stream.read(&mut head);
        let ping = self.ask("GET /ping", "", "");
        assert_eq!(ping, 200);
    }
}
