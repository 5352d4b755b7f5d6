//! Writing frames.

use std::sync::{Arc, LazyLock};

use super::{DataStream, HAS_QUALITY, HAS_SCHEMA, IS_PATCH, OPENS, VERSION, write_quality};
use crate::cbor;
use crate::delta::{self, Delta};
use crate::emit::DEPTH;
use crate::envelope;
use crate::error::Error;
use crate::event::{Event, Header, Stream};
use crate::limits::Limits;
use crate::mode::Encode;
use crate::positional::{Writer, zigzag};
use crate::private::Rights;
use crate::schema::{Schema, Shape, text, varint};

/// Encodes the events of a stream in data-stream or delta mode.
#[derive(Debug)]
pub struct Sender {
    mode: DataStream,
    rights: Rights,
    /// What was opened last, and its number.
    open: Option<(Arc<Stream>, Arc<Schema>)>,
    number: u8,
    chain: Option<Chain>,
}

/// What patches build on.
#[derive(Debug)]
struct Chain {
    key_every: u32,
    /// How many frames came after the last key frame.
    since_key: u32,
    header: Option<Header>,
    body: Vec<u8>,
    /// Kept for its room.
    next: Vec<u8>,
}

/// The schema of whatever says itself what it is.
pub(super) fn any() -> &'static Arc<Schema> {
    static ANY: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::new(Shape::Any)));
    &ANY
}

impl Sender {
    pub(super) fn new(mode: DataStream, key_every: Option<u32>, rights: Rights) -> Sender {
        Sender {
            mode,
            rights,
            open: None,
            number: 0,
            chain: key_every.map(|key_every| Chain {
                key_every,
                since_key: 0,
                header: None,
                body: Vec::new(),
                next: Vec::new(),
            }),
        }
    }

