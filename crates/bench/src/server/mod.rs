//! Test servers: they run the applications of a step for a coordinator, on any number of hosts.
//!
//! A coordinator is whoever runs a description whose servers have hosts
//! ([`Cluster`]). It connects to the test server of each host, tells it which
//! applications to start when, and is told what happens to them. A server runs
//! only what its own catalogue has, for those who know its key; what it runs ends
//! with the connection, whatever ends that.
//!
//! A server coordinates, too, if it has a folder for [`Jobs`]: a [`Client`] hands it
//! a group, which it runs on itself and on other servers that know its key, as in
//! the Solar paper (section 4.2).
//!
//! What a server can be told to do are *commands*; [`Command`] adds others.

mod client;
mod cluster;
mod jobs;
mod session;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use client::Client;
pub use cluster::Cluster;
pub use jobs::{Job, Jobs, State};
pub use wire::Key;

use crate::description::Group;
use crate::run::protocol::Start;
use crate::run::{Happened, Local, Profiler, Wanted};

/// Something that a test server can be told to do, beside what it does anyway.
pub trait Command: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;

    /// Does it.
    ///
    /// # Errors
    /// Why not.
    fn run(&self, argument: &Json) -> Result<Json, String>;
}

/// What a coordinator says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// What is this host?
    Host,
    /// What do its clocks show?
    Clocks,
    /// A step of this number begins; what still runs ends.
    Begin(u64),
    /// How does this kind take part?
    Manner(String),
    /// Start an application.
    Start {
        index: usize,
        kind: String,
        start: Start,
        #[serde(default)]
        profiler: Option<Profiler>,
    },
    /// How many files has the profile of an application? None is no profile.
    Profile(usize),
    /// A file of the profile of an application, from a place on.
    ProfileFile {
        index: usize,
        number: usize,
        from: u64,
    },
    /// Tell an application to end.
    Stop(usize),
    /// A command that was added.
    Command { name: String, argument: Json },
    /// Run a group when its turn comes, and keep what comes out.
    Submit {
        group: Box<Group>,
        patience_seconds: f64,
        #[serde(default)]
        profile: Option<Wanted>,
    },
    /// Which jobs are there?
    Jobs,
    /// How far is a job?
    Job(u64),
    /// End a job.
    Cancel(u64),
    /// Let a job go on.
    Resume(u64),
    /// The result of a job, from a place on.
    Fetch { id: u64, from: u64 },
    /// A file of the profiles of a job, from a place on.
    FetchProfile { id: u64, name: String, from: u64 },
}

/// What goes to a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Told {
    Request(Request),
    /// The coordinator is there.
    Beat,
}

/// What a server says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Said {
    /// To the request before.
    Answer(Result<Json, String>),
    /// Something happened to an application, in the step of this number.
    Event(u64, usize, Happened),
    /// The server is there.
    Beat,
}

/// A test server.
pub struct Server {
    local: Arc<Local>,
    key: Key,
    commands: BTreeMap<String, Box<dyn Command>>,
    jobs: Option<Jobs>,
    profiles: bool,
}

impl Server {
    /// A server that runs applications so, for those who know the key.
    #[must_use]
    pub fn new(local: Local, key: Key) -> Server {
        Server {
            local: Arc::new(local),
            key,
            commands: BTreeMap::new(),
            jobs: None,
            profiles: false,
        }
    }

    /// Adds a command.
    #[must_use]
    pub fn with(mut self, command: Box<dyn Command>) -> Server {
        self.commands.insert(command.name().to_owned(), command);
        self
    }

    /// Lets coordinators profile what it runs: perf and callgrind run beside what its
    /// catalogue has.
    #[must_use]
    pub fn allow_profiles(mut self, allowed: bool) -> Server {
        self.profiles = allowed;
        self
    }

    /// Lets it coordinate: jobs of clients run on it and on other servers with its key.
    #[must_use]
    pub fn coordinate(mut self, jobs: Jobs) -> Server {
        self.jobs = Some(jobs);
        self
    }

    /// Serves coordinators, each in a thread of its own, as long as connections
    /// come. `tell` gets a line for whoever looks after the server.
    ///
    /// # Errors
    /// Connections cannot be accepted any more.
    pub fn serve(
        self,
        listener: &TcpListener,
        tell: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<()> {
        /// More coordinators at once, or more who do not say who they are, are a
        /// mistake, or an attack.
        const CONNECTIONS_MAX: usize = 64;
        let (server, tell) = (Arc::new(self), Arc::new(tell));
        let (strangers, coordinators) = (Arc::new(()), Arc::new(()));
        if server.jobs.is_some() {
            let (server, tell) = (Arc::clone(&server), Arc::clone(&tell));
            thread::spawn(move || {
                if let Some(jobs) = &server.jobs {
                    jobs.work(&server.local, &server.key, server.profiles, &*tell);
                }
            });
        }
        loop {
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                // Who has gone again is nobody's trouble.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if Arc::strong_count(&strangers) > CONNECTIONS_MAX {
                tell(format!("{from}: too many connections"));
                continue;
            }
            let (server, tell) = (Arc::clone(&server), Arc::clone(&tell));
            let (stranger, coordinators) = (Arc::clone(&strangers), Arc::downgrade(&coordinators));
            thread::spawn(move || {
                let served = wire::accept(stream, &server.key).and_then(|(writer, lines)| {
                    drop(stranger);
                    let _coordinator = coordinators.upgrade();
                    match coordinators.strong_count() <= CONNECTIONS_MAX + 1 {
                        true => session::run(&server, writer, lines),
                        false => Err(io::Error::other("too many coordinators")),
                    }
                });
                if let Err(error) = served {
                    tell(format!("{from}: {error}"));
                }
            });
        }
    }
}

/// For fuzzing: what a server and a coordinator make of what others send.
#[doc(hidden)]
pub mod fuzz {
    use super::{Server, session, wire};
    pub use wire::fuzz::stranger;

    /// A coordinator sends these lines to a server, and knows its key.
    pub fn coordinator(server: &Server, lines: &[&[u8]]) {
        let (writer, lines) = wire::fuzz::halves(lines);
        let _ = session::run(server, writer, lines);
    }

    /// A server sends this line.
    pub fn server(line: &[u8]) {
        let _ = serde_json::from_slice::<super::Said>(line);
    }
}

/// What the clocks of a host show, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Clocks {
    monotonic: i64,
    real: i64,
}

impl Clocks {
    fn now() -> Clocks {
        use nix::sys::time::TimeValLike as _;
        use nix::time::{ClockId, clock_gettime};
        let read = |clock: ClockId| clock_gettime(clock).map_or(0, |time| time.num_nanoseconds());
        Clocks {
            monotonic: read(ClockId::CLOCK_MONOTONIC),
            real: read(ClockId::CLOCK_REALTIME),
        }
    }
}
