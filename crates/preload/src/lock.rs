//! Mutexes: a critical thread that is about to wait for one lends its urgency to the
//! thread that has it.
//!
//! Without a critical thread in the process, and where the mutex is free, nothing but a
//! load comes before the C library's function. Kinds of mutexes keep their meaning: it is
//! asked once whether the mutex is free, and everything else is the real function's.

use core::ffi::c_int;

use libc::{pthread_mutex_t, timespec};
use milieu_threads::{kernel, lock};

use crate::real;
use crate::state::{self, Served};

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let take = || unsafe { real::pthread_mutex_lock(mutex) };
    match state::mediated() {
        None => take(),
        // SAFETY: the caller's.
        Some(served) => unsafe { urgently(served, mutex, take) },
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the caller's.
    let take = || unsafe { real::pthread_mutex_timedlock(mutex, until) };
    match state::mediated() {
        None => take(),
        // SAFETY: the caller's.
        Some(served) => unsafe { urgently(served, mutex, take) },
    }
}

/// As glibc, and the next POSIX, have it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: c_int,
    until: *const timespec,
) -> c_int {
    // SAFETY: the caller's.
    let take = || unsafe { real::pthread_mutex_clocklock(mutex, clock, until) };
    match state::mediated() {
        None => take(),
        // SAFETY: the caller's.
        Some(served) => unsafe { urgently(served, mutex, take) },
    }
}

/// As C has it; its mutexes are those of POSIX.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    let take = || unsafe { real::mtx_lock(mutex) };
    match state::mediated() {
        None => take(),
        // SAFETY: the caller's.
        Some(served) => unsafe { urgently(served, mutex, take) },
    }
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_timedlock(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the caller's.
    let take = || unsafe { real::mtx_timedlock(mutex, until) };
    match state::mediated() {
        None => take(),
        // SAFETY: the caller's.
        Some(served) => unsafe { urgently(served, mutex, take) },
    }
}

/// # Safety
/// The mutex is one that can be locked.
#[cold]
#[inline(never)]
unsafe fn urgently(
    served: &Served,
    mutex: *mut pthread_mutex_t,
    take: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    let said = unsafe { real::pthread_mutex_trylock(mutex) };
    if said != libc::EBUSY {
        return said;
    }
    let identity = kernel::identity();
    let is_critical = served
        .program
        .get(identity)
        .is_ok_and(|it| it.is_time_critical());
    // SAFETY: the caller's.
    let owner = unsafe { lock::owner_of(mutex) };
    match owner {
        Some(owner) if is_critical => {
            served.program.waits(identity, owner);
            let said = take();
            served.program.served(identity);
            said
        }
        _ => take(),
    }
}
