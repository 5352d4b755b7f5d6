//! From bytes to values, by a schema alone: for those who do not have the type.

use super::read::Reader;
use super::unzigzag;
use crate::error::Error;
use crate::schema::{Field, Shape, Variant};
use crate::time::{Span, Time};
use crate::value::{Map, Value};

/// The value of these bytes, with names from the schema.
///
/// Schemas see to it that there are not many more values than bytes.
pub(crate) fn read(shape: &Shape, reader: &mut Reader<'_>) -> Result<Value, Error> {
    BySchema { reader }.value(shape)
}

struct BySchema<'a, 'de> {
    reader: &'a mut Reader<'de>,
}

impl BySchema<'_, '_> {
    fn value(&mut self, shape: &Shape) -> Result<Value, Error> {
        let bytes = &mut self.reader.bytes;
        Ok(match shape {
            Shape::Unit => Value::Null,
            Shape::Bool => Value::Bool(self.reader.is_there()?),
            Shape::I8 => Value::Int(i8::from_le_bytes(bytes.array()?).into()),
            Shape::I16 => Value::Int(self.within::<i16>()?),
            Shape::I32 => Value::Int(self.within::<i32>()?),
            Shape::I64 => Value::Int(unzigzag(bytes.varint()?)),
            Shape::I128 => match i128::from_le_bytes(bytes.array()?).try_into() {
                Ok(number) => Value::Int(number),
                Err(_) => return bytes.malformed(BEYOND),
            },
            Shape::U8 => Value::Uint(bytes.byte()?.into()),
            Shape::U16 => Value::Uint(bytes.number::<u16>()?.into()),
            Shape::U32 => Value::Uint(bytes.number::<u32>()?.into()),
            Shape::U64 => Value::Uint(bytes.varint()?),
            Shape::U128 => match u128::from_le_bytes(bytes.array()?).try_into() {
                Ok(number) => Value::Uint(number),
                Err(_) => return bytes.malformed(BEYOND),
            },
            Shape::F32 => Value::Double(f32::from_le_bytes(bytes.array()?).into()),
            Shape::F64 => Value::Double(f64::from_le_bytes(bytes.array()?)),
            Shape::Char => {
                let letter = self.reader.char()?;
                Value::from(&*letter.encode_utf8(&mut [0; 4]))
            }
            Shape::Text => Value::from(bytes.text()?),
            Shape::Bytes => {
                let length = bytes.number()?;
                Value::Bytes(bytes.take(length)?.into())
            }
            Shape::Time => Value::Time(Time::from_nanoseconds(i64::from_le_bytes(bytes.array()?))),
            Shape::Span => Value::Span(Span::from_nanoseconds(unzigzag(bytes.varint()?))),
            Shape::Any => self.reader.any()?,
            Shape::Option(inner) => match self.reader.is_there()? {
                true => self.value(inner)?,
                false => Value::Null,
            },
            Shape::Private(inner) => match self.reader.is_there()? {
                true if self.reader.rights.may_set().is_none() => return Err(Error::Private),
                true => Value::Private(self.value(inner)?.into()),
                false => Value::Null,
            },
            Shape::List(item) => {
                let count = bytes.count(1)?;
                let items = (0..count).map(|_| self.value(item));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Shape::Tuple(items) => {
                let items = items.iter().map(|item| self.value(item));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Shape::Map(entry) => self.map(&entry.0, &entry.1)?,
            Shape::Struct(fields) => self.fields(fields)?,
            Shape::Enum(variants) => self.variant(variants)?,
        })
    }

    fn within<T: TryFrom<i64> + Into<i64>>(&mut self) -> Result<i64, Error> {
        let bytes = &mut self.reader.bytes;
        match T::try_from(unzigzag(bytes.varint()?)) {
            Ok(number) => Ok(number.into()),
            Err(_) => bytes.malformed("a number is too large"),
        }
    }

    fn map(&mut self, key: &Shape, value: &Shape) -> Result<Value, Error> {
        let count = self.reader.bytes.count(1)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push((self.value(key)?, self.value(value)?));
        }
        match Map::new(entries) {
            Ok(map) => Ok(Value::from(map)),
            Err(_) => self.reader.bytes.malformed("a key comes twice in a map"),
        }
    }

    fn fields(&mut self, fields: &[Field]) -> Result<Value, Error> {
        let mut entries = Vec::new();
        for field in fields {
            let value = self.value(&field.shape)?;
            entries.push((Value::Text(field.name.clone()), value));
        }
        match Map::new(entries) {
            Ok(map) => Ok(Value::from(map)),
            Err(_) => self
                .reader
                .bytes
                .malformed("a field comes twice in a struct"),
        }
    }

    fn variant(&mut self, variants: &[Variant]) -> Result<Value, Error> {
        let index: usize = self.reader.bytes.number()?;
        let Some(variant) = variants.get(index) else {
            return self.reader.bytes.malformed("there is no such variant");
        };
        let name = Value::Text(variant.name.clone());
        Ok(match &variant.content {
            None => name,
            Some(content) => {
                let content = self.value(content)?;
                Value::from(Map::from_distinct(vec![(name, content)]))
            }
        })
    }
}

const BEYOND: &str = "a whole number beyond 64 bits";

/// Passes over one value.
pub(crate) fn skip(shape: &Shape, reader: &mut Reader<'_>) -> Result<(), Error> {
    let bytes = &mut reader.bytes;
    match shape {
        Shape::Unit => {}
        Shape::Bool | Shape::I8 | Shape::U8 => {
            bytes.byte()?;
        }
        Shape::I16
        | Shape::I32
        | Shape::I64
        | Shape::U16
        | Shape::U32
        | Shape::U64
        | Shape::Char
        | Shape::Span => {
            bytes.varint()?;
        }
        Shape::I128 | Shape::U128 => {
            bytes.take(16)?;
        }
        Shape::F32 => {
            bytes.take(4)?;
        }
        Shape::F64 | Shape::Time => {
            bytes.take(8)?;
        }
        Shape::Text | Shape::Bytes => {
            let length = bytes.number()?;
            bytes.take(length)?;
        }
        Shape::Any => reader.skip_any()?,
        Shape::Option(inner) | Shape::Private(inner) => {
            if reader.is_there()? {
                skip(inner, reader)?;
            }
        }
        Shape::List(item) => {
            let count = bytes.count(1)?;
            (0..count).try_for_each(|_| skip(item, reader))?;
        }
        Shape::Tuple(items) => items.iter().try_for_each(|item| skip(item, reader))?,
        Shape::Map(entry) => {
            let count = bytes.count(1)?;
            for _ in 0..count {
                skip(&entry.0, reader)?;
                skip(&entry.1, reader)?;
            }
        }
        Shape::Struct(fields) => fields
            .iter()
            .try_for_each(|field| skip(&field.shape, reader))?,
        Shape::Enum(variants) => {
            let index: usize = bytes.number()?;
            match variants.get(index) {
                None => return bytes.malformed("there is no such variant"),
                Some(variant) => {
                    if let Some(content) = &variant.content {
                        skip(content, reader)?;
                    }
                }
            }
        }
    }
    Ok(())
}
