//! The type-erased half of a context: everything but the environment itself.
//!
//! ```text
//!   layers[slot]  the layer in force: the innermost frame's, or the global one
//!   frames        entered, not yet left; each owns a stretch of
//!     saved         the layer cells that it covered, the outermost of a slot
//!                   being the global one
//!     undo          the values that it changed
//!   back          the other state of the layer that was switched last (`back.rs`)
//!   root          the key set as of the last synchronization, and own assignments
//! ```
//!
//! A frame restores what it saved unless the epoch has moved on since, in which
//! case it evaluates again: every change of `root` and of global layers moves it.
//! String fields point into `root` or into defaults, which the plan keeps.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

use milieu_keys::{NameError, Pattern, sort};

use crate::{
    Descriptor, OpenError,
    arena::Arena,
    back::Back,
    batch::{ArrayEdit, Edit},
    coordinator::{Inner, find_cycle},
    elements,
    evaluate::changed_once,
    failure::{Failed, go_on},
    field::Cell,
    frame::Frame,
    layer::{Bound, Global, Id, LayerCell, Scope, Source, ThreadBased},
    map::{Map, Place},
    resolve::{Layers, Slot},
    schema::{Plan, ValueSpec},
    sync::{Ordering, lock},
};

/// A publication that others do not see yet because the key set is held.
#[derive(Clone)]
pub enum Pending {
    Switch(Slot, Global),
    /// An assignment, or a removal.
    Key(Place, Edit),
    /// The same of elements.
    Array(Arc<ArrayEdit>),
}

/// See the [module](self).
pub struct Core {
    pub inner: Arc<Inner>,
    pub plan: Arc<Plan>,
    /// The generation that this context has synchronized with.
    pub seen: u64,
    pub root: Map,
    pub layers: Vec<LayerCell>,
    /// The global binding of each layer as of the last synchronization.
    pub globals: Vec<Global>,
    /// The text of a global or local binding as evaluated here, by layer.
    evaluated: Vec<Arc<str>>,
    /// The bindings of frames that are not fixed.
    pub locals: Vec<Arc<Bound>>,
    pub arena: Arena,
    /// The hash of each value's name at its last evaluation.
    pub hashes: Vec<u64>,
    /// Where each value stood in the last row that had it.
    pub guesses: Vec<u8>,
    pub frames: Vec<Frame>,
    pub saved: Vec<(Slot, LayerCell)>,
    pub undo: Vec<Undo>,
    pub epoch: u64,
    /// The way back from the last switch.
    pub back: Back,
    /// Layers whose value this context finds for itself, dependencies first.
    pub bound: Vec<Slot>,
    /// There are such layers, or `bound` is out of date: the slower way.
    pub complex: bool,
    stale: bool,
    /// By generation.
    pub pending: Vec<(u64, Pending)>,
    pub identity: u64,
    pub role: Arc<str>,
    /// Whether it synchronizes at all.
    pub shared: bool,
    /// Layers by the address of their identifier.
    ids: [Pair; PAIRS],
    /// Reused by synchronizations.
    pub adopted: Vec<(Slot, Global)>,
    pub changed: Vec<Slot>,
    /// The text that each layer was last switched to by somebody else.
    pub texts: Vec<Arc<str>>,
    pub marks: Vec<u64>,
    pub mark: u64,
    /// What the author of a thread-based layer panicked with, until
    /// [`Core::settle`] lets it go on.
    pub(crate) panic: Mutex<Option<Failed>>,
    panicked: bool,
}

/// A layer that was looked up.
#[derive(Clone, Copy, Default)]
struct Looked {
    /// Where its identifier lies; none lies at 0.
    address: usize,
    length: usize,
    /// Its number and [`TOUCHES`].
    slot: u32,
}

impl Looked {
    #[inline]
    fn is(&self, address: usize, length: usize) -> bool {
        self.address == address && self.length == length
    }
}

