//! A thread that is created and has not begun: who it is, and what it will be for.
//!
//! The C library writes who it is into its record, and from there it comes to where the
//! program wants it, before anything of the program runs in it, as without us. Its creator
//! hands that over, or the thread itself if it is earlier: later, that place may be gone.
//!
//! So whoever has created it may say at once what it is for, and ask. What was said waits
//! here until it begins: then it is listed with that, and whoever says or asks something
//! after that does so in the table. Nothing that was said is lost, or said once more.
//!
//! ```text
//!           begin             of
//!  ┌────────┐ ──▶ ┌──────┐ ──────▶ ┌──────┐
//!  │ CLOSED │     │ OPEN │         │ BUSY │
//!  └────────┘     └──────┘ ◀────── └──────┘
//!       ▲             │    close, end  │
//!       └─────────────┴────────────────┘
//! ```

#[cfg(all(test, loom))]
mod models;

use core::mem::MaybeUninit;
use core::ptr::{from_ref, null_mut};

use libc::pthread_t;

use crate::attributes::Attributes;
use crate::sync::{
    ATTEMPTS, AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, UnsafeCell, pause,
};

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

/// It is of no thread, or of one that has begun.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const BUSY: u32 = 2;

/// Where a program wants to know which thread it has created.
pub struct Delivery {
    to: *const Place,
    /// Whether the thread has written it.
    is_done: AtomicBool,
}

/// Memory of the program's.
type Place = UnsafeCell<MaybeUninit<pthread_t>>;

impl Delivery {
    /// It is to be written there before [`Delivery::finish`] returns.
    #[must_use]
    pub fn new(to: *mut pthread_t) -> Delivery {
        Delivery::to(to.cast())
    }

    fn to(to: *const Place) -> Delivery {
        Delivery {
            to,
            is_done: AtomicBool::new(false),
        }
    }

    /// # Safety
    /// The call of `pthread_create` has not returned, and nobody else writes there.
    unsafe fn write(&self, thread: pthread_t) {
        // SAFETY: who calls `pthread_create` vouches for it until that returns.
        unsafe { (*self.to).with_mut(|to| (*to).write(thread)) };
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
            // SAFETY: that call is this one's, and the thread has not taken it over.
            unsafe { self.write(promise.thread()) };
            promise.is_delivered.store(true, Ordering::Release);
            return;
        }
        wait_for(&self.is_done);
    }
}

/// Waits for another who is about to say so.
fn wait_for(said: &AtomicBool) {
    let mut attempt = 0;
    while !said.load(Ordering::Acquire) {
        pause(attempt);
        attempt = (attempt + 1).min(ATTEMPTS);
    }
}

impl Promise {
    /// One of no thread.
    #[cfg(test)]
    fn new() -> Promise {
        Promise {
            thread: AtomicUsize::new(0),
            delivery: AtomicPtr::new(null_mut()),
            is_delivered: AtomicBool::new(false),
            lock: AtomicU32::new(CLOSED),
            attributes: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// A thread is about to be created that is for this.
    pub fn begin(&self, attributes: &Attributes) {
        self.thread.store(0, Ordering::Relaxed);
        self.is_delivered.store(false, Ordering::Relaxed);
        // SAFETY: its record was just taken, and nobody looks before it is open.
        let write = |it: *mut MaybeUninit<_>| unsafe { (*it).write(*attributes) };
        self.attributes.with_mut(|it| _ = write(it));
        self.lock.store(OPEN, Ordering::Release);
    }

    /// It is of no thread any more, whether that has begun or not.
    pub fn end(&self) {
        if self.lock.load(Ordering::Relaxed) != CLOSED {
            // Somebody may look at it still, who has known the thread.
            self.close(|_| ());
        }
    }

    /// In the child of a fork, which does not have its thread, nor whoever has looked at it.
    pub fn forked(&self) {
        self.lock.store(CLOSED, Ordering::Relaxed);
    }

    /// Who it is will be handed over there, which stays until it is.
    pub fn expects(&self, delivery: &Delivery) {
        let delivery = from_ref(delivery).cast_mut();
        self.delivery.store(delivery, Ordering::Release);
    }

    /// Where the C library writes who it is.
    #[cfg(not(loom))]
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
            // SAFETY: that call waits as well, and has not taken it over.
            unsafe { delivery.write(self.thread()) };
            delivery.is_done.store(true, Ordering::Release);
            return;
        }
        wait_for(&self.is_delivered);
    }

