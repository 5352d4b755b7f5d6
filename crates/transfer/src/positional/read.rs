//! From bytes to types.

use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::unzigzag;
use crate::cbor;
use crate::error::Error;
use crate::limits::Limits;
use crate::private::{self, Rights};
use crate::schema::Bytes;
use crate::time::{SPAN, TIME};
use crate::value::{VALUE, Value, hand};

/// Reads what [`Writer`](super::Writer) wrote.
pub(crate) struct Reader<'de> {
    pub(crate) bytes: Bytes<'de>,
    pub(crate) limits: Limits,
    pub(crate) rights: Rights,
}

impl<'de> Reader<'de> {
    /// A value that says itself what it is.
    pub(super) fn any(&mut self) -> Result<Value, Error> {
        let mut reader = cbor::Reader::new(self.bytes.rest(), self.bytes.mode(), self.limits.depth);
        let value = reader.value()?;
        let length = self.bytes.rest().len() - reader.rest().len();
        self.bytes.take(length)?;
        if self.rights.may_set().is_none() && value.has_private() {
            return Err(Error::Private);
        }
        Ok(value)
    }

    pub(super) fn skip_any(&mut self) -> Result<(), Error> {
        let mut reader = cbor::Reader::new(self.bytes.rest(), self.bytes.mode(), self.limits.depth);
        reader.skip()?;
        let length = self.bytes.rest().len() - reader.rest().len();
        self.bytes.take(length).map(|_| ())
    }

    /// Whether something follows.
    #[inline]
    pub(super) fn is_there(&mut self) -> Result<bool, Error> {
        match self.bytes.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.bytes.malformed("something is neither there nor not"),
        }
    }

    pub(super) fn char(&mut self) -> Result<char, Error> {
        match char::from_u32(self.bytes.number()?) {
            Some(letter) => Ok(letter),
            None => self.bytes.malformed("there is no such character"),
        }
    }
}

fn not_known<T>() -> Result<T, Error> {
    Err(Error::custom("the type asks what comes next"))
}

macro_rules! read {
    ($($name:ident => $visit:ident(|$bytes:ident| $value:expr),)*) => {$(
        #[inline]
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let $bytes = &mut self.bytes;
            visitor.$visit($value)
        }
    )*};
}

fn signed<T: TryFrom<i64>>(bytes: &mut Bytes<'_>) -> Result<T, Error> {
    match T::try_from(unzigzag(bytes.varint()?)) {
        Ok(number) => Ok(number),
        Err(_) => bytes.malformed("a number is too large"),
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    read! {
        deserialize_i8 => visit_i8(|bytes| i8::from_le_bytes(bytes.array()?)),
        deserialize_i16 => visit_i16(|bytes| signed(bytes)?),
        deserialize_i32 => visit_i32(|bytes| signed(bytes)?),
        deserialize_i64 => visit_i64(|bytes| unzigzag(bytes.varint()?)),
        deserialize_i128 => visit_i128(|bytes| i128::from_le_bytes(bytes.array()?)),
        deserialize_u8 => visit_u8(|bytes| bytes.byte()?),
        deserialize_u16 => visit_u16(|bytes| bytes.number()?),
        deserialize_u32 => visit_u32(|bytes| bytes.number()?),
        deserialize_u64 => visit_u64(|bytes| bytes.varint()?),
        deserialize_u128 => visit_u128(|bytes| u128::from_le_bytes(bytes.array()?)),
        deserialize_f32 => visit_f32(|bytes| f32::from_le_bytes(bytes.array()?)),
        deserialize_f64 => visit_f64(|bytes| f64::from_le_bytes(bytes.array()?)),
        deserialize_str => visit_borrowed_str(|bytes| bytes.text()?),
        deserialize_string => visit_borrowed_str(|bytes| bytes.text()?),
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        not_known()
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        not_known()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        not_known()
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.is_there()?)
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_char(self.char()?)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let length = self.bytes.number()?;
        visitor.visit_borrowed_bytes(self.bytes.take(length)?)
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !self.is_there()? {
            return visitor.visit_none();
        }
        if self.rights.may_set().is_none() {
            return visitor.visit_some(self);
        }
        private::open_next();
        let result = visitor.visit_some(self);
        private::close();
        result
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match name {
            TIME => visitor.visit_i64(i64::from_le_bytes(self.bytes.array()?)),
            SPAN => visitor.visit_i64(unzigzag(self.bytes.varint()?)),
            VALUE => hand(self.any()?, visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // Items of lists take at least a byte each: schemas without that are refused.
        let count = self.bytes.count(1)?;
        let mut items = Items(self, count);
        let value = visitor.visit_seq(&mut items)?;
        match items.1 {
            0 => Ok(value),
            _ => items.0.bytes.malformed("there are too many items"),
        }
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(&mut Items(self, length))
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(&mut Items(self, length))
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let count = self.bytes.count(1)?;
        visitor.visit_map(Items(self, count))
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(&mut Items(self, fields.len()))
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }
}

/// So many items that follow each other.
struct Items<'a, 'de>(&'a mut Reader<'de>, usize);

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(left) = self.1.checked_sub(1) else {
            return Ok(None);
        };
        self.1 = left;
        seed.deserialize(&mut *self.0).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.1)
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.next_element_seed(seed)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(&mut *self.0)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.1)
    }
}

impl<'de> EnumAccess<'de> for &mut Reader<'de> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let index: u32 = self.bytes.number()?;
        let index: U32Deserializer<Error> = index.into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Reader<'de> {
    type Error = Error;

    #[inline]
    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}
