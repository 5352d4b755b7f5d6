//! Where this crate takes its atomics from, so that a model checker can take
//! their place, and how one waits for who holds a line.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// How often somebody looks again before giving up: short waits by far most
/// often, and about a tenth of a second if who writes does not get the processor.
#[cfg(not(loom))]
pub(crate) const ATTEMPTS: u32 = 64 + 1000;
#[cfg(loom)]
pub(crate) const ATTEMPTS: u32 = 4;

/// Waits before an attempt. Whoever holds a line holds it for a few instructions;
/// if it takes longer, it was preempted, perhaps by the very thread that waits,
/// and spinning on would keep it from ever going on.
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
