//! A tree of levels in one arena.
//!
//! Both the names of the tree and the queries that wait for them stand in one:
//! a node for each level, its children in a list, and one hash table for the
//! children of all nodes.
//!
//! Properties kept:
//! - a child is found in the same time whatever the number of its siblings;
//! - a node costs its text, a slot of the arena and five bytes in the table; the
//!   place of one that has gone is used again;
//! - what is found does not depend on the keys of the hash: children come in the
//!   order in which they were added.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use milieu_keys::name::levels;

/// A place in the arena.
pub(super) type Id = u32;

/// No place.
pub(super) const NONE: Id = Id::MAX;

/// The node of `/`.
pub(super) const ROOT: Id = 0;

/// The tree; each node holds a `T`.
#[derive(Debug)]
pub(super) struct Trie<T> {
    nodes: Vec<Node<T>>,
    /// The first of the free nodes, which are linked by `next`.
    free: Id,
    children: HashTable<Id>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Node<T> {
    text: Box<str>,
    parent: Id,
    first: Id,
    next: Id,
    previous: Id,
    content: T,
}

impl<T: Default> Trie<T> {
    pub fn new() -> Trie<T> {
        Trie {
            nodes: vec![Node::new("", NONE)],
            free: NONE,
            children: HashTable::new(),
            hasher: RandomState::new(),
        }
    }

    fn hash(hasher: &RandomState, parent: Id, text: &str) -> u64 {
        hasher.hash_one((parent, text))
    }

    /// The child with this text.
    pub fn child(&self, parent: Id, text: &str) -> Option<Id> {
        let same = |&id: &Id| {
            let node = &self.nodes[id as usize];
            node.parent == parent && *node.text == *text
        };
        let hash = Self::hash(&self.hasher, parent, text);
        self.children.find(hash, same).copied()
    }

    /// The child with this text, which is made if there is none.
    pub fn child_or_new(&mut self, parent: Id, text: &str) -> Id {
        if let Some(child) = self.child(parent, text) {
            return child;
        }
        let id = self.allocate(Node::new(text, parent));
        let first = std::mem::replace(&mut self.nodes[parent as usize].first, id);
        self.nodes[id as usize].next = first;
        if first != NONE {
            self.nodes[first as usize].previous = id;
        }
        let Trie {
            nodes,
            children,
            hasher,
            ..
        } = self;
        let of = |id: Id| {
            let node = &nodes[id as usize];
            Self::hash(hasher, node.parent, &node.text)
        };
        children.insert_unique(of(id), id, |&id| of(id));
        id
    }

    fn allocate(&mut self, node: Node<T>) -> Id {
        if self.free != NONE {
            let id = self.free;
            self.free = std::mem::replace(&mut self.nodes[id as usize], node).next;
            return id;
        }
        if self.nodes.len() == self.nodes.capacity() {
            // Doubling would leave up to half of the largest part unused.
            self.nodes.reserve_exact(self.nodes.len() / 4 + 4);
        }
        let id = Id::try_from(self.nodes.len()).ok().filter(|&id| id != NONE);
        self.nodes.push(node);
        id.expect("the limit of a tree is below four thousand million levels")
    }

    /// Removes a node without children, and then its parents, as long as nobody
    /// needs them. Each parent learns which child has gone.
    pub fn prune(
        &mut self,
        mut id: Id,
        is_needed: impl Fn(Id, &T) -> bool,
        forget: impl Fn(&mut T, Id),
    ) {
        while id != ROOT {
            let node = &self.nodes[id as usize];
            if node.first != NONE || is_needed(id, &node.content) {
                return;
            }
            let parent = node.parent;
            self.remove(id);
            forget(self.content_mut(parent), id);
            id = parent;
        }
    }

    fn remove(&mut self, id: Id) {
        let vacant = Node {
            next: self.free,
            ..Node::new("", NONE)
        };
        let node = &self.nodes[id as usize];
        let hash = Self::hash(&self.hasher, node.parent, &node.text);
        let entry = self.children.find_entry(hash, |&other| other == id);
        entry.expect("every node stands in the table").remove();
        let node = std::mem::replace(&mut self.nodes[id as usize], vacant);
        if node.previous == NONE {
            self.nodes[node.parent as usize].first = node.next;
        } else {
            self.nodes[node.previous as usize].next = node.next;
        }
        if node.next != NONE {
            self.nodes[node.next as usize].previous = node.previous;
        }
        self.free = id;
    }

    pub fn content(&self, id: Id) -> &T {
        &self.nodes[id as usize].content
    }

    pub fn content_mut(&mut self, id: Id) -> &mut T {
        &mut self.nodes[id as usize].content
    }

    pub fn text(&self, id: Id) -> &str {
        &self.nodes[id as usize].text
    }

    pub fn parent(&self, id: Id) -> Id {
        self.nodes[id as usize].parent
    }

    /// The children, the newest first.
    pub fn children(&self, id: Id) -> impl Iterator<Item = Id> {
        let mut next = self.nodes[id as usize].first;
        std::iter::from_fn(move || {
            let id = next;
            next = self.nodes.get(id as usize)?.next;
            Some(id)
        })
    }

    /// The node of a canonical name.
    pub fn find(&self, name: &str) -> Option<Id> {
        levels(name).try_fold(ROOT, |id, level| self.child(id, level))
    }

    /// The node of a canonical name, which is made if there is none.
    pub fn find_or_new(&mut self, name: &str) -> Id {
        levels(name).fold(ROOT, |id, level| self.child_or_new(id, level))
    }

    /// The name of a node.
    pub fn name(&self, id: Id) -> String {
        let up = |id: &Id| Some(self.parent(*id)).filter(|&parent| parent != NONE);
        let mut path: Vec<Id> = std::iter::successors(Some(id), up).collect();
        path.pop();
        let length = path.iter().map(|&id| 1 + self.text(id).len()).sum();
        let mut name = String::with_capacity(length);
        for id in path.into_iter().rev() {
            name.push('/');
            name.push_str(self.text(id));
        }
        name
    }
}

impl<T: Default> Node<T> {
    fn new(text: &str, parent: Id) -> Node<T> {
        Node {
            text: text.into(),
            parent,
            first: NONE,
            next: NONE,
            previous: NONE,
            content: T::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Nodes come and go, and their places are used again.

    use super::*;

    #[test]
    fn names_are_found_until_nobody_needs_them() {
        let mut trie: Trie<bool> = Trie::new();
        for name in ["/a", "/a/b/c", "/a/b/d", "/x/y"] {
            let id = trie.find_or_new(name);
            *trie.content_mut(id) = true;
            assert_eq!(trie.name(id), name);
        }
        assert_eq!(trie.nodes.len(), 7);
        let gone = trie.find("/a/b/c").expect("was put");
        *trie.content_mut(gone) = false;
        trie.prune(gone, |_, &needed| needed, |_, _| {});
        assert_eq!(trie.find("/a/b/c"), None);
        assert!(trie.find("/a/b/d").is_some());
        let gone = trie.find("/a/b/d").expect("was put");
        *trie.content_mut(gone) = false;
        trie.prune(gone, |_, &needed| needed, |_, _| {});
        assert_eq!((trie.find("/a/b"), trie.find("/a")), (None, Some(1)));
        trie.find_or_new("/a/e/f/g");
        assert_eq!(trie.nodes.len(), 7, "places are used again");
        let texts: Vec<&str> = trie.children(ROOT).map(|id| trie.text(id)).collect();
        assert_eq!(texts, ["x", "a"]);
    }
}
