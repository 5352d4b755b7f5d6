//! Schemas: what a type looks like, so that its values can travel without names.
//!
//! A schema is traced from the type's `Deserialize`. It travels once, and is
//! named by a hash afterwards.

mod trace;
mod wire;

use std::sync::Arc;

pub(crate) use trace::trace;
pub(crate) use wire::{Bytes, text, varint};

use crate::error::Error;

/// What events of a type look like in data-stream mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub(crate) shape: Shape,
    /// The variants of all its enums, by their numbers.
    pub(crate) variants: Vec<(u32, Arc<str>)>,
    bytes: Arc<[u8]>,
    id: u64,
}

impl Schema {
    /// Whether others would read it.
    pub(crate) fn is_small(&self) -> bool {
        self.bytes.len() <= BYTES
    }

    pub(crate) fn new(shape: Shape) -> Schema {
        let mut bytes = Vec::new();
        shape.write(&mut bytes);
        let mut variants = Vec::new();
        shape.collect_variants(&mut variants);
        Schema {
            shape,
            variants,
            id: hash(&bytes),
            bytes: bytes.into(),
        }
    }

    /// Reads a schema that [`Schema::bytes`] gave.
    ///
    /// # Errors
    /// [`Error::Malformed`] where it is not one, [`Error::TooDeep`] beyond 64
    /// levels, [`Error::TooLarge`] beyond 64 KiB.
    pub fn read(bytes: &[u8]) -> Result<Schema, Error> {
        if bytes.len() > BYTES {
            return Err(Error::TooLarge { limit: BYTES });
        }
        let mut input = Bytes::new(bytes, "a schema");
        let shape = Shape::read(&mut input, LEVELS)?;
        input.end()?;
        let schema = Schema::new(shape);
        if *schema.bytes != *bytes {
            return input.malformed("numbers are longer than needed");
        }
        Ok(schema)
    }

    /// The schema as it travels.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What names it: a hash of its bytes.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// How deep a shape may be.
const LEVELS: usize = 64;
/// How large a schema may be.
const BYTES: usize = 64 << 10;

/// FNV-1a. A hash that is not proof against malice is enough: it only chooses
/// among the schemas that the same sender has sent.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What values of a type look like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Unit,
    Bool,
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    F32,
    F64,
    Char,
    Text,
    Bytes,
    Time,
    Span,
    /// It says itself what it is: a CBOR item.
    Any,
    Option(Box<Shape>),
    Private(Box<Shape>),
    List(Box<Shape>),
    Tuple(Vec<Shape>),
    Map(Box<(Shape, Shape)>),
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: Arc<str>,
    /// A number that stays the same whatever the field is called.
    pub(crate) id: Option<u32>,
    /// Whether it holds what the struct extends.
    pub(crate) extends: bool,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variant {
    pub(crate) name: Arc<str>,
    /// What it holds, if it holds something.
    pub(crate) content: Option<Shape>,
}

impl Shape {
    /// How many bytes a value takes at least.
    fn least(&self) -> usize {
        match self {
            Shape::Unit => 0,
            Shape::F32 => 4,
            Shape::F64 | Shape::Time => 8,
            Shape::Tuple(items) => items.iter().map(Shape::least).sum(),
            Shape::Struct(fields) => fields.iter().map(|field| field.shape.least()).sum(),
            _ => 1,
        }
    }

    fn collect_variants(&self, into: &mut Vec<(u32, Arc<str>)>) {
        match self {
            Shape::Option(inner) | Shape::Private(inner) | Shape::List(inner) => {
                inner.collect_variants(into);
            }
            Shape::Tuple(items) => items.iter().for_each(|item| item.collect_variants(into)),
            Shape::Map(entry) => {
                entry.0.collect_variants(into);
                entry.1.collect_variants(into);
            }
            Shape::Struct(fields) => {
                fields
                    .iter()
                    .for_each(|field| field.shape.collect_variants(into));
            }
            Shape::Enum(variants) => {
                for (index, variant) in (0..).zip(variants) {
                    into.push((index, variant.name.clone()));
                    if let Some(content) = &variant.content {
                        content.collect_variants(into);
                    }
                }
            }
            _ => {}
        }
    }

    /// How many values there are at most in one that take no byte of their own,
    /// items of lists not counted.
    fn unpaid(&self) -> usize {
        match self {
            Shape::Unit => 1,
            Shape::Tuple(items) => 1 + items.iter().map(Shape::unpaid).sum::<usize>(),
            Shape::Struct(fields) => 1 + fields.iter().map(|it| it.shape.unpaid()).sum::<usize>(),
            Shape::Option(inner) | Shape::Private(inner) => inner.unpaid(),
            Shape::Enum(variants) => {
                let contents = variants.iter().filter_map(|it| it.content.as_ref());
                contents.map(Shape::unpaid).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Whether there may be a list of these: each has to take a byte at least, and
    /// what takes none must not be much. Otherwise a short event could take much
    /// time and memory.
    pub(crate) fn may_repeat(&self) -> bool {
        self.least() > 0 && self.may_follow()
    }

    /// The same for what comes with something that takes a byte.
    pub(crate) fn may_follow(&self) -> bool {
        self.unpaid() <= 8
    }
}
