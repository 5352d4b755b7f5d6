//! What is below what in a document.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use milieu_keys::Name;

use super::levels;
use super::pieces::NONE;

/// The node of the document itself.
pub(crate) const ROOT: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "toml"),
    expect(dead_code, reason = "only TOML has headers and dotted keys")
)]
pub(crate) enum Shape {
    /// A text, a number, a boolean, a date.
    Value,
    /// A place that has no value yet: `null`, and a text without any content.
    Null,
    /// An object or an inline table, in braces.
    Object,
    /// Elements in brackets.
    Array,
    /// A table with a header, an element of an array of tables, or the text itself.
    Header,
    /// A table that nothing but headers of tables below it mention.
    Implicit,
    /// A table that the first part of a dotted key names.
    Dotted,
    /// An array of tables, each of which has its header.
    Tables,
}

impl Shape {
    /// Whether its children are elements.
    pub fn is_array(self) -> bool {
        matches!(self, Shape::Array | Shape::Tables)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The name; that of the parent for a value of an object itself.
    pub name: Name,
    pub parent: u32,
    pub shape: Shape,
    /// What is below, in the order of the text.
    pub children: Vec<u32>,
    /// The child that is the value of this node itself.
    pub own: u32,
    /// Whether it is an object or array that is the member of the empty name.
    pub nameless: bool,
    /// Where it begins: with its name if it has one, or the header.
    pub first: u32,
    /// Where its value begins, or the header ends.
    pub value: u32,
    /// Where its value ends.
    pub last: u32,
}

/// Nodes with their names.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tree {
    /// A tree whose root has this shape, with room for so many nodes.
    pub fn new(root: Shape, capacity: usize) -> Tree {
        let mut tree = Tree {
            nodes: Vec::with_capacity(capacity),
            index: HashTable::with_capacity(capacity),
            hasher: DefaultHashBuilder::default(),
        };
        tree.add(NONE, Name::root(), root)
            .expect("nothing is there yet");
        tree
    }

    /// Adds a node, or returns the one that has its name already.
    pub fn add(&mut self, parent: u32, name: Name, shape: Shape) -> Result<u32, u32> {
        let Tree {
            nodes,
            index,
            hasher,
        } = self;
        let id = u32::try_from(nodes.len()).expect("fewer than 2^32 nodes");
        let same = |&other: &u32| nodes[other as usize].name == name;
        let rehash = |&other: &u32| hasher.hash_one(nodes[other as usize].name.as_str());
        match index.entry(hasher.hash_one(name.as_str()), same, rehash) {
            Entry::Occupied(entry) => return Err(*entry.get()),
            Entry::Vacant(entry) => entry.insert(id),
        };
        self.push(parent, name, shape);
        Ok(id)
    }

    /// Adds the value of an object itself, or returns the one that it has already.
    pub fn add_own(&mut self, parent: u32, shape: Shape) -> Result<u32, u32> {
        let own = self.node(parent).own;
        if own != NONE {
            return Err(own);
        }
        let id = self.push(parent, self.node(parent).name.clone(), shape);
        self.node_mut(parent).own = id;
        Ok(id)
    }

    /// What is the member of the empty name, be it the value of the object
    /// itself or not; or nothing.
    pub fn nameless(&self, object: u32) -> u32 {
        let Node { name, own, .. } = self.node(object);
        let child = self.find(levels::below(name, "").as_str());
        match child.filter(|&child| self.node(child).nameless) {
            Some(child) => child,
            None => *own,
        }
    }

    fn push(&mut self, parent: u32, name: Name, shape: Shape) -> u32 {
        let id = self.nodes.len() as u32;
        self.nodes.push(Node {
            name,
            parent,
            shape,
            children: Vec::new(),
            own: NONE,
            nameless: false,
            first: NONE,
            value: NONE,
            last: NONE,
        });
        if parent != NONE {
            self.node_mut(parent).children.push(id);
        }
        id
    }

    /// Takes a node and its name out of the tree. It has no children any more.
    pub fn remove(&mut self, id: u32) {
        let node = self.node_mut(id);
        let parent = node.parent;
        (node.first, node.value, node.last) = (NONE, NONE, NONE);
        let children = &mut self.node_mut(parent).children;
        // Whoever removes all begins at one of the ends.
        let at = match children.first() {
            Some(&first) if first == id => Some(0),
            _ => children.iter().rposition(|&child| child == id),
        };
        children.remove(at.expect("a child of its parent"));
        if self.node(parent).own == id {
            self.node_mut(parent).own = NONE;
            return;
        }
        let hash = self.hasher.hash_one(self.node(id).name.as_str());
        let entry = self.index.find_entry(hash, |&other| other == id);
        entry.expect("every name is in the index").remove();
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        let same = |&id: &u32| self.node(id).name.as_str() == name;
        self.index.find(self.hasher.hash_one(name), same).copied()
    }

    /// The node of the longest part of a name that there is, and how many
    /// levels are not.
    pub fn nearest(&self, name: &Name) -> (u32, usize) {
        let mut missing = 0;
        let mut part = name.as_str();
        loop {
            if let Some(id) = self.find(if part.is_empty() { "/" } else { part }) {
                return (id, missing);
            }
            (part, _) = milieu_keys::split(part);
            missing += 1;
        }
    }

    pub fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn node_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// All nodes that ever were; those that were removed have no pieces.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        0..self.nodes.len() as u32
    }
}
