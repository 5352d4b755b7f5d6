//! What operators remember, as bytes.

use milieu::stream::CannotRestore;

use super::{Streams, milieu_streams, source::within};
use crate::{
    abi::{MILIEU_BUSY, MILIEU_INVALID, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

/// What operators remembered when it was made.
pub struct Memory(Vec<u8>);

handle!(Memory, b"memo", "milieu_memory");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_memory = Slot<Memory>;

impl From<CannotRestore> for Failure {
    fn from(error: CannotRestore) -> Self {
        let result = match error {
            CannotRestore::Inside => MILIEU_BUSY,
            _ => MILIEU_INVALID,
        };
        Failure::new(result, error)
    }
}

/// Takes down what operators remember.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_memory_new(
    streams: *const milieu_streams,
    memory: *mut *mut milieu_memory,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), memory) =
            unsafe { (handle::shared(streams)?, out(memory, "memory")?) };
        within(opened)?;
        let bytes = opened.graph().snapshot().ok_or(CannotRestore::Inside)?;
        *memory = handle::new(Memory(bytes));
        Ok(())
    })
}

/// The bytes of it.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_memory_bytes(
    memory: *const milieu_memory,
    bytes: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Memory(kept), bytes) = unsafe { (handle::shared(memory)?, out(bytes, "bytes")?) };
        *bytes = milieu_text {
            bytes: kept.as_ptr().cast(),
            length: kept.len(),
        };
        Ok(())
    })
}

/// Gives it back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_memory_free(memory: *mut milieu_memory) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(memory)? });
        Ok(())
    });
}

/// Lets operators go on from what others remembered.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_memory_restore(
    streams: *const milieu_streams,
    bytes: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), bytes) = unsafe { (handle::shared(streams)?, bytes.bytes("bytes")?) };
        within(opened)?;
        Ok(opened.graph().restore(bytes.to_vec())?)
    })
}
