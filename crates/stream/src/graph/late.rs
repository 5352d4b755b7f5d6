//! Those who come late to a flow that runs already, and how they come to share it.
//!
//! Nobody is to see who was there before. So whoever comes when an operator has
//! memories of before gets a copy of it, which begins now, as all that reads the
//! copy does. A copy and the operator that it is one of hear the same from then
//! on; once they are like each other nothing can tell them apart any more, and
//! the copy's readers move over, in one step between two events.
//!
//! Of the nodes of an equal flow one is the first, and the others are copies, in
//! the order in which they came. A copy is compared with the one before it and
//! with the first: when an event has come, at first each time and then
//! ever more seldom, and whenever one of them was woken or has got other inputs.
//! So windows are one again when the last closes that was open at the beginning.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::Machine;
use super::naming::ReaderId;
use super::node::{Node, NodeId, Reader, WOKEN, Work, asked};
use crate::flow::Flow;
use crate::operator::Now;

/// What a node is found by.
pub(super) type Key = (Flow, ReaderId);

/// The copies of a machine.
#[derive(Default)]
pub(super) struct Late {
    /// Of each flow that has some, in the order in which they came.
    copies: HashMap<Key, Vec<NodeId>>,
    known: HashMap<NodeId, Copy>,
    /// Those that may have become like another one, and whether by an event.
    touched: Vec<(NodeId, Touch)>,
    /// How many there have been.
    count: u64,
}

struct Copy {
    /// How many there were before.
    born: u64,
    /// How often it was compared after an event, and after how many more it is
    /// compared next.
    compared: u32,
    waits: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Event,
    Otherwise,
}

/// A copy lets so many events come at most without being compared.
const WAITS_MAX: u32 = 64;

impl Late {
    fn touch(&mut self, id: NodeId) {
        if self.known.contains_key(&id) {
            self.touched.push((id, Touch::Otherwise));
        }
    }
}

impl Machine {
    /// The node that is the first of its flow, if there is one.
    pub(super) fn first_of(&self, key: &Key) -> Option<NodeId> {
        self.known.get(key).copied()
    }

    /// The nodes of a flow that read these inputs, the first one first.
    pub(super) fn all_of(&self, key: &Key, inputs: &[NodeId]) -> impl Iterator<Item = NodeId> {
        let copies = self.late.copies.get(key).into_iter().flatten();
        let all = self.known.get(key).into_iter().chain(copies).copied();
        all.filter(move |id| self.nodes[*id].more.inputs == inputs)
    }

