//! The coordinator: what all contexts share (CoElektra, III-B).
//!
//! ```text
//!   news       ── the generation, all that an idle `sync` reads, and the last switches
//!   state      ── layer slots, root of the key set, changes; short sections only
//!   writers    ── orders writers of the key set, who build the next root outside `state`
//!   schema     ── names; only registration and unknown layers come here
//! ```
//!
//! Contexts are not listed anywhere: publishing costs the same however many
//! there are, and each finds out for itself by comparing generations. While
//! somebody holds [`Held`], publications go to the live view as ever, but the
//! generation stands still and whoever synchronizes gets the frozen view.

use std::{sync::Arc, task::Waker};

use milieu_keys::{KeySet, Name, Namespace, Origin};

use crate::{
    Context, ContextOptions, Description, Environment, KeyError, Named, OpenError, Policy, Threads,
    UnknownLayer,
    actions::Actions,
    batch::Batch,
    layer::{Bound, Global},
    map::Map,
    news::{News, Short},
    publish::{self, Counts},
    resolve::Slot,
    schema::Schema,
    sync::{Condvar, Mutex, MutexGuard, ThreadId, lock},
};

/// Shared by the contexts of one program, or of one part of it.
///
/// A coordinator is responsible for exactly one key set, and a context belongs
/// to exactly one coordinator; a process may have several, for plug-ins and
/// nested applications. Cloning gives another handle to the same one.
#[derive(Clone)]
pub struct Coordinator {
    pub(crate) inner: Arc<Inner>,
}

pub struct Inner {
    pub news: News,
    state: Mutex<State>,
    pub writers: Mutex<()>,
    /// Somebody published, or a hold has ended.
    pub shown: Condvar,
    pub schema: Mutex<Schema>,
    pub actions: Actions,
}

/// One layer, globally.
#[derive(Clone)]
pub struct SlotState {
    pub binding: Global,
    /// The generation of the last switch.
    pub changed: u64,
    /// Whether actions are registered for it.
    pub acting: bool,
}

/// Layers and values at one generation.
#[derive(Clone, Default)]
pub struct View {
    pub generation: u64,
    pub root: Map,
    pub slots: Vec<SlotState>,
}

#[derive(Default)]
pub struct State {
    pub live: View,
    pub keys: Ring,
    /// The view that everybody sees while somebody holds the key set.
    pub frozen: Option<View>,
    pub holders: u32,
    pub holder: Option<ThreadId>,
    /// How many threads wait on `shown`.
    pub sleepers: u32,
    /// The tasks that wait, by the number of their future.
    pub wakers: Vec<(u64, Waker)>,
}

/// The last changes of keys: generation and hash of the name. They lie apart,
/// as who synchronizes has mostly nothing to do with them.
pub struct Ring {
    entries: Box<[(u64, u64); RING]>,
    count: usize,
    /// The generation of the last change.
    newest: u64,
    /// The generation of the newest change that is no longer listed.
    lost: u64,
}

/// How many changes of keys a context may be behind before it refreshes whole.
pub const RING: usize = 32;

impl Default for Ring {
    fn default() -> Self {
        Ring {
            entries: Box::new([(0, 0); RING]),
            count: 0,
            newest: 0,
            lost: 0,
        }
    }
}

impl Ring {
    /// Lists changes of keys. Once more than there is room for are listed, it
    /// makes no difference how many.
    pub fn push_all(&mut self, generation: u64, hashes: &[u64]) {
        for hash in hashes.iter().take(RING + 1) {
            let entry = &mut self.entries[self.count % RING];
            self.lost = self.lost.max(entry.0);
            *entry = (generation, *hash);
            self.count += 1;
            self.newest = generation;
        }
    }

    /// Lists nothing of what there was until this generation: whoever is behind
    /// refreshes whole.
    pub fn forget_until(&mut self, generation: u64) {
        self.lost = generation;
    }

    /// The hashes of keys changed after `seen`; `None` where not all are listed.
    pub fn since(&self, seen: u64) -> Option<impl Iterator<Item = u64> + '_> {
        let newer = move |entry: &&(u64, u64)| entry.0 > seen;
        let entries = match self.newest > seen {
            true => &self.entries[..],
            false => &[],
        };
        (self.lost <= seen).then(|| entries.iter().filter(newer).map(|entry| entry.1))
    }
}

/// What a publication came to.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    pub generation: u64,
    /// Nobody else sees it before the key set is released.
    pub pending: bool,
    /// Actions are registered for the layer, and it has changed.
    pub acting: bool,
}

impl Default for Coordinator {
    fn default() -> Self {
        Coordinator::new()
    }
}

