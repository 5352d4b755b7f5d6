//! Who creates a thread, that thread, and others who say what it is for: every interleaving
//! of the shipped code.

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;
use crate::attributes::Priority;
use crate::table::Entry;
use crate::table::models::Memory;

/// A thread.
const FIRST: u64 = 1;
/// Another one, which has the same record afterwards.
const SECOND: u64 = 2;

/// A record, where threads are listed, and where programs want to know them.
struct World {
    promise: Promise,
    /// Whether another thread may have the record.
    is_free: AtomicBool,
    memory: Memory,
    places: [Place; 2],
}

// SAFETY: the model checker sees who is where.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<World> {
        let place = || Place::new(MaybeUninit::new(0));
        Arc::new(World {
            promise: Promise::new(),
            is_free: AtomicBool::new(true),
            memory: Memory::new(),
            places: [place(), place()],
        })
    }

    /// A thread is about to be created, if the record is free.
    fn create(&self, what: Attributes) -> Option<Delivery> {
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let is_free = &self.is_free;
        is_free.compare_exchange(true, false, new, failure).ok()?;
        self.promise.begin(&what);
        let place = if what == plain() { 0 } else { 1 };
        Some(Delivery::to(&self.places[place]))
    }

    /// The C library writes who it is.
    fn write(&self, identity: u64) {
        let thread = &self.promise.thread;
        thread.store(identity as usize, Ordering::Relaxed);
    }

    /// Who it is stands there.
    fn knows(&self, place: usize, identity: u64) {
        // SAFETY: it is never uninitialized.
        let known = self.places[place].with(|it| unsafe { (*it).assume_init() });
        assert_eq!(known, identity as pthread_t);
    }

    fn give_back(&self) {
        self.promise.end();
        self.is_free.store(true, Ordering::Release);
    }

    fn is_listed(&self, identity: u64) -> Attributes {
        let lines = self.memory.lines();
        let list = |it: &Attributes| {
            lines.insert(Entry::of(identity, 1, *it)).unwrap();
            *it
        };
        self.promise.close(list)
    }

    /// Somebody who knows that thread, which is there, says what it is for.
    fn say(&self, identity: u64, what: Attributes) {
        let lines = self.memory.lines();
        let set = || lines.set(identity, &what).is_ok();
        assert!(set() || self.promise.of(identity, |it| *it = what).is_some() || set());
    }
}

fn plain() -> Attributes {
    Attributes::default()
}

fn lazy() -> Attributes {
    plain().lazy()
}

fn critical() -> Attributes {
    plain().time_critical(Priority::FIRST)
}

/// Every order, or those with so many preemptions.
fn check(bound: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.check(model);
}

#[test]
fn both_know_who_it_is_before_the_program_goes_on() {
    check(None, || {
        let world = World::new();
        // The record was another one's before, who was slower than its creator.
        let delivery = world.create(critical()).unwrap();
        world.promise.expects(&delivery);
        world.write(SECOND);
        delivery.finish(&world.promise);
        world.promise.deliver();
        world.give_back();
        let delivery = world.create(plain()).unwrap();
        world.promise.expects(&delivery);
        world.write(FIRST);
        let other = world.clone();
        let created = thread::spawn(move || {
            other.promise.deliver();
            other.knows(0, FIRST);
        });
        delivery.finish(&world.promise);
        world.knows(0, FIRST);
        created.join().unwrap();
    });
}

#[test]
fn what_was_said_last_is_what_it_is_for() {
    check(None, || {
        let world = World::new();
        let delivery = world.create(plain()).unwrap();
        world.promise.expects(&delivery);
        world.write(FIRST);
        let other = world.clone();
        let created = thread::spawn(move || {
            other.promise.deliver();
            other.is_listed(FIRST);
        });
        delivery.finish(&world.promise);
        world.say(FIRST, lazy());
        world.say(FIRST, critical());
        created.join().unwrap();
        assert_eq!(world.memory.lines().get(FIRST), Ok(critical()));
    });
}

#[test]
fn one_at_a_time_says_what_it_is_for() {
    check(None, || {
        let world = World::new();
        world.create(plain()).unwrap();
        world.write(FIRST);
        let other = world.clone();
        let saying = thread::spawn(move || other.say(FIRST, lazy()));
        world.say(FIRST, critical());
        let said = world.is_listed(FIRST);
        assert_ne!(said, plain());
        saying.join().unwrap();
        assert_ne!(world.memory.lines().get(FIRST), Ok(plain()));
    });
}

/// The first thread ends before its creator asks anything, and another creator has its record.
fn follows(has_begun: bool) {
    check(Some(4), move || {
        let world = World::new();
        let delivery = world.create(plain()).unwrap();
        world.promise.expects(&delivery);
        world.write(FIRST);
        let other = world.clone();
        let created = thread::spawn(move || {
            let promise = &other.promise;
            promise.deliver();
            if has_begun {
                assert_ne!(promise.close(|it| *it), critical());
            }
            other.give_back();
            let delivery = other.create(critical()).unwrap();
            promise.expects(&delivery);
            other.write(SECOND);
            promise.deliver();
            delivery.finish(promise);
            other.knows(1, SECOND);
            assert_eq!(promise.close(|it| *it), critical());
            other.give_back();
        });
        delivery.finish(&world.promise);
        world.knows(0, FIRST);
        let said = world.promise.of(FIRST, |it| core::mem::replace(it, lazy()));
        assert!(said.is_none_or(|it| it == plain()));
        created.join().unwrap();
    });
}

#[test]
fn who_has_begun_and_ended_is_not_mixed_with_who_follows() {
    follows(true);
}

#[test]
fn who_has_not_begun_and_ended_is_not_mixed_with_who_follows() {
    follows(false);
}

/// The C library gives its memory, which is its identity, to another one at once.
#[test]
fn who_was_not_created_is_not_taken_for_another() {
    check(None, || {
        let world = World::new();
        let is_anothers = Arc::new(Mutex::new(false));
        let (other, memory) = (world.clone(), is_anothers.clone());
        let creating = thread::spawn(move || {
            for (identity, what) in [(FIRST, plain()), (SECOND, critical())] {
                let delivery = other.create(what).unwrap();
                other.promise.expects(&delivery);
                other.write(identity);
                *memory.lock().unwrap() = true;
                other.give_back();
            }
        });
        let is_known = *is_anothers.lock().unwrap();
        if is_known {
            assert_eq!(world.promise.of(FIRST, |it| *it), None);
        }
        creating.join().unwrap();
    });
}
