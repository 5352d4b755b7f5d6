//! Threads that begin and end in two places, and others who join, detach and look for them:
//! every interleaving of the shipped code.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::sync::AtomicBool;

/// How large each place is.
const BYTES: usize = 100;
/// How many places there can be one below the other.
const RANGES: usize = 4;

/// A process, and what its kernel knows.
struct World {
    places: [Place; 2],
    highest: AtomicUsize,
    /// Below this nothing was given yet.
    next: AtomicUsize,
    /// Whose stack is mapped where, or 0.
    stacks: [UnsafeCell<u32>; RANGES],
    /// Which threads there are, by the kernel's numbers.
    threads: [AtomicBool; 4],
    /// As the C library has it of the first thread: who joins it, itself if it is detached; or 0
    joined_by: AtomicU32,
}

// SAFETY: the model checker sees who is where.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl Kernel for World {
    fn unmap(&self, place: &Place) -> bool {
        self.stack(place.start(), |it| {
            assert_ne!(*it, 0, "it is unmapped once");
            *it = 0;
        });
        true
    }

    fn is_thread(&self, thread: u32) -> bool {
        self.threads[thread as usize].load(Ordering::Acquire)
    }
}

impl Taken<'_> {
    fn descriptor(&self) -> usize {
        self.place.end() - 1
    }
}

impl World {
    fn new() -> Arc<World> {
        let place = || Place {
            state: AtomicU32::new(FREE),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            guard_bytes: AtomicUsize::new(0),
            made_low: AtomicUsize::new(0),
            ending: AtomicU32::new(0),
            joiner: AtomicU32::new(0),
        };
        Arc::new(World {
            places: [place(), place()],
            highest: AtomicUsize::new(0),
            next: AtomicUsize::new(BYTES * (RANGES + 1)),
            stacks: core::array::from_fn(|_| UnsafeCell::new(0)),
            threads: core::array::from_fn(|_| AtomicBool::new(false)),
            joined_by: AtomicU32::new(0),
        })
    }

    fn places(&self) -> Places<'_> {
        Places {
            all: &self.places,
            highest: &self.highest,
        }
    }

    /// What is mapped in the place that begins there; nobody else is there.
    fn stack<R>(&self, start: usize, act: impl FnOnce(&mut u32) -> R) -> R {
        // SAFETY: the model checker sees who is there.
        self.stacks[start / BYTES - 1].with_mut(|it| act(unsafe { &mut *it }))
    }

    /// It can be used as long as its thread is there.
    fn run(&self, thread: u32, descriptor: usize) {
        self.stack(descriptor / BYTES * BYTES, |it| assert_eq!(*it, thread));
    }

    /// Makes a stack as the arena does, elsewhere if it is nowhere.
    fn make(&self, place: &Place, thread: u32) {
        if place.start() == 0 {
            let end = self.next.fetch_sub(BYTES, Ordering::Relaxed);
            place.settle(end - BYTES, end, 0);
        }
        self.stack(place.start(), |it| {
            assert_eq!(*it, 0, "it is nobody's");
            *it = thread;
        });
        place.set_made_low(place.start());
    }

    /// Creates a thread; its descriptor.
    fn create(&self, thread: u32, is_detached: bool) -> usize {
        let places = self.places();
        places.sweep(self);
        let make = |place: &Place| {
            self.make(place, thread);
            true
        };
        let (_, place) = places.take(|_| true, make, is_detached).expect("a place");
        self.threads[thread as usize].store(true, Ordering::Release);
        place.end() - 1
    }

    /// Its thread ends.
    fn end(&self, thread: u32, descriptor: usize) {
        self.run(thread, descriptor);
        self.places().ends(descriptor, thread);
        self.places().sweep(self);
        self.run(thread, descriptor);
        self.threads[thread as usize].store(false, Ordering::Release);
    }

    /// The place of a thread that is there.
    fn of(&self, descriptor: usize) -> Taken<'_> {
        let taken = self.places().of(descriptor).expect("it is there");
        assert_eq!(taken.place.start(), descriptor / BYTES * BYTES);
        taken
    }

    /// A thread is joined that has ended, whose descriptor is read.
    fn join(&self, thread: u32, taken: Taken<'_>) {
        self.run(thread, taken.place.start());
        taken.give_back(self);
    }

    /// A thread begins and ends, and is joined unless it is detached.
    fn live(&self, thread: u32, is_detached: bool) {
        let descriptor = self.create(thread, is_detached);
        self.end(thread, descriptor);
        if !is_detached {
            self.join(thread, self.of(descriptor));
        }
    }

    /// All threads have ended: no place is lost, and no memory.
    fn check(&self) {
        self.places().sweep(self);
        for place in &self.places {
            assert_eq!(place.state().what(), FREE);
        }
        for range in 1..=RANGES {
            self.run(0, range * BYTES);
        }
    }
}

