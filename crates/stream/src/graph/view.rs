//! What the graph looks like from outside.

use std::sync::Arc;

use super::Machine;
use super::node::Work;
use crate::books::{Books, Dropped};
use crate::flow::Flow;
use crate::language;
use crate::latency::Delays;
use crate::receiver::Tally;

/// A picture of the graph and its books, taken between two events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Sources, names and operators.
    pub nodes: Vec<NodeView>,
    /// Where their events go.
    pub edges: Vec<EdgeView>,
    /// Who takes them.
    pub subscribers: Vec<SubscriberView>,
    /// Where events leave for other machines, and come from them.
    pub ends: Vec<EndView>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// Its number, until it goes.
    pub id: u32,
    /// `source`, `names`, or the operator's name.
    pub kind: Arc<str>,
    /// The flow that it runs; nothing for a source.
    pub flow: Option<Flow>,
    /// The node that does the same for those who came before: this one began
    /// later, and lasts until nothing can tell them apart.
    pub copy_of: Option<u32>,
    /// The name of the stream that it publishes.
    pub name: String,
    /// Its books.
    pub books: Books,
    /// How many events it has sent in a second, recently. Nothing where that is
    /// not known, as in all that [`Machine::view`] tells.
    pub rate: Option<f64>,
    /// How many events it holds.
    pub held: u64,
    /// What it said last of an event that it could not compute with.
    pub fault: Option<String>,
    /// What it said when it broke.
    pub broken: Option<Arc<str>>,
}

/// An edge between two nodes. What went in came out: nothing waits there.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeView {
    /// The node whose events they are.
    pub from: u32,
    /// The node that reads them.
    pub to: u32,
    /// As which of its inputs.
    pub input: u16,
    /// How many went this way.
    pub events: u64,
    /// How many in a second, as [`NodeView::rate`].
    pub rate: Option<f64>,
}

/// A subscriber and the edge to it.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriberView {
    /// Its number, which no other ever has.
    pub id: u64,
    /// The node that it reads.
    pub node: u32,
    /// The application that it belongs to.
    pub application: Arc<str>,
    /// How many events it was given, and has taken on.
    pub offered: u64,
    /// What has become of them.
    pub tally: Tally,
    /// How many it has taken in a second, as [`NodeView::rate`].
    pub rate: Option<f64>,
    /// How long events took that were measured.
    pub delays: Option<Box<Delays>>,
    /// How long they took recently, where that is known.
    pub recent: Option<Box<Delays>>,
}

/// This machine's end of an edge to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndView {
    /// What the other machine is called.
    pub peer: Arc<str>,
    /// The name whose events they are.
    pub name: Arc<str>,
    /// The number of the edge, which the receiver has chosen.
    pub channel: u32,
    /// What has become of the events here.
    pub end: End,
}

/// An end of an edge between machines. What the one has sent has arrived at the
/// other, is missing there, or is still in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Events go out: `offered = sent + dropped + waiting`.
    Out {
        /// Events that were to go this way.
        offered: u64,
        /// Events that have set out.
        sent: u64,
        /// Events that have not, and why.
        dropped: Dropped,
        /// Events that wait for the other machine to take them, counted from
        /// the queue itself.
        waiting: u64,
    },
    /// Events come in: `arrived = taken + dropped`.
    In {
        /// Frames that have come.
        arrived: u64,
        /// Those whose events went on into the graph.
        taken: u64,
        /// Those that did not, and why.
        dropped: Dropped,
        /// Events that later ones have overtaken, and that have not come.
        missing: u64,
    },
}

impl End {
    /// Adds what another end of the same kind has counted.
    pub(crate) fn add(&mut self, more: &End) {
        let sum = |all: &mut Dropped, more: &Dropped| {
            for (reason, count) in more.iter() {
                all.add(reason, count);
            }
        };
        match (self, more) {
            (
                End::Out {
                    offered,
                    sent,
                    dropped,
                    waiting,
                },
                End::Out {
                    offered: more_offered,
                    sent: more_sent,
                    dropped: more_dropped,
                    waiting: more_waiting,
                },
            ) => {
                *offered += more_offered;
                *sent += more_sent;
                *waiting += more_waiting;
                sum(dropped, more_dropped);
            }
            (
                End::In {
                    arrived,
                    taken,
                    dropped,
                    missing,
                },
                End::In {
                    arrived: more_arrived,
                    taken: more_taken,
                    dropped: more_dropped,
                    missing: more_missing,
                },
            ) => {
                *arrived += more_arrived;
                *taken += more_taken;
                // A peer says by its numbers how many these are.
                *missing = missing.saturating_add(*more_missing);
                sum(dropped, more_dropped);
            }
            _ => {}
        }
    }

