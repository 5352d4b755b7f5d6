//! The memory of an array: its elements side by side, as a field points to them.

use std::{mem::MaybeUninit, ptr::NonNull};

use crate::{Kind, field::Cell};

/// Elements of one kind, aligned as the largest kind is.
///
/// A pointer and not a box, since cells keep it while it moves with its owner.
#[derive(Debug)]
pub struct Slice {
    words: NonNull<[MaybeUninit<u64>]>,
}

// SAFETY: nobody writes to it any more, and what texts in it point to is kept by
// its owner.
unsafe impl Send for Slice {}
// SAFETY: as above.
unsafe impl Sync for Slice {}

impl Default for Slice {
    fn default() -> Self {
        Slice::of(Box::default())
    }
}

impl Slice {
    /// These cells as fields.
    ///
    /// # Safety
    ///
    /// They are of this kind.
    pub unsafe fn new(kind: Kind, cells: &[Cell]) -> Self {
        let bytes = kind.width() * cells.len();
        let words = vec![MaybeUninit::<u64>::uninit(); bytes.div_ceil(size_of::<u64>())];
        let slice = Slice::of(words.into());
        for (index, cell) in cells.iter().enumerate() {
            // SAFETY: there is room for all of them, and the caller vouches for
            // their kind.
            unsafe {
                let place = slice.words.cast::<u8>().add(index * kind.width());
                cell.store(kind.shape(), place.as_ptr());
            }
        }
        slice
    }

    fn of(words: Box<[MaybeUninit<u64>]>) -> Self {
        Slice {
            words: NonNull::from(Box::leak(words)),
        }
    }

    /// Where the first element is.
    pub fn start(&self) -> *const u8 {
        self.words.cast().as_ptr()
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        // SAFETY: `of` leaked it, and nobody else frees it.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}
