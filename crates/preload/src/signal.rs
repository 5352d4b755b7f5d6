//! Handlers of signals that our guards have too: the program's stand behind ours, and
//! the program sees its own.

use core::ffi::c_int;

use milieu_threads::rung::guard;

use crate::real;
use crate::state::{self, WATCH};

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { change(signal, new, old).unwrap_or_else(|| real::sigaction(signal, new, old)) }
}

/// What `sigaction` does where a guard of ours stands before the program.
///
/// # Safety
/// As there.
unsafe fn change(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> Option<c_int> {
    if !matches!(signal, libc::SIGSEGV | libc::SIGXCPU) {
        return None;
    }
    state::served()?;
    // SAFETY: the caller's.
    unsafe {
        match signal {
            libc::SIGSEGV => WATCH.change(new, old),
            _ => guard::change(new, old),
        }
    }
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: zeros are no flags, an empty mask and the default handler.
    let (mut new, mut old): (libc::sigaction, libc::sigaction) =
        unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    new.sa_sigaction = handler;
    // As glibc has it, whose signals are those of BSD.
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: both live; a mask is written by the C library.
    let said = unsafe {
        libc::sigaddset(&mut new.sa_mask, signal);
        change(signal, &raw const new, &mut old)
    };
    match said {
        Some(0) => old.sa_sigaction,
        Some(_) => libc::SIG_ERR,
        // SAFETY: the caller's.
        None => unsafe { real::signal(signal, handler) },
    }
}
