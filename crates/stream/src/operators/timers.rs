//! Which groups are to be looked after when.

use std::collections::BTreeSet;

use milieu_transfer::Time;

use super::key::Key;

/// Times and groups. A group that wants to be looked after later than it said
/// need not say so: it is looked after too early once, and says it then.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Time, Key)>);

impl Timers {
    pub fn set(&mut self, time: Time, key: Key) {
        self.0.insert((time, key));
    }

    pub fn due(&self) -> Option<Time> {
        self.0.first().map(|(time, _)| *time)
    }

    /// The next group whose time has come.
    pub fn take(&mut self, now: Time) -> Option<Key> {
        if self.due()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, key)| key)
    }

    pub fn is_same(&self, other: &Timers) -> bool {
        self.0 == other.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
