//! Sleeping until there is something to synchronize.

use std::{
    future::Future,
    pin::Pin,
    task::{Context as TaskContext, Poll},
    time::{Duration, Instant},
};

use crate::{
    core::{Core, next_identity},
    sync,
};

impl Core {
    /// Whether others have published since the last synchronization.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.inner.news.generation() != self.seen
    }

    /// Sleeps until there is news, or until the deadline; says which.
    pub fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut state = self.inner.state();
        loop {
            if self.has_news() {
                return true;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            state.sleepers += 1;
            state = match left {
                None => sync::wait(&self.inner.shown, state),
                Some(left) => match self.inner.shown.wait_timeout(state, left) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                },
            };
            state.sleepers -= 1;
        }
    }
}

/// A future that completes when there is something to synchronize.
///
/// Made by [`Context::changed`](crate::Context::changed).
pub struct Changed<'a> {
    core: &'a Core,
    /// The number of our waker in the coordinator's list.
    number: u64,
}

impl<'a> Changed<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Changed {
            core,
            number: next_identity(),
        }
    }
}

impl Future for Changed<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        if !self.core.shared {
            return Poll::Pending;
        }
        let waker = task.waker().clone();
        let mut state = self.core.inner.state();
        // Under the lock that publications take, none can slip in between.
        if self.core.has_news() {
            return Poll::Ready(());
        }
        let waiting = state.wakers.iter_mut().find(|it| it.0 == self.number);
        let old = match waiting {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                state.wakers.push((self.number, waker));
                None
            }
        };
        // A waker is user code: with the last one of a task, the task is dropped.
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        let mut state = self.core.inner.state();
        let waiting = state.wakers.iter().position(|it| it.0 == self.number);
        let waker = waiting.map(|place| state.wakers.remove(place));
        drop(state);
        drop(waker);
    }
}
