//! Chains of filters, tested together.
//!
//! Where filters follow each other and nobody else reads what lies between, the
//! fields of an event are read once for all of them. The node before the first
//! filter has the chain, and counts for the filters; their books get the counts
//! when the chain is taken apart, and pictures of the graph have them always.

use std::collections::HashMap;

use milieu_transfer::Event;

use super::Machine;
use super::node::{NodeId, SEVERAL, Work};
use crate::books::Books;
use crate::operator::Reason;
use crate::operators::Filters;

const REASONS: usize = Reason::ALL.len();

/// Filters that follow each other.
pub(super) struct Chain {
    filters: Filters,
    /// Their nodes, in their order.
    nodes: Vec<NodeId>,
    /// How many events passed all of them.
    passed: u64,
    /// How many each of them dropped, for each reason.
    dropped: Vec<[u64; REASONS]>,
}

impl Chain {
    /// The filter that has to answer for the others.
    pub fn first(&self) -> NodeId {
        self.nodes[0]
    }

    /// The node that an event leaves which passes.
    #[inline]
    pub fn test(&mut self, event: &Event) -> Option<NodeId> {
        match self.filters.test(event) {
            Ok(()) => {
                self.passed += 1;
                self.nodes.last().copied()
            }
            Err((filter, reason)) => {
                self.dropped[filter][reason as usize] += 1;
                None
            }
        }
    }

    /// What a filter said last of an event that it could not compute with.
    fn fault(&self, id: NodeId) -> Option<&str> {
        let at = self.nodes.iter().position(|node| *node == id)?;
        self.filters.fault(at)
    }

    /// What it has counted for each filter.
    fn counted(&self) -> impl Iterator<Item = (NodeId, Books)> {
        let mut came: u64 = self.dropped.iter().flatten().sum();
        came += self.passed;
        let filters = self.nodes.iter().zip(&self.dropped);
        filters.map(move |(node, counts)| {
            let mut books = Books {
                received: came,
                ..Books::default()
            };
            for (reason, count) in Reason::ALL.into_iter().zip(counts) {
                books.dropped.add(reason, *count);
            }
            came -= books.dropped.total();
            books.passed = came;
            (*node, books)
        })
    }
}

impl Machine {
    /// Takes apart the chain that a node has and the one that it is in, before
    /// something changes there.
    pub(super) fn loosen(&mut self, id: NodeId) {
        if let Some(head) = self.nodes[id].more.chained_by {
            self.unchain(head);
        }
        self.unchain(id);
    }

    fn unchain(&mut self, head: NodeId) {
        let Some(chain) = self.nodes[head].chain.take() else {
            return;
        };
        for (id, books) in chain.counted() {
            self.nodes[id].books += &books;
        }
        for id in chain.nodes {
            self.nodes[id].more.chained_by = None;
        }
    }

    /// Makes a chain of the filters around a node, where there are several.
    pub(super) fn tighten(&mut self, id: NodeId) {
        let mut head = id;
        while self.condition(head).is_some() {
            match self.nodes[head].more.inputs[..] {
                [input] if self.nodes[input].only == head => head = input,
                _ => break,
            }
        }
        if self.nodes[head].chain.is_some() {
            return;
        }
        let mut nodes = Vec::new();
        let mut next = self.nodes[head].only;
        while next != SEVERAL && self.condition(next).is_some() {
            nodes.push(next);
            next = self.nodes[next].only;
        }
        if nodes.len() < 2 {
            return;
        }
        // What was a shorter chain before becomes part of this one.
        for id in &nodes {
            self.loosen(*id);
        }
        let filters = Filters::new(nodes.iter().filter_map(|id| self.condition(*id)));
        for id in &nodes {
            self.nodes[*id].more.chained_by = Some(head);
        }
        self.nodes[head].chain = Some(Box::new(Chain {
            filters,
            dropped: vec![[0; REASONS]; nodes.len()],
            nodes,
            passed: 0,
        }));
    }

    /// What a filter of a chain said last of an event that it could not compute
    /// with.
    pub(super) fn fault_in_chain(&self, id: NodeId) -> Option<&str> {
        let head = self.nodes[id].more.chained_by?;
        self.nodes[head].chain.as_ref()?.fault(id)
    }

    fn condition(&self, id: NodeId) -> Option<&crate::operators::Condition> {
        match &self.nodes[id].work {
            Work::Filter(filter) => filter.condition(),
            _ => None,
        }
    }

    /// What chains have counted and books do not have yet.
    pub(super) fn counted(&self) -> HashMap<NodeId, Books> {
        let chains = self
            .nodes
            .iter()
            .filter_map(|(_, node)| node.chain.as_ref());
        chains.flat_map(|chain| chain.counted()).collect()
    }
}
