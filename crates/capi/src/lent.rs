//! What callbacks are handed for as long as they run.
//!
//! It lies on the stack, behind a tag that is gone when the callback has returned:
//! whoever has kept the pointer is told so for as long as nothing else lies there.

use crate::{
    abi::MILIEU_WRONG_HANDLE,
    call::{Failure, null},
};

/// A type that callbacks are handed.
pub trait Lend {
    /// Four letters, which no other type has.
    const TAG: [u8; 4];
    /// What the header calls it.
    const NAME: &'static str;
}

/// What a callback is handed, as the other side has it.
#[repr(C)]
pub struct Lent<T> {
    tag: u32,
    inside: T,
}

impl<T: Lend> Lent<T> {
    const TAG: u32 = u32::from_le_bytes(T::TAG);

    /// Hands it to a callback, and gives it back with what that returns.
    pub fn during<R>(inside: T, callback: impl FnOnce(*mut Lent<T>) -> R) -> (R, T) {
        let mut lent = Lent {
            tag: Self::TAG,
            inside,
        };
        let result = callback(&raw mut lent);
        // SAFETY: it is a field of `lent`. Whoever has kept the pointer finds no tag.
        unsafe { (&raw mut lent.tag).write_volatile(0) };
        (result, lent.inside)
    }

    /// What the other side has handed back.
    ///
    /// # Safety
    ///
    /// It can be read if it is not null, and was lent if it says so.
    pub unsafe fn find<'a>(pointer: *mut Lent<T>) -> Result<&'a mut T, Failure> {
        if pointer.is_null() {
            return Err(null(T::NAME));
        }
        // SAFETY: as the caller vouches; it is aligned.
        if pointer.is_aligned() && unsafe { (*pointer).tag } == Self::TAG {
            // SAFETY: as the caller vouches.
            return Ok(unsafe { &mut (*pointer).inside });
        }
        let name = T::NAME;
        Err(Failure::new(
            MILIEU_WRONG_HANDLE,
            format_args!(
                "this is no `{name}`; it is one during the callback that it was handed to"
            ),
        ))
    }
}
