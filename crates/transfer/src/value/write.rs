//! From types to values, and values for serializers.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Map, VALUE, Value};
use crate::emit::{Emit, Said, Sink};
use crate::error::Error;
use crate::private::{PRIVATE, Rights, Sealed};
use crate::time::{Span, Time};

impl Value {
    /// The value of what any type holds.
    ///
    /// Structs and maps become maps, enums the name of their variant or a map
    /// from it to what it holds. What is private is left out unless the rights
    /// open it; then it stays marked.
    ///
    /// ```
    /// # use milieu_transfer::{Rights, Value};
    /// #[derive(serde::Serialize)]
    /// struct Reading { celsius: f64 }
    ///
    /// let value = Value::of(&Reading { celsius: 21.5 }, Rights::NONE)?;
    /// assert_eq!(value.field("celsius"), Some(&Value::Double(21.5)));
    /// # Ok::<(), milieu_transfer::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooDeep`], [`Error::Unrepresentable`] for numbers beyond 64 bits,
    /// and what the type itself finds wrong.
    pub fn of<T: ?Sized + Serialize>(of: &T, rights: Rights) -> Result<Value, Error> {
        let mut builder = Builder::default();
        of.serialize(Emit::new(&mut builder, rights))?;
        Ok(builder.take())
    }

    /// The value of a field, if this is a map that has it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.field(name),
            Value::Private(value) | Value::Shared(_, value) => value.field(name),
            _ => None,
        }
    }
}

impl Serialize for Value {
    /// Serializers other than ours see shared values and links as variants of an
    /// enum, and nothing of what is private.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(VALUE, &Bare(self))
    }
}

/// A value inside another one.
struct Bare<'a>(&'a Value);

impl Serialize for Bare<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Uint(value) => serializer.serialize_u64(*value),
            Value::Double(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::Bytes(value) => serializer.serialize_bytes(value),
            Value::Time(value) => value.serialize(serializer),
            Value::Span(value) => value.serialize(serializer),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    list.serialize_element(&Bare(item))?;
                }
                list.end()
            }
            Value::Map(map) => {
                let mut entries = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map.iter() {
                    entries.serialize_entry(&Bare(key), &Bare(value))?;
                }
                entries.end()
            }
            Value::Private(value) => {
                serializer.serialize_newtype_struct(PRIVATE, &Sealed(Bare(value)))
            }
            Value::Shared(number, value) => {
                serializer.serialize_newtype_variant(VALUE, *number, "shared", &Bare(value))
            }
            Value::Link(number) => serializer.serialize_unit_variant(VALUE, *number, "link"),
        }
    }
}

/// Builds the value of what is said.
#[derive(Default)]
pub(crate) struct Builder {
    open: Vec<Open>,
    /// What was said last and belongs to nothing yet.
    last: Value,
}

enum Open {
    List(Vec<Value>),
    Map(Vec<(Value, Value)>, Value),
    Private,
    Shared(u32),
}

/// How many items to make room for before they have come.
const ROOM: usize = 64;

impl Builder {
    pub(crate) fn take(&mut self) -> Value {
        std::mem::take(&mut self.last)
    }

    fn say(&mut self, value: Value) -> Said {
        self.last = value;
        Ok(())
    }

    fn begin(&mut self, open: Open) -> Said {
        self.open.push(open);
        Ok(())
    }
}

impl Sink for Builder {
    fn null(&mut self) -> Said {
        self.say(Value::Null)
    }

    fn bool(&mut self, value: bool) -> Said {
        self.say(Value::Bool(value))
    }

    fn int(&mut self, value: i64) -> Said {
        self.say(Value::Int(value))
    }

    fn uint(&mut self, value: u64) -> Said {
        self.say(Value::Uint(value))
    }

    fn double(&mut self, value: f64) -> Said {
        self.say(Value::Double(value))
    }

    fn text(&mut self, value: &str) -> Said {
        self.say(Value::Text(value.into()))
    }

    fn bytes(&mut self, value: &[u8]) -> Said {
        self.say(Value::Bytes(value.into()))
    }

    fn time(&mut self, value: Time) -> Said {
        self.say(Value::Time(value))
    }

    fn span(&mut self, value: Span) -> Said {
        self.say(Value::Span(value))
    }

    fn list(&mut self, length: Option<usize>) -> Said {
        let room = length.unwrap_or(0).min(ROOM);
        self.begin(Open::List(Vec::with_capacity(room)))
    }

    fn end_list(&mut self) -> Said {
        if let Some(Open::List(items)) = self.open.pop() {
            self.last = Value::List(items.into());
        }
        Ok(())
    }

    fn map(&mut self, length: Option<usize>) -> Said {
        let room = length.unwrap_or(0).min(ROOM);
        self.begin(Open::Map(Vec::with_capacity(room), Value::Null))
    }

    fn key(&mut self) -> Said {
        Ok(())
    }

    fn value(&mut self) -> Said {
        let key = self.take();
        if let Some(Open::Map(_, of_next)) = self.open.last_mut() {
            *of_next = key;
        }
        Ok(())
    }

    fn item(&mut self) -> Said {
        Ok(())
    }

    fn entry(&mut self) -> Said {
        let last = self.take();
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(last),
            Some(Open::Map(entries, key)) => entries.push((std::mem::take(key), last)),
            _ => self.last = last,
        }
        Ok(())
    }

    fn end_map(&mut self) -> Said {
        if let Some(Open::Map(entries, _)) = self.open.pop() {
            let map = Map::new(entries)
                .map_err(|_| <Error as serde::ser::Error>::custom("a key comes twice in a map"))?;
            self.last = Value::Map(Arc::new(map));
        }
        Ok(())
    }

    fn private(&mut self) -> Said {
        self.begin(Open::Private)
    }

    fn end_private(&mut self) -> Said {
        self.open.pop();
        let value = self.take();
        self.say(Value::Private(Arc::new(value)))
    }

    fn shared(&mut self, number: u32) -> Said {
        self.begin(Open::Shared(number))
    }

    fn end_shared(&mut self) -> Said {
        if let Some(Open::Shared(number)) = self.open.pop() {
            let value = self.take();
            self.last = Value::Shared(number, Arc::new(value));
        }
        Ok(())
    }

    fn link(&mut self, number: u32) -> Said {
        self.say(Value::Link(number))
    }

    fn checkpoint(&self) -> usize {
        0
    }

    fn rollback(&mut self, _: usize) {
        self.take();
    }
}