/// The last two whose addresses fall on the same place, so that two which a
/// program uses by turns do not drive each other out.
type Pair = [Looked; 2];

const PAIRS: usize = 8;

/// Beside the number of a layer: it touches values of this environment.
const TOUCHES: u32 = 1 << 31;

#[inline]
fn place_of(address: usize) -> usize {
    (address ^ (address >> 4)) % PAIRS
}

/// A value as it was before a frame changed it.
pub struct Undo {
    pub value: u32,
    pub cell: Cell,
    pub hash: u64,
}

static IDENTITIES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

/// A number for a new context.
pub fn next_identity() -> u64 {
    IDENTITIES.fetch_add(1, Ordering::Relaxed)
}

impl Core {
    /// A context as of now, without any value in the environment yet.
    pub fn new(inner: Arc<Inner>, plan: Arc<Plan>, role: Arc<str>, shared: bool) -> Core {
        let count = plan.values.len();
        let mut core = Core {
            inner,
            plan,
            seen: 0,
            root: Map::default(),
            layers: Vec::new(),
            globals: Vec::new(),
            evaluated: Vec::new(),
            locals: Vec::new(),
            arena: Arena::default(),
            hashes: vec![0; count],
            guesses: vec![0; count],
            frames: Vec::new(),
            saved: Vec::new(),
            undo: Vec::new(),
            epoch: 0,
            back: Back::none(),
            bound: Vec::new(),
            complex: false,
            stale: false,
            pending: Vec::new(),
            identity: next_identity(),
            role,
            shared,
            ids: [[Looked::default(); 2]; PAIRS],
            adopted: Vec::new(),
            changed: Vec::new(),
            texts: Vec::new(),
            marks: Vec::new(),
            mark: 0,
            panic: Mutex::new(None),
            panicked: false,
        };
        let state = core.inner.state();
        let view = state.frozen.as_ref().unwrap_or(&state.live);
        let (generation, root) = (view.generation, view.root.clone());
        let slots: Vec<Global> = view.slots.iter().map(|slot| slot.binding.clone()).collect();
        drop(state);
        core.seen = generation;
        core.root = root;
        for (slot, binding) in (0..).zip(slots) {
            core.set_global(slot, binding);
        }
        core
    }

    /// A copy with its own identity, without frames to leave: layers that are
    /// local here and kept there become its base. `keep` chooses by layer.
    ///
    /// Returns the layers whose values differ from those of `self`.
    pub fn copy(&self, role: Arc<str>, keep: impl Fn(&LayerCell) -> bool) -> (Core, Vec<Slot>) {
        let mut changed = Vec::new();
        let mut copy = Core {
            inner: self.inner.clone(),
            plan: self.plan.clone(),
            seen: self.seen,
            root: self.root.clone(),
            layers: self.layers.clone(),
            globals: self.globals.clone(),
            evaluated: Vec::new(),
            locals: Vec::new(),
            arena: Arena::default(),
            hashes: self.hashes.clone(),
            guesses: self.guesses.clone(),
            frames: Vec::new(),
            saved: Vec::new(),
            undo: Vec::new(),
            epoch: 1,
            back: Back::none(),
            bound: Vec::new(),
            complex: self.complex,
            stale: self.complex,
            pending: self.pending.clone(),
            identity: next_identity(),
            role,
            shared: self.shared,
            ids: self.ids,
            adopted: Vec::new(),
            changed: Vec::new(),
            texts: Vec::new(),
            marks: Vec::new(),
            mark: 0,
            panic: Mutex::new(None),
            panicked: false,
        };
        if !self.frames.is_empty() {
            copy.begin_base();
        }
        for (slot, cell) in (0..).zip(&self.layers) {
            if cell.is_local() {
                copy.layers[slot as usize] = copy.global_cell(slot);
                if keep(cell) {
                    copy.cover_copy(slot, &self.binding_of(cell, slot), cell);
                }
                changed.push(slot);
            } else if cell.is_bound() {
                // Its text belongs to `self`, and its value to its identity.
                copy.layers[slot as usize].clear();
                changed.push(slot);
            }
        }
        (copy, changed)
    }

