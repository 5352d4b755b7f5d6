//! A program that forks: nobody is in the middle of something meanwhile, and the child has a
//! table of its own.

use core::mem::{self, ManuallyDrop};

use super::Program;
use super::visits::Visit;
use crate::kernel::{self, Errno};
use crate::rung::guard;
use crate::table::{Entry, Slot};

impl Program {
    /// Before `fork`, by the thread that calls it: waits until nobody is in the middle
    /// of something, and keeps it so.
    pub fn before_fork(&self, identity: u64) {
        // It fails in a signal handler that has interrupted who holds it.
        if let Ok(mut visit) = self.visit() {
            let lines = self.table.lines();
            let entry = lines.entry(identity).ok();
            visit.forking = lines.slot(identity).zip(entry);
            visit.forking_visitor = visit.visitor;
            mem::forget(visit);
        }
    }

    /// After `fork`, in the parent, whether or not there is a child.
    pub fn after_fork_in_parent(&self) {
        // SAFETY: the visit before the fork was kept.
        let mut state = unsafe { self.state.held() };
        state.forking = None;
        let visitor = state.forking_visitor.take();
        drop(Visit {
            program: self,
            state: ManuallyDrop::new(state),
            visitor,
        });
    }

    /// After `fork`, in the child, where only this thread is left: the table is its
    /// own, and it has returned.
    ///
    /// # Errors
    /// If there is no memory; then the program must not be used.
    pub fn after_fork_in_child(&self) -> Result<(), Errno> {
        self.state.reset();
        guard::after_fork();
        let mut state = self.state.lock()?;
        state.forking_visitor = None;
        let forking = state.forking.take().map(|(slot, entry)| {
            let entry = Entry {
                is_visiting: false,
                is_going: false,
                ..entry
            };
            (slot, entry)
        });
        let slot = self.table.after_fork(forking.map(|(_, entry)| entry))?;
        // SAFETY: there is no other thread.
        if let Some(means) = unsafe { self.means.get_mut() } {
            means.after_fork();
        }
        let before = forking.map_or(Slot(!0), |(slot, _)| slot);
        let (slot, tid) = (slot.unwrap_or(before), kernel::thread_id());
        state.apply(self, |machine, out| {
            machine.after_fork(before, slot, tid, out);
        });
        Ok(())
    }
}
