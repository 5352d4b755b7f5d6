//! The machine: the operator graph, and events that run through it.
//!
//! The graph is acyclic by construction: an operator's inputs exist before it,
//! and only names gain inputs later, where an edge that would close a cycle
//! is refused. Equal flows
//! are one node; it goes when nobody reads it any more.
//!
//! Source: Solar, section 3.1.

pub(crate) mod apart;
mod bound;
mod chain;
mod late;
mod naming;
mod node;
mod remote;
mod run;
mod share;
mod snapshot;
mod view;
mod written;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use milieu_transfer::{Event, Origin, Stream, Time};

use crate::names::{Refusal, ResolutionId, Rights, Tree, WatchId};
use crate::operator::Now;
use naming::{Reader, Watcher};
use node::{KindId, Node, NodeId, Nodes, SEVERAL, Work};
use run::Run;

pub(crate) use bound::Following;
pub use naming::{PublicationId, ReaderId};
pub(crate) use remote::Edges;
pub use share::Planned;
pub use snapshot::{CannotRestore, NotRestored, WhyNot};
pub use view::{EdgeView, End, EndView, NodeView, SubscriberView, View};

/// The operator graph of one machine: a state machine without clock, thread and
/// I/O. Everything that it does, it does when it is called.
pub struct Machine {
    origin: Origin,
    incarnation: u64,
    nodes: Nodes,
    /// Nodes by what they are.
    known: HashMap<late::Key, NodeId>,
    /// Those that began later than another one of an equal flow.
    late: late::Late,
    /// The streams of what operators publish.
    streams: HashMap<Box<str>, (Arc<Stream>, KindId)>,
    /// How many events each of them has had.
    made: Vec<Arc<AtomicU64>>,
    tree: Tree,
    /// The nodes of names, by what they follow in the tree.
    resolutions: HashMap<ResolutionId, NodeId>,
    readers: HashMap<ReaderId, Reader>,
    watchers: HashMap<WatchId, Watcher>,
    /// How many publishers there have been.
    publishers: u64,
    /// How many edges were refused, because they would have closed a cycle.
    cycles: u64,
    /// The nodes that subscribers read.
    subscribers: HashMap<u64, NodeId>,
    /// How many readers and subscribers there have been: none has the number of
    /// another, not even one after the other.
    numbers: u64,
    /// When nodes want to be woken: at one moment each after those that it reads.
    timers: BTreeSet<(Time, u32, NodeId)>,
    /// Which of them are measured.
    measured: Range<Time>,
    /// What goes on between this machine and others.
    links: Vec<Weak<dyn Edges>>,
    run: Run,
    /// Who works with operators that may take long.
    hands: apart::Lent,
    /// What waits for operators since a snapshot was taken.
    saved: snapshot::Saved,
}

/// A source of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceId(NodeId);

/// A subscription of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriptionId(u64);

impl Machine {
    /// A machine whose operators publish as this origin.
    #[must_use]
    pub fn new(origin: Origin, incarnation: u64) -> Machine {
        let global = (ReaderId::GLOBAL, Reader::new(Rights::all()));
        Machine {
            origin,
            incarnation,
            nodes: Nodes::default(),
            known: HashMap::new(),
            late: late::Late::default(),
            streams: HashMap::new(),
            made: Vec::new(),
            tree: Tree::default(),
            resolutions: HashMap::new(),
            readers: HashMap::from([global]),
            watchers: HashMap::new(),
            publishers: 0,
            cycles: 0,
            subscribers: HashMap::new(),
            numbers: 0,
            timers: BTreeSet::new(),
            measured: Time::MIN..Time::MIN,
            links: Vec::new(),
            run: Run::default(),
            hands: apart::Lent::default(),
            saved: snapshot::Saved::default(),
        }
    }

    /// Adds a source under the name of its stream. Where `retains`, late
    /// subscribers get its last event.
    ///
    /// # Errors
    /// If something stands at that name.
    pub fn add_source(
        &mut self,
        now: &Now<'_>,
        stream: Arc<Stream>,
        retains: bool,
    ) -> Result<SourceId, Refusal> {
        let mut node = Node::new(Work::Source, stream, None);
        node.retains = retains;
        self.insert_source(now, node)
    }

    fn insert_source(&mut self, now: &Now<'_>, node: Node) -> Result<SourceId, Refusal> {
        let name = node.more.stream.name.clone();
        let id = self.nodes.insert(node);
        if let Err(refusal) = self.enter_name(now, name.as_str(), id) {
            self.leave_name(now, id);
            self.nodes.remove(id);
            return Err(refusal);
        }
        Ok(SourceId(id))
    }

    /// Removes a source. Subscriptions to its name stay, and wait for another.
    pub fn remove_source(&mut self, now: &Now<'_>, source: SourceId) {
        if self.nodes.get(source.0).is_some() {
            self.leave_name(now, source.0);
            self.nodes.remove(source.0);
        }
    }

    /// Runs an event of a source through the graph.
    pub fn publish(&mut self, now: &Now<'_>, source: SourceId, event: &Event) {
        if self.nodes.get(source.0).is_none() {
            return;
        }
        let books = &mut self.nodes[source.0].books;
        books.received += 1;
        books.passed += 1;
        self.guarded(now, Some(event), |machine| {
            machine.run(now, source.0, event)
        });
    }

