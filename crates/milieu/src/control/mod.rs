//! The control socket: how other tools of the same user reach a running program.
//!
//! ```text
//!  $XDG_RUNTIME_DIR/milieu/APP-PID.sock      one JSON object a line
//!
//!  {"ask":"about"}                           {"app":"station","process":4711,"protocol":1}
//!  {"ask":"stream.list","query":"/**"}       {"names":[{"name":"/t","kind":"stream"},…]}
//!  {"ask":"stream.graph"}                    {"nodes":[…],"edges":[…],"subscribers":[…],
//!                                            "ends":[…]}
//!  {"ask":"stream.subscribe","flow":"/t"}    {"ok":true,"mode":"json"}, then an event a line
//!  {"ask":"stream.publish","name":"/t"}      {"ok":true,"mode":"json"}; then the client sends
//!                                            a value a line
//!  anything else                             {"error":"…"}
//! ```
//!
//! Either may have a `"mode"`, one of `Milieu::modes`; without it, a
//! subscription has that of its flow (`| subscribe mode=cbor`), and else JSON, which
//! is Milieu's own also where the program has a mode in its place. In
//! modes other than JSON the lines end behind the answer, and frames begin: each
//! is its length, 4 bytes with the greatest first, and so many bytes. Where the
//! first bit of the length is set, what follows is a text that says why an event
//! is missing. Whoever publishes closes its end when it has no more, and reads
//! what was wrong, a line each, until the program closes the other.
//!
//! Rates in a graph are events in a second, latency and age are in seconds; all
//! are null where they are not known, as when somebody looks for the first time.
//! Ends are those that this program has of edges to other machines (`"way":"out"`)
//! and from them (`"in"`), each with the `peer`, the `name` and the `channel`.
//!
//! Properties kept:
//! - only the user who runs the program, and root, are answered: the folder and
//!   the socket are theirs, and the peer's credentials are checked besides;
//! - a line has a bound, and so has the number of connections;
//! - a client that reads slowly loses events of its own queue, which are
//!   counted, and slows nobody.

mod convey;
mod sockets;
mod tell;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milieu_stream::Streams;
use milieu_stream::link::Link;
use milieu_stream::names::{Query, Rights as NameRights};
use serde_json::{Value as Tree, json};

use crate::streams::OwnModes;
use crate::{Error, Milieu};

/// The version of the protocol.
const PROTOCOL: u32 = 1;
/// Set in the length of what is no frame, but why there is none.
#[doc(hidden)]
pub const NO_FRAME: u32 = 1 << 31;
/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Most tools that are connected at a time.
const CONNECTIONS_MAX: usize = 64;
/// How long a client is waited for that does not take what it asked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program's control socket; it is closed and removed when this is dropped.
#[must_use = "the socket is closed when this is dropped"]
pub struct Control {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    streams: Streams,
    modes: OwnModes,
    app: String,
    ended: AtomicBool,
    connections: AtomicUsize,
}

impl Milieu {
    /// A picture of what runs, as `Streams::look`, in the JSON that programs have of it
    /// by way of [`control`](Milieu::control). Nothing within a callback.
    #[must_use]
    pub fn graph(&self) -> Option<String> {
        let view = self.streams().look()?;
        Some(tell::graph(&view).to_string())
    }

    /// Whom a link reaches and who has left, what was refused of what they have sent, and
    /// what became of events on edges that are no more, as JSON. Nothing within a
    /// callback.
    #[must_use]
    pub fn peers(&self, link: &Link) -> Option<String> {
        Some(tell::link(link)?.to_string())
    }

    /// What stands at the names of a query, such as `/labs/*`, in the same JSON.
    /// Nothing within a callback.
    ///
    /// # Errors
    /// If the text is no query.
    pub fn names(&self, query: &str) -> Result<Option<String>, Error> {
        let query = Query::parse(query).map_err(|error| Error::Naming(error.to_string()))?;
        let members = self
            .streams()
            .list(query, milieu_stream::names::Rights::all());
        let members = members.map(|all| all.iter().map(tell::member).collect::<Vec<_>>());
        Ok(members.map(|all| serde_json::Value::from(all).to_string()))
    }

