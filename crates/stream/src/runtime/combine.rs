//! One state that many threads work on, none of which ever waits.
//!
//! Whoever comes while nobody is at work does its order itself, and then those
//! that others have left meanwhile. Whoever comes while somebody is at work, in
//! another thread or further up in this one, leaves its order and goes.
//!
//! `pending` counts orders: one of the thread at work, and one for each order
//! that was left. An order is left and counted under one lock, so that none is
//! taken that is not counted: or the count would fall below the truth, somebody
//! else's order would be counted to zero and wait, and the next order of that
//! thread would overtake it. Whoever counts from zero is at work. There is one at
//! most: its own order stays counted until it leaves.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::sync::{AtomicIsize, Mutex, Ordering};

/// A state, and orders to it.
pub(crate) struct Combiner<S, O> {
    state: Mutex<S>,
    left: Mutex<Vec<O>>,
    pending: AtomicIsize,
    /// The thread at work, as [`here`] names it. Only the one that asks whether
    /// it is itself reads it, and so needs no order.
    at_work: AtomicUsize,
}

impl<S, O> Combiner<S, O> {
    pub fn new(state: S) -> Combiner<S, O> {
        Combiner {
            state: Mutex::new(state),
            left: Mutex::new(Vec::new()),
            pending: AtomicIsize::new(0),
            at_work: AtomicUsize::new(0),
        }
    }

    /// Carries out an order, now or, if somebody is at work, as soon as that
    /// one comes to it. Orders of one thread are carried out in their order.
    #[inline]
    pub fn submit(&self, order: O, carry_out: impl Fn(&mut S, O)) {
        let (both, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.pending.compare_exchange(0, 1, both, relaxed).is_ok() {
            self.at_work.store(here(), Relaxed);
            carry_out(&mut self.state.lock().expect(UNHARMED), order);
            self.at_work.store(0, Relaxed);
            if self.pending.fetch_sub(1, both) > 1 {
                self.carry_out_left(carry_out);
            }
        } else {
            let mut left = self.left.lock().expect(UNHARMED);
            left.push(order);
            let before = self.pending.fetch_add(1, both);
            drop(left);
            if before == 0 {
                self.carry_out_left(carry_out);
            }
        }
    }

    /// Whether this thread is at work, further up.
    pub fn is_at_work_here(&self) -> bool {
        self.at_work.load(Relaxed) == here()
    }

    /// Carries out what others have left, until nobody leaves anything.
    #[cold]
    fn carry_out_left(&self, carry_out: impl Fn(&mut S, O)) {
        self.at_work.store(here(), Relaxed);
        loop {
            let orders = std::mem::take(&mut *self.left.lock().expect(UNHARMED));
            let done = orders.len() as isize;
            let mut state = self.state.lock().expect(UNHARMED);
            for order in orders {
                carry_out(&mut state, order);
            }
            drop(state);
            // Once it has left, another may be at work.
            self.at_work.store(0, Relaxed);
            if self.pending.fetch_sub(done, Ordering::AcqRel) <= done {
                return;
            }
            self.at_work.store(here(), Relaxed);
        }
    }
}

/// A number of this thread, other than that of any other that runs.
fn here() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

const UNHARMED: &str = "orders do not panic";

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::Combiner;

    /// Three threads, of which one has three orders: all are carried out, those of
    /// one thread in their order, and nothing is left behind.
    #[test]
    fn no_order_is_forgotten() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let combiner = Arc::new(Combiner::new(Vec::new()));
            let other = Arc::clone(&combiner);
            let first = thread::spawn(move || {
                other.submit(1, Vec::push);
                other.submit(2, Vec::push);
                other.submit(5, Vec::push);
            });
            let other = Arc::clone(&combiner);
            let second = thread::spawn(move || other.submit(3, Vec::push));
            combiner.submit(4, Vec::push);
            first.join().unwrap();
            second.join().unwrap();
            let mut done = combiner.state.lock().unwrap();
            let place = |order| done.iter().position(|done| *done == order).unwrap();
            assert!(place(1) < place(2) && place(2) < place(5), "{done:?}");
            done.sort_unstable();
            assert_eq!(*done, [1, 2, 3, 4, 5]);
        });
    }

    /// An order that leaves another: it is carried out after it, by whoever is
    /// at work.
    #[test]
    fn an_order_may_submit_orders() {
        fn carry_out(combiner: &Combiner<Vec<i32>, i32>, done: &mut Vec<i32>, order: i32) {
            done.push(order);
            if order == 1 {
                combiner.submit(2, |done, order| carry_out(combiner, done, order));
            }
        }
        loom::model(|| {
            let combiner = Arc::new(Combiner::new(Vec::new()));
            let other = Arc::clone(&combiner);
            let second = thread::spawn(move || {
                other.submit(3, |done, order| carry_out(&other, done, order));
            });
            combiner.submit(1, |done, order| carry_out(&combiner, done, order));
            second.join().unwrap();
            let mut done = combiner.state.lock().unwrap();
            done.sort_unstable();
            assert_eq!(*done, [1, 2, 3]);
        });
    }
}
