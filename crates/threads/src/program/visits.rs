//! The lock of a program's mediator, and where a thread is while it has it.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::Ordering;

use super::{Program, State};
use crate::kernel::{self, Errno};
use crate::lock::Locked;
use crate::mediator::Placement;
use crate::rung::{Means, Return, scheduling};
use crate::table::Scheduling;
use crate::visit::{self, Going, Mover, Visitor};

impl Program {
    /// The lock, of a thread that is not lazy while it waits for it and has it.
    pub(super) fn visit(&self) -> Result<Visit<'_>, Errno> {
        self.visit_by(kernel::thread_id())
    }

    /// As [`Program::visit`], of a thread that knows its number.
    pub(super) fn visit_by(&self, tid: u32) -> Result<Visit<'_>, Errno> {
        let means = self.means();
        let visitor = means.and_then(|it| self.come_home(tid, false, it));
        self.visit_as(visitor, tid)
    }

    pub(super) fn visit_as(&self, visitor: Option<Visitor>, tid: u32) -> Result<Visit<'_>, Errno> {
        let lines = self.table.lines();
        let locked = self.state.lock_as(tid);
        let mut state = locked.inspect_err(|_| {
            // Nobody visits in the middle of a visit of its own.
            if let Some(visitor) = visitor {
                let _ = lines.update(visitor.identity, |it| it.is_visiting = false);
            }
        })?;
        if let Some(visitor) = &visitor {
            let region = visit::arrive(lines, visitor);
            let Visitor { slot, tid, .. } = *visitor;
            state.apply(self, |machine, out| machine.arrive(slot, tid, region, out));
        }
        Ok(Visit {
            program: self,
            state: ManuallyDrop::new(state),
            visitor,
        })
    }

    /// Where lazy threads cannot return, nobody comes home.
    fn come_home(&self, tid: u32, is_lazy: bool, means: &Means) -> Option<Visitor> {
        if means.returns() == Return::Never {
            return None;
        }
        let lines = self.table.lines();
        let identity = kernel::identity();
        let is_mine = lines.entry(identity).is_ok_and(|it| it.tid == tid);
        let identity = match is_mine {
            true => identity,
            false => lines.by_thread_id(tid)?.1.identity,
        };
        visit::come_home(lines, identity, tid, is_lazy, means)
    }

    pub(super) fn note_refusal(&self, said: Result<(), Errno>) {
        match said {
            Ok(()) | Err(Errno(libc::ESRCH)) => {}
            Err(Errno(error)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                self.refused_last.store(error, Ordering::Relaxed);
            }
        }
    }

    /// This thread has let the lock go, and makes itself lazy.
    fn go(&self, mut going: Going) {
        // Also while all is about to end: what it does to itself it takes back.
        let Some(means) = self.means.get() else {
            return;
        };
        loop {
            let lines = self.table.lines();
            let was_moved = visit::go(lines, &going, means);
            self.note_refusal(was_moved.map(|_| ()));
            if was_moved != Ok(true) {
                return;
            }
            let tid = kernel::thread_id();
            let visitor = self.come_home(tid, true, means);
            let again = self.visit_as(visitor, tid).ok().and_then(Visit::end);
            match again {
                Some(again) => going = again,
                None => return,
            }
        }
    }
}

/// The lock, while somebody has it who is where the program wants it.
pub(super) struct Visit<'p> {
    pub program: &'p Program,
    pub state: ManuallyDrop<Locked<'p, State>>,
    /// Nothing of a thread that is not listed.
    pub visitor: Option<Visitor>,
}

impl Visit<'_> {
    /// Lets the lock go; what is left to be done without it.
    fn end(self) -> Option<Going> {
        let mut visit = ManuallyDrop::new(self);
        visit.let_go()
    }

    /// # Once
    /// The lock is not there afterwards.
    fn let_go(&mut self) -> Option<Going> {
        let going = self.visitor.and_then(|visitor| {
            let to = self.state.machine.leave(visitor.slot, visitor.tid);
            let means = self.program.means.get()?;
            visit::leave(self.program.table.lines(), visitor, to, means)
        });
        // SAFETY: it is dropped here, and by nobody else: whoever calls this does not
        // use it any more.
        unsafe { ManuallyDrop::drop(&mut self.state) };
        going
    }
}

impl Deref for Visit<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Visit<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if let Some(going) = self.let_go() {
            self.program.go(going);
        }
    }
}

impl Mover for Means {
    fn own(&self, tid: u32) -> Result<Scheduling, Errno> {
        scheduling::of(tid)
    }

    fn is_left_alone(&self, own: &Scheduling) -> bool {
        scheduling::is_realtime(own.policy)
    }

    fn apply(
        &self,
        tid: u32,
        from: Placement,
        to: Placement,
        own: &Scheduling,
    ) -> Result<(), Errno> {
        Means::apply(self, tid, from, to, own)
    }
}
