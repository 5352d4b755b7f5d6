//! What is remembered for each key, of which there are never too many.

use milieu_transfer::{Span, Time};

use super::key::Key;
use super::keyed::Keyed;
use super::state::State;

/// A state for each key. A key that nothing came for in a long time is
/// forgotten, and a new one is refused where there are as many as may be.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    most: usize,
    forget: Span,
    known: Keyed<Group<T>>,
    /// Before that no group can be forgotten, so looking for one is in vain.
    full_until: Time,
}

#[derive(Debug)]
struct Group<T> {
    touched: Time,
    of: T,
}

impl<T: Default> Groups<T> {
    pub fn new(most: usize, forget: Span) -> Groups<T> {
        let (known, full_until) = (Keyed::default(), Time::MIN);
        Groups {
            most,
            forget,
            known,
            full_until,
        }
    }

    /// The state of a key, a new one if need be; nothing if there are too many.
    pub fn get(&mut self, key: Key, now: Time) -> Option<&mut T> {
        // In two steps, as a borrow that is returned lasts.
        if self.known.get(&key).is_none() {
            if self.known.len() >= self.most {
                self.sweep(now);
            }
            if self.known.len() >= self.most {
                return None;
            }
        }
        let forget = self.forget;
        let group = self.known.get_or_insert(key, || Group {
            touched: now,
            of: T::default(),
        });
        if group.touched + forget < now {
            group.of = T::default();
        }
        group.touched = now;
        Some(&mut group.of)
    }

    /// The state of a key that is known.
    pub fn known(&self, key: &Key, now: Time) -> Option<&T> {
        let group = self.known.get(key)?;
        (group.touched + self.forget >= now).then_some(&group.of)
    }

    /// Forgets the groups that nothing came for.
    fn sweep(&mut self, now: Time) {
        if now < self.full_until {
            return;
        }
        let forget = self.forget;
        self.known.retain(|group| group.touched + forget >= now);
        let oldest = self.known.iter().map(|(_, group)| group.touched).min();
        self.full_until = oldest.map_or(now, |oldest| oldest + forget);
    }

    /// Whether from now on nothing can tell them apart. Groups that nothing came
    /// for in a long time are as good as forgotten.
    pub fn is_like(&self, other: &Groups<T>, now: Time) -> bool
    where
        T: State,
    {
        let lives = |group: &Group<T>| group.touched + self.forget >= now;
        let living = |groups: &Groups<T>| groups.known.iter().filter(|(_, of)| lives(of)).count();
        let same = |(key, ours): (&Key, &Group<T>)| {
            let theirs = other.known.get(key);
            !lives(ours) || theirs.is_some_and(|theirs| ours.is_same(theirs))
        };
        self.known.iter().all(same) && living(self) == living(other)
    }

    pub fn save(&self) -> milieu_transfer::Value
    where
        T: State,
    {
        self.known.save()
    }

    pub fn restore(&mut self, value: &milieu_transfer::Value) -> Result<(), String>
    where
        T: State,
    {
        self.known = State::load(value)?;
        self.full_until = Time::MIN;
        Ok(())
    }
}

impl<T: State> State for Group<T> {
    fn save(&self) -> milieu_transfer::Value {
        vec![self.touched.save(), self.of.save()].into()
    }

    fn load(value: &milieu_transfer::Value) -> Result<Self, String> {
        let (touched, of) = State::load(value)?;
        Ok(Group { touched, of })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.touched.is_same(&other.touched) && self.of.is_same(&other.of)
    }
}
