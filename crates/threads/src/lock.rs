//! Locks: the mediator's own, and who has a program's.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::kernel::{self, Errno, call};

/// A mutex whose owner inherits the priority of who waits for it, so that no
/// critical thread waits behind a lazy one for longer than that takes.
pub struct PriorityMutex<T> {
    /// 0, or the thread that has it; the kernel adds who waits.
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value.
unsafe impl<T: Send> Sync for PriorityMutex<T> {}
// SAFETY: it is a value and a number.
unsafe impl<T: Send> Send for PriorityMutex<T> {}

impl<T> PriorityMutex<T> {
    /// Nobody has it.
    #[must_use]
    pub const fn new(value: T) -> PriorityMutex<T> {
        PriorityMutex {
            word: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, once nobody else has it.
    ///
    /// # Errors
    /// `EDEADLK` in a signal handler that interrupts who has it.
    pub fn lock(&self) -> Result<Locked<'_, T>, Errno> {
        self.lock_as(kernel::thread_id())
    }

    /// As [`PriorityMutex::lock`], of a thread that knows its number.
    ///
    /// # Errors
    /// As there.
    pub fn lock_as(&self, me: u32) -> Result<Locked<'_, T>, Errno> {
        while !self.is_taken_by(me) {
            match self.ask(libc::FUTEX_LOCK_PI) {
                Ok(_) => break,
                Err(Errno(libc::EINTR | libc::EAGAIN)) => {}
                // Who has it is about to end, or the kernel has no such locks.
                Err(Errno(libc::ESRCH | libc::ENOSYS)) => kernel::sleep_ns(50_000),
                Err(error) => return Err(error),
            }
        }
        Ok(Locked { mutex: self, me })
    }

    fn is_taken_by(&self, me: u32) -> bool {
        let (new, failure) = (Ordering::Acquire, Ordering::Relaxed);
        self.word.compare_exchange(0, me, new, failure).is_ok()
    }

    fn unlock(&self, me: u32) {
        let (new, failure) = (Ordering::Release, Ordering::Relaxed);
        if self.word.compare_exchange(me, 0, new, failure).is_err() {
            let _ = self.ask(libc::FUTEX_UNLOCK_PI);
        }
    }

    fn ask(&self, operation: i32) -> Result<usize, Errno> {
        let operation = (operation | libc::FUTEX_PRIVATE_FLAG) as usize;
        let word = self.word.as_ptr() as usize;
        // SAFETY: the word is this lock's, and 0 is no time limit.
        unsafe { call(libc::SYS_futex, [word, operation, 0, 0, 0, 0]) }
    }

    /// Takes it and keeps it, for [`PriorityMutex::let_go`] to let go.
    pub fn hold(&self) {
        core::mem::forget(self.lock());
    }

    /// Lets go what [`PriorityMutex::hold`] has taken.
    pub fn let_go(&self) {
        self.unlock(kernel::thread_id());
    }

    /// What this thread has taken and keeps.
    ///
    /// # Safety
    /// It has, and nothing else of it reaches the value.
    pub(crate) unsafe fn held(&self) -> Locked<'_, T> {
        Locked {
            mutex: self,
            me: kernel::thread_id(),
        }
    }

    /// Lets go in the child of `fork`, which has another number than who held it.
    pub fn reset(&self) {
        self.word.store(0, Ordering::Release);
    }
}

/// Has the value of a lock, until it is dropped.
pub struct Locked<'l, T> {
    mutex: &'l PriorityMutex<T>,
    /// The thread that has it.
    me: u32,
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.mutex.unlock(self.me);
    }
}

/// A value that comes once and stays, for who reads it without a lock.
pub(crate) struct Once<T> {
    is_there: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: it is written to before anybody else sees it, or by who is alone.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    pub const fn new() -> Once<T> {
        Once {
            is_there: AtomicBool::new(false),
            value: UnsafeCell::new(None),
        }
    }

