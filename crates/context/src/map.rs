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
struct Stored(ThinArc<Head, Column>);

/// What a row begins with.
#[derive(Clone, Copy)]
pub struct Head {
    hash: Hash,
    /// How many values have rows of their own, being too many for this one.
    apart: usize,
}

/// Most values below one parent that are searched one after the other.
const FEW: usize = 16;

/// How much of a row is asked for at once: the hash and about ten values.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const EXPECTED_BYTES: usize = 512;
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE_BYTES: usize = 64;

/// The persistent key set.
#[derive(Clone, Default)]
pub struct Map {
    rows: Trie<Stored>,
}

/// The values below one parent.
#[derive(Clone, Copy)]
pub enum Row<'m> {
    Few(&'m [Column]),
    /// More than a few, each in a row of its own.
    Many(&'m Head),
}

/// A name in the form that the map looks up: parent and last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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

impl Item for Stored {
    #[inline]
    fn hash(&self) -> Hash {
        self.0.header.header.hash
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

impl Stored {
    fn of_few<'a>(hash: Hash, length: usize, at: &dyn Fn(usize) -> &'a Column) -> Stored {
        let head = Head { hash, apart: 0 };
        let columns = (0..length).map(|place| at(place).clone());
        Stored(ThinArc::from_header_and_iter(head, columns))
    }

    fn of_many(hash: Hash, apart: usize) -> Stored {
        let head = Head { hash, apart };
        Stored(ThinArc::from_header_and_iter(head, std::iter::empty()))
    }

    fn is_empty(&self) -> bool {
        self.0.header.header.apart == 0 && self.0.slice.is_empty()
    }
}

impl Head {
    /// The hash of a row that a value has for itself. No name has it, as it is
    /// that of the levels the wrong way round.
    fn hash_of(&self, base: Hash) -> Hash {
        base.then(self.hash)
    }
}

impl Map {
    /// Whether both are known to have the same keys, at a glance.
    pub fn is_copy_of(&self, other: &Map) -> bool {
        self.rows.is_copy_of(&other.rows)
    }

    /// The row of a parent.
    #[inline]
    pub fn row(&self, parent: Hash) -> Option<Row<'_>> {
        let row = &self.rows.get(parent)?.0;
        Some(match row.header.header.apart {
            0 => Row::Few(&row.slice),
            _ => Row::Many(&row.header.header),
        })
    }

    /// The value at a place.
    pub fn get(&self, place: Place) -> Option<&Column> {
        self.row(place.parent)?.column(self, place.base)
    }

    /// Puts a value at its place.
    pub fn insert(&mut self, parent: Hash, column: Column) {
        let old = match self.row(parent) {
            Some(Row::Many(&head)) => {
                let new = self.alone(&head, column.base).is_none();
                self.put_alone(&head, &column);
                let count = head.apart + usize::from(new);
                self.rows.insert(Stored::of_many(parent, count));
                return;
            }
            Some(Row::Few(columns)) => columns,
            None => &[],
        };
        let place = old.iter().position(|other| other.base == column.base);
        let place = place.unwrap_or(old.len());
        let length = old.len().max(place + 1);
        let at = |at| if at == place { &column } else { &old[at] };
        if length <= FEW {
            let row = Stored::of_few(parent, length, &at);
            self.rows.insert(row);
            return;
        }
        let old = old.to_vec();
        let head = Head {
            hash: parent,
            apart: length,
        };
        old.iter().for_each(|column| self.put_alone(&head, column));
        self.put_alone(&head, &column);
        self.rows.insert(Stored::of_many(parent, length));
    }

    /// Removes the value at a place; an empty row goes with it.
    pub fn remove(&mut self, place: Place) -> bool {
        let Some(row) = self.row(place.parent) else {
            return false;
        };
        let Some(gone) = row.column(self, place.base) else {
            return false;
        };
        let rest = match row {
            Row::Few(columns) => {
                let kept = |column: &&Column| column.base != gone.base;
                let kept: Vec<&Column> = columns.iter().filter(kept).collect();
                Stored::of_few(place.parent, kept.len(), &|at| kept[at])
            }
            Row::Many(&head) => {
                self.rows.remove(head.hash_of(place.base));
                Stored::of_many(place.parent, head.apart - 1)
            }
        };
        if rest.is_empty() {
            self.rows.remove(place.parent);
        } else {
            self.rows.insert(rest);
        }
        true
    }

    /// Puts a value in a row of its own.
    fn put_alone(&mut self, head: &Head, column: &Column) {
        self.rows
            .insert(Stored::of_few(head.hash_of(column.base), 1, &|_| column));
    }

    /// A value that has a row of its own.
    fn alone(&self, head: &Head, base: Hash) -> Option<&Column> {
        self.rows.get(head.hash_of(base))?.0.slice.first()
    }

    /// Every value, in no particular order.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a Column)) {
        self.rows
            .for_each(&mut |row| row.0.slice.iter().for_each(&mut f));
    }
}

impl<'m> Row<'m> {
    /// A value of this row of a map.
    pub fn column(self, map: &'m Map, base: Hash) -> Option<&'m Column> {
        self.column_near(map, base, &mut 0)
    }

    /// A value of this row, looked for first where it stood in another row.
    /// Rows of one kind are mostly filled in one order, and a guess fetches the
    /// value while the row's own hash is still on its way.
    #[inline]
    pub fn column_near(self, map: &'m Map, base: Hash, guess: &mut u8) -> Option<&'m Column> {
        match self {
            Row::Few(columns) => {
                let guessed = columns.get(usize::from(*guess));
                guessed
                    .filter(|column| column.base == base)
                    .or_else(|| search(columns, base, guess))
            }
            Row::Many(head) => map.alone(head, base),
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::publish;
    use crate::size::size;

    fn column(name: &str, text: &str) -> Column {
        let datum = publish::datum(name, text, Namespace::User, None);
        publish::untyped(datum)
    }

    #[test]
    fn a_row_may_have_any_number_of_values() {
        let mut map = Map::default();
        let name = |n: usize| format!("/sessions/{n}");
        let text = |map: &Map, n: usize| {
            let column = map.get(Place::of(&name(n)))?;
            Some(column.datum.text.to_string())
        };
        let count = size(3 * FEW, 3 * FEW, FEW + 4);
        for round in ["old", "new"] {
            for n in 0..count {
                map.insert(Place::of(&name(n)).parent, column(&name(n), round));
                assert_eq!(text(&map, n).as_deref(), Some(round));
            }
        }
        let mut all = 0;
        map.for_each(|_| all += 1);
        assert_eq!(all, count);
        let before = map.clone();
        for n in 0..count {
            assert!(map.remove(Place::of(&name(n))));
            assert!(!map.remove(Place::of(&name(n))));
            assert_eq!(text(&map, n), None);
            assert_eq!(text(&before, n).as_deref(), Some("new"));
        }
        assert!(map.is_copy_of(&Map::default()), "nothing is left");
    }
}
