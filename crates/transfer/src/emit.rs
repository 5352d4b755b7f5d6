//! From any type to any self-describing encoding: a `serde` serializer that
//! says what it meets to a sink.
//!
//! Privacy is decided here, once for all modes: what is private is said only to
//! those who may read it, and a field that is not said is left out.

use serde::Serialize;
use serde::ser::{
    self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::error::Error;
use crate::private::{self, PRIVATE, Rights};
use crate::time::{SPAN, Span, TIME, Time};
use crate::value::VALUE;

/// How many lists and maps may lie in each other in what is encoded: no more
/// than decoders accept by default.
pub(crate) const DEPTH: usize = 128;

pub(crate) type Said = Result<(), Error>;

/// What a self-describing encoding can say.
///
/// A list is `list`, its items, each followed by `entry`, and `end_list`. A map
/// is `map`, its entries, each of them `key`, a value, `value`, a value and
/// `entry`, and `end_map`. Before an entry there may be a `checkpoint`, to which
/// `rollback` returns as long as `entry` has not been said.
pub(crate) trait Sink {
    fn null(&mut self) -> Said;
    fn bool(&mut self, value: bool) -> Said;
    fn int(&mut self, value: i64) -> Said;
    fn uint(&mut self, value: u64) -> Said;
    fn float(&mut self, value: f32) -> Said {
        self.double(f64::from(value))
    }
    fn double(&mut self, value: f64) -> Said;
    fn text(&mut self, value: &str) -> Said;
    fn bytes(&mut self, value: &[u8]) -> Said;
    fn time(&mut self, value: Time) -> Said;
    fn span(&mut self, value: Span) -> Said;
    fn list(&mut self, length: Option<usize>) -> Said;
    fn end_list(&mut self) -> Said;
    fn map(&mut self, length: Option<usize>) -> Said;
    fn key(&mut self) -> Said;
    fn value(&mut self) -> Said;
    fn item(&mut self) -> Said;
    fn entry(&mut self) -> Said;
    fn end_map(&mut self) -> Said;
    fn private(&mut self) -> Said;
    fn end_private(&mut self) -> Said;
    fn shared(&mut self, number: u32) -> Said;
    fn end_shared(&mut self) -> Said;
    fn link(&mut self, number: u32) -> Said;
    fn checkpoint(&self) -> usize;
    fn rollback(&mut self, to: usize);
}

/// Says one value to a sink.
pub(crate) struct Emit<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) rights: Rights,
    /// How many levels deeper it may go.
    depth: usize,
}

impl<'a> Emit<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, rights: Rights) -> Emit<'a> {
        Emit {
            sink,
            rights,
            depth: DEPTH,
        }
    }

    fn deeper(&mut self) -> Result<Emit<'_>, Error> {
        let depth = self.depth.checked_sub(1);
        Ok(Emit {
            sink: self.sink,
            rights: self.rights,
            depth: depth.ok_or(Error::TooDeep { limit: DEPTH })?,
        })
    }

    /// A member of a struct, an entry of a map: with its key, or not at all.
    fn member<T: ?Sized + Serialize>(&mut self, name: &str, value: &T) -> Said {
        let start = self.sink.checkpoint();
        self.sink.key()?;
        self.sink.text(name)?;
        self.sink.value()?;
        if value.serialize(self.deeper()?)? {
            self.sink.entry()
        } else {
            self.sink.rollback(start);
            Ok(())
        }
    }

    /// An item of a list, which cannot be left out without moving the others.
    fn item<T: ?Sized + Serialize>(&mut self, value: &T) -> Said {
        self.sink.item()?;
        if !value.serialize(self.deeper()?)? {
            self.sink.null()?;
        }
        self.sink.entry()
    }

    /// Begins the map of one entry that says which variant follows.
    fn variant(&mut self, name: &str) -> Said {
        self.sink.map(Some(1))?;
        self.sink.key()?;
        self.sink.text(name)?;
        self.sink.value()
    }
}

/// What has been said, if it was: private values may not be.
type Shown = Result<bool, Error>;

macro_rules! plain {
    ($($name:ident($type:ty) => $say:ident as $as:ty,)*) => {$(
        fn $name(self, value: $type) -> Shown {
            self.sink.$say(<$as>::from(value))?;
            Ok(true)
        }
    )*};
}

impl<'a> Serializer for Emit<'a> {
    type Ok = bool;
    type Error = Error;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    plain! {
        serialize_bool(bool) => bool as bool,
        serialize_i8(i8) => int as i64,
        serialize_i16(i16) => int as i64,
        serialize_i32(i32) => int as i64,
        serialize_i64(i64) => int as i64,
        serialize_u8(u8) => uint as u64,
        serialize_u16(u16) => uint as u64,
        serialize_u32(u32) => uint as u64,
        serialize_u64(u64) => uint as u64,
        serialize_f32(f32) => float as f32,
        serialize_f64(f64) => double as f64,
        serialize_str(&str) => text as &str,
        serialize_bytes(&[u8]) => bytes as &[u8],
    }

    fn serialize_i128(self, value: i128) -> Shown {
        match i64::try_from(value) {
            Ok(value) => self.serialize_i64(value),
            Err(_) => Err(Error::Unrepresentable {
                mode: "a value",
                what: "a whole number beyond 64 bits",
            }),
        }
    }

    fn serialize_u128(self, value: u128) -> Shown {
        match u64::try_from(value) {
            Ok(value) => self.serialize_u64(value),
            Err(_) => Err(Error::Unrepresentable {
                mode: "a value",
                what: "a whole number beyond 64 bits",
            }),
        }
    }

