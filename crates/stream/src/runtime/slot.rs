//! A place for one value, from one thread to another, without a lock.

use crate::sync::{AtomicU8, Ordering, UnsafeCell, fence_of_model};

/// Nothing is there, and only whoever puts may change that.
const EMPTY: u8 = 0;
/// A value is there.
const FULL: u8 = 1;
/// Somebody has the value in hands: the one who puts, or the one who takes.
const HELD: u8 = 2;

/// Somebody else had the value in hands.
pub(super) struct Held;

/// A place for one value, which one puts there and another takes.
pub(super) struct Slot<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is touched by one thread at a time: by the one that puts while
// the state is `EMPTY`, and else by the one that made it `HELD`. Values go from one
// thread to another, and no reference to one is handed out.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    pub fn new() -> Slot<T> {
        Slot {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(None),
        }
    }

    /// Whether there is a value, which nobody has in hands.
    pub fn is_full(&self) -> bool {
        self.state.load(Ordering::SeqCst) == FULL
    }

    /// Whether there is no value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.state.load(Ordering::Acquire) == EMPTY
    }

    /// Puts a value where [none is](Slot::is_empty). What is read after it comes
    /// after it for all who read `SeqCst`.
    ///
    /// # Safety
    /// The slot is empty, and until this returns nobody else puts or replaces.
    #[inline]
    pub unsafe fn put(&self, value: T) {
        self.value.with_mut(|place| {
            // SAFETY: the slot is empty, by the contract, so whoever takes keeps off;
            // and nobody else puts. The state was read `Acquire` when it was found
            // empty, so the last one who took is done.
            unsafe { *place = Some(value) }
        });
        self.state.swap(FULL, Ordering::SeqCst);
        fence_of_model();
    }

    /// Takes the value, if there is one.
    #[inline]
    pub fn take(&self) -> Result<Option<T>, Held> {
        if self.state.load(Ordering::SeqCst) == EMPTY {
            return Ok(None);
        }
        self.hold(EMPTY, Option::take)
    }

    /// Puts a value in the place of the one that is there. To others the slot is
    /// never empty meanwhile.
    pub fn replace(&self, value: T) -> Option<T> {
        let replace = |place: &mut Option<T>| place.replace(value);
        self.hold(FULL, replace).ok().flatten()
    }

    #[inline]
    fn hold<R>(&self, after: u8, act: impl FnOnce(&mut Option<T>) -> R) -> Result<R, Held> {
        let (both, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        let held = self.state.compare_exchange(FULL, HELD, both, relaxed);
        held.map_err(|_| Held)?;
        let done = self.value.with_mut(|place| {
            // SAFETY: the state was `FULL` and is `HELD` by us: nobody else touches
            // the value until we store another state.
            act(unsafe { &mut *place })
        });
        self.state.store(after, Ordering::Release);
        Ok(done)
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::Slot;

    /// What is put is taken once, or was replaced, and comes in its order.
    #[test]
    fn each_value_has_one_end() {
        loom::model(|| {
            let slot = Arc::new(Slot::new());
            let taking = Arc::clone(&slot);
            let taker = thread::spawn(move || [taking.take(), taking.take()]);
            let mut displaced = Vec::new();
            // SAFETY: it is empty, and nobody else puts.
            unsafe { slot.put(1) };
            match slot.replace(2) {
                Some(before) => displaced.push(before),
                None => {
                    while !slot.is_empty() {
                        thread::yield_now();
                    }
                    // SAFETY: as before.
                    unsafe { slot.put(2) };
                }
            }
            let taken = taker.join().unwrap().into_iter();
            let taken = taken.chain([slot.take()]).filter_map(Result::ok).flatten();
            let mut taken: Vec<i32> = taken.collect();
            assert!(taken.is_sorted(), "{taken:?}");
            taken.extend(displaced);
            taken.sort_unstable();
            assert_eq!(taken, [1, 2]);
        });
    }
}
