//! Names in the graph: where the events of names come from, now.
//!
//! A node of a name reads whatever publishes under the names that it stands for.
//! When these change, its inputs change in one step: who stays is not touched.

use std::collections::BTreeSet;
use std::sync::Arc;

use milieu_transfer::{Stream, Time};

use super::Machine;
use super::node::{Node, NodeId, SEVERAL, Work};
use super::share::{Planned, Put};
use crate::names::{
    Change, Difference, DriveId, Entry, LayerValues, Member, Publisher, Query, Refusal, Rights,
    WatchId, Why,
};
use crate::operator::Now;

/// Under which layers, and with which rights, names are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u64);

impl ReaderId {
    /// Under the layers that are active globally, with all rights.
    pub const GLOBAL: ReaderId = ReaderId(0);
}

/// A flow that is published under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicationId(NodeId);

/// Layers and rights of those who read.
pub(super) struct Reader {
    layers: Arc<LayerValues>,
    pub rights: Arc<Rights>,
    /// The nodes of names that it reads.
    names: BTreeSet<NodeId>,
}

impl Reader {
    pub fn new(rights: Rights) -> Reader {
        Reader {
            layers: Arc::default(),
            rights: Arc::new(rights),
            names: BTreeSet::new(),
        }
    }
}

/// Is told how the names change that it watches.
pub(super) type Watcher = Box<dyn FnMut(&[Change]) + Send>;

impl Machine {
    /// Adds a reader with layers and rights of its own.
    pub fn add_reader(&mut self, layers: LayerValues, rights: Rights) -> ReaderId {
        let mut reader = Reader::new(rights);
        reader.layers = Arc::new(layers);
        let id = ReaderId(self.number());
        self.readers.insert(id, reader);
        id
    }

    /// Removes a reader whose subscriptions have ended.
    pub fn remove_reader(&mut self, reader: ReaderId) {
        if reader != ReaderId::GLOBAL {
            self.readers.remove(&reader);
        }
    }

    /// The layers of a reader have other values now: its subscriptions to names
    /// that depend on them get their inputs changed.
    pub fn set_layers(&mut self, now: &Now<'_>, reader: ReaderId, layers: LayerValues) {
        let Some(reader) = self.readers.get_mut(&reader) else {
            return;
        };
        reader.layers = Arc::new(layers);
        for id in &reader.names {
            if let Work::Names(Some(resolution)) = self.nodes[*id].work {
                self.tree.set_layers(resolution, Arc::clone(&reader.layers));
            }
        }
        self.settle(now);
    }

    /// The values of the layers that a reader has.
    #[must_use]
    pub fn layers(&self, reader: ReaderId) -> Option<&LayerValues> {
        let reader = self.readers.get(&reader);
        reader.map(|reader| &*reader.layers)
    }

    /// Puts a service or a binding at a name.
    ///
    /// # Errors
    /// If it is no name, a publisher has it, a binding leads to itself, or there
    /// are too many.
    pub fn put(
        &mut self,
        now: &Now<'_>,
        name: &str,
        entry: impl Into<Entry>,
    ) -> Result<(), Refusal> {
        if let Some(Entry::Stream(_)) = self.tree.get(name) {
            let message = format!("`{name}` has a publisher already");
            return self.tree.counted(Err(Refusal {
                why: Why::Cycle,
                span: None,
                message,
                help: "choose another name".to_owned(),
            }));
        }
        self.tree.put(name, entry)?;
        self.settle(now);
        Ok(())
    }

    /// Removes a service or a binding.
    pub fn remove(&mut self, now: &Now<'_>, name: &str) -> Option<Entry> {
        if let Some(Entry::Stream(_)) = self.tree.get(name) {
            return None;
        }
        let entry = self.tree.remove(name);
        self.settle(now);
        entry
    }

    /// Renews the lease of a service.
    ///
    /// # Errors
    /// If there is no such service.
    pub fn renew(&mut self, now: &Now<'_>, name: &str, until: Time) -> Result<(), Refusal> {
        self.tree.renew(name, until)?;
        self.settle(now);
        Ok(())
    }

    /// What stands at the names of a query, as far as the rights allow to see it.
    #[must_use]
    pub fn list(&self, query: &Query, rights: &Rights) -> Vec<Member> {
        self.tree.list(query, rights)
    }

