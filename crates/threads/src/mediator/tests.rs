//! The machine against the rules of the module, read as sentences.

mod turns;

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const THREADS: u32 = 12;

#[derive(Debug, Clone)]
enum Event {
    Add(u32, Kind),
    Remove(u32),
    SetKind(u32, Kind),
    Block(u32, bool),
    Waits(u32, u32),
    Served(u32),
    Demote(u32),
    Tick(u64),
    Open(bool),
    Fork(u32),
    Arrive(u32),
    Leave(u32),
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::Ordinary),
        3 => (-20..=19).prop_map(|nice| Kind::Critical(Priority::new(nice).expect("a nice value"))),
        1 => Just(Kind::Lazy),
        1 => Just(Kind::Spared),
        1 => Just(Kind::Excluded),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let slot = 0..THREADS;
    let event = prop_oneof![
        6 => (slot.clone(), kinds()).prop_map(|(slot, kind)| Event::Add(slot, kind)),
        3 => slot.clone().prop_map(Event::Remove),
        3 => (slot.clone(), kinds()).prop_map(|(slot, kind)| Event::SetKind(slot, kind)),
        3 => (slot.clone(), any::<bool>()).prop_map(|(slot, is)| Event::Block(slot, is)),
        5 => (slot.clone(), slot.clone()).prop_map(|(a, b)| Event::Waits(a, b)),
        3 => slot.clone().prop_map(Event::Served),
        2 => slot.clone().prop_map(Event::Demote),
        3 => (0..800u64).prop_map(Event::Tick),
        1 => any::<bool>().prop_map(Event::Open),
        1 => slot.clone().prop_map(Event::Fork),
        3 => slot.clone().prop_map(Event::Arrive),
        3 => slot.prop_map(Event::Leave),
    ];
    proptest::collection::vec(event, 0..if cfg!(miri) { 20 } else { 120 })
}

fn settings() -> impl Strategy<Value = Settings> {
    let wait = proptest::option::of(Just(1000));
    (any::<bool>(), any::<bool>(), wait).prop_map(|(leaves, reversible, wait)| Settings {
        leaves_while_blocked: leaves,
        is_reversible: reversible,
        lazy_wait_ns_max: wait,
        ..Settings::default()
    })
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    kind: Kind,
    is_demoted: bool,
    is_blocked: bool,
    is_bound: bool,
    is_visiting: bool,
    waits_for: Option<u32>,
}

/// The rules, from the whole state each time.
#[derive(Debug)]
struct Model {
    settings: Settings,
    threads: BTreeMap<u32, Thread>,
    is_turn: bool,
    is_open: bool,
    now: u64,
    since: Option<u64>,
    owed: u64,
}

/// Nobody wants a processor and there is none, so that turns are of their time alone.
struct Asleep;

impl Watch for Asleep {
    fn takes_ns(&self) -> u64 {
        0
    }

    fn processors(&self) -> u64 {
        0
    }

    fn cpu_ns(&mut self, _: Slot, _: u32) -> Option<u64> {
        Some(0)
    }

    fn is_runnable(&mut self, _: Slot, _: u32) -> bool {
        false
    }
}

impl Model {
    fn critical(&self, slot: u32) -> Option<Priority> {
        let thread = self.threads[&slot];
        match thread.kind {
            Kind::Critical(priority) if !thread.is_demoted => Some(priority),
            _ => None,
        }
    }

    /// Whether one is among those that another waits for.
    fn waits(&self, mut waiter: u32, owner: u32) -> bool {
        for _ in 0..=BOOST_DEPTH {
            let Some(next) = self.threads[&waiter].waits_for else {
                return false;
            };
            if next == owner {
                return true;
            }
            waiter = next;
        }
        false
    }

    fn urgency(&self, slot: u32) -> Option<Priority> {
        let thread = self.threads[&slot];
        if thread.kind == Kind::Excluded || thread.is_bound {
            return None;
        }
        let others = self.threads.keys().filter(|it| **it != slot);
        let waiting = others.filter(|it| self.waits(**it, slot));
        let boost = waiting.filter_map(|it| self.critical(*it)).min();
        let own = self.critical(slot);
        if boost.is_none() && thread.is_blocked && self.settings.leaves_while_blocked {
            return None;
        }
        [own, boost].into_iter().flatten().min()
    }

    fn is_fast_empty(&self) -> bool {
        self.threads.keys().all(|it| self.urgency(*it).is_none())
    }

    fn placement(&self, slot: u32) -> Placement {
        match self.placement_later(slot) {
            it if it.region() == Region::Lazy && self.threads[&slot].is_visiting => Placement::Own,
            it => it,
        }
    }

