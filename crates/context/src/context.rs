//! The context: what a thread or a task holds.

use std::{marker::PhantomData, mem::MaybeUninit, ops::Deref, sync::Arc, time::Instant};

use milieu_keys::{NameError, Origin};

use crate::{
    Assign, Changed, Coordinator, Entered, Environment, Field, Invalid, Layer, LayerSet, Part,
    Policy, SwitchError, Threads, Value, Writable,
    coordinator::Inner,
    core::Core,
    entered::Captured,
    field::Texts,
    layer::{Binding, Id, LayerCell, Switch, without},
    schema::Plan,
};

/// What a new context is given.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    role: String,
}

impl ContextOptions {
    /// No role.
    #[must_use]
    pub fn new() -> Self {
        ContextOptions::default()
    }

    /// The context's role, a name such as `/gas-detection`. It stays the same
    /// for as long as the context exists; thread-based layers select by it.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.role = role.into();
        self
    }

    pub(crate) fn into_role(self) -> Arc<str> {
        self.role.into()
    }
}

/// The layers of one thread or task, and its environment.
///
/// It dereferences to the environment: reading a contextual value is reading a
/// field. It moves with its task, across `await` and between threads.
pub struct Context<E: Environment, P: Policy = Threads> {
    environment: E,
    pub(crate) core: Core,
    policy: PhantomData<fn() -> P>,
}

impl<E: Environment, P: Policy> Deref for Context<E, P> {
    type Target = E;
    #[inline]
    fn deref(&self) -> &E {
        &self.environment
    }
}

impl<E: Environment, P: Policy> std::fmt::Debug for Context<E, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("identity", &self.identity())
            .field("role", &self.role())
            .field("layers", &self.layers())
            .finish_non_exhaustive()
    }
}

