//! What operators remember, as values.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use milieu_keys::Name;
use milieu_transfer::{Event, Header, Origin, Quality, Rights, Span, Stream, Time, Value};

use super::key::Key;

/// What can be written down as a value and be read again, without loss.
pub(crate) trait State: Sized {
    fn save(&self) -> Value;

    /// Says what is wrong if the value is nothing that was saved.
    fn load(value: &Value) -> Result<Self, String>;

    /// Whether nothing can tell them apart. Numbers are then the same in all
    /// their bits: `0.0` and `-0.0` are not written alike.
    fn is_same(&self, other: &Self) -> bool;
}

/// Whether the same things follow on each other.
pub(crate) fn are_same<'a, T: State + 'a>(
    ours: impl ExactSizeIterator<Item = &'a T>,
    theirs: impl ExactSizeIterator<Item = &'a T>,
) -> bool {
    ours.len() == theirs.len() && ours.zip(theirs).all(|(our, their)| our.is_same(their))
}

/// The parts of a list of so many values.
pub(crate) fn parts(value: &Value, count: usize) -> Result<&[Value], String> {
    let parts = list(value)?;
    if parts.len() == count {
        Ok(parts)
    } else {
        Err(format!("{count} values were saved, not {}", parts.len()))
    }
}

fn list(value: &Value) -> Result<&[Value], String> {
    match value {
        Value::List(items) => Ok(items),
        _ => Err("a list was saved".to_owned()),
    }
}

/// Saves a struct as the list of these fields.
macro_rules! state {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::operators::state::State for $type {
            fn save(&self) -> milieu_transfer::Value {
                let fields = vec![$($crate::operators::state::State::save(&self.$field)),*];
                fields.into()
            }

            fn load(value: &milieu_transfer::Value) -> Result<Self, String> {
                let count = [$(stringify!($field)),*].len();
                let mut fields = $crate::operators::state::parts(value, count)?.iter();
                $(
                    let $field = fields.next().expect("they were counted");
                    let $field = $crate::operators::state::State::load($field)
                        .map_err(|wrong| format!("{}: {wrong}", stringify!($field)))?;
                )*
                Ok($type { $($field),* })
            }

            fn is_same(&self, other: &Self) -> bool {
                $($crate::operators::state::State::is_same(&self.$field, &other.$field))&&*
            }
        }
    };
}
pub(crate) use state;

macro_rules! scalar {
    ($($type:ty as $variant:ident, $called:literal, $same:expr;)*) => {$(
        impl State for $type {
            fn save(&self) -> Value {
                Value::$variant(self.clone())
            }

            fn load(value: &Value) -> Result<Self, String> {
                match value {
                    Value::$variant(value) => Ok(value.clone()),
                    _ => Err(concat!($called, " was saved").to_owned()),
                }
            }

            fn is_same(&self, other: &Self) -> bool {
                let same: fn(&Self, &Self) -> bool = $same;
                same(self, other)
            }
        }
    )*};
}

scalar! {
    bool as Bool, "yes or no", bool::eq;
    u64 as Uint, "a count", u64::eq;
    i64 as Int, "a whole number", i64::eq;
    f64 as Double, "a number", |a, b| a.to_bits() == b.to_bits();
    Arc<str> as Text, "a text", |a, b| a == b;
    Time as Time, "a time", Time::eq;
    Span as Span, "a span", Span::eq;
}

impl State for i32 {
    fn save(&self) -> Value {
        Value::Int((*self).into())
    }

