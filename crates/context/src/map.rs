//! The key set of a coordinator: effective values by their names, typed, persistent.
//!
//! A name is split into its parent and its last level. Names with one parent
//! share a *row*, so that entering a layer looks up one row and then finds the
//! values in it side by side:
//!
//! ```text
//!   rows:  "/sw/pi/anna" ─▶ [ "language": cell, datum │ "theme": cell, datum ]
//! ```
//!
//! The split is one of names alone, so a name has exactly one place, whichever
//! pattern of whichever environment it was made from.

use std::sync::Arc;

use milieu_keys::{Namespace, Origin, split};
use triomphe::ThinArc;

use crate::{
    elements::Elements,
    field::Cell,
    hash::Hash,
    resolve::split_levels,
    trie::{Item, Trie},
};

/// The type of a stored value, interned by the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u32);

/// What is known of a value beside its cell.
#[derive(Debug)]
pub struct Datum {
    /// The canonical name.
    pub name: Box<str>,
    /// The value's text, which string cells point into.
    pub text: Box<str>,
    /// Who said so; absent where the program assigned it.
    pub origin: Option<Origin>,
    /// What the program assigns is the user's.
    pub namespace: Namespace,
    /// The key of this name that comes into force when this one goes.
    pub below: Option<Arc<Datum>>,
    /// What an array owns; absent in what is a key.
    pub elements: Option<Box<Elements>>,
}

/// One value.
#[derive(Clone)]
pub struct Column {
    /// The hash of the name's last level.
    pub base: Hash,
    pub cell: Cell,
    pub tag: Tag,
    pub datum: Arc<Datum>,
}

/// The values below one parent, in one piece of memory with its hash: entering
/// a session among many waits for this, and for nothing else.
#[derive(Clone)]
struct Few(ThinArc<Hash, Column>);

/// Most values below one parent that are searched one after the other.
const FEW: usize = 16;

/// How much of a row is asked for at once: the hash and about ten values.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const EXPECTED_BYTES: usize = 512;
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE_BYTES: usize = 64;

/// More values below one parent than that.
#[derive(Clone)]
struct Many {
    parent: Hash,
    columns: Trie<Column>,
}

/// The persistent key set.
#[derive(Clone, Default)]
pub struct Map {
    few: Trie<Few>,
    /// Parents that are not among the few.
    many: Trie<Many>,
}

/// The values below one parent.
#[derive(Clone, Copy)]
pub enum Row<'m> {
    Few(&'m [Column]),
    Many(&'m Trie<Column>),
}

/// A name in the form that the map looks up: parent and last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place {
    pub parent: Hash,
    pub base: Hash,
}

impl Place {
    /// The place of a canonical name.
    pub fn of(name: &str) -> Place {
        let (parent, base) = split(name);
        Place {
            parent: parent_hash(parent),
            base: Hash::level(base),
        }
    }

    /// The hash of the whole name.
    pub fn hash(self) -> u64 {
        self.parent.then(self.base).main
    }
}

impl Item for Few {
    #[inline]
    fn hash(&self) -> Hash {
        self.0.header.header
    }

    /// A session has several values, and the waits for them are one wait if the
    /// machine is told of them at once.
    #[inline]
    fn expect(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

            let start = self.0.as_ptr().cast::<i8>();
            for line in 0..EXPECTED_BYTES / LINE_BYTES {
                // SAFETY: this reads nothing. It is a hint, which is void where
                // the address is nobody's: behind the end of a short row.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE_BYTES)) };
            }
        }
    }
}

impl Item for Many {
    fn hash(&self) -> Hash {
        self.parent
    }
}

impl Item for Column {
    fn hash(&self) -> Hash {
        self.base
    }
}

impl Few {
    fn new(parent: Hash, columns: impl ExactSizeIterator<Item = Column>) -> Few {
        Few(ThinArc::from_header_and_iter(parent, columns))
    }

    fn columns(&self) -> &[Column] {
        &self.0.slice
    }
}

impl Map {
    /// Whether both are known to have the same keys, at a glance.
    pub fn is_copy_of(&self, other: &Map) -> bool {
        self.few.is_copy_of(&other.few) && self.many.is_copy_of(&other.many)
    }

    /// The row of a parent.
    #[inline]
    pub fn row(&self, parent: Hash) -> Option<Row<'_>> {
        match self.few.get(parent) {
            Some(few) => Some(Row::Few(few.columns())),
            None => Some(Row::Many(&self.many.get(parent)?.columns)),
        }
    }

    /// The value at a place.
    pub fn get(&self, place: Place) -> Option<&Column> {
        self.row(place.parent)?.column(place.base)
    }

    /// Puts a value at its place.
    pub fn insert(&mut self, parent: Hash, column: Column) {
        let named = |many: &mut Many| many.columns.insert(column.clone());
        if self.many.change(parent, named) {
            return;
        }
        let old = self.few.get(parent).map_or(&[][..], Few::columns);
        let place = old.iter().position(|other| other.base == column.base);
        let place = place.unwrap_or(old.len());
        let all = (0..old.len().max(place + 1)).map(|at| match at == place {
            true => column.clone(),
            false => old[at].clone(),
        });
        if all.len() <= FEW {
            self.few.insert(Few::new(parent, all));
        } else {
            let columns = Trie::of(all.collect());
            self.few.remove(parent);
            self.many.insert(Many { parent, columns });
        }
    }

    /// Removes the value at a place; an empty row goes with it.
    pub fn remove(&mut self, place: Place) -> bool {
        if self.get(place).is_none() {
            return false;
        }
        let mut empty = false;
        let without = |many: &mut Many| {
            many.columns.remove(place.base);
            empty = many.columns.is_empty();
        };
        if self.many.change(place.parent, without) {
            if empty {
                self.many.remove(place.parent);
            }
        } else if let Some(few) = self.few.get(place.parent) {
            let mut kept = few.columns().to_vec();
            kept.retain(|column| column.base != place.base);
            if kept.is_empty() {
                self.few.remove(place.parent);
            } else {
                self.few.insert(Few::new(place.parent, kept.into_iter()));
            }
        }
        true
    }

    /// Every value, in no particular order.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a Column)) {
        self.few
            .for_each(&mut |few| few.columns().iter().for_each(&mut f));
        self.many
            .for_each(&mut |many| many.columns.for_each(&mut f));
    }
}

impl<'m> Row<'m> {
    /// A value of this row.
    pub fn column(self, base: Hash) -> Option<&'m Column> {
        self.column_near(base, &mut 0)
    }

    /// A value of this row, looked for first where it stood in another row.
    /// Rows of one kind are mostly filled in one order, and a guess fetches the
    /// value while the row's own hash is still on its way.
    #[inline]
    pub fn column_near(self, base: Hash, guess: &mut u8) -> Option<&'m Column> {
        match self {
            Row::Few(columns) => {
                let guessed = columns.get(usize::from(*guess));
                guessed
                    .filter(|column| column.base == base)
                    .or_else(|| search(columns, base, guess))
            }
            Row::Many(columns) => columns.get(base),
        }
    }
}

#[allow(clippy::cast_possible_truncation)]
fn search<'m>(columns: &'m [Column], base: Hash, guess: &mut u8) -> Option<&'m Column> {
    let at = columns.iter().position(|column| column.base == base)?;
    *guess = at as u8;
    Some(&columns[at])
}

/// The hash of a parent's whole name, `""` for the parent of a first level.
fn parent_hash(parent: &str) -> Hash {
    let levels = split_levels(parent);
    levels
        .iter()
        .skip(1)
        .fold(Hash::ROOT, |hash, level| hash.then(Hash::level(level)))
}
