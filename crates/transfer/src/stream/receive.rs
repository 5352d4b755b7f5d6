//! Reading frames.

use std::collections::HashMap;
use std::sync::Arc;

use milieu_keys::Name;

use super::{HAS_QUALITY, HAS_SCHEMA, IS_PATCH, OPENS, VERSION, read_quality};
use crate::delta::{self, Delta};
use crate::described;
use crate::error::Error;
use crate::event::{Event, Header, Origin, Stream};
use crate::kind::Type;
use crate::limits::Limits;
use crate::mode::Decode;
use crate::positional::{self, Reader, unzigzag};
use crate::private::Rights;
use crate::schema::{Bytes, Schema, Shape};
use crate::time::Time;

/// Decodes the frames of a [`Sender`](super::Sender).
#[derive(Debug)]
pub struct Receiver {
    mode: &'static str,
    limits: Limits,
    rights: Rights,
    /// Types for which events get bodies of their own.
    types: Vec<&'static Type>,
    schemas: HashMap<u64, Arc<Schema>>,
    open: Option<Opening>,
    /// Whether patches may come.
    keeps: bool,
    /// The last event, on which patches build.
    last: Option<(Header, Vec<u8>)>,
}

/// How many schemas a sender may have come with: the oldest is no better than
/// the newest, so beyond that all are forgotten.
const SCHEMAS: usize = 16;

#[derive(Clone, Debug)]
struct Opening {
    number: u8,
    stream: Arc<Stream>,
    schema: Arc<Schema>,
    of: Option<&'static Type>,
    /// What the unknown type of its bodies extends.
    parent: Option<&'static Type>,
}

impl Receiver {
    pub(super) fn new(mode: &'static str, keeps: bool, limits: Limits, rights: Rights) -> Receiver {
        Receiver {
            mode,
            limits,
            rights,
            types: Vec::new(),
            schemas: HashMap::new(),
            open: None,
            keeps,
            last: None,
        }
    }

    fn opening(&mut self, number: u8, bits: u8, input: &mut Bytes<'_>) -> Result<Opening, Error> {
        let name = Name::parse(input.text()?).map_err(|error| Error::Envelope {
            member: "name",
            what: error.to_string(),
        })?;
        let stream = Stream {
            name,
            origin: Origin(input.text()?.into()),
            incarnation: input.varint()?,
        };
        let id = u64::from_le_bytes(input.array()?);
        if bits & HAS_SCHEMA != 0 {
            let length = input.number()?;
            let bytes = input.take(length)?;
            let known = self.schemas.get(&id);
            if known.is_none_or(|known| known.bytes() != bytes) {
                let schema = Schema::read(bytes)?;
                if schema.id() != id {
                    return input.malformed("the schema is not the one that is named");
                }
                self.learn(schema);
            }
        }
        let expected = self.types.iter().filter_map(|of| of.schema());
        let mut known = expected.chain(self.schemas.get(&id));
        let Some(schema) = known.find(|schema| schema.id() == id).cloned() else {
            return Err(Error::UnknownSchema(id));
        };
        Ok(Opening {
            number,
            stream: Arc::new(stream),
            of: self.known(&schema.shape),
            parent: self.known_parent(&schema.shape),
            schema,
        })
    }

