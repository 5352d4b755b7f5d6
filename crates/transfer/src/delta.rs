//! What changed between two encodings by the same schema.
//!
//! A patch follows the schema. Of a struct or a tuple it has a bit for each
//! field, the first in the lowest bit of the first byte, and then the patches of
//! those that changed. Of what can change its form it begins with a byte:
//!
//! | byte | then |
//! |---|---|
//! | 0 | all of it |
//! | 1 | as for a tuple: its form, that is its variant, its length, its keys, is as before |
//!
//! Of anything else it is all of it.

use crate::cbor;
use crate::error::Error;
use crate::limits::Limits;
use crate::positional::{Reader, skip};
use crate::private::Rights;
use crate::schema::{Bytes, Shape};

const ALL: u8 = 0;
const PARTS: u8 = 1;

/// The encoding of a value, taken apart.
struct Parts<'a, 'b> {
    /// What does not change as long as the form stays the same.
    form: Form<'a>,
    parts: Vec<(&'b Shape, &'a [u8])>,
}

/// What has to be equal: the number of a variant or a length, and keys.
#[derive(Default, PartialEq)]
struct Form<'a> {
    head: &'a [u8],
    keys: Vec<&'a [u8]>,
}

/// Reads old and new encodings and patches.
#[derive(Clone, Copy)]
pub(crate) struct Delta {
    pub(crate) mode: &'static str,
    pub(crate) limits: Limits,
}