impl Coordinator {
    /// A coordinator with an empty key set and no active layer.
    #[must_use]
    pub fn new() -> Self {
        Coordinator {
            inner: Arc::new(Inner {
                news: News::new(),
                state: Mutex::new(State::default()),
                writers: Mutex::new(()),
                shown: Condvar::new(),
                schema: Mutex::new(Schema::default()),
                actions: Actions::default(),
            }),
        }
    }

    /// A coordinator whose key set starts with these keys, each with its
    /// provenance. Of one name the first in the cascade is in force; the others
    /// come into force when it goes.
    #[must_use]
    pub fn with_keys(keys: &KeySet) -> Self {
        let coordinator = Coordinator::new();
        let root = publish::root_of(keys);
        coordinator.inner.state().live.root = root;
        coordinator
    }

    /// Registers an environment and makes a context for this thread or task.
    ///
    /// # Errors
    ///
    /// Fails where the environment does not fit the keys or the environments
    /// known before: every offending key is named, with its provenance.
    pub fn context<E: Environment>(&self) -> Result<Context<E>, OpenError> {
        self.context_with::<E, Threads>(ContextOptions::default())
    }

    /// As [`context`](Coordinator::context), with a policy, a role, or both.
    ///
    /// # Errors
    ///
    /// As [`context`](Coordinator::context).
    pub fn context_with<E: Environment, P: Policy>(
        &self,
        options: ContextOptions,
    ) -> Result<Context<E, P>, OpenError> {
        let plan = self.inner.plan(&Description::of::<E>())?;
        Ok(Context::open(self.inner.clone(), plan, options))
    }

    /// Assigns a key by its name. Contexts see it at their next synchronization.
    ///
    /// Without an origin it is an assignment of the program, as
    /// [`set`](Context::set) makes them: in force whatever options and files
    /// say, and persisted. With one it is the user's key as that source has it,
    /// which an option precedes. In both cases it takes the place of the user's
    /// key. For whole files see [`replace`](Coordinator::replace).
    ///
    /// Assigning an element of an [`Array`](crate::Array) that somebody else
    /// gives, without an origin, takes the array over: the program has then
    /// assigned the elements as they were, but for this one.
    ///
    /// # Errors
    ///
    /// Fails, and changes nothing, where the name is not one or the value
    /// breaks the rules of any environment that has this key.
    pub fn assign(&self, name: &str, text: &str, origin: Option<Origin>) -> Result<(), KeyError> {
        let name = Name::parse(name).map_err(KeyError::Name)?;
        let datum = publish::datum(name.as_str(), text, Namespace::User, origin);
        self.inner.publish_batch(Counts::Checked, |map, schema| {
            Batch::assign(map, schema, datum)
        })?;
        Ok(())
    }

    /// Removes the user's key of this name, assigned or not. The next one in the
    /// cascade is then in force: an option, the system's key, or the default.
    ///
    /// # Errors
    ///
    /// Fails, and changes nothing, where the name is not one, or where it is
    /// that of an element without which the array would be too short.
    pub fn remove(&self, name: &str) -> Result<(), KeyError> {
        let name = Name::parse(name).map_err(KeyError::Name)?;
        self.inner.publish_batch(Counts::Checked, |_, schema| {
            Ok(Batch::remove(schema, name.as_str()))
        })?;
        Ok(())
    }

    /// Whether [`assign`](Coordinator::assign) would take this value of the
    /// program's, or [`remove`](Coordinator::remove) take the key away, as
    /// things stand. Nothing changes.
    ///
    /// # Errors
    ///
    /// As the two.
    pub fn check(&self, name: &str, value: Option<&str>) -> Result<(), KeyError> {
        let name = Name::parse(name).map_err(KeyError::Name)?;
        let checked = self.inner.check_batch(|map, schema| match value {
            Some(text) => {
                let datum = publish::datum(name.as_str(), text, Namespace::User, None);
                Batch::assign(map, schema, datum)
            }
            None => Ok(Batch::remove(schema, name.as_str())),
        });
        Ok(checked?)
    }

    /// A layer by the identifier and the value that somebody gave: a request, a
    /// file, a command line. Unlike [`Named`], which takes any identifier, this
    /// one has to be known.
    ///
    /// # Errors
    ///
    /// Fails where no value of any environment depends on such a layer, and
    /// says which it may have been.
    pub fn layer<'a>(&self, id: &'a str, value: &'a str) -> Result<Named<'a>, UnknownLayer> {
        let known = lock(&self.inner.schema).used_layers();
        if known.iter().any(|known| known == id) {
            return Ok(Named(id, value));
        }
        Err(UnknownLayer {
            layer: id.into(),
            known,
        })
    }

