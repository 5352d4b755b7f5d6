//! A station on a machine made of files, and a client that says exactly what
//! it is told to.

#![allow(dead_code, reason = "each test file uses its part")]

use milieu::store::Locations;
use milieu::{Milieu, Start};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weather_station::environment::Environment;
use weather_station::{Running, program, start};

/// A machine made of files, with a profile, a tamper input and settings.
pub fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::create_dir_all(path.join("machine/proc/pressure")).unwrap();
    std::fs::write(
        path.join("machine/proc/loadavg"),
        "0.42 0.39 0.23 1/123 4567\n",
    )
    .unwrap();
    std::fs::write(path.join("tamper.txt"), "0\n").unwrap();
    std::fs::write(path.join("profile"), "bench\n").unwrap();
    std::fs::create_dir_all(path.join("gpio/gpio7")).unwrap();
    std::fs::write(path.join("gpio/gpio7/value"), "0\n").unwrap();
    std::fs::create_dir_all(path.join("home/weather-station")).unwrap();
    std::fs::write(
        path.join("home/weather-station/weather-station.ini"),
        SETTINGS.replace('~', &path.display().to_string()),
    )
    .unwrap();
    folder
}

/// The arguments of a station on that machine, with further ones, which count more.
pub fn arguments(folder: &Path, further: &[String]) -> Vec<OsString> {
    let own = [
        "--port=0".to_owned(),
        "--speed=0".to_owned(),
        "--start=2013-05-08T16:30".to_owned(),
        format!("--root={}", folder.join("machine").display()),
        format!("--profile={}", folder.join("profile").display()),
    ];
    let option = |argument: &str| argument.split('=').next().map(str::to_owned);
    let given: Vec<_> = further.iter().map(|argument| option(argument)).collect();
    let own = own
        .into_iter()
        .filter(|argument| !given.contains(&option(argument)));
    let all = own.chain(further.iter().cloned());
    all.map(OsString::from).collect()
}

/// The settings of a station on that machine.
pub fn open(folder: &Path, further: &[String]) -> Result<Start, milieu::Error> {
    let home = folder.join("home");
    let locations = Locations::from_environment(move |name| match name {
        "XDG_CONFIG_HOME" => Some(home.clone().into()),
        "XDG_CONFIG_DIRS" => Some(home.join("system").into()),
        _ => None,
    });
    Milieu::builder("weather-station")
        .locations(locations)
        .arguments::<Environment>(program(), arguments(folder, further), |_| None)
        .start()
}

fn opened(folder: &Path, further: &[String]) -> Milieu {
    match open(folder, further).unwrap() {
        Start::Run(milieu) => *milieu,
        Start::Say(text) => panic!("{text}"),
    }
}

/// How long a test waits for what must come; then it has failed.
pub const LONG: Duration = Duration::from_secs(30);

/// The user's settings of a bench: two hardware profiles, as in the paper
/// (CoElektra, IV-A). `~` is the bench's folder.
const SETTINGS: &str = "\
# How the bench is wired.
[/hw/pi/bench/gpio]
folder = ~
tamper = tamper.txt

[/hw/pi/other/gpio]
folder = ~/gpio
tamper = gpio7
";

/// A station and the folder that is its machine.
pub struct Bench {
    pub running: Running,
    pub folder: tempfile::TempDir,
    pub arguments: Vec<String>,
}

impl Bench {
    pub fn new(arguments: &[&str]) -> Bench {
        Bench::prepared(arguments, |_| {})
    }

    /// A station that finds what `prepare` has put into its folder.
    pub fn prepared(arguments: &[&str], prepare: impl FnOnce(&Path)) -> Bench {
        let folder = machine();
        prepare(folder.path());
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let running = start(opened(folder.path(), &arguments)).unwrap();
        Bench {
            running,
            folder,
            arguments,
        }
    }

    /// Ends the station and starts it again with what it has left behind.
    pub fn restart(&mut self) {
        self.running.end();
        self.running = start(opened(self.folder.path(), &self.arguments)).unwrap();
    }

    /// Another station with the same settings.
    pub fn beside(&self) -> Running {
        start(opened(self.folder.path(), &self.arguments)).unwrap()
    }

    /// The user's settings, as the station has left them.
    pub fn settings(&self) -> String {
        std::fs::read_to_string(self.file("home/weather-station/weather-station.ini")).unwrap()
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

    /// Waits until a monitor sees this.
    pub fn until_health(&self, what: &str) {
        let begun = std::time::Instant::now();
        while !self.get("/health", "").contains(what) {
            assert!(begun.elapsed() < LONG, "never: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
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

/// Sends a request and reads whatever comes until the station closes.
pub fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
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
        Open::at(&bench.address().to_string(), headers)
    }

    pub fn at(address: &str, headers: &str) -> Open {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "GET /events HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n",
        )
        .unwrap();
        Open {
            stream,
            text: String::new(),
        }
    }

    /// Reads events until one holds `text`; panics when the stream ends first.
    pub fn wait_for(&mut self, text: &str) {
        let begun = std::time::Instant::now();
        while !self.text.contains(text) {
            assert!(self.more(), "the stream ended without {text}");
            assert!(begun.elapsed() < LONG, "never: {text}");
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