    /// Lets other tools of the same user look at the streams of this program,
    /// subscribe to them and publish: `milieu stream`.
    ///
    /// # Errors
    /// If the socket cannot be made in the user's folder for such things
    /// (`$XDG_RUNTIME_DIR`, otherwise a folder of the user's in `/tmp`), or this
    /// program has one already.
    pub fn control(&self) -> Result<Control, Error> {
        let app = self.app().to_owned();
        let name = format!("{app}-{}.sock", std::process::id());
        let opened = sockets::open(&name);
        let opened = opened.and_then(|(path, listener)| {
            let (streams, modes) = (self.streams().clone(), self.kept.modes.clone());
            Control::start(path, listener, app, streams, modes)
        });
        opened.map_err(Error::System)
    }
}

impl Control {
    fn start(
        path: PathBuf,
        listener: UnixListener,
        app: String,
        streams: Streams,
        modes: OwnModes,
    ) -> io::Result<Control> {
        let shared = Arc::new(Shared {
            streams,
            modes,
            app,
            ended: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("milieu-control".to_owned());
        let thread = thread.spawn(move || accept(&listener, &of_thread))?;
        Ok(Control {
            path,
            shared,
            thread: Some(thread),
        })
    }

    /// The sockets of the programs that this user runs, by their file names. Those
    /// of programs that were killed are removed.
    ///
    /// # Errors
    /// If the folder is not one that only this user can enter, or cannot be read.
    pub fn sockets() -> io::Result<Vec<PathBuf>> {
        sockets::all()
    }

    /// Where the socket is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // It waits for a connection, and gets one; where the socket is no longer
        // there it cannot, and waits until the program ends.
        let woken = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.ended.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, most likely: others may be closed soon.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if shared.connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
            let _ = say(&stream, &json!({"error": "too many tools are connected"}));
            continue;
        }
        let connected = Connected(Arc::clone(shared));
        let thread = thread::Builder::new().name("milieu-control".to_owned());
        let served = thread.spawn(move || {
            // Whatever goes wrong with a client ends the conversation with it.
            let _ = serve(&stream, &connected.0);
        });
        drop(served);
    }
}

/// A connection, until this is dropped: also where its thread panics or is none.
struct Connected(Arc<Shared>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether the peer is the user of this process, or root.
fn is_ours(stream: &UnixStream) -> bool {
    let user = rustix::process::geteuid();
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == user || peer.uid.is_root())
}

fn say(mut stream: &UnixStream, line: &Tree) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())
}

fn serve(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    if !is_ours(stream) {
        return say(stream, &json!({"error": "this program is another user's"}));
    }
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line)? {
        let answer = match serde_json::from_slice::<Tree>(&line) {
            Err(error) => Err(format!("this is no JSON: {error}")),
            Ok(request) => match request["ask"].as_str() {
                Some("about") => Ok(shared.about()),
                Some("stream.list") => shared.list(&request),
                Some("stream.graph") => shared.graph(),
                Some("stream.subscribe") => return shared.subscribe(stream, &request),
                Some("stream.publish") => return shared.publish(stream, &mut lines, &request),
                _ => Err(
                    "ask for one of about, stream.list, stream.graph, stream.subscribe and \
                          stream.publish"
                        .to_owned(),
                ),
            },
        };
        say(
            stream,
            &answer.unwrap_or_else(|error| json!({"error": error})),
        )?;
    }
    Ok(())
}

/// Reads a line without its end. False: there are no more.
fn read_line(lines: &mut BufReader<&UnixStream>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = lines.take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    if read as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a line is too long",
        ));
    }
    Ok(read > 0)
}

impl Shared {
    fn about(&self) -> Tree {
        let process = std::process::id();
        json!({"app": self.app, "process": process, "protocol": PROTOCOL})
    }

    fn list(&self, request: &Tree) -> Result<Tree, String> {
        let query = request["query"].as_str().unwrap_or("/**");
        let query = Query::parse(query).map_err(|refusal| refusal.to_string())?;
        let members = self
            .streams
            .list(query, NameRights::all())
            .unwrap_or_default();
        let names: Vec<Tree> = members.iter().map(tell::member).collect();
        Ok(json!({ "names": names }))
    }

    fn graph(&self) -> Result<Tree, String> {
        let view = self
            .streams
            .look()
            .ok_or("the graph cannot be looked at now")?;
        Ok(tell::graph(&view))
    }
}