    /// The number of a layer; the common case compares one address.
    #[inline]
    pub fn slot(&mut self, id: Id<'_>) -> Slot {
        match id {
            Id::Static(text) => match self.known_slot(text) {
                Some(slot) => slot,
                None => self.look_up(id),
            },
            Id::Dynamic(_) => self.look_up(id),
        }
    }

    /// The number of a layer that was looked up not long ago.
    #[inline]
    fn known_slot(&self, id: &'static str) -> Option<Slot> {
        let (known, slot) = self.known(id);
        known.then_some(slot & !TOUCHES)
    }

    /// The number of a layer, if it was looked up not long ago and touches nothing.
    #[inline]
    pub fn untouching(&self, id: &'static str) -> (bool, Slot) {
        let (known, slot) = self.known(id);
        (known && slot & TOUCHES == 0, slot)
    }

    #[inline]
    fn known(&self, id: &'static str) -> (bool, u32) {
        let (address, length) = (id.as_ptr().addr(), id.len());
        let [newer, older] = &self.ids[place_of(address)];
        if newer.is(address, length) {
            return (true, newer.slot);
        }
        (older.is(address, length), older.slot)
    }

    #[cold]
    fn look_up(&mut self, id: Id<'_>) -> Slot {
        let (Id::Static(text) | Id::Dynamic(text)) = id;
        let known = self.plan.slot(text);
        let slot = known.unwrap_or_else(|| self.inner.slot(text));
        if let Id::Static(id) = id {
            let (address, length) = (id.as_ptr().addr(), id.len());
            let touches = if self.plan.touched(slot).is_some() {
                TOUCHES
            } else {
                0
            };
            let pair = &mut self.ids[place_of(address)];
            pair[1] = pair[0];
            pair[0] = Looked {
                address,
                length,
                slot: slot | touches,
            };
        }
        self.make_room(slot);
        slot
    }

    /// Makes `layers[slot]` exist.
    pub fn make_room(&mut self, slot: Slot) {
        if self.layers.len() <= slot as usize {
            let count = slot as usize + 1;
            self.layers.resize(count, LayerCell::INACTIVE);
            self.globals.resize(count, Global::Inactive);
        }
    }

    /// The plan, for as long as the caller keeps `self.plan` as it is.
    #[inline]
    pub fn plan_ref<'p>(&self) -> &'p Plan {
        // SAFETY: `self.plan` is set when a context is made and never replaced;
        // callers use the reference only while they have `self`.
        unsafe { &*Arc::as_ptr(&self.plan) }
    }

    /// The global binding of a layer.
    pub fn global(&self, slot: Slot) -> &Global {
        &self.globals[slot as usize]
    }

    /// The global value of a layer as this context would have it.
    pub fn global_text(&self, slot: Slot) -> &str {
        match &self.globals[slot as usize] {
            Global::Inactive => "",
            Global::Text(text) => text,
            Global::Bound(_) if self.layers[slot as usize].is_local() => "",
            Global::Bound(_) => self.layers[slot as usize].raw(),
        }
    }

    /// A cell for the global binding of a layer, to be evaluated if it is bound.
    pub fn global_cell(&self, slot: Slot) -> LayerCell {
        let mut cell = match &self.globals[slot as usize] {
            Global::Inactive => LayerCell::INACTIVE,
            // SAFETY: `globals` keeps the text until every cell is replaced.
            Global::Text(text) => unsafe { LayerCell::new(text.as_ptr(), text.len()) },
            Global::Bound(_) => LayerCell::INACTIVE.bound(Source::Global),
        };
        if self.plan.touched(slot).is_some() {
            cell.make_hash();
        }
        cell
    }

