//! The key set held still.

use std::thread::{self, ThreadId};

use milieu::Held;

use crate::{
    abi::{MILIEU_WRONG_THREAD, milieu_key, milieu_result, milieu_text},
    call::{Failure, call, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle},
};

/// A key set that nobody alters, and its keys as the other side reads them.
pub struct Hold {
    keys: Vec<milieu_key>,
    // What the keys point to goes last.
    _origins: Vec<String>,
    _held: OfThread,
    thread: ThreadId,
}

/// A lock that counts by thread.
struct OfThread(#[allow(dead_code)] Held);

// SAFETY: only the thread that made it drops it: `milieu_hold_free` sees to that.
unsafe impl Send for OfThread {}
// SAFETY: nobody else reaches it at all.
unsafe impl Sync for OfThread {}
// SAFETY: the keys point to what `_held` and `_origins` keep, which nobody alters.
unsafe impl Send for Hold {}
// SAFETY: as above.
unsafe impl Sync for Hold {}

handle!(Hold, b"hold", "milieu_hold");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_hold = Slot<Hold>;

impl Hold {
    fn check(&self) -> Result<(), Failure> {
        if self.thread == thread::current().id() {
            return Ok(());
        }
        Err(Failure::new(
            MILIEU_WRONG_THREAD,
            "this `milieu_hold` belongs to the thread that has made it; read and free it there",
        ))
    }
}

/// Holds the key set still.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_hold_new(
    coordinator: *const milieu_coordinator,
    hold: *mut *mut milieu_hold,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), hold) =
            unsafe { (handle::shared(coordinator)?, out(hold, "hold")?) };
        let held = milieu.coordinator().require_lock();
        let entries = held.entries();
        let origins = entries.iter().map(|entry| entry.origin);
        let origins: Vec<String> = origins
            .map(|origin| origin.map_or_else(String::new, ToString::to_string))
            .collect();
        let key = |(entry, origin): (&milieu::context::Entry<'_>, &String)| milieu_key {
            name: milieu_text::of(entry.name),
            value: milieu_text::of(entry.text),
            origin: milieu_text::of(origin),
        };
        let keys = entries.iter().zip(&origins).map(key).collect();
        drop(entries);
        *hold = handle::new(Hold {
            keys,
            _origins: origins,
            _held: OfThread(held),
            thread: thread::current().id(),
        });
        Ok(())
    })
}

/// Lets go.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_hold_free(hold: *mut milieu_hold) -> milieu_result {
    call(|| {
        if hold.is_null() {
            return Ok(());
        }
        // SAFETY: as the caller vouches.
        unsafe {
            handle::shared(hold.cast_const())?.check()?;
            drop(handle::take(hold)?);
        }
        Ok(())
    })
}

/// The keys in force.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_hold_keys(
    hold: *const milieu_hold,
    keys: *mut *const milieu_key,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (hold, keys, count) = unsafe {
            (
                handle::shared(hold)?,
                out(keys, "keys")?,
                out(count, "count")?,
            )
        };
        hold.check()?;
        *keys = hold.keys.as_ptr();
        *count = hold.keys.len();
        Ok(())
    })
}
