//! Reading CBOR: one item becomes one value.

use std::borrow::Cow;

use super::{LINK, PRIVATE, SHARED, SPAN, TIME_SECONDS, TIME_TEXT};
use crate::error::Error;
use crate::time::{Span, Time};
use crate::value::{Map, Value};

/// Reads items one after the other.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many shared values have appeared.
    shared: u32,
    /// The mode that is named in errors.
    mode: &'static str,
    /// How many levels there may be, and how many of them are left.
    levels: usize,
    left: usize,
}

/// The first bytes of an item: its major type, and what it says about it.
struct Head {
    major: u8,
    info: u8,
    argument: u64,
}

const INDEFINITE: u8 = 31;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], mode: &'static str, levels: usize) -> Reader<'a> {
        Reader {
            bytes,
            at: 0,
            shared: 0,
            mode,
            levels,
            left: levels,
        }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn malformed<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::Malformed {
            mode: self.mode,
            at: self.at,
            what: what.to_owned(),
        })
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Error> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.rest().get(..length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.malformed("it ends too early"),
        }
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N as u64)?);
        Ok(number)
    }

    fn head(&mut self) -> Result<Head, Error> {
        let [first] = self.number()?;
        let (major, info) = (first >> 5, first & 31);
        let argument = match info {
            0..=23 => info.into(),
            24 => u64::from(self.number::<1>()?[0]),
            25 => u16::from_be_bytes(self.number()?).into(),
            26 => u32::from_be_bytes(self.number()?).into(),
            27 => u64::from_be_bytes(self.number()?),
            INDEFINITE if matches!(major, 2..=5) => 0,
            _ => return self.malformed("no item begins like this"),
        };
        Ok(Head {
            major,
            info,
            argument,
        })
    }

    /// Whether what follows is a map, and how many entries it has; nothing if it
    /// is neither map nor list or does not tell its length.
    pub(super) fn container(&mut self) -> Result<Option<(bool, u64)>, Error> {
        let head = self.head()?;
        if !matches!(head.major, 4 | 5) || head.info == INDEFINITE {
            return Ok(None);
        }
        let is_map = head.major == 5;
        if head.argument > self.rest().len() as u64 / (1 + u64::from(is_map)) {
            return self.malformed("it announces more than there is");
        }
        Ok(Some((is_map, head.argument)))
    }

    /// The bytes of the next item.
    pub(super) fn item(&mut self) -> Result<&'a [u8], Error> {
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Passes over the next item.
    pub(crate) fn skip(&mut self) -> Result<(), Error> {
        let head = self.head()?;
        let limit = self.levels;
        match head.major {
            2 | 3 => {
                self.chunks(&head)?;
            }
            4..=6 => {
                self.left = self.left.checked_sub(1).ok_or(Error::TooDeep { limit })?;
                let each = u64::from(head.major == 5) + 1;
                if head.major == 6 {
                    self.skip()?;
                } else {
                    self.entries(&head, each, |this| (0..each).try_for_each(|_| this.skip()))?;
                }
                self.left += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// The next item.
    pub(crate) fn value(&mut self) -> Result<Value, Error> {
        let start = self.at;
        let head = self.head()?;
        match head.major {
            0 => Ok(i64::try_from(head.argument).map_or(Value::Uint(head.argument), Value::Int)),
            1 => match i64::try_from(head.argument) {
                Ok(argument) => Ok(Value::Int(!argument)),
                Err(_) => self.malformed("a whole number beyond 64 bits"),
            },
            2 => Ok(Value::Bytes(self.chunks(&head)?.into())),
            3 => {
                let bytes = self.chunks(&head)?;
                match std::str::from_utf8(&bytes) {
                    Ok(text) => Ok(Value::from(text)),
                    Err(_) => self.malformed("a text that is not UTF-8"),
                }
            }
            4 => self.nested(|this| this.list(&head)),
            5 => self.nested(|this| this.map(&head)),
            6 => self.nested(|this| this.tagged(head.argument, start)),
            _ => self.simple(&head),
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

    fn simple(&mut self, head: &Head) -> Result<Value, Error> {
        #[allow(clippy::cast_possible_truncation, reason = "as many bits as were read")]
        match (head.info, head.argument) {
            (25, bits) => Ok(Value::Double(half(bits as u16))),
            (26, bits) => Ok(Value::Double(f32::from_bits(bits as u32).into())),
            (27, bits) => Ok(Value::Double(f64::from_bits(bits))),
            (_, 20) => Ok(Value::Bool(false)),
            (_, 21) => Ok(Value::Bool(true)),
            (_, 22 | 23) => Ok(Value::Null),
            _ => self.malformed("a simple value that has no meaning"),
        }
    }

    /// A text or bytes, in one piece or several.
    fn chunks(&mut self, head: &Head) -> Result<Cow<'a, [u8]>, Error> {
        if head.info != INDEFINITE {
            return self.take(head.argument).map(Cow::Borrowed);
        }
        let mut all = Vec::new();
        while !self.ends() {
            let chunk = self.head()?;
            if chunk.major != head.major || chunk.info == INDEFINITE {
                return self.malformed("a piece of another type");
            }
            all.extend_from_slice(self.take(chunk.argument)?);
        }
        Ok(all.into())
    }

    /// Whether a list of unknown length ends here.
    fn ends(&mut self) -> bool {
        let ends = self.rest().first() == Some(&0xff);
        self.at += usize::from(ends);
        ends
    }

    /// Runs for each entry. Each takes at least so many bytes, so that no room is
    /// made for what cannot come.
    fn entries(
        &mut self,
        head: &Head,
        bytes_each: u64,
        mut each: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if head.info == INDEFINITE {
            while !self.ends() {
                each(self)?;
            }
            return Ok(());
        }
        if head.argument > self.rest().len() as u64 / bytes_each {
            return self.malformed("it announces more than there is");
        }
        (0..head.argument).try_for_each(|_| each(self))
    }

    fn list(&mut self, head: &Head) -> Result<Value, Error> {
        let mut items = Vec::new();
        self.entries(head, 1, |this| {
            items.push(this.value()?);
            Ok(())
        })?;
        Ok(Value::List(items.into()))
    }

    fn map(&mut self, head: &Head) -> Result<Value, Error> {
        let mut entries = Vec::new();
        self.entries(head, 2, |this| {
            let key = this.value()?;
            entries.push((key, this.value()?));
            Ok(())
        })?;
        match Map::new(entries) {
            Ok(map) => Ok(Value::from(map)),
            Err(_) => self.malformed("a key comes twice in a map"),
        }
    }

    fn tagged(&mut self, tag: u64, start: usize) -> Result<Value, Error> {
        match tag {
            SHARED => {
                let number = self.shared;
                self.shared += 1;
                Ok(Value::Shared(number, self.value()?.into()))
            }
            LINK => match self.value()? {
                Value::Int(number) if number >= 0 => match u32::try_from(number) {
                    Ok(link) if link < self.shared => Ok(Value::Link(link)),
                    _ => Err(Error::Dangling(number.unsigned_abs())),
                },
                _ => self.malformed("a link is not a number"),
            },
            PRIVATE => Ok(Value::Private(self.value()?.into())),
            _ => {
                let value = self.value()?;
                let read = match tag {
                    TIME_TEXT => match &value {
                        Value::Text(text) => text.parse().ok().map(Value::Time),
                        _ => None,
                    },
                    TIME_SECONDS => time(&value).map(Value::Time),
                    SPAN => span(&value).map(Value::Span),
                    _ => Some(value),
                };
                if read.is_none() {
                    self.at = start;
                }
                read.map_or_else(|| self.malformed("this is no time"), Ok)
            }
        }
    }
}

fn time(seconds: &Value) -> Option<Time> {
    let nanoseconds = match seconds {
        Value::Int(seconds) => seconds.checked_mul(1_000_000_000),
        Value::Double(seconds) => whole((seconds * 1e9).round()),
        _ => None,
    };
    nanoseconds.map(Time::from_nanoseconds)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "what lies outside is refused"
)]
#[allow(clippy::cast_precision_loss, reason = "the ends are powers of two")]
fn whole(number: f64) -> Option<i64> {
    let fits = number >= i64::MIN as f64 && number < i64::MAX as f64;
    fits.then_some(number as i64)
}

fn span(parts: &Value) -> Option<Span> {
    let Value::Map(parts) = parts else {
        return None;
    };
    // In more bits, because seconds may lie outside where the rest brings them back.
    let mut nanoseconds = 0_i128;
    for (key, part) in parts.iter() {
        let unit = match key {
            Value::Int(1) => 1_000_000_000,
            Value::Int(-3) => 1_000_000,
            Value::Int(-6) => 1_000,
            Value::Int(-9) => 1,
            _ => return None,
        };
        let Value::Int(part) = part else {
            return None;
        };
        nanoseconds += i128::from(*part) * unit;
    }
    i64::try_from(nanoseconds).ok().map(Span::from_nanoseconds)
}

/// A number of 16 bits: RFC 8949, appendix D.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (fraction + 1024.0) * 2_f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}