    fn placement_later(&self, slot: u32) -> Placement {
        let thread = self.threads[&slot];
        if thread.is_bound {
            return Placement::Lazy;
        }
        if !self.is_open {
            return Placement::Own;
        }
        let is_lazy = thread.kind == Kind::Lazy && self.settings.is_reversible;
        if is_lazy && self.urgency(slot).is_none() {
            return Placement::Bound;
        }
        if self.is_fast_empty() || self.is_turn {
            return Placement::Own;
        }
        let leaves = thread.is_blocked && self.settings.leaves_while_blocked;
        if leaves && self.urgency(slot).is_none() && self.critical(slot).is_some() {
            return Placement::Own;
        }
        match (self.urgency(slot), thread.kind) {
            (_, Kind::Excluded) | (None, Kind::Spared) => Placement::Own,
            (Some(priority), _) => Placement::Fast(priority),
            (None, _) if self.settings.is_reversible => Placement::Lazy,
            (None, _) => Placement::Own,
        }
    }

    fn apply(&mut self, event: &Event) {
        let was_empty = self.is_fast_empty();
        match *event {
            Event::Add(slot, kind) => {
                self.remove(slot);
                self.end_turn_if(was_empty);
                let thread = Thread {
                    kind,
                    is_demoted: false,
                    is_blocked: false,
                    is_bound: matches!(kind, Kind::Ordinary | Kind::Lazy)
                        && !self.settings.is_reversible,
                    is_visiting: false,
                    waits_for: None,
                };
                let was_empty = self.is_fast_empty();
                self.threads.insert(slot, thread);
                return self.end_turn_if(was_empty);
            }
            Event::Remove(slot) => self.remove(slot),
            Event::SetKind(slot, kind) => {
                if let Some(thread) = self.threads.get_mut(&slot) {
                    thread.kind = kind;
                    thread.is_demoted = false;
                }
            }
            Event::Block(slot, is_blocked) => {
                if let Some(thread) = self.threads.get_mut(&slot) {
                    thread.is_blocked = is_blocked;
                }
            }
            Event::Waits(waiter, owner) => {
                self.apply(&Event::Served(waiter));
                let was_empty = self.is_fast_empty();
                let is_there = waiter != owner && self.threads.contains_key(&owner);
                if let Some(thread) = self.threads.get_mut(&waiter).filter(|_| is_there) {
                    thread.waits_for = Some(owner);
                }
                return self.end_turn_if(was_empty);
            }
            Event::Served(slot) => {
                if let Some(thread) = self.threads.get_mut(&slot) {
                    thread.waits_for = None;
                }
            }
            Event::Demote(slot) => {
                if let Some(thread) = self.threads.get_mut(&slot) {
                    thread.is_demoted = matches!(thread.kind, Kind::Critical(_));
                    thread.is_bound |= thread.is_demoted && !self.settings.is_reversible;
                }
            }
            Event::Tick(step) => {
                self.now += step;
                let mediates = self.is_open && self.settings.is_reversible;
                let mediates = mediates && !was_empty;
                if let Some(wait) = self.settings.lazy_wait_ns_max.filter(|_| mediates) {
                    let since = *self.since.get_or_insert(self.now);
                    let length = if self.is_turn { self.owed } else { wait };
                    if self.now - since >= length {
                        self.owed = (self.now - since) / 95 * 5;
                        self.is_turn = !self.is_turn;
                        self.since = Some(self.now);
                    }
                }
            }
            Event::Open(is_open) => self.is_open = is_open,
            Event::Arrive(slot) | Event::Leave(slot) => {
                if let Some(thread) = self.threads.get_mut(&slot) {
                    thread.is_visiting = matches!(event, Event::Arrive(_));
                }
            }
            Event::Fork(slot) => {
                self.threads.retain(|it, _| *it == slot);
                self.is_turn = false;
                self.since = None;
                if let Some(thread) = self.threads.get_mut(&slot) {
                    let kind = match thread.kind {
                        Kind::Excluded => Kind::Excluded,
                        _ => Kind::Ordinary,
                    };
                    *thread = Thread {
                        kind,
                        is_demoted: false,
                        is_blocked: false,
                        is_visiting: false,
                        waits_for: None,
                        ..*thread
                    };
                }
            }
        }
        self.end_turn_if(was_empty);
    }

    fn remove(&mut self, slot: u32) {
        self.threads.remove(&slot);
        for thread in self.threads.values_mut() {
            thread.waits_for = thread.waits_for.filter(|it| *it != slot);
        }
    }

