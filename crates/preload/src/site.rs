//! Where the program creates threads, noted in the profile for those who ask for it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use milieu_threads::kernel;
use milieu_threads::stack::{Creation, Key, Sites};

use crate::state::Served;

static SITES: Sites = Sites::new();

/// That is said once.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Whoever writes a profile has its lock for less than that.
const PATIENCE_MILLISECONDS: u32 = 100;

unsafe extern "C" {
    /// As the C library has it, which asks the compiler's library to unwind.
    fn backtrace(calls: *mut usize, room: c_int) -> c_int;
}

/// This thread is about to create one of this key. The loader has to be free.
pub fn note(served: &Served, key: &Key) {
    let is_wanted = served.settings.notes_sites;
    let Some(profile) = served.profile.filter(|_| is_wanted) else {
        return;
    };
    kernel::unnoticed(|| {
        let mut calls = [0; Sites::CALLS_MAX];
        // SAFETY: writes as many addresses as there is room for.
        let count = unsafe { backtrace(calls.as_mut_ptr(), Sites::CALLS_MAX as c_int) };
        let count = usize::try_from(count).unwrap_or(0);
        let creation = Creation {
            key,
            calls: calls.get(..count).unwrap_or_default(),
            own: note as *const () as usize,
        };
        // It is waited for once: all that create threads would wait for who has hung.
        let patience = match HAS_FAILED.load(Ordering::Relaxed) {
            true => 0,
            false => PATIENCE_MILLISECONDS,
        };
        let failed = SITES.note(&creation, profile, patience).err();
        if let Some(error) = failed.filter(|_| !HAS_FAILED.swap(true, Ordering::Relaxed)) {
            let path = served.settings.profile.unwrap_or("");
            served.say(format_args!(
                "{path}: where some threads are created is not kept: {error}"
            ));
        }
    });
}
