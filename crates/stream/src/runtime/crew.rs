//! The threads of a program that are [`Hands`] of its machine.

use std::collections::VecDeque;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use milieu_transfer::Span;

use super::{Clock, Shared, Streams};
use crate::graph::apart::{After, Desk, Hands};
use crate::operator::Now;

/// On what terms operators that [block](crate::Operator::blocks) are worked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// How many threads there are for all of them: 4. Each is started when it is
    /// first needed.
    pub threads: NonZeroUsize,
    /// How many events may wait for each operator: 1024. One that finds so many
    /// waiting takes the place of the oldest, which is counted as
    /// [`Overflow`](crate::Reason::Overflow).
    pub capacity: NonZeroU32,
    /// How long an operator may take over one event: 30 s. One that takes longer
    /// is given up as if it had panicked, and another thread takes the place of
    /// its thread, which ends when the operator comes back.
    pub limit: Span,
}

impl Default for Blocking {
    fn default() -> Blocking {
        Blocking {
            threads: NonZeroUsize::MIN.saturating_add(3),
            capacity: NonZeroU32::MIN.saturating_add(1023),
            limit: Span::from_nanoseconds(30_000_000_000),
        }
    }
}

/// So many threads may be lost in operators that do not come back before the
/// places of further ones stay empty.
const GIVEN_UP: usize = 64;

/// Some threads, started as they are needed, and the desks to which they were called
/// and have not come yet.
pub(super) struct Crew {
    state: Mutex<State>,
    called: Condvar,
    terms: Blocking,
    clock: Arc<dyn Clock>,
    streams: Weak<Shared>,
    this: Weak<Crew>,
}

#[derive(Default)]
struct State {
    desks: VecDeque<Arc<Desk>>,
    /// Threads that are there, given up ones not counted.
    threads: usize,
    /// Of these, those that wait for a desk.
    idle: usize,
    given_up: usize,
    is_over: bool,
}

impl Crew {
    pub fn new(streams: &Streams, terms: Blocking) -> Arc<Crew> {
        Arc::new_cyclic(|this| Crew {
            state: Mutex::default(),
            called: Condvar::new(),
            terms,
            clock: Arc::clone(&streams.0.clock),
            streams: Arc::downgrade(&streams.0),
            this: Weak::clone(this),
        })
    }

    /// Lets the threads end, each after what it is doing.
    pub fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let desks = std::mem::take(&mut state.desks);
        drop(state);
        drop(desks);
        self.called.notify_all();
    }

    /// Starts a thread if desks wait that no thread is there for.
    fn start(&self, state: &mut State) {
        if state.desks.len() <= state.idle || state.threads >= self.terms.threads.get() {
            return;
        }
        let Some(crew) = self.this.upgrade() else {
            return;
        };
        let thread = thread::Builder::new().name("milieu-blocking".to_owned());
        let started = thread.spawn(move || crew.run());
        state.threads += usize::from(started.is_ok());
    }

    fn run(self: Arc<Crew>) {
        let hands: Arc<dyn Hands> = Arc::clone(&self) as _;
        while let Some(desk) = self.next() {
            let clock = || self.clock.now();
            match desk.work(&Now::new(&clock), Some(&hands)) {
                After::Nothing => {}
                After::Cleared { given_up: false } => {}
                After::Cleared { given_up: true } => {
                    self.state().given_up -= 1;
                    return;
                }
                After::Fetch { again } => {
                    if again {
                        // Behind the others, so that each has its turn. If it is
                        // over here, the machine calls others below.
                        self.call(&desk);
                    }
                    let Some(streams) = self.streams.upgrade() else {
                        return;
                    };
                    Streams(streams).order(move |machine, now| machine.fetch(now, &desk));
                }
            }
        }
    }

    /// The next desk, once there is one. Nothing: it is over.
    fn next(&self) -> Option<Arc<Desk>> {
        let mut state = self.state();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(desk) = state.desks.pop_front() {
                return Some(desk);
            }
            state.idle += 1;
            let waited = self.called.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hands for Crew {
    fn call(&self, desk: &Arc<Desk>) -> bool {
        let mut state = self.state();
        if state.is_over {
            return false;
        }
        state.desks.push_back(Arc::clone(desk));
        self.start(&mut state);
        if state.threads == 0 {
            state.desks.pop_back();
            return false;
        }
        drop(state);
        self.called.notify_one();
        true
    }

    fn give_up(&self) -> bool {
        let mut state = self.state();
        if state.given_up == GIVEN_UP {
            return false;
        }
        state.given_up += 1;
        state.threads -= 1;
        self.start(&mut state);
        true
    }

    fn terms(&self) -> (usize, Span) {
        (self.terms.capacity.get() as usize, self.terms.limit)
    }
}
