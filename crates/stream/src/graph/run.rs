//! Running events through the graph.
//!
//! Events go depth first, one edge after the other, without recursion: what is
//! still to do lies on a stack. On each edge events keep their order.

use milieu_transfer::{Event, Time};

use super::Machine;
use super::node::{Last, NodeId, SEVERAL, Subscriber, WOKEN, Work};
use crate::books::Books;
use crate::operator::{Fate, Now, Output, Reason, Settled};
use crate::receiver::Delivered;

/// What is under way while an event runs; kept for the memory that it has.
#[derive(Default)]
pub(super) struct Run {
    todo: Vec<Todo>,
    /// Events that operators have published.
    events: Vec<Event>,
    fresh: Vec<Event>,
    settled: Settled,
    /// Subscribers that turned out to be gone.
    gone: Vec<u64>,
    /// Whose code runs: it is to blame for a panic.
    at: At,
    /// Which of a node's subscribers it is.
    index: usize,
    /// So many restarts ago what runs came, or that of which it is made.
    age: u8,
    /// When what runs was published, while it is measured how long it takes.
    pub published: Option<Time>,
}

/// Whose code runs.
#[derive(Clone, Copy, Default)]
enum At {
    #[default]
    Nobody,
    /// An operator's, with an event.
    Node(NodeId),
    /// An operator's, that was woken.
    Woken(NodeId),
    /// That of a node's subscriber, with this event; those after it wait.
    Subscriber(NodeId, Which),
}

/// Which event: one of those that operators have published, or the given one.
#[derive(Clone, Copy)]
struct Which(u32);

const GIVEN: u32 = u32::MAX;

enum Todo {
    /// An event leaves a node.
    Leave(NodeId, Which),
    /// An event comes in at an input of a node.
    Enter(NodeId, u16, Which),
}

impl Machine {
    /// Runs an event that leaves a node to all who are to have it.
    pub(super) fn run(&mut self, now: &Now<'_>, node: NodeId, event: &Event) {
        self.leave(now, node, Which(GIVEN), Some(event));
        if !self.run.todo.is_empty() || !self.run.gone.is_empty() {
            self.finish(now, Some(event));
            self.unite_touched(now);
        }
    }

    /// Runs an event that left a node before to one of its readers.
    pub(super) fn run_to(&mut self, now: &Now<'_>, node: NodeId, to: (NodeId, u16), last: &Last) {
        let Last { event, age } = last;
        let mut readers = self.nodes[node].readers.iter_mut();
        if let Some(reader) = readers.find(|reader| (reader.node, reader.input) == to) {
            reader.since = reader.since.wrapping_sub(1);
            self.run.age = *age;
            self.run.todo.push(Todo::Enter(to.0, to.1, Which(GIVEN)));
            self.finish(now, Some(event));
            self.run.age = 0;
        }
    }

    /// Hands an event that left a node before to its last subscriber.
    pub(super) fn run_to_last(&mut self, now: &Now<'_>, node: NodeId, event: &Event) {
        let last = self.nodes[node].subscribers.len() - 1;
        self.deliver(now, node, Which(GIVEN), Some(event), last);
        self.finish(now, Some(event));
    }

    /// Lets an operator do what it wanted to be woken for, and runs what it publishes.
    pub(super) fn run_wake(&mut self, now: &Now<'_>, id: NodeId) {
        let Run {
            fresh, settled, at, ..
        } = &mut self.run;
        let node = &mut self.nodes[id];
        let (Work::Operator(operator) | Work::Late(operator)) = &mut node.work else {
            return;
        };
        node.more.began_with = WOKEN;
        *at = At::Woken(id);
        let mut output = Output::shared(
            now,
            &node.more.stream,
            &self.made[usize::from(node.more.kind)],
            fresh,
            settled,
        );
        operator.wake(&mut output);
        *at = At::Nobody;
        self.after(id);
        self.touch(id);
        self.finish(now, None);
    }

    fn finish(&mut self, now: &Now<'_>, given: Option<&Event>) {
        while let Some(todo) = self.run.todo.pop() {
            match todo {
                Todo::Leave(node, which) => self.leave(now, node, which, given),
                Todo::Enter(node, input, which) => {
                    if self.enter(now, node, input, which, given) {
                        self.leave(now, node, which, given);
                    }
                }
            }
        }
        self.run.events.clear();
        while let Some(subscriber) = self.run.gone.pop() {
            self.remove_subscriber(subscriber);
        }
    }

    /// Hands an event that leaves a node to whatever reads it, and goes along a
    /// chain of filters without a detour.
    #[inline]
    fn leave(&mut self, now: &Now<'_>, mut id: NodeId, which: Which, given: Option<&Event>) {
        let event = which.of(&self.run.events, given);
        loop {
            let node = &mut self.nodes[id];
            if let Some(chain) = &mut node.chain {
                self.run.at = At::Node(chain.first());
                match chain.test(event) {
                    Some(last) => id = last,
                    None => {
                        self.run.at = At::Nobody;
                        return;
                    }
                }
                continue;
            }
            let only = node.only;
            if only == SEVERAL {
                break;
            }
            let node = &mut self.nodes[only];
            if let Work::Filter(filter) = &mut node.work {
                self.run.at = At::Node(only);
                let fate = filter.test(event);
                if fate != Fate::Passed {
                    node.books.enter(fate);
                    self.run.at = At::Nobody;
                    return;
                }
            }
            node.books.received += 1;
            node.books.passed += 1;
            id = only;
        }
        self.run.at = At::Nobody;
        let node = &mut self.nodes[id];
        if node.retains {
            node.last = Some(event.clone());
            node.more.last_age = self.run.age;
        }
        // From the last to the first, as the stack turns them round.
        for reader in node.readers.iter().rev() {
            self.run
                .todo
                .push(Todo::Enter(reader.node, reader.input, which));
        }
        if !node.subscribers.is_empty() {
            self.deliver(now, id, which, given, 0);
        }
    }