    /// What a thread will be for that has not begun; none if this is another one's, or it
    /// has begun.
    pub fn of<R>(&self, identity: u64, look: impl FnOnce(&mut Attributes) -> R) -> Option<R> {
        // Nobody knows who it is before that is handed over: what was written here until then
        // may be of a thread that was not created, and by now be another one's.
        let is_its = || {
            self.delivery.load(Ordering::Relaxed).is_null()
                && self.thread.load(Ordering::Relaxed) as u64 == identity
        };
        if identity == 0 || !is_its() || !self.locks() {
            return None;
        }
        // It may have become another one's meanwhile.
        // SAFETY: it was written before the lock was open, and the lock is this thread's.
        let look = |it: *mut MaybeUninit<_>| look(unsafe { (*it).assume_init_mut() });
        let said = is_its().then(|| self.attributes.with_mut(look));
        self.lock.store(OPEN, Ordering::Release);
        said
    }

    /// This is the thread, and it is to be listed with what was said that it is for. Whoever
    /// says or asks that and does not find it listed waits until it is.
    pub fn close<R>(&self, list: impl FnOnce(&Attributes) -> R) -> R {
        // Nobody else does that. It is closed already where the thread was being created
        // while a signal handler has forked.
        while !self.locks() && self.lock.load(Ordering::Relaxed) != CLOSED {}
        // SAFETY: as in `of`.
        let list = |it: *mut MaybeUninit<_>| list(unsafe { (*it).assume_init_ref() });
        let listed = self.attributes.with_mut(list);
        self.lock.store(CLOSED, Ordering::Release);
        listed
    }

    /// Takes the lock while it is open. False if it is closed, or if whoever has it is
    /// interrupted for long, perhaps by the very signal handler that asks.
    fn locks(&self) -> bool {
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        for attempt in 0..ATTEMPTS {
            match self.lock.compare_exchange(OPEN, BUSY, new, failure) {
                Ok(_) => return true,
                Err(CLOSED) => return false,
                Err(_) => pause(attempt),
            }
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const IDENTITY: u64 = 0x7123_4000;

    fn created(promise: &Promise) {
        promise.begin(&Attributes::default());
        promise.thread.store(IDENTITY as usize, Ordering::Relaxed);
    }

    fn said(promise: &Promise, identity: u64) -> Option<Attributes> {
        promise.of(identity, |it| *it)
    }

    #[test]
    fn what_is_said_of_a_thread_is_what_it_is_listed_with() {
        let promise = Promise::new();
        created(&promise);
        let lazy = Attributes::default().lazy();
        assert_eq!(promise.of(IDENTITY + 8, |it| *it = lazy), None);
        assert_eq!(promise.of(IDENTITY, |it| *it = lazy), Some(()));
        assert_eq!(promise.close(|it| *it), lazy);
        assert_eq!(said(&promise, IDENTITY), None);
    }

    #[test]
    fn nobody_is_found_by_the_identity_of_no_thread() {
        let promise = Promise::new();
        assert_eq!(said(&promise, 0), None);
        promise.begin(&Attributes::default());
        assert_eq!(said(&promise, 0), None);
    }

    #[test]
    fn a_thread_that_was_not_created_is_nobody() {
        let promise = Promise::new();
        created(&promise);
        let mut to = 0;
        let delivery = Delivery::new(&mut to);
        promise.expects(&delivery);
        // By now it may be another one's.
        assert_eq!(said(&promise, IDENTITY), None);
        promise.end();
        assert_eq!(said(&promise, IDENTITY), None);
    }

    #[test]
    fn a_thread_that_ends_without_having_begun_is_nobody() {
        let promise = Promise::new();
        created(&promise);
        assert!(said(&promise, IDENTITY).is_some());
        promise.end();
        assert_eq!(promise.lock.load(Ordering::Relaxed), CLOSED);
    }

    #[test]
    fn a_child_of_a_fork_knows_nobody_else() {
        let promise = Promise::new();
        created(&promise);
        // Somebody was looking.
        assert!(promise.locks());
        promise.forked();
        assert_eq!(said(&promise, IDENTITY), None);
        created(&promise);
        assert!(said(&promise, IDENTITY).is_some());
        // It was about to be created by whoever has forked.
        promise.forked();
        assert_eq!(promise.close(|it| *it), Attributes::default());
    }

    #[test]
    fn whoever_is_earlier_hands_it_over() {
        let promise = Promise::new();
        for is_creator_earlier in [true, false] {
            created(&promise);
            let mut to = 0;
            let delivery = Delivery::new(&mut to);
            promise.expects(&delivery);
            if is_creator_earlier {
                delivery.finish(&promise);
                promise.deliver();
            } else {
                promise.deliver();
                delivery.finish(&promise);
            }
            assert_eq!(to, IDENTITY as pthread_t);
            promise.end();
        }
    }
}
