//! A context over an environment that is described while the program runs.
//!
//! It is what a [`Context`](crate::Context) is, without the type of its
//! environment: the environment is memory of its own, whose address stays the
//! same, and whoever knows the struct reads its fields there. The borrow checker
//! cannot see to it that nobody keeps what a field points to beyond the next
//! switch; that is for the languages on the other side to say.

use std::{
    alloc::{Layout as Memory, alloc_zeroed, dealloc, handle_alloc_error},
    ptr::NonNull,
    sync::Arc,
    time::Instant,
};

use milieu_keys::{NameError, Origin};

use crate::{
    Captured, ContextOptions, Coordinator, Following, Invalid, LayerSet, Layout, OpenError, Switch,
    SwitchError,
    core::Core,
    layer::{Binding, Id, LayerCell, layer_of},
    resolve::Layers,
};

/// What a context may do, decided while the program runs; compare
/// [`Policy`](crate::Policy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Whether layers can be entered and activated. Without, both do nothing.
    pub layers: bool,
    /// Whether the context synchronizes with others.
    pub shared: bool,
}

impl Default for Allowed {
    /// As [`Threads`](crate::Threads).
    fn default() -> Self {
        Allowed {
            layers: true,
            shared: true,
        }
    }
}

/// The layers of one thread or task, and its environment.
pub struct Erased {
    fields: Fields,
    core: Core,
    layout: &'static Layout,
    allowed: Allowed,
}

/// The memory of an environment, and one word before it.
struct Fields {
    start: NonNull<u8>,
    memory: Memory,
}

// SAFETY: it owns the memory, and what fields point to is kept by the core beside it.
unsafe impl Send for Fields {}
// SAFETY: as above; shared, it is only read.
unsafe impl Sync for Fields {}

/// From the start of the memory to the environment: no less than any alignment.
const BEFORE: usize = 2 * size_of::<u64>();

impl Fields {
    fn new(layout: &Layout) -> Fields {
        let align = align_of::<u64>();
        // `Layout::of` has refused what is larger than 4 GiB.
        let memory = Memory::from_size_align(layout.size() + BEFORE, align);
        let memory = memory.unwrap_or_else(|_| unreachable!("the size was checked"));
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(memory) });
        let start = start.unwrap_or_else(|| handle_alloc_error(memory));
        Fields { start, memory }
    }

    fn environment(&self) -> *mut u8 {
        // SAFETY: the memory is longer than that.
        unsafe { self.start.as_ptr().add(BEFORE) }
    }

    fn copy(&self) -> Fields {
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(self.memory) });
        let start = start.unwrap_or_else(|| handle_alloc_error(self.memory));
        let from = self.start.as_ptr();
        // SAFETY: both have this size; the bytes are those of plain values or zeros.
        unsafe { std::ptr::copy_nonoverlapping(from, start.as_ptr(), self.memory.size()) };
        Fields {
            start,
            memory: self.memory,
        }
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        // SAFETY: it was allocated like this, and nobody else frees it.
        unsafe { dealloc(self.start.as_ptr(), self.memory) };
    }
}

impl Coordinator {
    /// As [`context_with`](Coordinator::context_with), for an environment that
    /// is described while the program runs.
    ///
    /// # Errors
    ///
    /// As [`context`](Coordinator::context).
    pub fn erased(
        &self,
        layout: &'static Layout,
        options: ContextOptions,
        allowed: Allowed,
    ) -> Result<Erased, OpenError> {
        let plan = self.inner.plan(&layout.description())?;
        let role = options.into_role();
        let mut erased = Erased {
            fields: Fields::new(layout),
            core: Core::new(self.inner.clone(), plan, role, allowed.shared),
            layout,
            allowed,
        };
        let (core, environment) = erased.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe {
            core.reevaluate(environment, &mut Vec::new(), false);
            core.evaluate_all(environment);
        }
        core.settle();
        Ok(erased)
    }
}

