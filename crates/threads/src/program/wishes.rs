//! What a program wants of its threads while they are elsewhere: told by it, or found where
//! it has asked the kernel by itself.

use super::{Program, State};
use crate::kernel::Errno;
use crate::mediator::{Action, Kind};
use crate::rung::{Return, scheduling};
use crate::table::{Entry, Region, Scheduling, Slot};

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
        if is_elsewhere && !may_have {
            return Err(Errno(libc::EACCES));
        }
        if is_elsewhere {
            // Where it is, it may have some of it at once; what it has else is none of it.
            if let Ok(visit) = &mut visit {
                visit.put(self, slot, entry.tid);
            }
            return Ok(());
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

    /// Finds what threads have asked of the kernel past the program's functions, as
    /// [`Program::tick`] does by and by.
    pub fn take_wishes(&self) {
        if let Ok(mut state) = self.visit() {
            self.find_wishes(&mut state);
        }
    }

    /// What a thread that is elsewhere has asked of the kernel, and nobody has told of, is what
    /// it returns to; it is put where it was once more, or is left alone if it runs in real
    /// time.
    pub(super) fn find_wishes(&self, state: &mut State) {
        let returning = self.means().filter(|it| it.returns() == Return::Always);
        let Some(means) = returning else {
            return;
        };
        let lines = self.table.lines();
        let is_elsewhere =
            |it: &Entry| it.region != Region::Own && !(it.is_visiting || it.is_going);
        for (slot, entry) in lines.iter().filter(|(_, it)| is_elsewhere(it)) {
            let placement = state.machine.placement(slot);
            let placement = placement.filter(|it| it.region() == entry.region);
            let (Some(placement), Ok(here)) = (placement, scheduling::of(entry.tid)) else {
                continue;
            };
            let given = means.wanted(placement, &entry.own);
            let (is_realtime, is_given_realtime) = (
                scheduling::is_realtime(here.policy),
                scheduling::is_realtime(given.policy),
            );
            if is_realtime && !is_given_realtime {
                state.apply(self, |machine, out| {
                    machine.set_kind(slot, Kind::Excluded, out);
                });
                self.note_refusal(scheduling::set(entry.tid, &here));
                continue;
            }
            // Who ran away is out of real time before the mediator knows.
            let has_other_policy = here.policy != given.policy && !is_given_realtime;
            if means.is_given(placement, &entry.own, &here)
                || !has_other_policy && here.nice == given.nice
            {
                continue;
            }
            let updated = lines.update(entry.identity, |it| {
                if has_other_policy {
                    it.own.policy = here.policy;
                }
                if here.nice != given.nice {
                    it.own.nice = here.nice;
                }
            });
            if updated == Ok(slot) {
                state.put(self, slot, entry.tid);
            }
        }
    }
}

impl State {
    /// Puts a thread where it belongs once more, with what the program wants of it by now.
    fn put(&mut self, program: &Program, slot: Slot, tid: u32) {
        let placement = self.machine.placement(slot);
        self.apply(program, |_, out| {
            if let Some(placement) = placement {
                out(Action {
                    slot,
                    tid,
                    placement,
                });
            }
        });
    }
}
