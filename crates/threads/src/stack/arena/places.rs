//! Places of stacks: whose each is, and how that changes.
//!
//! ```text
//!           hold             take             forked
//!  ┌──────┐ ──▶ ┌──────┐ ──────────▶ ┌───────┐ ──▶ ┌──────┐
//!  │ FREE │     │ HELD │             │ TAKEN │     │ LEFT │
//!  └──────┘ ◀── └──────┘ ◀────────── └───────┘     └──────┘
//!       emptied     ▲      give back                   │
//!                   └──────────────────────────────────┘
//! ```
//!
//! A place is one thread's from its creation until it has been joined, or was detached and is
//! gone; whoever is the first to see that gives it back. The C library lets a thread be
//! detached that somebody waits for, who joins it nevertheless, and reads its descriptor:
//! meanwhile nobody else gives it back.
//!
//! What somebody has seen of a place may be long ago, and the place another thread's by now,
//! whose descriptor is at the same address. So the state has a generation beside it, of which
//! each thread has its own.
//!
//! Where the stacks are, and what is mapped there, is the business of others, which hand in
//! what makes and unmaps one ([`Kernel`]).

#[cfg(all(test, loom))]
mod models;

use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// What is asked of the kernel, or what a model has in its place.
pub(super) trait Kernel {
    /// Unmaps the stack in a place that is held. False where it is not known what is there.
    fn unmap(&self, place: &Place) -> bool;

    /// Whether this process has such a thread still.
    fn is_thread(&self, thread: u32) -> bool;
}

const FREE: u32 = 0;
/// Its stack is being made, or given back.
const HELD: u32 = 1;
const TAKEN: u32 = 2;
/// Its thread is not in this process, which is a fork of the one that has it.
const LEFT: u32 = 3;

/// What a place is (two bits), whether nobody joins its thread (one), and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u32);

impl State {
    const WHAT: u32 = 3;
    const DETACHED: u32 = 4;
    const GENERATION: u32 = 8;

    fn what(self) -> u32 {
        self.0 & Self::WHAT
    }

    fn is_detached(self) -> bool {
        self.0 & Self::DETACHED != 0
    }

    /// Whether it is the same of the same thread, which may have been detached meanwhile.
    fn is_still(self, before: State) -> bool {
        self.detached() == before.detached()
    }

    fn to(self, what: u32) -> State {
        State(self.0 & !(Self::WHAT | Self::DETACHED) | what)
    }

    fn detached(self) -> State {
        State(self.0 | Self::DETACHED)
    }

    fn next_generation(self) -> State {
        State(self.0.wrapping_add(Self::GENERATION))
    }
}

/// Where a stack is or was. Zeros are one that is nowhere.
pub(super) struct Place {
    state: AtomicU32,
    /// The lowest address of the place; 0 if it is nowhere yet.
    start: AtomicUsize,
    end: AtomicUsize,
    guard_bytes: AtomicUsize,
    /// The lowest address of the stack when it was made.
    made_low: AtomicUsize,
    /// The kernel's number of its thread, once that ends, or has forked; 0 before.
    ending: AtomicU32,
    /// That of the thread that waits for it, or has been cancelled meanwhile; or 0.
    joiner: AtomicU32,
}

impl Place {
    #[cfg(not(loom))]
    #[allow(clippy::declare_interior_mutable_const)]
    pub const NEW: Self = Self {
        state: AtomicU32::new(FREE),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        guard_bytes: AtomicUsize::new(0),
        made_low: AtomicUsize::new(0),
        ending: AtomicU32::new(0),
        joiner: AtomicU32::new(0),
    };

    pub fn start(&self) -> usize {
        self.start.load(Ordering::Relaxed)
    }

    pub fn end(&self) -> usize {
        self.end.load(Ordering::Relaxed)
    }

    pub fn guard_bytes(&self) -> usize {
        self.guard_bytes.load(Ordering::Relaxed)
    }

    pub fn made_low(&self) -> usize {
        self.made_low.load(Ordering::Acquire)
    }

    /// How many bytes a stack in it can have.
    pub fn whole_bytes(&self) -> usize {
        let lowest = self.start() + self.guard_bytes();
        self.end().saturating_sub(lowest)
    }

    /// It is there from now on, which is below wherever it was before.
    pub fn settle(&self, start: usize, end: usize, guard_bytes: usize) {
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.guard_bytes.store(guard_bytes, Ordering::Relaxed);
    }

    /// A stack was made in it.
    pub fn set_made_low(&self, low: usize) {
        // Whoever sees that sees where the place ends.
        self.made_low.store(low, Ordering::Release);
    }

    /// It is nowhere any more.
    pub fn forget(&self) {
        self.start.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
    }

    pub fn is_taken(&self) -> bool {
        self.state().what() == TAKEN
    }