impl Delta {
    fn reader<'a>(&self, bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            bytes: Bytes::new(bytes, self.mode),
            limits: self.limits,
            // What is private is not looked at here, only copied.
            rights: Rights::ALL,
        }
    }

    /// Appends what makes the new encoding of the old one.
    pub(crate) fn diff(
        &self,
        shape: &Shape,
        old: &[u8],
        new: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match shape {
            Shape::Struct(fields) => {
                let shapes = fields.iter().map(|field| &field.shape);
                return self.fields(shapes, fields.len(), old, new, out);
            }
            Shape::Tuple(items) => return self.fields(items.iter(), items.len(), old, new, out),
            shape if !changes_form(shape) => {
                out.extend_from_slice(new);
                return Ok(());
            }
            _ => {}
        }
        let parts = match self.parts(shape, new)? {
            None => None,
            Some(new) => self.parts(shape, old)?.map(|old| (old, new)),
        };
        let same_form = parts.filter(|(old, new)| old.form == new.form);
        let Some((old_parts, new_parts)) = same_form else {
            out.push(ALL);
            out.extend_from_slice(new);
            return Ok(());
        };
        out.push(PARTS);
        let bits = out.len();
        out.resize(bits + new_parts.parts.len().div_ceil(8), 0);
        let both = old_parts.parts.iter().zip(&new_parts.parts);
        for (index, ((_, old), (shape, new))) in both.enumerate() {
            if old != new {
                out[bits + index / 8] |= 1 << (index % 8);
                self.diff(shape, old, new, out)?;
            }
        }
        Ok(())
    }

    /// The patch of a struct or a tuple, which nearly every event is: nothing is
    /// allocated for it.
    fn fields<'b>(
        &self,
        shapes: impl Iterator<Item = &'b Shape>,
        count: usize,
        old: &[u8],
        new: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let bits = out.len();
        out.resize(bits + count.div_ceil(8), 0);
        let (mut old, mut new) = (self.reader(old), self.reader(new));
        for (index, shape) in shapes.enumerate() {
            let (old, new) = (part(shape, &mut old)?, part(shape, &mut new)?);
            if old != new {
                out[bits + index / 8] |= 1 << (index % 8);
                self.diff(shape, old, new, out)?;
            }
        }
        Ok(())
    }

    /// Appends what the patch makes of the old encoding.
    pub(crate) fn apply(
        &self,
        shape: &Shape,
        old: &[u8],
        patch: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let in_parts = match shape {
            Shape::Struct(_) | Shape::Tuple(_) => true,
            shape if changes_form(shape) => match patch.bytes.byte()? {
                ALL => false,
                PARTS => true,
                _ => return patch.bytes.malformed("a patch is all or parts"),
            },
            _ => false,
        };
        if !in_parts {
            let start = patch.bytes.rest();
            skip(shape, patch)?;
            let length = start.len() - patch.bytes.rest().len();
            out.extend_from_slice(&start[..length]);
            return Ok(());
        }
        let Some(parts) = self.parts(shape, old)? else {
            return patch
                .bytes
                .malformed("a patch of parts where there are none");
        };
        out.extend_from_slice(parts.form.head);
        let bits = patch.bytes.take(parts.parts.len().div_ceil(8))?;
        for (index, (shape, old)) in parts.parts.iter().enumerate() {
            if let Some(key) = parts.form.keys.get(index) {
                out.extend_from_slice(key);
            }
            if bits[index / 8] & 1 << (index % 8) == 0 {
                out.extend_from_slice(old);
            } else {
                self.apply(shape, old, patch, out)?;
            }
        }
        Ok(())
    }

    /// Takes an encoding apart, if it has parts.
    fn parts<'a, 'b>(
        &self,
        shape: &'b Shape,
        bytes: &'a [u8],
    ) -> Result<Option<Parts<'a, 'b>>, Error> {
        let mut reader = self.reader(bytes);
        let mut form = Form::default();
        let mut parts = Vec::new();
        match shape {
            Shape::Struct(fields) => {
                for field in fields {
                    parts.push((&field.shape, part(&field.shape, &mut reader)?));
                }
            }
            Shape::Tuple(items) => {
                for item in items {
                    parts.push((item, part(item, &mut reader)?));
                }
            }
            Shape::Option(inner) | Shape::Private(inner) => {
                form.head = reader.bytes.take(1)?;
                if form.head == [1] {
                    parts.push((&**inner, part(inner, &mut reader)?));
                }
            }
            Shape::Enum(variants) => {
                let index: usize = reader.bytes.number()?;
                form.head = &bytes[..bytes.len() - reader.bytes.rest().len()];
                let variant = variants.get(index);
                if let Some(content) = variant.and_then(|variant| variant.content.as_ref()) {
                    parts.push((content, part(content, &mut reader)?));
                }
            }
            Shape::List(item) => {
                let count = reader.bytes.count(1)?;
                form.head = &bytes[..bytes.len() - reader.bytes.rest().len()];
                for _ in 0..count {
                    parts.push((&**item, part(item, &mut reader)?));
                }
            }
            Shape::Map(entry) => {
                let (key, value) = &**entry;
                let count = reader.bytes.count(1)?;
                form.head = &bytes[..bytes.len() - reader.bytes.rest().len()];
                for _ in 0..count {
                    form.keys.push(part(key, &mut reader)?);
                    parts.push((value, part(value, &mut reader)?));
                }
            }
            Shape::Any => {
                let depth = self.limits.depth;
                let Some(item) = cbor::parts(bytes, self.mode, depth)? else {
                    return Ok(None);
                };
                form = Form {
                    head: item.head,
                    keys: item.keys,
                };
                parts.extend(item.parts.into_iter().map(|part| (&Shape::Any, part)));
            }
            _ => return Ok(None),
        }
        Ok(Some(Parts { form, parts }))
    }
}

fn changes_form(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Option(_)
            | Shape::Private(_)
            | Shape::Enum(_)
            | Shape::List(_)
            | Shape::Map(_)
            | Shape::Any
    )
}

fn part<'a>(shape: &Shape, reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
    let start = reader.bytes.rest();
    skip(shape, reader)?;
    Ok(&start[..start.len() - reader.bytes.rest().len()])
}

/// What a state hashes to, as a check that a patch is applied to the right one.
pub(crate) fn check(bytes: &[u8]) -> u8 {
    let sum = bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95)
    });
    sum.to_be_bytes()[0]
}
