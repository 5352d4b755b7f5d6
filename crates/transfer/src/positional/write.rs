//! From types to bytes.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::zigzag;
use crate::cbor;
use crate::emit::{Emit, Nanoseconds};
use crate::error::Error;
use crate::private::{self, PRIVATE, Rights};
use crate::schema::varint;
use crate::time::{SPAN, TIME};
use crate::value::VALUE;

/// Appends what it is given, without names.
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) rights: Rights,
    pub(crate) identity: bool,
    /// The variants that the schema knows, by their numbers.
    pub(crate) variants: &'a [(u32, Arc<str>)],
}

impl Writer<'_> {
    /// The number of a variant. Where `serde` skips some, `Serialize` counts them
    /// and `Deserialize` does not.
    #[inline]
    fn variant(&mut self, index: u32, name: &str) -> Done {
        let is_it = |(number, known): &(u32, Arc<str>)| *number == index && **known == *name;
        if !self.variants.iter().any(is_it) {
            return not_positional();
        }
        varint(index.into(), self.out);
        Ok(())
    }
}

/// Types that serialize something else than they deserialize travel with names.
fn not_positional<T>() -> Result<T, Error> {
    Err(Error::Unrepresentable {
        mode: "data-stream",
        what: "a type whose fields or lengths are not known in advance",
    })
}

type Done = Result<(), Error>;

macro_rules! varints {
    ($($name:ident($type:ty) => |$value:ident| $as:expr,)*) => {$(
        #[inline]
        fn $name(self, $value: $type) -> Done {
            varint($as, self.out);
            Ok(())
        }
    )*};
}

macro_rules! raw {
    ($($name:ident($type:ty),)*) => {$(
        #[inline]
        fn $name(self, value: $type) -> Done {
            self.out.extend_from_slice(&value.to_le_bytes());
            Ok(())
        }
    )*};
}

impl Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    varints! {
        serialize_i16(i16) => |value| zigzag(value.into()),
        serialize_i32(i32) => |value| zigzag(value.into()),
        serialize_i64(i64) => |value| zigzag(value),
        serialize_u16(u16) => |value| value.into(),
        serialize_u32(u32) => |value| value.into(),
        serialize_u64(u64) => |value| value,
        serialize_char(char) => |value| u32::from(value).into(),
    }

    raw! {
        serialize_i8(i8), serialize_u8(u8), serialize_i128(i128), serialize_u128(u128),
        serialize_f32(f32), serialize_f64(f64),
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Done {
        self.out.push(value.into());
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Done {
        self.serialize_bytes(value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Done {
        varint(value.len() as u64, self.out);
        self.out.extend_from_slice(value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Done {
        self.out.push(0);
        Ok(())
    }

    #[inline]
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Done {
        self.out.push(1);
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Done {
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Done {
        Ok(())
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, index: u32, variant: &'static str) -> Done {
        self.variant(index, variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        value: &T,
    ) -> Done {
        match name {
            PRIVATE if self.rights.may_read().is_none() => self.serialize_none(),
            PRIVATE => {
                self.out.push(1);
                private::open_next();
                let result = value.serialize(&mut *self);
                private::close();
                result
            }
            TIME => {
                let time = value.serialize(Nanoseconds)?;
                self.out.extend_from_slice(&time.to_le_bytes());
                Ok(())
            }
            SPAN => {
                varint(zigzag(value.serialize(Nanoseconds)?), self.out);
                Ok(())
            }
            VALUE => {
                let mut sink = cbor::Writer::new(self.out, self.identity);
                if !value.serialize(Emit::new(&mut sink, self.rights))? {
                    self.out.push(cbor::NULL);
                }
                Ok(())
            }
            _ => value.serialize(self),
        }
    }

    #[inline]
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.variant(index, variant)?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Error> {
        match length {
            Some(length) => varint(length as u64, self.out),
            None => return not_positional(),
        }
        Ok(self)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        self.variant(index, variant)?;
        Ok(self)
    }

    #[inline]
    fn serialize_map(self, length: Option<usize>) -> Result<Self, Error> {
        self.serialize_seq(length)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        self.variant(index, variant)?;
        Ok(self)
    }
}

macro_rules! sequences {
    ($($trait:ident::$method:ident,)*) => {$(
        impl $trait for &mut Writer<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Done {
                value.serialize(&mut **self)
            }

            #[inline]
            fn end(self) -> Done {
                Ok(())
            }
        }
    )*};
}

sequences! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

macro_rules! structs {
    ($($trait:ident,)*) => {$(
        impl $trait for &mut Writer<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Done {
                value.serialize(&mut **self)
            }

            fn skip_field(&mut self, _: &'static str) -> Done {
                not_positional()
            }

            #[inline]
            fn end(self) -> Done {
                Ok(())
            }
        }
    )*};
}

structs! { SerializeStruct, SerializeStructVariant, }

impl SerializeMap for &mut Writer<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Done {
        key.serialize(&mut **self)
    }

    #[inline]
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Done {
        value.serialize(&mut **self)
    }

    #[inline]
    fn end(self) -> Done {
        Ok(())
    }
}