    /// Whether the descriptor of a thread is in the stack as it was made. That may be asked
    /// while the place goes elsewhere, too. Its end is never older than its low then, so there
    /// is nothing between them, or what is of this place.
    fn has(&self, descriptor: usize) -> bool {
        let low = self.made_low();
        (low..self.end()).contains(&descriptor)
    }

    fn state(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }

    fn becomes(&self, from: State, to: State) -> Result<(), State> {
        let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let exchanged = self.state.compare_exchange(from.0, to.0, new, failure);
        exchanged.map(|_| ()).map_err(State)
    }

    /// Whoever holds it lets it go.
    fn set(&self, to: State) {
        self.state.store(to.0, Ordering::Release);
    }

    /// Changes what it is for the thread that had it then, if that has it still; to what.
    fn change(&self, then: State, to: impl Fn(State) -> State) -> Option<State> {
        let mut now = then;
        while now.is_still(then) {
            match self.becomes(now, to(now)) {
                Ok(()) => return Some(to(now)),
                Err(other) => now = other,
            }
        }
        None
    }

    /// The thread that had it then does not use the stack any more.
    fn give_back(&self, then: State, kernel: &impl Kernel) {
        let Some(held) = self.change(then, |it| it.to(HELD)) else {
            return;
        };
        // Where it is not known what is there, that stays, and the place goes elsewhere.
        if !kernel.unmap(self) {
            self.forget();
        }
        self.set(held.to(FREE));
    }
}

/// The place of a thread that is there, or was when this was found.
#[derive(Clone, Copy)]
pub struct Taken<'p> {
    place: &'p Place,
    then: State,
}

impl<'p> Taken<'p> {
    pub(super) fn place(&self) -> &'p Place {
        self.place
    }

    /// This thread of the kernel's is about to wait for it.
    pub fn joins(self, joiner: u32) {
        self.place.joiner.store(joiner, Ordering::Release);
    }

    /// This one has not joined it.
    pub fn not_joined(self, joiner: u32) {
        let (new, failure) = (Ordering::Release, Ordering::Relaxed);
        let place = self.place;
        let _ = place.joiner.compare_exchange(joiner, 0, new, failure);
    }

    /// It was joined.
    pub(super) fn give_back(self, kernel: &impl Kernel) {
        self.place.give_back(self.then, kernel);
    }

    /// Nobody will join it.
    pub fn detached(self) {
        self.place.change(self.then, State::detached);
    }
}

/// All of them.
#[derive(Clone, Copy)]
pub(super) struct Places<'p> {
    pub all: &'p [Place],
    /// No place from here on was ever held.
    pub highest: &'p AtomicUsize,
}

