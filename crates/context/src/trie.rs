//! A persistent hash trie: cheap snapshots, path-copying updates.
//!
//! ```text
//!   Branch[16] ── 4 bits of the hash a level
//!     └─ Leaf: an open-addressed table of up to 32 items, contiguous
//! ```
//!
//! Cloning a trie is one reference count. An update copies the path to its leaf
//! where another snapshot still shares it and works in place where none does.
//! A lookup among a hundred thousand items reads three or four branches, which
//! stay in the cache, and one entry of a leaf.

use std::sync::Arc;

use crate::hash::Hash;

const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;
/// Most items of a leaf that can still be split.
const LEAF: usize = 32;
const LEVELS: u32 = u64::BITS / BITS;

#[derive(Clone)]
enum Node<T> {
    Empty,
    /// A power of two of places, at most four fifths of them taken; an item
    /// stands at the first free place from its hash's upper half on.
    Leaf(Arc<[Option<(Hash, T)>]>),
    Branch(Arc<[Node<T>; WIDTH]>),
}

/// A persistent map from hashes to items.
#[derive(Clone)]
pub struct Trie<T> {
    root: Node<T>,
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Trie { root: Node::Empty }
    }
}

#[allow(clippy::cast_possible_truncation)]
fn child(hash: u64, level: u32) -> usize {
    (hash >> (BITS * level)) as usize % WIDTH
}

/// Where an item's search in a leaf begins.
#[allow(clippy::cast_possible_truncation)]
fn first(hash: Hash, places: usize) -> usize {
    (hash.check as usize) & (places - 1)
}

fn find<T>(places: &[Option<(Hash, T)>], hash: Hash) -> Result<usize, usize> {
    let mut at = first(hash, places.len());
    loop {
        match &places[at] {
            Some((other, _)) if *other == hash => return Ok(at),
            Some(_) => at = (at + 1) & (places.len() - 1),
            None => return Err(at),
        }
    }
}

fn leaf<T>(items: Vec<(Hash, T)>) -> Node<T> {
    if items.is_empty() {
        return Node::Empty;
    }
    let count = (items.len() * 5 / 4 + 1).next_power_of_two();
    let mut places: Vec<Option<(Hash, T)>> = (0..count).map(|_| None).collect();
    for item in items {
        if let Err(at) = find(&places, item.0) {
            places[at] = Some(item);
        }
    }
    Node::Leaf(places.into())
}

fn items<T: Clone>(places: &[Option<(Hash, T)>]) -> Vec<(Hash, T)> {
    places.iter().flatten().cloned().collect()
}

/// Distributes items over leaves, and over branches where they are too many.
fn build<T>(items: Vec<(Hash, T)>, level: u32) -> Node<T> {
    if items.len() <= LEAF || level == LEVELS {
        return leaf(items);
    }
    let mut parts: [Vec<(Hash, T)>; WIDTH] = std::array::from_fn(|_| Vec::new());
    for (hash, item) in items {
        parts[child(hash.main, level)].push((hash, item));
    }
    Node::Branch(Arc::new(parts.map(|part| build(part, level + 1))))
}

impl<T: Clone> Trie<T> {
    /// A trie of these items.
    pub fn of(items: Vec<(Hash, T)>) -> Self {
        Trie {
            root: build(items, 0),
        }
    }

    /// The item with this hash.
    #[inline]
    pub fn get(&self, hash: Hash) -> Option<&T> {
        let mut node = &self.root;
        let mut rest = hash.main;
        loop {
            match node {
                Node::Branch(children) => {
                    node = &children[child(rest, 0)];
                    rest >>= BITS;
                }
                Node::Leaf(places) => {
                    return find(places, hash)
                        .ok()
                        .and_then(|at| Some(&places[at].as_ref()?.1));
                }
                Node::Empty => return None,
            }
        }
    }

    /// Changes the item with this hash, or inserts what `fresh` makes.
    pub fn update(&mut self, hash: Hash, change: impl FnOnce(&mut T), fresh: impl FnOnce() -> T) {
        let mut node = &mut self.root;
        let mut level = 0;
        while let Node::Branch(children) = node {
            node = &mut Arc::make_mut(children)[child(hash.main, level)];
            level += 1;
        }
        let Node::Leaf(places) = node else {
            *node = leaf(vec![(hash, fresh())]);
            return;
        };
        match find(places, hash) {
            Ok(at) => {
                if let Some((_, item)) = &mut Arc::make_mut(places)[at] {
                    change(item);
                }
            }
            Err(at) => {
                let count = places.iter().flatten().count() + 1;
                if count * 5 / 4 < places.len() && (count <= LEAF || level == LEVELS) {
                    Arc::make_mut(places)[at] = Some((hash, fresh()));
                } else {
                    let mut all = items(places);
                    all.push((hash, fresh()));
                    *node = build(all, level);
                }
            }
        }
    }

