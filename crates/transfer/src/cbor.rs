//! CBOR: for small devices and for everybody with a library for it.
//!
//! | what | how |
//! |---|---|
//! | point in time | tag 1 with whole seconds, else tag 0 with an RFC 3339 text; both are read |
//! | distance in time | tag 1002 with `{1: seconds, -9: nanoseconds}` (RFC 9581) |
//! | shared value, link | tags 28 and 29, numbered by their appearance |
//! | private value | tag 1349675382 (`Priv`) |
//!
//! Other tags are ignored: what they stand before is read as if it were alone.

mod parts;
mod read;
mod write;

use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::limits::Limits;
use crate::mode::{Notation, mode_of_notation};
use crate::value::Value;

pub(crate) use parts::parts;
pub(crate) use read::Reader;
pub(crate) use write::Writer;

pub(crate) const NULL: u8 = 0xf6;

const TIME_TEXT: u64 = 0;
const TIME_SECONDS: u64 = 1;
const SHARED: u64 = 28;
const LINK: u64 = 29;
const SPAN: u64 = 1002;
const PRIVATE: u64 = 0x5072_6976;

/// CBOR, RFC 8949.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbor {
    /// Whether shared values stay shared; otherwise each link is written out as
    /// what it refers to, and cycles are refused. Both are read.
    pub identity: bool,
}

impl Default for Cbor {
    /// With identity.
    fn default() -> Cbor {
        Cbor { identity: true }
    }
}

mode_of_notation!(Cbor);

impl Notation for Cbor {
    const NAME: &'static str = "cbor";
    const VERSION: u32 = 1;
    const MEDIA_TYPE: &'static str = "application/cbor";

    fn write(
        &self,
        out: &mut Vec<u8>,
        _: &'static str,
        say: &mut dyn FnMut(&mut dyn Sink) -> Said,
    ) -> Said {
        say(&mut Writer::new(out, self.identity))
    }

    fn parse(&self, bytes: &[u8], limits: &Limits) -> Result<Value, Error> {
        let mut reader = Reader::new(bytes, Self::NAME, limits.depth);
        let value = reader.value()?;
        match reader.rest().len() {
            0 => Ok(value),
            _ => reader.malformed("something follows the value"),
        }
    }
}
