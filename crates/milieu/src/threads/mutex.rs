//! A mutex whose owner comes as soon as a critical thread waits for it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{self, Arc, LockResult, PoisonError, TryLockError};

use milieu_threads::kernel;

use super::Mediator;
use super::mediator::Shared;

/// As [`std::sync::Mutex`], but that a critical thread which waits lends its
/// priority to the thread that has it, and to whom that waits for: a lazy thread
/// does not keep it waiting for longer than it takes to let go.
///
/// Made by [`Mediator::mutex`]. The standard library's own mutex says nobody who
/// has it, and so is beyond the mediator's reach.
pub struct Mutex<T> {
    shared: Arc<Shared>,
    /// The kernel's number of the thread that has it, or had it last, or 0; a hint.
    /// Who lets go of it does not say so: nobody looks unless it is taken, and then
    /// who had it last is oftener right than nobody.
    owner: AtomicU32,
    value: sync::Mutex<T>,
}

impl Mediator {
    /// A mutex for threads of this mediator.
    pub fn mutex<T>(&self, value: T) -> Mutex<T> {
        Mutex {
            shared: self.shared().clone(),
            owner: AtomicU32::new(0),
            value: sync::Mutex::new(value),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> Mutex<T> {
    /// The value, once nobody else has it.
    ///
    /// # Errors
    /// As [`std::sync::Mutex::lock`]: somebody who had it has panicked.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let (locked, told) = match self.value.try_lock() {
            Ok(value) => (Ok(value), None),
            Err(TryLockError::Poisoned(poisoned)) => (Err(poisoned), None),
            Err(TryLockError::WouldBlock) => self.wait(),
        };
        // Kept by the number of the thread, so that nobody has to be asked for it, and
        // before the mediator hears that it waits no more: a lazy thread takes long
        // to say so, and has the mutex meanwhile.
        self.owner.store(own_number(), Ordering::Relaxed);
        if let Some(identity) = told {
            self.shared.served(identity);
        }
        match locked {
            Ok(value) => Ok(MutexGuard { value }),
            Err(poisoned) => Err(PoisonError::new(MutexGuard {
                value: poisoned.into_inner(),
            })),
        }
    }

    /// The value, and who waited for it, if the mediator was told.
    #[cold]
    fn wait(&self) -> (LockResult<sync::MutexGuard<'_, T>>, Option<u64>) {
        let owner = self.owner.load(Ordering::Relaxed);
        let told = (owner != 0).then(kernel::identity);
        if let Some(identity) = told {
            self.shared.waits(identity, owner);
        }
        (self.value.lock(), told)
    }

    /// The value of a mutex that is nobody's any more.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    pub fn into_inner(self) -> LockResult<T> {
        self.value.into_inner()
    }
}

/// The value of a [`Mutex`], until it is dropped.
#[must_use = "nobody has the value any more when this is dropped"]
pub struct MutexGuard<'m, T> {
    value: sync::MutexGuard<'m, T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// The kernel's number of this thread, asked for once.
fn own_number() -> u32 {
    thread_local!(static NUMBER: u32 = kernel::thread_id());
    NUMBER.with(|it| *it)
}
