//! Nodes of the operator graph, and where their events go.

use std::cmp::Ordering;
use std::ops::{Index, IndexMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use milieu_transfer::{Event, Stream, Time};

use super::chain::Chain;
use super::naming::ReaderId;
use super::remote::Demand;
use super::said;
use crate::books::Books;
use crate::flow::Flow;
use crate::latency::Delays;
use crate::names::ResolutionId;
use crate::operator::{Now, Operator};
use crate::receiver::Receiver;

/// Which node; valid while the node is in the graph.
pub(super) type NodeId = u32;

/// Which of the streams of a machine's operators, in the order in which they came.
pub(super) type KindId = u16;

/// A source, a name, or an operator: what is touched by every event.
pub(super) struct Node {
    pub work: Work,
    /// Its only reader, where that is a filter or a name and nobody else is to
    /// have its events; otherwise [`SEVERAL`].
    pub only: NodeId,
    pub retains: bool,
    /// The filters that come next, where they are tested together.
    pub chain: Option<Box<Chain>>,
    pub books: Books,
    /// The inputs of nodes that read it.
    pub readers: Vec<Reader>,
    pub subscribers: Vec<Subscriber>,
    /// The last event that left it, where late subscribers are to have it.
    pub last: Option<Event>,
    pub more: Box<More>,
}

/// What only some events touch.
pub(super) struct More {
    /// What the events that it makes itself belong to.
    pub stream: Arc<Stream>,
    /// Which numbers they have.
    pub kind: KindId,
    /// The nodes that it reads, by input.
    pub inputs: Vec<NodeId>,
    /// The flow by which equal ones find it; a source has none.
    pub flow: Option<Flow>,
    /// Who reads the names in the flow.
    pub reader: ReaderId,
    /// Whether it publishes under the name of its stream.
    pub is_named: bool,
    /// So many restarts ago its last event came, or that of which it was made.
    /// None: in this life.
    pub last_age: u8,
    /// So many restarts ago it was as it began here: of what came then it has had
    /// everything. None: it began anew.
    pub age: u8,
    /// Who is told whether it is read, where its events come from another machine.
    pub demand: Option<Box<Demand>>,
    /// The node that has the chain that it is in.
    pub chained_by: Option<NodeId>,
    /// Greater than that of each of its inputs: at one moment those are woken first.
    pub rank: u32,
    /// When it wants to be woken, as the timers have it.
    pub due: Option<Time>,
    /// How many events it had received when it began, those that it held already;
    /// [`WOKEN`], if it was woken since.
    pub began_with: u32,
    /// How deep in each other the operators of its flow lie.
    pub depth: u16,
}

/// That it is not said any more what a node began with.
pub(super) const WOKEN: u32 = u32::MAX;

/// What a node does with events.
pub(super) enum Work {
    /// Events come from outside.
    Source,
    /// Events of all publishers that a name stands for go on as they are, or
    /// those of the flow that is published under a name.
    Names(Option<ResolutionId>),
    /// An operator decides which events go on.
    Filter(Box<dyn Operator>),
    /// An operator makes something of events.
    Operator(Box<dyn Operator>),
    /// One that began later than another one of an equal flow. As soon as an event
    /// comes to it, it is an [`Operator`](Work::Operator) until that is done.
    Late(Box<dyn Operator>),
    /// The operator has panicked: this is what it said.
    Broken(Arc<str>),
    /// There is no such node.
    Gone,
}

/// The nodes, by their numbers. A number is free again when its node has gone.
#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
}

impl Nodes {
    pub fn insert(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.free.pop() {
            self[id] = node;
            return id;
        }
        self.nodes.push(node);
        self.nodes.len() as NodeId - 1
    }

    pub fn remove(&mut self, id: NodeId) -> Option<Node> {
        let node = self.nodes.get_mut(id as usize)?;
        if matches!(node.work, Work::Gone) {
            return None;
        }
        let gone = Node::new(Work::Gone, Arc::clone(&node.more.stream), None);
        self.free.push(id);
        Some(std::mem::replace(node, gone))
    }

    pub fn get(&self, id: NodeId) -> Option<&Node> {
        let node = self.nodes.get(id as usize)?;
        (!matches!(node.work, Work::Gone)).then_some(node)
    }

    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let nodes = self.nodes.iter().enumerate();
        let nodes = nodes.map(|(id, node)| (id as NodeId, node));
        nodes.filter(|(_, node)| !matches!(node.work, Work::Gone))
    }
}

impl Index<NodeId> for Nodes {
    type Output = Node;

    #[inline]
    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

impl IndexMut<NodeId> for Nodes {
    #[inline]
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }
}

/// That a node's events go several ways, or none, or to an operator.
pub(super) const SEVERAL: NodeId = NodeId::MAX;

/// An event that was the last one, where late subscribers are to have it.
#[derive(Clone)]
pub(super) struct Last {
    pub event: Event,
    /// So many restarts ago it came, or that of which it was made.
    pub age: u8,
}

