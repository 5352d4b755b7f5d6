//! A thread that tells the mediator of something while that moves it: every interleaving of
//! the shipped code.

use loom::sync::atomic::AtomicU8;
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;
use crate::attributes::Attributes;
use crate::attributes::Priority;
use crate::mediator::{Kind, Machine, Node, Settings};
use crate::sync::Ordering;
use crate::table::Entry;
use crate::table::models::Memory;

const OWN: u8 = 0;
const FAST: u8 = 1;
const LAZY: u8 = 2;

/// One thread, where the kernel has it.
struct Kernel(AtomicU8);

impl Mover for Kernel {
    fn own(&self, _: u32) -> Result<Scheduling, Errno> {
        Ok(Scheduling::default())
    }

    fn is_left_alone(&self, _: &Scheduling) -> bool {
        false
    }

    fn apply(&self, _: u32, _: Placement, to: Placement, _: &Scheduling) -> Result<(), Errno> {
        let place = match to.region() {
            Region::Own => OWN,
            Region::Fast => FAST,
            Region::Lazy => LAZY,
        };
        self.0.store(place, Ordering::SeqCst);
        Ok(())
    }
}

// Where its identity belongs.
const WORKER: Slot = Slot(1);
const URGENT: Slot = Slot(0);
const TID: u32 = 7;

/// A program of a worker and, perhaps, a critical thread.
struct World {
    memory: Memory,
    kernel: Kernel,
    state: Mutex<State>,
}

struct State {
    machine: Machine<'static>,
    is_doubtful: bool,
}

impl World {
    fn new(is_urgent: bool) -> World {
        let nodes = std::boxed::Box::leak(std::boxed::Box::new([Node::default(); 2]));
        let memory = Memory::new();
        let worker = Entry {
            region: match is_urgent {
                true => Region::Lazy,
                false => Region::Own,
            },
            ..Entry::of(1, TID, Attributes::default())
        };
        assert_eq!(memory.lines().insert(worker), Ok(WORKER));
        let mut machine = Machine::new(nodes, Settings::default());
        machine.add(WORKER, TID, Kind::Ordinary, &mut |_| ());
        if is_urgent {
            machine.add(URGENT, 8, Kind::Critical(Priority::default()), &mut |_| ());
        }
        World {
            memory,
            kernel: Kernel(AtomicU8::new(if is_urgent { LAZY } else { OWN })),
            state: Mutex::new(State {
                machine,
                is_doubtful: false,
            }),
        }
    }

    /// Whoever has the lock tells the mediator of something.
    fn tell(&self, event: impl FnOnce(&mut Machine<'static>, &mut dyn FnMut(Action))) {
        self.apply(&mut self.state.lock().unwrap(), event);
    }

    fn apply(
        &self,
        state: &mut State,
        event: impl FnOnce(&mut Machine<'static>, &mut dyn FnMut(Action)),
    ) {
        let State {
            machine,
            is_doubtful,
        } = state;
        event(machine, &mut |action| {
            if action.slot == WORKER {
                let put = put(self.memory.lines(), action, &self.kernel);
                *is_doubtful |= put.unwrap() == Put::Doubtful;
            }
        });
    }

    /// The worker has something to tell, and is not lazy while it has the lock.
    fn visit(&self) {
        let lines = self.memory.lines();
        let mut is_lazy = false;
        loop {
            let visitor = come_home(lines, 1, TID, is_lazy, &self.kernel).unwrap();
            let mut state = self.state.lock().unwrap();
            let region = arrive(lines, &visitor);
            self.apply(&mut state, |machine, out| {
                machine.arrive(WORKER, TID, region, out);
            });
            assert_ne!(self.kernel.0.load(Ordering::SeqCst), LAZY);
            let to = state.machine.leave(WORKER, TID);
            let going = leave(lines, visitor, to, &self.kernel);
            assert_ne!(self.kernel.0.load(Ordering::SeqCst), LAZY);
            drop(state);
            match going {
                Some(going) if go(lines, &going, &self.kernel) == Ok(true) => is_lazy = true,
                _ => return,
            }
        }
    }

    /// All agree on where the worker is.
    fn check(&self) {
        let lines = self.memory.lines();
        let machine = &self.state.lock().unwrap().machine;
        let entry = lines.at(WORKER).unwrap();
        let place = match entry.region {
            Region::Own => OWN,
            Region::Fast => FAST,
            Region::Lazy => LAZY,
        };
        assert_eq!(self.kernel.0.load(Ordering::SeqCst), place);
        assert_eq!(machine.placement(WORKER).unwrap().region(), entry.region);
        let wanted = match machine.fast_count() {
            0 => Region::Own,
            _ if entry.region == Region::Fast => Region::Fast,
            _ => Region::Lazy,
        };
        assert_eq!(entry.region, wanted);
        assert!(!entry.is_visiting && !entry.is_going);
    }
}

/// The worker visits while others tell the mediator of these, one after the other.
fn model(is_urgent: bool, events: &'static [fn(&mut Machine<'static>, &mut dyn FnMut(Action))]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let world = Arc::new(World::new(is_urgent));
        let visiting = world.clone();
        let worker = thread::spawn(move || visiting.visit());
        for event in events {
            world.tell(*event);
        }
        worker.join().unwrap();
        world.check();
    });
}

fn begins(machine: &mut Machine<'static>, out: &mut dyn FnMut(Action)) {
    machine.add(URGENT, 8, Kind::Critical(Priority::default()), out);
}

fn ends(machine: &mut Machine<'static>, out: &mut dyn FnMut(Action)) {
    machine.remove(URGENT, out);
}

fn waits_for_it(machine: &mut Machine<'static>, out: &mut dyn FnMut(Action)) {
    machine.waits(URGENT, WORKER, out);
}

fn is_served(machine: &mut Machine<'static>, out: &mut dyn FnMut(Action)) {
    machine.served(URGENT, out);
}

#[test]
fn who_visits_is_not_made_lazy() {
    model(false, &[begins]);
}

#[test]
fn who_is_lazy_comes_home_and_stays_if_nobody_is_urgent() {
    model(true, &[ends]);
}

#[test]
fn who_is_lazy_comes_home_and_goes_back() {
    model(true, &[ends, begins]);
}

#[test]
fn who_is_lazy_comes_home_and_is_urgent() {
    model(true, &[waits_for_it]);
}

#[test]
fn who_is_urgent_for_a_moment_is_lazy_afterwards() {
    model(true, &[waits_for_it, is_served]);
}
