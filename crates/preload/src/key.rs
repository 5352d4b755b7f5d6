//! Keys of thread-specific data: whether anybody else has one whose destructor is called
//! when a thread ends. Ours ends the thread, and is the last then; where there are no
//! others, that is at once.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use libc::pthread_key_t;

use crate::real::{self, End};

static HAS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Whether somebody else has made a key with a destructor.
pub fn has_others() -> bool {
    HAS_OTHERS.load(Ordering::Relaxed)
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_key_create(key: *mut pthread_key_t, end: Option<End>) -> c_int {
    if end.is_some() {
        HAS_OTHERS.store(true, Ordering::Relaxed);
    }
    // SAFETY: the caller's.
    unsafe { real::pthread_key_create(key, end) }
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tss_create(key: *mut pthread_key_t, end: Option<End>) -> c_int {
    if end.is_some() {
        HAS_OTHERS.store(true, Ordering::Relaxed);
    }
    // SAFETY: the caller's.
    unsafe { real::tss_create(key, end) }
}