    /// Takes note of a node that was just made.
    pub(super) fn enter_node(&mut self, key: Key, id: NodeId) {
        let key = match self.known.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(id);
                return;
            }
            Entry::Occupied(first) => first.key().clone(),
        };
        self.nodes[id].set_late(true);
        self.late.copies.entry(key).or_default().push(id);
        self.late.count += 1;
        let copy = Copy {
            born: self.late.count,
            compared: 0,
            waits: 0,
        };
        self.late.known.insert(id, copy);
        self.late.touched.push((id, Touch::Otherwise));
    }

    /// Takes note that a node of this flow has gone. Whether it was the only one.
    pub(super) fn forget_node(&mut self, key: &Key, id: NodeId) -> bool {
        let copies = self.late.copies.get_mut(key);
        if self.late.known.remove(&id).is_some() {
            if let Some(copies) = copies {
                copies.retain(|copy| *copy != id);
                if copies.is_empty() {
                    self.late.copies.remove(key);
                }
            }
            return false;
        }
        let Some(copies) = copies else {
            self.known.remove(key);
            return true;
        };
        // The one that came next is the first now.
        let next = copies.remove(0);
        if copies.is_empty() {
            self.late.copies.remove(key);
        }
        self.late.known.remove(&next);
        self.nodes[next].set_late(false);
        self.known.insert(key.clone(), next);
        false
    }

    /// The node that a copy is one of.
    pub(super) fn copy_of(&self, id: NodeId) -> Option<NodeId> {
        self.late.known.get(&id)?;
        let more = &self.nodes[id].more;
        self.first_of(&(more.flow.clone()?, more.reader))
    }

    /// An event comes in at a copy, which is an operator like others meanwhile.
    #[cold]
    pub(super) fn set_to_work(&mut self, id: NodeId) {
        self.nodes[id].set_late(false);
        self.late.touched.push((id, Touch::Event));
    }

    /// A node was woken, or reads something else: it and its copies may be like
    /// each other now.
    pub(super) fn touch(&mut self, id: NodeId) {
        if self.late.known.is_empty() {
            return;
        }
        self.late.touch(id);
        let more = &self.nodes[id].more;
        let Some(flow) = &more.flow else { return };
        if let Some(copies) = self.late.copies.get(&(flow.clone(), more.reader)) {
            for id in copies.clone() {
                self.late.touch(id);
            }
        }
    }

    /// Lets those be one that have become alike. No event is to be on its way.
    #[inline]
    pub(super) fn unite_touched(&mut self, now: &Now<'_>) {
        if !self.late.touched.is_empty() {
            self.unite(now);
        }
    }

    /// Compares the copies for which something has changed, and lets those be one
    /// that are alike: what others read first.
    #[cold]
    fn unite(&mut self, now: &Now<'_>) {
        let mut todo = BTreeSet::new();
        loop {
            for (id, touch) in std::mem::take(&mut self.late.touched) {
                let Some(copy) = self.late.known.get_mut(&id) else {
                    continue;
                };
                if touch == Touch::Event && copy.waits > 0 {
                    copy.waits -= 1;
                    continue;
                }
                if touch == Touch::Event {
                    copy.compared = copy.compared.saturating_add(1);
                    copy.waits = (copy.compared / 8).min(WAITS_MAX);
                }
                todo.insert((self.nodes[id].more.rank, copy.born, id));
            }
            let Some((_, _, id)) = todo.pop_first() else {
                break;
            };
            if let Some(other) = self.find_like(id, now) {
                self.merge(id, other);
            }
        }
    }

    /// A node that a copy is like.
    fn find_like(&self, id: NodeId, now: &Now<'_>) -> Option<NodeId> {
        self.late.known.get(&id)?;
        let more = &self.nodes[id].more;
        let key = (more.flow.clone()?, more.reader);
        let copies = self.late.copies.get(&key)?;
        let at = copies.iter().position(|copy| *copy == id)?;
        let before = at.checked_sub(1).map(|before| copies[before]);
        let others = before.into_iter().chain(self.first_of(&key));
        let mut others = others.filter(|other| self.nodes[*other].more.inputs == more.inputs);
        others.find(|other| self.nodes[*other].is_like(&self.nodes[id], now))
    }

    /// Lets those who read a copy read another node instead, that is like it.
    fn merge(&mut self, copy: NodeId, into: NodeId) {
        self.loosen(copy);
        self.loosen(into);
        let subscribers = std::mem::take(&mut self.nodes[copy].subscribers);
        for subscriber in subscribers {
            self.subscribers.insert(subscriber.id, into);
            self.nodes[into].add_subscriber(subscriber);
        }
        let readers = std::mem::take(&mut self.nodes[copy].readers);
        let sent = |node: &Node| node.books.sent();
        let ahead = sent(&self.nodes[into]).wrapping_sub(sent(&self.nodes[copy]));
        for Reader { node, input, since } in &readers {
            for known in &mut self.nodes[*node].more.inputs {
                if *known == copy {
                    *known = into;
                }
            }
            self.add_edge(into, *node, *input, since.wrapping_add(ahead));
            self.touch(*node);
        }
        self.straighten(into);
        for reader in &readers {
            self.straighten(reader.node);
        }
        self.release(copy);
    }
}

impl Node {
    /// Whether it does from now on what another node does, which has the same
    /// inputs and an equal flow.
    pub fn is_like(&self, other: &Node, now: &Now<'_>) -> bool {
        let like = match (&self.work, &other.work) {
            (Work::Filter(_), Work::Filter(_)) | (Work::Broken(_), Work::Broken(_)) => true,
            (
                Work::Operator(ours) | Work::Late(ours),
                Work::Operator(theirs) | Work::Late(theirs),
            ) => asked(|| ours.is_like(&**theirs, now.get())).unwrap_or_default(),
            _ => false,
        };
        like && self.more.age == other.more.age
    }

    /// Whether what it began with is all that it knows, and that is nothing that
    /// had come before.
    pub fn is_untouched(&self) -> bool {
        let began_with = self.more.began_with;
        began_with != WOKEN && self.books.received == u64::from(began_with)
    }

    pub fn set_late(&mut self, is_late: bool) {
        let work = std::mem::replace(&mut self.work, Work::Gone);
        self.work = match (work, is_late) {
            (Work::Operator(operator), true) => Work::Late(operator),
            (Work::Late(operator), false) => Work::Operator(operator),
            (work, _) => work,
        };
    }
}
