//! The alarm: operators that want to be woken, as a source among others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use milieu_transfer::Time;
use rustix::event::{EventfdFlags, eventfd};

use super::Streams;
use crate::source::{Feed, Source, Wait};

/// When the machine is woken next, and a bell for when that is to be earlier.
pub(super) struct Alarm {
    /// Only changed while the machine is at work.
    due: AtomicI64,
    bell: OwnedFd,
}

impl Alarm {
    pub fn new() -> io::Result<Alarm> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Alarm {
            due: AtomicI64::new(Time::MAX.nanoseconds()),
            bell: eventfd(0, flags)?,
        })
    }

    /// Takes note of when the machine wants to be woken.
    #[inline]
    pub fn set(&self, due: Option<Time>) {
        let due = due.unwrap_or(Time::MAX).nanoseconds();
        if due < self.due.load(Ordering::Relaxed) {
            self.due.store(due, Ordering::Relaxed);
            // Only a full counter refuses a further one, and a full counter rings.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }
}

/// Wakes the machine when it wants to be woken.
pub(super) struct Waking {
    pub streams: Streams,
    pub alarm: Arc<Alarm>,
}

impl Source for Waking {
    fn poll(&mut self, _: &mut Feed<'_>) -> Wait {
        let _ = rustix::io::read(&self.alarm.bell, &mut [0; 8]);
        let alarm = Arc::clone(&self.alarm);
        let due = self.streams.ask(move |machine, now| {
            machine.wake(now);
            let due = machine.due().unwrap_or(Time::MAX);
            alarm.due.store(due.nanoseconds(), Ordering::Relaxed);
            due
        });
        match due {
            Some(Time::MAX) | None => Wait::Readable,
            Some(due) => Wait::Until(due),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.alarm.bell.as_fd())
    }
}
