//! Finds out what a type looks like by watching how it deserializes.
//!
//! The type is deserialized again and again, from made-up values, until each
//! variant of each enum has been seen. What cannot be known so (untagged enums,
//! flattened structs, types that hold themselves, texts of a form that we do not
//! guess) has no schema, and travels with names.

use std::fmt;

use serde::de::value::U64Deserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::{Field, LEVELS, Shape, Variant};
use crate::error::Error;
use crate::kind::Body;
use crate::private;
use crate::time::{SPAN, TIME};
use crate::value::{VALUE, Value, hand};

/// Texts that types may insist on.
const TEXTS: [&str; 9] = [
    "",
    "a",
    "1",
    "/a",
    "127.0.0.1",
    "::1",
    "1970-01-01T00:00:00Z",
    "1970-01-01",
    "00000000-0000-4000-8000-000000000000",
];

/// How often a type is deserialized at most, for each text.
const PASSES: usize = 1000;

/// The shape of a type, if it can be known.
pub(crate) fn trace<T: Body>() -> Option<Shape> {
    TEXTS.iter().find_map(|text| {
        let mut seen = Seen::Unknown;
        for _ in 0..PASSES {
            let result = T::deserialize(Tracer {
                seen: &mut seen,
                text,
                levels: LEVELS,
            });
            private::close();
            result.ok()?;
            if seen.is_complete() {
                return seen.shape();
            }
        }
        None
    })
}

/// What has been seen of a shape.
enum Seen {
    Unknown,
    Plain(Shape),
    Option(Box<Seen>),
    Private(Box<Seen>),
    List(Box<Seen>),
    Tuple(Vec<Seen>),
    Map(Box<(Seen, Seen)>),
    Struct(&'static [&'static str], Vec<Seen>),
    Enum(&'static [&'static str], Vec<Seen>),
    /// A variant that holds nothing.
    Nothing,
}

impl Seen {
    fn is_complete(&self) -> bool {
        match self {
            Seen::Unknown => false,
            Seen::Plain(_) | Seen::Nothing => true,
            Seen::Option(inner) | Seen::Private(inner) | Seen::List(inner) => inner.is_complete(),
            Seen::Map(entry) => entry.0.is_complete() && entry.1.is_complete(),
            Seen::Tuple(parts) | Seen::Struct(_, parts) | Seen::Enum(_, parts) => {
                parts.iter().all(Seen::is_complete)
            }
        }
    }

    fn shape(self) -> Option<Shape> {
        Some(match self {
            Seen::Unknown | Seen::Nothing => return None,
            Seen::Plain(shape) => shape,
            Seen::Option(inner) => Shape::Option(Box::new(inner.shape()?)),
            Seen::Private(inner) => Shape::Private(Box::new(inner.shape()?)),
            Seen::List(item) => {
                let item = item.shape()?;
                item.may_repeat().then(|| Shape::List(Box::new(item)))?
            }
            Seen::Tuple(items) => {
                let items = items.into_iter().map(Seen::shape);
                Shape::Tuple(items.collect::<Option<_>>()?)
            }
            Seen::Map(entry) => {
                let (key, value) = (entry.0.shape()?, entry.1.shape()?);
                let may = key.may_repeat() && value.may_follow();
                may.then(|| Shape::Map(Box::new((key, value))))?
            }
            Seen::Struct(names, fields) => {
                let fields = names.iter().zip(fields).map(|(name, seen)| {
                    Some(Field {
                        name: (*name).into(),
                        id: None,
                        extends: false,
                        shape: seen.shape()?,
                    })
                });
                Shape::Struct(fields.collect::<Option<_>>()?)
            }
            Seen::Enum(names, variants) => {
                let variants = names.iter().zip(variants).map(|(name, seen)| {
                    Some(Variant {
                        name: (*name).into(),
                        content: match seen {
                            Seen::Nothing => None,
                            seen => Some(seen.shape()?),
                        },
                    })
                });
                Shape::Enum(variants.collect::<Option<_>>()?)
            }
        })
    }

    /// What is inside, where the outside is known or becomes so now.
    fn inside(&mut self, outside: fn(Box<Seen>) -> Seen) -> &mut Seen {
        if let Seen::Unknown = self {
            *self = outside(Box::new(Seen::Unknown));
        }
        match self {
            Seen::Option(inner) | Seen::Private(inner) | Seen::List(inner) => inner,
            other => other,
        }
    }

    /// The parts, where the outside is known or becomes so now.
    fn parts(&mut self, count: usize, outside: impl FnOnce(Vec<Seen>) -> Seen) -> &mut Vec<Seen> {
        if let Seen::Unknown = self {
            *self = outside((0..count).map(|_| Seen::Unknown).collect());
        }
        match self {
            Seen::Tuple(parts) | Seen::Struct(_, parts) | Seen::Enum(_, parts) => parts,
            other => {
                *other = Seen::Tuple(Vec::new());
                match other {
                    Seen::Tuple(parts) => parts,
                    _ => unreachable!("it has just been set"),
                }
            }
        }
    }
}

struct Tracer<'a> {
    seen: &'a mut Seen,
    text: &'static str,
    levels: usize,
}

impl<'a> Tracer<'a> {
    fn plain(&mut self, shape: Shape) {
        *self.seen = Seen::Plain(shape);
    }

