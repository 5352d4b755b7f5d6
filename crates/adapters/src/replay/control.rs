//! How fast a recording is replayed, and where it is.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use milieu_stream::drive::Wake;
use milieu_transfer::Time;

use super::clock::{Clock, Pass};

/// How fast a recording is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// As it was recorded.
    #[default]
    Recorded,
    /// So many times as fast. What is not a positive number is once.
    Times(f64),
    /// As fast as it can be read.
    Immediate,
}

/// Stops a recording that is being replayed, and moves within it. Any thread may
/// have one.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Option<Wake>,
}

#[derive(Debug, Default)]
struct State {
    wishes: Vec<Wish>,
    /// How many of them the source knows already.
    taken: usize,
    /// Where the source was when it was polled last.
    clock: Clock,
    pass: Pass,
    has_ended: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    Pause,
    Resume,
    Seek(Time),
    Pace(Pace),
}

impl Control {
    pub(super) fn new() -> Control {
        Control(Arc::new(Shared {
            state: Mutex::default(),
            wake: Wake::new().ok(),
        }))
    }

    /// Stops until it is told to go on.
    pub fn pause(&self) {
        self.wish(Wish::Pause);
    }

    /// Goes on where it was stopped.
    pub fn resume(&self) {
        self.wish(Wish::Resume);
    }

    /// Goes on with the first row that was recorded at this time or later. Where
    /// there is none, the next pass begins; without a next pass it ends.
    pub fn seek(&self, time: Time) {
        self.wish(Wish::Seek(time));
    }

    /// Goes on at another speed.
    pub fn pace(&self, pace: Pace) {
        self.wish(Wish::Pace(pace));
    }

    /// Where in the recording it is at this time, that of the source's clock.
    /// Nothing before its first row, unless it was told where to go, where it is
    /// replayed as fast as it can be read, and once it has ended.
    #[must_use]
    pub fn position(&self, now: Time) -> Option<Time> {
        let state = self.state();
        if state.has_ended {
            return None;
        }
        let sought = state.wishes.iter().rev().find_map(|wish| match wish {
            Wish::Seek(time) => Some(*time),
            _ => None,
        });
        let recorded = || Some(state.pass.within(state.clock.recorded(now)?));
        sought.or_else(recorded)
    }

    /// Takes note of where the source is, now that what it has taken is done.
    pub(super) fn tell(&self, clock: Clock, pass: Pass) {
        let mut state = self.state();
        let taken = std::mem::take(&mut state.taken);
        state.wishes.drain(..taken);
        (state.clock, state.pass) = (clock, pass);
    }

    /// Takes note that the source has ended.
    pub(super) fn end(&self) {
        self.state().has_ended = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wish(&self, wish: Wish) {
        let mut state = self.state();
        if state.has_ended {
            // Nobody would take it.
            return;
        }
        state.wishes.push(wish);
        drop(state);
        if let Some(wake) = &self.0.wake {
            wake.wake();
        }
    }

    /// What was wished for since the last time.
    pub(super) fn take(&self) -> Vec<Wish> {
        if let Some(wake) = &self.0.wake {
            wake.clear();
        }
        let mut state = self.state();
        state.taken = state.wishes.len();
        state.wishes.clone()
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.wake.as_ref().map(AsFd::as_fd)
    }
}

impl Pace {
    /// How many times as fast; nothing: as fast as can be.
    pub(super) fn factor(self) -> Option<f64> {
        match self {
            Pace::Times(times) if times.is_finite() && times > 0.0 => Some(times),
            Pace::Recorded | Pace::Times(_) => Some(1.0),
            Pace::Immediate => None,
        }
    }
}
