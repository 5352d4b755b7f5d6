//! How a mediator is started.

use std::path::PathBuf;

use super::keeper::Told;
use super::stacks::Stacks;
use super::{Entry, Mediator, Mode, Policy, Rung, Settings};
use crate::{Error, Milieu};

/// How a mediator is to work; [`Mediator::options`] begins with the usual.
#[must_use = "nothing is mediated before `start`"]
pub struct Options {
    pub(super) capacity: u32,
    pub(super) choice: Choice,
    pub(super) settings: Settings,
    pub(super) finds_others: bool,
    pub(super) told: Told,
    pub(super) stacks: Option<Stacks>,
    pub(super) device: Joining,
}

/// Whether a mediator of the whole device may have the program.
pub(super) enum Joining {
    /// The one of the user or of the device, if it is there.
    Usual,
    /// The one that listens there.
    At(PathBuf),
    Never,
}

/// By which means threads are mediated.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// The best that works.
    Best,
    This(Rung),
    /// They are listed and not moved.
    Nothing,
}

impl Options {
    pub(super) fn new() -> Options {
        Options {
            capacity: 1024,
            choice: Choice::Best,
            settings: Settings::default(),
            finds_others: true,
            told: Box::new(|_| ()),
            stacks: None,
            device: Joining::Usual,
        }
    }

    /// Room for at least so many threads at a time, instead of 1024. Those for
    /// which there is none run unmediated.
    pub fn capacity(mut self, threads: u32) -> Self {
        self.capacity = threads;
        self
    }

    /// This rung and no other, instead of the best that works.
    pub fn rung(mut self, rung: Rung) -> Self {
        self.choice = Choice::This(rung);
        self
    }

    /// Threads have roles and are found by them, and nobody is moved.
    pub fn unmediated(mut self) -> Self {
        self.choice = Choice::Nothing;
        self
    }

    /// How long threads may be lazy, when run-aways are demoted, and whether a
    /// thread leaves the fast region while it blocks.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Leaves threads alone that were begun in other ways, instead of making them
    /// lazy as well: those of libraries, and the main thread. A mediator of the device would
    /// not, so that the program registers only with one that it [names](Options::device).
    pub fn only_own(mut self) -> Self {
        self.finds_others = false;
        self
    }

    /// Calls this for each critical thread that has run away and was demoted, in
    /// the mediator's thread.
    pub fn on_demotion(mut self, tell: impl FnMut(&Entry) + Send + 'static) -> Self {
        self.told = Box::new(tell);
        self
    }

    /// Measures how deep the stacks of threads with roles are, and applies what was
    /// learned as the policy says. What was learned in earlier runs of the same
    /// program is read from the key set now; [`Mediator::persist_stacks`] adds to it.
    ///
    /// Who overflows its stack is reported with number and role on the standard error
    /// output, before the program ends of that, and its role is not tuned again. So that
    /// the next run knows, a handler of `SIGSEGV` notes it in the file `.APP.ini.stacks`
    /// beside the user's; where that cannot be written, it says so. Of several mediators
    /// in a process, the file of the last one counts.
    pub fn stacks(mut self, milieu: &Milieu, policy: Policy) -> Self {
        self.stacks = (policy.mode != Mode::Off).then(|| Stacks::read(milieu, policy));
        self
    }

    /// Registers with the mediator of the device that listens at this socket, instead of
    /// the one of the user or of the device, where `milieu thread mediate` listens if
    /// nobody says another. While it is not there, the program mediates its threads itself.
    pub fn device(mut self, socket: impl Into<PathBuf>) -> Self {
        self.device = Joining::At(socket.into());
        self
    }

    /// Mediates by itself, also where a mediator of the whole device is, which leaves the
    /// program alone then. A program that has chosen its [rung](Options::rung) does so.
    pub fn by_itself(mut self) -> Self {
        self.device = Joining::Never;
        self
    }

    /// Starts it, with a thread of its own.
    ///
    /// # Errors
    /// If there is no memory or no thread left, or if the rung that was asked for
    /// does not work here; the text says what would make it work.
    pub fn start(self) -> Result<Mediator, Error> {
        Mediator::with(self)
    }
}
