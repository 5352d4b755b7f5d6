//! Receivers: where a subscription's events end.

use milieu_transfer::{Event, Time};

use crate::books::Dropped;
use crate::latency::Delays;

/// What takes the events of a subscription.
///
/// It is called while the machine runs: it must neither block nor take long.
/// Whoever has more to do takes the events from a queue, in a thread of its own.
pub trait Receiver: Send {
    /// An event.
    fn event(&mut self, event: &Event) -> Delivered;

    /// Whether it can take no event now, and wants publishers to be told.
    fn refuses(&self) -> bool {
        false
    }

    /// No more events will come: the subscription was ended by others.
    fn end(&mut self) {}

    /// The next event was published at this time, and is measured. Whether it
    /// may wait here: then it has arrived when it is taken, and
    /// [`delays`](Receiver::delays) tells how long it took.
    fn mark(&mut self, published: Time) -> bool {
        let _ = published;
        false
    }

    /// How long events took that waited here and were measured.
    fn delays(&self) -> Option<Delays> {
        None
    }

    /// What has become of the events.
    fn tally(&self) -> Option<Tally> {
        None
    }
}

/// What a receiver says of an event that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It will have more.
    Taken,
    /// It is gone and has not taken this one; the subscription ends.
    Closed,
}

/// What has become of the events that a receiver was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Taken by the application.
    pub taken: u64,
    /// Dropped, by reason.
    pub dropped: Dropped,
    /// Still waiting, counted from the queue itself.
    pub waiting: u64,
}

impl<F: FnMut(&Event) + Send> Receiver for F {
    #[inline]
    fn event(&mut self, event: &Event) -> Delivered {
        self(event);
        Delivered::Taken
    }
}
