//! What other machines publish, as the graph has it: sources that are told
//! whether somebody reads them.

use std::sync::{Arc, Weak};

use milieu_transfer::{Event, Stream};

use super::node::{Node, NodeId, Work};
use super::view::EndView;
use super::{Machine, SourceId, SubscriptionId};
use crate::names::{Entry, Publisher, Refusal};
use crate::operator::Now;

/// Who is told whether a source is read. It is told while the graph changes, and
/// so only takes note.
pub(super) struct Demand {
    tell: Box<dyn FnMut(bool) + Send>,
    is: bool,
}

/// Knows what goes on between this machine and others.
pub(crate) trait Edges: Send + Sync {
    /// Appends this machine's ends of the edges.
    fn ends(&self, into: &mut Vec<EndView>);
}

impl Machine {
    /// Adds a source whose events come from another machine, and tells whenever
    /// somebody begins to read it and when nobody does any more.
    pub(crate) fn add_remote(
        &mut self,
        now: &Now<'_>,
        stream: Arc<Stream>,
        retains: bool,
        tell: impl FnMut(bool) + Send + 'static,
    ) -> Result<SourceId, Refusal> {
        let mut node = Node::new(Work::Source, stream, None);
        node.retains = retains;
        node.more.demand = Some(Box::new(Demand {
            tell: Box::new(tell),
            is: false,
        }));
        self.insert_source(now, node)
    }

    /// Whether a publisher of this very machine has a name, and if so whether
    /// late subscribers get its last event.
    pub(crate) fn publishes(&self, name: &str) -> Option<bool> {
        let Some(Entry::Stream(Publisher(number))) = self.tree.get(name) else {
            return None;
        };
        let node = self.nodes.get(*number as NodeId)?;
        node.more.demand.is_none().then_some(node.retains)
    }

    /// What a subscriber would get at once if it came now.
    pub(crate) fn last_events(&self, subscription: SubscriptionId) -> Vec<Event> {
        let node = self.subscribers.get(&subscription.0);
        let last = node.map_or_else(Vec::new, |node| self.last_of(*node));
        last.into_iter().map(|last| last.event).collect()
    }

    /// Shows in pictures what this knows, as long as it is there.
    pub(crate) fn show_edges(&mut self, edges: Weak<dyn Edges>) {
        self.links.retain(|known| known.strong_count() > 0);
        self.links.push(edges);
    }

    /// Tells that a source is read now, or no longer.
    pub(super) fn tell_demand(&mut self, id: NodeId) {
        let node = &mut self.nodes[id];
        let is = !node.is_unread();
        if let Some(demand) = node.more.demand.as_mut().filter(|demand| demand.is != is) {
            demand.is = is;
            // What it was last is not true for ever.
            node.last.take_if(|_| !is);
            (demand.tell)(is);
        }
    }
}
