//! Keys and the sets that hold them.
//!
//! A [`KeySet`] is walked in the order of the hierarchy: a name is directly
//! followed by everything below it, and only then by its siblings, so `/a`,
//! `/a/b`, `/a-b` is the order although `-` sorts before `/` as a byte. Keys of
//! one name stand together, in the order of the cascade.
//!
//! Properties kept:
//! - at most one key for each pair of namespace and name;
//! - finding a key costs the same in small and in large sets, and a cascading
//!   lookup costs one search as an exact one does;
//! - inserting costs the same whether keys come sorted or not; the order is
//!   made when somebody asks for it, and kept until a key comes out of order;
//! - whoever chooses names cannot make a set slow: hashes are seeded, and nobody sees them;
//! - a key costs at most 120 bytes beyond the text of its name and value.
//!
//! ```text
//!  table  (hash of name) ──▶ id        keys    k0 k1 k2 k3 k4   as they came
//!                                      sorted  1  0  2          order of the first
//!                                      merged  1  3  0  4  2    order of all
//! ```

mod key;
mod order;

pub use key::{Key, Namespace, Origin, SourceOf};
pub use order::compare;

use hashbrown::{DefaultHashBuilder, HashTable};
use std::cmp::Ordering;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{LazyLock, OnceLock};

/// Seeded once for the process, so that an empty set costs nothing.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

fn hash(name: &str) -> u64 {
    HASHER.hash_one(name)
}

/// A set of keys, one for each namespace and name.
///
/// ```
/// use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
///
/// let name = Name::parse("/sw/pi/language")?;
/// let mut keys = KeySet::new();
/// for (namespace, value) in [(Namespace::Default, "en"), (Namespace::User, "de")] {
///     keys.insert(Key::new(namespace, &name, value, Origin::new(SourceOf::Program)));
/// }
/// assert_eq!(keys.lookup("/sw/pi/language").unwrap().value(), "de");
/// assert_eq!(keys.get(Namespace::Default, "/sw/pi/language").unwrap().value(), "en");
/// assert_eq!(keys.below("/sw").count(), 2);
/// # Ok::<(), milieu_keys::NameError>(())
/// ```
#[derive(Clone, Default)]
pub struct KeySet {
    /// As they came, without gaps; the index is the id.
    keys: Vec<Key>,
    /// Ids by the hash of the name, all namespaces of a name beside each other.
    table: HashTable<u32>,
    /// The first ids, as many as there are here, in order.
    sorted: Vec<u32>,
    /// All ids in order, if somebody asked while `sorted` lacked some.
    merged: OnceLock<Vec<u32>>,
}

impl KeySet {
    /// An empty set. It allocates nothing.
    pub const fn new() -> KeySet {
        KeySet {
            keys: Vec::new(),
            table: HashTable::new(),
            sorted: Vec::new(),
            merged: OnceLock::new(),
        }
    }

    /// An empty set with room for that many keys.
    pub fn with_capacity(keys: usize) -> KeySet {
        KeySet {
            keys: Vec::with_capacity(keys),
            table: HashTable::with_capacity(keys),
            sorted: Vec::new(),
            merged: OnceLock::new(),
        }
    }

    /// How many keys there are, in all namespaces together.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds the key and returns the one of the same namespace and name that it
    /// replaces.
    pub fn insert(&mut self, key: Key) -> Option<Key> {
        let hash = hash(key.name());
        if let Some(id) = self.find(hash, key.namespace(), key.name()) {
            return Some(std::mem::replace(&mut self.keys[id as usize], key));
        }
        let id = u32::try_from(self.keys.len()).expect("fewer than 4294967296 keys");
        if let Some(merged) = self.merged.take() {
            self.sorted = merged;
        }
        // Keys that come in order need not be sorted later.
        if self.sorted.len() == self.keys.len() {
            let last = self.sorted.last().map(|&last| &self.keys[last as usize]);
            if last.is_none_or(|last| last.order(&key) == Ordering::Less) {
                self.sorted.push(id);
            }
        }
        let keys = &self.keys;
        let rehash = |&id: &u32| self::hash(keys[id as usize].name());
        self.table.insert_unique(hash, id, rehash);
        self.keys.push(key);
        None
    }

