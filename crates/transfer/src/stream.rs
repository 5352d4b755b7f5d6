//! Data-stream and delta: modes whose frames build on each other.
//!
//! | frame | bytes |
//! |---|---|
//! | every | version in the upper four bits, in the lower four *opens* 1, *has the schema* 2, *has a quality* 4, *is a patch* 8; then the number of the opening it belongs to |
//! | that opens | name, origin, incarnation, id of the schema, perhaps the schema |
//! | that is no patch | sequence, time, perhaps quality, body |
//! | that is a patch | sequence, the distance to that of the event it builds on, a check of that event's body, the distance to its time, perhaps a quality (else it is as before), patch of the body |
//!
//! Whoever has an opening understands every frame that is no patch and has its
//! number. An opening is repeated when the stream or the type changes, and in
//! key frames.

mod receive;
mod send;

use std::sync::Arc;

pub use receive::Receiver;
pub use send::Sender;

use crate::cbor::Cbor;
use crate::error::Error;
use crate::event::Quality;
use crate::limits::Limits;
use crate::mode::{Decode, Encode, Mode, Notation};
use crate::positional::{unzigzag, zigzag};
use crate::private::Rights;
use crate::schema::{Bytes, text, varint};
use crate::time::Span;
use crate::value::Value;

const VERSION: u32 = 1;

const OPENS: u8 = 1;
const HAS_SCHEMA: u8 = 2;
const HAS_QUALITY: u8 = 4;
const IS_PATCH: u8 = 8;

const HAS_AGE: u8 = 1;
const HAS_ACCURACY: u8 = 2;
const HAS_FAILURE: u8 = 4;

/// Bodies without names: a schema says once what they look like.
///
/// Source: A. Abram White, *Performance and Interoperability in Solar*,
/// section 7 (data-stream mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataStream {
    /// Whether shared values stay shared; otherwise each link is written out as
    /// what it refers to, and cycles are refused. Both are read.
    pub identity: bool,
    /// Whether openings hold the schema. Otherwise they only name it, and a
    /// receiver that does not have it asks for it: see [`Error::UnknownSchema`]
    /// and [`Decode::learn`].
    pub schemas: bool,
}

impl Default for DataStream {
    /// With identity and schemas.
    fn default() -> DataStream {
        DataStream {
            identity: true,
            schemas: true,
        }
    }
}

/// As [`DataStream`], but only of what changed since the event before.
///
/// Source: A. Abram White, *Performance and Interoperability in Solar*,
/// section 7.1, which proposes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Every frame of this number is a key frame, from which receivers can go on
    /// that joined late or lost something. With 0 only the first one is, and
    /// those that are asked for.
    pub key_every: u32,
    /// As in [`DataStream::identity`].
    pub identity: bool,
}

impl Default for Delta {
    /// A key frame every 256 events, with identity.
    fn default() -> Delta {
        Delta {
            key_every: 256,
            identity: true,
        }
    }
}

impl DataStream {
    /// As [`Mode::encoder`].
    #[must_use]
    pub fn sender(self, rights: Rights) -> Sender {
        Sender::new(self, None, rights)
    }

    /// As [`Mode::decoder`].
    #[must_use]
    pub fn receiver(self, limits: Limits, rights: Rights) -> Receiver {
        Receiver::new("data-stream", false, limits, rights)
    }
}

impl Delta {
    /// As [`Mode::encoder`].
    #[must_use]
    pub fn sender(self, rights: Rights) -> Sender {
        let stream = DataStream {
            identity: self.identity,
            schemas: true,
        };
        Sender::new(stream, Some(self.key_every), rights)
    }

    /// As [`Mode::decoder`].
    #[must_use]
    pub fn receiver(self, limits: Limits, rights: Rights) -> Receiver {
        Receiver::new("delta", true, limits, rights)
    }
}

macro_rules! mode {
    ($type:ty, $name:literal) => {
        impl Mode for $type {
            fn name(&self) -> &'static str {
                $name
            }

            fn version(&self) -> u32 {
                VERSION
            }

            fn media_type(&self) -> &'static str {
                concat!("application/vnd.milieu.", $name)
            }

            fn encoder(&self, rights: Rights) -> Box<dyn Encode> {
                Box::new(self.sender(rights))
            }

            fn decoder(&self, limits: Limits, rights: Rights) -> Box<dyn Decode> {
                Box::new(self.receiver(limits, rights))
            }

            /// A CBOR item: a value alone has no schema.
            fn encode_value(
                &self,
                value: &Value,
                rights: Rights,
                out: &mut Vec<u8>,
            ) -> Result<(), Error> {
                let identity = self.identity;
                Cbor { identity }.encode_any(value, rights, out)
            }

            fn decode_value(
                &self,
                bytes: &[u8],
                limits: &Limits,
                rights: Rights,
            ) -> Result<Value, Error> {
                Cbor::default().decode_any(bytes, limits, rights)
            }
        }
    };
}

mode!(DataStream, "data-stream");
mode!(Delta, "delta");

fn write_quality(quality: Option<&Quality>, out: &mut Vec<u8>) {
    let nothing = Quality::default();
    let quality = quality.unwrap_or(&nothing);
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    out.push(
        bit(quality.age.is_some(), HAS_AGE)
            | bit(quality.accuracy.is_some(), HAS_ACCURACY)
            | bit(quality.failure.is_some(), HAS_FAILURE),
    );
    if let Some(age) = quality.age {
        varint(zigzag(age.nanoseconds()), out);
    }
    if let Some(accuracy) = quality.accuracy {
        out.extend_from_slice(&accuracy.to_le_bytes());
    }
    if let Some(failure) = &quality.failure {
        text(failure, out);
    }
}

fn read_quality(input: &mut Bytes<'_>) -> Result<Option<Box<Quality>>, Error> {
    let bits = input.byte()?;
    if bits & !(HAS_AGE | HAS_ACCURACY | HAS_FAILURE) != 0 {
        return input.malformed("a quality has bits that mean nothing");
    }
    let mut quality = Quality::default();
    if bits & HAS_AGE != 0 {
        quality.age = Some(Span::from_nanoseconds(unzigzag(input.varint()?)));
    }
    if bits & HAS_ACCURACY != 0 {
        quality.accuracy = Some(f64::from_le_bytes(input.array()?));
    }
    if bits & HAS_FAILURE != 0 {
        quality.failure = Some(Arc::from(input.text()?));
    }
    Ok((quality != Quality::default()).then(|| Box::new(quality)))
}