    /// Appends the body, and says by which schema.
    fn body(&self, event: &Event, out: &mut Vec<u8>) -> Result<&'static Arc<Schema>, Error> {
        let start = out.len();
        if let Some(schema) = event.layout() {
            let mut writer = Writer {
                out,
                rights: self.rights,
                identity: self.mode.identity,
                variants: &schema.variants,
            };
            match event.write(&mut writer) {
                Ok(()) => return Ok(schema),
                Err(Error::Unrepresentable {
                    mode: "data-stream",
                    ..
                }) => {
                    event.of().disagree();
                }
                Err(Error::Cycle) => {}
                Err(error) => {
                    out.truncate(start);
                    return Err(error);
                }
            }
            out.truncate(start);
        }
        match self.named(event, out) {
            Ok(()) => Ok(any()),
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    /// Appends the body with names.
    fn named(&self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let mut sink = cbor::Writer::new(out, self.mode.identity);
        match envelope::say_body(event, self.rights, &mut sink) {
            // Without identity what is shared is written out.
            Err(Error::Cycle) => {
                out.truncate(start);
                let value = event.value(self.rights)?.expanded()?;
                let event = Event::of_value(event.header().clone(), value);
                let mut sink = cbor::Writer::new(out, false);
                envelope::say_body(&event, self.rights, &mut sink)
            }
            result => result,
        }
    }

    /// The schema that is open for this stream.
    fn open_schema(&self, stream: &Arc<Stream>) -> Option<&Arc<Schema>> {
        let (known, schema) = self.open.as_ref()?;
        let is_it = Arc::ptr_eq(known, stream) || known == stream;
        is_it.then_some(schema)
    }

    fn is_open(&self, stream: &Arc<Stream>, schema: &Arc<Schema>) -> bool {
        let open = self.open_schema(stream);
        open.is_some_and(|open| Arc::ptr_eq(open, schema))
    }

    fn open(&mut self, stream: &Arc<Stream>, schema: &Arc<Schema>) {
        self.number = self.number.wrapping_add(1);
        self.open = Some((stream.clone(), schema.clone()));
    }

    /// Appends everything of a frame that is no patch but the body.
    #[inline]
    fn head(&self, header: &Header, opens: Option<&Schema>, out: &mut Vec<u8>) {
        let has_quality = if header.quality.is_some() {
            HAS_QUALITY
        } else {
            0
        };
        let opening = match opens {
            None => 0,
            Some(_) if self.mode.schemas => OPENS | HAS_SCHEMA,
            Some(_) => OPENS,
        };
        #[allow(clippy::cast_possible_truncation, reason = "it has four bits")]
        let version = (VERSION as u8) << 4;
        out.extend_from_slice(&[version | opening | has_quality, self.number]);
        if let Some(schema) = opens {
            self.opening(header, schema, out);
        }
        varint(header.sequence, out);
        out.extend_from_slice(&header.time.nanoseconds().to_le_bytes());
        if header.quality.is_some() {
            write_quality(header.quality.as_deref(), out);
        }
    }

    /// Of whom the stream is, and what its bodies look like.
    #[inline(never)]
    fn opening(&self, header: &Header, schema: &Schema, out: &mut Vec<u8>) {
        text(header.stream.name.as_str(), out);
        text(&header.stream.origin.0, out);
        varint(header.stream.incarnation, out);
        out.extend_from_slice(&schema.id().to_le_bytes());
        if self.mode.schemas {
            varint(schema.bytes().len() as u64, out);
            out.extend_from_slice(schema.bytes());
        }
    }

    /// A frame that says all of the event.
    fn whole(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let header = event.header();
        // In front of the body stands which schema it has, which is known after it.
        // It is nearly always the one that is open.
        let open = self.open_schema(&header.stream).map(Arc::as_ptr);
        if open.is_some() {
            self.head(header, None, out);
        }
        let body = out.len();
        let schema = match self.body(event, out) {
            Ok(schema) => schema,
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        };
        if open != Some(Arc::as_ptr(schema)) {
            let body = out.split_off(body);
            out.truncate(start);
            self.open(&header.stream, schema);
            self.head(header, Some(schema), out);
            out.extend_from_slice(&body);
        }
        Ok(())
    }

    /// A frame of the chain: a patch, or all where that is shorter or due.
    fn chained(&mut self, mut chain: Chain, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let result = self.chained_on(&mut chain, event, out);
        match &result {
            Ok(()) => {
                std::mem::swap(&mut chain.body, &mut chain.next);
                chain.header = Some(event.header().clone());
            }
            Err(_) => out.truncate(start),
        }
        self.chain = Some(chain);
        result
    }

    fn chained_on(
        &mut self,
        chain: &mut Chain,
        event: &Event,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let header = event.header();
        chain.next.clear();
        let schema = self.body(event, &mut chain.next)?;
        chain.since_key += 1;
        let is_due = chain.key_every != 0 && chain.since_key >= chain.key_every;
        let opens = is_due || !self.is_open(&header.stream, schema);
        if opens {
            chain.since_key = 0;
            self.open(&header.stream, schema);
        } else if let Some(before) = &chain.header {
            let start = out.len();
            self.patch(chain, before, header, schema, out)?;
            // What comes before the body differs by a few bytes at most.
            if out.len() - start <= chain.next.len() + 4 {
                return Ok(());
            }
            out.truncate(start);
        }
        self.head(header, opens.then_some(schema), out);
        out.extend_from_slice(&chain.next);
        Ok(())
    }

    fn patch(
        &self,
        chain: &Chain,
        before: &Header,
        header: &Header,
        schema: &Schema,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let has_quality = if header.quality == before.quality {
            0
        } else {
            HAS_QUALITY
        };
        #[allow(clippy::cast_possible_truncation, reason = "it has four bits")]
        let version = (VERSION as u8) << 4;
        out.extend_from_slice(&[version | IS_PATCH | has_quality, self.number]);
        varint(header.sequence, out);
        varint(header.sequence.wrapping_sub(before.sequence), out);
        out.push(delta::check(&chain.body));
        let passed = header.time.nanoseconds();
        let passed = passed.wrapping_sub(before.time.nanoseconds());
        varint(zigzag(passed), out);
        if has_quality != 0 {
            write_quality(header.quality.as_deref(), out);
        }
        patches().diff(&schema.shape, &chain.body, &chain.next, out)
    }
}

/// Patches of what we encoded ourselves.
fn patches() -> Delta {
    Delta {
        mode: "delta",
        limits: Limits {
            bytes: usize::MAX,
            depth: DEPTH + 1,
        },
    }
}

impl Encode for Sender {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        // Plain `take` would move the room of a chain where there is none.
        match self.chain.take_if(|_| true) {
            None => self.whole(event, out),
            Some(chain) => self.chained(chain, event, out),
        }
    }

    fn key_frame(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut body = Vec::new();
        let schema = self.body(event, &mut body)?;
        if !self.is_open(&event.header().stream, schema) {
            self.open(&event.header().stream, schema);
        }
        self.head(event.header(), Some(schema), out);
        out.extend_from_slice(&body);
        Ok(())
    }

    fn is_stateless(&self) -> bool {
        false
    }
}