    fn serialize_char(self, value: char) -> Shown {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_none(self) -> Shown {
        self.serialize_unit()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Shown {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Shown {
        self.sink.null()?;
        Ok(true)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Shown {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Shown {
        if name == VALUE {
            self.sink.link(index)?;
            return Ok(true);
        }
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        mut self,
        name: &'static str,
        value: &T,
    ) -> Shown {
        match name {
            PRIVATE if self.rights.may_read().is_none() => Ok(false),
            PRIVATE => {
                self.sink.private()?;
                private::open_next();
                let shown = value.serialize(self.deeper()?);
                private::close();
                if !shown? {
                    self.sink.null()?;
                }
                self.sink.end_private()?;
                Ok(true)
            }
            TIME => {
                let time = value.serialize(Nanoseconds)?;
                self.sink.time(Time::from_nanoseconds(time))?;
                Ok(true)
            }
            SPAN => {
                let span = value.serialize(Nanoseconds)?;
                self.sink.span(Span::from_nanoseconds(span))?;
                Ok(true)
            }
            _ => value.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Shown {
        if name == VALUE {
            self.sink.shared(index)?;
            let shown = value.serialize(self.deeper()?)?;
            if !shown {
                self.sink.null()?;
            }
            self.sink.end_shared()?;
            return Ok(true);
        }
        self.variant(variant)?;
        if !value.serialize(self.deeper()?)? {
            self.sink.null()?;
        }
        self.sink.entry()?;
        self.sink.end_map()?;
        Ok(true)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Parts<'a>, Error> {
        self.sink.list(length)?;
        Ok(Parts::new(self, false))
    }

    fn serialize_tuple(self, length: usize) -> Result<Parts<'a>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Parts<'a>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Parts<'a>, Error> {
        self.variant(variant)?;
        self.sink.list(Some(length))?;
        Ok(Parts::new(self, true))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Parts<'a>, Error> {
        self.sink.map(length)?;
        Ok(Parts::new(self, false))
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Parts<'a>, Error> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Parts<'a>, Error> {
        self.variant(variant)?;
        self.sink.map(Some(length))?;
        Ok(Parts::new(self, true))
    }
}

/// A list or a map whose parts are being said.
pub(crate) struct Parts<'a> {
    emit: Emit<'a>,
    /// Whether it stands in the map of a variant.
    in_variant: bool,
    /// Where the entry began whose value has not come.
    entry: usize,
}

impl<'a> Parts<'a> {
    fn new(emit: Emit<'a>, in_variant: bool) -> Parts<'a> {
        Parts {
            emit,
            in_variant,
            entry: 0,
        }
    }

    fn end_list(self) -> Shown {
        self.emit.sink.end_list()?;
        self.end()
    }

    fn end_map(self) -> Shown {
        self.emit.sink.end_map()?;
        self.end()
    }

    fn end(self) -> Shown {
        if self.in_variant {
            self.emit.sink.entry()?;
            self.emit.sink.end_map()?;
        }
        Ok(true)
    }
}

macro_rules! lists {
    ($($trait:ident::$method:ident,)*) => {$(
        impl $trait for Parts<'_> {
            type Ok = bool;
            type Error = Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Said {
                self.emit.item(value)
            }

            fn end(self) -> Shown {
                self.end_list()
            }
        }
    )*};
}

lists! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

macro_rules! structs {
    ($($trait:ident,)*) => {$(
        impl $trait for Parts<'_> {
            type Ok = bool;
            type Error = Error;

            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Said {
                self.emit.member(name, value)
            }

            fn end(self) -> Shown {
                self.end_map()
            }
        }
    )*};
}

structs! { SerializeStruct, SerializeStructVariant, }

impl SerializeMap for Parts<'_> {
    type Ok = bool;
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Said {
        self.entry = self.emit.sink.checkpoint();
        self.emit.sink.key()?;
        if !key.serialize(self.emit.deeper()?)? {
            return Err(Error::Unrepresentable {
                mode: "a value",
                what: "a private key",
            });
        }
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Said {
        self.emit.sink.value()?;
        if value.serialize(self.emit.deeper()?)? {
            self.emit.sink.entry()
        } else {
            self.emit.sink.rollback(self.entry);
            Ok(())
        }
    }

    fn end(self) -> Shown {
        self.end_map()
    }
}

/// Takes out the number that a time or a distance is.
pub(crate) struct Nanoseconds;

fn no_number<T>() -> Result<T, Error> {
    let what = "a point or a distance in time is a whole number of nanoseconds";
    Err(ser::Error::custom(what))
}

macro_rules! refused {
    ($($name:ident($($type:ty),*),)*) => {$(
        fn $name(self, $(_: $type),*) -> Result<i64, Error> {
            no_number()
        }
    )*};
}

impl Serializer for Nanoseconds {
    type Ok = i64;
    type Error = Error;
    type SerializeSeq = ser::Impossible<i64, Error>;
    type SerializeTuple = ser::Impossible<i64, Error>;
    type SerializeTupleStruct = ser::Impossible<i64, Error>;
    type SerializeTupleVariant = ser::Impossible<i64, Error>;
    type SerializeMap = ser::Impossible<i64, Error>;
    type SerializeStruct = ser::Impossible<i64, Error>;
    type SerializeStructVariant = ser::Impossible<i64, Error>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_i64(self, value: i64) -> Result<i64, Error> {
        Ok(value)
    }

    refused! {
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64),
        serialize_f32(f32), serialize_f64(f64), serialize_char(char), serialize_str(&str),
        serialize_bytes(&[u8]), serialize_none(), serialize_unit(),
        serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str),
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<i64, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<i64, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<i64, Error> {
        no_number()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        no_number()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        no_number()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        no_number()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        no_number()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        no_number()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Error> {
        no_number()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        no_number()
    }
}
