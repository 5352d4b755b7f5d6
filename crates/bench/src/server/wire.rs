//! What test servers and coordinators send each other: lines of JSON that nobody else can write.
//!
//! Both know a key. Each proves it with the other's random number, so that nothing
//! recorded can be sent again, and every line after that carries a code over its
//! place and its text. Lines can be read by others on the network, and not changed,
//! left out or added.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::Sha256;

/// How often each side says that it is there.
pub(super) const BEAT: Duration = Duration::from_secs(2);
/// How long proving who one is may take, however it is drawn out.
const STRANGER_MAX: Duration = Duration::from_secs(5);
/// How long nothing may be heard.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The longest line before the other has proved who it is.
const STRANGER_BYTES_MAX: u64 = 1024;
/// The longest line.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// The version of what is said.
const VERSION: u32 = 2;

/// What test servers and coordinators know, and nobody else.
#[derive(Clone)]
pub struct Key(Vec<u8>);

impl Key {
    /// Reads a key file: any text of 16 bytes or more, which only its owner may
    /// read.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it is too short.
    pub fn read(path: &Path) -> io::Result<Key> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let shown = path.display();
        let mode = fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(wrong(format!("others may read {shown}; chmod 600 {shown}")));
        }
        let text = fs::read(path)?;
        let text = text.trim_ascii();
        match text.len() {
            16.. => Ok(Key(text.to_vec())),
            length => Err(wrong(format!(
                "{shown} has {length} bytes, and a key 16 at least"
            ))),
        }
    }

    /// Reads a key file, which is made if it is not there.
    ///
    /// # Errors
    /// It can neither be read nor made.
    pub fn read_or_make(path: &Path) -> io::Result<Key> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = fs::OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => file.write_all(format!("{}\n", hex(&random()?)).as_bytes())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Key::read(path)
    }

    fn code(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut code = Hmac::new_from_slice(&self.0).expect("keys of any length will do");
        for part in parts {
            // Where a part ends is part of it.
            code.update(&(part.len() as u64).to_le_bytes());
            code.update(part);
        }
        code
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    bytes.collect()
}

/// Which side says something.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Server,
    Coordinator,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Server => Side::Coordinator,
            Side::Coordinator => Side::Server,
        }
    }

    fn name(self) -> &'static [u8] {
        match self {
            Side::Server => b"server",
            Side::Coordinator => b"coordinator",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Hello {
    #[serde(rename = "milieu-bench")]
    version: u32,
    nonce: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
}

/// What is read of a connection, until a deadline if there is one.
pub(super) struct Incoming {
    stream: TcpStream,
    deadline: Option<Instant>,
}

impl Read for Incoming {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(deadline) = self.deadline else {
            return self.stream.read(into);
        };
        let late = || stranger("the other side takes too long to say who it is");
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
            _ => error,
        })
    }
}

/// The half of a connection that is written.
pub(super) struct Writer {
    stream: Box<dyn Write + Send>,
    /// What is ended with it.
    socket: Option<TcpStream>,
    key: Key,
    side: Side,
    count: u64,
}

/// The half of a connection that is read.
pub(super) struct Lines<R> {
    stream: BufReader<R>,
    key: Key,
    side: Side,
    count: u64,
    line: Vec<u8>,
}

/// A connection with somebody who knows the key, in its two halves.
pub(super) fn accept(stream: TcpStream, key: &Key) -> io::Result<(Writer, Lines<Incoming>)> {
    let (mut ours, mut theirs) = halves(stream)?;
    let nonces = greet(&mut ours, &mut theirs, key)?;
    session(ours, theirs, key, Side::Server, nonces)
}

/// The same from the other side.
pub(super) fn connect(stream: TcpStream, key: &Key) -> io::Result<(Writer, Lines<Incoming>)> {
    let (mut ours, mut theirs) = halves(stream)?;
    let nonces = answer(&mut ours, &mut theirs, key)?;
    session(ours, theirs, key, Side::Coordinator, nonces)
}

