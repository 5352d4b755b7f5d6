//! Many hosts, as a coordinator sees them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::jobs::Piece;
use super::session::NO_PROFILES;
use super::wire::{self, BEAT, Incoming, Key, Lines, Writer};
use super::{Clocks, Request, Said, Told};
use crate::catalogue::Manner;
use crate::description::{Group, Server};
use crate::result::{Host, Offset};
use crate::run::protocol::Start;
use crate::run::{
    Executor, Failed, Happened, Here, Local, Order, Ordered, Place, Profile, Profiling, Run,
    refused, step,
};

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How often clocks are compared; the shortest way there and back counts.
const CLOCK_ROUNDS: u32 = 32;

/// Runs steps on this machine and on the test servers of others.
pub struct Cluster {
    local: Arc<Local>,
    key: Key,
    /// Where the test server of a host listens.
    addresses: BTreeMap<String, (String, u16)>,
    connections: BTreeMap<String, Connection>,
    /// How long a host that is lost is waited for.
    patience: Duration,
    steps: u64,
    /// Whether the step that runs is to end.
    stops: Arc<AtomicBool>,
    profiling: Option<Profiling>,
    /// Whether what runs on this machine may be profiled.
    profiles_here: bool,
}

impl Cluster {
    /// Runs what a description has here on this machine, and the rest on test
    /// servers with this key.
    #[must_use]
    pub fn new(local: impl Into<Arc<Local>>, key: Key) -> Cluster {
        Cluster {
            local: local.into(),
            key,
            addresses: BTreeMap::new(),
            connections: BTreeMap::new(),
            patience: Duration::from_secs(30),
            steps: 0,
            stops: Arc::default(),
            profiling: None,
            profiles_here: true,
        }
    }

    /// Profiles applications, wherever they run.
    #[must_use]
    pub fn profile(mut self, profiling: Option<Profiling>) -> Cluster {
        self.profiling = profiling;
        self
    }

    /// Whether what runs on this machine may be profiled.
    pub(super) fn allow_profiles_here(mut self, allowed: bool) -> Cluster {
        self.profiles_here = allowed;
        self
    }

    /// Ends the step that runs, and refuses others, while this is set.
    #[must_use]
    pub fn stops(mut self, stops: Arc<AtomicBool>) -> Cluster {
        self.stops = stops;
        self
    }

    /// Waits so long for a host that is lost, before a step is given up.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Cluster {
        self.patience = patience;
        self
    }

    /// Lets the server of a host run a command that was added to it.
    ///
    /// # Errors
    /// The host is lost, has no such command, or that failed.
    pub fn command(&mut self, server: &str, name: &str, argument: Json) -> Result<Json, String> {
        let request = Request::Command {
            name: name.into(),
            argument,
        };
        self.connection(server)?
            .ask(request)
            .map_err(Refusal::into_text)
    }

    /// The connection to a server, which is made again if it is lost.
    fn connection(&mut self, server: &str) -> Result<&mut Connection, String> {
        if self.connections.get(server).is_none_or(Connection::is_lost) {
            let (host, port) = self
                .addresses
                .get(server)
                .ok_or("nobody knows where it is")?;
            let deadline = Instant::now() + self.patience;
            let connection = loop {
                match Connection::new(host, *port, &self.key) {
                    Ok(connection) => break connection,
                    // It will not know our key later, either.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        return Err(error.to_string());
                    }
                    Err(error) if Instant::now() >= deadline => return Err(error.to_string()),
                    Err(_) if self.stops.load(Ordering::Acquire) => {
                        return Err("cancelled".into());
                    }
                    Err(_) => thread::sleep(Duration::from_millis(200)),
                }
            };
            self.connections.insert(server.into(), connection);
        }
        Ok(self.connections.get_mut(server).expect("it was made"))
    }
}

impl Executor for Cluster {
    fn step(&mut self, order: &Order, timeout: Duration) -> Result<Vec<Run>, Failed> {
        self.steps += 1;
        let number = self.steps;
        let (happened, events) = mpsc::channel();
        let servers = order.applications.iter().map(|it| &*it.server);
        let servers: Vec<&str> = servers.filter(|server| *server != Server::HERE).collect();
        for server in &servers {
            let lost = |why: String| Failed::Lost((*server).to_owned(), why);
            let connection = self.connection(server).map_err(lost)?;
            connection.hear(number, happened.clone());
            let begun = connection.ask::<Json>(Request::Begin(number));
            begun.map_err(Refusal::into_text).map_err(lost)?;
        }
        let mut everywhere = Everywhere {
            here: self.local.begin(happened).map_err(Failed::Refused)?,
            connections: &mut self.connections,
            places: BTreeMap::new(),
            profiling: self.profiling.as_ref(),
            profiles_here: self.profiles_here,
        };
        step::run(order, timeout, &mut everywhere, &events, &self.stops)
    }

    fn around(&mut self, order: &Order, timeout: Duration) -> Result<Vec<Run>, Failed> {
        self.step(order, timeout)
    }

