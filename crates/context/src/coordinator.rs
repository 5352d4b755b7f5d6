//! The coordinator: what all contexts share (CoElektra, III-B).
//!
//! ```text
//!   generation ── one atomic, all that an idle `sync` reads
//!   state      ── layer slots, root of the key set, changes; short sections only
//!   writers    ── orders writers of the key set, who build the next root outside `state`
//!   schema     ── names; only registration and unknown layers come here
//! ```
//!
//! Contexts are not listed anywhere: publishing costs the same however many
//! there are, and each finds out for itself by comparing generations. While
//! somebody holds [`Held`], publications go to the live view as ever, but the
//! generation stands still and whoever synchronizes gets the frozen view.

use std::{collections::BTreeMap, sync::Arc, task::Waker};

use milieu_keys::{KeySet, Name, Origin};

use crate::{
    Context, ContextOptions, Environment, Invalid, KeyError, Named, OpenError, Policy, Threads,
    UnknownLayer,
    actions::Actions,
    field::Cell,
    layer::{Bound, Global},
    map::{Column, Datum, Map, Place},
    resolve::Slot,
    schema::{Plan, Schema, TEXT, ValueSpec, checked},
    sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, ThreadId, lock},
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
    /// The generation that contexts may see.
    pub generation: AtomicU64,
    state: Mutex<State>,
    writers: Mutex<()>,
    /// Somebody published, or a hold has ended.
    pub news: Condvar,
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
    /// How many threads wait on `news`.
    pub sleepers: u32,
    /// The tasks that wait, by the number of their future.
    pub wakers: BTreeMap<u64, Waker>,
}

/// The last changes of keys: generation and hash of the name.
pub struct Ring {
    entries: [(u64, u64); RING],
    count: usize,
    /// The generation of the newest change that is no longer listed.
    lost: u64,
}

/// How many changes of keys a context may be behind before it refreshes whole.
pub const RING: usize = 32;

impl Default for Ring {
    fn default() -> Self {
        Ring {
            entries: [(0, 0); RING],
            count: 0,
            lost: 0,
        }
    }
}

impl Ring {
    fn push(&mut self, generation: u64, hash: u64) {
        let entry = &mut self.entries[self.count % RING];
        self.lost = entry.0;
        *entry = (generation, hash);
        self.count += 1;
    }