/// What a thread does; it has the place of the first one that was created.
type Act = fn(&World, Taken<'_>);

/// All orders of these with so many preemptions at most, after something was done.
fn check<const N: usize>(bound: usize, before: fn(&World), acts: [Act; N]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(move || {
        let world = World::new();
        before(&world);
        let then = world.places[0].state();
        let act = move |world: &World, act: Act| {
            let place = &world.places[0];
            act(world, Taken { place, then });
        };
        let spawn = |it: &Act| {
            let (world, it) = (world.clone(), *it);
            thread::spawn(move || act(&world, it))
        };
        let others: std::vec::Vec<_> = acts[1..].iter().map(spawn).collect();
        act(&world, acts[0]);
        for other in others {
            other.join().unwrap();
        }
        world.check();
    });
}

#[test]
fn nobody_has_what_another_has() {
    check(
        2,
        |_| (),
        [
            |world, _| {
                world.live(1, false);
                world.live(1, true);
            },
            |world, _| world.live(2, true),
        ],
    );
}

#[test]
fn who_is_detached_while_it_ends_leaves_nothing_behind() {
    check(
        3,
        |world| _ = world.create(1, false),
        [
            |_, first| first.detached(),
            |world, first| world.end(1, first.descriptor()),
            |world, _| world.live(2, false),
        ],
    );
}

/// The number of a thread that joins the first one.
const JOINER: u32 = 3;

/// Joins the first thread unless that is detached, as the C library does; another one follows.
fn join(world: &World, first: Taken<'_>) {
    first.joins(JOINER);
    let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
    let joined = world.joined_by.compare_exchange(0, JOINER, new, failure);
    if joined.is_ok() {
        while world.is_thread(1) {
            thread::yield_now();
        }
        world.join(1, first);
    } else {
        first.not_joined(JOINER);
    }
    world.live(2, true);
}

/// Detaches it unless somebody joins it already, which is not told.
fn detach(world: &World, first: Taken<'_>) {
    let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
    let _ = world.joined_by.compare_exchange(0, 1, new, failure);
    first.detached();
    world.places().sweep(world);
}

fn create_and_join(world: &World) {
    world.create(1, false);
    world.threads[JOINER as usize].store(true, Ordering::Release);
}

#[test]
fn who_is_joined_and_detached_is_not_mixed_with_who_follows() {
    let ends: Act = |world, first| {
        world.end(1, first.descriptor());
        // Some other thread, which knows nothing of these.
        world.places().sweep(world);
    };
    check(2, create_and_join, [join, detach, ends]);
}

#[test]
fn who_is_joined_and_detached_and_does_not_say_that_it_ends_leaves_nothing_behind() {
    check(
        2,
        |world| {
            create_and_join(world);
            world.joined_by.store(JOINER, Ordering::Release);
        },
        [
            |world, first| {
                first.joins(JOINER);
                world.join(1, first);
                world.live(2, true);
            },
            detach,
        ],
    );
}

#[test]
fn whoever_is_cancelled_while_it_joins_is_not_waited_for() {
    check(
        2,
        create_and_join,
        [
            |world, first| {
                first.joins(JOINER);
                world.threads[JOINER as usize].store(false, Ordering::Release);
            },
            |_, first| first.detached(),
            |world, first| world.end(1, first.descriptor()),
        ],
    );
}

/// The kernel gives numbers of threads that are gone to others.
#[test]
fn who_is_gone_is_not_mixed_with_who_has_its_number() {
    for is_detached in [true, false] {
        let follows: Act = match is_detached {
            true => |world, _| world.live(1, true),
            false => |world, _| world.live(1, false),
        };
        check(
            3,
            |world| {
                let descriptor = world.create(1, true);
                world.end(1, descriptor);
            },
            [follows, |world, _| world.places().sweep(world)],
        );
    }
}

/// Somebody else is in the way by now, and a place goes elsewhere.
#[test]
fn who_looks_for_its_own_place_finds_it_while_others_move() {
    check(
        2,
        |world| {
            let first = world.create(1, false);
            world.create(2, false);
            world.end(1, first);
        },
        [
            |world, first| {
                first.give_back(world);
                let is_in_the_way = |it: &Place| {
                    it.forget();
                    false
                };
                assert!(
                    world
                        .places()
                        .take(|_| true, is_in_the_way, false)
                        .is_none()
                );
                world.live(1, false);
            },
            |world, _| {
                let descriptor = (RANGES - 1) * BYTES;
                world.end(2, descriptor);
                world.join(2, world.of(descriptor));
            },
        ],
    );
}

#[test]
fn who_is_left_by_a_fork_is_forgotten_once() {
    check(
        3,
        |world| {
            world.create(1, false);
            world.places().forked(0, 2, world);
        },
        [
            |world, first| _ = world.places().forgets(first.descriptor(), world),
            |world, first| _ = world.places().forgets(first.descriptor(), world),
            |world, _| world.live(2, true),
        ],
    );
}
