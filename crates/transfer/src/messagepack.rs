//! MessagePack: for those who have it already.
//!
//! | what | how |
//! |---|---|
//! | point in time | the timestamp extension, −1 |
//! | distance in time | extension 1: nanoseconds, 64 bits, big-endian |
//! | private value | extension 2: the value |
//!
//! Shared values are written out where they are referred to.

mod read;
mod write;

use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::limits::Limits;
use crate::mode::{Notation, mode_of_notation};
use crate::value::Value;

const TIME: i8 = -1;
const SPAN: i8 = 1;
const PRIVATE: i8 = 2;

/// MessagePack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagePack;

mode_of_notation!(MessagePack);

impl Notation for MessagePack {
    const NAME: &'static str = "messagepack";
    const VERSION: u32 = 1;
    const MEDIA_TYPE: &'static str = "application/vnd.msgpack";

    fn write(
        &self,
        out: &mut Vec<u8>,
        _: &'static str,
        say: &mut dyn FnMut(&mut dyn Sink) -> Said,
    ) -> Said {
        say(&mut write::Writer::new(out))
    }

    fn parse(&self, bytes: &[u8], limits: &Limits) -> Result<Value, Error> {
        read::read(bytes, limits)
    }
}
