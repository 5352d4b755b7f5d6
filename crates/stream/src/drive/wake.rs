//! A descriptor by which one thread wakes another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Becomes readable when another thread says so: the descriptor of a source
/// that is handed what it publishes.
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// One that is not readable yet.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new() -> io::Result<Wake> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Wake(eventfd(0, flags)?))
    }

    /// Makes it readable; any thread may, any number of times.
    pub fn wake(&self) {
        // Only a full counter refuses a further one, and a full counter wakes.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it unreadable again. What it was made readable for is looked at
    /// after this, so that nothing is missed.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
