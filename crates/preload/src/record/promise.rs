//! A thread that is created and has not begun: who it is, and what it will be for.
//!
//! The C library writes who it is into its record, and from there it comes to where the
//! program wants it, before anything of the program runs in it, as without us. Its creator
//! hands that over, or the thread itself if it is earlier: later, that place may be gone.
//!
//! So whoever has created it may say at once what it is for, and ask. What was said waits
//! here until it begins.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use libc::pthread_t;
use milieu_threads::attributes::Attributes;
use milieu_threads::kernel;

/// What is known of a thread before it begins. Zeros are one of no thread.
pub struct Promise {
    /// The thread, once the C library has written it.
    thread: AtomicUsize,
    /// Where it is to be handed over, as long as nobody has begun to.
    delivery: AtomicPtr<Delivery>,
    /// Whether its creator has handed it over.
    is_delivered: AtomicBool,
    lock: AtomicU32,
    /// What it is for; of whoever has the lock.
    attributes: UnsafeCell<MaybeUninit<Attributes>>,
}

// SAFETY: the attributes are reached with the lock, the rest are atomics.
unsafe impl Sync for Promise {}

const OPEN: u32 = 0;
const BUSY: u32 = 1;
/// It has begun.
const CLOSED: u32 = 2;

/// How long somebody waits for another who is about to be ready.
const MOMENT_NS: core::ffi::c_long = 20_000;

/// How often somebody asks for the lock: it may be had by whom a signal has interrupted here.
const TRIES: u32 = 1000;

/// Where a program wants to know which thread it has created.
pub struct Delivery {
    to: *mut pthread_t,
    /// Whether the thread has written it.
    is_done: AtomicBool,
}

impl Delivery {
    pub fn new(to: *mut pthread_t) -> Delivery {
        Delivery {
            to,
            is_done: AtomicBool::new(false),
        }
    }

    /// The thread was created: who it is stands there when this returns.
    pub fn finish(&self, promise: &Promise) {
        let own = from_ref(self).cast_mut();
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let delivery = &promise.delivery;
        if delivery
            .compare_exchange(own, null_mut(), new, failure)
            .is_ok()
        {
            // SAFETY: the caller of `pthread_create` vouches for it until it returns.
            unsafe { self.to.write(promise.thread()) };
            promise.is_delivered.store(true, Ordering::Release);
            return;
        }
        while !self.is_done.load(Ordering::Acquire) {
            kernel::sleep_ns(MOMENT_NS);
        }
    }
}

impl Promise {
    /// A thread is about to be created that is for this.
    pub fn begin(&self, attributes: &Attributes) {
        self.thread.store(0, Ordering::Relaxed);
        self.is_delivered.store(false, Ordering::Relaxed);
        // SAFETY: its record was just taken, and nobody looks before it is of a thread.
        unsafe { (*self.attributes.get()).write(*attributes) };
        self.lock.store(OPEN, Ordering::Release);
    }

    /// It is of no thread any more.
    pub fn end(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.delivery.store(null_mut(), Ordering::Relaxed);
    }

    /// Who it is will be handed over there, which stays until it is.
    pub fn expects(&self, delivery: &Delivery) {
        let delivery = from_ref(delivery).cast_mut();
        self.delivery.store(delivery, Ordering::Release);
    }

    /// Where the C library writes who it is.
    pub fn place(&self) -> *mut pthread_t {
        self.thread.as_ptr().cast()
    }

    fn thread(&self) -> pthread_t {
        self.thread.load(Ordering::Relaxed) as pthread_t
    }

    /// This is the thread, and nothing of the program has run in it yet.
    pub fn deliver(&self) {
        let delivery = self.delivery.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: its creator waits for this one to be done.
        if let Some(delivery) = unsafe { delivery.as_ref() } {
            // SAFETY: the caller of `pthread_create`, which has not returned, vouches for it.
            unsafe { delivery.to.write(self.thread()) };
            delivery.is_done.store(true, Ordering::Release);
            return;
        }
        while !self.is_delivered.load(Ordering::Acquire) {
            kernel::sleep_ns(MOMENT_NS);
        }
    }

    /// What a thread will be for that has not begun; none if this is another one's, or it
    /// has begun.
    pub fn of<R>(&self, identity: u64, look: impl FnOnce(&mut Attributes) -> R) -> Option<R> {
        let is_its = || self.thread.load(Ordering::Relaxed) as u64 == identity;
        if !is_its() || !self.locks(BUSY, TRIES) {
            return None;
        }
        // SAFETY: it was written before the lock was open, and the lock is this thread's.
        let said = is_its().then(|| look(unsafe { (*self.attributes.get()).assume_init_mut() }));
        self.lock.store(OPEN, Ordering::Release);
        said
    }

    /// This is the thread, and it is listed: what was said meanwhile that it is for.
    pub fn close(&self) -> Attributes {
        while !self.locks(CLOSED, TRIES) {}
        // SAFETY: as in `of`; it stays closed.
        unsafe { (*self.attributes.get()).assume_init() }
    }

    /// Takes the lock while it is open. False if it never is.
    fn locks(&self, to: u32, tries: u32) -> bool {
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        for _ in 0..tries {
            match self.lock.compare_exchange(OPEN, to, new, failure) {
                Ok(_) => return true,
                Err(CLOSED) => return false,
                Err(_) => kernel::sleep_ns(MOMENT_NS),
            }
        }
        false
    }
}
