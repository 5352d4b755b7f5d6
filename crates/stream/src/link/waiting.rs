//! Events that wait for a peer: a queue for each of its edges, and what the peer
//! may let wait in all of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use milieu_transfer::Event;

/// How many events wait for a peer on all of its edges. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Load(Arc<AtomicUsize>);

/// The events that wait on an edge.
pub(super) struct Waiting {
    events: VecDeque<Event>,
    /// Changed while the machine is at work for the link alone.
    load: Load,
    /// How many may wait for the peer.
    most: usize,
}

impl Waiting {
    pub fn new(load: Load, most: usize) -> Waiting {
        Waiting {
            events: VecDeque::new(),
            load,
            most,
        }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether as much waits for the peer, here and elsewhere, as may.
    pub fn is_peer_full(&self) -> bool {
        self.load.0.load(Ordering::Relaxed) >= self.most
    }

    pub fn push(&mut self, event: Event) {
        self.load.0.fetch_add(1, Ordering::Relaxed);
        self.events.push_back(event);
    }

    pub fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.load.0.fetch_sub(1, Ordering::Relaxed);
        Some(event)
    }

    /// Takes all out. How many there were.
    pub fn clear(&mut self) -> usize {
        let events = std::mem::take(&mut self.events);
        self.load.0.fetch_sub(events.len(), Ordering::Relaxed);
        events.len()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.clear();
    }
}