    /// Gives a layer its global binding; says whether it is in force at once,
    /// which it is not below a frame.
    pub fn set_global(&mut self, slot: Slot, binding: Global) -> bool {
        self.make_room(slot);
        let old = std::mem::replace(&mut self.globals[slot as usize], binding);
        let cell = self.global_cell(slot);
        let bound = |binding: &Global| matches!(binding, Global::Bound(_));
        if bound(&old) || bound(&self.globals[slot as usize]) {
            self.rebind();
        }
        // Frames hold copies of the global cell, to come back to.
        for (_, covered) in self
            .covered_mut()
            .filter(|(s, c)| *s == slot && !c.is_local())
        {
            *covered = cell;
        }
        let in_force = !self.layers[slot as usize].is_local();
        if in_force {
            self.layers[slot as usize] = cell;
        }
        // Only now does no cell point into the old text any more.
        drop(old);
        in_force
    }

    /// The binding that a cell of this context comes from.
    pub fn binding_of(&self, cell: &LayerCell, slot: Slot) -> Global {
        match cell.source() {
            Source::Fixed if !cell.is_active() => Global::Inactive,
            Source::Fixed => Global::Text(cell.raw().into()),
            Source::Global => self.globals[slot as usize].clone(),
            Source::Local(at) => Global::Bound(self.locals[at as usize].clone()),
        }
    }

    fn bound_at(&self, slot: Slot) -> Option<&Arc<Bound>> {
        match self.layers.get(slot as usize)?.source() {
            Source::Fixed => None,
            Source::Local(at) => self.locals.get(at as usize),
            Source::Global => match self.globals.get(slot as usize)? {
                Global::Bound(bound) => Some(bound),
                _ => None,
            },
        }
    }

