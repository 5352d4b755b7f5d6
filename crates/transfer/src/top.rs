//! What a typed body is at the top.

use serde::ser::{Impossible, Serialize, SerializeStruct, Serializer};

use crate::read::{Shape, Stop};

/// Finds out by beginning a walk.
pub(crate) struct Top;

macro_rules! at_once {
    ($($shape:ident { $($method:ident($($type:ty),*) -> $result:ty;)*})*) => {$($(
        fn $method(self, $(_: $type),*) -> Result<$result, Stop> {
            Err(Stop::At(Shape::$shape))
        }
    )*)*};
}

type Never = Impossible<(), Stop>;

impl Serializer for Top {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Names;
    type SerializeStructVariant = Never;

    at_once! {
        Whole {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_i128(i128) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_u128(u128) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_seq(Option<usize>) -> Never;
        serialize_tuple(usize) -> Never;
        serialize_tuple_struct(&'static str, usize) -> Never;
        }
        // Another event of the type may be something else.
        Map {
        serialize_none() -> ();
        serialize_map(Option<usize>) -> Never;
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Never;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Never;
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Stop> {
        Err(Stop::At(Shape::Map))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Names, Stop> {
        Ok(Names)
    }
}

/// A struct whose names are gone through.
pub(crate) struct Names;

impl SerializeStruct for Names {
    type Ok = ();
    type Error = Stop;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        _: &T,
    ) -> Result<(), Stop> {
        match key {
            "value" => Err(Stop::At(Shape::HasValue)),
            _ => Ok(()),
        }
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), Stop> {
        match key {
            // Left out now, there another time.
            "value" => Err(Stop::At(Shape::HasValue)),
            _ => Ok(()),
        }
    }

    fn end(self) -> Result<(), Stop> {
        Err(Stop::At(Shape::Whole))
    }
}
