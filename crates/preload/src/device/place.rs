//! Files of ours that stay open beside a program that may close them.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use milieu_threads::device::{close, file_of};

/// A place for a file that stays open. A program may close it, and have another by its
/// number.
pub struct Place {
    number: AtomicI32,
    /// Which file it is.
    file: AtomicU64,
}

impl Place {
    pub const fn new() -> Place {
        Place {
            number: AtomicI32::new(-1),
            file: AtomicU64::new(0),
        }
    }

    /// Whether there is one, as far as we know.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.number.load(Ordering::Acquire) >= 0
    }

    /// The number, and which file has it.
    pub fn get(&self) -> Option<(c_int, u64)> {
        let number = self.number.load(Ordering::Acquire);
        (number >= 0).then(|| (number, self.file.load(Ordering::Acquire)))
    }

    /// Puts a file there; whatever is there is forgotten.
    pub fn put(&self, number: c_int, file: u64) {
        self.number.store(-1, Ordering::Release);
        self.file.store(file, Ordering::Release);
        self.number.store(number, Ordering::Release);
    }

    /// Takes this file from there; false if another thread has.
    pub fn take(&self, number: c_int) -> bool {
        let (new, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let exchanged = self.number.compare_exchange(number, -1, new, failure);
        exchanged.is_ok()
    }

    /// Closes what is there, if it is what it was.
    pub fn close(&self) {
        if let Some((number, file)) = self.get() {
            if self.take(number) && file_of(number) == file {
                close(number);
            }
        }
    }
}
