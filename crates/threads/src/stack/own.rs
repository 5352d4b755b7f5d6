//! The watch of a program that asks for it itself: of one that knows of Milieu, and
//! starts threads by itself.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use super::overflow::{AlternateStack, Watch, exchange};
use super::system::Scratch;

static OWN: Watch = Watch::new();
static IS_ARMED: AtomicBool = AtomicBool::new(false);

/// The stacks of this program's threads. From now on `SIGSEGV` is handled, in front of
/// what the program has asked for so far: Rust's own word about an overflow comes after
/// ours. Overflows of threads that have a key are noted in this profile; that of whoever
/// calls last counts, and where there is none, that of before. A program that asks for
/// another action by itself later has that one, and overflows are not seen any more.
///
/// Not for signal handlers, nor beneath a program that does not know of it: there is
/// [`Watch::arm`].
pub fn watch(path: Option<&CStr>) -> &'static Watch {
    if !IS_ARMED.swap(true, Ordering::AcqRel) {
        // SAFETY: it is that function. Nobody else in this program arms one: a preload is
        // another program's library, with a watch of its own.
        unsafe { OWN.arm(libc::sigaction, None) };
    }
    if let Some(path) = path {
        OWN.note_in(path);
    }
    &OWN
}

/// An alternate signal stack of this thread that is large enough to report an overflow
/// on, with memory of its own, until it is dropped.
///
/// That of Rust's standard library is as large as the kernel wants it at least.
pub struct ReportStack {
    memory: Scratch,
    before: libc::stack_t,
}

impl ReportStack {
    /// Gives this thread one; none if it has one that is large enough, runs on it, or
    /// there is no memory.
    pub fn enter() -> Option<Self> {
        let bytes = AlternateStack::bytes();
        // SAFETY: nothing is changed.
        let before = unsafe { exchange(None) }?;
        let is_there = before.ss_flags & libc::SS_DISABLE == 0;
        let is_on_it = before.ss_flags & libc::SS_ONSTACK != 0;
        if is_on_it || is_there && before.ss_size >= bytes {
            return None;
        }
        let mut memory = Scratch::new(bytes).ok()?;
        let wanted = libc::stack_t {
            ss_sp: memory.bytes().as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: bytes,
        };
        // SAFETY: the memory stays until this is dropped, which gives it back before, in
        // this thread: what is returned cannot be sent to another.
        unsafe { exchange(Some(&wanted)) }?;
        Some(Self { memory, before })
    }
}

impl Drop for ReportStack {
    fn drop(&mut self) {
        // SAFETY: nothing is changed.
        let now = unsafe { exchange(None) };
        let start = self.memory.bytes().as_mut_ptr().cast();
        // Somebody may have put another in the place, or none as the one of before is gone.
        if now.is_some_and(|it| it.ss_sp == start && it.ss_flags & libc::SS_DISABLE == 0) {
            // SAFETY: it was this thread's, and whoever takes it away says so to the kernel.
            unsafe { exchange(Some(&self.before)) };
        }
    }
}