    /// Turns are of a time during which the fast region is not empty.
    fn end_turn_if(&mut self, was_empty: bool) {
        if was_empty != self.is_fast_empty() {
            self.is_turn = false;
            self.since = None;
        }
    }
}

fn apply(machine: &mut Machine<'_>, event: &Event, now: &mut u64, out: &mut dyn FnMut(Action)) {
    match *event {
        Event::Add(slot, kind) => machine.add(Slot(slot), 100 + slot, kind, out),
        Event::Remove(slot) => machine.remove(Slot(slot), out),
        Event::SetKind(slot, kind) => machine.set_kind(Slot(slot), kind, out),
        Event::Block(slot, is_blocked) => machine.set_blocked(Slot(slot), is_blocked, out),
        Event::Waits(waiter, owner) => machine.waits(Slot(waiter), Slot(owner), out),
        Event::Served(slot) => machine.served(Slot(slot), out),
        Event::Demote(slot) => machine.demote(Slot(slot), out),
        Event::Tick(step) => {
            *now += step;
            machine.tick(*now, &mut Asleep, out);
        }
        Event::Open(is_open) => machine.set_open(is_open, out),
        Event::Fork(slot) => machine.after_fork(Slot(slot), Slot(slot), 100 + slot, out),
        Event::Arrive(slot) => {
            // Whoever is lazy has come home before.
            let placed = machine.placement(Slot(slot));
            let region = match placed.map(Placement::region) {
                Some(Region::Fast) => Region::Fast,
                _ => Region::Own,
            };
            machine.arrive(Slot(slot), 100 + slot, region, out);
        }
        Event::Leave(slot) => {
            if let Some(placement) = machine.leave(Slot(slot), 100 + slot) {
                let (slot, tid) = (Slot(slot), 100 + slot);
                out(Action {
                    slot,
                    tid,
                    placement,
                });
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 500 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever happens, threads are where the rules put them, and nothing is done
    /// that changes nothing.
    #[test]
    fn threads_are_where_the_rules_put_them(settings in settings(), events in events()) {
        let mut nodes = vec![Node::default(); THREADS as usize];
        let mut machine = Machine::new(&mut nodes, settings);
        let mut model = Model {
            settings,
            threads: BTreeMap::new(),
            is_turn: false,
            is_open: true,
            now: 0,
            since: None,
            owed: 0,
        };
        let mut placed: BTreeMap<u32, Placement> = BTreeMap::new();
        let mut now = 0;
        for event in &events {
            let mut actions = Vec::new();
            apply(&mut machine, event, &mut now, &mut |it| actions.push(it));
            model.apply(event);
            match event {
                Event::Add(slot, _) => _ = placed.insert(*slot, Placement::Own),
                Event::Arrive(slot) => {
                    let lazy = placed.get_mut(slot).filter(|it| it.region() == Region::Lazy);
                    lazy.into_iter().for_each(|it| *it = Placement::Own);
                }
                _ => {}
            }
            placed.retain(|it, _| model.threads.contains_key(it));
            let mut touched = Vec::new();
            for action in &actions {
                prop_assert_eq!(action.tid, 100 + action.slot.0);
                let before = placed.insert(action.slot.0, action.placement);
                prop_assert!(before.is_some_and(|it| it != action.placement), "{:?}", action);
                touched.push(action.slot);
            }
            touched.sort_unstable();
            touched.dedup();
            let replaces = matches!(event, Event::Add(..) | Event::Waits(..));
            prop_assert!(replaces || touched.len() == actions.len(), "{:?}", actions);
            for (slot, placement) in &placed {
                prop_assert_eq!(*placement, model.placement(*slot), "{} after {:?}", slot, event);
            }
            let fast = model.threads.keys().filter(|it| model.urgency(**it).is_some());
            prop_assert_eq!(machine.fast_count() as usize, fast.count());
        }
        // In the end everybody returns who can.
        let mut actions = Vec::new();
        for slot in 0..THREADS {
            if let Some(placement) = machine.leave(Slot(slot), 100 + slot) {
                placed.insert(slot, placement);
            }
        }
        machine.set_open(false, &mut |it| actions.push(it));
        placed.extend(actions.iter().map(|it| (it.slot.0, it.placement)));
        for (slot, placement) in placed {
            let is_bound = model.threads[&slot].is_bound;
            prop_assert_eq!(placement, if is_bound { Placement::Lazy } else { Placement::Own });
        }
    }
}

fn nice(value: i32) -> Kind {
    Kind::Critical(Priority::new(value).expect("a nice value"))
}

fn nobody(action: Action) {
    panic!("{action:?}");
}

#[test]
fn the_fast_region_fills_before_the_lazy_one() {
    let mut nodes = [Node::default(); 3];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    machine.add(Slot(0), 10, Kind::Ordinary, &mut nobody);
    machine.add(Slot(1), 11, Kind::Ordinary, &mut nobody);
    let mut regions = Vec::new();
    machine.add(Slot(2), 12, nice(3), &mut |it| {
        regions.push(it.placement.region());
    });
    assert_eq!(regions, [Region::Fast, Region::Lazy, Region::Lazy]);
    regions.clear();
    machine.remove(Slot(2), &mut |it| regions.push(it.placement.region()));
    assert_eq!(regions, [Region::Own, Region::Own]);
}

#[test]
fn who_never_blocks_is_demoted() {
    let mut nodes = [Node::default(); 2];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    let limit = Settings::default().spin_ns_max;
    machine.add(Slot(0), 10, nice(0), &mut |_| {});
    machine.add(Slot(1), 11, Kind::Ordinary, &mut |_| {});
    // It has long worked before it was looked at, and then blocks now and then.
    for (cpu, blockings) in [(5 * limit, 1), (6 * limit - 1, 1), (8 * limit, 2)] {
        assert!(!machine.observe(Slot(0), cpu, blockings, &mut nobody));
    }
    let mut actions = Vec::new();
    assert!(machine.observe(Slot(0), 9 * limit, 2, &mut |it| actions.push(it)));
    assert!(machine.is_demoted(Slot(0)));
    assert!(actions.iter().all(|it| it.placement == Placement::Own));
    assert_eq!(actions.len(), 2);
    assert!(!machine.observe(Slot(0), 20 * limit, 2, &mut nobody));
    // Its attributes give it another chance.
    machine.set_kind(Slot(0), nice(0), &mut |_| {});
    assert_eq!(machine.fast_count(), 1);
    assert!(!machine.observe(Slot(0), 20 * limit + 1, 2, &mut nobody));
}

/// Those that are lazy for as long as they live would have next to nothing beside it.
#[test]
fn who_is_demoted_where_nobody_returns_is_lazy() {
    let mut nodes = [Node::default(); 2];
    let settings = Settings {
        is_reversible: false,
        ..Settings::default()
    };
    let mut machine = Machine::new(&mut nodes, settings);
    machine.add(Slot(0), 10, nice(0), &mut |_| {});
    machine.add(Slot(1), 11, Kind::Ordinary, &mut |_| {});
    machine.demote(Slot(0), &mut |_| {});
    let lazy = Some(Placement::Lazy);
    assert_eq!([0, 1].map(|it| machine.placement(Slot(it))), [lazy; 2]);
    // What it is told to be does not bring it back.
    machine.set_kind(Slot(0), nice(0), &mut nobody);
    assert_eq!(machine.fast_count(), 0);
}

#[test]
fn who_has_the_lock_is_as_urgent_as_who_waits() {
    let mut nodes = [Node::default(); 3];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    machine.add(Slot(0), 10, nice(-3), &mut |_| {});
    machine.add(Slot(1), 11, Kind::Ordinary, &mut |_| {});
    machine.add(Slot(2), 12, Kind::Ordinary, &mut |_| {});
    assert_eq!(machine.placement(Slot(2)), Some(Placement::Lazy));
    machine.waits(Slot(1), Slot(2), &mut nobody);
    machine.waits(Slot(0), Slot(1), &mut |_| {});
    let fast = Some(Placement::Fast(Priority::new(-3).expect("a nice value")));
    assert_eq!([1, 2].map(|it| machine.placement(Slot(it))), [fast, fast]);
    machine.served(Slot(0), &mut |_| {});
    assert_eq!(machine.placement(Slot(2)), Some(Placement::Lazy));
}

/// Two that wait for each other for ever do not keep the rest lazy for ever.
#[test]
fn a_deadlock_is_not_urgent_by_itself() {
    let mut nodes = [Node::default(); 4];
    let mut machine = Machine::new(&mut nodes, Settings::default());
    for slot in 0..3 {
        machine.add(Slot(slot), slot, Kind::Ordinary, &mut nobody);
    }
    machine.add(Slot(3), 3, nice(0), &mut |_| {});
    machine.waits(Slot(0), Slot(1), &mut nobody);
    machine.waits(Slot(1), Slot(0), &mut nobody);
    machine.waits(Slot(3), Slot(0), &mut |_| {});
    assert_eq!(machine.fast_count(), 3);
    machine.remove(Slot(3), &mut |_| {});
    assert_eq!(machine.fast_count(), 0);
}
