//! A client that writes its requests by hand, so that wrong ones can be written
//! too.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

pub const TOKEN: &str = "0123456789abcdef";

/// Far longer than anything here takes; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether something comes true.
pub fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    token: Option<String>,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    body: Vec<u8>,
}

/// An answer that goes on.
pub struct Lines {
    pub head: String,
    lines: BufReader<TcpStream>,
    /// What is left of a chunk.
    chunk: Vec<u8>,
}

impl Client {
    pub fn of(address: SocketAddr) -> Client {
        Client {
            address,
            token: Some(TOKEN.to_owned()),
        }
    }

    pub fn with_token(&self, token: &str) -> Client {
        Client {
            token: Some(token.to_owned()),
            ..*self
        }
    }

    pub fn without_token(&self) -> Client {
        Client {
            token: None,
            ..*self
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        let token = self.token.as_ref();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let host = self.address;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{token}{more}Connection: close\r\n\r\n"
        )
    }

    pub fn get(&self, path: &str) -> Answer {
        self.raw(&self.head("GET", path, ""))
    }

    pub fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.raw(&self.head("GET", path, &format!("Accept: {accept}\r\n")))
    }

    pub fn try_get(&self, path: &str) -> Option<Answer> {
        self.try_raw(&self.head("GET", path, ""))
    }

    pub fn post(&self, path: &str, media_type: &str, body: &[u8]) -> Answer {
        self.try_post(path, media_type, body).expect("an answer")
    }

    pub fn try_post(&self, path: &str, media_type: &str, body: &[u8]) -> Option<Answer> {
        let length = body.len();
        let more = format!("Content-Type: {media_type}\r\nContent-Length: {length}\r\n");
        let mut request = self.head("POST", path, &more).into_bytes();
        request.extend_from_slice(body);
        self.exchange(&request)
    }

    #[track_caller]
    pub fn raw(&self, request: &str) -> Answer {
        self.try_raw(request).expect("an answer")
    }

    pub fn try_raw(&self, request: &str) -> Option<Answer> {
        self.exchange(request.as_bytes())
    }

    fn exchange(&self, request: &[u8]) -> Option<Answer> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        // A server that refuses a request need not read it.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec())
            .ok()?
            .to_ascii_lowercase();
        Some(Answer {
            status: head.split(' ').nth(1)?.parse().ok()?,
            head,
            body: bytes[end + 4..].to_vec(),
        })
    }

    pub fn subscribe(&self, path: &str) -> Lines {
        self.subscribe_as(path, "text/event-stream")
    }

    pub fn subscribe_as(&self, path: &str, accept: &str) -> Lines {
        let mut stream = self.connect();
        let request = self.head("GET", path, &format!("Accept: {accept}\r\n"));
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let head = head.to_ascii_lowercase();
        Lines {
            head,
            lines,
            chunk: Vec::new(),
        }
    }

    pub fn web_socket(
        &self,
        path: &str,
    ) -> Result<WebSocket<TcpStream>, Box<dyn std::error::Error>> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request()?;
        let token = format!("Bearer {}", self.token.as_deref().unwrap_or_default());
        request
            .headers_mut()
            .insert("authorization", token.parse()?);
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (socket, _) =
            tungstenite::client(request, stream).map_err(|error| error.to_string())?;
        Ok(socket)
    }
}

impl Answer {
    pub fn body(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.body()))
    }

    /// Why a request was refused.
    #[track_caller]
    pub fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap().to_owned()
    }
}

impl Lines {
    /// The next line, out of the chunks in which it comes.
    pub fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.chunk.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.chunk.drain(..=end).collect();
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            let mut length = String::new();
            self.lines.read_line(&mut length).unwrap();
            let length = usize::from_str_radix(length.trim(), 16).unwrap();
            assert_ne!(length, 0, "the answer has ended");
            let mut chunk = vec![0; length + 2];
            self.lines.read_exact(&mut chunk).unwrap();
            self.chunk.extend_from_slice(&chunk[..length]);
        }
    }
}

/// A message that is no ping.
pub fn next(socket: &mut WebSocket<TcpStream>) -> Message {
    loop {
        match socket.read().unwrap() {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return message,
        }
    }
}

pub fn from_base64(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.trim_end_matches('=').chars() {
        bits = bits << 6 | u32::try_from(digits.find(digit).unwrap()).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xFF) as u8);
        }
    }
    out
}
