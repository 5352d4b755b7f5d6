//! A persistent hash trie: cheap snapshots, path-copying updates.
//!
//! ```text
//!   Branch[16] ── 4 bits of the hash a level
//!     └─ Leaf: up to 32 items, and a byte of the hash of each
//! ```
//!
//! Cloning a trie is one reference count. An update copies the path to its leaf
//! where another snapshot still shares it and works in place where none does.
//! A lookup among a hundred thousand items reads three or four branches, the
//! bytes of a leaf, and the item. What is looked at on the way takes some ten
//! bytes an item and stays in the cache, so that it is the item alone that
//! waits for memory.

use std::sync::Arc;

use triomphe::ThinArc;

use crate::{hash::Hash, tags::Tags};

/// Something that is found by its hash.
pub trait Item: Clone {
    /// The hash, the same for as long as it is in a trie.
    fn hash(&self) -> Hash;

    /// The item will probably be wanted, with its hash and all that it has.
    #[inline]
    fn expect(&self) {}
}

const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;
/// Most items of a leaf. It can always be split: hashes differ in some level.
const LEAF: usize = 32;

/// The items in the order they came, then room: 1, 2, 4 … 32 places.
type Leaf<T> = ThinArc<LeafTags, Option<T>>;
type LeafTags = Tags<{ LEAF / 8 }>;

#[derive(Clone)]
enum Node<T> {
    Empty,
    Leaf(Leaf<T>),
    Branch(Arc<[Node<T>; WIDTH]>),
}

/// A persistent set of items by their hashes.
#[derive(Clone)]
pub struct Trie<T> {
    root: Node<T>,
}

