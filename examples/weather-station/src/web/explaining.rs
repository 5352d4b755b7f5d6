//! A connection that explains what the HTTP library refuses without a word:
//! a request head that is too long, is no HTTP, or never ends.

use super::serve::{HEAD_BYTES_MAX, HEADERS_MAX};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;

/// After a refusal, how much more of what a client sends is taken from it, so
/// that it reads the refusal before the connection is reset.
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// And for how long.
const LINGER: Duration = Duration::from_secs(1);

/// A connection between a client and the HTTP library.
pub(super) struct Explaining {
    stream: Arc<TcpStream>,
    /// An explanation on its way, and how much of it has left.
    held: Vec<u8>,
    sent: usize,
    unanswered: Arc<AtomicBool>,
}

impl Explaining {
    pub(super) fn new(stream: Arc<TcpStream>) -> Explaining {
        Explaining {
            stream,
            held: Vec::new(),
            sent: 0,
            unanswered: Arc::default(),
        }
    }

    /// Whether the client has sent something since the last answer.
    pub(super) fn unanswered(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unanswered)
    }

    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.held.len() {
            self.sent += ready!(poll_write(&self.stream, cx, &self.held[self.sent..]))?;
        }
        Poll::Ready(Ok(()))
    }
}

fn poll_write(stream: &TcpStream, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(cx))?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
    }
}

/// The explanation of an answer that the library gave by itself. It is the
/// only one who refuses with an empty body.
fn explanation(answer: &[u8]) -> Option<Vec<u8>> {
    let head = std::str::from_utf8(answer).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    if !head.contains("content-length: 0\r\n") {
        return None;
    }
    let (status, text) = match status {
        "400" => (
            "400 Bad Request",
            "request head: it is not HTTP/1.1; send a request line, headers and an empty line"
                .to_owned(),
        ),
        "414" => (
            "414 URI Too Long",
            format!(
                "request line: its address is too long; keep the whole head below {HEAD_BYTES_MAX} bytes"
            ),
        ),
        "431" => (
            "431 Request Header Fields Too Large",
            format!(
                "request head: it is too long; keep it below {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers, for instance by deleting this host's cookies"
            ),
        ),
        _ => return None,
    };
    Some(answer_with(status, &text))
}

fn answer_with(status: &str, text: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n{text}\n",
        text.len() + 1,
    )
    .into_bytes()
}

impl Read for Explaining {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; 8 * 1024];
        let length = buffer.remaining().min(bytes.len());
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(&mut bytes[..length]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(read) => {
                    if read > 0 {
                        self.unanswered.store(true, Ordering::Relaxed);
                    }
                    buffer.put_slice(&bytes[..read]);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl Write for Explaining {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_held(cx))?;
        self.unanswered.store(false, Ordering::Relaxed);
        if let Some(explanation) = explanation(bytes) {
            (self.held, self.sent) = (explanation, 0);
            return Poll::Ready(Ok(bytes.len()));
        }
        poll_write(&self.stream, cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_held(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(cx))?;
        close_sending(&self.stream);
        Poll::Ready(Ok(()))
    }
}

fn close_sending(stream: &TcpStream) {
    // A connection that is closed already needs no closing.
    let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
}

/// The end of a connection that went wrong: tells a client that was `late`
/// so, closes our side, and takes what the client still sends for a moment.
pub(super) async fn farewell(stream: &TcpStream, late: bool, patience: Duration) {
    if late {
        let text = format!(
            "request head: it was not complete within {} s; send it faster",
            patience.as_secs_f64()
        );
        let answer = answer_with("408 Request Timeout", &text);
        // One attempt: a client that is late to send is often late to read.
        let _ = stream.try_write(&answer);
    }
    close_sending(stream);
    let drained = async {
        let (mut bytes, mut taken) = ([0; 8 * 1024], 0);
        while taken < LINGER_BYTES_MAX && stream.readable().await.is_ok() {
            match stream.try_read(&mut bytes) {
                Ok(0) => return,
                Ok(read) => taken += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    // Whoever goes on sending after that is not listening.
    let _ = tokio::time::timeout(LINGER, drained).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_refusals_are_explained() {
        let refusal =
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\ndate: x\r\n\r\n";
        let explained = String::from_utf8(explanation(refusal).unwrap()).unwrap();
        assert!(
            explained.starts_with("HTTP/1.1 431 ") && explained.contains("deleting"),
            "{explained}"
        );
        let (head, body) = explained.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
        assert_eq!(
            explanation(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 9\r\n\r\n"),
            None
        );
        assert_eq!(
            explanation(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
            None
        );
        assert_eq!(explanation(b"\xff\xfe"), None);
    }
}
