//! What time it is: asked of the system, or told by a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use milieu_transfer::Time;

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Time;

    /// Whether it is the system's, so that one can wait for a time of it.
    fn is_of_system(&self) -> bool {
        false
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Time {
        (**self).now()
    }

    fn is_of_system(&self) -> bool {
        (**self).is_of_system()
    }
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        SystemTime::now().into()
    }

    fn is_of_system(&self) -> bool {
        true
    }
}

/// A clock that stands until it is set. Clones are one clock.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock(Arc<AtomicI64>);

impl VirtualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn new(time: Time) -> VirtualClock {
        VirtualClock(Arc::new(AtomicI64::new(time.nanoseconds())))
    }

    /// Sets it.
    pub fn set(&self, time: Time) {
        self.0.store(time.nanoseconds(), Ordering::Release);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        Time::from_nanoseconds(self.0.load(Ordering::Acquire))
    }
}