    fn offsets(&mut self) -> BTreeMap<String, Offset> {
        let connections = self.connections.iter_mut();
        let measured = connections.filter_map(|(name, connection)| {
            // Whoever is lost by now has none.
            Some((name.clone(), connection.offset().ok()??))
        });
        measured.collect()
    }

    fn hosts(&mut self, group: &Group) -> Result<BTreeMap<String, Host>, Failed> {
        let servers: Vec<&Server> = group.tests.iter().flat_map(|test| &test.servers).collect();
        for server in &servers {
            if let Some(host) = &server.host {
                let port = server.port.unwrap_or(Server::PORT);
                self.addresses.insert(server.name(), (host.clone(), port));
            }
        }
        let mut hosts = BTreeMap::new();
        for server in servers {
            let name = server.name();
            if hosts.contains_key(&name) {
                continue;
            }
            let host = match server.host {
                None => self.local.host(),
                Some(_) => {
                    let lost = |why| Failed::Lost(name.clone(), why);
                    let connection = self.connection(&name).map_err(lost)?;
                    connection
                        .host()
                        .map_err(Refusal::into_text)
                        .map_err(lost)?
                }
            };
            hosts.insert(name, host);
        }
        Ok(hosts)
    }
}

/// Where the applications of a step run.
struct Everywhere<'c> {
    here: Here<'c>,
    connections: &'c mut BTreeMap<String, Connection>,
    /// On which server each application was started.
    places: BTreeMap<usize, String>,
    profiling: Option<&'c Profiling>,
    profiles_here: bool,
}

impl Everywhere<'_> {
    fn ask<T: DeserializeOwned>(&mut self, server: &str, request: Request) -> Result<T, Happened> {
        match self.connections.get_mut(server) {
            Some(connection) => connection.ask(request).map_err(Refusal::into_event),
            None => Err(Happened::Lost("there is no connection".into())),
        }
    }
}

impl Place for Everywhere<'_> {
    fn manner(&mut self, application: &Ordered) -> Result<Manner, Happened> {
        match &*application.server {
            Server::HERE => self.here.manner(application),
            server => self.ask(server, Request::Manner(application.kind.clone())),
        }
    }

    fn start(&mut self, index: usize, application: &Ordered, start: Start) -> Result<(), Happened> {
        let profiler = self.profiling.and_then(|it| it.wanted.of(application));
        if application.server == Server::HERE {
            if profiler.is_some() && !self.profiles_here {
                return Err(refused(NO_PROFILES));
            }
            let begun = self.here.begin(index, &application.kind, start, profiler);
            return begun.map_err(refused);
        }
        self.places.insert(index, application.server.clone());
        let request = Request::Start {
            index,
            kind: application.kind.clone(),
            start,
            profiler,
        };
        self.ask(&application.server, request)
    }

    fn profile(&mut self, order: &Order, index: usize) -> Option<Profile> {
        let profiling = self.profiling?;
        let Some(server) = self.places.get(&index).cloned() else {
            return self.here.keep(profiling, order, index);
        };
        let count: Option<usize> = self.ask(&server, Request::Profile(index)).ok()?;
        let connection = &RefCell::new(self.connections.get_mut(&server)?);
        let open = |number| {
            Ok(Pieces::new(move |from| {
                connection.borrow_mut().ask(Request::ProfileFile {
                    index,
                    number,
                    from,
                })
            }))
        };
        Some(profiling.keep(order, index, count?, open))
    }

    fn stop(&mut self, index: usize) {
        match self.places.get(&index).cloned() {
            None => self.here.stop(index),
            // Who is lost has stopped it.
            Some(server) => _ = self.ask::<Json>(&server, Request::Stop(index)),
        }
    }
}

/// A file that a server gives in pieces.
pub(super) struct Pieces<A> {
    ask: A,
    from: u64,
    bytes: Option<u64>,
    piece: io::Cursor<Vec<u8>>,
}

impl<A: FnMut(u64) -> Result<Piece, Refusal>> Pieces<A> {
    /// `ask` asks for the piece from a place on.
    pub fn new(ask: A) -> Pieces<A> {
        Pieces {
            ask,
            from: 0,
            bytes: None,
            piece: io::Cursor::default(),
        }
    }
}

impl<A: FnMut(u64) -> Result<Piece, Refusal>> Read for Pieces<A> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(into)?;
        if read > 0 || into.is_empty() || self.bytes == Some(self.from) {
            return Ok(read);
        }
        let piece = (self.ask)(self.from).map_err(|why| io::Error::other(why.into_text()))?;
        let data = piece.data().map_err(io::Error::other)?;
        self.from += data.len() as u64;
        // One that gives nothing more has come to its end.
        self.bytes = Some(if data.is_empty() {
            self.from
        } else {
            piece.bytes
        });
        self.piece = io::Cursor::new(data);
        self.piece.read(into)
    }
}

/// Why a server did not do what it was asked for.
pub(super) enum Refusal {
    Lost(String),
    Refused(String),
}

