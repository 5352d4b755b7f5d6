//! Subscribing: equal flows become one node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_transfer::Stream;

use super::apart::Apart;
use super::late::Key;
use super::node::{KindId, Last, Node, NodeId, Reader, Subscriber, Work};
use super::{Machine, ReaderId, SubscriptionId};
use crate::catalogue::Catalogue;
use crate::flow::Flow;
use crate::names::{Query, Refusal};
use crate::operator::{Now, Operator};
use crate::receiver::Receiver;

/// A flow whose operators have been made and only have to be put in place: what
/// can be wrong with a flow is found before the machine sees it.
pub struct Planned {
    /// Inputs before those that use them; the flow itself is the last.
    parts: Vec<Part>,
}

/// Where a flow's events come from, for somebody who comes now.
pub(super) struct Put {
    pub node: NodeId,
    /// What it is given at once.
    pub last: Vec<Last>,
}

struct Part {
    flow: Flow,
    does: Does,
    /// Whether it depends on the layers of whoever reads.
    is_contextual: bool,
}

enum Does {
    Follow(Query),
    Operate {
        operator: Box<dyn Operator>,
        /// Whether it may take long.
        blocks: bool,
    },
}

impl Planned {
    /// The events of a name.
    pub(crate) fn of_query(query: Query) -> Planned {
        let part = Part {
            flow: Flow::Stream(query.as_str().into()),
            is_contextual: query.is_contextual(),
            does: Does::Follow(query),
        };
        Planned { parts: vec![part] }
    }

    /// Makes the operators of a flow.
    ///
    /// # Errors
    /// If an operator is unknown or refuses its parameters.
    pub fn new(flow: &Flow, catalogue: &Catalogue) -> Result<Planned, Diagnostic> {
        let mut parts = Vec::new();
        let (mut seen, mut contextual) = (HashSet::new(), HashSet::new());
        let mut wrong = None;
        flow.visit(&mut |flow| {
            if wrong.is_none() && seen.insert(flow) {
                match make(flow, catalogue) {
                    Ok(does) => {
                        let is_contextual = match (&does, flow) {
                            (Does::Follow(query), _) => query.is_contextual(),
                            (_, Flow::Operation(operation)) => operation
                                .inputs
                                .iter()
                                .any(|input| contextual.contains(input)),
                            _ => false,
                        };
                        if is_contextual {
                            contextual.insert(flow);
                        }
                        parts.push(Part {
                            flow: flow.clone(),
                            does,
                            is_contextual,
                        });
                    }
                    Err(diagnostic) => wrong = Some(diagnostic),
                }
            }
        });
        match wrong {
            None => Ok(Planned { parts }),
            Some(diagnostic) => Err(diagnostic),
        }
    }
}

fn make(flow: &Flow, catalogue: &Catalogue) -> Result<Does, Diagnostic> {
    match flow {
        Flow::Stream(name) => {
            let query = Query::parse(name);
            query
                .map(Does::Follow)
                .map_err(|refusal| diagnostic(&refusal))
        }
        Flow::Operation(operation) => {
            let operator = catalogue.make(operation)?;
            let blocks = catalogue.blocks(operation, &*operator);
            Ok(Does::Operate { operator, blocks })
        }
    }
}

fn diagnostic(refusal: &Refusal) -> Diagnostic {
    Diagnostic::error(refusal.message.clone()).help(refusal.help.clone())
}

impl Machine {
    /// Subscribes a receiver of an application to a flow. Nodes that are there
    /// already are shared, as far as that cannot be observed. It gets the last
    /// events of sources that retain them.
    pub fn subscribe(
        &mut self,
        now: &Now<'_>,
        planned: Planned,
        reader: ReaderId,
        application: Arc<str>,
        receiver: Box<dyn Receiver>,
    ) -> SubscriptionId {
        let Put { node, last } = self.put_all(now, planned, reader);
        let id = self.number();
        self.subscribers.insert(id, node);
        self.loosen(node);
        self.nodes[node].add_subscriber(Subscriber {
            id,
            application,
            receiver,
            offered: 0,
            refused: 0,
            delays: None,
        });
        self.straighten(node);
        for Last { event, .. } in last {
            if self.subscribers.contains_key(&id) {
                self.guarded(now, Some(&event), |machine| {
                    machine.run_to_last(now, node, &event)
                });
            }
        }
        self.unite_touched(now);
        SubscriptionId(id)
    }

