//! Values of what has no Rust type.

mod expand;
mod read;
mod write;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::private::{MayRead, Rights};
use crate::time::{Span, Time};

pub(crate) use read::hand;
pub(crate) use write::Builder;

/// The name under which our serializers recognize a value.
pub(crate) const VALUE: &str = "milieu::Value";

/// A value of any type: what an expression computes with, and the body of an
/// event that came without a Rust type.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number that is not negative.
    Uint(u64),
    /// A number.
    Double(f64),
    /// A text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Time(Time),
    /// A distance in time.
    Span(Span),
    /// Values in their order.
    List(Arc<[Value]>),
    /// Values by key: structs have texts as keys.
    Map(Arc<Map>),
    /// What a private field holds: only receivers with the right to read it get it.
    Private(Arc<Value>),
    /// A value that others in the same event refer to by this number.
    Shared(u32, Arc<Value>),
    /// The shared value of this number, which may be one that holds this link:
    /// so cycles are written down.
    Link(u32),
}

/// Keys and their values in the order in which they came; no key twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(Value, Value)>);

impl Map {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        let entry = self.0.iter().find(|(known, _)| known == key);
        entry.map(|(_, value)| value)
    }

    /// The value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        let is_it =
            |(key, _): &&(Value, Value)| matches!(key, Value::Text(text) if **text == *name);
        self.0.iter().find(is_it).map(|(_, value)| value)
    }

    /// Entries of which no two may have the same key.
    ///
    /// # Errors
    /// The position of the second entry with a key that another has.
    pub fn new(entries: Vec<(Value, Value)>) -> Result<Map, usize> {
        match twice(&entries) {
            Some(index) => Err(index),
            None => Ok(Map(entries)),
        }
    }

    pub(crate) fn from_distinct(entries: Vec<(Value, Value)>) -> Map {
        Map(entries)
    }

    /// Sets the value of a key, where it stands or at the end.
    pub fn set(&mut self, key: Value, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Keys and values in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Value, &Value)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The position of an entry whose key another one before it has. Sorting keeps
/// it from taking quadratic time over what a stranger sent.
fn twice(entries: &[(Value, Value)]) -> Option<usize> {
    if entries.len() <= 16 {
        let mut indices = 1..entries.len();
        return indices.find(|&at| entries[..at].iter().any(|(key, _)| *key == entries[at].0));
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| entries[a].0.total_order(&entries[b].0));
    let equal = |pair: &&[usize]| entries[pair[0]].0 == entries[pair[1]].0;
    order.windows(2).filter(equal).map(|pair| pair[1]).min()
}

impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map {
        let mut map = Map::default();
        for (key, value) in entries {
            map.set(key.into(), value.into());
        }
        map
    }
}

impl Value {
    /// An order of all values in which equal ones are neighbours.
    fn total_order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
            // Zero and its negative are equal, so they must not be told apart.
            (Value::Double(a), Value::Double(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b)) => a.cmp(b),
            (Value::Span(a), Value::Span(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => sequence_order(a.iter(), b.iter()),
            (Value::Map(a), Value::Map(b)) => sequence_order(
                a.iter().flat_map(|(key, value)| [key, value]),
                b.iter().flat_map(|(key, value)| [key, value]),
            ),
            (Value::Private(a), Value::Private(b)) => a.total_order(b),
            (Value::Shared(a, of_a), Value::Shared(b, of_b)) => {
                a.cmp(b).then_with(|| of_a.total_order(of_b))
            }
            (Value::Link(a), Value::Link(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Whether both are the same, numbers that are none included.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        self.total_order(other) == Ordering::Equal
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Uint(_) => 3,
            Value::Double(_) => 4,
            Value::Text(_) => 5,
            Value::Bytes(_) => 6,
            Value::Time(_) => 7,
            Value::Span(_) => 8,
            Value::List(_) => 9,
            Value::Map(_) => 10,
            Value::Private(_) => 11,
            Value::Shared(..) => 12,
            Value::Link(_) => 13,
        }
    }

    /// Without what is private, unless the rights open it: then it stays marked.
    #[must_use]
    pub fn readable(&self, rights: Rights) -> Value {
        if rights.may_read().is_some() || !self.has_private() {
            return self.clone();
        }
        let public = self.public();
        let mut shared = HashMap::new();
        if public.collect(&mut shared).is_err() {
            return public;
        }
        // What is private is private also where something public refers to it.
        public.without_links(&|number| !shared.contains_key(&number))
    }

    fn public(&self) -> Value {
        self.mapped(&|value| match value {
            Value::Private(_) => Some(Value::Null),
            Value::Map(map) if map.iter().any(|(_, value)| value.is_private()) => {
                let public = map.iter().filter(|(_, value)| !value.is_private());
                let entries = public.map(|(key, value)| (key.public(), value.public()));
                Some(Value::Map(Arc::new(Map(entries.collect()))))
            }
            _ => None,
        })
    }

    fn without_links(&self, without: &impl Fn(u32) -> bool) -> Value {
        self.mapped(&|value| match value {
            Value::Link(number) if without(*number) => Some(Value::Null),
            _ => None,
        })
    }

    /// The value with each part in the place of which another one is given.
    fn mapped(&self, replace: &impl Fn(&Value) -> Option<Value>) -> Value {
        if let Some(other) = replace(self) {
            return other;
        }
        match self {
            Value::List(items) => items.iter().map(|item| item.mapped(replace)).collect(),
            Value::Map(map) => {
                let entries = map.iter();
                let entries =
                    entries.map(|(key, value)| (key.mapped(replace), value.mapped(replace)));
                Value::Map(Arc::new(Map(entries.collect())))
            }
            Value::Private(value) => Value::Private(Arc::new(value.mapped(replace))),
            Value::Shared(number, value) => Value::Shared(*number, Arc::new(value.mapped(replace))),
            other => other.clone(),
        }
    }

    /// The value with what is private in it as if it were not, for whoever may read that.
    #[must_use]
    pub fn opened(&self, _right: MayRead) -> Value {
        self.without_seals()
    }

    fn without_seals(&self) -> Value {
        self.mapped(&|value| match value {
            Value::Private(value) => Some(value.without_seals()),
            _ => None,
        })
    }

    pub(crate) fn is_private(&self) -> bool {
        matches!(self, Value::Private(_))
    }

    /// Whether something in it is private.
    #[must_use]
    pub fn has_private(&self) -> bool {
        self.any(&Value::is_private)
    }

    /// Whether this holds for the value or for one inside it.
    pub(crate) fn any(&self, holds: &impl Fn(&Value) -> bool) -> bool {
        holds(self)
            || match self {
                Value::List(items) => items.iter().any(|item| item.any(holds)),
                Value::Map(map) => map
                    .iter()
                    .any(|(key, value)| key.any(holds) || value.any(holds)),
                Value::Private(value) | Value::Shared(_, value) => value.any(holds),
                _ => false,
            }
    }
}

fn sequence_order<'a>(
    mut a: impl Iterator<Item = &'a Value>,
    mut b: impl Iterator<Item = &'a Value>,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match a.total_order(b) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
        }
    }
}

impl FromIterator<Value> for Value {
    /// A list.
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Value {
        Value::List(items.into_iter().collect())
    }
}

macro_rules! from {
    ($($variant:ident($type:ty),)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

from! {
    Bool(bool), Int(i64), Int(i32), Uint(u64), Uint(u32), Double(f64),
    Text(&str), Text(String), Text(Arc<str>), Bytes(Vec<u8>), Time(Time), Span(Span),
    List(Vec<Value>), Map(Map),
}