    /// Whether both are handles to one coordinator.
    #[must_use]
    pub fn same(&self, other: &Coordinator) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Inner {
    /// The state, for one short section.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The number of a layer, known to the state from then on.
    pub fn slot(&self, id: &str) -> Slot {
        let mut schema = lock(&self.schema);
        let slot = schema.slot(id);
        let count = schema.layer_count();
        let mut state = self.state();
        let missing = count.saturating_sub(state.live.slots.len());
        let fresh = SlotState {
            binding: Global::Inactive,
            changed: 0,
            acting: false,
        };
        let frozen = state.frozen.as_mut().map(|view| &mut view.slots);
        if missing > 0 {
            if let Some(slots) = frozen {
                slots.resize(count, fresh.clone());
            }
            state.live.slots.resize(count, fresh);
        }
        slot
    }

    /// The identifier of a layer.
    pub fn layer_id(&self, slot: Slot) -> Arc<str> {
        lock(&self.schema).id(slot)
    }

    /// Whether a switch would change nothing. What a context sees is not enough
    /// to tell: others may have published behind its back, and while the key
    /// set is held it does not learn of that even by synchronizing.
    pub fn is_so(&self, slot: Slot, binding: &Global) -> bool {
        let state = self.state();
        let known = state.live.slots.get(slot as usize);
        known.is_some_and(|known| known.binding.same_fixed(binding))
    }

    /// Publishes a switch of a layer. Of several that say the same at one time
    /// the first is the one that acts.
    ///
    /// # Errors
    ///
    /// Returns the slots of a cycle that the binding would close; nothing has changed then.
    pub fn publish_switch(&self, slot: Slot, binding: Global) -> Result<Published, Vec<Slot>> {
        let state = self.state();
        if let Global::Bound(bound) = &binding {
            let slots = &state.live.slots;
            let of = |slot: Slot| slots.get(slot as usize).map(|s| &s.binding);
            if let Some(cycle) = find_cycle(slot, bound, &of) {
                return Err(cycle);
            }
        }
        Ok(self.publish_binding(state, slot, binding))
    }

    /// As [`publish_switch`](Inner::publish_switch), to a value that closes no
    /// cycle, as it depends on nothing.
    pub fn publish_fixed(&self, slot: Slot, binding: Global) -> Published {
        self.publish_binding(self.state(), slot, binding)
    }

    fn publish_binding(
        &self,
        mut state: MutexGuard<'_, State>,
        slot: Slot,
        binding: Global,
    ) -> Published {
        let generation = state.live.generation + 1;
        let cell = &mut state.live.slots[slot as usize];
        let acting = cell.acting && !cell.binding.same_fixed(&binding);
        let short = Short::of(slot, &binding);
        let old = std::mem::replace(&mut cell.binding, binding);
        cell.changed = generation;
        // While the key set is held nobody sees this generation alone.
        if let (Some(short), None) = (short, &state.frozen) {
            self.news.note(generation, short);
        }
        let pending = self.announce(state, generation);
        drop(old);
        Published {
            generation,
            pending,
            acting,
        }
    }

    /// Ends a publication: from here on others see it, unless the key set is held.
    pub fn announce(&self, mut state: MutexGuard<'_, State>, generation: u64) -> bool {
        state.live.generation = generation;
        if state.frozen.is_some() {
            return true;
        }
        self.show(state);
        false
    }

    /// Lets everybody see the live view, and wakes who sleeps for it.
    #[inline]
    pub fn show(&self, state: MutexGuard<'_, State>) {
        self.news.show(state.live.generation);
        if state.sleepers > 0 || !state.wakers.is_empty() {
            self.wake(state);
        }
    }

    #[cold]
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let wakers = std::mem::take(&mut state.wakers);
        let sleepers = state.sleepers > 0;
        drop(state);
        if sleepers {
            self.shown.notify_all();
        }
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// The way from `bound`, as the value of `slot`, back to `slot`.
pub fn find_cycle<'a>(
    slot: Slot,
    bound: &'a Bound,
    binding_of: &dyn Fn(Slot) -> Option<&'a Global>,
) -> Option<Vec<Slot>> {
    fn search<'a>(
        target: Slot,
        bound: &'a Bound,
        binding_of: &dyn Fn(Slot) -> Option<&'a Global>,
        way: &mut Vec<Slot>,
    ) -> bool {
        for spec in bound.dependencies() {
            for &slot in &spec.slots {
                if slot == target {
                    return true;
                }
                if way.contains(&slot) {
                    continue;
                }
                way.push(slot);
                if let Some(Global::Bound(next)) = binding_of(slot) {
                    if search(target, next, binding_of, way) {
                        return true;
                    }
                }
                way.pop();
            }
        }
        false
    }
    let mut way = vec![slot];
    search(slot, bound, binding_of, &mut way).then_some(way)
}
