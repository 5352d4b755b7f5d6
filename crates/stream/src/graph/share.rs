//! Subscribing: equal flows become one node.

use std::collections::HashSet;
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_transfer::{Event, Stream};

use super::apart::Apart;
use super::node::{Node, NodeId, Subscriber, Work};
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
    /// already are shared. It gets the last events of sources that retain them.
    pub fn subscribe(
        &mut self,
        now: &Now<'_>,
        planned: Planned,
        reader: ReaderId,
        application: Arc<str>,
        receiver: Box<dyn Receiver>,
    ) -> SubscriptionId {
        let node = self.put_all(now, planned, reader);
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
        for event in self.last_of(node) {
            if self.subscribers.contains_key(&id) {
                self.guarded(now, Some(&event), |machine| {
                    machine.run_to_last(now, node, &event)
                });
            }
        }
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

    /// The node of a flow.
    pub(super) fn put_all(&mut self, now: &Now<'_>, planned: Planned, reader: ReaderId) -> NodeId {
        let mut node = None;
        for part in planned.parts {
            node = Some(self.put_part(now, part, reader));
        }
        node.expect("a flow has a part")
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

    /// The node of a part: the one that is there, or a new one.
    fn put_part(&mut self, now: &Now<'_>, part: Part, reader: ReaderId) -> NodeId {
        let reader = self.reader_of(reader, part.is_contextual);
        let key = (part.flow, reader);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut inputs = Vec::new();
        let mut operator = "";
        if let Flow::Operation(operation) = &key.0 {
            let input = |flow: &Flow| self.node_of(flow, reader);
            inputs.extend(operation.inputs.iter().map(input));
            operator = &operation.operator;
        }
        let stream = self.stream_of(operator);
        let (mut query, mut desk) = (None, None);
        let work = match part.does {
            Does::Follow(followed) => {
                query = Some(followed);
                Work::Names(None)
            }
            Does::Operate {
                operator,
                blocks: true,
            } => {
                let (stream, hands) = (Arc::clone(&stream), self.hands.clone());
                let apart = Apart::new(operator, stream, inputs.len(), hands);
                desk = Some(apart.desk());
                Work::Operator(Box::new(apart))
            }
            Does::Operate { operator, .. } if operator.is_filter() => Work::Filter(operator),
            Does::Operate { operator, .. } => Work::Operator(operator),
        };
        let retains = match &work {
            Work::Filter(operator) | Work::Operator(operator) => operator.retains(),
            _ => false,
        };
        let mut node = Node::new(work, stream, Some(key.0.clone()));
        node.retains = retains || inputs.iter().any(|input| self.nodes[*input].retains);
        node.more.inputs.clone_from(&inputs);
        node.more.reader = reader;
        self.restore_node(&mut node);
        let due = node.first_due();
        let id = self.nodes.insert(node);
        self.set_due(id, due);
        if let Some(desk) = desk {
            desk.is_for(id);
        }
        self.known.insert(key, id);
        let mut retained = Vec::new();
        for (index, input) in inputs.into_iter().enumerate() {
            let index = index as u16;
            self.loosen(input);
            self.nodes[input].add(id, index);
            self.raise(id, self.nodes[input].more.rank + 1);
            let last = self.last_of(input).into_iter();
            retained.extend(last.map(|event| (input, index, event)));
        }
        self.straighten(id);
        for (input, index, event) in retained {
            let to = (id, index);
            self.guarded(now, Some(&event), |machine| {
                machine.run_to(now, input, to, &event)
            });
        }
        if let Some(query) = query {
            self.follow(id, query, reader);
            self.settle(now);
        }
        id
    }

    /// The stream of what an operator publishes: one for each kind of operator.
    /// A flow that is published under a name has one of its own.
    fn stream_of(&mut self, operator: &str) -> Arc<Stream> {
        if let Some(known) = self.streams.get(operator) {
            return Arc::clone(known);
        }
        let name = Name::parse(&format!("/{operator}"));
        let stream = Arc::new(Stream {
            name: name.unwrap_or_else(|_| Name::root()),
            origin: self.origin.clone(),
            incarnation: self.incarnation,
        });
        self.streams.insert(operator.into(), Arc::clone(&stream));
        stream
    }

    /// The node of a flow that has one, for a reader.
    fn node_of(&self, flow: &Flow, reader: ReaderId) -> NodeId {
        let of = |reader| self.known.get(&(flow.clone(), reader));
        let node = of(reader).or_else(|| of(ReaderId::GLOBAL));
        *node.expect("inputs come before those that use them")
    }

    /// The last events of a node, where it retains them.
    pub(super) fn last_of(&self, node: NodeId) -> Vec<Event> {
        let node = &self.nodes[node];
        match &node.work {
            Work::Names(_) => {
                let last = |input: &NodeId| self.nodes[*input].last.clone();
                node.more.inputs.iter().filter_map(last).collect()
            }
            _ => node.last.clone().into_iter().collect(),
        }
    }

    /// So many restarts ago one of a node's last events came.
    pub(super) fn age_of(&self, node: NodeId, event: &Event) -> u8 {
        let node = &self.nodes[node];
        let of = |node: &Node| {
            let mut last = node.last.iter();
            last.find(|last| last.is(event)).map(|_| node.more.last_age)
        };
        let age = match &node.work {
            Work::Names(_) => {
                let inputs = node.more.inputs.iter();
                inputs.filter_map(|input| of(&self.nodes[*input])).next()
            }
            _ => of(node),
        };
        age.unwrap_or_default()
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
            self.keep_node(&node);
            self.unfollow(id, &node.work, node.more.reader);
            if let Some(flow) = node.more.flow {
                self.known.remove(&(flow, node.more.reader));
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