    /// Removes the item with this hash; says whether there was one.
    pub fn remove(&mut self, hash: Hash) -> bool {
        // Looking first keeps a removal of what is not there from copying.
        self.get(hash).is_some() && remove(&mut self.root, hash, 0)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        matches!(self.root, Node::Empty)
    }

    /// Every item, in no order that means anything.
    pub fn for_each<'a>(&'a self, f: &mut impl FnMut(&'a T)) {
        walk(&self.root, f);
    }
}

fn remove<T: Clone>(node: &mut Node<T>, hash: Hash, level: u32) -> bool {
    match node {
        Node::Empty => false,
        Node::Leaf(places) => {
            let mut kept = items(places);
            let before = kept.len();
            kept.retain(|(other, _)| *other != hash);
            let removed = kept.len() < before;
            *node = leaf(kept);
            removed
        }
        Node::Branch(children) => {
            let children = Arc::make_mut(children);
            let removed = remove(&mut children[child(hash.main, level)], hash, level + 1);
            // Few items fold back into one leaf, so that what is forgotten is given back.
            let few = children.iter().try_fold(0, |sum, child| match child {
                Node::Empty => Some(sum),
                Node::Leaf(places) => Some(sum + places.iter().flatten().count()),
                Node::Branch(_) => None,
            });
            if few.is_some_and(|count| count <= LEAF / 2) {
                let leaves = children.iter().filter_map(|child| match child {
                    Node::Leaf(places) => Some(items(places)),
                    _ => None,
                });
                *node = leaf(leaves.flatten().collect());
            }
            removed
        }
    }
}

fn walk<'a, T>(node: &'a Node<T>, f: &mut impl FnMut(&'a T)) {
    match node {
        Node::Empty => {}
        Node::Leaf(places) => places.iter().flatten().for_each(|(_, item)| f(item)),
        Node::Branch(children) => children.iter().for_each(|child| walk(child, f)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// A small generator: the tests decide their randomness.
    fn next(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    /// Many keys on few hashes: every level and every kind of collision occurs.
    fn hash_of(key: u64, shape: u64) -> Hash {
        let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match shape {
            0 => Hash {
                main: spread,
                check: key,
            },
            1 => Hash {
                main: key % 3,
                check: key,
            },
            2 => Hash {
                main: (key % 7) << 60,
                check: key << 32,
            },
            _ => Hash {
                main: 5,
                check: spread,
            },
        }
    }

    #[test]
    fn agrees_with_a_hash_map_and_snapshots_stay() {
        let steps = if cfg!(miri) { 120 } else { 4000 };
        for shape in 0..4 {
            let mut seed = 0x1234_5678 + shape;
            let mut trie = Trie::default();
            let mut model = HashMap::new();
            let mut kept = Vec::new();
            for step in 0..steps {
                let key = next(&mut seed) % 300;
                let hash = hash_of(key, shape);
                if next(&mut seed) % 3 == 0 {
                    assert_eq!(
                        trie.remove(hash),
                        model.remove(&key).is_some(),
                        "seed {seed}"
                    );
                } else {
                    trie.update(hash, |item: &mut (u64, u64)| item.1 = step, || (key, step));
                    model.insert(key, step);
                }
                if step % 60 == 0 {
                    kept.push((trie.clone(), model.clone()));
                }
            }
            for (trie, model) in kept {
                let mut found = 0;
                trie.for_each(&mut |(key, value)| {
                    assert_eq!(model.get(key), Some(value));
                    found += 1;
                });
                assert_eq!(found, model.len());
                for (key, value) in &model {
                    let item = trie.get(hash_of(*key, shape));
                    assert_eq!(item, Some(&(*key, *value)));
                }
            }
        }
    }

    #[test]
    fn removing_everything_leaves_nothing() {
        let mut trie = Trie::default();
        for key in 0..100 {
            trie.update(hash_of(key, 0), |_| (), || key);
        }
        for key in 0..100 {
            assert!(trie.remove(hash_of(key, 0)));
        }
        assert!(trie.is_empty());
    }
}
