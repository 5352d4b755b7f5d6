//! Rights that a process gives up: what it needs later is opened before, or it could not be.

use core::ffi::{c_char, c_int};

use libc::uid_t;

use crate::{real, state};

fn prepare() {
    if let Some(served) = state::served() {
        state::uncancelled(|| served.prepare_for_loss());
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setuid(user: uid_t) -> c_int {
    prepare();
    // SAFETY: the caller's.
    unsafe { real::setuid(user) }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn seteuid(user: uid_t) -> c_int {
    prepare();
    // SAFETY: the caller's.
    unsafe { real::seteuid(user) }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setreuid(user: uid_t, effective: uid_t) -> c_int {
    prepare();
    // SAFETY: the caller's.
    unsafe { real::setreuid(user, effective) }
}

/// As the C library has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setresuid(user: uid_t, effective: uid_t, saved: uid_t) -> c_int {
    prepare();
    // SAFETY: the caller's.
    unsafe { real::setresuid(user, effective, saved) }
}

/// As the C library has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    prepare();
    // SAFETY: the caller's.
    unsafe { real::chroot(path) }
}
