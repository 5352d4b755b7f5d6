//! Where this crate takes its atomics from, so that a model checker can take
//! their place, and how one waits for another who is about to be ready.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// The core library's, with the model checker's face.
#[cfg(not(loom))]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    #[cfg(test)]
    pub fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(core::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn with_mut<R>(&self, act: impl FnOnce(*mut T) -> R) -> R {
        act(self.0.get())
    }
}

/// How often somebody looks again before giving up: short waits by far most
/// often, and about a tenth of a second if who writes does not get the processor.
#[cfg(not(loom))]
pub(crate) const ATTEMPTS: u32 = 64 + 1000;
#[cfg(loom)]
pub(crate) const ATTEMPTS: u32 = 4;

/// Waits before an attempt. Whoever one waits for, as who holds a line, needs a few
/// instructions; if it takes longer, it was preempted, perhaps by the very thread that
/// waits, and spinning on would keep it from ever going on.
#[cfg(not(loom))]
pub(crate) fn pause(attempt: u32) {
    // An interpreter makes no system calls, and gives others their turn by itself.
    if attempt < 64 || cfg!(miri) {
        core::hint::spin_loop();
    } else {
        crate::kernel::sleep_ns(100_000);
    }
}
#[cfg(loom)]
pub(crate) fn pause(_: u32) {
    loom::thread::yield_now();
}
