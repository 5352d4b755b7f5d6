//! A thread, told what it is for before, while and after it runs.

use std::fmt;
use std::sync::Arc;

use milieu_threads::kernel;
use milieu_threads::lock::{Locked, PriorityMutex};

use super::mediator::Shared;
use super::overflows::Watched;
use super::{Attributes, Entry, NO_HANDLER, Scheduling, TableError};

/// A thread of a [`Mediator`](super::Mediator), wherever it is with its life.
#[derive(Clone)]
pub struct Thread {
    shared: Arc<Shared>,
    state: Arc<PriorityMutex<State>>,
}

#[derive(Clone, Copy)]
enum State {
    /// It was asked for, and has not run yet.
    Asked {
        /// What it is for by what it says itself.
        own: Attributes,
        attributes: Attributes,
    },
    /// It is listed under this number.
    Listed(u64),
    /// It has ended, or found no place in the table.
    Gone(Attributes),
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Thread");
        shown.field("attributes", &self.attributes());
        shown.finish_non_exhaustive()
    }
}

impl Thread {
    pub(super) fn asked(shared: &Arc<Shared>, own: Attributes, attributes: Attributes) -> Thread {
        Thread {
            shared: shared.clone(),
            state: Arc::new(PriorityMutex::new(State::Asked { own, attributes })),
        }
    }

    /// What it is for: also before it runs, and what it was for after it has ended.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        match *self.state() {
            State::Asked { attributes, .. } | State::Gone(attributes) => attributes,
            State::Listed(identity) => self.shared.program.get(identity).unwrap_or_default(),
        }
    }

    /// Sets what it is for, and moves it where that belongs.
    ///
    /// # Errors
    /// If it has ended, or if its line is being written to.
    pub fn set(&self, attributes: &Attributes) -> Result<(), TableError> {
        let mut state = self.state();
        match &mut *state {
            State::Asked {
                own,
                attributes: asked,
            } => {
                *own = *attributes;
                *asked = *attributes;
            }
            // While the state is held it does not end, and nobody gets its number.
            State::Listed(identity) => self.shared.set(*identity, attributes)?,
            State::Gone(_) => return Err(TableError::Unknown),
        }
        Ok(())
    }

    /// All that is known of it, while it runs. If its stack is measured, that is done now.
    #[must_use]
    pub fn entry(&self) -> Option<Entry> {
        match *self.state() {
            State::Listed(identity) => {
                let entry = self.shared.program.table().lines().entry(identity);
                entry.ok().map(|it| self.shared.looked_at(it))
            }
            State::Asked { .. } | State::Gone(_) => None,
        }
    }

    /// The thread is this one, and begins.
    pub(super) fn begins(self, creator: Option<Scheduling>, is_excluded: bool) -> Running {
        let identity = kernel::identity();
        // Before it may be lazy, and others wait for what it has then.
        let role = self.attributes().role();
        let measured = self.shared.measure(identity, role);
        let mut state = self.state();
        if let State::Asked { own, attributes } = *state {
            self.shared.roles().says(identity, own);
            let (tid, program) = (kernel::thread_id(), &self.shared.program);
            let listed = program.began_by(creator, identity, tid, &attributes, is_excluded);
            *state = match listed {
                Ok(_) => State::Listed(identity),
                Err(_) => State::Gone(attributes),
            };
            self.shared.began(identity, &attributes, is_excluded);
        }
        drop(state);
        let watched = measured.and_then(|(began, watched)| {
            self.shared.measures(identity, &began);
            watched
        });
        Running {
            thread: self,
            identity,
            _watched: watched,
        }
    }

    fn state(&self) -> Locked<'_, State> {
        self.state.lock().expect(NO_HANDLER)
    }
}

/// A thread that runs; dropped by itself when it ends.
pub(super) struct Running {
    thread: Thread,
    identity: u64,
    _watched: Option<Watched>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Thread { shared, .. } = &self.thread;
        let mut state = self.thread.state();
        let attributes = match *state {
            State::Listed(identity) => {
                let attributes = shared.program.get(identity).unwrap_or_default();
                // It may have ended already, as a fork of it.
                let _ = shared.program.ended(identity);
                attributes
            }
            State::Asked { attributes, .. } | State::Gone(attributes) => attributes,
        };
        *state = State::Gone(attributes);
        drop(state);
        // It is not lazy any more.
        shared.roles().ended(self.identity);
        shared.has_ended(&attributes);
        shared.measured(self.identity, attributes.role());
    }
}