    /// The nearest type that is known of those that this extends.
    fn known_parent(&self, shape: &Shape) -> Option<&'static Type> {
        described::parents(shape).find_map(|field| self.known(&field.shape))
    }

    /// The type that looks like this.
    fn known(&self, shape: &Shape) -> Option<&'static Type> {
        let is_its = |of: &&&'static Type| of.schema().is_some_and(|its| its.shape == *shape);
        self.types.iter().find(is_its).copied()
    }

    /// The header and the body that follow an opening.
    fn whole<'a>(
        opening: &Opening,
        bits: u8,
        input: &mut Bytes<'a>,
    ) -> Result<(Header, &'a [u8]), Error> {
        let header = Header {
            stream: opening.stream.clone(),
            sequence: input.varint()?,
            time: Time::from_nanoseconds(i64::from_le_bytes(input.array()?)),
            quality: match bits & HAS_QUALITY {
                0 => None,
                _ => read_quality(input)?,
            },
        };
        Ok((header, input.rest()))
    }

    fn patched(
        &self,
        opening: &Opening,
        bits: u8,
        mut input: Bytes<'_>,
    ) -> Result<(Header, Vec<u8>), Error> {
        let sequence = input.varint()?;
        let needed = sequence.wrapping_sub(input.varint()?);
        let check = input.byte()?;
        let passed = unzigzag(input.varint()?);
        let last = self
            .last
            .as_ref()
            .filter(|(before, body)| before.sequence == needed && delta::check(body) == check);
        let Some((before, body)) = last else {
            let needed = Some(needed);
            return Err(Error::Lost { needed });
        };
        let quality = match bits & HAS_QUALITY {
            0 => before.quality.clone(),
            _ => read_quality(&mut input)?,
        };
        let header = Header {
            stream: opening.stream.clone(),
            sequence,
            time: Time::from_nanoseconds(before.time.nanoseconds().wrapping_add(passed)),
            quality,
        };
        let patches = Delta {
            mode: self.mode,
            limits: self.limits,
        };
        let mut next = Vec::with_capacity(body.len());
        let mut patch = self.reader(input);
        patches.apply(&opening.schema.shape, body, &mut patch, &mut next)?;
        patch.bytes.end()?;
        if next.len() > self.limits.bytes {
            let limit = self.limits.bytes;
            return Err(Error::TooLarge { limit });
        }
        Ok((header, next))
    }

    /// What follows the opening, or the number of one.
    fn body(&mut self, opening: &Opening, bits: u8, mut input: Bytes<'_>) -> Result<Event, Error> {
        if bits & IS_PATCH != 0 {
            let (header, body) = self.patched(opening, bits, input)?;
            let event = self.event(opening, header, &body)?;
            self.last = Some((event.header().clone(), body));
            return Ok(event);
        }
        let (header, body) = Self::whole(opening, bits, &mut input)?;
        let event = self.event(opening, header, body)?;
        if self.keeps {
            let mut kept = self.last.take().map_or_else(Vec::new, |(_, kept)| kept);
            kept.clear();
            kept.extend_from_slice(body);
            self.last = Some((event.header().clone(), kept));
        }
        Ok(event)
    }

    fn reader<'a>(&self, bytes: Bytes<'a>) -> Reader<'a> {
        Reader {
            bytes,
            limits: self.limits,
            rights: self.rights,
        }
    }

    fn event(&self, opening: &Opening, header: Header, body: &[u8]) -> Result<Event, Error> {
        let mut reader = self.reader(Bytes::new(body, self.mode));
        let event = match opening.of {
            Some(of) => (of.read)(&mut reader, of, header)?,
            None => {
                let value = positional::read(&opening.schema.shape, &mut reader)?;
                let event = Event::of_schema(header, opening.schema.clone(), value);
                let adopt = |of: &'static Type| of.adopt(&event, self.rights).ok();
                match opening.parent.and_then(adopt) {
                    Some(parent) => event.extending(parent),
                    None => event,
                }
            }
        };
        reader.bytes.end()?;
        Ok(event)
    }
}

impl Decode for Receiver {
    fn decode(&mut self, frame: &[u8]) -> Result<Event, Error> {
        if frame.len() > self.limits.bytes {
            let limit = self.limits.bytes;
            return Err(Error::TooLarge { limit });
        }
        let mut input = Bytes::new(frame, self.mode);
        let first = input.byte()?;
        let (version, bits) = (u32::from(first >> 4), first & 15);
        if version != VERSION {
            return Err(Error::Version {
                mode: self.mode,
                found: version,
                known: VERSION,
            });
        }
        let number = input.byte()?;
        let opening = match bits & (OPENS | HAS_SCHEMA | IS_PATCH) {
            IS_PATCH if !self.keeps => return input.malformed("a patch in a mode without"),
            0 | IS_PATCH => match self.open.take() {
                Some(open) if open.number == number => open,
                other => {
                    self.open = other;
                    return Err(Error::Lost { needed: None });
                }
            },
            OPENS | 3 => self.opening(number, bits, &mut input)?,
            _ => return input.malformed("a frame has bits that contradict each other"),
        };
        let result = self.body(&opening, bits, input);
        self.open = Some(opening);
        result
    }

    fn expect(&mut self, of: &'static Type) {
        self.types.push(of);
        // What is open may be of this type.
        if let Some(mut open) = self.open.take() {
            open.of = self.known(&open.schema.shape);
            open.parent = self.known_parent(&open.schema.shape);
            self.open = Some(open);
        }
    }

    fn learn(&mut self, schema: Schema) {
        if self.schemas.len() >= SCHEMAS {
            self.schemas.clear();
        }
        self.schemas.insert(schema.id(), Arc::new(schema));
    }
}
