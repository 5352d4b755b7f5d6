//! The state of the mediator, and what changes it.
//!
//! Threads are nodes of a doubly linked list, in an array that has one for each
//! line of the thread information table. An event costs what the threads cost that
//! it concerns; only when the fast region becomes empty, or ceases to be, and when
//! turns begin and end, are all of them looked at.

mod turns;

use super::{Action, BOOST_DEPTH, Kind, Placement, Settings};
use crate::attributes::Priority;
use crate::table::{Region, Slot};
use turns::Turns;
pub use turns::Watch;

/// One more than the place of a node, so that memory of zeros has no links.
type Link = u32;

/// What the mediator knows of a thread. Zeros in memory are no thread.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Node {
    /// Processor time and blockings when it was seen to have blocked.
    cpu_ns: u64,
    blockings: u64,
    /// Processor time when it was last seen to have run.
    ran_cpu_ns: u64,
    /// By when it has last run, or did not want to; 0 if nobody has looked.
    ran_ns: u64,
    tid: u32,
    previous: Link,
    next: Link,
    /// The thread that has the lock for which it waits.
    waits_for: Link,
    priority: Priority,
    /// The priority that counts while it is in the fast region.
    urgency: Priority,
    /// Where it was put last.
    placed_priority: Priority,
    placed: Region,
    is_placed_bound: bool,
    is_here: bool,
    is_critical: bool,
    is_lazy: bool,
    is_excluded: bool,
    /// It is never lazy, and may be urgent.
    is_spared: bool,
    /// It tells of something, and is not lazy meanwhile.
    is_visiting: bool,
    is_blocked: bool,
    is_demoted: bool,
    /// It is lazy and cannot return.
    is_bound: bool,
    is_fast: bool,
    /// It is to run in this turn.
    is_due: bool,
    /// It did not want to run when it was looked at.
    is_asleep: bool,
}

impl Node {
    fn placement(&self) -> Placement {
        match self.placed {
            Region::Own => Placement::Own,
            Region::Fast => Placement::Fast(self.placed_priority),
            Region::Lazy if self.is_placed_bound => Placement::Bound,
            Region::Lazy => Placement::Lazy,
        }
    }

    /// Its own priority, if it is urgent whoever waits for it.
    fn own_urgency(&self) -> Option<Priority> {
        (self.is_critical && !self.is_demoted).then_some(self.priority)
    }

    /// It would be in the fast region if it were not blocked.
    fn is_away(&self) -> bool {
        self.is_blocked && !self.is_fast && self.own_urgency().is_some()
    }
}

/// Takes what is to be done.
pub type Sink<'s> = &'s mut dyn FnMut(Action);

/// The mediator's state machine. Events about threads that are not there change
/// nothing.
pub struct Machine<'m> {
    nodes: &'m mut [Node],
    settings: Settings,
    first: Link,
    /// How many are in the fast region.
    fast: u32,
    /// How many wait for somebody's lock.
    waiting: u32,
    is_open: bool,
    /// Whether lazy threads that are no part of a turn make way for those that are.
    makes_way: bool,
    turns: Turns,
}