    /// Watches names: what is there is told at once, and then what changes.
    ///
    /// # Errors
    /// If nothing that the query means may be read, or there are too many.
    pub fn watch(
        &mut self,
        now: &Now<'_>,
        query: Query,
        rights: Rights,
        watcher: impl FnMut(&[Change]) + Send + 'static,
    ) -> Result<WatchId, Refusal> {
        let id = self.tree.watch(query, Arc::new(rights))?;
        self.watchers.insert(id, Box::new(watcher));
        self.settle(now);
        Ok(id)
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, id: WatchId) {
        self.tree.unwatch(id);
        self.watchers.remove(&id);
    }

    /// Publishes what a flow makes under a name.
    ///
    /// # Errors
    /// If it is no name, something stands there, or the flow reads the name.
    pub fn publish_flow(
        &mut self,
        now: &Now<'_>,
        name: &str,
        planned: Planned,
    ) -> Result<PublicationId, Refusal> {
        let stream = Arc::new(Stream {
            name: crate::names::name(name)?,
            origin: self.origin.clone(),
            incarnation: self.incarnation,
        });
        let Put { node: input, last } = self.put_all(now, planned, ReaderId::GLOBAL);
        let mut node = Node::new(Work::Names(None), stream, None);
        node.retains = self.nodes[input].retains;
        node.more.inputs.push(input);
        let id = self.nodes.insert(node);
        self.loosen(input);
        let since = self.nodes[input].books.sent();
        self.add_edge(input, id, 0, since);
        self.straighten(id);
        let published = self.enter_name(now, name, id);
        if let Err(refusal) = published {
            self.unpublish(now, PublicationId(id));
            return Err(refusal);
        }
        for last in last {
            self.guarded(now, Some(&last.event), |machine| {
                machine.run_to(now, input, (id, 0), &last);
            });
        }
        self.unite_touched(now);
        Ok(PublicationId(id))
    }

    /// Ends the publication of a flow.
    pub fn unpublish(&mut self, now: &Now<'_>, publication: PublicationId) {
        let PublicationId(id) = publication;
        if self.nodes.get(id).is_some() {
            self.leave_name(now, id);
            self.release(id);
        }
    }

    /// Takes note that a flow drives a layer: no binding may then make a name
    /// that the flow reads depend on the layer.
    ///
    /// # Errors
    /// If one does already.
    pub fn drive(&mut self, layer: &str, query: Query) -> Result<DriveId, Refusal> {
        self.tree.drive(layer, query)
    }

    /// The flow no longer drives the layer.
    pub fn undrive(&mut self, drive: DriveId) {
        self.tree.undrive(drive);
    }

    /// Refuses a name at which something stands.
    pub(super) fn vacant(&mut self, name: &str) -> Result<(), Refusal> {
        if self.tree.get(name).is_none() {
            return Ok(());
        }
        let message = format!("something stands at `{name}` already");
        self.tree.counted(Err(Refusal {
            why: Why::Cycle,
            span: None,
            message,
            help: "publish under another name, and merge the flows".to_owned(),
        }))
    }

    /// Makes a node the publisher of a name.
    pub(super) fn enter_name(
        &mut self,
        now: &Now<'_>,
        name: &str,
        id: NodeId,
    ) -> Result<(), Refusal> {
        self.vacant(name)?;
        // Numbers of nodes come again; publishers are to be told apart.
        self.publishers += 1;
        let publisher = Publisher(self.publishers << 32 | u64::from(id));
        self.tree.put(name, publisher)?;
        self.nodes[id].more.is_named = true;
        // Whoever bound a name before may have been refused an edge.
        self.cycles = 0;
        self.settle(now);
        match std::mem::take(&mut self.cycles) {
            0 => Ok(()),
            _ => {
                let message = format!("what is published as `{name}` would depend on itself");
                self.tree.counted(Err(Refusal {
                    why: Why::Cycle,
                    span: None,
                    message,
                    help: "publish it under a name that its flow does not read".to_owned(),
                }))
            }
        }
    }

    /// Takes the name of a node away; whoever reads the name no longer reads it.
    pub(super) fn leave_name(&mut self, now: &Now<'_>, id: NodeId) {
        let node = &mut self.nodes[id];
        if std::mem::replace(&mut node.more.is_named, false) {
            let name = node.more.stream.name.clone();
            self.tree.remove(name.as_str());
            self.settle(now);
        }
    }

