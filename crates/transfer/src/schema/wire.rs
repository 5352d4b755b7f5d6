//! Schemas as bytes, and the numbers and texts that all compact encodings share.

use std::sync::Arc;

use super::{Field, Shape, Variant};
use crate::error::Error;

/// Appends a number, seven bits in each byte, the lowest first.
#[inline]
pub(crate) fn varint(number: u64, out: &mut Vec<u8>) {
    #[allow(clippy::cast_possible_truncation, reason = "seven bits are all")]
    match number {
        0..0x80 => out.push(number as u8),
        0x80..LONG => short_varint(number, out),
        LONG.. => long_varint(number, out),
    }
}

/// The same for a number of a few bytes.
fn short_varint(mut number: u64, out: &mut Vec<u8>) {
    #[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[allow(clippy::cast_possible_truncation, reason = "seven bits are left")]
    out.push(number as u8);
}

/// From here on it takes less to make all bytes at once.
const LONG: u64 = 1 << 28;

/// The same for a number of many bytes.
fn long_varint(number: u64, out: &mut Vec<u8>) {
    let last = (63 - number.leading_zeros()) / 7;
    // All bytes but the last say that there are more.
    let marks = 0x8080_8080_8080_8080 & !u64::MAX.checked_shl(8 * last).unwrap_or(0);
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&(spread(number) | marks).to_le_bytes());
    let rest = number >> 56;
    let marks = if last == 9 { 0x80 } else { 0 };
    bytes[8..].copy_from_slice(&[rest as u8 & 0x7f | marks, (rest >> 7) as u8]);
    let start = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(start + last as usize + 1);
}

/// The lowest seven times eight bits, each seven in a byte of their own.
#[inline]
fn spread(number: u64) -> u64 {
    let fours = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
    let twos = fours & 0x0000_3fff_0000_3fff | (fours & 0x0fff_c000_0fff_c000) << 2;
    twos & 0x007f_007f_007f_007f | (twos & 0x3f80_3f80_3f80_3f80) << 1
}

pub(crate) fn text(text: &str, out: &mut Vec<u8>) {
    varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Bytes that are read one after the other.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    length: usize,
    /// What is read, as errors say it.
    mode: &'static str,
}

impl<'a> Bytes<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], mode: &'static str) -> Bytes<'a> {
        Bytes {
            rest: bytes,
            length: bytes.len(),
            mode,
        }
    }

    pub(crate) fn mode(&self) -> &'static str {
        self.mode
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[cold]
    pub(crate) fn malformed<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::Malformed {
            mode: self.mode,
            at: self.length - self.rest.len(),
            what: what.to_owned(),
        })
    }

    #[inline]
    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        self.malformed("something follows the end")
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        match self.rest.split_at_checked(length) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => self.malformed("it ends too early"),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.rest.split_first_chunk() {
            Some((array, rest)) => {
                self.rest = rest;
                Ok(*array)
            }
            None => self.malformed("it ends too early"),
        }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                Ok(*byte)
            }
            None => self.malformed("it ends too early"),
        }
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if byte < 0x80 {
                if shift == 63 && byte > 1 {
                    break;
                }
                return Ok(number);
            }
        }
        self.malformed("a number is too large")
    }

    pub(crate) fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Error> {
        match T::try_from(self.varint()?) {
            Ok(number) => Ok(number),
            Err(_) => self.malformed("a number is too large"),
        }
    }

    /// A number of items that take at least so many bytes each.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Result<usize, Error> {
        let count = self.number()?;
        if count > self.rest.len() / bytes_each.max(1) {
            return self.malformed("it announces more than there is");
        }
        Ok(count)
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Result<&'a str, Error> {
        let length = self.number()?;
        let bytes = self.take(length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) => self.malformed("a text that is not UTF-8"),
        }
    }
}

/// Shapes without parts, by their numbers.
const PLAIN: [Shape; 20] = [
    Shape::Unit,
    Shape::Bool,
    Shape::I8,
    Shape::I16,
    Shape::I32,
    Shape::I64,
    Shape::I128,
    Shape::U8,
    Shape::U16,
    Shape::U32,
    Shape::U64,
    Shape::U128,
    Shape::F32,
    Shape::F64,
    Shape::Char,
    Shape::Text,
    Shape::Bytes,
    Shape::Time,
    Shape::Span,
    Shape::Any,
];
const OPTION: u8 = 20;
const PRIVATE: u8 = 21;
const LIST: u8 = 22;
const TUPLE: u8 = 23;
const MAP: u8 = 24;
const STRUCT: u8 = 25;
const ENUM: u8 = 26;

/// Bits of a field.
const HAS_ID: u8 = 1;
const EXTENDS: u8 = 2;