impl<'m> Machine<'m> {
    /// A mediator without threads, over as many nodes as the table has lines.
    /// They are overwritten as threads come.
    #[must_use]
    pub fn new(nodes: &'m mut [Node], settings: Settings) -> Machine<'m> {
        Machine {
            nodes,
            settings,
            first: 0,
            fast: 0,
            waiting: 0,
            is_open: true,
            makes_way: false,
            turns: Turns::NONE,
        }
    }

    /// How it works.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether threads that become lazy from now on can return.
    pub fn set_returns(&mut self, returns: bool) {
        self.settings.is_reversible &= returns;
    }

    /// Whether lazy threads make way in the turn of others; the rung says so.
    pub fn set_makes_way(&mut self, makes_way: bool) {
        self.makes_way = makes_way;
    }

    /// How many threads are in the fast region.
    #[must_use]
    pub fn fast_count(&self) -> u32 {
        self.fast
    }

    /// Where a thread was put last.
    #[must_use]
    pub fn placement(&self, slot: Slot) -> Option<Placement> {
        self.node(slot).map(Node::placement)
    }

    /// Whether a thread has kept the processor for too long and was demoted.
    #[must_use]
    pub fn is_demoted(&self, slot: Slot) -> bool {
        self.node(slot).is_some_and(|it| it.is_demoted)
    }

    /// Whether a thread is left alone.
    #[must_use]
    pub fn is_excluded(&self, slot: Slot) -> bool {
        self.node(slot).is_some_and(|it| it.is_excluded)
    }

    /// A thread begins. Whoever was in its place before has ended unseen.
    pub fn add(&mut self, slot: Slot, tid: u32, kind: Kind, out: Sink<'_>) {
        self.begin(slot, tid, kind, Region::Own, false, out);
    }

    /// A thread begins that is in this region already: it has inherited it.
    pub fn add_from(&mut self, slot: Slot, tid: u32, kind: Kind, from: Region, out: Sink<'_>) {
        self.begin(slot, tid, kind, from, false, out);
    }

    /// A thread begins, and tells so itself: it is not lazy until [`Machine::leave`].
    pub fn add_visiting(&mut self, slot: Slot, tid: u32, kind: Kind, out: Sink<'_>) {
        self.begin(slot, tid, kind, Region::Own, true, out);
    }

    fn begin(
        &mut self,
        slot: Slot,
        tid: u32,
        kind: Kind,
        from: Region,
        is_visiting: bool,
        out: Sink<'_>,
    ) {
        self.remove(slot, out);
        let first = self.first;
        let is_ordinary = matches!(kind, Kind::Ordinary | Kind::Lazy);
        let is_bound = is_ordinary && !self.settings.is_reversible;
        let Some(node) = self.nodes.get_mut(slot.0 as usize) else {
            return;
        };
        *node = Node {
            tid,
            next: first,
            placed: from,
            is_here: true,
            is_bound,
            is_visiting,
            ..Node::default()
        };
        node.become_kind(kind);
        if let Some(next) = self.linked(first) {
            self.nodes[next].previous = slot.0 + 1;
        }
        self.first = slot.0 + 1;
        self.settle(self.fast, slot.0 + 1, out);
    }

    /// A thread ends.
    pub fn remove(&mut self, slot: Slot, out: Sink<'_>) {
        let Some(node) = self.node(slot).copied() else {
            return;
        };
        let fast = self.fast;
        if self.waiting > 0 {
            self.forget_waiting(slot.0 + 1);
        }
        self.waiting -= u32::from(node.waits_for != 0);
        self.fast -= u32::from(node.is_fast);
        match self.linked(node.previous) {
            Some(previous) => self.nodes[previous].next = node.next,
            None => self.first = node.next,
        }
        if let Some(next) = self.linked(node.next) {
            self.nodes[next].previous = node.previous;
        }
        self.nodes[slot.0 as usize] = Node::default();
        self.settle(fast, node.waits_for, out);
    }

    /// A thread is about to tell of something, and is not lazy until [`Machine::leave`]:
    /// it is in this region by now, wherever it was put last.
    pub fn arrive(&mut self, slot: Slot, tid: u32, region: Region, out: Sink<'_>) {
        if let Some(node) = self.node_mut(slot).filter(|it| it.tid == tid) {
            node.is_visiting = true;
            node.placed = region;
            self.place(slot.0 as usize, out);
        }
    }

    /// It has told: where it goes now, unless it stays where it is. It goes there itself.
    pub fn leave(&mut self, slot: Slot, tid: u32) -> Option<Placement> {
        let node = self.node_mut(slot).filter(|it| it.tid == tid)?;
        node.is_visiting = false;
        let mut goes = None;
        self.place(slot.0 as usize, &mut |action| goes = Some(action.placement));
        goes
    }

    /// Forgets threads that have ended without telling; this knows of them.
    pub fn retain(&mut self, mut keep: impl FnMut(Slot, u32) -> bool, out: Sink<'_>) {
        let mut link = self.first;
        while let Some(at) = self.linked(link) {
            let node = self.nodes[at];
            link = node.next;
            if !keep(Slot(at as u32), node.tid) {
                self.remove(Slot(at as u32), out);
            }
        }
    }

    /// A thread's attributes were set. That also ends a demotion.
    pub fn set_kind(&mut self, slot: Slot, kind: Kind, out: Sink<'_>) {
        self.change(slot, out, |node| node.become_kind(kind));
    }

    /// A thread begins, or ceases, to wait for something that is no lock.
    pub fn set_blocked(&mut self, slot: Slot, is_blocked: bool, out: Sink<'_>) {
        if self.settings.leaves_while_blocked {
            self.change(slot, out, |node| node.is_blocked = is_blocked);
        }
    }

    /// A thread waits for a lock that another has: if it is urgent, so is that.
    pub fn waits(&mut self, waiter: Slot, owner: Slot, out: Sink<'_>) {
        self.served(waiter, out);
        if waiter == owner || self.node(owner).is_none() || self.node(waiter).is_none() {
            return;
        }
        self.nodes[waiter.0 as usize].waits_for = owner.0 + 1;
        self.waiting += 1;
        self.settle(self.fast, owner.0 + 1, out);
    }

    /// A thread waits for a lock no more.
    pub fn served(&mut self, waiter: Slot, out: Sink<'_>) {
        let Some(owner) = self.node(waiter).map(|it| it.waits_for) else {
            return;
        };
        if owner != 0 {
            self.nodes[waiter.0 as usize].waits_for = 0;
            self.waiting -= 1;
            self.settle(self.fast, owner, out);
        }
    }

    /// A critical thread is one no more, until its attributes are set again. Where nobody
    /// returns it joins the lazy ones for good: they would have next to nothing beside it.
    pub fn demote(&mut self, slot: Slot, out: Sink<'_>) {
        let is_reversible = self.settings.is_reversible;
        self.change(slot, out, |node| {
            node.is_demoted = node.is_critical;
            node.is_bound |= node.is_demoted && !is_reversible;
            // It is looked at anew when it gets another chance.
            node.cpu_ns = 0;
        });
    }

    /// How much processor time a thread has had and how often it has blocked, to
    /// be told a few times a second of each in the fast region. Returns whether it
    /// was demoted for never having blocked for too long.
    pub fn observe(&mut self, slot: Slot, cpu_ns: u64, blockings: u64, out: Sink<'_>) -> bool {
        let limit = self.settings.spin_ns_max;
        let Some(node) = self.node_mut(slot) else {
            return false;
        };
        // Whoever was boosted does what it does in another's name.
        let is_watched = node.is_fast && node.own_urgency().is_some();
        if !is_watched || node.cpu_ns == 0 || node.blockings != blockings {
            node.cpu_ns = cpu_ns;
            node.blockings = blockings;
            return false;
        }
        let is_spinning = cpu_ns.saturating_sub(node.cpu_ns) >= limit;
        if is_spinning {
            self.demote(slot, out);
        }
        is_spinning
    }

    /// Lets all threads return and keeps them there, or mediates again.
    pub fn set_open(&mut self, is_open: bool, out: Sink<'_>) {
        self.is_open = is_open;
        self.place_all(out);
    }

    /// The process has forked, and this is the child, where one thread is left. It
    /// has a new number and may have another slot, is critical no more, and returns.
    pub fn after_fork(&mut self, before: Slot, slot: Slot, tid: u32, out: Sink<'_>) {
        let own = self.node(before).copied();
        let mut link = self.first;
        while let Some(at) = self.linked(link) {
            link = self.nodes[at].next;
            self.nodes[at] = Node::default();
        }
        (self.first, self.fast, self.waiting) = (0, 0, 0);
        let Some(own) = own else {
            return;
        };
        self.nodes[slot.0 as usize] = Node {
            tid,
            is_here: true,
            is_excluded: own.is_excluded,
            is_bound: own.is_bound,
            placed: own.placed,
            is_placed_bound: own.is_placed_bound,
            placed_priority: own.placed_priority,
            ..Node::default()
        };
        self.first = slot.0 + 1;
        self.settle(1, self.first, out);
    }

    /// Threads in the fast region.
    pub fn fast_threads(&self) -> impl Iterator<Item = (Slot, u32)> + '_ {
        self.threads()
            .filter(|(_, it)| it.is_fast)
            .map(|(slot, it)| (slot, it.tid))
    }

