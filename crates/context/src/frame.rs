//! Entering and leaving layers.

use crate::{
    arena::{Mark, SHORT},
    core::{Core, Undo},
    failure::NOWHERE,
    layer::{Binding, Global, Id, LayerCell, Source},
    resolve::Slot,
};

/// Layers entered together, until they are left.
pub struct Frame {
    /// The epoch in which its undo is valid.
    epoch: u64,
    /// The first layer that it covered; most frames cover no other.
    slot: Slot,
    /// Where its part of `saved`, `undo`, `locals` and the arena begins.
    saved: u32,
    undo: u32,
    locals: u32,
    arena: Mark,
    covered: LayerCell,
    /// The short way of leaving is not for it: it covers nothing, or the arena
    /// began another chunk for it.
    longer: bool,
}

/// No layer.
const NONE: Slot = Slot::MAX;

/// A frame that is being filled. Dropped before it is complete, because a
/// layer's author panicked, it takes back what it had done.
#[doc(hidden)]
pub struct Filling<'a> {
    pub(crate) core: &'a mut Core,
    complete: bool,
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if !self.complete {
            if let Some(frame) = self.core.frames.pop() {
                self.core.uncover(&frame);
            }
        }
    }
}

impl Core {
    /// Begins a frame that covers no layer yet; returns its depth.
    #[allow(clippy::cast_possible_truncation)]
    fn begin(&mut self) -> usize {
        self.frames.push(Frame {
            epoch: self.epoch,
            slot: NONE,
            saved: self.saved.len() as u32,
            undo: self.undo.len() as u32,
            locals: self.locals.len() as u32,
            arena: self.arena.mark(),
            covered: LayerCell::INACTIVE,
            longer: false,
        });
        self.frames.len()
    }

    /// Begins the frame below all others in a copied context; nobody leaves it.
    pub fn begin_base(&mut self) {
        self.begin();
    }

    /// Covers a layer with a copy of another context's cell.
    pub fn cover_copy(&mut self, slot: Slot, binding: &Global, of: &LayerCell) {
        let binding = match binding {
            Global::Inactive => Binding::INACTIVE,
            Global::Text(text) => Binding::Text((&**text).into()),
            Global::Bound(bound) => Binding::Bound(bound.clone()),
        };
        self.cover_slot(slot, &binding, of.is_inherited());
    }

    /// Puts a layer over what was there; of two with the same identifier the
    /// last one wins.
    pub(crate) fn cover(&mut self, id: Id<'_>, binding: &Binding<'_>, inherited: bool) {
        let slot = self.slot(id);
        self.cover_slot(slot, binding, inherited);
    }

    fn cover_slot(&mut self, slot: Slot, binding: &Binding<'_>, inherited: bool) {
        let cell = self.local_cell(binding, inherited);
        let old = std::mem::replace(&mut self.layers[slot as usize], cell);
        self.complex |= old.is_bound();
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let start = frame.saved as usize;
        if frame.slot == NONE {
            (frame.slot, frame.covered) = (slot, old);
        } else if frame.slot != slot && !self.saved[start..].iter().any(|(s, _)| *s == slot) {
            self.saved.push((slot, old));
        }
    }

