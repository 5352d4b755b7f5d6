//! What is known of a thread, for programs built against `milieu/threads.h`.

use core::ffi::c_int;

use libc::{pthread_t, size_t};
use milieu_threads::host::Information;
use milieu_threads::kernel;

use crate::attributes::{identity_of, number_of};
use crate::record;
use crate::state::{self, WATCH};

/// Tells what the table says of a thread, its stack measured in this moment.
///
/// # Safety
/// Null, or a place whose first word says how many bytes there are.
pub unsafe extern "C" fn get(thread: pthread_t, into: *mut Information) -> c_int {
    // SAFETY: the caller's.
    let room = unsafe { into.cast::<size_t>().as_ref() };
    // Whoever has more than this knows by the size what there is.
    if room.is_none_or(|it| *it < size_of::<Information>()) {
        return libc::EINVAL;
    }
    match of(thread) {
        Ok(found) => {
            // SAFETY: the caller's, and there is as much.
            unsafe { into.write(found) };
            0
        }
        Err(error) => error,
    }
}

fn of(thread: pthread_t) -> Result<Information, c_int> {
    let served = state::serve().ok_or(libc::ENOSYS)?;
    let lines = served.program.table().lines();
    let identity = identity_of(thread);
    let tid = lines.entry(identity).map_err(number_of)?.tid;
    // In a signal handler that has interrupted who measures, it is as it was last.
    let me = kernel::thread_id();
    let measured = state::uncancelled(|| served.measure(me, |it| WATCH.look_at(tid as c_int, it)));
    if let Some(found) = measured.flatten() {
        record::note_peak(served, identity, tid, found.peak_bytes);
    }
    let mut entry = lines.entry(identity).map_err(number_of)?;
    if let Ok(own) = served.program.own(identity) {
        entry.own = own;
    }
    Ok(Information::of(&entry))
}