    /// Whether every event is accounted for.
    ///
    /// # Errors
    /// With what is missing (positive) or too many (negative).
    pub fn balance(&self) -> Result<(), i128> {
        let (came, went) = match self {
            End::Out {
                offered,
                sent,
                dropped,
                waiting,
            } => (offered, [*sent, dropped.total(), *waiting]),
            End::In {
                arrived,
                taken,
                dropped,
                ..
            } => (arrived, [*taken, dropped.total(), 0]),
        };
        match i128::from(*came) - went.into_iter().map(i128::from).sum::<i128>() {
            0 => Ok(()),
            missing => Err(missing),
        }
    }
}

impl Machine {
    /// A picture of the graph.
    #[must_use]
    pub fn view(&self) -> View {
        let mut view = View::default();
        let counted = self.counted();
        for (id, node) in self.nodes.iter() {
            let kind = match (&node.work, &node.more.flow) {
                (Work::Source, _) => "source".into(),
                (_, Some(Flow::Operation(operation))) => Arc::clone(&operation.operator),
                _ => "names".into(),
            };
            let mut books = node.books.clone();
            if let Some(more) = counted.get(&id) {
                books += more;
            }
            let fault = node.operator().and_then(|operator| operator.fault());
            let fault = self.fault_in_chain(id).or(fault).map(str::to_owned);
            let broken = match &node.work {
                Work::Broken(said) => Some(Arc::clone(said)),
                _ => None,
            };
            view.nodes.push(NodeView {
                id,
                kind,
                flow: node.more.flow.clone(),
                copy_of: self.copy_of(id),
                name: node.more.stream.name.as_str().to_owned(),
                books: books.clone(),
                rate: None,
                held: node.held(),
                fault,
                broken,
            });
            for reader in &node.readers {
                view.edges.push(EdgeView {
                    from: id,
                    to: reader.node,
                    input: reader.input,
                    events: books.sent().wrapping_sub(reader.since),
                    rate: None,
                });
            }
            for subscriber in &node.subscribers {
                let tally = subscriber.receiver.tally().unwrap_or_else(|| Tally {
                    taken: subscriber.offered - subscriber.refused,
                    ..Tally::default()
                });
                let delays = subscriber.receiver.delays().map(Box::new);
                view.subscribers.push(SubscriberView {
                    id: subscriber.id,
                    node: id,
                    application: Arc::clone(&subscriber.application),
                    offered: subscriber.offered - subscriber.refused,
                    tally,
                    rate: None,
                    delays: delays.or_else(|| subscriber.delays.clone()),
                    recent: None,
                });
            }
        }
        for links in self.links.iter().filter_map(std::sync::Weak::upgrade) {
            links.ends(&mut view.ends);
        }
        view
    }
}

impl NodeView {
    /// What it is, for people: a name, or an operator with its parameters.
    #[must_use]
    pub fn label(&self) -> String {
        let operation = match &self.flow {
            Some(Flow::Stream(name)) => return name.to_string(),
            Some(Flow::Operation(operation)) => operation,
            None => return self.name.clone(),
        };
        let mut label = operation.operator.to_string();
        for (index, (name, parameter)) in operation.parameters.iter().enumerate() {
            label.push(' ');
            // The first is mostly what the operator is about.
            if index > 0 {
                label.push_str(name);
                label.push('=');
            }
            label.push_str(&language::shown(parameter));
        }
        label
    }
}

impl View {
    /// Whether all events are accounted for: in every node, on every edge and
    /// by every subscriber, as far as edges have been there all the time.
    ///
    /// # Errors
    /// Says where they are not.
    pub fn audit(&self) -> Result<(), String> {
        for node in &self.nodes {
            let balance = node.books.balance(node.held);
            balance.map_err(|missing| {
                format!(
                    "node {} ({}) lacks {missing} events: {:?}",
                    node.id, node.kind, node.books
                )
            })?;
            let came: u64 = self
                .edges
                .iter()
                .filter(|e| e.to == node.id)
                .map(|e| e.events)
                .sum();
            if &*node.kind != "source" && came > node.books.received {
                let received = node.books.received;
                return Err(format!(
                    "node {} received {received} of {came} events",
                    node.id
                ));
            }
        }
        for EndView {
            peer, name, end, ..
        } in &self.ends
        {
            end.balance().map_err(|missing| {
                format!("the edge of {name} to {peer} lacks {missing} events: {end:?}")
            })?;
        }
        for subscriber in &self.subscribers {
            let Tally {
                taken,
                dropped,
                waiting,
            } = &subscriber.tally;
            let went = taken + dropped.total() + waiting;
            if went != subscriber.offered {
                let SubscriberView { id, offered, .. } = subscriber;
                return Err(format!(
                    "subscriber {id} was offered {offered} events, and has {went}"
                ));
            }
        }
        Ok(())
    }
}
