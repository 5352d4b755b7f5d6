//! From values to types, and values from deserializers.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Map, VALUE, Value};
use crate::base64;
use crate::error::Error;
use crate::private::{self, Rights};
use crate::time::{SPAN, TIME};

impl Value {
    /// What a value holds, as any type.
    ///
    /// Numbers are converted where nothing is lost, fields found by their name,
    /// fields that the type does not know ignored. Values with links have to be
    /// [expanded](Value::expanded) first.
    ///
    /// ```
    /// # use milieu_transfer::{Map, Rights, Value};
    /// #[derive(serde::Deserialize)]
    /// struct Reading { celsius: f64 }
    ///
    /// let value = Value::from(Map::from_iter([("celsius", 21.5)]));
    /// let reading: Reading = value.to(Rights::NONE)?;
    /// assert_eq!(reading.celsius, 21.5);
    /// # Ok::<(), milieu_transfer::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Body`] where the value does not fit the type, [`Error::Private`]
    /// where it sets a private field and the rights do not allow that.
    pub fn to<'de, T: Deserialize<'de>>(&'de self, rights: Rights) -> Result<T, Error> {
        T::deserialize(Reader::new(self, rights))
    }
}

thread_local! {
    /// A value on its way from our deserializers to `Value::deserialize`, which
    /// would otherwise not see what `serde` has no word for.
    static HANDED: Cell<Option<Value>> = const { Cell::new(None) };
}

/// Gives a whole value to a visitor that asked for [`VALUE`].
pub(crate) fn hand<'de, V: Visitor<'de>>(value: Value, visitor: V) -> Result<V::Value, Error> {
    HANDED.set(Some(value));
    let result = visitor.visit_newtype_struct(Reader::new(&Value::Null, Rights::NONE));
    HANDED.take();
    result
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_newtype_struct(VALUE, Whole)
    }
}

struct Whole;

macro_rules! visits {
    ($($name:ident($type:ty),)*) => {$(
        fn $name<E>(self, value: $type) -> Result<Value, E> {
            Ok(Value::from(value))
        }
    )*};
}

impl<'de> Visitor<'de> for Whole {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    visits! {
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64),
        visit_str(&str), visit_string(String), visit_byte_buf(Vec<u8>),
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        match HANDED.take() {
            Some(value) => Ok(value),
            None => deserializer.deserialize_any(self),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        let twice = |_| A::Error::custom("a key comes twice in a map");
        Map::new(map).map(Value::from).map_err(twice)
    }
}

/// Reads a value as a type.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'de> {
    value: &'de Value,
    rights: Rights,
    /// Whether it is a key of a map: many formats have only texts there.
    is_key: bool,
}

