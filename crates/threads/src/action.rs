//! What a program wants to happen on a signal, kept while somebody stands before it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

pub(crate) fn no_action() -> libc::sigaction {
    // SAFETY: all zeros are the default action.
    unsafe { core::mem::zeroed() }
}

const MASK_WORDS: usize = size_of::<libc::sigset_t>() / size_of::<usize>();

/// An action that a handler reads while another thread writes it: it is read again if
/// its version has changed meanwhile; while it is odd, somebody writes.
pub(crate) struct StoredAction {
    version: AtomicUsize,
    function: AtomicUsize,
    flags: AtomicU32,
    mask: [AtomicUsize; MASK_WORDS],
}

impl StoredAction {
    pub const fn new() -> Self {
        Self {
            version: AtomicUsize::new(0),
            function: AtomicUsize::new(libc::SIG_DFL),
            flags: AtomicU32::new(0),
            mask: [const { AtomicUsize::new(0) }; MASK_WORDS],
        }
    }

    pub fn load(&self) -> libc::sigaction {
        /// A signal that somebody sends can interrupt the one who writes, and would wait
        /// for it for ever.
        const TRIES_MAX: u32 = 1 << 16;
        let mut action = no_action();
        for _ in 0..TRIES_MAX {
            let before = self.version.load(Ordering::Acquire);
            let mask = self
                .mask
                .each_ref()
                .map(|word| word.load(Ordering::Relaxed));
            action.sa_sigaction = self.function.load(Ordering::Relaxed);
            action.sa_flags = self.flags.load(Ordering::Relaxed) as c_int;
            // SAFETY: a set of signals is words without gaps, and any are a set.
            action.sa_mask =
                unsafe { core::mem::transmute::<[usize; MASK_WORDS], libc::sigset_t>(mask) };
            fence(Ordering::Acquire);
            if before % 2 == 0 && self.version.load(Ordering::Relaxed) == before {
                break;
            }
            core::hint::spin_loop();
        }
        action
    }

    pub fn store(&self, action: &libc::sigaction) {
        let mut version = self.version.load(Ordering::Relaxed);
        loop {
            // Nobody is interrupted for long while it is odd: these are a few stores.
            let even = version & !1;
            match self.version.compare_exchange_weak(
                even,
                even.wrapping_add(1),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => version = now,
            }
            core::hint::spin_loop();
        }
        fence(Ordering::Release);
        self.function.store(action.sa_sigaction, Ordering::Relaxed);
        self.flags.store(action.sa_flags as u32, Ordering::Relaxed);
        // SAFETY: a set of signals is words without gaps.
        let mask: [usize; MASK_WORDS] = unsafe { core::mem::transmute(action.sa_mask) };
        let words = self.mask.iter().zip(mask);
        words.for_each(|(into, word)| into.store(word, Ordering::Relaxed));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Whoever was writing is not in this process.
    pub fn forked(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.next_multiple_of(2), Ordering::Relaxed);
    }
}
