//! What programs that have registered tell of their threads: who waits for whose lock, and
//! who is to be where the program wants it for a while. A program speaks of its own threads
//! alone, and of processes that it has begun.

use milieu_threads::mediator::{Action, Placement};
use milieu_threads::rung::scheduling;
use milieu_threads::table::{Region, Scheduling, Slot};

use super::journal::is_as_given;
use super::{Device, Known};
use crate::proc;

/// A thread that is where its program wants it, until [`Device::leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    thread: u32,
    start: u64,
}

/// A thread is none of the program's that speaks of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotItsOwn;

impl Device<'_> {
    /// A thread is about to wait for a lock that another thread of its program has: if it is
    /// urgent, so is that.
    pub fn waits(&mut self, process: u32, waiter: u32, owner: u32) {
        let slots = (self.slot_of(process, waiter), self.slot_of(process, owner));
        if let (Some(waiter), Some(owner)) = slots {
            let mut actions = Vec::new();
            self.machine
                .waits(Slot(waiter), Slot(owner), &mut |it| actions.push(it));
            self.perform(actions);
        }
    }

    /// It waits no more.
    pub fn served(&mut self, process: u32, waiter: u32) {
        if let Some(waiter) = self.known_slot(process, waiter) {
            let mut actions = Vec::new();
            self.machine
                .served(Slot(waiter), &mut |it| actions.push(it));
            self.perform(actions);
        }
    }

    /// A thread of a program has begun where another was that has begun it: it returns to
    /// what the kernel would have given it, had that been where the program wants it.
    pub fn begun(&mut self, process: u32, thread: u32, creator: u32) {
        let own = self.own(process, creator).or_else(|| {
            // It may have ended in the meantime.
            let known = self.known_slot(process, creator)?;
            let known = self.known[known as usize].as_ref()?;
            (known.region != Region::Own).then_some(known.own)
        });
        let slot = self.slot_of(process, thread);
        let known = slot.and_then(|it| self.known[it as usize].as_mut());
        let (Some(own), Some(slot), Some(known)) = (own, slot, known) else {
            return;
        };
        let own = own.handed_on();
        let was_new = std::mem::take(&mut known.is_new) && known.visits == 0;
        if !was_new || known.own == own || scheduling::is_realtime(own.policy) {
            return;
        }
        if !known.is_there(&mut self.reader) {
            return;
        }
        known.own = own;
        if known.region == Region::Own {
            let _ = scheduling::set(thread, &own);
        } else {
            self.give_again(slot);
        }
    }

    /// A thread of a program returns, and stays where the program wants it until
    /// [`Device::leave`]; whether it is urgent, and so whether others wait, stays as it is.
    /// None of a thread that was moved by nobody.
    ///
    /// It may also be a process that a thread of the program, its `creator`, has begun.
    ///
    /// # Errors
    /// It is not the program's.
    pub fn home(
        &mut self,
        process: u32,
        thread: u32,
        creator: Option<u32>,
    ) -> Result<Option<Visit>, NotItsOwn> {
        let slot = match creator {
            None => self.slot_of(process, thread),
            Some(creator) => self.child(process, thread, creator)?,
        };
        if slot.is_none() && creator.is_none() && !proc::has(process, thread) {
            return Err(NotItsOwn);
        }
        let known = slot.and_then(|it| self.known[it as usize].as_mut());
        let (Some(slot), Some(known)) = (slot, known) else {
            return Ok(None);
        };
        known.visits += 1;
        let visit = Visit {
            thread,
            start: known.start,
        };
        self.perform(vec![Action {
            slot: Slot(slot),
            tid: thread,
            placement: Placement::Own,
        }]);
        Ok(Some(visit))
    }

    /// A thread goes back to where it belongs; what it has by now it returns to later.
    pub fn leave(&mut self, visit: Visit) {
        let Some(slot) = self.by_thread.get(&visit.thread).copied() else {
            return;
        };
        let Some(known) = self.visitor(slot, visit) else {
            return;
        };
        known.visits -= 1;
        known.is_new = false;
        if known.visits > 0 {
            return;
        }
        let here = scheduling::of(visit.thread);
        known.is_realtime = here.is_ok_and(|it| scheduling::is_realtime(it.policy));
        let process = known.process;
        let program = self.programs.get(&process);
        let view = program.and_then(|it| it.view.as_ref());
        let entry = view.and_then(|it| it.by_thread_id(visit.thread));
        self.update_thread(slot, entry.map(|(_, it)| it).as_ref());
        let placement = self.machine.placement(Slot(slot));
        if let Some(placement) = placement.filter(|it| *it != Placement::Own) {
            self.perform(vec![Action {
                slot: Slot(slot),
                tid: visit.thread,
                placement,
            }]);
        }
    }

    /// How a program has a thread of its scheduled, wherever that is.
    pub fn own(&mut self, process: u32, thread: u32) -> Option<Scheduling> {
        let slot = self.slot_of(process, thread);
        let known = slot.and_then(|it| self.known[it as usize].as_mut());
        let here = match &known {
            Some(_) => scheduling::of(thread).ok()?,
            None if proc::has(process, thread) => return scheduling::of(thread).ok(),
            None => return None,
        };
        match known.filter(|it| it.region != Region::Own) {
            Some(known) => {
                known.take_wish(&here);
                Some(known.own)
            }
            None => Some(here),
        }
    }

    /// Where it is known, which it may be since a moment only.
    fn slot_of(&mut self, process: u32, thread: u32) -> Option<u32> {
        let slot = self.known_slot(process, thread);
        if slot.is_some() || !proc::has(process, thread) {
            return slot;
        }
        // Not by a list of all: one that others end meanwhile may lack some.
        let program = self.programs.get(&process)?;
        if !program.is_left_alone {
            let view = program.view.as_ref();
            let entry = view.and_then(|it| it.by_thread_id(thread));
            self.admit_thread(process, thread, entry.map(|(_, it)| it).as_ref());
        }
        self.known_slot(process, thread)
    }

    pub(super) fn known_slot(&self, process: u32, thread: u32) -> Option<u32> {
        let slot = *self.by_thread.get(&thread)?;
        let known = self.known[slot as usize].as_ref()?;
        (known.process == process).then_some(slot)
    }

    fn visitor(&mut self, slot: u32, visit: Visit) -> Option<&mut Known> {
        let known = self.known[slot as usize].as_mut()?;
        (known.start == visit.start && known.visits > 0).then_some(known)
    }

    /// A process that a thread has begun and that has its memory, as by `vfork`: it has
    /// inherited where that is, and returns to what that returns to.
    fn child(&mut self, process: u32, child: u32, creator: u32) -> Result<Option<u32>, NotItsOwn> {
        let stat = self.reader.stat(child, child).ok_or(NotItsOwn)?;
        if stat.parent != process || !proc::has(process, creator) {
            return Err(NotItsOwn);
        }
        let own = self.own(process, creator).ok_or(NotItsOwn)?;
        let given = self.known_slot(process, creator);
        let given = given.and_then(|it| Some(self.known[it as usize].as_ref()?.given));
        if !self.programs.contains_key(&child) {
            self.admit(child);
        }
        if self.programs.contains_key(&child) {
            self.threads_of(child, &[child]);
        }
        let slot = self.known_slot(child, child);
        let known = slot.and_then(|it| self.known[it as usize].as_mut());
        match known.filter(|it| it.region != Region::Own) {
            Some(known) => known.own = own,
            // Only what it has inherited is taken back.
            None => {
                let here = scheduling::of(child).map_err(|_| NotItsOwn)?;
                let is_inherited = given.is_some_and(|it| is_as_given(&here, &it));
                if is_inherited && !scheduling::is_realtime(own.policy) {
                    let _ = scheduling::set(child, &own);
                }
            }
        }
        Ok(slot)
    }
}