    pub fn get(&self) -> Option<&T> {
        if !self.is_there.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: nobody writes to it any more.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// Sets it, if there is none.
    ///
    /// # Safety
    /// One thread at a time, as one does that has a lock.
    pub unsafe fn set(&self, value: T) {
        if self.get().is_none() {
            // SAFETY: nobody reads it before the flag is set.
            unsafe { *self.value.get() = Some(value) };
            self.is_there.store(true, Ordering::Release);
        }
    }

    /// The value, to change.
    ///
    /// # Safety
    /// Nobody else uses it.
    #[allow(clippy::mut_from_ref, reason = "the caller is alone")]
    pub unsafe fn get_mut(&self) -> Option<&mut T> {
        // SAFETY: the caller's.
        unsafe { (*self.value.get()).as_mut() }
    }
}

/// Where glibc's mutexes have the number of their owner, on every architecture.
const OWNER_AT: usize = 8;

/// The thread that has a mutex of glibc's, as far as can be told while it may
/// change hands; a hint for [`Program::waits`](crate::program::Program::waits).
///
/// # Safety
/// The mutex lives and was initialized.
#[must_use]
pub unsafe fn owner_of(mutex: *const libc::pthread_mutex_t) -> Option<u32> {
    // SAFETY: a mutex has a word there, of which only atomic accesses are made
    // here; the C library writes it plainly, and any word that is read is a hint.
    let owner = unsafe {
        let word = mutex.cast::<u8>().add(OWNER_AT).cast::<u32>();
        AtomicU32::from_ptr(word.cast_mut()).load(Ordering::Relaxed)
    };
    (owner != 0).then_some(owner)
}

/// Whether mutexes of this C library have their owner where [`owner_of`] looks.
#[must_use]
pub fn are_owners_known() -> bool {
    let [before, during, after] = owners();
    before.is_none() && during == Some(kernel::thread_id()) && after.is_none()
}

/// The kernel's number of this thread, which the C library has begun, without asking the
/// kernel: mutexes tell who has them. None where they do not; it means something where
/// [`are_owners_known`].
#[must_use]
pub fn own_number() -> Option<u32> {
    owners()[1]
}

/// Who has a mutex before, while and after this thread has it.
fn owners() -> [Option<u32>; 3] {
    let mut mutex = MaybeUninit::<libc::pthread_mutex_t>::uninit();
    let mutex = mutex.as_mut_ptr();
    // SAFETY: it is initialized, and nobody else knows it.
    unsafe {
        if libc::pthread_mutex_init(mutex, core::ptr::null()) != 0 {
            return [None; 3];
        }
        let before = owner_of(mutex);
        let during = (libc::pthread_mutex_trylock(mutex) == 0)
            .then(|| owner_of(mutex))
            .flatten();
        let _ = libc::pthread_mutex_unlock(mutex);
        let after = owner_of(mutex);
        let _ = libc::pthread_mutex_destroy(mutex);
        [before, during, after]
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let mutex = PriorityMutex::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        let mut value = mutex.lock().expect("no handler here");
                        let before = core::hint::black_box(*value);
                        *value = before + 1;
                    }
                });
            }
        });
        assert_eq!(*mutex.lock().expect("nobody has it"), 20_000);
    }

    #[test]
    fn who_has_it_is_told_so_and_not_stopped() {
        let mutex = PriorityMutex::new(());
        let held = mutex.lock();
        assert_eq!(mutex.lock().err(), Some(Errno(libc::EDEADLK)));
        drop(held);
        assert!(mutex.lock().is_ok());
    }

    #[test]
    fn glibc_says_who_has_a_mutex() {
        assert_eq!(are_owners_known(), cfg!(target_env = "gnu"));
        let told = || (own_number(), kernel::thread_id());
        for (number, id) in [told(), std::thread::spawn(told).join().expect("it ends")] {
            assert!(number == Some(id) || cfg!(not(target_env = "gnu")));
        }
    }
}