    /// Hands an event to the subscribers of a node, from this one on.
    #[inline(always)]
    fn deliver(
        &mut self,
        now: &Now<'_>,
        id: NodeId,
        which: Which,
        given: Option<&Event>,
        from: usize,
    ) {
        // So that what is measured now and then costs nothing the rest of the time.
        match self.run.published {
            None => self.hand_out(id, which, given, from, |_, _| ()),
            Some(published) => self.hand_out(id, which, given, from, |subscriber, event| {
                subscriber.mark(now, published, event);
            }),
        }
    }

    #[inline(always)]
    fn hand_out(
        &mut self,
        id: NodeId,
        which: Which,
        given: Option<&Event>,
        from: usize,
        mark: impl Fn(&mut Subscriber, &Event),
    ) {
        let Run {
            events,
            gone,
            at,
            index,
            ..
        } = &mut self.run;
        let event = which.of(events, given);
        *at = At::Subscriber(id, which);
        *index = from;
        for subscriber in &mut self.nodes[id].subscribers[from..] {
            subscriber.offered += 1;
            mark(subscriber, event);
            if subscriber.receiver.event(event) == Delivered::Closed {
                subscriber.refused += 1;
                gone.push(subscriber.id);
            }
            *index += 1;
        }
        *at = At::Nobody;
    }

    /// Hands an event to a node; whether it goes on as it is.
    fn enter(
        &mut self,
        now: &Now<'_>,
        id: NodeId,
        input: u16,
        which: Which,
        given: Option<&Event>,
    ) -> bool {
        let Run {
            events,
            fresh,
            settled,
            at,
            age,
            ..
        } = &mut self.run;
        let event = which.of(events, given);
        let node = &mut self.nodes[id];
        let has_had = *age > 0 && node.has_had(*age);
        let fate = match &mut node.work {
            _ if has_had => Fate::Dropped(Reason::Duplicate),
            Work::Late(_) => {
                self.set_to_work(id);
                let passes = self.enter(now, id, input, which, given);
                self.nodes[id].set_late(true);
                return passes;
            }
            Work::Operator(operator) => {
                *at = At::Node(id);
                let mut output = Output::shared(
                    now,
                    &node.more.stream,
                    &self.made[usize::from(node.more.kind)],
                    fresh,
                    settled,
                );
                let fate = operator.event(usize::from(input), event, &mut output);
                *at = At::Nobody;
                fate
            }
            Work::Filter(filter) => {
                *at = At::Node(id);
                let fate = filter.test(event);
                *at = At::Nobody;
                fate
            }
            Work::Names(_) | Work::Source => Fate::Passed,
            Work::Broken(_) | Work::Gone => Fate::Dropped(Reason::Broken),
        };
        node.books.enter(fate);
        match fate {
            Fate::Passed if fresh.is_empty() => return true,
            Fate::Dropped(_) if fresh.is_empty() && settled.is_empty() => return false,
            _ => {}
        }
        self.after(id);
        fate == Fate::Passed
    }

    /// Takes note of what an operator has published, settled and asked for.
    fn after(&mut self, id: NodeId) {
        let Run {
            todo,
            events,
            fresh,
            settled,
            ..
        } = &mut self.run;
        let node = &mut self.nodes[id];
        let passed = settled.passed;
        node.books.settle(settled);
        node.books.published += fresh.len() as u64 - passed;
        let first = events.len() as u32;
        events.append(fresh);
        let published = first..events.len() as u32;
        todo.extend(published.rev().map(|index| Todo::Leave(id, Which(index))));
        let due = match &node.work {
            Work::Operator(operator) | Work::Late(operator) => operator.due(),
            _ => None,
        };
        self.set_due(id, due);
    }

    /// Goes on after somebody's code has panicked, without it.
    pub(super) fn recover(&mut self, now: &Now<'_>, given: Option<&Event>, said: &str) {
        self.run.fresh.clear();
        self.run.settled = Settled::default();
        let at = std::mem::take(&mut self.run.at);
        match at {
            At::Node(id) | At::Woken(id) => {
                self.loosen(id);
                let node = &mut self.nodes[id];
                let Books {
                    received,
                    passed,
                    used,
                    ref dropped,
                    ..
                } = node.books;
                // What it held is lost with it.
                let held = received - passed - used - dropped.total();
                node.books.dropped.add(Reason::Broken, held);
                if let At::Node(_) = at {
                    node.books.enter(Fate::Dropped(Reason::Broken));
                }
                node.work = Work::Broken(said.into());
                self.set_due(id, None);
                self.straighten(id);
            }
            At::Subscriber(id, which) => {
                let index = self.run.index;
                let subscriber = &mut self.nodes[id].subscribers[index];
                subscriber.refused += 1;
                self.run.gone.push(subscriber.id);
                self.deliver(now, id, which, given, index + 1);
            }
            At::Nobody => {}
        }
        self.finish(now, given);
        self.run.age = 0;
    }
}

impl Which {
    #[inline]
    fn of<'a>(self, events: &'a [Event], given: Option<&'a Event>) -> &'a Event {
        match self.0 {
            GIVEN => given.expect("who has an event to be told apart has been given one"),
            index => &events[index as usize],
        }
    }
}