impl<'de> Reader<'de> {
    pub(crate) fn new(value: &'de Value, rights: Rights) -> Reader<'de> {
        Reader {
            value,
            rights,
            is_key: false,
        }
    }

    fn at(self, value: &'de Value, is_key: bool) -> Reader<'de> {
        Reader {
            value,
            is_key,
            ..self
        }
    }

    /// Without what stands around it.
    fn opened(mut self) -> Result<Reader<'de>, Error> {
        loop {
            match self.value {
                Value::Private(_) if self.rights.may_set().is_none() => {
                    return Err(Error::Private);
                }
                Value::Private(value) | Value::Shared(_, value) => self.value = value,
                Value::Link(_) => return Err(Error::Cycle),
                _ => return Ok(self),
            }
        }
    }
}

macro_rules! numbers {
    ($($name:ident => $visit:ident($type:ty),)*) => {$(
        /// A text too, where it is a key: most formats have only texts there.
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            if let (Value::Text(text), true) = (self.value, self.is_key) {
                if let Ok(number) = text.parse::<$type>() {
                    return visitor.$visit(number);
                }
            }
            self.deserialize_any(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let this = self.opened()?;
        match this.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Uint(value) => visitor.visit_u64(*value),
            Value::Double(value) => visitor.visit_f64(*value),
            Value::Text(value) => visitor.visit_borrowed_str(value),
            Value::Bytes(value) => visitor.visit_borrowed_bytes(value),
            Value::Time(value) => visitor.visit_string(value.to_string()),
            Value::Span(value) => visitor.visit_string(value.to_string()),
            Value::List(items) => {
                let mut items = Items(items.iter(), this);
                let result = visitor.visit_seq(&mut items)?;
                match items.0.len() {
                    0 => Ok(result),
                    more => Err(Error::custom(format_args!("{more} items too many"))),
                }
            }
            Value::Map(map) => visitor.visit_map(Entries(map.0.iter(), None, this)),
            _ => visitor.visit_unit(),
        }
    }

    numbers! {
        deserialize_bool => visit_bool(bool),
        deserialize_i8 => visit_i8(i8),
        deserialize_i16 => visit_i16(i16),
        deserialize_i32 => visit_i32(i32),
        deserialize_i64 => visit_i64(i64),
        deserialize_u8 => visit_u8(u8),
        deserialize_u16 => visit_u16(u16),
        deserialize_u32 => visit_u32(u32),
        deserialize_u64 => visit_u64(u64),
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    /// JSON has no numbers that are not finite and writes their names.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Value::Text(text) = self.opened()?.value {
            if let (Ok(number), true) = (text.parse(), self.is_key || is_not_finite(text)) {
                return visitor.visit_f64(number);
            }
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.opened()?.value {
            Value::Text(text) => match base64::decode(text) {
                Some(bytes) => visitor.visit_byte_buf(bytes),
                None => Err(Error::custom("expected bytes in base 64")),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let may_set = self.rights.may_set().is_some();
        let inside = match self.value {
            Value::Null => return visitor.visit_none(),
            Value::Private(_) if !may_set => return Err(Error::Private),
            Value::Private(value) => self.at(value, false),
            _ => self,
        };
        if !may_set {
            return visitor.visit_some(inside);
        }
        private::open_next();
        let result = visitor.visit_some(inside);
        private::close();
        result
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match name {
            VALUE => {
                let may_set = self.rights.may_set().is_some();
                if !may_set && self.value.any(&|value| matches!(value, Value::Private(_))) {
                    return Err(Error::Private);
                }
                hand(self.value.clone(), visitor)
            }
            TIME | SPAN => match self.opened()?.value {
                Value::Time(time) => visitor.visit_i64(time.nanoseconds()),
                Value::Span(span) => visitor.visit_i64(span.nanoseconds()),
                _ => self.deserialize_any(visitor),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let this = self.opened()?;
        match this.value {
            Value::Text(variant) => visitor.visit_enum(Variant(variant, None)),
            Value::Map(map) if map.len() == 1 => match &map.0[0] {
                (Value::Text(variant), value) => {
                    visitor.visit_enum(Variant(variant, Some(this.at(value, false))))
                }
                _ => Err(Error::custom("expected the name of a variant")),
            },
            _ => Err(Error::custom(
                "expected the name of a variant, or a map from it to what it holds",
            )),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char str string unit seq tuple tuple_struct map struct identifier
    }
}

fn is_not_finite(text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
}

struct Items<'de>(std::slice::Iter<'de, Value>, Reader<'de>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let item = self.0.next();
        item.map(|item| seed.deserialize(self.1.at(item, false)))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'de>(
    std::slice::Iter<'de, (Value, Value)>,
    Option<&'de Value>,
    Reader<'de>,
);

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((key, value)) = self.0.next() else {
            return Ok(None);
        };
        self.1 = Some(value);
        seed.deserialize(self.2.at(key, true)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = self.1.take().unwrap_or(&Value::Null);
        seed.deserialize(self.2.at(value, false))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Variant<'de>(&'de Arc<str>, Option<Reader<'de>>);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let name = BorrowedStrDeserializer::<Error>::new(self.0);
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.1.map(|content| content.value) {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Error::custom("a variant that holds nothing, with content")),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.content()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.content()?.deserialize_map(visitor)
    }
}

impl<'de> Variant<'de> {
    fn content(self) -> Result<Reader<'de>, Error> {
        let missing = || Error::custom(format_args!("variant `{}` without content", self.0));
        self.1.ok_or_else(missing)
    }
}
