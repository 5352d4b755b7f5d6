//! Mutexes: a critical thread that is about to wait for one lends its urgency to the
//! thread that has it.
//!
//! While nobody is mediated, nothing but a jump comes before the C library's function.
//! Kinds of mutexes keep their meaning: it is asked once whether the mutex is free, and
//! everything else is the real function's.

use core::ffi::{c_int, c_void};

use libc::{pthread_mutex_t, timespec};
use milieu_threads::{kernel, lock};

use crate::passage::passages;
use crate::state;
use crate::{device, real};

real::locking!(passages);

/// What a function that locks is called with.
trait Locking {
    fn mutex(&self) -> *mut pthread_mutex_t;
}

impl Locking for (*mut pthread_mutex_t,) {
    fn mutex(&self) -> *mut pthread_mutex_t {
        self.0
    }
}

impl Locking for (*mut pthread_mutex_t, *const timespec) {
    fn mutex(&self) -> *mut pthread_mutex_t {
        self.0
    }
}

impl Locking for (*mut pthread_mutex_t, c_int, *const timespec) {
    fn mutex(&self) -> *mut pthread_mutex_t {
        self.0
    }
}

/// # Safety
/// The mutex is one that can be locked.
unsafe fn around(take: impl FnOnce() -> c_int, arguments: impl Locking) -> c_int {
    let mutex = arguments.mutex();
    // Mostly nobody has it, and then it matters to nobody who may be critical.
    // SAFETY: the caller's.
    let said = unsafe { real::pthread_mutex_trylock(mutex) };
    if said != libc::EBUSY {
        return said;
    }
    // SAFETY: the caller's.
    unsafe { taken(mutex, take) }
}

/// Takes a mutex that somebody has.
///
/// # Safety
/// The mutex is one that can be locked.
#[cold]
#[inline(never)]
unsafe fn taken(mutex: *mut pthread_mutex_t, take: impl FnOnce() -> c_int) -> c_int {
    let Some(served) = state::urging() else {
        return take();
    };
    let identity = kernel::identity();
    let is_critical = served
        .program
        .get(identity)
        .is_ok_and(|it| it.is_time_critical());
    // SAFETY: the caller's.
    let owner = unsafe { lock::owner_of(mutex) };
    match owner {
        Some(owner) if is_critical && state::mediated().is_some() => {
            served.program.waits(identity, owner);
            let said = take();
            served.program.served(identity);
            said
        }
        Some(owner) if is_critical => {
            let me = served.own_number();
            device::waits(served, me, owner);
            let said = take();
            device::has_waited(served, me);
            said
        }
        _ => take(),
    }
}