    /// Follows a name from a node.
    pub(super) fn follow(&mut self, id: NodeId, query: Query, reader: ReaderId) {
        let Some(of) = self.readers.get_mut(&reader) else {
            return;
        };
        let (layers, rights) = (Arc::clone(&of.layers), Arc::clone(&of.rights));
        // What is refused is counted there; the node then has no inputs.
        if let Ok(resolution) = self.tree.subscribe(query, layers, rights) {
            self.nodes[id].work = Work::Names(Some(resolution));
            self.resolutions.insert(resolution, id);
            // A binding may depend on layers where the query does not.
            of.names.insert(id);
        }
    }

    /// Ends that.
    pub(super) fn unfollow(&mut self, id: NodeId, work: &Work, reader: ReaderId) {
        if let Work::Names(Some(resolution)) = work {
            self.tree.unsubscribe(*resolution);
            self.resolutions.remove(resolution);
            if let Some(of) = self.readers.get_mut(&reader) {
                of.names.remove(&id);
            }
        }
    }

    /// Changes the inputs of names as the naming tree has changed, and tells
    /// those who watch it.
    pub(super) fn settle(&mut self, now: &Now<'_>) {
        let news = self.tree.step(now.get());
        for (resolution, difference) in news.resolutions {
            if let Some(&names) = self.resolutions.get(&resolution) {
                self.change_inputs(now, names, &difference);
            }
        }
        for (watch, changes) in news.watches {
            // It may end itself by what it does.
            if let Some(mut watcher) = self.watchers.remove(&watch) {
                self.guarded(now, None, |_| watcher(&changes));
                self.watchers.insert(watch, watcher);
            }
        }
    }

    fn change_inputs(&mut self, now: &Now<'_>, names: NodeId, difference: &Difference) {
        let publishers = |members: &[Member]| -> Vec<NodeId> {
            let streams = members.iter().filter_map(|member| match member.entry {
                Entry::Stream(Publisher(number)) => Some(number as NodeId),
                _ => None,
            });
            streams.collect()
        };
        for input in publishers(&difference.left) {
            self.nodes[names]
                .more
                .inputs
                .retain(|known| *known != input);
            if self.nodes.get(input).is_some() {
                self.loosen(input);
                self.nodes[input].remove(names, 0);
                self.straighten(input);
            }
        }
        let mut retained = Vec::new();
        for input in publishers(&difference.joined) {
            if self.leads_to(names, input) {
                self.cycles += 1;
                continue;
            }
            let inputs = &mut self.nodes[names].more.inputs;
            // Most names have one.
            inputs.reserve_exact(usize::from(inputs.is_empty()));
            inputs.push(input);
            self.loosen(input);
            let since = self.nodes[input].books.sent();
            self.add_edge(input, names, 0, since);
            if self.nodes[input].retains {
                self.retain(names);
                retained.extend(
                    self.nodes[input]
                        .last_ones()
                        .into_iter()
                        .map(|last| (input, last)),
                );
            }
        }
        self.straighten(names);
        for (input, last) in retained {
            self.guarded(now, Some(&last.event), |machine| {
                machine.run_to(now, input, (names, 0), &last);
            });
        }
    }

    /// Whether events that leave a node come to another.
    fn leads_to(&self, from: NodeId, to: NodeId) -> bool {
        if matches!(self.nodes[to].work, Work::Source) {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(id) = todo.pop() {
            if id == to {
                return true;
            }
            if seen.insert(id) {
                todo.extend(self.nodes[id].readers.iter().map(|reader| reader.node));
            }
        }
        false
    }

    /// Lets a node, and all that read it, keep their last events.
    fn retain(&mut self, node: NodeId) {
        self.loosen(node);
        let node = &mut self.nodes[node];
        if std::mem::replace(&mut node.retains, true) {
            return;
        }
        node.only = SEVERAL;
        let readers: Vec<NodeId> = node.readers.iter().map(|reader| reader.node).collect();
        for reader in readers {
            self.retain(reader);
        }
    }

    /// Whether a node stays though nobody reads it.
    pub(super) fn stays(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        matches!(node.work, Work::Source) || node.more.is_named || !node.is_unread()
    }
}