impl<E: Environment, P: Policy> Context<E, P> {
    pub(crate) fn open(inner: Arc<Inner>, plan: Arc<Plan>, options: ContextOptions) -> Self {
        const {
            assert!(
                !std::mem::needs_drop::<E>(),
                "an environment consists of plain values only"
            );
        }
        let core = Core::new(inner, plan, options.into_role(), P::SHARED);
        let mut cx = Context {
            environment: E::initial(),
            core,
            policy: PhantomData,
        };
        let (core, environment) = cx.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe {
            core.reevaluate(environment, &mut Vec::new(), false);
            core.evaluate_all(environment);
        }
        core.settle();
        cx
    }

    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Core, *mut u8) {
        (&mut self.core, (&raw mut self.environment).cast())
    }

    /// Enters layers until the guard is dropped: by leaving the block, by `?`,
    /// by unwinding, by a task's cancellation. Only this context is affected.
    ///
    /// Several layers entered together, as a tuple, update each value once.
    #[inline]
    pub fn enter(&mut self, layers: impl LayerSet) -> Entered<'_, E, P> {
        let depth = if P::LAYERS {
            let (core, environment) = self.parts();
            // SAFETY: `parts` gives the environment that the plan was made for.
            unsafe { layers.enter(core, environment) }
        } else {
            0
        };
        Entered::new(self, depth)
    }

    /// Runs `block` with layers entered.
    #[inline]
    pub fn with<R>(&mut self, layers: impl LayerSet, block: impl FnOnce(&mut Self) -> R) -> R {
        block(&mut self.enter(layers))
    }

    /// Runs `block` with layer `L` inactive.
    #[inline]
    pub fn without<L: Layer, R>(&mut self, block: impl FnOnce(&mut Self) -> R) -> R {
        block(&mut self.enter(without::<L>()))
    }

    /// Runs an asynchronous `block` with layers entered; they stay with this
    /// context across every `await`.
    pub async fn with_async<R>(
        &mut self,
        layers: impl LayerSet,
        block: impl AsyncFnOnce(&mut Self) -> R,
    ) -> R {
        let mut entered = self.enter(layers);
        block(&mut entered).await
    }

    /// Activates a layer for everybody: here at once, in other contexts at
    /// their next synchronization. A layer that is active gets the new value.
    ///
    /// The order is: synchronize, switch here, publish, run actions.
    ///
    /// # Errors
    ///
    /// Refuses a cycle, of layers by way of contextual values or of actions;
    /// nothing has changed then.
    ///
    /// # Panics
    ///
    /// Goes on with the panic of an action once all others have run; the
    /// switch stands.
    pub fn activate(&mut self, layer: impl Switch) -> Result<(), SwitchError> {
        if !P::LAYERS {
            return Ok(());
        }
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.switch(environment, layer.id(), |core| layer.binding(core)) }
    }

    /// Deactivates a layer for everybody, as [`activate`](Context::activate) activates it.
    ///
    /// # Errors
    ///
    /// As [`activate`](Context::activate).
    pub fn deactivate<L: Layer>(&mut self) -> Result<(), SwitchError> {
        self.deactivate_id(Id::Static(L::ID))
    }

    /// Deactivates a layer by its identifier: thread-based layers, contextual
    /// values as layers, and layers that are only known at run time.
    ///
    /// # Errors
    ///
    /// As [`activate`](Context::activate).
    pub fn deactivate_named(&mut self, id: &str) -> Result<(), SwitchError> {
        self.deactivate_id(Id::Dynamic(id))
    }

    fn deactivate_id(&mut self, id: Id<'_>) -> Result<(), SwitchError> {
        if !P::LAYERS {
            return Ok(());
        }
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.switch(environment, id, |_| Binding::INACTIVE) }
    }

    /// Takes in what other contexts have activated, deactivated and assigned.
    /// With no news it is one comparison.
    #[inline]
    pub fn sync(&mut self) {
        if P::SHARED && self.core.has_news() {
            let (core, environment) = self.parts();
            // SAFETY: `parts` gives the environment that the plan was made for.
            unsafe { core.synchronize(environment) };
        }
    }

    /// Whether [`sync`](Context::sync) would find news.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        P::SHARED && self.core.has_news()
    }

    /// Sleeps until there is something to synchronize. With a deadline, says
    /// whether there is or whether time ran out.
    ///
    /// A context whose policy is not shared has no news, and returns `false` at once.
    pub fn wait(&self, deadline: impl Into<Option<Instant>>) -> bool {
        P::SHARED && self.core.wait(deadline.into())
    }

    /// Completes when there is something to synchronize. A context whose policy
    /// is not shared has no news, and waits for ever.
    #[must_use]
    pub fn changed(&self) -> Changed<'_> {
        Changed::new(&self.core)
    }

    /// Assigns a value, under the name that it has in the active layers. It is
    /// in the key set at once, and in other contexts at their next
    /// synchronization. It becomes the user's value, and is in force also where
    /// an option says something else.
    ///
    /// ```ignore
    /// cx.set::<at::sw::pi::language>("de")?;
    /// ```
    ///
    /// # Errors
    ///
    /// Refuses a value that breaks its rules; nothing has changed then.
    pub fn set<V>(&mut self, value: <V::Type as Field>::Input<'_>) -> Result<(), Invalid>
    where
        V: Assign + Value<Environment = E>,
        P: Writable,
    {
        let texts = <V::Type as Field>::texts(value);
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for, and
        // arrays are what takes several texts.
        unsafe {
            match texts {
                Texts::One(text) => core.assign(environment, V::INDEX, &text),
                Texts::Each(texts) => {
                    let texts = texts.iter().map(|text| &**text);
                    core.assign_all(environment, V::INDEX, texts)
                }
            }
        }
    }

    /// Removes the user's value, assigned or from a file, under the name that it
    /// has in the active layers. What is below it is then in force: an option,
    /// the system's value, a fallback, or the default.
    pub fn unset<V>(&mut self)
    where
        V: Assign + Value<Environment = E>,
        P: Writable,
    {
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.unset(environment, V::INDEX) };
    }

    /// Removes every key of the user, of those of this environment, that belongs
    /// to a value of a layer, such as all that a session has assigned, and gives
    /// its memory back.
    pub fn forget(&mut self, layer: impl Layer)
    where
        P: Writable,
    {
        let (core, environment) = self.parts();
        // SAFETY: `parts` gives the environment that the plan was made for.
        unsafe { core.forget(environment, layer.id(), &layer.value()) };
    }

    /// The name that a value has in the active layers.
    #[must_use]
    pub fn name<V: Value<Environment = E>>(&self) -> String {
        self.core.name_of(V::INDEX)
    }

    /// The text of a contextual value by its name with placeholders, as this
    /// context sees it; `None` for one that no environment of the coordinator
    /// describes.
    #[must_use]
    pub fn text(&self, pattern: &str) -> Option<&str> {
        self.core.text_of(pattern)
    }

    /// Who gave a value its present content: a file and line, an option, a
    /// variable; `None` for the default and for what the program assigned.
    #[must_use]
    pub fn origin<V: Value<Environment = E>>(&self) -> Option<&Origin> {
        self.core.column_of(V::INDEX)?.datum.origin.as_ref()
    }

    /// Whether a value is the default of its specification.
    #[must_use]
    pub fn is_default<V: Value<Environment = E>>(&self) -> bool {
        self.core.column_of(V::INDEX).is_none()
    }

    /// The elements of an array, as texts, up to the first index that has
    /// none, and all from one namespace. For arrays that are no field of an
    /// environment; their name, such as `/sw/%session%/hosts/#`, may have
    /// placeholders all the same.
    ///
    /// # Errors
    ///
    /// Fails where `array` is not a name.
    pub fn elements(&self, array: &str) -> Result<Vec<&str>, NameError> {
        self.core.elements_of(array)
    }

    /// The value of a layer that is active here, as its author gave it.
    #[must_use]
    pub fn layer<L: Layer>(&self) -> Option<String> {
        self.core.layer_text(L::ID).map(str::to_owned)
    }

    /// As [`layer`](Context::layer), by the layer's identifier.
    #[must_use]
    pub fn layer_named(&self, id: &str) -> Option<String> {
        self.core.layer_text(id).map(str::to_owned)
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

    /// A further context, for a task that is about to be spawned. Of the layers
    /// entered here it keeps those that say so ([`Layer::INHERITED`]).
    #[must_use]
    pub fn fork(&self) -> Self {
        self.copy(self.core.role.clone(), |cell| cell.is_inherited())
    }

    /// As [`fork`](Context::fork), with a role of its own.
    #[must_use]
    pub fn fork_as(&self, role: &str) -> Self {
        self.copy(role.into(), |cell| cell.is_inherited())
    }

    fn copy(&self, role: Arc<str>, keep: impl Fn(&LayerCell) -> bool) -> Self {
        let (core, mut changed) = self.core.copy(role, keep);
        let mut environment = MaybeUninit::<E>::uninit();
        // SAFETY: an environment consists of plain values (see `Environment`),
        // whose strings the copied core keeps alive as well.
        let environment = unsafe {
            std::ptr::copy_nonoverlapping(&raw const self.environment, environment.as_mut_ptr(), 1);
            environment.assume_init()
        };
        let mut copy = Context {
            environment,
            core,
            policy: PhantomData,
        };
        if copy.core.complex || !changed.is_empty() {
            let (core, environment) = copy.parts();
            // SAFETY: `parts` gives the environment that the plan was made for.
            unsafe { core.reevaluate(environment, &mut changed, false) };
            core.settle();
        }
        copy
    }

    /// The layers entered here, to be sent to another thread or task and
    /// [entered](Context::enter) there.
    #[must_use]
    pub fn capture(&self) -> Captured {
        Captured::of(&self.core)
    }

    /// Hands out a part of the environment, for functions that know no more:
    /// they read it, enter layers and synchronize.
    ///
    /// ```ignore
    /// calculate(&mut cx.part(|e| &e.algorithm));
    /// ```
    ///
    /// # Panics
    ///
    /// Panics where `pick` returns something that is not part of the environment.
    pub fn part<S>(&mut self, pick: impl for<'a> FnOnce(&'a E) -> &'a S) -> Part<'_, S> {
        let base = (&raw const self.environment).addr();
        let offset = std::ptr::from_ref(pick(&self.environment))
            .addr()
            .wrapping_sub(base);
        let fits = offset
            .checked_add(size_of::<S>())
            .is_some_and(|end| end <= size_of::<E>());
        assert!(
            fits,
            "`part` was given something that is not part of the environment"
        );
        let (core, environment) = self.parts();
        // SAFETY: the part was just found to lie inside the environment.
        unsafe { Part::new(core, environment, offset, P::LAYERS, P::SHARED) }
    }
}