/// Finds out whether a coordinator knows the key, and shows it the same; the random
/// numbers of both.
fn greet(ours: &mut impl Write, theirs: &mut impl BufRead, key: &Key) -> io::Result<[String; 2]> {
    let nonce = hex(&random()?);
    let hello = Hello {
        version: VERSION,
        nonce: nonce.clone(),
        proof: None,
    };
    say(ours, &hello)?;
    let answer: Hello = hear(theirs)?;
    let nonces = [nonce, answer.nonce];
    verify(key, Side::Coordinator, &nonces, answer.proof.as_deref())?;
    let proof = hex(&proof(key, Side::Server, &nonces).finalize().into_bytes());
    let last = Hello {
        version: VERSION,
        nonce: String::new(),
        proof: Some(proof),
    };
    say(ours, &last)?;
    Ok(nonces)
}

/// The same for a server.
fn answer(ours: &mut impl Write, theirs: &mut impl BufRead, key: &Key) -> io::Result<[String; 2]> {
    let hello: Hello = hear(theirs)?;
    let nonce = hex(&random()?);
    let nonces = [hello.nonce, nonce.clone()];
    let proof = hex(&proof(key, Side::Coordinator, &nonces)
        .finalize()
        .into_bytes());
    let answer = Hello {
        version: VERSION,
        nonce,
        proof: Some(proof),
    };
    say(ours, &answer)?;
    let last: Hello = hear(theirs).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => stranger("it does not accept our key"),
        _ => error,
    })?;
    verify(key, Side::Server, &nonces, last.proof.as_deref())?;
    Ok(nonces)
}

fn halves(stream: TcpStream) -> io::Result<(TcpStream, BufReader<Incoming>)> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let theirs = Incoming {
        stream: stream.try_clone()?,
        deadline: Some(Instant::now() + STRANGER_MAX),
    };
    Ok((stream, BufReader::new(theirs)))
}

fn proof(key: &Key, side: Side, [first, second]: &[String; 2]) -> Hmac<Sha256> {
    key.code(&[b"proof", side.name(), first.as_bytes(), second.as_bytes()])
}

fn verify(key: &Key, side: Side, nonces: &[String; 2], told: Option<&str>) -> io::Result<()> {
    let told = told.and_then(unhex).unwrap_or_default();
    // A short number could be known from elsewhere.
    let is_long = nonces.iter().all(|nonce| nonce.len() == 64);
    let is_right = proof(key, side, nonces).verify_slice(&told).is_ok();
    match is_right && is_long {
        true => Ok(()),
        false => Err(stranger("the other side has another key")),
    }
}

fn session(
    ours: TcpStream,
    mut theirs: BufReader<Incoming>,
    key: &Key,
    side: Side,
    nonces: [String; 2],
) -> io::Result<(Writer, Lines<Incoming>)> {
    theirs.get_mut().deadline = None;
    ours.set_read_timeout(Some(SILENCE_MAX))?;
    let [first, second] = nonces.each_ref().map(|nonce| nonce.as_bytes());
    let code = key.code(&[b"session", first, second]).finalize();
    let key = Key(code.into_bytes().to_vec());
    let writer = Writer {
        socket: Some(ours.try_clone()?),
        ..Writer::new(ours, key.clone(), side)
    };
    Ok((writer, Lines::new(theirs, key, side.other())))
}

fn stranger(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned())
}

fn say(stream: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.write_all(&text)
}

fn hear(stream: &mut impl BufRead) -> io::Result<Hello> {
    let mut line = Vec::new();
    stream
        .take(STRANGER_BYTES_MAX)
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let hello: Hello = serde_json::from_slice(&line)
        .map_err(|_| stranger("the other side is no test server, or another version of it"))?;
    match hello.version {
        VERSION => Ok(hello),
        other => Err(stranger(&format!(
            "the other side speaks version {other}, and this one {VERSION}; have the same milieu \
             on both"
        ))),
    }
}

impl Writer {
    fn new(stream: impl Write + Send + 'static, key: Key, side: Side) -> Writer {
        Writer {
            stream: Box::new(stream),
            socket: None,
            key,
            side,
            count: 0,
        }
    }

    /// Writes a line.
    pub fn send(&mut self, line: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(line)?;
        let count = self.count.to_le_bytes();
        let code = self.key.code(&[self.side.name(), &count, &text]).finalize();
        self.count += 1;
        let mut bytes = hex(&code.into_bytes()).into_bytes();
        bytes.push(b' ');
        bytes.extend_from_slice(&text);
        bytes.push(b'\n');
        self.stream.write_all(&bytes)
    }

