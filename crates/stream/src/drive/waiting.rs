//! Waiting for descriptors: epoll, one readiness at a time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use super::clock::Clock;
use super::wake::Wake;

/// The number of the descriptor that wakes the thread.
const WAKE: u64 = u64::MAX;
/// The number of the clock.
const CLOCK: u64 = u64::MAX - 1;

/// How many descriptors are looked at in one turn.
const READY_MAX: usize = 256;

/// Descriptors of sources, the clock, and a way to be woken.
pub(super) struct Waiting {
    epoll: OwnedFd,
}

/// What ended a wait.
pub(super) enum Ready {
    Woken,
    Clock,
    Source(u64),
}

impl Waiting {
    pub(super) fn new(wake: &Wake, clock: &Clock) -> io::Result<Waiting> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let number = epoll::EventData::new_u64;
        epoll::add(&epoll, wake, number(WAKE), epoll::EventFlags::IN)?;
        epoll::add(&epoll, clock, number(CLOCK), epoll::EventFlags::IN)?;
        Ok(Waiting { epoll })
    }

    /// Says once when a descriptor of a source is readable.
    ///
    /// Only once, because sources close descriptors as they like, and another
    /// may get the same number: what is no longer asked for stays silent.
    pub(super) fn once(&self, id: u64, descriptor: impl AsFd) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::PRI | Flags::RDHUP | Flags::ONESHOT;
        let data = epoll::EventData::new_u64(id);
        match epoll::modify(&self.epoll, &descriptor, data, flags) {
            Err(Errno::NOENT) => Ok(epoll::add(&self.epoll, &descriptor, data, flags)?),
            other => Ok(other?),
        }
    }

    /// Waits for as long as it takes.
    pub(super) fn wait(&self) -> io::Result<Vec<Ready>> {
        let mut events = Vec::with_capacity(READY_MAX);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            None,
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = events.iter().map(|event| match event.data.u64() {
            WAKE => Ready::Woken,
            CLOCK => Ready::Clock,
            id => Ready::Source(id),
        });
        Ok(ready.collect())
    }
}