    /// Ends a subscription; what it was subscribed to goes if nobody else reads it.
    pub fn unsubscribe(&mut self, subscription: SubscriptionId) -> Option<Box<dyn Receiver>> {
        self.remove_subscriber(subscription.0)
    }

    /// Ends all subscriptions of an application.
    pub fn remove_application(&mut self, application: &str) {
        let subscribers = self.nodes.iter().flat_map(|(_, node)| &node.subscribers);
        let of_it = subscribers.filter(|subscriber| *subscriber.application == *application);
        let ids: Vec<u64> = of_it.map(|subscriber| subscriber.id).collect();
        for id in ids {
            if let Some(mut receiver) = self.remove_subscriber(id) {
                receiver.end();
            }
        }
    }

    pub(super) fn remove_subscriber(&mut self, id: u64) -> Option<Box<dyn Receiver>> {
        let node = self.subscribers.remove(&id)?;
        let subscribers = &mut self.nodes[node].subscribers;
        let at = subscribers
            .iter()
            .position(|subscriber| subscriber.id == id)?;
        let subscriber = subscribers.remove(at);
        self.straighten(node);
        self.release(node);
        Some(subscriber.receiver)
    }

    /// The node of a flow, and what whoever reads it is to have at once.
    pub(super) fn put_all(&mut self, now: &Now<'_>, planned: Planned, reader: ReaderId) -> Put {
        let mut put: HashMap<Flow, Put> = HashMap::new();
        let mut last = None;
        for Part {
            flow,
            does,
            is_contextual,
        } in planned.parts
        {
            let key = (flow, self.reader_of(reader, is_contextual));
            let part = match does {
                Does::Follow(query) => self.put_names(now, &key, query),
                Does::Operate { operator, blocks } => {
                    self.put_operator(now, &key, operator, blocks, &put)
                }
            };
            last = Some(key.0.clone());
            put.insert(key.0, part);
        }
        let last = last.and_then(|flow| put.remove(&flow));
        last.expect("a flow has a part")
    }

    /// The reader to whom a flow's events are the same as to others.
    fn reader_of(&self, reader: ReaderId, is_contextual: bool) -> ReaderId {
        let rights = self.readers.get(&reader).map(|reader| &reader.rights);
        let sees_all = rights.is_some_and(|rights| rights.read.is_all());
        if sees_all && !is_contextual {
            ReaderId::GLOBAL
        } else {
            reader
        }
    }

    /// The node of a name. It remembers nothing, so that there is never another.
    fn put_names(&mut self, now: &Now<'_>, key: &Key, query: Query) -> Put {
        let node = self.first_of(key).unwrap_or_else(|| {
            let (stream, _) = self.stream_of("");
            let mut node = Node::new(Work::Names(None), stream, Some(key.0.clone()));
            node.more.reader = key.1;
            let id = self.nodes.insert(node);
            self.enter_node(key.clone(), id);
            self.straighten(id);
            self.follow(id, query, key.1);
            self.settle(now);
            id
        });
        let last = self.last_of(node);
        Put { node, last }
    }

    /// The node of an operator: one that is there, if it is as a new one would
    /// be, and else a new one.
    fn put_operator(
        &mut self,
        now: &Now<'_>,
        key: &Key,
        operator: Box<dyn Operator>,
        blocks: bool,
        put: &HashMap<Flow, Put>,
    ) -> Put {
        let Flow::Operation(operation) = &key.0 else {
            unreachable!("a name has no operator");
        };
        let from = operation.inputs.iter().map(|input| &put[input]);
        let inputs: Vec<NodeId> = from.clone().map(|input| input.node).collect();
        let is_fed = from.clone().any(|input| !input.last.is_empty());
        if !is_fed {
            let mut all = self.all_of(key, &inputs);
            if let Some(node) = all.find(|id| self.nodes[*id].is_untouched()) {
                let last = self.last_of(node);
                return Put { node, last };
            }
        }
        let (stream, kind) = self.stream_of(&operation.operator);
        let mut desk = None;
        let work = if blocks {
            let (stream, hands) = (Arc::clone(&stream), self.hands.clone());
            let numbers = Arc::clone(&self.made[usize::from(kind)]);
            let apart = Apart::new(operator, stream, numbers, inputs.len(), hands);
            desk = Some(apart.desk());
            Work::Operator(Box::new(apart))
        } else if operator.is_filter() {
            Work::Filter(operator)
        } else {
            Work::Operator(operator)
        };
        let mut node = Node::new(work, stream, Some(key.0.clone()));
        let retains = node.operator().is_some_and(|operator| operator.retains());
        node.retains = retains || inputs.iter().any(|input| self.nodes[*input].retains);
        let depth = inputs.iter().map(|input| self.nodes[*input].more.depth);
        node.more.depth = depth.max().unwrap_or_default() + 1;
        node.more.inputs.clone_from(&inputs);
        node.more.reader = key.1;
        node.more.kind = kind;
        self.restore_node(now, &mut node);
        if !is_fed {
            let mut all = self.all_of(key, &inputs);
            if let Some(known) = all.find(|id| self.nodes[*id].is_like(&node, now)) {
                let last = node.last_ones();
                return Put { node: known, last };
            }
        }
        let due = node.first_due();
        let id = self.nodes.insert(node);
        self.set_due(id, due);
        if let Some(desk) = desk {
            desk.is_for(id);
        }
        self.enter_node(key.clone(), id);
        for (index, input) in inputs.iter().enumerate() {
            self.loosen(*input);
            let since = self.nodes[*input].books.sent();
            self.add_edge(*input, id, index as u16, since);
        }
        self.straighten(id);
        for (index, input) in from.enumerate() {
            for last in &input.last {
                let to = (id, index as u16);
                self.guarded(now, Some(&last.event), |machine| {
                    machine.run_to(now, input.node, to, last)
                });
            }
        }
        let last = self.nodes[id].last_ones();
        Put { node: id, last }
    }