    /// Evaluates what the layers in `changed` touch, and what depends on that.
    ///
    /// With `record`, the current frame can bring the old values back.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    pub unsafe fn reevaluate(
        &mut self,
        environment: *mut u8,
        changed: &mut Vec<Slot>,
        record: bool,
    ) {
        self.evaluate_bound(changed, record);
        if changed.is_empty() {
            return;
        }
        let plan = self.plan_ref();
        if let [slot] = changed[..] {
            self.layers[slot as usize].make_hash();
            if let Some(touched) = plan.touched(slot) {
                // SAFETY: the caller vouches for `environment`.
                unsafe { self.evaluate_touched(environment, touched, record) };
            }
            return;
        }
        self.begin_round();
        for slot in changed {
            self.layers[*slot as usize].make_hash();
            if let Some(touched) = plan.touched(*slot) {
                // SAFETY: the caller vouches for `environment`.
                unsafe { self.evaluate(environment, touched, record, changed_once) };
            }
        }
    }

    /// Brings the layers up to date whose value this context finds for itself,
    /// and adds those that changed.
    ///
    /// A thread-based layer that panics is inactive here; the panic goes on
    /// once everything else is consistent, see [`Core::settle`].
    fn evaluate_bound(&mut self, changed: &mut Vec<Slot>, record: bool) {
        if !self.complex {
            return;
        }
        if self.stale {
            for slot in self.order_bound() {
                let before = self.layers[slot as usize];
                if before.is_active() {
                    self.layers[slot as usize].clear();
                    self.note_change(slot, before, changed, record);
                }
            }
        }
        for i in 0..self.bound.len() {
            let slot = self.bound[i];
            let Some(bound) = self.bound_at(slot).cloned() else {
                continue;
            };
            let text = self.bound_text(&bound);
            let before = self.layers[slot as usize];
            if before.raw() == text {
                continue;
            }
            self.note_change(slot, before, changed, record);
            let (length, place) = if record {
                (text.len(), self.arena.push(&text))
            } else {
                let index = slot as usize;
                self.evaluated
                    .resize(self.evaluated.len().max(index + 1), Arc::from(""));
                self.evaluated[index] = text.into();
                (self.evaluated[index].len(), self.evaluated[index].as_ptr())
            };
            // SAFETY: a recorded text stays in the arena until its frame is
            // left. Another one stays until the layer is evaluated anew; cells
            // that frames saved may point to an older one, but those frames
            // have an older epoch and clear the cell when they restore it.
            unsafe { self.layers[slot as usize].set(place, length) };
        }
    }

    fn bound_text(&mut self, bound: &Bound) -> String {
        match bound {
            Bound::Value(spec) => spec.text(&self.root, Layers(&self.layers)).to_owned(),
            Bound::Thread(layer, _) => {
                let scope = Scope { core: self };
                match catch_unwind(AssertUnwindSafe(|| layer.evaluate(&scope))) {
                    Ok(text) => {
                        self.panicked |= self.panic.get_mut().is_ok_and(|it| it.is_some());
                        text
                    }
                    Err(payload) => {
                        self.panicked = true;
                        self.panic = Mutex::new(Some(payload));
                        String::new()
                    }
                }
            }
        }
    }

    /// Whether the author of a thread-based layer has panicked meanwhile.
    #[inline]
    pub fn has_panicked(&self) -> bool {
        self.panicked
    }

    /// Lets the panic of a thread-based layer's author go on, now that
    /// everything else is consistent.
    #[inline]
    pub fn settle(&mut self) {
        if self.panicked && !std::thread::panicking() {
            self.resume();
        }
    }

    #[cold]
    fn resume(&mut self) {
        self.panicked = false;
        let payload = self.panic.get_mut().map(Option::take);
        if let Ok(Some(payload)) = payload {
            go_on(payload);
        }
    }

    /// Notes that the bound layers are not what they were.
    pub fn rebind(&mut self) {
        self.complex = true;
        self.stale = true;
    }

    /// Adds a layer to those that have changed. With `record`, the current
    /// frame saves what it was; its own layers are saved already.
    fn note_change(
        &mut self,
        slot: Slot,
        before: LayerCell,
        changed: &mut Vec<Slot>,
        record: bool,
    ) {
        if !changed.contains(&slot) {
            changed.push(slot);
            if record {
                self.saved.push((slot, before));
            }
        }
    }

    /// Lists the bound layers, dependencies first, and returns those that have
    /// to be inactive: should local layers and global ones together close a
    /// cycle, which neither did alone, what was entered last yields.
    fn order_bound(&mut self) -> Vec<Slot> {
        fn visit(core: &Core, slot: Slot, among: &[Slot], order: &mut Vec<Slot>) {
            if order.contains(&slot) || !among.contains(&slot) {
                return;
            }
            let Some(bound) = core.bound_at(slot) else {
                return;
            };
            for spec in bound.dependencies() {
                for &next in &spec.slots {
                    visit(core, next, among, order);
                }
            }
            order.push(slot);
        }
        self.stale = false;
        let bindings = self.bound_bindings();
        let mut candidates: Vec<Slot> = (0..)
            .zip(&bindings)
            .filter_map(|(slot, binding)| binding.is_some().then_some(slot))
            .collect();
        let rank = |slot: Slot| match self.layers[slot as usize].source() {
            Source::Local(at) => (1, at),
            Source::Global | Source::Fixed => (0, slot),
        };
        sort::by(&mut candidates, |a, b| rank(*a).cmp(&rank(*b)));
        let (mut accepted, mut yielding) = (Vec::new(), Vec::new());
        for slot in candidates {
            let Some(Global::Bound(bound)) = &bindings[slot as usize] else {
                continue;
            };
            let among = |other: Slot| bindings.get(other as usize)?.as_ref();
            let accepted_only = |other: Slot| among(other).filter(|_| accepted.contains(&other));
            if find_cycle(slot, bound, &accepted_only).is_some() {
                yielding.push(slot);
            } else {
                accepted.push(slot);
            }
        }
        let mut order = Vec::new();
        for &slot in &accepted {
            visit(self, slot, &accepted, &mut order);
        }
        self.bound = order;
        // A covered one comes back when its frame is left.
        self.complex = !self.bound.is_empty()
            || !yielding.is_empty()
            || self.covered_mut().any(|(_, cell)| cell.is_bound());
        yielding
    }

    /// The binding of each layer that is bound, by slot.
    fn bound_bindings(&self) -> Vec<Option<Global>> {
        (0..self.layers.len())
            .map(|slot| Slot::try_from(slot).ok())
            .map(|slot| Some(Global::Bound(self.bound_at(slot?)?.clone())))
            .collect()
    }

    /// The cycle that a layer closes in this context, with the binding that it
    /// would get or else with the one it has.
    pub fn cycle(&self, slot: Slot, with: Option<&Bound>) -> Option<Vec<Slot>> {
        let bindings = self.bound_bindings();
        let own = bindings.get(slot as usize).and_then(Option::as_ref);
        let bound = match (with, own) {
            (Some(bound), _) => bound,
            (None, Some(Global::Bound(bound))) => bound,
            _ => return None,
        };
        find_cycle(slot, bound, &|slot| bindings.get(slot as usize)?.as_ref())
    }

    /// What leads from a layer to a value of it, for messages.
    pub fn patterns(&self, slot: Slot) -> Option<String> {
        first_pattern(self.bound_at(slot)?)
    }

    /// The specification of a value, registered in this coordinator or made for the occasion.
    pub fn spec(&self, descriptor: &Descriptor) -> Result<Arc<ValueSpec>, OpenError> {
        let mut schema = lock(&self.inner.schema);
        match schema.value(descriptor.pattern) {
            Some(known) => Ok(known),
            None => schema.describe_value(descriptor),
        }
    }

    /// A thread-based layer with the specifications of the values it reads.
    pub fn with_dependencies(&self, layer: ThreadBased) -> Arc<Bound> {
        let names = layer.names();
        let schema = lock(&self.inner.schema);
        let specs = names.iter().filter_map(|name| schema.value(name)).collect();
        drop(schema);
        Arc::new(Bound::Thread(layer, specs))
    }

    /// The text of a value in force here.
    pub fn text_of(&self, pattern: &str) -> Option<&str> {
        let layers = Layers(&self.layers);
        let text = |spec: &ValueSpec| -> &str {
            // The specification lives as long as its coordinator, whose handle we hold.
            let text: *const str = spec.text(&self.root, layers);
            // SAFETY: the text belongs to `self.root` or to the specification's
            // default; both live at least as long as this borrow of `self`,
            // since the schema never forgets a value.
            unsafe { &*text }
        };
        let planned = self
            .plan
            .values
            .iter()
            .find(|v| v.spec.pattern.as_str() == pattern);
        match planned {
            Some(planned) => Some(text(&planned.spec)),
            None => {
                let spec = lock(&self.inner.schema).value(pattern)?;
                Some(text(&spec))
            }
        }
    }

    /// The elements of an array by its name, which may have placeholders.
    pub fn elements_of(&self, array: &str) -> Result<Vec<&str>, NameError> {
        let pattern = Pattern::parse(array.strip_suffix("/#").unwrap_or(array))?;
        let name = pattern.resolve(|id| self.layer_text(id));
        Ok(elements::texts(&self.root, name.as_str()))
    }

    /// The value of an active layer, as its author gave it.
    pub fn layer_text(&self, id: &str) -> Option<&str> {
        let slot = lock(&self.inner.schema).known_slot(id)?;
        let text = self.layers.get(slot as usize)?.raw();
        (!text.is_empty()).then_some(text)
    }

    /// Every active layer with its value.
    pub fn active(&self) -> Vec<(Arc<str>, String)> {
        (0..)
            .zip(&self.layers)
            .filter(|(_, cell)| cell.is_active())
            .map(|(slot, cell)| (self.inner.layer_id(slot), cell.raw().to_owned()))
            .collect()
    }
}

/// A value that a layer depends on, for messages.
pub fn first_pattern(bound: &Bound) -> Option<String> {
    Some(bound.dependencies().first()?.pattern.as_str().to_owned())
}
