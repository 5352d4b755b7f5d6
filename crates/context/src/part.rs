//! A part of an environment, with the context behind it.

use std::{marker::PhantomData, ops::Deref, ptr::NonNull};

use crate::{Layer, LayerSet, core::Core, layer::without};

/// A context as seen by a function that knows only a part of the environment.
///
/// Made by [`Context::part`](crate::Context::part). It dereferences to the part.
pub struct Part<'c, S> {
    core: &'c mut Core,
    environment: *mut u8,
    part: NonNull<S>,
    layers: bool,
    shared: bool,
    borrow: PhantomData<&'c mut S>,
}

// SAFETY: it is a `&mut Core` and a `&mut S`; the pointer to the environment is
// used only through them.
unsafe impl<S: Send> Send for Part<'_, S> {}
// SAFETY: as above; shared, it only reads the part.
unsafe impl<S: Sync> Sync for Part<'_, S> {}

impl<S> Deref for Part<'_, S> {
    type Target = S;
    #[inline]
    fn deref(&self) -> &S {
        // SAFETY: `new` was given a part inside the environment, which this
        // borrows for its whole life.
        unsafe { self.part.as_ref() }
    }
}

impl<'c, S> Part<'c, S> {
    /// # Safety
    ///
    /// `environment` is that of `core`, borrowed as long as `core` is, and an
    /// `S` lies at `offset` in it.
    pub(crate) unsafe fn new(
        core: &'c mut Core,
        environment: *mut u8,
        offset: usize,
        layers: bool,
        shared: bool,
    ) -> Self {
        // SAFETY: as the caller vouches.
        let part = unsafe { NonNull::new_unchecked(environment.add(offset)) }.cast();
        Part {
            core,
            environment,
            part,
            layers,
            shared,
            borrow: PhantomData,
        }
    }

    /// Runs `block` with layers entered.
    pub fn with<R>(
        &mut self,
        layers: impl LayerSet,
        block: impl FnOnce(&mut Part<'_, S>) -> R,
    ) -> R {
        if !self.layers {
            return block(&mut self.again());
        }
        // SAFETY: `new` was given the environment of `core`.
        let depth = unsafe { layers.enter(self.core, self.environment) };
        let leaving = Leaving { part: self, depth };
        block(&mut leaving.part.again())
    }

    /// Runs `block` with layer `L` inactive.
    pub fn without<L: Layer, R>(&mut self, block: impl FnOnce(&mut Part<'_, S>) -> R) -> R {
        self.with(without::<L>(), block)
    }

    /// Takes in what other contexts have published.
    #[inline]
    pub fn sync(&mut self) {
        if self.shared && self.core.has_news() {
            // SAFETY: `new` was given the environment of `core`.
            unsafe { self.core.synchronize(self.environment) };
        }
    }

    fn again(&mut self) -> Part<'_, S> {
        Part {
            core: self.core,
            environment: self.environment,
            part: self.part,
            layers: self.layers,
            shared: self.shared,
            borrow: PhantomData,
        }
    }
}

/// Leaves the layers also where the block unwinds.
struct Leaving<'a, 'c, S> {
    part: &'a mut Part<'c, S>,
    depth: usize,
}

impl<S> Drop for Leaving<'_, '_, S> {
    fn drop(&mut self) {
        // SAFETY: `Part::new` was given the environment of `core`.
        unsafe { self.part.core.leave(self.part.environment, self.depth) };
    }
}
