//! Holding the key set still, to write it down.

use std::{marker::PhantomData, sync::Arc};

use milieu_keys::{Namespace, Origin, sort};

use crate::{
    Coordinator,
    coordinator::{SlotState, View},
    elements::keys_of,
    map::{Datum, Map},
    sync,
};

/// A key of a held key set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The canonical name.
    pub name: &'a str,
    /// The value's text.
    pub text: &'a str,
    /// Who said so; absent where the program assigned it.
    pub origin: Option<&'a Origin>,
    /// The namespace of the key. What the program assigns is the user's.
    pub namespace: Namespace,
}

impl<'a> Entry<'a> {
    fn of(datum: &'a Datum) -> Self {
        Entry {
            name: &datum.name,
            text: &datum.text,
            origin: datum.origin.as_ref(),
            namespace: datum.namespace,
        }
    }
}

/// The key set of a coordinator, which nobody alters while this is held.
///
/// Others meanwhile read, enter layers and publish; what they publish becomes
/// visible, in order, when the last `Held` is dropped. No thread waits for
/// that, except one that asks for the lock itself. Belongs to its thread.
pub struct Held {
    coordinator: Coordinator,
    root: Map,
    /// The lock counts by thread, as a mutex's guard does.
    _thread: PhantomData<std::sync::MutexGuard<'static, ()>>,
}

impl Coordinator {
    /// Holds the key set still (CoElektra, IV-A: `requireLock`).
    ///
    /// Waits for other threads that hold it; the same thread may hold it
    /// several times.
    #[must_use]
    pub fn require_lock(&self) -> Held {
        let me = sync::current().id();
        let mut copy: Vec<SlotState> = Vec::new();
        let mut state = self.inner.state();
        loop {
            if state.holders > 0 && state.holder != Some(me) {
                state.sleepers += 1;
                state = sync::wait(&self.inner.shown, state);
                state.sleepers -= 1;
                continue;
            }
            if state.frozen.is_none() {
                let count = state.live.slots.len();
                if copy.capacity() < count {
                    // Nothing is allocated while the state is locked.
                    drop(state);
                    copy.reserve(count);
                    state = self.inner.state();
                    continue;
                }
                copy.extend(state.live.slots.iter().cloned());
                state.frozen = Some(View {
                    generation: state.live.generation,
                    root: state.live.root.clone(),
                    slots: std::mem::take(&mut copy),
                });
            }
            state.holders += 1;
            state.holder = Some(me);
            let root = state
                .frozen
                .as_ref()
                .map(|view| view.root.clone())
                .unwrap_or_default();
            drop(state);
            return Held {
                coordinator: self.clone(),
                root,
                _thread: PhantomData,
            };
        }
    }
}

impl Held {
    /// Every key that is in force, in the order of their names.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        self.entries_of(Some)
    }

    /// The keys of one namespace, in force or not, in the order of their names.
    /// Those that the program has assigned are the user's.
    #[must_use]
    pub fn in_namespace(&self, namespace: Namespace) -> Vec<Entry<'_>> {
        self.entries_of(|datum| datum.of(namespace))
    }

    fn entries_of<'a>(
        &'a self,
        choose: impl Fn(&'a Arc<Datum>) -> Option<&'a Arc<Datum>>,
    ) -> Vec<Entry<'a>> {
        let mut entries = Vec::new();
        self.root.for_each(|column| {
            let datum = keys_of(column).and_then(&choose);
            entries.extend(datum.map(|datum| Entry::of(datum)));
        });
        sort::by(&mut entries, |a, b| {
            a.name.split('/').cmp(b.name.split('/'))
        });
        entries
    }

    /// The keys that the program has assigned since it started.
    #[must_use]
    pub fn assigned(&self) -> Vec<Entry<'_>> {
        let mut entries = self.entries();
        entries.retain(|entry| entry.origin.is_none());
        entries
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.coordinator.inner.state();
        state.holders -= 1;
        if state.holders > 0 {
            return;
        }
        state.holder = None;
        let frozen = state.frozen.take();
        self.coordinator.inner.show(state);
        drop(frozen);
    }
}
