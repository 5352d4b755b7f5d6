//! The way of news to a reader: blocking, or as a stream that any executor polls.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::mpsc::{RecvError, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_core::Stream;
use milieu_keys::{Key, Name, Namespace};

use super::news::{Change, FileNews, Filter, News, Pending, same};
use crate::history::Author;
use crate::merge;

/// A key that has another value in one namespace, and perhaps in the cascade.
pub(super) struct Turned {
    pub name: Name,
    pub namespace: Namespace,
    /// The key that a lookup finds, before and after.
    pub effective: [Option<Key>; 2],
    /// The key that its namespace has, before and after.
    pub in_namespace: [Option<Key>; 2],
    /// Who made it so, if that is known.
    pub by: Option<Author>,
    pub secret: bool,
}

/// What this process wrote itself, and knows therefore.
pub(super) struct Own<'a> {
    namespace: Namespace,
    values: HashMap<&'a Name, Option<&'a str>>,
}

/// News on its way to one reader.
pub(super) struct Queue {
    filter: Filter,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    pending: Pending,
    waker: Option<Waker>,
    closed: bool,
}

impl Queue {
    pub fn new(filter: Filter) -> Queue {
        Queue {
            filter,
            state: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Adds news, all of it at once, and returns who is to be woken when no lock
    /// is held any more.
    pub fn push(
        &self,
        turned: &[Turned],
        files: &[FileNews],
        own: Option<&Own<'_>>,
    ) -> Option<Waker> {
        let mut state = self.state();
        for turned in turned.iter().filter(|turned| self.filter.has(&turned.name)) {
            let [old, new] = match self.filter.namespace() {
                None => &turned.effective,
                Some(namespace) if namespace == turned.namespace => &turned.in_namespace,
                Some(_) => continue,
            };
            if own.is_some_and(|own| own.wrote(turned, new.as_ref())) {
                state.pending.forget(&turned.name);
            } else if !same(old.as_ref(), new.as_ref()) {
                state.pending.change(Change {
                    name: turned.name.clone(),
                    old: old.clone(),
                    new: new.clone(),
                    by: turned.by.clone(),
                    secret: turned.secret,
                });
            }
        }
        for news in files {
            state.pending.file(news.clone());
        }
        self.awaken(state)
    }

    /// There will be no more news.
    pub fn close(&self) -> Option<Waker> {
        let mut state = self.state();
        state.closed = true;
        self.awaken(state)
    }

    /// Takes what there is; nothing once all is taken and there will be no more.
    pub fn take(&self) -> Result<News, TryRecvError> {
        self.state().take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn awaken(&self, mut state: MutexGuard<'_, State>) -> Option<Waker> {
        if state.pending.is_empty() && !state.closed {
            return None;
        }
        self.arrived.notify_all();
        state.waker.take()
    }

    /// Sleeps until there is news, there will be none, or the deadline comes.
    fn wait(&self, deadline: Option<Instant>) -> Result<News, RecvTimeoutError> {
        let mut state = self.state();
        loop {
            match state.take() {
                Ok(news) => return Ok(news),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            state = match deadline {
                None => self
                    .arrived
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(RecvTimeoutError::Timeout);
                    }
                    let woken = self.arrived.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl State {
    fn take(&mut self) -> Result<News, TryRecvError> {
        match self.pending.is_empty() {
            false => Ok(self.pending.take()),
            true if self.closed => Err(TryRecvError::Disconnected),
            true => Err(TryRecvError::Empty),
        }
    }
}

impl<'a> Own<'a> {
    /// What a commit of these changes writes: of several to one key the last.
    pub fn new(namespace: Namespace, changes: &'a [merge::Change]) -> Own<'a> {
        let values = changes.iter();
        let values = values.map(|change| (&change.name, change.value.as_deref()));
        Own {
            namespace,
            values: values.collect(),
        }
    }

    /// Whether what a reader would be told is what this process wrote.
    fn wrote(&self, turned: &Turned, new: Option<&Key>) -> bool {
        self.namespace == turned.namespace
            && self.values.get(&turned.name) == Some(&new.map(Key::value))
    }
}

/// News from a [`Watch`](super::Watch), for one reader at its own speed.
///
/// While the reader is busy, changes of the same key become one: what waits is
/// never more than one change for each key and one message for each file, and
/// the last value is never lost. Once the watch is dropped and the rest is
/// taken, there will be no more, and every call says so.
///
/// It is a [`Stream`] as well, which needs no particular executor. Only the task
/// that polled last is woken.
#[must_use = "what is not read is not told to anybody"]
pub struct Changes {
    queue: Arc<Queue>,
}

impl Changes {
    pub(super) fn new(queue: Arc<Queue>) -> Changes {
        Changes { queue }
    }

    /// Waits for news.
    ///
    /// # Errors
    /// When there will be no more.
    pub fn recv(&self) -> Result<News, RecvError> {
        self.queue.wait(None).map_err(|_| RecvError)
    }

    /// Waits for news at most so long.
    ///
    /// # Errors
    /// When none came in this time, or there will be no more.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<News, RecvTimeoutError> {
        self.queue.wait(Instant::now().checked_add(timeout))
    }

    /// Takes the news that is there.
    ///
    /// # Errors
    /// When there is none now, or there will be no more.
    pub fn try_recv(&self) -> Result<News, TryRecvError> {
        self.queue.take()
    }

    /// Waits for news again and again until there will be no more.
    pub fn iter(&self) -> impl Iterator<Item = News> {
        std::iter::from_fn(|| self.recv().ok())
    }
}

impl Stream for Changes {
    type Item = News;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<News>> {
        let waker = task.waker().clone();
        let mut state = self.queue.state();
        match state.take() {
            Ok(news) => Poll::Ready(Some(news)),
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
            Err(TryRecvError::Empty) => {
                let old = state.waker.replace(waker);
                // A waker is user code: with the last one of a task, the task is dropped.
                drop(state);
                drop(old);
                Poll::Pending
            }
        }
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let filter = self.queue.filter();
        f.debug_struct("Changes")
            .field("filter", filter)
            .finish_non_exhaustive()
    }
}
