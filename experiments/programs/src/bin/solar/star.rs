//! The star: knows which planet publishes what, and tells whoever asks.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use experiments::{Failed, whole};
use milieu_bench::run::protocol::{Measurement, Start};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Ready, at};

/// What the star is told and asked, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// I publish this, at that port, as long as this connection lasts.
    Publish(String, u16),
    /// Where is this published?
    Find(String),
}

/// What it answers: where something is, if it is anywhere.
pub type Answer = Option<SocketAddr>;

type Published = Arc<Mutex<BTreeMap<String, SocketAddr>>>;

pub fn run(start: &Start, ready: Ready<'_>) -> Result<Measurement, Failed> {
    let port = u16::try_from(whole(start, "data-port")?)?;
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    ready(at(listener.local_addr()?.port()))?;
    let published = Published::default();
    for stream in listener.incoming() {
        let (stream, published) = (stream?, Arc::clone(&published));
        thread::spawn(move || {
            let mut own = Vec::new();
            // Who is gone publishes nothing.
            let _ = serve(stream, &published, &mut own);
            let mut published = lock(&published);
            own.iter().for_each(|name| _ = published.remove(name));
        });
    }
    Err("nobody can connect any more".into())
}

fn serve(stream: TcpStream, published: &Published, own: &mut Vec<String>) -> io::Result<()> {
    let peer = stream.peer_addr()?;
    let mut line = Line::new(stream)?;
    loop {
        let answer: Answer = match line.read()? {
            Request::Publish(name, port) => {
                let place = SocketAddr::new(peer.ip(), port);
                lock(published).insert(name.clone(), place);
                own.push(name);
                Some(place)
            }
            Request::Find(name) => lock(published).get(&name).copied(),
        };
        line.write(&answer)?;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection that carries lines of JSON.
pub struct Line(BufReader<TcpStream>);

impl Line {
    pub fn new(stream: TcpStream) -> io::Result<Line> {
        stream.set_nodelay(true)?;
        Ok(Line(BufReader::new(stream)))
    }

    pub fn read<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(serde_json::from_str(&line)?),
        }
    }

    pub fn write(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line)
    }

    /// The connection, which goes on with something else; nothing of that has come
    /// yet.
    pub fn into_stream(self) -> TcpStream {
        self.0.into_inner()
    }
}

/// Asks the star of a test.
pub fn ask(start: &Start, request: &Request) -> Result<(Line, SocketAddr), Failed> {
    let host = experiments::text(start, "starHost")?;
    let port = u16::try_from(whole(start, "star.port")?)?;
    let mut line = Line::new(TcpStream::connect((&*host, port))?)?;
    line.write(request)?;
    let answer: Answer = line.read()?;
    let place = answer.ok_or("nobody publishes that")?;
    Ok((line, place))
}
