//! The room of a queue: what a delivery means for an event that comes.

use crate::operator::Reason;
use crate::subscription::{Delivery, Overflow};

/// How many events may wait, and what happens to one that finds no room.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    capacity: usize,
    overflow: Overflow,
    /// What an event is dropped for that makes room for another.
    displaced: Reason,
}

/// Where an event goes that comes to a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind the others.
    Last,
    /// There too, and the first one is dropped for this reason.
    InsteadOfFirst(Reason),
    /// Nowhere: it is dropped for this reason.
    Nowhere(Reason),
    /// Its publisher is to try again, where it can be told.
    Refused,
    /// Nowhere: it is dropped for this reason, and what follows is not wanted.
    End(Reason),
}

impl Room {
    pub fn of(delivery: Delivery) -> Room {
        let (capacity, overflow, displaced) = match delivery {
            Delivery::Latest => (1, Overflow::DropOldest, Reason::Superseded),
            Delivery::Every { capacity, overflow } => {
                (capacity.get() as usize, overflow, Reason::Overflow)
            }
        };
        Room {
            capacity,
            overflow,
            displaced,
        }
    }

    /// The place of an event that comes where so many wait.
    #[inline]
    pub fn place(&self, waiting: usize) -> Place {
        if waiting < self.capacity {
            Place::Last
        } else {
            self.beyond(waiting)
        }
    }

    /// The place of an event that comes where so many wait, and no more may.
    pub fn beyond(&self, waiting: usize) -> Place {
        match self.overflow {
            // Without another one it is itself what has to go.
            Overflow::DropOldest if waiting == 0 => Place::Nowhere(Reason::Overflow),
            Overflow::DropOldest => Place::InsteadOfFirst(self.displaced),
            Overflow::DropNewest => Place::Nowhere(Reason::Overflow),
            Overflow::Refuse => Place::Refused,
            Overflow::Close => Place::End(Reason::Overflow),
        }
    }
}
