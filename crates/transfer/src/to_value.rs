//! What `serde` says of a typed body, as a value.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use crate::private::PRIVATE;
use crate::time::{SPAN, Span, TIME, Time};
use crate::value::{Map, Value};

/// A value that says what `serde` says of this one. What a type refuses to say
/// is nothing.
pub(crate) fn to_value<T: Serialize + ?Sized>(value: &T) -> Value {
    value.serialize(ToValue).unwrap_or(Value::Null)
}

/// A type that refuses to say what it is.
#[derive(Debug)]
pub(crate) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type does not say what it is")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Refused {
        Refused
    }
}

/// Makes values of what `serde` says.
pub(crate) struct ToValue;

macro_rules! scalars {
    ($($method:ident($type:ty) = $convert:expr;)*) => {$(
        fn $method(self, value: $type) -> Result<Value, Refused> {
            Ok($convert(value))
        }
    )*};
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = Refused;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Variant<Elements>;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Variant<Entries>;

    /// Points in time come as numbers.
    fn is_human_readable(&self) -> bool {
        false
    }

    scalars! {
        serialize_bool(bool) = Value::Bool;
        serialize_i8(i8) = |value| Value::Int(i64::from(value));
        serialize_i16(i16) = |value| Value::Int(i64::from(value));
        serialize_i32(i32) = Value::from;
        serialize_i64(i64) = Value::Int;
        serialize_u8(u8) = |value| Value::Uint(u64::from(value));
        serialize_u16(u16) = |value| Value::Uint(u64::from(value));
        serialize_u32(u32) = Value::from;
        serialize_u64(u64) = Value::Uint;
        serialize_f32(f32) = |value| Value::Double(f64::from(value));
        serialize_f64(f64) = Value::Double;
        serialize_str(&str) = Value::from;
        serialize_bytes(&[u8]) = |value: &[u8]| Value::Bytes(value.into());
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "beyond 64 bits the nearest number must do"
    )]
    fn serialize_i128(self, value: i128) -> Result<Value, Refused> {
        let small = i64::try_from(value).map(Value::Int);
        Ok(small.unwrap_or(Value::Double(value as f64)))
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "beyond 64 bits the nearest number must do"
    )]
    fn serialize_u128(self, value: u128) -> Result<Value, Refused> {
        let small = u64::try_from(value).map(Value::Uint);
        Ok(small.unwrap_or(Value::Double(value as f64)))
    }

    fn serialize_char(self, value: char) -> Result<Value, Refused> {
        Ok(Value::from(&*value.encode_utf8(&mut [0; 4])))
    }

    fn serialize_none(self) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Refused> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Refused> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, Refused> {
        if name == PRIVATE {
            return Ok(Value::Null);
        }
        let value = value.serialize(self)?;
        Ok(match (name, value) {
            (TIME, Value::Int(number)) => Value::Time(Time::from_nanoseconds(number)),
            (SPAN, Value::Int(number)) => Value::Span(Span::from_nanoseconds(number)),
            (_, value) => value,
        })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Refused> {
        Ok(under(variant, value.serialize(self)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements, Refused> {
        Ok(Elements::new(length))
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements, Refused> {
        Ok(Elements::new(Some(length)))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Elements, Refused> {
        Ok(Elements::new(Some(length)))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Variant<Elements>, Refused> {
        Ok(Variant::new(variant, Elements::new(Some(length))))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, Refused> {
        Ok(Entries::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, Refused> {
        Ok(Entries::default())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Variant<Entries>, Refused> {
        Ok(Variant::new(variant, Entries::default()))
    }
}

/// A variant with what it holds: a map with one key.
fn under(variant: &'static str, value: Value) -> Value {
    Value::from(Map::from_iter([(variant, value)]))
}

/// A list in the making.
pub(crate) struct Elements(Vec<Value>);

impl Elements {
    /// A length is only a hint, and not paid for: it reserves little.
    pub(crate) fn new(length: Option<usize>) -> Elements {
        Elements(Vec::with_capacity(length.unwrap_or(0).min(1024)))
    }

    pub(crate) fn add(&mut self, value: Value) {
        self.0.push(value);
    }

    pub(crate) fn done(self) -> Value {
        Value::from(self.0)
    }
}

/// A map in the making.
#[derive(Default)]
pub(crate) struct Entries {
    map: Map,
    key: Option<Value>,
}

impl Entries {
    pub(crate) fn add(&mut self, key: Value, value: Value) {
        self.map.set(key, value);
    }

    pub(crate) fn done(self) -> Value {
        Value::from(self.map)
    }
}

/// A variant in the making.
pub(crate) struct Variant<M> {
    name: &'static str,
    inner: M,
}

impl<M> Variant<M> {
    pub(crate) fn new(name: &'static str, inner: M) -> Variant<M> {
        Variant { name, inner }
    }
}

macro_rules! elements {
    ($($trait:ident::$method:ident for $type:ty, $self:ident => $elements:expr, $end:expr;)*) => {$(
        impl ser::$trait for $type {
            type Ok = Value;
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut $self, value: &T) -> Result<(), Refused> {
                $elements.add(value.serialize(ToValue)?);
                Ok(())
            }

            fn end($self) -> Result<Value, Refused> {
                Ok($end)
            }
        }
    )*};
}

elements! {
    SerializeSeq::serialize_element for Elements, self => self, self.done();
    SerializeTuple::serialize_element for Elements, self => self, self.done();
    SerializeTupleStruct::serialize_field for Elements, self => self, self.done();
    SerializeTupleVariant::serialize_field for Variant<Elements>, self => self.inner, under(self.name, self.inner.done());
}

impl ser::SerializeMap for Entries {
    type Ok = Value;
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.key = Some(key.serialize(ToValue)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        let key = self.key.take().ok_or(Refused)?;
        self.add(key, value.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Refused> {
        Ok(self.done())
    }
}

macro_rules! fields {
    ($($trait:ident for $type:ty, $self:ident => $entries:expr, $end:expr;)*) => {$(
        impl ser::$trait for $type {
            type Ok = Value;
            type Error = Refused;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut $self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Refused> {
                $entries.add(Value::from(key), value.serialize(ToValue)?);
                Ok(())
            }

            fn end($self) -> Result<Value, Refused> {
                Ok($end)
            }
        }
    )*};
}

fields! {
    SerializeStruct for Entries, self => self, self.done();
    SerializeStructVariant for Variant<Entries>, self => self.inner, under(self.name, self.inner.done());
}