    /// The hashes of keys changed after `seen`; `None` where not all are listed.
    pub fn since(&self, seen: u64) -> Option<impl Iterator<Item = u64> + '_> {
        let newer = move |entry: &&(u64, u64)| entry.0 > seen;
        (self.lost <= seen).then(|| self.entries.iter().filter(newer).map(|entry| entry.1))
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
                generation: AtomicU64::new(0),
                state: Mutex::new(State::default()),
                writers: Mutex::new(()),
                news: Condvar::new(),
                schema: Mutex::new(Schema::default()),
                actions: Actions::default(),
            }),
        }
    }

    /// A coordinator whose key set starts with the effective keys of `keys`,
    /// each with its provenance.
    #[must_use]
    pub fn with_keys(keys: &KeySet) -> Self {
        let coordinator = Coordinator::new();
        let mut root = Map::default();
        for key in keys.effective() {
            let column = column(key.name(), key.value(), Some(key.origin().clone()));
            root.insert(Place::of(key.name()).parent, column);
        }
        lock(&coordinator.inner.state).live.root = root;
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
        let plan = self.inner.plan::<E>()?;
        Ok(Context::open(self.inner.clone(), plan, options))
    }

    /// Assigns a key by its name, for tools and files that change while the
    /// program runs. Contexts see it at their next synchronization.
    ///
    /// # Errors
    ///
    /// Fails, and changes nothing, where the name is not one or the value
    /// breaks the rules of any environment that has this key.
    pub fn assign(&self, name: &str, text: &str, origin: Option<Origin>) -> Result<(), KeyError> {
        let name = Name::parse(name).map_err(KeyError::Name)?;
        let column = self.inner.checked_column(name.as_str(), text, origin)?;
        let place = Place::of(name.as_str());
        self.inner.publish_key(place, Some(column));
        Ok(())
    }

    /// Removes a key by its name; contexts then see its default.
    ///
    /// # Errors
    ///
    /// Fails where the name is not one.
    pub fn remove(&self, name: &str) -> Result<(), KeyError> {
        let name = Name::parse(name).map_err(KeyError::Name)?;
        self.inner.publish_key(Place::of(name.as_str()), None);
        Ok(())
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

/// A text without a type, as files give it.
fn column(name: &str, text: &str, origin: Option<Origin>) -> Column {
    let datum = Arc::new(Datum {
        name: name.into(),
        text: text.into(),
        origin,
    });
    Column {
        base: Place::of(name).base,
        tag: TEXT,
        cell: Cell::zero(crate::Kind::Text, &datum.text),
        datum,
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

    /// The plan of an environment, registering it when it is new: its keys
    /// that are already loaded are checked and typed.
    pub fn plan<E: Environment>(&self) -> Result<Arc<Plan>, OpenError> {
        let known = lock(&self.schema).known_plan::<E>();
        if let Some(plan) = known {
            return Ok(plan);
        }
        let _order = lock(&self.writers);
        let (specs, layer_count) = {
            let mut schema = lock(&self.schema);
            (schema.describe::<E>()?, schema.layer_count())
        };
        let mut root = self.state().live.root.clone();
        type_keys(&mut root, &specs)?;
        let plan = lock(&self.schema).remember::<E>(specs);
        if layer_count > 0 {
            let last = self.layer_id(Slot::try_from(layer_count - 1).expect("counted above"));
            self.slot(&last);
        }
        let old = std::mem::replace(&mut self.state().live.root, root);
        drop(old);
        Ok(plan)
    }

    fn checked_column(
        &self,
        name: &str,
        text: &str,
        origin: Option<Origin>,
    ) -> Result<Column, Invalid> {
        let mut made = column(name, text, origin);
        let schema = lock(&self.schema);
        for spec in schema.values_of(name) {
            type_column(&mut made, spec, name)?;
        }
        Ok(made)
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
        let mut state = self.state();
        if let Global::Bound(bound) = &binding {
            let slots = &state.live.slots;
            let of = |slot: Slot| slots.get(slot as usize).map(|s| &s.binding);
            if let Some(cycle) = find_cycle(slot, bound, &of) {
                return Err(cycle);
            }
        }
        let generation = state.live.generation + 1;
        let cell = &mut state.live.slots[slot as usize];
        let acting = cell.acting && !cell.binding.same_fixed(&binding);
        let old = std::mem::replace(&mut cell.binding, binding);
        cell.changed = generation;
        let pending = self.announce(state, generation);
        drop(old);
        Ok(Published {
            generation,
            pending,
            acting,
        })
    }

    /// Publishes the new value of a key, or that it has none.
    pub fn publish_key(&self, place: Place, column: Option<Column>) -> (Published, Map) {
        let _order = lock(&self.writers);
        // Only writers change the root, so it is still this one at the swap.
        let mut root = self.state().live.root.clone();
        match column {
            Some(column) => root.insert(place.parent, column),
            None => {
                root.remove(place);
            }
        }
        let ours = root.clone();
        let mut state = self.state();
        let generation = state.live.generation + 1;
        let old = std::mem::replace(&mut state.live.root, root);
        state.keys.push(generation, place.hash());
        let pending = self.announce(state, generation);
        drop(old);
        (
            Published {
                generation,
                pending,
                acting: false,
            },
            ours,
        )
    }

    /// Ends a publication: from here on others see it, unless the key set is held.
    fn announce(&self, mut state: MutexGuard<'_, State>, generation: u64) -> bool {
        state.live.generation = generation;
        if state.frozen.is_some() {
            return true;
        }
        self.show(state);
        false
    }

    /// Lets everybody see the live view, and wakes who sleeps for it.
    pub fn show(&self, mut state: MutexGuard<'_, State>) {
        self.generation
            .store(state.live.generation, Ordering::Release);
        let wakers = std::mem::take(&mut state.wakers);
        let sleepers = state.sleepers > 0;
        drop(state);
        if sleepers {
            self.news.notify_all();
        }
        wakers.into_values().for_each(Waker::wake);
    }
}

/// Types every loaded key that one of `specs` names, or lists those that break a rule.
fn type_keys(root: &mut Map, specs: &[Arc<ValueSpec>]) -> Result<(), OpenError> {
    let mut changed: Vec<Column> = Vec::new();
    let mut invalid = Vec::new();
    let mut apply = |spec: &ValueSpec, column: &Column| {
        let mut typed = column.clone();
        match type_column(&mut typed, spec, &column.datum.name) {
            Ok(()) => changed.push(typed),
            Err(error) => invalid.push(error),
        }
    };
    let (contextual, plain): (Vec<_>, Vec<_>) =
        specs.iter().partition(|spec| spec.pattern.is_contextual());
    for spec in plain {
        if let Some(column) = root.get(Place::of(spec.pattern.as_str())) {
            apply(spec, column);
        }
    }
    if !contextual.is_empty() {
        root.for_each(|column| {
            for spec in &contextual {
                if spec.pattern.matches(&column.datum.name) {
                    apply(spec, column);
                }
            }
        });
    }
    if !invalid.is_empty() {
        invalid.sort_by(|a: &Invalid, b: &Invalid| a.name.cmp(&b.name));
        return Err(OpenError::Invalid(invalid));
    }
    for column in changed {
        root.insert(Place::of(&column.datum.name).parent, column);
    }
    Ok(())
}

fn type_column(column: &mut Column, spec: &ValueSpec, name: &str) -> Result<(), Invalid> {
    match checked(spec.kind, &spec.rules, &column.datum.text) {
        Ok(cell) => {
            column.cell = cell;
            column.tag = spec.tag;
            Ok(())
        }
        Err(violation) => Err(Invalid {
            name: name.into(),
            violation,
            origin: column.datum.origin.clone(),
        }),
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