impl Shape {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Shape::Option(inner) => one(OPTION, inner, out),
            Shape::Private(inner) => one(PRIVATE, inner, out),
            Shape::List(inner) => one(LIST, inner, out),
            Shape::Tuple(items) => {
                out.push(TUPLE);
                varint(items.len() as u64, out);
                items.iter().for_each(|item| item.write(out));
            }
            Shape::Map(entry) => {
                one(MAP, &entry.0, out);
                entry.1.write(out);
            }
            Shape::Struct(fields) => {
                out.push(STRUCT);
                varint(fields.len() as u64, out);
                fields.iter().for_each(|field| field.write(out));
            }
            Shape::Enum(variants) => {
                out.push(ENUM);
                varint(variants.len() as u64, out);
                variants.iter().for_each(|variant| variant.write(out));
            }
            plain => {
                let number = PLAIN.iter().position(|other| other == plain);
                #[allow(clippy::cast_possible_truncation, reason = "there are 20 of them")]
                out.push(number.unwrap_or(0) as u8);
            }
        }
    }

    pub(super) fn read(input: &mut Bytes<'_>, levels: usize) -> Result<Shape, Error> {
        let levels = levels.checked_sub(1).ok_or(Error::TooDeep {
            limit: super::LEVELS,
        })?;
        let inner = |input: &mut Bytes<'_>| Shape::read(input, levels).map(Box::new);
        Ok(match input.byte()? {
            OPTION => Shape::Option(inner(input)?),
            PRIVATE => Shape::Private(inner(input)?),
            LIST => {
                let item = inner(input)?;
                if !item.may_repeat() {
                    return input.malformed("items of a list that take hardly any bytes");
                }
                Shape::List(item)
            }
            TUPLE => {
                let count = input.count(1)?;
                let items = (0..count).map(|_| Shape::read(input, levels));
                Shape::Tuple(items.collect::<Result<_, _>>()?)
            }
            MAP => {
                let key = Shape::read(input, levels)?;
                let value = Shape::read(input, levels)?;
                if !key.may_repeat() || !value.may_follow() {
                    return input.malformed("entries of a map that take hardly any bytes");
                }
                Shape::Map(Box::new((key, value)))
            }
            STRUCT => {
                let count = input.count(3)?;
                let fields = (0..count).map(|_| Field::read(input, levels));
                Shape::Struct(fields.collect::<Result<_, _>>()?)
            }
            ENUM => {
                let count = input.count(2)?;
                let variants = (0..count).map(|_| Variant::read(input, levels));
                Shape::Enum(variants.collect::<Result<_, _>>()?)
            }
            plain => match PLAIN.get(usize::from(plain)) {
                Some(shape) => shape.clone(),
                None => return input.malformed("there is no such shape"),
            },
        })
    }
}

fn one(number: u8, inner: &Shape, out: &mut Vec<u8>) {
    out.push(number);
    inner.write(out);
}

impl Field {
    fn write(&self, out: &mut Vec<u8>) {
        text(&self.name, out);
        let has_id = if self.id.is_some() { HAS_ID } else { 0 };
        out.push(has_id | if self.extends { EXTENDS } else { 0 });
        if let Some(id) = self.id {
            varint(id.into(), out);
        }
        self.shape.write(out);
    }

    fn read(input: &mut Bytes<'_>, levels: usize) -> Result<Field, Error> {
        let name = input.text()?.into();
        let bits = input.byte()?;
        if bits & !(HAS_ID | EXTENDS) != 0 {
            return input.malformed("a field has bits that mean nothing");
        }
        let has_id = bits & HAS_ID != 0;
        Ok(Field {
            name,
            id: if has_id { Some(input.number()?) } else { None },
            extends: bits & EXTENDS != 0,
            shape: Shape::read(input, levels)?,
        })
    }
}

impl Variant {
    fn write(&self, out: &mut Vec<u8>) {
        text(&self.name, out);
        out.push(u8::from(self.content.is_some()));
        if let Some(content) = &self.content {
            content.write(out);
        }
    }

    fn read(input: &mut Bytes<'_>, levels: usize) -> Result<Variant, Error> {
        Ok(Variant {
            name: Arc::from(input.text()?),
            content: match input.byte()? {
                0 => None,
                1 => Some(Shape::read(input, levels)?),
                _ => return input.malformed("a variant has content or not"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_have_seven_bits_in_each_byte() {
        for shift in 0..64 {
            for number in [
                1 << shift,
                (1 << shift) - 1,
                u64::MAX >> shift,
                0x5a5a_a5a5_1234_9876 >> shift,
            ] {
                let mut expected = Vec::new();
                let mut rest = number;
                while rest >= 0x80 {
                    expected.push((rest & 0x7f) as u8 | 0x80);
                    rest >>= 7;
                }
                expected.push(rest as u8);
                let mut out = vec![1];
                varint(number, &mut out);
                assert_eq!(out[1..], expected, "{number:#x}");
            }
        }
    }
}