    /// As [`publish`](Machine::publish), of what was published at this time: it
    /// is measured how long it takes to subscribers.
    pub fn publish_measured(
        &mut self,
        now: &Now<'_>,
        source: SourceId,
        event: &Event,
        published: Time,
    ) {
        self.run.published = Some(published);
        self.publish(now, source, event);
        self.run.published = None;
    }

    /// Measures in this span of time how long it takes to subscribers what
    /// operators make when they are woken.
    pub fn measure(&mut self, span: Range<Time>) {
        self.measured = span;
    }

    /// Whether a subscriber of this source can take no event now, and wants the
    /// publisher to be told.
    #[must_use]
    pub fn refuses(&self, source: SourceId) -> bool {
        let mut seen = HashSet::new();
        let mut todo = vec![source.0];
        while let Some(id) = todo.pop() {
            let Some(node) = self.nodes.get(id).filter(|_| seen.insert(id)) else {
                continue;
            };
            if node
                .subscribers
                .iter()
                .any(|subscriber| subscriber.receiver.refuses())
            {
                return true;
            }
            todo.extend(node.readers.iter().map(|reader| reader.node));
        }
        false
    }

    /// When the machine wants to be woken next.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let operator = self.timers.first().map(|(time, _, _)| *time);
        [operator, self.tree.due()].into_iter().flatten().min()
    }

    /// Lets operators do what they wanted to do by now, and ends leases.
    pub fn wake(&mut self, now: &Now<'_>) {
        if self.tree.due().is_some_and(|due| due <= now.get()) {
            self.settle(now);
        }
        // Whoever wants to be woken at once, again and again, waits for the next time.
        let mut again = Vec::new();
        let mut due_now = Vec::new();
        while let Some(&(time, rank, _)) = self.timers.first() {
            if time > now.get() {
                break;
            }
            self.find_due_at(time, rank, &mut due_now);
            for id in due_now.drain(..) {
                if self
                    .nodes
                    .get(id)
                    .is_none_or(|node| node.more.due != Some(time))
                {
                    continue;
                }
                self.set_due(id, None);
                self.run.published = self.measured.contains(&time).then_some(time);
                self.guarded(now, None, |machine| machine.run_wake(now, id));
                self.run.published = None;
                let due = self.nodes.get(id).and_then(|node| node.more.due);
                if due.is_some_and(|due| due <= time) {
                    self.set_due(id, None);
                    again.push((id, due));
                }
            }
        }
        for (id, due) in again {
            if self
                .nodes
                .get(id)
                .is_some_and(|node| node.more.due.is_none())
            {
                self.set_due(id, due);
            }
        }
        self.unite_touched(now);
    }

    /// The nodes of a rank that are to be woken at a time. Their order is that of
    /// their flows, which tells nobody which of them was there first.
    fn find_due_at(&self, time: Time, rank: u32, into: &mut Vec<NodeId>) {
        let due = (time, rank, 0)..=(time, rank, NodeId::MAX);
        into.extend(self.timers.range(due).map(|(_, _, id)| *id));
        into.sort_by(|a, b| self.nodes[*a].order(&self.nodes[*b]));
    }

    /// Runs somebody's code; whoever panics is taken out, and the others go on.
    fn guarded(&mut self, now: &Now<'_>, given: Option<&Event>, run: impl FnOnce(&mut Machine)) {
        let mut ran = catch_unwind(AssertUnwindSafe(|| run(self)));
        while let Err(panic) = ran {
            let recover = AssertUnwindSafe(|| self.recover(now, given, said(&*panic)));
            ran = catch_unwind(recover);
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Sees whether a node's events go one way, and whether those do that lead to it.
    fn straighten(&mut self, id: NodeId) {
        let inputs = self.nodes[id].more.inputs.clone();
        let around = || inputs.iter().copied().chain([id]);
        for id in around() {
            self.loosen(id);
            self.tell_demand(id);
            let node = &self.nodes[id];
            let only = match &*node.readers {
                [only] if node.subscribers.is_empty() && !node.retains => only.node,
                _ => SEVERAL,
            };
            let leads_on = |id: NodeId| {
                let next = self.nodes.get(id);
                next.is_some_and(|next| matches!(next.work, Work::Filter(_) | Work::Names(_)))
            };
            let only = if leads_on(only) { only } else { SEVERAL };
            self.nodes[id].only = only;
        }
        for id in around() {
            self.tighten(id);
        }
    }

    /// Gives a node a greater rank, and those that read it.
    fn raise(&mut self, id: NodeId, rank: u32) {
        let mut todo = vec![(id, rank)];
        while let Some((id, rank)) = todo.pop() {
            let node = &mut self.nodes[id];
            if node.more.rank >= rank {
                continue;
            }
            let before = std::mem::replace(&mut node.more.rank, rank);
            if let Some(due) = node.more.due {
                self.timers.remove(&(due, before, id));
                self.timers.insert((due, rank, id));
            }
            todo.extend(node.readers.iter().map(|reader| (reader.node, rank + 1)));
        }
    }

    fn set_due(&mut self, id: NodeId, due: Option<Time>) {
        let node = &mut self.nodes[id];
        if node.more.due == due {
            return;
        }
        let rank = node.more.rank;
        if let Some(before) = node.more.due {
            self.timers.remove(&(before, rank, id));
        }
        node.more.due = due;
        if let Some(due) = due {
            self.timers.insert((due, rank, id));
        }
    }
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked without a text")
}
