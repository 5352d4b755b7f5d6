//! Immediate actions on activation and deactivation (CoElektra, III-F).
//!
//! Actions run in the thread that switches a layer globally, after the switch
//! is published, so that an action that joins threads does not wait for them to
//! learn why. A switch inside an action takes effect at once, while its own
//! actions queue behind those that run. Each switch knows which switches caused
//! it, and one that would cause itself is refused.

use std::{
    cell::RefCell,
    collections::VecDeque,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::{
    Coordinator, Following, Layer, Layout, OpenError, SwitchError,
    coordinator::Inner,
    core::Core,
    failure::{Failed, go_on},
    layer::{Binding, Global, Id, Switch, layer_of},
    resolve::Slot,
    sync::{self, Condvar, Mutex, lock, thread_local},
};

/// What happened to a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transition {
    Activation,
    Deactivation,
}

impl Transition {
    /// What a switch to this binding is.
    pub(crate) fn to(binding: &Global) -> Transition {
        match binding {
            Global::Inactive => Transition::Deactivation,
            _ => Transition::Activation,
        }
    }
}

type Run = dyn Fn(&mut Activation<'_>) + Send + Sync;

/// One registered action.
struct Action {
    run: Box<Run>,
    /// How often it runs right now, and whether it must not start again.
    running: Mutex<(usize, bool)>,
    idle: Condvar,
}

/// What an action is registered for.
type Key = (Slot, Transition);

/// By their keys; those with one key in the order in which they came.
type Table = Vec<(Key, Arc<Action>)>;

/// Where the actions of a key stand, or would.
fn places(table: &Table, key: Key) -> Range<usize> {
    let start = table.partition_point(|(other, _)| *other < key);
    let count = table[start..].iter().take_while(|(other, _)| *other == key);
    start..start + count.count()
}

/// The actions of a coordinator.
#[derive(Default)]
pub struct Actions {
    table: Mutex<Table>,
}

/// Keeps an action registered. Dropping it waits until the action, if it runs
/// in another thread, has ended; inside the action itself it does not wait.
#[must_use = "the action is removed when its registration is dropped"]
pub struct Registration {
    inner: Arc<Inner>,
    key: Key,
    action: Arc<Action>,
}

/// What an action gets to see, and its handle to switch further layers.
pub struct Activation<'a> {
    layer: Arc<str>,
    value: String,
    core: &'a mut Core,
    environment: *mut u8,
    failed: Option<Failed>,
}

impl Activation<'_> {
    /// The layer's identifier.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// The value that the layer got; empty on deactivation. For a layer that
    /// each context evaluates it is the value in the activating context.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Activates a layer in the activating thread's context. It takes effect
    /// at once; its actions run after those that run now.
    ///
    /// # Errors
    ///
    /// Refuses a cycle; nothing has changed then.
    pub fn activate(&mut self, layer: impl Switch) -> Result<(), SwitchError> {
        // SAFETY: `act` got the environment of this very core.
        unsafe {
            self.core
                .switch(self.environment, layer.id(), |core| layer.binding(core))
        }
    }

    /// Deactivates a layer, as [`activate`](Activation::activate) activates one.
    ///
    /// # Errors
    ///
    /// As [`activate`](Activation::activate).
    pub fn deactivate<L: Layer>(&mut self) -> Result<(), SwitchError> {
        self.deactivate_id(Id::Static(L::ID))
    }

    /// Deactivates a layer by its identifier.
    ///
    /// # Errors
    ///
    /// As [`activate`](Activation::activate).
    pub fn deactivate_named(&mut self, id: &str) -> Result<(), SwitchError> {
        self.deactivate_id(Id::Dynamic(id))
    }

    /// A contextual value as a layer, by its place in what describes an environment: any, for
    /// one action runs for contexts of several. Compare [`value`](crate::value).
    ///
    /// # Errors
    ///
    /// Fails where no environment of the coordinator has the value, and none could.
    ///
    /// # Panics
    ///
    /// Panics where there is no such value.
    pub fn following(&self, layout: &'static Layout, index: usize) -> Result<Following, OpenError> {
        let descriptor = &layout.values()[index];
        Ok(Following {
            id: layer_of(descriptor),
            spec: self.core.spec(descriptor)?,
        })
    }

    /// Says that the action has failed, for one that cannot panic: what a panic
    /// with this payload would lead to comes when the action returns.
    #[doc(hidden)]
    pub fn fail(&mut self, failed: Failed) {
        self.failed = Some(failed);
    }

    fn deactivate_id(&mut self, id: Id<'_>) -> Result<(), SwitchError> {
        // SAFETY: as in `activate`.
        unsafe {
            self.core
                .switch(self.environment, id, |_| Binding::INACTIVE)
        }
    }
}