    /// Ends the connection, for both sides and both halves.
    pub fn close(&self) {
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl<R: Read> Lines<R> {
    fn new(stream: BufReader<R>, key: Key, side: Side) -> Lines<R> {
        Lines {
            stream,
            key,
            side,
            count: 0,
            line: Vec::new(),
        }
    }

    /// The next line; `None`: the other side has ended the connection.
    pub fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.line.clear();
        let mut limited = (&mut self.stream).take(LINE_BYTES_MAX);
        limited.read_until(b'\n', &mut self.line).map_err(silent)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a line that cannot be believed");
        let line = self.line.strip_suffix(b"\n").ok_or_else(wrong)?;
        let (code, text) = line.split_at_checked(64).ok_or_else(wrong)?;
        let text = text.strip_prefix(b" ").ok_or_else(wrong)?;
        let code = std::str::from_utf8(code)
            .ok()
            .and_then(unhex)
            .ok_or_else(wrong)?;
        let count = self.count.to_le_bytes();
        let expected = self.key.code(&[self.side.name(), &count, text]);
        expected.verify_slice(&code).map_err(|_| wrong())?;
        self.count += 1;
        Ok(Some(serde_json::from_slice(text)?))
    }
}

/// What it means that nothing was heard.
fn silent(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("nothing was heard for {} s", SILENCE_MAX.as_secs()),
        ),
        _ => error,
    }
}

/// For fuzzing: bytes instead of a network.
pub(super) mod fuzz {
    use super::*;

    fn key() -> Key {
        Key(b"the key of a fuzzer".to_vec())
    }

    /// What both sides make of a stranger who sends this; he is never believed.
    pub fn stranger(input: &[u8]) {
        let (mut server, mut coordinator) = (input, input);
        let greeted = greet(&mut io::sink(), &mut server, &key());
        let answered = answer(&mut io::sink(), &mut coordinator, &key());
        assert!(greeted.is_err() && answered.is_err());
        let mut lines = Lines::new(BufReader::new(input), key(), Side::Server);
        assert!(!matches!(lines.next::<serde_json::Value>(), Ok(Some(_))));
    }