    /// Takes the key of that namespace and name out of the set.
    pub fn remove(&mut self, namespace: Namespace, name: &str) -> Option<Key> {
        let id = self.find(hash(name), namespace, name)?;
        let last = self.keys.len() as u32 - 1;
        if let Some(merged) = self.merged.take() {
            self.sorted = merged;
        }
        if self.sorted.len() == self.keys.len() {
            // The last key takes over the id. Find both before anything moves.
            let gone = self.place(id);
            let moved = self.place(last);
            self.sorted[moved] = id;
            self.sorted.remove(gone);
        } else {
            // Not in order anyway: sort when somebody asks again.
            self.sorted.clear();
        }
        self.forget(id);
        if last != id {
            let hash = hash(self.keys[last as usize].name());
            if let Some(entry) = self.table.find_mut(hash, |&found| found == last) {
                *entry = id;
            }
        }
        let key = self.keys.swap_remove(id as usize);
        self.give_back();
        Some(key)
    }

    /// The key of exactly that namespace and canonical name.
    pub fn get(&self, namespace: Namespace, name: &str) -> Option<&Key> {
        let id = self.find(hash(name), namespace, name)?;
        Some(&self.keys[id as usize])
    }

    /// The key of that canonical name in the first namespace of the cascade
    /// that has one: proc, user, system, default.
    pub fn lookup(&self, name: &str) -> Option<&Key> {
        self.table
            .iter_hash(hash(name))
            .map(|&id| &self.keys[id as usize])
            .filter(|key| key.name() == name)
            .min_by_key(|key| key.namespace())
    }

    /// All keys by name, those of one name in the order of the cascade.
    pub fn iter(&self) -> Iter<'_> {
        self.walk(self.order())
    }

    /// The keys that a lookup can find: one for each name, in the order of
    /// [`iter`](Self::iter).
    pub fn effective(&self) -> Effective<'_> {
        Effective { keys: self.iter() }
    }

    /// The keys of a canonical name and of everything below it, in the order of
    /// [`iter`](Self::iter). The root is `/`, or empty.
    pub fn below(&self, name: &str) -> Iter<'_> {
        let order = self.order();
        let name_of = |&id: &u32| self.keys[id as usize].name();
        let start = order.partition_point(|id| compare(name_of(id), name) == Ordering::Less);
        // What is below a name directly follows it.
        let order = &order[start..];
        let end = order.partition_point(|id| order::is_below_or_same(name_of(id), name));
        self.walk(&order[..end])
    }

    /// Takes in all keys of `other`, which replace those of the same namespace
    /// and name.
    pub fn merge(&mut self, other: KeySet) {
        if self.is_empty() {
            *self = other;
        } else {
            self.extend(other);
        }
    }

    /// Removes all keys for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&Key) -> bool) {
        let order = self.order().to_vec();
        let mut kept = 0;
        let ids: Vec<Option<u32>> = self
            .keys
            .iter()
            .map(|key| {
                let id = keep(key).then_some(kept)?;
                kept += 1;
                Some(id)
            })
            .collect();
        let mut at = 0;
        self.keys.retain(|_| {
            at += 1;
            ids[at - 1].is_some()
        });
        self.table.retain(|id| match ids[*id as usize] {
            Some(new) => {
                *id = new;
                true
            }
            None => false,
        });
        self.sorted = order.iter().filter_map(|&id| ids[id as usize]).collect();
        self.merged = OnceLock::new();
        self.give_back();
    }

    /// Gives memory back once three quarters lie idle, and keeps enough that the
    /// next insertions need not ask for it again.
    fn give_back(&mut self) {
        let len = self.keys.len();
        if self.keys.capacity() / 4 <= len {
            return;
        }
        self.keys.shrink_to(len * 2);
        self.sorted.shrink_to(len * 2);
        let keys = &self.keys;
        self.table
            .shrink_to(len * 2, |&id| hash(keys[id as usize].name()));
    }

    fn find(&self, hash: u64, namespace: Namespace, name: &str) -> Option<u32> {
        let is_it = |&id: &u32| {
            let key = &self.keys[id as usize];
            key.namespace() == namespace && key.name() == name
        };
        self.table.find(hash, is_it).copied()
    }

    /// Takes an id out of the table.
    fn forget(&mut self, id: u32) {
        let hash = hash(self.keys[id as usize].name());
        if let Ok(entry) = self.table.find_entry(hash, |&found| found == id) {
            entry.remove();
        }
    }

    /// Where an id stands in `sorted`, which has all.
    fn place(&self, id: u32) -> usize {
        let key = &self.keys[id as usize];
        self.sorted
            .partition_point(|&other| self.keys[other as usize].order(key) == Ordering::Less)
    }

    fn order(&self) -> &[u32] {
        if self.sorted.len() == self.keys.len() {
            return &self.sorted;
        }
        self.merged.get_or_init(|| {
            let mut late: Vec<u32> = (self.sorted.len()..self.keys.len())
                .map(|id| id as u32)
                .collect();
            order::sort(&self.keys, &mut late);
            let mut merged = Vec::with_capacity(self.keys.len());
            let mut sorted = &self.sorted[..];
            for id in late {
                let key = &self.keys[id as usize];
                let before = sorted.partition_point(|&other| {
                    self.keys[other as usize].order(key) == Ordering::Less
                });
                let (first, rest) = sorted.split_at(before);
                merged.extend_from_slice(first);
                merged.push(id);
                sorted = rest;
            }
            merged.extend_from_slice(sorted);
            merged
        })
    }

    fn walk<'a>(&'a self, order: &'a [u32]) -> Iter<'a> {
        Iter {
            keys: &self.keys,
            order: order.iter(),
        }
    }
}