    /// Threads that are out of the fast region only while they are blocked.
    pub fn blocked_threads(&self) -> impl Iterator<Item = (Slot, u32)> + '_ {
        let leaves = self.settings.leaves_while_blocked;
        self.threads()
            .filter(move |(_, it)| leaves && it.is_away())
            .map(|(slot, it)| (slot, it.tid))
    }

    fn threads(&self) -> impl Iterator<Item = (Slot, &Node)> + '_ {
        let mut link = self.first;
        core::iter::from_fn(move || {
            let at = self.linked(link)?;
            let node = &self.nodes[at];
            link = node.next;
            Some((Slot(at as u32), node))
        })
    }

    fn node(&self, slot: Slot) -> Option<&Node> {
        let node = self.nodes.get(slot.0 as usize);
        node.filter(|it| it.is_here)
    }

    fn node_mut(&mut self, slot: Slot) -> Option<&mut Node> {
        let node = self.nodes.get_mut(slot.0 as usize);
        node.filter(|it| it.is_here)
    }

    /// Where the node is to which this leads. Links are places of nodes, always.
    fn linked(&self, link: Link) -> Option<usize> {
        let at = (link as usize).checked_sub(1)?;
        (at < self.nodes.len()).then_some(at)
    }

    fn change(&mut self, slot: Slot, out: Sink<'_>, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.node_mut(slot) {
            change(node);
            self.settle(self.fast, slot.0 + 1, out);
        }
    }

    /// Nobody waits any more for a thread that ends.
    fn forget_waiting(&mut self, owner: Link) {
        let mut link = self.first;
        while let Some(at) = self.linked(link) {
            let node = &mut self.nodes[at];
            link = node.next;
            if node.waits_for == owner {
                node.waits_for = 0;
                self.waiting -= 1;
            }
        }
    }

    /// Looks anew at a thread of which something has changed and at those that it
    /// waits for, and puts whom it concerns where they belong. `fast_before` is
    /// how many were in the fast region before the change.
    fn settle(&mut self, fast_before: u32, from: Link, out: Sink<'_>) {
        // Mostly it waits for nobody, so the list is not made before.
        let mut link = from;
        for _ in 0..=BOOST_DEPTH {
            let Some(at) = self.linked(link) else { break };
            let urgency = self.urgency(at);
            let node = &mut self.nodes[at];
            link = node.waits_for;
            let was_fast = core::mem::replace(&mut node.is_fast, urgency.is_some());
            node.urgency = urgency.unwrap_or_default();
            self.fast = self.fast - u32::from(was_fast) + u32::from(urgency.is_some());
        }
        if (fast_before == 0) == (self.fast == 0) {
            let mut link = from;
            for _ in 0..=BOOST_DEPTH {
                let Some(at) = self.linked(link) else { break };
                link = self.nodes[at].waits_for;
                self.place(at, out);
            }
        } else {
            self.turns.end();
            self.place_all(out);
        }
    }

    /// A thread, the one that it waits for, and so on.
    fn chain(&self, from: Link) -> [Option<usize>; BOOST_DEPTH + 1] {
        let mut link = from;
        core::array::from_fn(|_| {
            let at = self.linked(link)?;
            link = self.nodes[at].waits_for;
            Some(at)
        })
    }

    /// With which priority a thread is in the fast region, if it is.
    fn urgency(&self, at: usize) -> Option<Priority> {
        let node = &self.nodes[at];
        if !node.is_here || node.is_excluded || node.is_bound {
            return None;
        }
        let leaves = node.is_blocked && self.settings.leaves_while_blocked;
        let others = self.urgency_of_waiting(at);
        let own = node.own_urgency().filter(|_| !leaves || others.is_some());
        own.into_iter().chain(others).min()
    }

    /// The first priority of those that wait for a thread, directly or not.
    fn urgency_of_waiting(&self, at: usize) -> Option<Priority> {
        if self.waiting == 0 {
            return None;
        }
        let reaches = |link: Link| {
            let mut chain = self.chain(link).into_iter().map_while(|it| it);
            chain.any(|it| it == at)
        };
        self.threads()
            .filter(|(slot, it)| it.waits_for != 0 && slot.0 as usize != at)
            .filter(|(_, it)| reaches(it.waits_for))
            .filter_map(|(_, it)| it.own_urgency())
            .min()
    }

    fn wanted(&self, node: &Node) -> Placement {
        match self.wanted_later(node) {
            Placement::Lazy | Placement::Bound if node.is_visiting => Placement::Own,
            wanted => wanted,
        }
    }

    /// The same, once it has left.
    fn wanted_later(&self, node: &Node) -> Placement {
        if node.is_bound {
            return Placement::Lazy;
        }
        if !self.is_open || node.is_excluded || node.is_spared && !node.is_fast {
            return Placement::Own;
        }
        // It would have to wait for the others, lazy, before it could come back.
        if self.settings.leaves_while_blocked && node.is_away() {
            return Placement::Own;
        }
        let is_own = match node.is_fast {
            true => self.fast == 0 || self.turns.is_turn,
            false => self.fast == 0 || self.turns.is_for(node),
        };
        match (is_own, node.is_fast) {
            (false, true) => Placement::Fast(node.urgency),
            (true, true) => Placement::Own,
            // Who was not bound to be lazy when it began can never become so.
            (_, false) if !self.settings.is_reversible => Placement::Own,
            (_, false) if node.is_lazy => Placement::Bound,
            (true, false) => Placement::Own,
            (false, false) if self.makes_way && self.turns.is_turn => Placement::Bound,
            (false, false) => Placement::Lazy,
        }
    }

    fn place(&mut self, at: usize, out: Sink<'_>) {
        let node = &self.nodes[at];
        let placement = self.wanted(node);
        if !node.is_here || node.placement() == placement {
            return;
        }
        let node = &mut self.nodes[at];
        node.placed = placement.region();
        node.is_placed_bound = placement == Placement::Bound;
        if let Placement::Fast(priority) = placement {
            node.placed_priority = priority;
        }
        out(Action {
            slot: Slot(at as u32),
            tid: node.tid,
            placement,
        });
    }

    /// The urgent first: whoever waits for the processor shall not wait for this.
    fn place_all(&mut self, out: Sink<'_>) {
        for is_fast in [true, false] {
            let mut link = self.first;
            while let Some(at) = self.linked(link) {
                link = self.nodes[at].next;
                if self.nodes[at].is_fast == is_fast {
                    self.place(at, out);
                }
            }
        }
    }
}

impl Node {
    fn become_kind(&mut self, kind: Kind) {
        self.is_critical = matches!(kind, Kind::Critical(_));
        self.is_lazy = kind == Kind::Lazy;
        self.is_excluded = kind == Kind::Excluded;
        self.is_spared = kind == Kind::Spared;
        self.is_demoted = false;
        if let Kind::Critical(priority) = kind {
            self.priority = priority;
        }
    }
}
