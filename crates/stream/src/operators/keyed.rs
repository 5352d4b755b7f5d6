//! A map by keys, in which what is not grouped is found without hashing.

use std::collections::HashMap;

use milieu_transfer::Value;

use super::key::Key;
use super::state::State;

/// Something for each key.
#[derive(Debug)]
pub(crate) struct Keyed<T> {
    /// What is kept for the key of what is not grouped.
    ungrouped: Option<T>,
    grouped: HashMap<Key, T>,
}

impl<T> Default for Keyed<T> {
    fn default() -> Keyed<T> {
        Keyed {
            ungrouped: None,
            grouped: HashMap::new(),
        }
    }
}

impl<T> Keyed<T> {
    pub fn len(&self) -> usize {
        usize::from(self.ungrouped.is_some()) + self.grouped.len()
    }

    pub fn get(&self, key: &Key) -> Option<&T> {
        match key.value() {
            Value::Null => self.ungrouped.as_ref(),
            _ => self.grouped.get(key),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, key: &Key) -> Option<&mut T> {
        match key.value() {
            Value::Null => self.ungrouped.as_mut(),
            _ => self.grouped.get_mut(key),
        }
    }

    /// What is kept for a key, a new one if need be.
    pub fn get_or_insert(&mut self, key: Key, new: impl FnOnce() -> T) -> &mut T {
        match key.value() {
            Value::Null => self.ungrouped.get_or_insert_with(new),
            _ => self.grouped.entry(key).or_insert_with(new),
        }
    }

    /// Keeps those for which something holds.
    pub fn retain(&mut self, mut holds: impl FnMut(&T) -> bool) {
        if !self.ungrouped.as_ref().is_some_and(&mut holds) {
            self.ungrouped = None;
        }
        self.grouped.retain(|_, of| holds(of));
    }

    /// All, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        const UNGROUPED: &Key = &Key::NONE;
        let ungrouped = self.ungrouped.iter().map(|of| (UNGROUPED, of));
        ungrouped.chain(&self.grouped)
    }
}

impl<T: State> State for Keyed<T> {
    fn save(&self) -> Value {
        vec![self.ungrouped.save(), self.grouped.save()].into()
    }

    fn load(value: &Value) -> Result<Self, String> {
        let (ungrouped, grouped) = State::load(value)?;
        Ok(Keyed { ungrouped, grouped })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.ungrouped.is_same(&other.ungrouped) && self.grouped.is_same(&other.grouped)
    }
}
