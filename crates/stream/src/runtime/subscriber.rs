//! Subscribers: queues that a thread or a task empties, and callbacks.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use milieu_diagnostics::Diagnostic;
use milieu_transfer::Event;

use super::Streams;
use super::queue::{Outlet, queue};
use crate::flow::Flow;
use crate::graph::{Planned, ReaderId, SubscriptionId};
use crate::receiver::{Receiver, Tally};
use crate::subscription::{Delivery, Overflow};

/// A subscription whose events wait in a queue. It ends when it is dropped.
///
/// Events are handed over in batches: what has been handed over counts as taken,
/// and the bound is on what has not.
pub struct Subscriber {
    listening: Listening,
    /// Whether publishers are told when it is full.
    refuses: bool,
    queue: Outlet,
    taken: VecDeque<Event>,
}

/// A subscription whose events go to a callback. It ends when it is dropped,
/// after an event that is under way.
#[must_use = "the subscription ends when this is dropped"]
pub struct Listening {
    streams: Streams,
    id: Arc<OnceLock<SubscriptionId>>,
}

impl Streams {
    /// Subscribes to a flow, by a queue.
    ///
    /// # Errors
    /// If an operator is unknown, or refuses its parameters.
    pub fn subscribe(&self, flow: &Flow, delivery: Delivery) -> Result<Subscriber, Diagnostic> {
        self.subscribe_as(&global(), flow, delivery)
    }

    pub(super) fn subscribe_as(
        &self,
        reader: &Arc<OnceLock<ReaderId>>,
        flow: &Flow,
        delivery: Delivery,
    ) -> Result<Subscriber, Diagnostic> {
        let (inlet, queue) = queue(delivery);
        let listening = self.attach(reader, flow, Box::new(inlet))?;
        let refuses = matches!(
            delivery,
            Delivery::Every {
                overflow: Overflow::Refuse,
                ..
            }
        );
        self.0
            .refusing
            .fetch_add(usize::from(refuses), Ordering::Relaxed);
        Ok(Subscriber {
            listening,
            refuses,
            queue,
            taken: VecDeque::new(),
        })
    }

    /// Subscribes to a flow, by a callback. It runs in the thread that publishes
    /// the event, and keeps others from having theirs: it must neither block nor
    /// take long. Whoever has more to do subscribes by a queue.
    ///
    /// # Errors
    /// If an operator is unknown, or refuses its parameters.
    pub fn listen(
        &self,
        flow: &Flow,
        callback: impl FnMut(&Event) + Send + 'static,
    ) -> Result<Listening, Diagnostic> {
        self.attach(&global(), flow, Box::new(callback))
    }

    pub(super) fn attach(
        &self,
        reader: &Arc<OnceLock<ReaderId>>,
        flow: &Flow,
        receiver: Box<dyn Receiver>,
    ) -> Result<Listening, Diagnostic> {
        let planned = Planned::new(flow, self.catalogue())?;
        let id = Arc::new(OnceLock::new());
        let made = Arc::clone(&id);
        let application = Arc::clone(&self.0.origin.0);
        let reader = Arc::clone(reader);
        self.order(move |machine, now| {
            // A reader is made before what subscribes as it.
            let reader = reader.get().copied().unwrap_or(ReaderId::GLOBAL);
            let _ = made.set(machine.subscribe(now, planned, reader, application, receiver));
        });
        Ok(Listening {
            streams: self.clone(),
            id,
        })
    }
}

pub(super) fn global() -> Arc<OnceLock<ReaderId>> {
    Arc::new(OnceLock::from(ReaderId::GLOBAL))
}

impl Subscriber {
    /// The next event, if there is one.
    pub fn try_next(&mut self) -> Option<Event> {
        self.taken.pop_front().or_else(|| {
            let clock = self.listening.streams.clock();
            self.queue.take(&mut self.taken, clock)
        })
    }

    /// Waits for the next event. Nothing: no more will come.
    pub fn wait(&mut self) -> Option<Event> {
        self.taken.pop_front().or_else(|| {
            let clock = self.listening.streams.clock();
            self.queue.wait(&mut self.taken, None, clock)
        })
    }

    /// Waits for the next event, but no longer than this.
    pub fn wait_for(&mut self, limit: Duration) -> Option<Event> {
        self.taken.pop_front().or_else(|| {
            // What is too far away to be told is never.
            let until = Instant::now().checked_add(limit);
            let clock = self.listening.streams.clock();
            self.queue.wait(&mut self.taken, until, clock)
        })
    }

    /// Whether no more events will come: the subscription was ended by others, or
    /// by [`Overflow::Close`], and all that it had have been taken.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.taken.is_empty() && self.queue.is_ended()
    }

    /// What has become of the events so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.queue.tally()
    }
}

impl Iterator for Subscriber {
    type Item = Event;

    /// As [`wait`](Subscriber::wait).
    fn next(&mut self) -> Option<Event> {
        self.wait()
    }
}

impl futures_core::Stream for Subscriber {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        match this.taken.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => {
                let clock = this.listening.streams.clock();
                this.queue.poll(&mut this.taken, cx.waker(), clock)
            }
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let refusing = &self.listening.streams.0.refusing;
        refusing.fetch_sub(usize::from(self.refuses), Ordering::Relaxed);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let id = Arc::clone(&self.id);
        self.streams.order(move |machine, _| {
            // The receiver may have much to drop; others wait meanwhile.
            drop(id.get().and_then(|id| machine.unsubscribe(*id)));
        });
    }
}