    /// The halves of a connection with a coordinator who knows the key and sends these
    /// lines.
    pub fn halves(lines: &[&[u8]]) -> (Writer, Lines<io::Cursor<Vec<u8>>>) {
        let mut sent = Vec::new();
        for (count, text) in (0_u64..).zip(lines) {
            let side = Side::Coordinator.name();
            let code = key().code(&[side, &count.to_le_bytes(), text]).finalize();
            sent.extend_from_slice(hex(&code.into_bytes()).as_bytes());
            sent.push(b' ');
            sent.extend_from_slice(text);
            sent.push(b'\n');
        }
        let sent = BufReader::new(io::Cursor::new(sent));
        let writer = Writer::new(io::sink(), key(), Side::Server);
        (writer, Lines::new(sent, key(), Side::Coordinator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (ours, listener.accept().unwrap().0)
    }

    fn key(text: &str) -> Key {
        Key(text.as_bytes().to_vec())
    }

    #[test]
    fn who_knows_the_key_is_heard() {
        let (ours, theirs) = pair();
        let server = thread::spawn(move || accept(theirs, &key("the key of both")).unwrap());
        let (mut writer, mut lines) = connect(ours, &key("the key of both")).unwrap();
        let (mut back, mut heard) = server.join().unwrap();
        writer.send(&"first").unwrap();
        writer.send(&"second").unwrap();
        back.send(&7).unwrap();
        assert_eq!(heard.next::<String>().unwrap().unwrap(), "first");
        assert_eq!(heard.next::<String>().unwrap().unwrap(), "second");
        assert_eq!(lines.next::<u32>().unwrap(), Some(7));
        writer.close();
        assert_eq!(heard.next::<String>().unwrap(), None);
    }

    #[test]
    fn who_does_not_know_the_key_is_told_so_and_not_heard() {
        let (ours, theirs) = pair();
        let server = thread::spawn(move || accept(theirs, &key("one")).err().unwrap());
        let error = connect(ours, &key("another")).err().unwrap();
        assert_eq!(error.to_string(), "it does not accept our key");
        let error = server.join().unwrap();
        assert_eq!(error.to_string(), "the other side has another key");
    }

    #[test]
    fn what_strangers_send_is_refused() {
        for said in [
            "",
            "\n",
            "GET / HTTP/1.1\r\n\r\n",
            "{}\n",
            &"x".repeat(10_000),
        ] {
            let (mut ours, theirs) = pair();
            let server = thread::spawn(move || accept(theirs, &key("the key")).is_err());
            ours.write_all(said.as_bytes()).unwrap();
            let _ = ours.shutdown(std::net::Shutdown::Write);
            assert!(server.join().unwrap(), "{said}");
        }
    }

    #[test]
    fn another_version_is_told() {
        let (mut ours, theirs) = pair();
        let server = thread::spawn(move || accept(theirs, &key("the key")).err().unwrap());
        ours.write_all(b"{\"milieu-bench\":1,\"nonce\":\"\"}\n")
            .unwrap();
        let error = server.join().unwrap().to_string();
        assert!(
            error.contains("speaks version 1, and this one 2"),
            "{error}"
        );
    }

    #[test]
    fn who_is_slow_to_say_who_he_is_does_not_stay() {
        let (mut ours, theirs) = pair();
        let server = thread::spawn(move || accept(theirs, &key("the key")).err().unwrap());
        // As many bytes as it takes four minutes to send.
        for _ in 0..1000 {
            if server.is_finished() {
                break;
            }
            let _ = ours.write_all(b" ");
            thread::sleep(Duration::from_millis(250));
        }
        let error = server.join().unwrap().to_string();
        assert!(error.contains("takes too long to say who it is"), "{error}");
    }

    #[test]
    fn what_strangers_and_peers_send_is_survived() {
        fuzz::stranger(b"{\"milieu-bench\":2,\"nonce\":\"\"}\n");
        let (_, mut lines) = fuzz::halves(&[b"1", b"{", b"3"]);
        assert_eq!(lines.next::<u32>().unwrap(), Some(1));
        assert!(lines.next::<u32>().is_err());
    }

    #[test]
    fn lines_that_were_changed_repeated_or_left_out_are_refused() {
        /// Lines as they come to the server when somebody between has a hand in it.
        fn between(change: impl Fn(usize, &mut Vec<u8>) -> usize + Send + 'static) -> Vec<String> {
            let (ours, mut inner) = pair();
            let (mut outer, theirs) = pair();
            let mut back = (inner.try_clone().unwrap(), outer.try_clone().unwrap());
            thread::spawn(move || _ = io::copy(&mut back.1, &mut back.0));
            let mut lines = BufReader::new(inner.try_clone().unwrap());
            thread::spawn(move || {
                for number in 0.. {
                    let mut line = Vec::new();
                    if lines.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                        let _ = outer.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                    // The first line is the proof.
                    let times = if number == 0 {
                        1
                    } else {
                        change(number, &mut line)
                    };
                    for _ in 0..times {
                        let _ = outer.write_all(&line);
                    }
                }
            });
            let server = thread::spawn(move || {
                let (_, mut lines) = accept(theirs, &key("the key")).unwrap();
                let mut heard = Vec::new();
                while let Ok(Some(line)) = lines.next::<String>() {
                    heard.push(line);
                }
                heard
            });
            let (mut writer, _lines) = connect(ours, &key("the key")).unwrap();
            for text in ["one", "two", "three"] {
                let _ = writer.send(&text);
            }
            writer.close();
            let _ = inner.flush();
            server.join().unwrap()
        }
        assert_eq!(between(|_, _| 1), ["one", "two", "three"]);
        assert_eq!(
            between(|number, _| if number == 2 { 0 } else { 1 }),
            ["one"]
        );
        assert_eq!(
            between(|number, _| if number == 2 { 2 } else { 1 }),
            ["one", "two"]
        );
        let changed = between(|number, line| {
            if number == 2 {
                let at = line.len() - 3;
                line[at] ^= 1;
            }
            1
        });
        assert_eq!(changed, ["one"]);
    }

    #[test]
    fn a_key_is_its_owner_s_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/bench.key");
        let made = Key::read_or_make(&path).unwrap();
        assert_eq!(made.0.len(), 64);
        assert_eq!(Key::read_or_make(&path).unwrap().0, made.0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Key::read(&path).err().unwrap().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short\n").unwrap();
        assert!(Key::read(&path).is_err());
    }
}