impl Refusal {
    pub fn into_text(self) -> String {
        match self {
            Refusal::Lost(why) | Refusal::Refused(why) => why,
        }
    }

    fn into_event(self) -> Happened {
        match self {
            Refusal::Lost(why) => Happened::Lost(why),
            Refusal::Refused(why) => refused(why),
        }
    }
}

/// A connection with a test server.
pub(super) struct Connection {
    writer: Arc<Mutex<Writer>>,
    answers: Receiver<Result<Json, String>>,
    shared: Arc<Mutex<Shared>>,
    /// Dropped, it ends the thread that beats.
    _stays: Sender<()>,
}

/// What the thread that reads shares.
#[derive(Default)]
struct Shared {
    /// Where the events of a step go.
    listener: Option<(u64, Sender<(usize, Happened)>)>,
    /// The applications that have started there.
    started: Vec<usize>,
    /// Why the server is lost.
    lost: Option<String>,
}

impl Connection {
    pub fn new(host: &str, port: u16, key: &Key) -> io::Result<Connection> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    let (writer, lines) = wire::connect(stream, key)?;
                    return Ok(Connection::with(writer, lines));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn with(writer: Writer, lines: Lines<Incoming>) -> Connection {
        let writer = Arc::new(Mutex::new(writer));
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (answer, answers) = mpsc::channel();
        let (stays, goes) = mpsc::channel::<()>();
        let reader = Arc::clone(&shared);
        thread::spawn(move || read(lines, &answer, &reader));
        let beats = Arc::clone(&writer);
        thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = goes.recv_timeout(BEAT) {
                if lock(&beats).send(&Told::Beat).is_err() {
                    return;
                }
            }
        });
        Connection {
            writer,
            answers,
            shared,
            _stays: stays,
        }
    }

    fn is_lost(&self) -> bool {
        lock(&self.shared).lost.is_some()
    }

    /// Events of the step of this number go there.
    fn hear(&mut self, step: u64, listener: Sender<(usize, Happened)>) {
        let mut shared = lock(&self.shared);
        shared.listener = Some((step, listener));
        shared.started.clear();
    }

    pub fn ask<T: DeserializeOwned>(&mut self, request: Request) -> Result<T, Refusal> {
        if let Request::Start { index, .. } = &request {
            lock(&self.shared).started.push(*index);
        }
        let sent = lock(&self.writer).send(&Told::Request(request));
        sent.map_err(|error| Refusal::Lost(error.to_string()))?;
        match self.answers.recv_timeout(ANSWER) {
            Ok(Ok(answer)) => serde_json::from_value(answer)
                .map_err(|error| Refusal::Refused(format!("an answer of another kind: {error}"))),
            Ok(Err(why)) => Err(Refusal::Refused(why)),
            Err(_) => {
                // Its next answer would be taken for one to the next request.
                lock(&self.writer).close();
                let why = lock(&self.shared).lost.clone();
                Err(Refusal::Lost(
                    why.unwrap_or_else(|| "it does not answer".into()),
                ))
            }
        }
    }

    /// What the host is, and what its clocks show beside ours.
    fn host(&mut self) -> Result<Host, Refusal> {
        Ok(Host {
            clock_offset: self.offset()?,
            ..self.ask(Request::Host)?
        })
    }

    /// How far its clocks are ahead of ours.
    fn offset(&mut self) -> Result<Option<Offset>, Refusal> {
        let mut best: Option<Offset> = None;
        for _ in 0..CLOCK_ROUNDS {
            let before = Clocks::now();
            let there: Clocks = self.ask(Request::Clocks)?;
            let after = Clocks::now();
            let half = |before: i64, after: i64| (after - before + 1) / 2;
            let error = half(before.monotonic, after.monotonic).max(half(before.real, after.real));
            let middle = |before: i64, after: i64| before + (after - before) / 2;
            let offset = Offset {
                monotonic_ns: there.monotonic - middle(before.monotonic, after.monotonic),
                real_ns: there.real - middle(before.real, after.real),
                error_ns: error.max(1),
            };
            if best
                .as_ref()
                .is_none_or(|best| offset.error_ns < best.error_ns)
            {
                best = Some(offset);
            }
        }
        Ok(best)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.writer).close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads what a server says until it is lost.
fn read(mut lines: Lines<Incoming>, answer: &Sender<Result<Json, String>>, shared: &Mutex<Shared>) {
    let why = loop {
        match lines.next::<Said>() {
            Ok(Some(Said::Beat)) => {}
            Ok(Some(Said::Answer(said))) => _ = answer.send(said),
            Ok(Some(Said::Event(step, index, happened))) => {
                let shared = lock(shared);
                if let Some((number, listener)) = &shared.listener {
                    if *number == step {
                        let _ = listener.send((index, happened));
                    }
                }
            }
            Ok(None) => break "its test server has ended the connection".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    let mut shared = lock(shared);
    if let Some((_, listener)) = &shared.listener {
        for index in &shared.started {
            let _ = listener.send((*index, Happened::Lost(why.clone())));
        }
    }
    shared.lost = Some(why);
}
