//! A station on a machine made of files, and a client that says exactly what
//! it is told to.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;
use weather_station::{Configuration, Running, start, tamper, time::Time};

/// How long a test waits for what must come; then it has failed.
pub const LONG: Duration = Duration::from_secs(30);

/// A station and the folder that is its machine.
pub struct Bench {
    pub running: Running,
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new(adjust: impl FnOnce(&mut Configuration)) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("machine");
        std::fs::create_dir_all(machine.join("proc/pressure")).unwrap();
        std::fs::write(machine.join("proc/loadavg"), "0.42 0.39 0.23 1/123 4567\n").unwrap();
        std::fs::write(folder.path().join("tamper.txt"), "0\n").unwrap();
        let mut configuration = Configuration {
            port: 0,
            root: machine,
            speed: 0,
            start: Time::parse("2013-05-08T16:30"),
            profile: Some("bench".to_owned()),
            input: Some(tamper::Input::File(folder.path().join("tamper.txt"))),
            ..Configuration::default()
        };
        adjust(&mut configuration);
        Bench {
            running: start(configuration).unwrap(),
            folder,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    pub fn tamper(&self, content: &str) {
        std::fs::write(self.file("tamper.txt"), content).unwrap();
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Sends bytes and reads whatever comes until the station closes.
    pub fn raw(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // The station may have refused before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A request with a body and further headers, each line ended by `\r\n`.
    pub fn request(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> String {
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.address(),
            body.len(),
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.raw(&request)
    }

    pub fn get(&self, target: &str, headers: &str) -> String {
        self.request("GET", target, headers, b"")
    }

    pub fn post(&self, target: &str, headers: &str, form: &str) -> String {
        let headers = format!("Content-Type: application/x-www-form-urlencoded\r\n{headers}");
        self.request("POST", target, &headers, form.as_bytes())
    }

    /// A new visitor's cookie, as a header line.
    pub fn visitor(&self) -> String {
        let page = self.get("/", "");
        let cookie = page
            .split("set-cookie: ")
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        format!("Cookie: {cookie}\r\n")
    }

    /// Asserts that the station still serves its page.
    pub fn assert_alive(&self) {
        assert_status(&self.get("/", ""), 200);
    }
}

pub fn assert_status(answer: &str, status: u16) {
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "expected {status}: {answer:.300}"
    );
}

pub fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// A page that is open: its stream of events.
pub struct Open {
    stream: TcpStream,
    text: String,
}

impl Open {
    pub fn new(bench: &Bench, headers: &str) -> Open {
        let mut stream = bench.connect();
        write!(
            stream,
            "GET /events HTTP/1.1\r\nHost: {}\r\n{headers}\r\n",
            bench.address()
        )
        .unwrap();
        Open {
            stream,
            text: String::new(),
        }
    }

    /// Reads events until one holds `text`; panics when the stream ends first.
    pub fn wait_for(&mut self, text: &str) {
        while !self.text.contains(text) {
            assert!(self.more(), "the stream ended without {text}");
        }
        let at = self.text.find(text).unwrap();
        self.text.drain(..at + text.len());
    }

    /// Reads until the station ends the stream.
    pub fn wait_for_end(&mut self) {
        while self.more() {}
    }

    fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = self
            .stream
            .read(&mut bytes)
            .expect("the station says something in time");
        self.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read > 0
    }
}
