//! The guard of entered layers, and layers on their way to another thread.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use crate::{
    Context, Environment, LayerSet, Policy, Threads,
    coordinator::Inner,
    core::Core,
    frame::Filling,
    layer::{Binding, Global, Id},
};

/// Layers entered in a context, until this is dropped.
///
/// It is the context, for whoever needs one. Dropped while another context
/// stands in its place (both swapped by `std::mem::swap`), it panics rather
/// than let the layers be carried away unseen.
#[must_use = "the layers are left when the guard is dropped"]
pub struct Entered<'c, E: Environment, P: Policy = Threads> {
    context: &'c mut Context<E, P>,
    depth: usize,
    identity: u64,
}

impl<'c, E: Environment, P: Policy> Entered<'c, E, P> {
    #[inline]
    pub(crate) fn new(context: &'c mut Context<E, P>, depth: usize) -> Self {
        let identity = context.core.identity;
        Entered {
            context,
            depth,
            identity,
        }
    }
}

impl<E: Environment, P: Policy> Deref for Entered<'_, E, P> {
    type Target = Context<E, P>;
    #[inline]
    fn deref(&self) -> &Context<E, P> {
        self.context
    }
}

impl<E: Environment, P: Policy> DerefMut for Entered<'_, E, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Context<E, P> {
        self.context
    }
}

impl<E: Environment, P: Policy> Drop for Entered<'_, E, P> {
    #[inline]
    fn drop(&mut self) {
        if !P::LAYERS {
            return;
        }
        let (core, environment) = self.context.parts();
        let ours = core.identity == self.identity;
        // SAFETY: `parts` gives the environment that the plan was made for.
        if !ours || !unsafe { core.leave(environment, self.depth) } {
            swapped();
        }
    }
}

#[cold]
fn swapped() {
    assert!(
        std::thread::panicking(),
        "a context was swapped out of the guard of its layers and carries them away; \
         swap contexts only where no layer is entered"
    );
}

/// The layers that were entered in a context, for another one to enter.
#[derive(Clone)]
pub struct Captured {
    from: Arc<Inner>,
    layers: Vec<(Arc<str>, Global, String, bool)>,
}

impl Captured {
    pub(crate) fn of(core: &Core) -> Captured {
        let local = (0..).zip(&core.layers).filter(|(_, cell)| cell.is_local());
        let layers = local.map(|(slot, cell)| {
            let binding = core.binding_of(cell, slot);
            (
                core.inner.layer_id(slot),
                binding,
                cell.raw().to_owned(),
                cell.is_inherited(),
            )
        });
        Captured {
            from: core.inner.clone(),
            layers: layers.collect(),
        }
    }
}

impl LayerSet for Captured {
    fn fill(&self, frame: &mut Filling<'_>) {
        let same = Arc::ptr_eq(&self.from, &frame.core.inner);
        for (id, binding, text, inherited) in &self.layers {
            // Another coordinator numbers layers and values differently: it
            // gets what the layer was worth when it was captured.
            let binding = match binding {
                Global::Bound(bound) if same => Binding::Bound(bound.clone()),
                _ => Binding::Text(text.into()),
            };
            frame.core.cover(Id::Dynamic(id), &binding, *inherited);
        }
    }
}

impl LayerSet for &Captured {
    fn fill(&self, frame: &mut Filling<'_>) {
        (*self).fill(frame);
    }
}