    /// Lets a node read another, of which so many events are not for it. Where
    /// the edge stands among others, their flows decide: nobody sees by the order
    /// in which events come who was there first.
    pub(super) fn add_edge(&mut self, from: NodeId, to: NodeId, input: u16, since: u64) {
        let node = to;
        let place = |reader: &Reader| {
            let order = self.nodes[reader.node].order(&self.nodes[node]);
            order.then(reader.input.cmp(&input)).is_le()
        };
        let at = self.nodes[from].readers.partition_point(place);
        self.nodes[from].add(at, Reader { node, input, since });
        self.raise(to, self.nodes[from].more.rank + 1);
    }

    /// The stream of what an operator publishes: one for each kind of operator,
    /// with numbers that all of its kind share, so that each event has its own.
    /// A flow that is published under a name has a stream of its own.
    fn stream_of(&mut self, operator: &str) -> (Arc<Stream>, KindId) {
        if let Some(known) = self.streams.get(operator) {
            return known.clone();
        }
        let name = Name::parse(&format!("/{operator}"));
        let stream = Arc::new(Stream {
            name: name.unwrap_or_else(|_| Name::root()),
            origin: self.origin.clone(),
            incarnation: self.incarnation,
        });
        let kind = KindId::try_from(self.made.len()).expect("a catalogue has no more operators");
        self.made.push(Arc::default());
        self.streams
            .insert(operator.into(), (Arc::clone(&stream), kind));
        (stream, kind)
    }

    /// The last events of a node, where it retains them.
    pub(super) fn last_of(&self, node: NodeId) -> Vec<Last> {
        let node = &self.nodes[node];
        let Work::Names(_) = node.work else {
            return node.last_ones();
        };
        let inputs = node.more.inputs.iter().map(|input| &self.nodes[*input]);
        let mut inputs: Vec<&Node> = inputs.filter(|input| input.last.is_some()).collect();
        // In the order of their names, and not in that in which they came.
        inputs.sort_by(|a, b| a.more.stream.name.cmp(&b.more.stream.name));
        inputs.into_iter().flat_map(Node::last_ones).collect()
    }

    /// Takes out a node that nobody reads, and its inputs if nobody reads them.
    pub(super) fn release(&mut self, id: NodeId) {
        let mut unread = vec![id];
        while let Some(id) = unread.pop() {
            if self.nodes.get(id).is_none() || self.stays(id) {
                continue;
            }
            self.set_due(id, None);
            self.loosen(id);
            let Some(node) = self.nodes.remove(id) else {
                continue;
            };
            self.unfollow(id, &node.work, node.more.reader);
            if let Some(flow) = &node.more.flow {
                let key = (flow.clone(), node.more.reader);
                // What it knows is for the next life, unless others go on with the flow.
                if self.forget_node(&key, id) {
                    self.keep_node(&node);
                }
            }
            for (index, input) in node.more.inputs.iter().enumerate() {
                let index = if matches!(node.work, Work::Names(_)) {
                    0
                } else {
                    index as u16
                };
                self.loosen(*input);
                self.nodes[*input].remove(id, index);
                self.straighten(*input);
                unread.push(*input);
            }
        }
    }
}