impl<T> Trie<T> {
    /// Whether both are known to have the same items: one is a copy of the other,
    /// and neither has changed since. Looks at nothing but the roots.
    pub fn is_copy_of(&self, other: &Trie<T>) -> bool {
        match (&self.root, &other.root) {
            (Node::Empty, Node::Empty) => true,
            (Node::Leaf(one), Node::Leaf(other)) => one.ptr() == other.ptr(),
            (Node::Branch(one), Node::Branch(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Trie { root: Node::Empty }
    }
}

/// The child of a branch that a hash leads to.
#[allow(clippy::cast_possible_truncation)]
fn child(hash: Hash, level: u32) -> usize {
    let levels = u64::BITS / BITS;
    let (bits, level) = if level < levels {
        (hash.main, level)
    } else {
        (hash.check, level - levels)
    };
    (bits >> (BITS * level)) as usize % WIDTH
}

/// The place of an item in a leaf.
#[inline]
fn find<T: Item>(tags: &LeafTags, places: &[Option<T>], hash: Hash) -> Option<usize> {
    tags.find(hash, |at| {
        let Some(Some(item)) = places.get(at) else {
            return false;
        };
        item.expect();
        item.hash() == hash
    })
}

fn items<T>(leaf: &Leaf<T>) -> impl Iterator<Item = &T> {
    leaf.slice.iter().flatten()
}

fn leaf<T: Item>(items: Vec<T>) -> Node<T> {
    if items.is_empty() {
        return Node::Empty;
    }
    let tags = Tags::of(items.iter().map(Item::hash));
    let mut places: Vec<Option<T>> = items.into_iter().map(Some).collect();
    places.resize(places.len().next_power_of_two(), None);
    Node::Leaf(ThinArc::from_header_and_iter(tags, places.into_iter()))
}

/// Distributes items over leaves, and over branches where they are too many.
fn build<T: Item>(items: Vec<T>, level: u32) -> Node<T> {
    if items.len() <= LEAF {
        return leaf(items);
    }
    let mut parts: [Vec<T>; WIDTH] = std::array::from_fn(|_| Vec::new());
    for item in items {
        parts[child(item.hash(), level)].push(item);
    }
    Node::Branch(Arc::new(parts.map(|part| build(part, level + 1))))
}

impl<T: Item> Trie<T> {
    /// The item with this hash.
    #[inline]
    pub fn get(&self, hash: Hash) -> Option<&T> {
        let mut node = &self.root;
        let mut level = 0;
        loop {
            match node {
                Node::Branch(children) => {
                    node = &children[child(hash, level)];
                    level += 1;
                }
                Node::Leaf(leaf) => {
                    let at = find(&leaf.header.header, &leaf.slice, hash)?;
                    return leaf.slice[at].as_ref();
                }
                Node::Empty => return None,
            }
        }
    }

    /// Puts an item in, in the place of one with the same hash.
    pub fn insert(&mut self, item: T) {
        let hash = item.hash();
        let (node, level) = self.leaf_mut(hash);
        let Node::Leaf(leaf) = node else {
            *node = build(vec![item], level);
            return;
        };
        let known = find(&leaf.header.header, &leaf.slice, hash);
        let at = known.unwrap_or_else(|| items(leaf).count());
        if at == LEAF {
            let mut all: Vec<T> = items(leaf).cloned().collect();
            all.push(item);
            *node = build(all, level);
            return;
        }
        let mut item = Some(item);
        if at < leaf.slice.len() {
            in_place(leaf, |tags, places| {
                tags.set(at, hash);
                places[at] = item.take();
            });
        }
        if item.is_some() {
            let mut tags = leaf.header.header;
            tags.set(at, hash);
            let place = |place| match place == at {
                true => item.take(),
                false => leaf.slice.get(place).cloned().flatten(),
            };
            let size = leaf.slice.len().max((at + 1).next_power_of_two());
            *leaf = ThinArc::from_header_and_iter(tags, (0..size).map(place));
        }
    }

    /// The leaf where a hash belongs, or where there is none yet, and its level.
    fn leaf_mut(&mut self, hash: Hash) -> (&mut Node<T>, u32) {
        let mut node = &mut self.root;
        let mut level = 0;
        while let Node::Branch(children) = node {
            node = &mut Arc::make_mut(children)[child(hash, level)];
            level += 1;
        }
        (node, level)
    }

    /// Removes the item with this hash; says whether there was one.
    pub fn remove(&mut self, hash: Hash) -> bool {
        // Looking first keeps a removal of what is not there from copying.
        self.get(hash).is_some() && remove(&mut self.root, hash, 0)
    }

    /// Every item, in no order that means anything.
    pub fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a T)) {
        walk(&self.root, f);
    }
}

/// Changes a leaf where nobody shares it.
fn in_place<T>(leaf: &mut Leaf<T>, change: impl FnOnce(&mut LeafTags, &mut [Option<T>])) {
    leaf.with_arc_mut(|leaf| {
        if let Some(leaf) = triomphe::Arc::get_mut(leaf) {
            let mut tags = *leaf.header();
            change(&mut tags, leaf.slice_mut());
            *leaf.header_mut() = tags;
        }
    });
}

fn remove<T: Item>(node: &mut Node<T>, hash: Hash, level: u32) -> bool {
    match node {
        Node::Empty => false,
        Node::Leaf(old) => {
            let kept = items(old).filter(|item| item.hash() != hash);
            let kept: Vec<T> = kept.cloned().collect();
            let removed = kept.len() < items(old).count();
            *node = leaf(kept);
            removed
        }
        Node::Branch(children) => {
            let children = Arc::make_mut(children);
            let removed = remove(&mut children[child(hash, level)], hash, level + 1);
            // Few items fold back into one leaf, so that what is forgotten is given back.
            let few = children.iter().try_fold(0, |sum, child| match child {
                Node::Empty => Some(sum),
                Node::Leaf(leaf) => Some(sum + items(leaf).count()),
                Node::Branch(_) => None,
            });
            if few.is_some_and(|count| count <= LEAF / 2) {
                let leaves = children.iter().filter_map(|child| match child {
                    Node::Leaf(leaf) => Some(items(leaf).cloned()),
                    _ => None,
                });
                *node = leaf(leaves.flatten().collect());
            }
            removed
        }
    }
}

fn walk<'a, T>(node: &'a Node<T>, f: &mut dyn FnMut(&'a T)) {
    match node {
        Node::Empty => {}
        Node::Leaf(leaf) => items(leaf).for_each(f),
        Node::Branch(children) => children.iter().for_each(|child| walk(child, f)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::size::size;
    use std::collections::HashMap;

    /// A key on its hash, and what is known of it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Entry(Hash, u64, u64);

    impl Item for Entry {
        fn hash(&self) -> Hash {
            self.0
        }
    }

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
        let steps = size(4000, 120, 40);
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
                    trie.insert(Entry(hash, key, step));
                    model.insert(key, step);
                }
                if step % size(60, 60, 13) == 0 {
                    kept.push((trie.clone(), model.clone()));
                }
            }
            for (trie, model) in kept {
                let mut found = 0;
                trie.for_each(&mut |Entry(_, key, value)| {
                    assert_eq!(model.get(key), Some(value));
                    found += 1;
                });
                assert_eq!(found, model.len());
                for (key, value) in &model {
                    let hash = hash_of(*key, shape);
                    assert_eq!(trie.get(hash), Some(&Entry(hash, *key, *value)));
                }
            }
        }
    }

    #[test]
    fn removing_everything_leaves_nothing() {
        let mut trie = Trie::default();
        let keys = size(100, 100, 30);
        for key in 0..keys {
            trie.insert(Entry(hash_of(key, 0), key, 0));
        }
        for key in 0..keys {
            assert!(trie.remove(hash_of(key, 0)));
        }
        assert!(matches!(trie.root, Node::Empty));
    }
}