impl PartialEq for KeySet {
    fn eq(&self, other: &KeySet) -> bool {
        self.len() == other.len()
            && self
                .keys
                .iter()
                .all(|key| other.get(key.namespace(), key.name()) == Some(key))
    }
}

impl Eq for KeySet {}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl fmt::Display for KeySet {
    /// One key a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|key| writeln!(f, "{key}"))
    }
}

impl Extend<Key> for KeySet {
    fn extend<I: IntoIterator<Item = Key>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl FromIterator<Key> for KeySet {
    /// Of several keys of the same namespace and name the last one stays.
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> KeySet {
        let keys = keys.into_iter();
        let mut set = KeySet::with_capacity(keys.size_hint().0);
        set.extend(keys);
        set
    }
}

/// Keys of a set in order. Made by [`KeySet::iter`] and [`KeySet::below`].
#[derive(Clone)]
pub struct Iter<'a> {
    keys: &'a [Key],
    order: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Key;

    fn next(&mut self) -> Option<&'a Key> {
        self.order.next().map(|&id| &self.keys[id as usize])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.order.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.order.next_back().map(|&id| &self.keys[id as usize])
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The keys that cascading lookups find. Made by [`KeySet::effective`].
#[derive(Clone, Debug)]
pub struct Effective<'a> {
    keys: Iter<'a>,
}

impl<'a> Iterator for Effective<'a> {
    type Item = &'a Key;

    fn next(&mut self) -> Option<&'a Key> {
        let first = self.keys.next()?;
        // The others of that name lose to it.
        while let Some(key) = self.keys.clone().next() {
            if key.name() != first.name() {
                break;
            }
            self.keys.next();
        }
        Some(first)
    }
}

impl<'a> IntoIterator for &'a KeySet {
    type Item = &'a Key;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl IntoIterator for KeySet {
    type Item = Key;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        let order = self.order().to_vec().into_iter();
        IntoIter {
            keys: self.keys.into_iter().map(Some).collect(),
            order,
        }
    }
}

/// The keys of a set that is taken apart, in order.
#[derive(Debug)]
pub struct IntoIter {
    keys: Vec<Option<Key>>,
    order: std::vec::IntoIter<u32>,
}

impl Iterator for IntoIter {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        let id = self.order.next()?;
        self.keys[id as usize].take()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.order.size_hint()
    }
}
