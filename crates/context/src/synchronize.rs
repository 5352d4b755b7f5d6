//! Synchronization points (CoElektra, III-D) and switches that everybody sees.

use std::sync::Arc;

use milieu_keys::sort;

use crate::{
    SwitchError,
    actions::{self, Transition},
    coordinator::Published,
    core::{Core, Pending, first_pattern},
    evaluate::marked,
    layer::{Binding, Global, Id},
    map::{Map, Place},
    news::Short,
    resolve::Slot,
};

/// The binding of a layer to a text. Whoever has had this text last for the
/// layer shares it.
fn fixed(texts: &mut Vec<Arc<str>>, slot: Slot, text: &str) -> Global {
    if text.is_empty() {
        return Global::Inactive;
    }
    let slot = slot as usize;
    if texts.len() <= slot {
        texts.resize(slot + 1, Arc::from(""));
    }
    if *texts[slot] != *text {
        texts[slot] = text.into();
    }
    Global::Text(texts[slot].clone())
}

#[allow(clippy::large_enum_variant)] // It lives on the stack, once.
/// The keys that have changed since a context last looked.
enum Keys {
    None,
    Some([u64; crate::coordinator::RING], usize),
    All,
}

impl Core {
    /// Takes in what others have published.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    #[inline(never)]
    pub unsafe fn synchronize(&mut self, environment: *mut u8) {
        if self.knows_back() && self.pending.is_empty() {
            if let Some((generation, switch)) = self.inner.news.latest(self.seen) {
                // SAFETY: the caller vouches for `environment`.
                if unsafe { self.follow(environment, switch) } {
                    self.seen = generation;
                    return self.settle();
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.take_in(environment) };
    }

    /// As [`synchronize`](Core::synchronize), whatever there is.
    #[cold]
    unsafe fn take_in(&mut self, environment: *mut u8) {
        let Some((root, keys)) = self.take_news() else {
            return;
        };
        if let ([_], None, Keys::None, true) =
            (&self.adopted[..], &root, &keys, self.pending.is_empty())
        {
            if let Some((slot, binding)) = self.adopted.pop() {
                // SAFETY: the caller vouches for `environment`.
                unsafe { self.switch_here(environment, slot, binding) };
            }
            return self.settle();
        }
        self.epoch += 1;
        // String fields may point into the old root until they are evaluated.
        let old = root.map(|root| std::mem::replace(&mut self.root, root));
        let mut changed = std::mem::take(&mut self.changed);
        let mut adopted = std::mem::take(&mut self.adopted);
        for (slot, binding) in adopted.drain(..) {
            if self.set_global(slot, binding) {
                changed.push(slot);
            }
        }
        self.adopted = adopted;
        for (_, pending) in self.pending.clone() {
            match pending {
                Pending::Switch(slot, binding) => {
                    if self.set_global(slot, binding) {
                        changed.push(slot);
                    }
                }
                Pending::Key(place, edit) => self.inner.apply(&mut self.root, place, edit),
                Pending::Array(edit) => {
                    self.inner
                        .apply_array(&mut self.root, &edit, &mut Vec::new());
                }
            }
        }
        // SAFETY: the caller vouches for `environment`.
        unsafe {
            self.reevaluate(environment, &mut changed, false);
            match keys {
                Keys::None => {}
                Keys::All => self.evaluate_all(environment),
                Keys::Some(hashes, count) => self.evaluate_keys(environment, &hashes[..count]),
            }
        }
        drop(old);
        changed.clear();
        self.changed = changed;
        self.settle();
    }

    /// Copies, in one short section, what has been published since: switches
    /// to `adopted`, the root if it is another one, and which keys have changed.
    ///
    /// What threads share is written to no more than it has to be: a count of
    /// references is another processor's memory, mostly.
    fn take_news(&mut self) -> Option<(Option<Map>, Keys)> {
        if self.take_switches() {
            return Some((None, Keys::None));
        }
        loop {
            let state = self.inner.state();
            let (view, frozen) = match &state.frozen {
                Some(view) => (view, true),
                None => (&state.live, false),
            };
            if view.generation == self.seen {
                return None;
            }
            let seen = self.seen;
            for (slot, state) in (0..).zip(&view.slots) {
                if state.changed > seen && self.adopted.len() < self.adopted.capacity() {
                    self.adopted.push((slot, state.binding.clone()));
                }
            }
            if self.adopted.len() == self.adopted.capacity() {
                // There may be more, and nothing is allocated while the state is locked.
                let count = view.slots.len() + 1;
                drop(state);
                self.adopted.clear();
                self.adopted.reserve(count);
                continue;
            }
            let keys = match state.keys.since(seen) {
                _ if frozen || !self.pending.is_empty() => Keys::All,
                None => Keys::All,
                Some(since) => {
                    let mut hashes = [0; crate::coordinator::RING];
                    let mut count = 0;
                    for hash in since {
                        hashes[count] = hash;
                        count += 1;
                    }
                    if count == 0 {
                        Keys::None
                    } else {
                        Keys::Some(hashes, count)
                    }
                }
            };
            self.seen = view.generation;
            let shown = view.generation;
            // Pending changes are made to a copy, as fields point into this one.
            let same = self.pending.is_empty() && self.root.is_copy_of(&view.root);
            self.pending.retain(|(generation, _)| *generation > shown);
            return Some(((!same).then(|| view.root.clone()), keys));
        }
    }

    /// The same where nothing has happened but a switch or two that are noted,
    /// which takes no lock; says whether it was so.
    fn take_switches(&mut self) -> bool {
        if !self.pending.is_empty() {
            return false;
        }
        let Some((generation, switches)) = self.inner.news.since(self.seen) else {
            return false;
        };
        for switch in switches {
            let Some(text) = switch.text() else {
                self.adopted.clear();
                return false;
            };
            let binding = fixed(&mut self.texts, switch.slot, text);
            self.adopted.push((switch.slot, binding));
        }
        self.seen = generation;
        true
    }

    /// Evaluates the values whose current names are among `hashes`, and those
    /// whose names are several.
    ///
    /// # Safety
    ///
    /// As [`synchronize`](Core::synchronize).
    pub unsafe fn evaluate_keys(&mut self, environment: *mut u8, hashes: &[u64]) {
        if self.mark_keys(hashes) {
            let plan = self.plan_ref();
            // SAFETY: the caller vouches for `environment`.
            unsafe { self.evaluate(environment, &plan.all, false, marked) };
        }
    }

    /// Switches a layer for everybody: synchronize, switch here, publish, act.
    ///
    /// # Errors
    ///
    /// Refuses a switch that would close a cycle; nothing has changed then but
    /// that the context has synchronized.
    ///
    /// # Safety
    ///
    /// As [`synchronize`](Core::synchronize).
    pub unsafe fn switch<'b>(
        &mut self,
        environment: *mut u8,
        id: Id<'_>,
        make: impl FnOnce(&Core) -> Binding<'b>,
    ) -> Result<(), SwitchError> {
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.sync_if_shared(environment) };
        let slot = self.slot(id);
        let binding = make(self);
        if let Binding::Text(value) = &binding {
            if Short::to(slot, value).is_some_and(|switch| self.leads_back(switch)) {
                // SAFETY: it leads back, and the caller vouches for `environment`.
                return unsafe { self.switch_back(environment, slot) };
            }
        }
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.switch_to(environment, slot, Global::new(binding)) }
    }

    /// Switches the layer back that was switched last.
    ///
    /// # Safety
    ///
    /// There is a way back from here, and otherwise as
    /// [`synchronize`](Core::synchronize).
    unsafe fn switch_back(&mut self, environment: *mut u8, slot: Slot) -> Result<(), SwitchError> {
        let transition = Transition::to(self.back.binding());
        actions::check_cause(self, slot, transition)?;
        // SAFETY: as the caller vouches.
        unsafe { self.go_back(environment) };
        let binding = self.global(slot).clone();
        let published = self.inner.publish_fixed(slot, binding);
        // SAFETY: as the caller vouches.
        unsafe { self.switched(environment, slot, transition, published) };
        Ok(())
    }

    /// Ends a switch that is published: notes it, and runs the actions.
    ///
    /// # Safety
    ///
    /// As [`synchronize`](Core::synchronize).
    #[inline]
    unsafe fn switched(
        &mut self,
        environment: *mut u8,
        slot: Slot,
        transition: Transition,
        published: Published,
    ) {
        let binding = published.pending.then(|| self.global(slot).clone());
        self.published(published, || binding.map(|it| Pending::Switch(slot, it)));
        if published.acting {
            // SAFETY: the caller vouches for `environment`.
            unsafe { actions::act(self, environment, slot, transition) };
        }
        self.settle();
    }

    /// Switches a layer, whatever it was.
    ///
    /// # Safety
    ///
    /// As [`synchronize`](Core::synchronize).
    #[inline(never)]
    unsafe fn switch_to(
        &mut self,
        environment: *mut u8,
        slot: Slot,
        binding: Global,
    ) -> Result<(), SwitchError> {
        if self.global(slot).same_fixed(&binding) && self.inner.is_so(slot, &binding) {
            return Ok(());
        }
        let transition = Transition::to(&binding);
        actions::check_cause(self, slot, transition)?;
        if let Global::Bound(bound) = &binding {
            if let Some(way) = self.cycle(slot, Some(bound)) {
                return Err(self.cycle_error(slot, &way, &binding));
            }
        }
        // Only what depends on other layers can be refused from here on.
        let before = match &binding {
            Global::Bound(_) => self.global(slot).clone(),
            _ => Global::Inactive,
        };
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.switch_here(environment, slot, binding.clone()) };
        match self.inner.publish_switch(slot, binding.clone()) {
            Ok(published) => {
                // SAFETY: as above.
                unsafe { self.switched(environment, slot, transition, published) };
                Ok(())
            }
            Err(way) => {
                // Another thread has published the other half of a cycle.
                // SAFETY: the caller vouches for `environment`.
                unsafe { self.switch_here(environment, slot, before) };
                Err(self.cycle_error(slot, &way, &binding))
            }
        }
    }

    /// # Safety
    ///
    /// As [`synchronize`](Core::synchronize).
    unsafe fn switch_here(&mut self, environment: *mut u8, slot: Slot, binding: Global) {
        // SAFETY: as the caller vouches.
        let binding = match unsafe { self.switch_and_keep(environment, slot, binding) } {
            Some(binding) => binding,
            None => return,
        };
        self.epoch += 1;
        let mut changed = Vec::new();
        if self.set_global(slot, binding) {
            if !self.complex {
                let plan = self.plan_ref();
                if let Some(touched) = plan.touched(slot) {
                    // SAFETY: the caller vouches for `environment`.
                    unsafe { self.evaluate_touched(environment, touched, false) };
                }
                return;
            }
            changed.push(slot);
        }
        // SAFETY: the caller vouches for `environment`.
        unsafe { self.reevaluate(environment, &mut changed, false) };
    }

    /// Synchronizes, unless the context's policy is to be alone.
    ///
    /// # Safety
    ///
    /// As [`synchronize`](Core::synchronize).
    #[inline]
    pub unsafe fn sync_if_shared(&mut self, environment: *mut u8) {
        if self.shared && self.has_news() {
            // SAFETY: as the caller vouches.
            unsafe { self.synchronize(environment) };
        }
    }

    /// Notes an own publication: one that follows directly on what this
    /// context has seen is no news to it.
    pub fn published<P: IntoIterator<Item = Pending>>(
        &mut self,
        published: Published,
        pending: impl FnOnce() -> P,
    ) {
        if published.pending {
            for pending in pending() {
                self.remember(published.generation, pending);
            }
        } else if published.generation == self.seen + 1 {
            self.seen = published.generation;
        }
    }

    /// Keeps an own publication until everybody sees it. Of several for one
    /// layer or key the last counts, so that a long hold costs no more memory
    /// than there are layers and keys.
    fn remember(&mut self, generation: u64, pending: Pending) {
        if !self.shared {
            // It never synchronizes, so nothing ever covers its own changes.
            return;
        }
        self.pending.push((generation, pending));
        let count = self.pending.len();
        if count >= 64 && count.is_power_of_two() {
            keep_last(&mut self.pending);
        }
    }

    /// What is said of a way that leads back to a layer if it gets this binding.
    fn cycle_error(&self, slot: Slot, way: &[Slot], binding: &Global) -> SwitchError {
        let through = way.iter().filter_map(|&on_the_way| match binding {
            Global::Bound(bound) if on_the_way == slot => first_pattern(bound),
            _ => self.patterns(on_the_way),
        });
        SwitchError::Cycle {
            layer: self.inner.layer_id(slot).as_ref().into(),
            through: through.collect(),
        }
    }
}

/// Keeps the last of several for one layer or key.
fn keep_last(pending: &mut Vec<(u64, Pending)>) {
    // What it is for, and whether it makes up for those before it.
    let what = |at: usize| match &pending[at].1 {
        Pending::Switch(slot, _) => ((Some(*slot), Place::default()), true),
        Pending::Key(place, _) => ((None, *place), true),
        // Only one that begins by clearing the array makes up for others.
        Pending::Array(edit) => ((None, edit.array.place), edit.cleared),
    };
    let mut last_first: Vec<usize> = (0..pending.len()).rev().collect();
    sort::by(&mut last_first, |&a, &b| what(a).0.cmp(&what(b).0));
    let mut kept = vec![false; pending.len()];
    let mut made_up = None;
    for at in last_first {
        let (what, whole) = what(at);
        kept[at] = made_up != Some(what);
        if whole {
            made_up = Some(what);
        }
    }
    let mut kept = kept.into_iter();
    pending.retain(|_| kept.next() == Some(true));
}