impl<'p> Places<'p> {
    pub fn ever_held(&self) -> &'p [Place] {
        let highest = self.highest.load(Ordering::Acquire);
        self.all.get(..highest).unwrap_or(self.all)
    }

    /// Takes a place that is right, after a stack was made in it; its number as well.
    pub fn take(
        &self,
        is_right: impl Fn(&Place) -> bool,
        make: impl FnOnce(&Place) -> bool,
        is_detached: bool,
    ) -> Option<(usize, &'p Place)> {
        let (number, place, held) = self.hold(is_right)?;
        if !make(place) {
            place.set(held.to(FREE));
            return None;
        }
        place.ending.store(0, Ordering::Relaxed);
        place.joiner.store(0, Ordering::Relaxed);
        let taken = held.to(TAKEN);
        place.set(if is_detached { taken.detached() } else { taken });
        Some((number, place))
    }

    fn hold(&self, is_right: impl Fn(&Place) -> bool) -> Option<(usize, &'p Place, State)> {
        for (number, place) in self.all.iter().enumerate() {
            let state = place.state();
            if state.what() != FREE || !is_right(place) {
                continue;
            }
            // It is as it was looked at, or of another generation.
            let held = state.next_generation().to(HELD);
            if place.becomes(state, held).is_ok() {
                self.highest.fetch_max(number + 1, Ordering::AcqRel);
                return Some((number, place, held));
            }
        }
        None
    }

    /// No thread was created in a place that was taken for it.
    pub fn give_back(&self, number: usize, kernel: &impl Kernel) {
        if let Some(place) = self.all.get(number).filter(|it| it.is_taken()) {
            place.give_back(place.state(), kernel);
        }
    }

    /// The place of the thread with this descriptor, which is there.
    pub fn of(&self, descriptor: usize) -> Option<Taken<'p>> {
        self.find(TAKEN, descriptor)
    }

    fn find(&self, what: u32, descriptor: usize) -> Option<Taken<'p>> {
        let mut places = self.ever_held().iter();
        places.find_map(|place| {
            let then = place.state();
            let is_it = then.what() == what && place.has(descriptor);
            is_it.then_some(Taken { place, then })
        })
    }

    /// This thread ends, which has this number of the kernel's.
    pub fn ends(&self, descriptor: usize, thread: u32) {
        if let Some(Taken { place, .. }) = self.of(descriptor) {
            place.ending.store(thread, Ordering::Release);
        }
    }

    /// Gives back the places of detached threads that are gone.
    pub fn sweep(&self, kernel: &impl Kernel) {
        for place in self.ever_held() {
            let state = place.state();
            if state.what() != TAKEN || !state.is_detached() {
                continue;
            }
            // Those of this generation, or the place is of a later one by now.
            let ending = place.ending.load(Ordering::Acquire);
            let joiner = place.joiner.load(Ordering::Acquire);
            let is_over = ending != 0 && !kernel.is_thread(ending);
            if is_over && (joiner == 0 || !kernel.is_thread(joiner)) {
                place.give_back(state, kernel);
            }
        }
    }

    /// In the child of a fork, where only this thread is, by this number of the kernel's. The
    /// stacks of others stay as long as somebody may ask for them.
    pub fn forked(&self, descriptor: usize, thread: u32, kernel: &impl Kernel) {
        for place in self.ever_held() {
            let state = place.state();
            match state.what() {
                HELD => {
                    // Whoever held it is not here, and it is not known what is there.
                    place.forget();
                    place.set(state.to(FREE));
                }
                // It may end already, and has had another number.
                TAKEN if place.has(descriptor) => {
                    place.ending.store(thread, Ordering::Relaxed);
                    place.joiner.store(0, Ordering::Relaxed);
                }
                TAKEN if state.is_detached() => place.give_back(state, kernel),
                TAKEN => place.set(state.to(LEFT)),
                _ => {}
            }
        }
    }

    /// Whether the thread with this descriptor is one of the process of which this is a fork.
    /// Nobody needs its stack any more then.
    pub fn forgets(&self, descriptor: usize, kernel: &impl Kernel) -> bool {
        let left = self.find(LEFT, descriptor);
        if let Some(left) = left {
            left.give_back(kernel);
        }
        left.is_some()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// The descriptor of a thread in the only place.
    const DESCRIPTOR: usize = 190;

    /// Who unmaps nothing that has not been mapped.
    #[derive(Default)]
    struct Machine {
        knows_what_is_there: bool,
        has_stack: Cell<bool>,
        threads: Cell<&'static [u32]>,
    }

    impl Kernel for Machine {
        fn unmap(&self, _: &Place) -> bool {
            assert!(self.has_stack.get());
            self.has_stack.set(!self.knows_what_is_there);
            self.knows_what_is_there
        }

        fn is_thread(&self, thread: u32) -> bool {
            self.threads.get().contains(&thread)
        }
    }

    impl Machine {
        fn takes(&self, places: &Places<'_>, is_detached: bool) -> bool {
            let make = |place: &Place| {
                if place.start() == 0 {
                    place.settle(100, 200, 0);
                }
                place.set_made_low(180);
                self.has_stack.set(true);
                true
            };
            places.take(|_| true, make, is_detached).is_some()
        }
    }

    fn with_one_place(act: impl FnOnce(&Places<'_>)) {
        act(&Places {
            all: &[Place::NEW],
            highest: &AtomicUsize::new(0),
        });
    }

    #[test]
    fn who_forks_while_it_ends_keeps_its_stack_in_the_child() {
        let machine = Machine {
            knows_what_is_there: true,
            threads: Cell::new(&[7]),
            ..Machine::default()
        };
        with_one_place(|places| {
            assert!(machine.takes(places, true));
            places.ends(DESCRIPTOR, 7);
            // In the child it has another number.
            machine.threads.set(&[8]);
            places.forked(DESCRIPTOR, 8, &machine);
            places.sweep(&machine);
            assert!(machine.has_stack.get());
            machine.threads.set(&[]);
            places.sweep(&machine);
            assert!(!machine.has_stack.get());
        });
    }

    #[test]
    fn a_fork_loses_no_place_that_somebody_holds() {
        let machine = Machine::default();
        with_one_place(|places| {
            let held = places.hold(|_| true);
            assert!(held.is_some() && !machine.takes(places, false));
            places.forked(DESCRIPTOR, 8, &machine);
            assert!(machine.takes(places, false));
        });
    }

    #[test]
    fn a_stack_of_which_nothing_is_known_is_left_where_it_is() {
        let machine = Machine::default();
        with_one_place(|places| {
            assert!(machine.takes(places, false));
            places.give_back(0, &machine);
            assert!(machine.has_stack.get());
            assert_eq!(places.all[0].start(), 0);
            assert!(machine.takes(places, false));
        });
    }
}