/// An edge to another node. Nothing stays on the way inside a machine.
pub(super) struct Reader {
    pub node: NodeId,
    pub input: u16,
    /// How many events the node had sent when this one was added, less those
    /// that were sent to it alone: what it has sent since went this way.
    pub since: u64,
}

/// An edge to a subscriber.
pub(super) struct Subscriber {
    /// Its number in the machine.
    pub id: u64,
    pub application: Arc<str>,
    pub receiver: Box<dyn Receiver>,
    /// Events that it was given, and of these those that it did not take
    /// because it was gone.
    pub offered: u64,
    pub refused: u64,
    /// How long events took that were measured and have not waited in the receiver.
    pub delays: Option<Box<Delays>>,
}

impl Subscriber {
    /// Measures the event that the receiver gets next.
    #[cold]
    pub fn mark(&mut self, now: &Now<'_>, published: Time, event: &Event) {
        if !self.receiver.mark(published) {
            let delays = self.delays.get_or_insert_default();
            delays.enter(event, published, now.again());
        }
    }
}

impl Node {
    pub fn new(work: Work, stream: Arc<Stream>, flow: Option<Flow>) -> Node {
        Node {
            work,
            only: SEVERAL,
            retains: false,
            chain: None,
            books: Books::default(),
            readers: Vec::new(),
            subscribers: Vec::new(),
            last: None,
            more: Box::new(More {
                stream,
                kind: 0,
                inputs: Vec::new(),
                flow,
                reader: ReaderId::GLOBAL,
                is_named: false,
                last_age: 0,
                age: 0,
                demand: None,
                chained_by: None,
                rank: 0,
                due: None,
                began_with: 0,
                depth: 0,
            }),
        }
    }

    // Most nodes have one reader or one subscriber, and never more.

    pub fn add(&mut self, at: usize, reader: Reader) {
        let few = usize::from(self.readers.is_empty());
        self.readers.reserve_exact(few);
        self.readers.insert(at, reader);
    }

    pub fn add_subscriber(&mut self, subscriber: Subscriber) {
        let few = usize::from(self.subscribers.is_empty());
        self.subscribers.reserve_exact(few);
        self.subscribers.push(subscriber);
    }

    pub fn remove(&mut self, node: NodeId, input: u16) {
        let mut readers = self.readers.iter();
        let at = readers.position(|reader| (reader.node, reader.input) == (node, input));
        if let Some(at) = at {
            self.readers.remove(at);
        }
    }

    pub fn is_unread(&self) -> bool {
        self.readers.is_empty() && self.subscribers.is_empty()
    }

    /// How many events an operator holds now.
    pub fn held(&self) -> u64 {
        match &self.work {
            Work::Operator(operator) | Work::Late(operator) => {
                asked(|| operator.held() as u64).unwrap_or_default()
            }
            _ => 0,
        }
    }

    /// Its operator, unless that is broken.
    pub fn operator(&self) -> Option<&dyn Operator> {
        match &self.work {
            Work::Filter(operator) | Work::Operator(operator) | Work::Late(operator) => {
                Some(&**operator)
            }
            _ => None,
        }
    }

    /// Its last event, where late subscribers are to have it.
    pub fn last_ones(&self) -> Vec<Last> {
        let last = self.last.iter().map(|event| Last {
            event: event.clone(),
            age: self.more.last_age,
        });
        last.collect()
    }

    /// Which one comes first among readers of the same events, and among those who
    /// are woken at the same time: what others are made of, and else as their flows
    /// or names stand in order.
    pub fn order(&self, other: &Node) -> Ordering {
        let what = |more: &'_ More| (more.depth, more.flow.is_some());
        let (ours, theirs) = (&self.more, &other.more);
        what(ours)
            .cmp(&what(theirs))
            .then_with(|| ours.flow.cmp(&theirs.flow))
            .then_with(|| ours.stream.name.cmp(&theirs.stream.name))
    }

    /// Whether it has had what came so many restarts ago.
    pub fn has_had(&self, age: u8) -> bool {
        (1..=age).contains(&self.more.age)
    }

    /// When an operator that was just made wants to be woken.
    pub fn first_due(&mut self) -> Option<Time> {
        let due = match &self.work {
            Work::Operator(operator) | Work::Late(operator) => asked(|| operator.due()),
            _ => Ok(None),
        };
        due.unwrap_or_else(|said| {
            self.do_without(&said);
            None
        })
    }

    /// Goes on without the operator, which has panicked.
    pub fn do_without(&mut self, said: &str) {
        let operator = std::mem::replace(&mut self.work, Work::Broken(said.into()));
        // It may panic a second time.
        let _ = asked(|| drop(operator));
    }
}

/// What an operator answers where no event runs, or what it said when it
/// panicked: the machine is not to be harmed by that.
pub(super) fn asked<A>(ask: impl FnOnce() -> A) -> Result<A, String> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| said(&*panic).to_owned())
}
