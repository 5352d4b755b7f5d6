//! What a program wants of its threads while they are elsewhere: told by it, or found where
//! it has asked the kernel by itself.

use super::{Program, State};
use crate::kernel::Errno;
use crate::mediator::{Action, Kind};
use crate::rung::{Return, scheduling};
use crate::table::{Entry, Region, Scheduling};

impl Program {
    /// The program wants a thread to be scheduled so. In its own region it is so at
    /// once; elsewhere when it returns, and [`Program::own`] says it meanwhile. Who
    /// is to run in real time is left alone while it does.
    ///
    /// # Errors
    /// Why the kernel would refuse it now.
    pub fn wish(&self, identity: u64, wish: Scheduling) -> Result<(), Errno> {
        let lines = self.table.lines();
        let unknown = |_| Errno(libc::ESRCH);
        // Nobody is moved meanwhile, except by whom a signal handler has interrupted.
        let mut visit = self.visit();
        let entry = lines.entry(identity).map_err(unknown)?;
        let slot = lines.slot(identity).ok_or(Errno(libc::ESRCH))?;
        let mut become_kind = |kind| {
            if let Ok(visit) = &mut visit {
                visit.apply(self, |machine, out| machine.set_kind(slot, kind, out));
            }
        };
        if scheduling::is_realtime(wish.policy) {
            become_kind(Kind::Excluded);
            return scheduling::set(entry.tid, &wish);
        }
        // What it could not have at home it cannot have later either.
        let may_have = wish.nice >= entry.own.nice || scheduling::may_have_nice(wish.nice);
        let mut is_elsewhere = false;
        let updated = lines.update(identity, |it| {
            is_elsewhere = it.region != Region::Own;
            if is_elsewhere && may_have {
                it.own = wish;
            }
        });
        updated.map_err(|_| Errno(libc::EAGAIN))?;
        if is_elsewhere {
            return if may_have {
                Ok(())
            } else {
                Err(Errno(libc::EACCES))
            };
        }
        let before = scheduling::of(entry.tid)?;
        scheduling::set(entry.tid, &wish)?;
        if scheduling::is_realtime(before.policy) && !entry.is_excluded {
            become_kind(Kind::from(&entry.attributes));
        }
        Ok(())
    }

    /// How the program has its thread scheduled, wherever the mediator has put it.
    ///
    /// # Errors
    /// If it is not listed, or has ended.
    pub fn own(&self, identity: u64) -> Result<Scheduling, Errno> {
        let lines = self.table.lines();
        let entry = || lines.entry(identity).map_err(|_| Errno(libc::ESRCH));
        let elsewhere = |it: &Entry| (it.region != Region::Own).then_some(it.own);
        if let Some(own) = elsewhere(&entry()?) {
            return Ok(own);
        }
        // Nobody is moved meanwhile, except by whom a signal handler has interrupted.
        let _visit = self.visit();
        let entry = entry()?;
        match elsewhere(&entry) {
            Some(own) => Ok(own),
            None => scheduling::of(entry.tid),
        }
    }

    /// What a lazy thread has asked of the kernel, and nobody has told of, is what it returns
    /// to; it is put where it was once more, or is left alone if it runs in real time.
    pub(super) fn find_wishes(&self, state: &mut State) {
        let returning = self.means().filter(|it| it.returns() == Return::Always);
        let Some(means) = returning else {
            return;
        };
        let lines = self.table.lines();
        let is_lazy = |it: &Entry| it.region == Region::Lazy && !(it.is_visiting || it.is_going);
        for (slot, entry) in lines.iter().filter(|(_, it)| is_lazy(it)) {
            let placement = state.machine.placement(slot);
            let placement = placement.filter(|it| it.region() == Region::Lazy);
            let (Some(placement), Ok(here)) = (placement, scheduling::of(entry.tid)) else {
                continue;
            };
            let given = means.wanted(placement, &entry.own);
            if scheduling::is_realtime(here.policy) {
                state.apply(self, |machine, out| {
                    machine.set_kind(slot, Kind::Excluded, out);
                });
                self.note_refusal(scheduling::set(entry.tid, &here));
                continue;
            }
            if (here.policy, here.nice) == (given.policy, given.nice) {
                continue;
            }
            let updated = lines.update(entry.identity, |it| {
                if here.policy != given.policy {
                    it.own.policy = here.policy;
                }
                if here.nice != given.nice {
                    it.own.nice = here.nice;
                }
            });
            if updated == Ok(slot) {
                let tid = entry.tid;
                state.apply(self, |_, out| {
                    out(Action {
                        slot,
                        tid,
                        placement,
                    });
                });
            }
        }
    }
}