    /// A tracer for what lies one level deeper.
    fn below(seen: &'a mut Seen, text: &'static str, levels: usize) -> Result<Tracer<'a>, Error> {
        let limit = LEVELS;
        let levels = levels.checked_sub(1).ok_or(Error::TooDeep { limit })?;
        Ok(Tracer { seen, text, levels })
    }

    fn inner(self, outside: fn(Box<Seen>) -> Seen) -> Result<Tracer<'a>, Error> {
        Tracer::below(self.seen.inside(outside), self.text, self.levels)
    }

    fn tuple<'de, V: Visitor<'de>>(
        self,
        count: usize,
        outside: impl FnOnce(Vec<Seen>) -> Seen,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (text, levels) = (self.text, self.levels);
        let parts = self.seen.parts(count, outside);
        let mut parts = Parts {
            parts: parts.iter_mut(),
            text,
            levels,
        };
        let value = visitor.visit_seq(&mut parts)?;
        match parts.parts.len() {
            0 => Ok(value),
            _ => Err(unknown()),
        }
    }
}

fn unknown() -> Error {
    Error::custom("the type does not tell what it looks like")
}

macro_rules! numbers {
    ($($name:ident => $shape:ident $visit:ident($($value:expr)?),)*) => {$(
        fn $name<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
            self.plain(Shape::$shape);
            visitor.$visit($($value)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    // One, because some types do without zero.
    numbers! {
        deserialize_bool => Bool visit_bool(true),
        deserialize_i8 => I8 visit_i8(1),
        deserialize_i16 => I16 visit_i16(1),
        deserialize_i32 => I32 visit_i32(1),
        deserialize_i64 => I64 visit_i64(1),
        deserialize_i128 => I128 visit_i128(1),
        deserialize_u8 => U8 visit_u8(1),
        deserialize_u16 => U16 visit_u16(1),
        deserialize_u32 => U32 visit_u32(1),
        deserialize_u64 => U64 visit_u64(1),
        deserialize_u128 => U128 visit_u128(1),
        deserialize_f32 => F32 visit_f32(1.0),
        deserialize_f64 => F64 visit_f64(1.0),
        deserialize_char => Char visit_char('a'),
        deserialize_bytes => Bytes visit_bytes(&[]),
        deserialize_byte_buf => Bytes visit_bytes(&[]),
        deserialize_unit => Unit visit_unit(),
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(unknown())
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(unknown())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(unknown())
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.plain(Shape::Text);
        visitor.visit_str(self.text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if Expected(&visitor).to_string() == private::PRIVATE {
            let inner = self.inner(Seen::Private)?;
            private::open_next();
            return visitor.visit_some(inner);
        }
        visitor.visit_some(self.inner(Seen::Option)?)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match name {
            TIME => {
                self.plain(Shape::Time);
                visitor.visit_i64(0)
            }
            SPAN => {
                self.plain(Shape::Span);
                visitor.visit_i64(0)
            }
            VALUE => {
                self.plain(Shape::Any);
                hand(Value::Null, visitor)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let item = self.inner(Seen::List)?;
        visitor.visit_seq(Once(Some(item)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tuple(length, Seen::Tuple, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tuple(length, Seen::Tuple, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let outside = |parts| Seen::Struct(fields, parts);
        self.tuple(fields.len(), outside, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Seen::Unknown = self.seen {
            *self.seen = Seen::Map(Box::new((Seen::Unknown, Seen::Unknown)));
        }
        let Seen::Map(entry) = self.seen else {
            return Err(unknown());
        };
        let (key, value) = &mut **entry;
        visitor.visit_map(OneEntry {
            key: Some(Tracer::below(key, self.text, self.levels)?),
            value: Some(Tracer::below(value, self.text, self.levels)?),
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (text, levels) = (self.text, self.levels);
        let outside = |parts| Seen::Enum(names, parts);
        let variants = self.seen.parts(names.len(), outside);
        // The first that is not known yet; where all are, any will do.
        let next = variants.iter().position(|variant| !variant.is_complete());
        let index = next.unwrap_or(0);
        let Some(seen) = variants.get_mut(index) else {
            return Err(unknown());
        };
        let variant = Tracer::below(seen, text, levels)?;
        visitor.visit_enum(OneVariant(variant, index as u64))
    }
}

/// What a visitor says that it expects.
struct Expected<'a, V>(&'a V);

impl<'de, V: Visitor<'de>> fmt::Display for Expected<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}

struct Once<'a>(Option<Tracer<'a>>);

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let item = self.0.take();
        item.map(|item| seed.deserialize(item)).transpose()
    }
}

struct Parts<'a> {
    parts: std::slice::IterMut<'a, Seen>,
    text: &'static str,
    levels: usize,
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(seen) = self.parts.next() else {
            return Ok(None);
        };
        let part = Tracer::below(seen, self.text, self.levels)?;
        seed.deserialize(part).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.parts.len())
    }
}

struct OneEntry<'a> {
    key: Option<Tracer<'a>>,
    value: Option<Tracer<'a>>,
}

impl<'de> MapAccess<'de> for OneEntry<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let key = self.key.take();
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.value.take().ok_or_else(unknown)?)
    }
}

struct OneVariant<'a>(Tracer<'a>, u64);

impl<'de, 'a> EnumAccess<'de> for OneVariant<'a> {
    type Error = Error;
    type Variant = Tracer<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Tracer<'a>), Error> {
        let index: U64Deserializer<Error> = self.1.into_deserializer();
        Ok((seed.deserialize(index)?, self.0))
    }
}

impl<'de> VariantAccess<'de> for Tracer<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        *self.seen = Seen::Nothing;
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}