impl Coordinator {
    /// Runs `action` whenever layer `L` is activated globally: it was inactive
    /// or had another value. Local `with` and `enter` do not run it.
    ///
    /// ```
    /// # use std::{borrow::Cow, sync::atomic::{AtomicBool, Ordering}, sync::Arc};
    /// # use milieu_context::{Coordinator, Layer};
    /// # struct Tamper;
    /// # impl Layer for Tamper {
    /// #     const ID: &'static str = "tamper";
    /// #     fn value(&self) -> Cow<'_, str> { "active".into() }
    /// # }
    /// # fn remove_private_keys() {}
    /// let coordinator = Coordinator::new();
    /// let registration = coordinator.on_activation::<Tamper>(|_| remove_private_keys());
    /// ```
    pub fn on_activation<L: Layer>(
        &self,
        action: impl Fn(&mut Activation<'_>) + Send + Sync + 'static,
    ) -> Registration {
        self.register(L::ID, Transition::Activation, Box::new(action))
    }

    /// Runs `action` whenever layer `L` is deactivated globally: like `atexit`, for layers.
    pub fn on_deactivation<L: Layer>(
        &self,
        action: impl Fn(&mut Activation<'_>) + Send + Sync + 'static,
    ) -> Registration {
        self.register(L::ID, Transition::Deactivation, Box::new(action))
    }

    /// As [`on_activation`](Coordinator::on_activation), by the layer's identifier.
    pub fn on_activation_named(
        &self,
        id: &str,
        action: impl Fn(&mut Activation<'_>) + Send + Sync + 'static,
    ) -> Registration {
        self.register(id, Transition::Activation, Box::new(action))
    }

    /// As [`on_deactivation`](Coordinator::on_deactivation), by the layer's identifier.
    pub fn on_deactivation_named(
        &self,
        id: &str,
        action: impl Fn(&mut Activation<'_>) + Send + Sync + 'static,
    ) -> Registration {
        self.register(id, Transition::Deactivation, Box::new(action))
    }

    /// Runs `action` whenever the layer of this identifier is activated globally
    /// or deactivated: for those who know layers by name only.
    pub fn on_switch(
        &self,
        id: &str,
        action: impl Fn(&mut Activation<'_>) + Send + Sync + 'static,
    ) -> [Registration; 2] {
        let action = Arc::new(action);
        let again = Arc::clone(&action);
        [
            self.register(id, Transition::Activation, Box::new(move |it| action(it))),
            self.register(id, Transition::Deactivation, Box::new(move |it| again(it))),
        ]
    }

    fn register(&self, id: &str, transition: Transition, run: Box<Run>) -> Registration {
        let inner = self.inner.clone();
        let slot = inner.slot(id);
        let action = Arc::new(Action {
            run,
            running: Mutex::new((0, false)),
            idle: Condvar::new(),
        });
        let key = (slot, transition);
        let mut table = lock(&inner.actions.table);
        let end = places(&table, key).end;
        table.insert(end, (key, action.clone()));
        drop(table);
        inner.state().live.slots[slot as usize].acting = true;
        Registration { inner, key, action }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut table = lock(&self.inner.actions.table);
        let is_it = |(_, other): &(Key, Arc<Action>)| Arc::ptr_eq(other, &self.action);
        let mut places = places(&table, self.key);
        let place = places.find(|place| is_it(&table[*place]));
        let removed = place.map(|place| table.remove(place));
        drop(table);
        drop(removed);
        let own = RUNS.with(|runs| {
            let runs = runs.borrow();
            runs.acting
                .iter()
                .filter(|other| Arc::ptr_eq(other, &self.action))
                .count()
        });
        let mut running = lock(&self.action.running);
        running.1 = true;
        while running.0 > own {
            running = sync::wait(&self.action.idle, running);
        }
    }
}

/// A switch, by coordinator, layer and direction.
type Cause = (usize, Slot, Transition);

/// A switch whose actions have to run.
struct Item {
    slot: Slot,
    transition: Transition,
    value: String,
    causes: Vec<Cause>,
}

/// The actions of this thread.
#[derive(Default)]
struct Runs {
    /// The switches that led to the action that runs now.
    causes: Vec<Cause>,
    /// Switches whose actions wait, by coordinator.
    queues: Vec<(usize, VecDeque<Item>)>,
    acting: Vec<Arc<Action>>,
}

thread_local! {
    static RUNS: RefCell<Runs> = RefCell::new(Runs::default());
}

fn number(core: &Core) -> usize {
    Arc::as_ptr(&core.inner).addr()
}

/// Refuses a switch that has caused the action that asks for it.
pub fn check_cause(core: &Core, slot: Slot, transition: Transition) -> Result<(), SwitchError> {
    let caused = RUNS.with(|runs| {
        let runs = runs.borrow();
        !runs.causes.is_empty() && runs.causes.contains(&(number(core), slot, transition))
    });
    if caused {
        let layer = core.inner.layer_id(slot).as_ref().into();
        return Err(SwitchError::ActionCycle { layer });
    }
    Ok(())
}

/// Runs the actions of a switch, or queues them behind those that run.
///
/// # Safety
///
/// `environment` is the environment of `core`.
#[cold]
pub unsafe fn act(core: &mut Core, environment: *mut u8, slot: Slot, transition: Transition) {
    let coordinator = number(core);
    let value = core.global_text(slot).to_owned();
    let runs_already = RUNS.with(|runs| {
        let mut runs = runs.borrow_mut();
        let item = Item {
            slot,
            transition,
            value,
            causes: runs.causes.clone(),
        };
        let queue = runs
            .queues
            .iter_mut()
            .find(|(other, _)| *other == coordinator);
        match queue {
            Some((_, queue)) => {
                queue.push_back(item);
                true
            }
            None => {
                runs.queues.push((coordinator, VecDeque::from([item])));
                false
            }
        }
    });
    if runs_already {
        return;
    }
    let mut failed = None;
    while let Some(item) = next_item(coordinator) {
        // SAFETY: as the caller vouches.
        unsafe { run_item(core, environment, item, &mut failed) };
    }
    RUNS.with(|runs| {
        runs.borrow_mut()
            .queues
            .retain(|(other, _)| *other != coordinator)
    });
    if let Some(failed) = failed {
        go_on(failed);
    }
}

fn next_item(coordinator: usize) -> Option<Item> {
    RUNS.with(|runs| {
        let mut runs = runs.borrow_mut();
        let (_, queue) = runs
            .queues
            .iter_mut()
            .find(|(other, _)| *other == coordinator)?;
        queue.pop_front()
    })
}

/// Runs the actions of one switch; the first failure is kept, the others run.
///
/// # Safety
///
/// As [`act`].
unsafe fn run_item(core: &mut Core, environment: *mut u8, item: Item, failed: &mut Option<Failed>) {
    let Item {
        slot,
        transition,
        value,
        mut causes,
    } = item;
    causes.push((number(core), slot, transition));
    let outer = RUNS.with(|runs| std::mem::replace(&mut runs.borrow_mut().causes, causes));
    let table = lock(&core.inner.actions.table);
    let actions = table[places(&table, (slot, transition))].to_vec();
    drop(table);
    let layer = core.inner.layer_id(slot);
    for (_, action) in actions {
        if !action.start() {
            continue;
        }
        let mut activation = Activation {
            layer: layer.clone(),
            value: value.clone(),
            core,
            environment,
            failed: None,
        };
        let result = catch_unwind(AssertUnwindSafe(|| (action.run)(&mut activation)));
        action.end();
        if let Some(this) = result.err().or(activation.failed) {
            failed.get_or_insert(this);
        }
    }
    RUNS.with(|runs| runs.borrow_mut().causes = outer);
}

impl Action {
    /// Notes that it runs in this thread, unless its registration is gone.
    fn start(self: &Arc<Self>) -> bool {
        let mut running = lock(&self.running);
        if running.1 {
            return false;
        }
        running.0 += 1;
        drop(running);
        RUNS.with(|runs| runs.borrow_mut().acting.push(self.clone()));
        true
    }

    fn end(&self) {
        let gone = RUNS.with(|runs| runs.borrow_mut().acting.pop());
        lock(&self.running).0 -= 1;
        self.idle.notify_all();
        drop(gone);
    }
}
