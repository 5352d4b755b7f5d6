//! Rights that a process gives up: what it needs later is opened before, or it could not be,
//! and its threads return before, or they could not.

use core::ffi::{c_char, c_int, c_void};

use libc::uid_t;

use crate::{real, state};

fn prepared<T>(change: impl FnOnce() -> T) -> T {
    match state::served() {
        Some(served) => served.change_rights(change),
        None => change(),
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setuid(user: uid_t) -> c_int {
    // SAFETY: the caller's.
    prepared(|| unsafe { real::setuid(user) })
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn seteuid(user: uid_t) -> c_int {
    // SAFETY: the caller's.
    prepared(|| unsafe { real::seteuid(user) })
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setreuid(user: uid_t, effective: uid_t) -> c_int {
    // SAFETY: the caller's.
    prepared(|| unsafe { real::setreuid(user, effective) })
}

/// As the C library has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setresuid(user: uid_t, effective: uid_t, saved: uid_t) -> c_int {
    // SAFETY: the caller's.
    prepared(|| unsafe { real::setresuid(user, effective, saved) })
}

/// As the C library has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    // SAFETY: the caller's.
    prepared(|| unsafe { real::chroot(path) })
}

/// As the C library has it. Other threads keep theirs; but whoever moves them may be this one.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn capset(head: *mut c_void, rights: *const c_void) -> c_int {
    // SAFETY: the caller's.
    prepared(|| unsafe { real::capset(head, rights) })
}
