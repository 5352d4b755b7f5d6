//! Reading MessagePack.

use super::{PRIVATE, SPAN, TIME};
use crate::error::Error;
use crate::limits::Limits;
use crate::schema::Bytes;
use crate::time::{Span, Time};
use crate::value::{Map, Value};

/// The value that these bytes are.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Value, Error> {
    let mut reader = Reader {
        bytes: Bytes::new(bytes, "messagepack"),
        levels: limits.depth,
        left: limits.depth,
    };
    let value = reader.value()?;
    reader.bytes.end()?;
    Ok(value)
}

struct Reader<'a> {
    bytes: Bytes<'a>,
    /// How many levels there may be, and how many of them are left.
    levels: usize,
    left: usize,
}

impl Reader<'_> {
    /// A length of so many bytes.
    fn length(&mut self, width: u8) -> Result<usize, Error> {
        Ok(match width {
            1 => self.bytes.byte()?.into(),
            2 => u16::from_be_bytes(self.bytes.array()?).into(),
            _ => {
                let length = u32::from_be_bytes(self.bytes.array()?);
                usize::try_from(length).unwrap_or(usize::MAX)
            }
        })
    }

    fn value(&mut self) -> Result<Value, Error> {
        let first = self.bytes.byte()?;
        Ok(match first {
            0..=0x7f => Value::Int(first.into()),
            0x80..=0x8f => self.map(usize::from(first & 15))?,
            0x90..=0x9f => self.list(usize::from(first & 15))?,
            0xa0..=0xbf => self.text(usize::from(first & 31))?,
            0xc0 => Value::Null,
            0xc1 => return self.bytes.malformed("nothing begins like this"),
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc4..=0xc6 => {
                let length = self.length(1 << (first - 0xc4))?;
                Value::Bytes(self.bytes.take(length)?.into())
            }
            0xc7..=0xc9 => {
                let length = self.length(1 << (first - 0xc7))?;
                self.extension(length)?
            }
            0xca => Value::Double(f32::from_be_bytes(self.bytes.array()?).into()),
            0xcb => Value::Double(f64::from_be_bytes(self.bytes.array()?)),
            0xcc => Value::Int(self.bytes.byte()?.into()),
            0xcd => Value::Int(u16::from_be_bytes(self.bytes.array()?).into()),
            0xce => Value::Int(u32::from_be_bytes(self.bytes.array()?).into()),
            0xcf => {
                let number = u64::from_be_bytes(self.bytes.array()?);
                i64::try_from(number).map_or(Value::Uint(number), Value::Int)
            }
            0xd0 => Value::Int(i8::from_be_bytes(self.bytes.array()?).into()),
            0xd1 => Value::Int(i16::from_be_bytes(self.bytes.array()?).into()),
            0xd2 => Value::Int(i32::from_be_bytes(self.bytes.array()?).into()),
            0xd3 => Value::Int(i64::from_be_bytes(self.bytes.array()?)),
            0xd4..=0xd8 => self.extension(1 << (first - 0xd4))?,
            0xd9..=0xdb => {
                let length = self.length(1 << (first - 0xd9))?;
                self.text(length)?
            }
            0xdc | 0xdd => {
                let length = self.length(2 << (first - 0xdc))?;
                self.list(length)?
            }
            0xde | 0xdf => {
                let length = self.length(2 << (first - 0xde))?;
                self.map(length)?
            }
            0xe0..=0xff => Value::Int(i8::from_be_bytes([first]).into()),
        })
    }

    fn text(&mut self, length: usize) -> Result<Value, Error> {
        match std::str::from_utf8(self.bytes.take(length)?) {
            Ok(text) => Ok(Value::from(text)),
            Err(_) => self.bytes.malformed("a text that is not UTF-8"),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        let limit = self.levels;
        self.left = self.left.checked_sub(1).ok_or(Error::TooDeep { limit })?;
        let value = read(self);
        self.left += 1;
        value
    }

    /// Refuses to make room for what cannot come.
    fn paid(&self, entries: usize, bytes_each: usize) -> Result<(), Error> {
        if entries > self.bytes.rest().len() / bytes_each {
            return self.bytes.malformed("it announces more than there is");
        }
        Ok(())
    }

    fn list(&mut self, length: usize) -> Result<Value, Error> {
        self.paid(length, 1)?;
        self.nested(|this| (0..length).map(|_| this.value()).collect())
    }

    fn map(&mut self, length: usize) -> Result<Value, Error> {
        self.paid(length, 2)?;
        self.nested(|this| {
            let mut entries = Vec::new();
            for _ in 0..length {
                entries.push((this.value()?, this.value()?));
            }
            match Map::new(entries) {
                Ok(map) => Ok(Value::from(map)),
                Err(_) => this.bytes.malformed("a key comes twice in a map"),
            }
        })
    }

    fn extension(&mut self, length: usize) -> Result<Value, Error> {
        let kind = i8::from_be_bytes(self.bytes.array()?);
        let content = self.bytes.take(length)?;
        let read = match kind {
            TIME => time(content).map(Value::Time),
            SPAN => content.try_into().ok().map(|span| {
                let span = i64::from_be_bytes(span);
                Value::Span(Span::from_nanoseconds(span))
            }),
            PRIVATE => {
                let outside =
                    std::mem::replace(&mut self.bytes, Bytes::new(content, "messagepack"));
                let value = self.nested(Self::value);
                let inside = std::mem::replace(&mut self.bytes, outside);
                inside.end()?;
                Some(Value::Private(value?.into()))
            }
            _ => return self.bytes.malformed("an extension that is not known"),
        };
        match read {
            Some(value) => Ok(value),
            None => self
                .bytes
                .malformed("an extension of a wrong length or value"),
        }
    }
}

fn time(content: &[u8]) -> Option<Time> {
    let (seconds, nanoseconds) = match content.len() {
        4 => (u32::from_be_bytes(content.try_into().ok()?).into(), 0),
        8 => {
            let both = u64::from_be_bytes(content.try_into().ok()?);
            #[allow(clippy::cast_possible_wrap, reason = "34 bits are left")]
            ((both & ((1 << 34) - 1)) as i64, (both >> 34) as i64)
        }
        12 => {
            let (nanoseconds, seconds) = content.split_first_chunk()?;
            let nanoseconds = u32::from_be_bytes(*nanoseconds);
            (
                i64::from_be_bytes(seconds.try_into().ok()?),
                nanoseconds.into(),
            )
        }
        _ => return None,
    };
    if nanoseconds >= 1_000_000_000 {
        return None;
    }
    // In more bits, because seconds may lie outside where the rest brings them back.
    let time = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    i64::try_from(time).ok().map(Time::from_nanoseconds)
}
