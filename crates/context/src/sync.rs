//! The concurrency primitives, in one place, so that a model checker can take
//! theirs (`RUSTFLAGS="--cfg loom"`).
//!
//! Reference counts stay the standard library's: nothing here orders memory by
//! them, and leaving them out keeps the models small. So do the counter that
//! draws the identities of contexts, and the keys of hashes, which are set once.

#[cfg(not(loom))]
pub use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering, fence},
    },
    thread::{ThreadId, current},
    thread_local,
};

#[cfg(loom)]
pub use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering, fence},
    },
    thread::{ThreadId, current},
    thread_local,
};

/// Locks, also where a panic has poisoned the lock.
///
/// No critical section of this crate runs user code or leaves its data
/// half-changed, so poison carries no information here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Waits, also where a panic has poisoned the lock.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    match condvar.wait(guard) {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