    fn load(value: &Value) -> Result<Self, String> {
        i32::try_from(i64::load(value)?).map_err(|_| "a small number was saved".to_owned())
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

impl State for Value {
    fn save(&self) -> Value {
        self.clone()
    }

    fn load(value: &Value) -> Result<Self, String> {
        Ok(value.clone())
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Double(ours), Value::Double(theirs)) => ours.is_same(theirs),
            (Value::List(ours), Value::List(theirs)) => {
                Arc::ptr_eq(ours, theirs) || are_same(ours.iter(), theirs.iter())
            }
            (Value::Map(ours), Value::Map(theirs)) => {
                let entries = || ours.iter().zip(theirs.iter());
                let same = || entries().all(|(a, b)| a.0.is_same(b.0) && a.1.is_same(b.1));
                Arc::ptr_eq(ours, theirs) || ours.len() == theirs.len() && same()
            }
            (Value::Private(ours), Value::Private(theirs)) => ours.is_same(theirs),
            (Value::Shared(our_id, ours), Value::Shared(their_id, theirs)) => {
                our_id == their_id && ours.is_same(theirs)
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

impl State for Key {
    fn save(&self) -> Value {
        self.value().clone()
    }

    fn load(value: &Value) -> Result<Self, String> {
        Ok(Key::new(value.clone()))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.value().is_same(other.value())
    }
}

impl<T: State> State for Box<T> {
    fn save(&self) -> Value {
        (**self).save()
    }

    fn load(value: &Value) -> Result<Self, String> {
        T::load(value).map(Box::new)
    }

    fn is_same(&self, other: &Self) -> bool {
        (**self).is_same(other)
    }
}

/// A list of one, or of none.
impl<T: State> State for Option<T> {
    fn save(&self) -> Value {
        self.iter().map(T::save).collect::<Vec<_>>().into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        match list(value)? {
            [] => Ok(None),
            [one] => T::load(one).map(Some),
            _ => Err("one or none was saved".to_owned()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        are_same(self.iter(), other.iter())
    }
}

impl<A: State, B: State> State for (A, B) {
    fn save(&self) -> Value {
        vec![self.0.save(), self.1.save()].into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        let parts = parts(value, 2)?;
        Ok((A::load(&parts[0])?, B::load(&parts[1])?))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0) && self.1.is_same(&other.1)
    }
}

macro_rules! sequence {
    ($($type:ident),*) => {$(
        impl<T: State> State for $type<T> {
            fn save(&self) -> Value {
                self.iter().map(T::save).collect::<Vec<_>>().into()
            }

            fn load(value: &Value) -> Result<Self, String> {
                list(value)?.iter().map(T::load).collect()
            }

            fn is_same(&self, other: &Self) -> bool {
                are_same(self.iter(), other.iter())
            }
        }
    )*};
}

sequence!(Vec, VecDeque);

impl<K: State + Ord, V: State> State for BTreeMap<K, V> {
    fn save(&self) -> Value {
        let pairs = self.iter();
        let pairs = pairs.map(|(key, value)| vec![key.save(), value.save()].into());
        pairs.collect::<Vec<Value>>().into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        list(value)?.iter().map(<(K, V)>::load).collect()
    }

    fn is_same(&self, other: &Self) -> bool {
        are_same(self.keys(), other.keys()) && are_same(self.values(), other.values())
    }
}

/// In the order of the keys, so that equal states are saved equally.
impl<K: State + Ord + Hash, V: State> State for HashMap<K, V> {
    fn save(&self) -> Value {
        let mut pairs: Vec<_> = self.iter().collect();
        pairs.sort_by_key(|(key, _)| *key);
        let pairs = pairs.into_iter();
        let pairs = pairs.map(|(key, value)| vec![key.save(), value.save()].into());
        pairs.collect::<Vec<Value>>().into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        list(value)?.iter().map(<(K, V)>::load).collect()
    }

    fn is_same(&self, other: &Self) -> bool {
        let same = |(key, ours): (&K, &V)| {
            let theirs = other.get_key_value(key);
            theirs.is_some_and(|(their_key, theirs)| key.is_same(their_key) && ours.is_same(theirs))
        };
        self.len() == other.len() && self.iter().all(same)
    }
}

state!(Quality {
    age,
    accuracy,
    failure
});

/// With its body as a value: a typed one is not typed any more when it is read.
impl State for Event {
    fn save(&self) -> Value {
        let header = self.header();
        let stream = &header.stream;
        let fields = [
            stream.name.as_str().into(),
            Value::Text(Arc::clone(&stream.origin.0)),
            Value::Uint(stream.incarnation),
            Value::Time(header.time),
            Value::Uint(header.sequence),
            header.quality.save(),
            // What no serializer can say is nothing.
            self.value(Rights::READ).unwrap_or_default(),
        ];
        Value::List(Arc::new(fields))
    }

    fn load(value: &Value) -> Result<Self, String> {
        let parts = parts(value, 7)?;
        let name = <Arc<str>>::load(&parts[0])?;
        let stream = Stream {
            name: Name::parse(&name).map_err(|wrong| format!("`{name}`: {wrong}"))?,
            origin: Origin(State::load(&parts[1])?),
            incarnation: State::load(&parts[2])?,
        };
        let header = Header {
            stream: Arc::new(stream),
            time: State::load(&parts[3])?,
            sequence: State::load(&parts[4])?,
            quality: State::load(&parts[5])?,
        };
        Ok(Event::new(header, parts[6].clone()))
    }

    /// A typed one is the same as itself alone: what is in it is not asked for.
    fn is_same(&self, other: &Self) -> bool {
        let is_value = |event: &Event| event.get::<Value>().is_some();
        self.is(other) || is_value(self) && is_value(other) && self.save().is_same(&other.save())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milieu_transfer::Map;

    #[test]
    fn what_is_written_differently_is_not_the_same() {
        let map = |entries: [(&str, f64); 2]| Value::from(Map::from_iter(entries));
        let all: Vec<Value> = vec![
            Value::Null,
            Value::Int(0),
            Value::Uint(0),
            Value::Double(0.0),
            Value::Double(-0.0),
            Value::Double(f64::NAN),
            vec![Value::Double(0.0)].into(),
            vec![Value::Double(-0.0)].into(),
            map([("a", 0.0), ("b", 1.0)]),
            map([("a", -0.0), ("b", 1.0)]),
            map([("b", 1.0), ("a", 0.0)]),
            Value::Private(Arc::new(Value::Double(0.0))),
            Value::Private(Arc::new(Value::Double(-0.0))),
            Value::Shared(1, Arc::new(Value::Double(0.0))),
            Value::Shared(2, Arc::new(Value::Double(0.0))),
        ];
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one.is_same(other), at == other_at, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn keys_of_maps_are_the_same_too() {
        let of = |pairs: &[(i64, f64)]| -> HashMap<Key, f64> {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| (Key::new((*key).into()), *value))
                .collect()
        };
        assert!(of(&[(1, 0.5), (2, 0.5)]).is_same(&of(&[(2, 0.5), (1, 0.5)])));
        assert!(!of(&[(1, 0.5), (2, 0.5)]).is_same(&of(&[(1, 0.5), (3, 0.5)])));
        assert!(!of(&[(1, 0.5)]).is_same(&of(&[(1, 0.5), (2, 0.5)])));
        assert!(!of(&[(1, 0.0)]).is_same(&of(&[(1, -0.0)])));
    }
}
