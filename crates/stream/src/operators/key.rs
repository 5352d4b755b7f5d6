//! Keys: values by which events belong together.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use milieu_transfer::{Event, Value};

/// A value that can be looked up. Numbers are equal if they are so as numbers,
/// whatever their type; what is not a number equals itself.
#[derive(Clone, Debug)]
pub(crate) struct Key(Value);

impl Key {
    /// The only key of what is not grouped.
    pub const NONE: Key = Key(Value::Null);

    pub fn new(value: Value) -> Key {
        Key(normal(value))
    }

    /// The stream of an event: its name and who publishes.
    pub fn of_stream(event: &Event) -> Key {
        let stream = &event.header().stream;
        let name = Value::from(stream.name.as_str());
        let origin = Value::Text(Arc::clone(&stream.origin.0));
        Key(Value::List(Arc::new([name, origin])))
    }

    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Numbers that are equal become the same value.
fn normal(value: Value) -> Value {
    match value {
        Value::Uint(number) => match i64::try_from(number) {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Uint(number),
        },
        Value::Double(number) => double(number),
        Value::List(items) => Value::List(items.iter().cloned().map(normal).collect()),
        Value::Map(map) => {
            let entries = map.iter();
            let mut entries: Vec<_> = entries
                .map(|(key, value)| (Key::new(key.clone()), normal(value.clone())))
                .collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            let entries = entries.into_iter().map(|(key, value)| (key.0, value));
            Value::Map(Arc::new(entries.collect()))
        }
        other => other,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "what changes by it stays a double"
)]
fn double(number: f64) -> Value {
    if number.is_nan() {
        return Value::Double(f64::NAN);
    }
    let whole = number as i64;
    // The bound is 2^63, which the greatest whole number rounds to.
    if whole as f64 == number && number < 9_223_372_036_854_775_808.0 {
        Value::Int(whole)
    } else {
        Value::Double(number)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (&self.0, &other.0) {
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Null, Value::Null) => true,
            (a, b) => order(a, b).is_eq(),
        }
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        order(&self.0, &other.0)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

/// Kinds by rank, then by what is in them; equal ones are the same key.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Span(a), Value::Span(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => {
            let pairs = a.iter().zip(b.iter());
            let unequal = pairs.map(|(a, b)| order(a, b)).find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let parts = |map: &milieu_transfer::Map| -> Vec<Value> {
                let entries = map.iter();
                entries
                    .flat_map(|(key, value)| [key.clone(), value.clone()])
                    .collect()
            };
            order(&parts(a).into(), &parts(b).into())
        }
        (a, b) if rank(a) == rank(b) => format!("{a:?}").cmp(&format!("{b:?}")),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn hash<H: Hasher>(value: &Value, state: &mut H) {
    rank(value).hash(state);
    match value {
        Value::Bool(value) => value.hash(state),
        Value::Int(value) => value.hash(state),
        Value::Uint(value) => value.hash(state),
        Value::Double(value) => value.to_bits().hash(state),
        Value::Text(value) => value.hash(state),
        Value::Bytes(value) => value.hash(state),
        Value::Time(value) => value.hash(state),
        Value::Span(value) => value.hash(state),
        Value::List(items) => items.iter().for_each(|item| hash(item, state)),
        Value::Map(map) => map.iter().for_each(|(key, value)| {
            hash(key, state);
            hash(value, state);
        }),
        _ => {}
    }
}

fn rank(value: &Value) -> u8 {
    match value {
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
        _ => 11,
    }
}

#[cfg(test)]
mod tests {
    use super::Key;
    use milieu_transfer::{Map, Value};
    use std::hash::{BuildHasher, RandomState};

    #[test]
    fn numbers_are_equal_as_numbers() {
        let keys = [Value::Int(3), Value::Uint(3), Value::Double(3.0)].map(Key::new);
        let hasher = RandomState::new();
        for key in &keys {
            assert_eq!(*key, keys[0]);
            assert_eq!(hasher.hash_one(key), hasher.hash_one(&keys[0]));
        }
        assert_eq!(Key::new(Value::Double(-0.0)), Key::new(Value::Int(0)));
        assert_eq!(
            Key::new(Value::Double(f64::NAN)),
            Key::new(Value::Double(-f64::NAN))
        );
        assert_ne!(Key::new(Value::Double(3.5)), keys[0]);
        let great = Key::new(Value::Double(9_223_372_036_854_775_808.0));
        assert_ne!(great, Key::new(Value::Int(i64::MAX)));
    }

    #[test]
    fn maps_are_equal_whatever_their_order() {
        let map = |entries: [(&str, i64); 2]| Key::new(Value::from(Map::from_iter(entries)));
        assert_eq!(map([("a", 1), ("b", 2)]), map([("b", 2), ("a", 1)]));
        assert_ne!(map([("a", 1), ("b", 2)]), map([("a", 2), ("b", 1)]));
    }
}
