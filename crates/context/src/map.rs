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

use milieu_keys::{Origin, split};

use crate::{field::Cell, hash::Hash, resolve::split_levels, trie::Trie};

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

/// The values below one parent.
#[derive(Clone)]
pub enum Row {
    Few(Arc<[Column]>),
    Many(Trie<Column>),
}

/// Most values of a row that are searched one after the other.
const FEW: usize = 16;

/// The persistent key set.
#[derive(Clone, Default)]
pub struct Map {
    rows: Trie<Row>,
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

impl Map {
    /// The row of a parent.
    #[inline]
    pub fn row(&self, parent: Hash) -> Option<&Row> {
        self.rows.get(parent)
    }

    /// The value at a place.
    pub fn get(&self, place: Place) -> Option<&Column> {
        self.row(place.parent)?.column(place.base)
    }

    /// Puts a value at its place.
    pub fn insert(&mut self, parent: Hash, column: Column) {
        self.rows.update(
            parent,
            |row| row.insert(column.clone()),
            || Row::Few(Arc::new([column.clone()])),
        );
    }

    /// Removes the value at a place; an empty row goes with it.
    pub fn remove(&mut self, place: Place) -> bool {
        if self.get(place).is_none() {
            return false;
        }
        let mut empty = false;
        let change = |row: &mut Row| {
            row.remove(place.base);
            empty = row.is_empty();
        };
        self.rows
            .update(place.parent, change, || Row::Few(Arc::new([])));
        if empty {
            self.rows.remove(place.parent);
        }
        true
    }

    /// Every value, in no particular order.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a Column)) {
        self.rows.for_each(&mut |row| match row {
            Row::Few(columns) => columns.iter().for_each(&mut f),
            Row::Many(columns) => columns.for_each(&mut f),
        });
    }
}

impl Row {
    /// A value of this row.
    #[inline]
    pub fn column(&self, base: Hash) -> Option<&Column> {
        match self {
            Row::Few(columns) => columns.iter().find(|column| column.base == base),
            Row::Many(columns) => columns.get(base),
        }
    }

    fn insert(&mut self, column: Column) {
        match self {
            Row::Few(columns) => {
                if let Some(at) = columns.iter().position(|other| other.base == column.base) {
                    Arc::make_mut(columns)[at] = column;
                } else if columns.len() < FEW {
                    *columns = columns.iter().cloned().chain([column]).collect();
                } else {
                    let all = columns.iter().cloned().chain([column]);
                    *self = Row::Many(Trie::of(all.map(|column| (column.base, column)).collect()));
                }
            }
            Row::Many(columns) => {
                columns.update(column.base, |old| *old = column.clone(), || column.clone());
            }
        }
    }

    fn remove(&mut self, base: Hash) {
        match self {
            Row::Few(columns) => {
                *columns = columns
                    .iter()
                    .filter(|column| column.base != base)
                    .cloned()
                    .collect();
            }
            Row::Many(columns) => {
                columns.remove(base);
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Row::Few(columns) => columns.is_empty(),
            Row::Many(columns) => columns.is_empty(),
        }
    }
}

/// The hash of a parent's whole name, `""` for the parent of a first level.
fn parent_hash(parent: &str) -> Hash {
    let levels = split_levels(parent);
    levels
        .iter()
        .skip(1)
        .fold(Hash::ROOT, |hash, level| hash.then(Hash::level(level)))
}
