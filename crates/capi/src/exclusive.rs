//! Who uses a handle: one at a time, and whoever comes meanwhile is told.
//!
//! Most handles are used by one thread for all their lives. It *owns* a handle from its first
//! use on, and from then on says that it is in by a store and a look at whose the handle still
//! is, neither of which waits for other processors. Once another thread has come, the handle
//! is everybody's, and each use exchanges a flag, as with a lock.
//!
//! Whoever takes a handle over has to know whether its owner is in, who may have looked
//! already and whose store is perhaps still on its way. So it says first that the handle is
//! being taken, and then has the kernel run a barrier on each processor that runs a thread of
//! this program (membarrier(2), since Linux 4.14). An owner that looked before it is seen to
//! be in after it; one that looks later sees that the handle is its own no more. Where the
//! kernel refuses, two threads that come in the same moment may both get in, that one time.

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence, fence,
};

/// Whether something is in use.
pub struct Exclusive {
    /// The thread that owns it, by its address, or one of the following.
    owner: AtomicUsize,
    is_owner_in: AtomicBool,
    /// When it is everybody's.
    is_somebody_in: AtomicBool,
}

/// No thread has such an address.
const NOBODY: usize = 0;
const BEING_TAKEN: usize = 1;
const EVERYBODY: usize = 2;

/// Somebody who is in until this is dropped.
pub struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

impl Exclusive {
    pub const fn new() -> Self {
        Exclusive {
            owner: AtomicUsize::new(NOBODY),
            is_owner_in: AtomicBool::new(false),
            is_somebody_in: AtomicBool::new(false),
        }
    }

    /// It is another one from now on, which nobody has used.
    pub fn renew(&self) {
        self.owner.store(NOBODY, Relaxed);
    }

    /// Comes in, unless somebody is.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        let thread = this_thread();
        if self.owner.load(Relaxed) != thread {
            return self.enter_foreign(thread);
        }
        if self.is_owner_in.load(Relaxed) {
            return None;
        }
        self.is_owner_in.store(true, Relaxed);
        near_barrier();
        if self.owner.load(Relaxed) != thread {
            self.is_owner_in.store(false, Release);
            return self.enter_foreign(thread);
        }
        Some(Inside(&self.is_owner_in))
    }

    /// The same where this thread is not, or no more, its owner.
    #[cold]
    fn enter_foreign(&self, thread: usize) -> Option<Inside<'_>> {
        match self
            .owner
            .compare_exchange(NOBODY, thread, Relaxed, Relaxed)
        {
            Ok(_) => return self.enter(),
            Err(EVERYBODY) => {}
            Err(_) => {
                // Whoever sees that it is being taken does not wait for who takes it.
                self.owner.store(BEING_TAKEN, Relaxed);
                far_barrier();
                self.owner.store(EVERYBODY, Release);
            }
        }
        if self.is_somebody_in.swap(true, Acquire) {
            return None;
        }
        let inside = Inside(&self.is_somebody_in);
        // From when it was its own.
        (!self.is_owner_in.load(Acquire)).then_some(inside)
    }
}

/// What is told of this thread from all others that are there: where the C library has
/// what it knows of it.
#[inline(always)]
fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let address: usize;
        // SAFETY: what stands there is its own address, by the conventions of this machine.
        unsafe {
            std::arch::asm!(
                "mov {}, fs:0",
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        address
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        thread_local!(static HERE: u32 = const { 0 });
        HERE.with(|here| std::ptr::from_ref(here).addr())
    }
}

/// The half of a barrier that costs nothing: the other one is where it is far.
#[inline(always)]
fn near_barrier() {
    if cfg!(miri) {
        fence(SeqCst);
    } else {
        compiler_fence(SeqCst);
    }
}

/// A barrier here and in whatever thread of this program runs now.
fn far_barrier() {
    fence(SeqCst);
    #[cfg(not(miri))]
    {
        let ask = |command: libc::c_int| {
            // SAFETY: this touches no memory.
            unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
        };
        // A program has to say once that it will ask for it.
        if ask(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0
            && ask(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
        {
            ask(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        }
        fence(SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::AtomicU32,
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn one_is_in_at_a_time() {
        let exclusive = Exclusive::new();
        let first = exclusive.enter();
        assert!(first.is_some() && exclusive.enter().is_none());
        drop(first);
        let again = exclusive.enter();
        assert!(again.is_some());
        thread::scope(|scope| {
            scope.spawn(|| assert!(exclusive.enter().is_none()));
        });
        drop(again);
        thread::scope(|scope| {
            scope.spawn(|| {
                let other = exclusive.enter();
                assert!(other.is_some() && exclusive.enter().is_none());
            });
        });
        assert!(exclusive.enter().is_some());
    }

    /// Something that no two threads may be in at once, and who is.
    struct Shared {
        exclusive: Exclusive,
        inside: AtomicU32,
        /// How often two were.
        broken: AtomicU32,
        visits: AtomicU32,
    }

    impl Shared {
        /// Comes in and goes, if that is possible.
        fn visit(&self) {
            if let Some(_inside) = self.exclusive.enter() {
                let others = self.inside.fetch_add(1, Relaxed);
                self.broken.fetch_add(others, Relaxed);
                self.visits.fetch_add(1, Relaxed);
                self.inside.fetch_sub(1, Relaxed);
            }
        }
    }

    #[test]
    fn two_that_come_in_the_same_moment_are_told_from_each_other() {
        // Each is taken over once, and that is when it matters.
        let (rounds, far) = if cfg!(miri) {
            (20, 64)
        } else {
            (20_000, 1 << 22)
        };
        // What the owner stores before it comes in is not in its cache, so that the word that
        // it is in waits behind that.
        let far: Vec<AtomicU32> = (0..far).map(AtomicU32::new).collect();
        let mut place = 0_usize;
        let mut store_far = move || {
            for _ in 0..8 {
                place = place.wrapping_mul(5).wrapping_add(0x9e37_79b9) % far.len();
                far[place].store(1, Relaxed);
            }
        };
        let all: Vec<Shared> = (0..rounds)
            .map(|_| Shared {
                exclusive: Exclusive::new(),
                inside: AtomicU32::new(0),
                broken: AtomicU32::new(0),
                visits: AtomicU32::new(0),
            })
            .collect();
        let (come, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let begun = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                for (round, shared) in all.iter().enumerate() {
                    shared.visit();
                    come.store(round + 1, Release);
                    while gone.load(Relaxed) <= round {
                        store_far();
                        shared.visit();
                    }
                }
            });
            for (round, shared) in all.iter().enumerate() {
                while come.load(Acquire) <= round {
                    // There may be one processor only.
                    thread::yield_now();
                }
                (0..round % 97).for_each(|_| std::hint::spin_loop());
                shared.visit();
                gone.store(round + 1, Release);
                if begun.elapsed() > Duration::from_secs(2) {
                    break;
                }
            }
            gone.store(usize::MAX, Release);
        });
        let broken = all.iter().map(|it| it.broken.load(Relaxed));
        assert_eq!(broken.sum::<u32>(), 0, "two were in");
        assert!(all.iter().all(|it| it.visits.load(Relaxed) > 0));
    }
}