impl Erased {
    /// The core and its environment: memory of the size of the layout, of which
    /// `Layout::of` has checked that every field of the plan lies in it.
    #[inline]
    fn parts(&mut self) -> (&mut Core, *mut u8) {
        let environment = self.fields.environment();
        (&mut self.core, environment)
    }

    /// Where the environment is. Its fields may be read there, by nobody while
    /// this context is borrowed mutably. The address stays the same.
    #[inline]
    #[must_use]
    pub fn environment(&self) -> *const u8 {
        self.fields.environment()
    }

    /// Puts a word right before the environment, for those who have nothing but
    /// the address of a field.
    pub fn mark(&mut self, word: NonNull<()>) {
        let place = self.fields.environment().cast::<NonNull<()>>();
        // SAFETY: there is room for more than one word before the environment.
        unsafe { place.sub(1).write(word) };
    }

    /// What describes the environment.
    #[must_use]
    pub fn layout(&self) -> &'static Layout {
        self.layout
    }

    /// Whether the specification keeps programs from assigning a value.
    ///
    /// # Panics
    ///
    /// Panics, as all that take an index, where there is no such value.
    #[must_use]
    pub fn is_read_only(&self, index: usize) -> bool {
        self.core.plan.values[index].spec.rules.read_only()
    }

    /// The texts that a value of an enumeration can be, in the order of their numbers.
    #[must_use]
    pub fn variants(&self, index: usize) -> &[String] {
        self.core.plan.values[index].spec.rules.variants()
    }

    /// Enters layers until they are [left](Erased::leave); returns the depth.
    #[inline]
    pub fn enter(&mut self, layers: impl LayerSet) -> usize {
        if !self.allowed.layers {
            return 0;
        }
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { layers.enter(core, environment) }
    }

    /// Leaves the layers entered at a depth, and those above it. Returns false,
    /// and does nothing, where nothing is entered at that depth.
    #[inline]
    pub fn leave(&mut self, depth: usize) -> bool {
        if !self.allowed.layers {
            return true;
        }
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        depth > 0 && unsafe { core.leave(environment, depth) }
    }

    /// As [`Context::activate`](crate::Context::activate).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn activate(&mut self, layer: &dyn Switch) -> Result<(), SwitchError> {
        if !self.allowed.layers {
            return Ok(());
        }
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.switch(environment, layer.id(), |core| layer.binding(core)) }
    }

    /// Deactivates a layer for everybody, whatever value this one has.
    ///
    /// # Errors
    ///
    /// As [`activate`](Erased::activate).
    pub fn deactivate(&mut self, layer: &dyn Switch) -> Result<(), SwitchError> {
        if !self.allowed.layers {
            return Ok(());
        }
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.switch(environment, layer.id(), |_| Binding::INACTIVE) }
    }

    /// A contextual value as a layer; compare [`value`](crate::value).
    #[must_use]
    pub fn following(&self, index: usize) -> Following {
        Following {
            id: layer_of(&self.layout.values()[index]),
            spec: self.core.plan.values[index].spec.clone(),
        }
    }

    /// Takes in what other contexts have activated, deactivated and assigned.
    #[inline]
    pub fn sync(&mut self) {
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.sync_if_shared(environment) };
    }

    /// Whether [`sync`](Erased::sync) would find news.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.allowed.shared && self.core.has_news()
    }

    /// As [`Context::wait`](crate::Context::wait).
    #[must_use]
    pub fn wait(&self, deadline: Option<Instant>) -> bool {
        self.allowed.shared && self.core.wait(deadline)
    }

    /// Assigns a value that is no array, as [`Context::set`](crate::Context::set) does.
    ///
    /// # Errors
    ///
    /// Refuses a value that breaks its rules; nothing has changed then.
    pub fn set(&mut self, index: usize, text: &str) -> Result<(), Invalid> {
        assert!(!self.is_array(index), "an array is assigned as a whole");
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for, and
        // the value is no array.
        unsafe { core.assign(environment, index, text) }
    }

    /// Assigns all elements of an array.
    ///
    /// # Errors
    ///
    /// As [`set`](Erased::set).
    pub fn set_all<'a>(
        &mut self,
        index: usize,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<(), Invalid> {
        assert!(self.is_array(index), "only an array has elements");
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for, and
        // the value is an array.
        unsafe { core.assign_all(environment, index, texts) }
    }

    /// Whether a value is an array.
    #[must_use]
    pub fn is_array(&self, index: usize) -> bool {
        self.core.plan.values[index].spec.is_array()
    }

    /// Removes the user's value under the name that it has in the active layers.
    pub fn unset(&mut self, index: usize) {
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.unset(environment, index) };
    }

    /// As [`Context::forget`](crate::Context::forget).
    pub fn forget(&mut self, id: &str, value: &str) {
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.forget(environment, Id::Dynamic(id), value) };
    }

    /// The name that a value has in the active layers.
    #[must_use]
    pub fn name(&self, index: usize) -> String {
        self.core.name_of(index)
    }

    /// Appends the name that a value has in the active layers, and returns all of
    /// the text.
    #[inline]
    pub fn name_into<'n>(&self, index: usize, name: &'n mut String) -> &'n str {
        let own = &self.core.plan.values[index].spec.own;
        own.name_into(Layers(&self.core.layers), name)
    }

    /// The text of a value by its name with placeholders, as
    /// [`Context::text`](crate::Context::text) says.
    #[must_use]
    pub fn text(&self, pattern: &str) -> Option<&str> {
        self.core.text_of(pattern)
    }

    /// The elements of an array by its name, as
    /// [`Context::elements`](crate::Context::elements) says.
    ///
    /// # Errors
    ///
    /// Fails where `array` is not a name.
    pub fn elements(&self, array: &str) -> Result<Vec<&str>, NameError> {
        self.core.elements_of(array)
    }

    /// Who gave a value its present content.
    #[must_use]
    pub fn origin(&self, index: usize) -> Option<&Origin> {
        self.core.column_of(index)?.datum.origin.as_ref()
    }

    /// Whether a value is the default of its specification.
    #[must_use]
    pub fn is_default(&self, index: usize) -> bool {
        self.core.column_of(index).is_none()
    }

    /// The value of a layer that is active here, as its author gave it.
    #[must_use]
    pub fn layer(&self, id: &str) -> Option<&str> {
        self.core.layer_text(id)
    }

    /// Every layer that is active here, with its value.
    #[must_use]
    pub fn layers(&self) -> Vec<(Arc<str>, String)> {
        self.core.active()
    }

    /// The number of this context, unique in its process.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.core.identity
    }

    /// The role that this context was given.
    #[must_use]
    pub fn role(&self) -> &str {
        &self.core.role
    }

    /// The coordinator that this context belongs to.
    #[must_use]
    pub fn coordinator(&self) -> Coordinator {
        Coordinator {
            inner: self.core.inner.clone(),
        }
    }

    /// A further context, as [`Context::fork`](crate::Context::fork) makes
    /// them, with the role of this one or another. Its [mark](Erased::mark) is
    /// that of this one.
    #[must_use]
    pub fn fork(&self, role: Option<&str>) -> Erased {
        let role = role.map_or_else(|| self.core.role.clone(), Arc::from);
        let (core, mut changed) = self.core.copy(role, LayerCell::is_inherited);
        let mut copy = Erased {
            fields: self.fields.copy(),
            core,
            layout: self.layout,
            allowed: self.allowed,
        };
        if copy.core.complex || !changed.is_empty() {
            let (core, environment) = copy.parts();
            // SAFETY: `parts` gives the environment that the plan was made for.
            unsafe { core.reevaluate(environment, &mut changed, false) };
            core.settle();
        }
        copy
    }

    /// The layers entered here, to be [entered](Erased::enter) elsewhere.
    #[must_use]
    pub fn capture(&self) -> Captured {
        Captured::of(&self.core)
    }
}
