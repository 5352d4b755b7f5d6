//! Going back: a layer that is switched to and fro has two states, and a context
//! keeps what it needs for the one that it has left.
//!
//! ```text
//!   in force   globals[slot]   layers[slot]   fields of the environment, hashes
//!                   ⇅               ⇅                      ⇅
//!   kept       binding         cell           fields
//! ```
//!
//! To go back is to exchange the two. Nothing is looked up, allocated or counted,
//! and what is read lies side by side: who switches now and then, between other
//! work, finds little of what a lookup takes in the cache.
//!
//! It is kept of the last switch alone, where no frame is entered and every layer
//! has a fixed value; and it is good for as long as the epoch in which that switch
//! was made. Every change of the root and of global layers moves the epoch, so
//! that texts to which kept fields point are still there.

use crate::{
    core::{Core, Undo},
    field::{Cell, Shape},
    layer::{Global, LayerCell},
    news::Short,
    resolve::Slot,
};

/// See the [module](self).
pub struct Back {
    /// The epoch that the last switch led to.
    epoch: u64,
    /// What that switched to, and what it switched from.
    here: Short,
    there: Short,
    cell: LayerCell,
    binding: Global,
    fields: Vec<Kept>,
}

/// A field as it was before the last switch.
struct Kept {
    cell: Cell,
    hash: u64,
    value: u32,
    offset: u32,
    shape: Shape,
}

/// No epoch.
const NEVER: u64 = u64::MAX;

impl Back {
    /// Nothing is kept.
    pub fn none() -> Back {
        Back {
            epoch: NEVER,
            here: Short::NONE,
            there: Short::NONE,
            cell: LayerCell::INACTIVE,
            binding: Global::Inactive,
            fields: Vec::new(),
        }
    }

    /// The binding that the layer had before the last switch.
    pub fn binding(&self) -> &Global {
        &self.binding
    }
}

impl Core {
    /// Follows a switch, if it leads back or to where this context is anyway.
    /// Says whether it was so; nothing has changed otherwise.
    ///
    /// # Safety
    ///
    /// There is a way back from here, and `environment` is the environment that
    /// `plan` describes.
    #[inline]
    pub unsafe fn follow(&mut self, environment: *mut u8, switch: Short) -> bool {
        if self.back.here == switch {
            return true;
        }
        let leads_back = self.back.there == switch;
        if leads_back {
            // SAFETY: as the caller vouches.
            unsafe { self.go_back(environment) };
        }
        leads_back
    }

    /// Whether a switch leads back.
    #[inline]
    pub fn leads_back(&self, switch: Short) -> bool {
        self.back.there == switch && self.knows_back()
    }

    /// Whether there is a way back from here.
    #[inline]
    pub fn knows_back(&self) -> bool {
        self.back.epoch == self.epoch && self.keeps()
    }

    /// Whether a switch made now can be kept.
    #[inline]
    fn keeps(&self) -> bool {
        self.frames.is_empty() && !self.complex
    }

    /// Goes back.
    ///
    /// # Safety
    ///
    /// There is a way back from here, and `environment` is the environment that
    /// `plan` describes.
    pub unsafe fn go_back(&mut self, environment: *mut u8) {
        debug_assert!(self.knows_back());
        self.epoch += 1;
        let back = &mut self.back;
        back.epoch = self.epoch;
        std::mem::swap(&mut back.here, &mut back.there);
        let slot = back.here.slot as usize;
        std::mem::swap(&mut back.cell, &mut self.layers[slot]);
        std::mem::swap(&mut back.binding, &mut self.globals[slot]);
        for kept in &mut back.fields {
            // SAFETY: the caller vouches for `environment`; the cell was loaded
            // from this very field, and what it points to is alive, because
            // `root` has not changed since (the epoch).
            kept.cell = unsafe {
                let field = environment.add(kept.offset as usize);
                kept.cell.exchange(kept.shape, field)
            };
            std::mem::swap(&mut kept.hash, &mut self.hashes[kept.value as usize]);
        }
    }

    /// Switches a layer, and keeps the way back, if that can be kept; `None` then,
    /// and otherwise the binding, and nothing has changed.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    pub unsafe fn switch_and_keep(
        &mut self,
        environment: *mut u8,
        slot: Slot,
        binding: Global,
    ) -> Option<Global> {
        self.make_room(slot);
        let there = Short::of(slot, self.global(slot));
        let (Some(there), Some(here), true) = (there, Short::of(slot, &binding), self.keeps())
        else {
            return Some(binding);
        };
        // Back would be here.
        if there == here {
            return Some(binding);
        }
        self.epoch += 1;
        let index = slot as usize;
        self.back.cell = self.layers[index];
        self.back.binding = std::mem::replace(&mut self.globals[index], binding);
        self.layers[index] = self.global_cell(slot);
        let plan = self.plan_ref();
        if let Some(touched) = plan.touched(slot) {
            // SAFETY: the caller vouches for `environment`.
            unsafe { self.evaluate_touched(environment, touched, true) };
        }
        let kept = |Undo { value, cell, hash }| {
            let planned = &plan.values[value as usize];
            Kept {
                cell,
                hash,
                value,
                offset: planned.offset,
                shape: planned.shape,
            }
        };
        self.back.fields.clear();
        // Without a frame, all there is to undo is what has just been evaluated.
        self.back.fields.extend(self.undo.drain(..).map(kept));
        (self.back.here, self.back.there) = (here, there);
        self.back.epoch = self.epoch;
        None
    }
}
