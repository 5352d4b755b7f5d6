//! A program whose threads somebody else moves for a while, such as a mediator of the whole
//! device: they have returned before, and go to their regions again afterwards.

use core::sync::atomic::Ordering;

use super::{Program, StartError};
use crate::kernel::Errno;
use crate::mediator::Settings;
use crate::rung::guard::Guard;
use crate::rung::{Obstacle, Return, Rung};

impl Program {
    /// Lets every thread return, until [`Program::go_on`]. False where one that is lazy
    /// cannot return, and all stays as it is; and where nobody is mediated.
    pub fn rest(&self) -> bool {
        let Some(means) = self.means().filter(|it| it.returns() == Return::Always) else {
            return false;
        };
        let Ok(mut state) = self.visit() else {
            return false;
        };
        state.apply(self, |machine, out| machine.set_open(false, out));
        if state.is_doubtful {
            state.is_doubtful = crate::visit::put_again(self.table.lines(), means);
        }
        self.is_resting.store(true, Ordering::Release);
        state.guard = None;
        true
    }

    /// Mediates again, after [`Program::rest`]. `tell` is as in [`Program::mediate`].
    ///
    /// # Errors
    /// Why it does not work any more; then it rests still.
    pub fn go_on(&self, tell: fn(u32)) -> Result<(), StartError> {
        let Some(means) = self.means.get().filter(|_| self.is_resting()) else {
            return Ok(());
        };
        let refused = |obstacle| StartError::Rung(means.rung(), obstacle);
        let mut state = self.visit().map_err(|it| refused(Obstacle::Refused(it)))?;
        if self.is_over.load(Ordering::Acquire) {
            return Ok(());
        }
        if means.rung() == Rung::Realtime && state.guard.is_none() {
            let Settings { spin_ns_max, .. } = *state.machine.settings();
            let guard = Guard::new(spin_ns_max / 1000, tell);
            state.guard = Some(guard.map_err(|it: Errno| refused(Obstacle::NoGuard(it)))?);
        }
        // Whatever was done to them meanwhile was undone, or is the program's.
        for (slot, entry) in self.table.lines().iter() {
            let kind = self.kind_of(&entry);
            state.machine.set_kind(slot, kind, &mut |_| ());
            if entry.is_demoted {
                state.machine.demote(slot, &mut |_| ());
            }
        }
        self.is_resting.store(false, Ordering::Release);
        drop(state);
        self.tell(|machine, out| machine.set_open(true, out));
        Ok(())
    }

    /// By which means it mediates again, while it rests.
    #[must_use]
    pub fn resting_rung(&self) -> Option<Rung> {
        let means = self.means.get().filter(|_| self.is_resting())?;
        Some(means.rung())
    }

    /// Whether it mediated, and somebody else does now.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Acquire)
    }
}