    /// A cell of the current frame.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn local_cell(&mut self, binding: &Binding<'_>, inherited: bool) -> LayerCell {
        let cell = match binding {
            // SAFETY: the arena keeps the text until the frame is left.
            Binding::Text(text) => unsafe { LayerCell::new(self.arena.push(text), text.len()) },
            Binding::Bound(bound) => {
                self.locals.push(bound.clone());
                self.rebind();
                LayerCell::INACTIVE.bound(Source::Local(self.locals.len() as u32 - 1))
            }
        };
        cell.local(inherited)
    }

    /// Enters one layer with a fixed value; returns the depth of its frame.
    ///
    /// The short way is for layers that touch nothing: it calls nothing, so
    /// that it needs few registers. Whatever it cannot do goes the longer way.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    #[inline]
    pub unsafe fn enter_text(
        &mut self,
        environment: *mut u8,
        id: &'static str,
        text: &str,
        inherited: bool,
    ) -> usize {
        let (untouching, slot) = self.untouching(id);
        if untouching
            && text.len() <= SHORT
            && self.arena.has_room(text.len())
            && self.frames.len() < self.frames.capacity()
            && !self.complex
        {
            // SAFETY: there is room for the short text, and for the frame.
            unsafe { self.push_text(slot, text, inherited) };
            return self.frames.len();
        }
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.enter_touching(environment, id, text, inherited) }
    }

    /// Begins a frame that covers one layer with a text.
    ///
    /// # Safety
    ///
    /// `layers` has the slot, `arena` room for the text, `frames` for a frame.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    unsafe fn push_text(&mut self, slot: Slot, text: &str, inherited: bool) {
        let arena = self.arena.mark();
        // SAFETY: as the caller vouches; the arena keeps the text until the
        // frame is left, and has refused what is too long.
        unsafe {
            let text_at = self.arena.push_fitting(text);
            let cell = LayerCell::new_local(text_at, text.len(), inherited);
            let place = self.layers.get_unchecked_mut(slot as usize);
            let end = self.frames.as_mut_ptr().add(self.frames.len());
            end.write(Frame {
                epoch: self.epoch,
                slot,
                saved: self.saved.len() as u32,
                undo: self.undo.len() as u32,
                locals: self.locals.len() as u32,
                arena,
                covered: *place,
                longer: false,
            });
            *place = cell;
            self.frames.set_len(self.frames.len() + 1);
        }
    }

    /// As [`enter_text`](Core::enter_text), for all cases.
    #[inline(never)]
    unsafe fn enter_touching(
        &mut self,
        environment: *mut u8,
        id: &'static str,
        text: &str,
        inherited: bool,
    ) -> usize {
        let slot = self.slot(Id::Static(id));
        let arena = self.arena.mark();
        self.arena.make_room(text.len());
        self.frames.reserve(1);
        // SAFETY: `slot`, `make_room` and `reserve` made the room.
        unsafe { self.push_text(slot, text, inherited) };
        if let Some(frame) = self.frames.last_mut() {
            frame.longer = self.arena.has_grown(arena);
            frame.arena = arena;
        }
        if self.complex {
            // SAFETY: the caller vouches for `environment`.
            return unsafe { self.entered(environment) };
        }
        if let Some(touched) = self.plan_ref().touched(slot) {
            self.layers[slot as usize].make_hash();
            // SAFETY: the caller vouches for `environment`.
            unsafe { self.evaluate_touched(environment, touched, true) };
        }
        self.frames.len()
    }

    /// Enters the layers that `fill` puts into the frame.
    ///
    /// # Safety
    ///
    /// As [`enter_text`](Core::enter_text).
    pub unsafe fn enter_set(
        &mut self,
        environment: *mut u8,
        fill: impl FnOnce(&mut Filling<'_>),
    ) -> usize {
        self.begin();
        let mut filling = Filling {
            core: self,
            complete: false,
        };
        fill(&mut filling);
        filling.complete = true;
        drop(filling);
        if let Some(frame) = self.frames.last_mut() {
            frame.longer = frame.slot == NONE || self.arena.has_grown(frame.arena);
        }
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.entered(environment) }
    }

    /// Evaluates what the layers of the current frame touch; returns its depth,
    /// or [`NOWHERE`] where a layer's author has failed and nothing unwinds.
    #[inline(never)]
    unsafe fn entered(&mut self, environment: *mut u8) -> usize {
        let mut changed = self
            .frames
            .last()
            .map(|f| self.slots(f))
            .unwrap_or_default();
        if changed
            .iter()
            .any(|slot| self.layers[*slot as usize].is_bound())
        {
            self.rebind();
        }
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.reevaluate(environment, &mut changed, true) };
        // While another panic passes, this one has to wait and the frame stays.
        if self.has_panicked() && !std::thread::panicking() {
            // SAFETY: as above.
            unsafe { self.leave(environment, self.frames.len()) };
            self.settle();
            return NOWHERE;
        }
        self.frames.len()
    }

    /// The layers that a frame covers.
    fn slots(&self, frame: &Frame) -> Vec<Slot> {
        let saved = self.saved[frame.saved as usize..]
            .iter()
            .map(|(slot, _)| *slot);
        std::iter::once(frame.slot)
            .filter(|slot| *slot != NONE)
            .chain(saved)
            .collect()
    }

    /// Every cell that frames have covered.
    pub fn covered_mut(&mut self) -> impl Iterator<Item = (Slot, &mut LayerCell)> {
        let frames = self
            .frames
            .iter_mut()
            .map(|frame| (frame.slot, &mut frame.covered));
        frames.chain(self.saved.iter_mut().map(|(slot, cell)| (*slot, cell)))
    }

    /// Leaves a frame and whatever was entered above it and not left.
    ///
    /// Returns false, and does nothing, where this context has no such frame.
    ///
    /// # Safety
    ///
    /// As [`enter_text`](Core::enter_text).
    #[inline]
    pub unsafe fn leave(&mut self, environment: *mut u8, depth: usize) -> bool {
        if self.frames.len() == depth && !self.complex {
            // SAFETY: guards have depths from 1 on, and this one is the last frame's.
            let frame = unsafe { self.frames.get_unchecked(depth - 1) };
            let touched_nothing = frame.epoch == self.epoch
                && !frame.longer
                && frame.undo as usize == self.undo.len()
                && frame.saved as usize == self.saved.len();
            if touched_nothing {
                // SAFETY: the slot had room when the frame was entered; the
                // arena has not grown since; frames own nothing, and one less
                // are left.
                unsafe {
                    *self.layers.get_unchecked_mut(frame.slot as usize) = frame.covered;
                    self.arena.pop_within(frame.arena);
                    self.frames.set_len(depth - 1);
                }
                return true;
            }
        }
        // SAFETY: as the caller vouches.
        unsafe { self.leave_several(environment, depth) }
    }

    #[inline(never)]
    unsafe fn leave_several(&mut self, environment: *mut u8, depth: usize) -> bool {
        if self.frames.len() < depth {
            return false;
        }
        while self.frames.len() >= depth {
            let Some(frame) = self.frames.pop() else {
                break;
            };
            // SAFETY: as the caller vouches.
            unsafe { self.leave_one(environment, frame) };
        }
        self.settle();
        true
    }

    #[inline]
    unsafe fn leave_one(&mut self, environment: *mut u8, frame: Frame) {
        if frame.epoch != self.epoch {
            // SAFETY: as the caller vouches.
            unsafe { self.leave_anew(environment, frame) };
            return;
        }
        while self.undo.len() > frame.undo as usize {
            let Some(Undo { value, cell, hash }) = self.undo.pop() else {
                break;
            };
            let planned = &self.plan.values[value as usize];
            self.hashes[value as usize] = hash;
            // SAFETY: the caller vouches for `environment`; the cell was
            // loaded from this very field, and what it points to is alive,
            // because `root` has not changed since (the epoch).
            unsafe { cell.store(planned.shape, environment.add(planned.offset as usize)) };
        }
        self.uncover(&frame);
    }

    /// Leaves a frame whose saved values are out of date.
    #[cold]
    unsafe fn leave_anew(&mut self, environment: *mut u8, mut frame: Frame) {
        let mut changed = self.slots(&frame);
        self.undo.truncate(frame.undo as usize);
        let saved = self.saved[frame.saved as usize..]
            .iter_mut()
            .map(|(_, cell)| cell);
        for cell in saved.chain([&mut frame.covered]) {
            if cell.is_bound() {
                // Its text may be gone by now; it is evaluated again.
                cell.clear();
            }
        }
        self.uncover(&frame);
        // SAFETY: as the caller vouches.
        unsafe { self.reevaluate(environment, &mut changed, false) };
    }

    /// Restores the layers that a frame covered.
    #[inline]
    fn uncover(&mut self, frame: &Frame) {
        if self.complex || self.saved.len() > frame.saved as usize {
            self.uncover_several(frame);
        }
        if frame.slot != NONE {
            self.layers[frame.slot as usize] = frame.covered;
        }
        self.arena.pop_to(frame.arena);
    }

    #[cold]
    fn uncover_several(&mut self, frame: &Frame) {
        for slot in self.slots(frame) {
            if self.layers[slot as usize].is_bound() {
                self.rebind();
            }
        }
        while self.saved.len() > frame.saved as usize {
            let Some((slot, cell)) = self.saved.pop() else {
                break;
            };
            self.layers[slot as usize] = cell;
            if cell.is_bound() {
                self.rebind();
            }
        }
        if frame.covered.is_bound() {
            self.rebind();
        }
        self.locals.truncate(frame.locals as usize);
    }
}
