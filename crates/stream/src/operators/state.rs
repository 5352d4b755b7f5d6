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
        }
    };
}
pub(crate) use state;

macro_rules! scalar {
    ($($type:ty as $variant:ident, $called:literal;)*) => {$(
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
        }
    )*};
}

scalar! {
    bool as Bool, "yes or no";
    u64 as Uint, "a count";
    i64 as Int, "a whole number";
    f64 as Double, "a number";
    Arc<str> as Text, "a text";
    Time as Time, "a time";
    Span as Span, "a span";
}

impl State for i32 {
    fn save(&self) -> Value {
        Value::Int((*self).into())
    }

    fn load(value: &Value) -> Result<Self, String> {
        i32::try_from(i64::load(value)?).map_err(|_| "a small number was saved".to_owned())
    }
}

impl State for Value {
    fn save(&self) -> Value {
        self.clone()
    }

    fn load(value: &Value) -> Result<Self, String> {
        Ok(value.clone())
    }
}

impl State for Key {
    fn save(&self) -> Value {
        self.value().clone()
    }

    fn load(value: &Value) -> Result<Self, String> {
        Ok(Key::new(value.clone()))
    }
}

impl<T: State> State for Box<T> {
    fn save(&self) -> Value {
        (**self).save()
    }

    fn load(value: &Value) -> Result<Self, String> {
        T::load(value).map(Box::new)
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
}

impl<A: State, B: State> State for (A, B) {
    fn save(&self) -> Value {
        vec![self.0.save(), self.1.save()].into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        let parts = parts(value, 2)?;
        Ok((A::load(&parts[0])?, B::load(&parts[1])?))
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
}
