//! Events on their way out and values on their way in, in a mode of the client's
//! choice.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use milieu_diagnostics::{Source, render};
use milieu_stream::language::Language;
use milieu_stream::{Delivery, Published};
use milieu_transfer::{Json, Limits, Mode, Modes, Rights, Value};
use serde_json::{Value as Tree, json};

use super::{LINE_BYTES_MAX, NO_FRAME, Shared, read_line, say};

/// How long a publisher waits that is refused, before it tries again.
const AGAIN: Duration = Duration::from_millis(5);

/// How events and values lie on the wire.
struct Wire {
    mode: Arc<dyn Mode>,
    /// Each in a line of its own, and not behind its length.
    is_lines: bool,
}

impl Wire {
    /// The mode of a request.
    fn of(modes: &Modes, request: &Tree, otherwise: Option<&str>) -> Result<Wire, String> {
        let name = request["mode"].as_str().or(otherwise).unwrap_or("json");
        if name == "json" {
            // Milieu's own, whatever the program has in its place: that is what tools know.
            return Ok(Wire {
                mode: Arc::new(Json),
                is_lines: true,
            });
        }
        let mode = modes.named(name).ok_or_else(|| {
            let known: Vec<String> = modes
                .offers()
                .iter()
                .map(|it| it.name.to_string())
                .collect();
            format!(
                "there is no mode `{name}`; choose one of {}",
                known.join(", ")
            )
        })?;
        Ok(Wire {
            mode: Arc::clone(mode),
            is_lines: false,
        })
    }

    fn agreed(&self) -> Tree {
        json!({"ok": true, "mode": self.mode.name()})
    }

    /// Where a frame begins that is written into an empty buffer.
    fn begin(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        if !self.is_lines {
            buffer.extend([0; 4]);
        }
    }

    /// Ends a frame, or puts into its place why there is none.
    fn end(&self, buffer: &mut Vec<u8>, wrong: Option<&str>) {
        if let Some(wrong) = wrong {
            self.begin(buffer);
            match self.is_lines {
                true => buffer.extend(json!({ "error": wrong }).to_string().bytes()),
                false => buffer.extend(wrong.bytes()),
            }
        }
        if self.is_lines {
            return buffer.push(b'\n');
        }
        let length = u32::try_from(buffer.len() - 4).unwrap_or(NO_FRAME);
        let no_frame = if wrong.is_some() { NO_FRAME } else { 0 };
        buffer[..4].copy_from_slice(&(length | no_frame).to_be_bytes());
    }

    /// Reads a value. False: there are no more.
    fn read(&self, lines: &mut BufReader<&UnixStream>, value: &mut Vec<u8>) -> io::Result<bool> {
        if self.is_lines {
            return read_line(lines, value);
        }
        let mut length = [0; 4];
        match lines.read(&mut length[..1])? {
            0 => return Ok(false),
            _ => lines.read_exact(&mut length[1..])?,
        }
        let length = u64::from(u32::from_be_bytes(length));
        if length > LINE_BYTES_MAX {
            let text = "a value is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        value.clear();
        lines.take(length).read_to_end(value)?;
        Ok(value.len() as u64 == length)
    }
}

impl Shared {
    pub(super) fn subscribe(&self, stream: &UnixStream, request: &Tree) -> io::Result<()> {
        let text = request["flow"].as_str().unwrap_or_default();
        let source = Source::new("flow", text);
        let subscription = Language::Pipeline.subscription(&source, self.streams.catalogue());
        let subscription = match subscription {
            Ok(subscription) => subscription,
            Err(wrong) => {
                return say(stream, &json!({"error": render(&source, &wrong, false)}));
            }
        };
        let wire = match Wire::of(&self.modes.known(), request, subscription.mode.as_deref()) {
            Ok(wire) => wire,
            Err(wrong) => return say(stream, &json!({ "error": wrong })),
        };
        let delivery = match request["latest"].as_bool() {
            Some(true) => Delivery::Latest,
            _ => subscription.delivery,
        };
        let mut events = match self.streams.subscribe(&subscription.flow, delivery) {
            Ok(events) => events,
            Err(wrong) => return say(stream, &json!({"error": wrong.message})),
        };
        say(stream, &wire.agreed())?;
        let mut encoder = wire.mode.encoder(Rights::NONE);
        let mut frame = Vec::new();
        let goes_on = || !self.ended.load(Ordering::Acquire) && is_there(stream);
        while goes_on() && !events.is_ended() {
            let Some(event) = events.wait_for(Duration::from_millis(500)) else {
                continue;
            };
            wire.begin(&mut frame);
            let encoded = encoder.encode(&event, &mut frame);
            let wrong = encoded.err().map(|error| error.to_string());
            wire.end(&mut frame, wrong.as_deref());
            let mut stream = stream;
            stream.write_all(&frame)?;
        }
        Ok(())
    }

    pub(super) fn publish(
        &self,
        stream: &UnixStream,
        lines: &mut BufReader<&UnixStream>,
        request: &Tree,
    ) -> io::Result<()> {
        let name = request["name"].as_str().unwrap_or_default();
        let wire = match Wire::of(&self.modes.known(), request, None) {
            Ok(wire) => wire,
            Err(wrong) => return say(stream, &json!({ "error": wrong })),
        };
        let publisher = match self.streams.retaining_publisher::<Value>(name) {
            Ok(publisher) => publisher,
            Err(error) => return say(stream, &json!({"error": error.to_string()})),
        };
        say(stream, &wire.agreed())?;
        let mut bytes = Vec::new();
        while wire.read(lines, &mut bytes)? {
            let value = wire
                .mode
                .decode_value(&bytes, &Limits::default(), Rights::NONE);
            let value = match value {
                Ok(value) => value,
                Err(error) => {
                    say(stream, &json!({"error": error.to_string()}))?;
                    continue;
                }
            };
            // Whoever must have every event makes the client wait.
            while publisher.publish(value.clone()) == Published::Refused {
                if self.ended.load(Ordering::Acquire) || !is_there(stream) {
                    return Ok(());
                }
                thread::sleep(AGAIN);
            }
        }
        Ok(())
    }
}

/// Whether the peer has not closed its end.
fn is_there(stream: &UnixStream) -> bool {
    use rustix::net::{RecvFlags, recv};

    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(recv(stream, &mut [0_u8; 1], flags), Ok((0, _)))
}
