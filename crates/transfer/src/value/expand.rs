//! Shared values written out where they are referred to, for modes without
//! identity.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Map, Value};
use crate::error::Error;

/// How many values there may be once all links are written out.
const VALUES: usize = 1 << 20;

impl Value {
    /// The same value without shared values and links: each link is what it
    /// refers to.
    ///
    /// # Errors
    /// [`Error::Cycle`] if a value holds itself, [`Error::Dangling`] if a link
    /// refers to nothing, [`Error::TooLarge`] if more than 1,048,576 values
    /// would come of it.
    pub fn expanded(&self) -> Result<Value, Error> {
        let mut shared = HashMap::new();
        self.collect(&mut shared)?;
        let mut expansion = Expansion {
            shared,
            done: HashMap::new(),
        };
        expansion.expand(self).map(|(value, _)| value)
    }

    pub(super) fn collect<'a>(&'a self, shared: &mut HashMap<u32, &'a Value>) -> Result<(), Error> {
        match self {
            Value::List(items) => items.iter().try_for_each(|item| item.collect(shared)),
            Value::Map(map) => map.iter().try_for_each(|(key, value)| {
                key.collect(shared)?;
                value.collect(shared)
            }),
            Value::Private(value) => value.collect(shared),
            Value::Shared(number, value) => {
                if shared.insert(*number, value).is_some() {
                    let what = format!("two shared values have the number {number}");
                    return Err(Error::Body(what));
                }
                value.collect(shared)
            }
            _ => Ok(()),
        }
    }
}

struct Expansion<'a> {
    shared: HashMap<u32, &'a Value>,
    /// What shared values became, and how many values that is; nothing while
    /// they are being expanded.
    done: HashMap<u32, Option<(Value, usize)>>,
}

impl<'a> Expansion<'a> {
    fn expand(&mut self, value: &'a Value) -> Result<(Value, usize), Error> {
        let (value, size) = match value {
            Value::List(items) => {
                let mut size = 1_usize;
                let items: Result<Arc<[Value]>, Error> = items
                    .iter()
                    .map(|item| {
                        let (item, more) = self.expand(item)?;
                        size = size.saturating_add(more);
                        Ok(item)
                    })
                    .collect();
                (Value::List(items?), size)
            }
            Value::Map(map) => {
                let mut size = 1_usize;
                let mut entries = Vec::with_capacity(map.len());
                for (key, value) in map.iter() {
                    let (key, of_key) = self.expand(key)?;
                    let (value, of_value) = self.expand(value)?;
                    size = size.saturating_add(of_key).saturating_add(of_value);
                    entries.push((key, value));
                }
                (Value::Map(Arc::new(Map::from_distinct(entries))), size)
            }
            Value::Private(value) => {
                let (value, size) = self.expand(value)?;
                (Value::Private(Arc::new(value)), size)
            }
            Value::Shared(number, _) | Value::Link(number) => self.expand_shared(*number)?,
            other => (other.clone(), 1),
        };
        if size > VALUES {
            return Err(Error::TooLarge { limit: VALUES });
        }
        Ok((value, size))
    }

    fn expand_shared(&mut self, number: u32) -> Result<(Value, usize), Error> {
        match self.done.get(&number) {
            Some(Some(done)) => return Ok(done.clone()),
            Some(None) => return Err(Error::Cycle),
            None => {}
        }
        let dangling = Error::Dangling(number.into());
        let value = *self.shared.get(&number).ok_or(dangling)?;
        self.done.insert(number, None);
        let expanded = self.expand(value)?;
        self.done.insert(number, Some(expanded.clone()));
        Ok(expanded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(number: u32, value: Value) -> Value {
        Value::Shared(number, Arc::new(value))
    }

    #[test]
    fn links_become_what_they_refer_to() {
        let list = vec![Value::Link(1), shared(1, Value::Int(7)), Value::Link(1)];
        let expanded = Value::from(list).expanded().unwrap();
        let seven = Value::Int(7);
        assert_eq!(
            expanded,
            Value::from(vec![seven.clone(), seven.clone(), seven])
        );
    }

    #[test]
    fn what_cannot_be_written_out_is_refused() {
        let cycle = shared(0, Value::from(vec![Value::Link(0)]));
        assert_eq!(cycle.expanded(), Err(Error::Cycle));
        assert_eq!(Value::Link(3).expanded(), Err(Error::Dangling(3)));
        // Each level holds the one before twice.
        let mut levels = vec![shared(0, Value::Null)];
        for level in 0..40 {
            let twice = Value::from(vec![Value::Link(level), Value::Link(level)]);
            levels.push(shared(level + 1, twice));
        }
        let limit = VALUES;
        assert_eq!(
            Value::from(levels).expanded(),
            Err(Error::TooLarge { limit })
        );
    }
}
