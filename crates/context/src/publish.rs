//! Keys on their way into the key set: checked, typed, published.
//!
//! Whatever is in the key set keeps the rules of every environment that names
//! it, also where another key of its name hides it: it is checked when it
//! comes, or else when the environment does. So a key that surfaces, because
//! the one above it went, needs no more than its type.

use std::sync::Arc;

use milieu_keys::{KeySet, Namespace, Origin};

use crate::{
    Invalid, Kind,
    batch::{Batch, Edit},
    cascade::{with, without},
    coordinator::{Inner, Published},
    elements::{ArrayKeys, part_of},
    field::Cell,
    map::{Column, Datum, Map, Place},
    schema::{Schema, TEXT, ValueSpec, checked},
    sync::lock,
};

/// A key.
pub fn datum(name: &str, text: &str, namespace: Namespace, origin: Option<Origin>) -> Arc<Datum> {
    Arc::new(Datum {
        name: name.into(),
        text: text.into(),
        origin,
        namespace,
        below: None,
        elements: None,
    })
}

/// The keys as the map holds them, without types.
pub fn root_of(keys: &KeySet) -> Map {
    let mut root = Map::default();
    let mut all = keys.iter().rev().peekable();
    // Those of one name follow each other, here the last of the cascade first.
    let mut below: Option<Arc<Datum>> = None;
    while let Some(key) = all.next() {
        let first = Arc::new(Datum {
            name: key.name().into(),
            text: key.value().into(),
            origin: Some(key.origin().clone()),
            namespace: key.namespace(),
            below: below.take(),
            elements: None,
        });
        if all.peek().is_some_and(|next| next.name() == key.name()) {
            below = Some(first);
        } else {
            root.insert(Place::of(key.name()).parent, untyped(first));
        }
    }
    root
}

/// A text without a type, as files give it.
pub fn untyped(datum: Arc<Datum>) -> Column {
    Column {
        base: Place::of(&datum.name).base,
        tag: TEXT,
        cell: Cell::zero(Kind::Text, &datum.text),
        datum,
    }
}

/// Whether the number of an array's elements matters. When the user's keys go,
/// nobody asks: what is left of them is what there is.
#[derive(Clone, Copy)]
pub enum Counts {
    Checked,
    Any,
}

/// A publication of keys, for the context that made it.
pub struct Keys {
    pub published: Published,
    pub root: Map,
    pub batch: Batch,
    /// The names that it may have given another first key.
    pub hashes: Vec<u64>,
}

impl Inner {
    /// A key that keeps the rules of its name, with its type.
    pub fn checked(&self, datum: Arc<Datum>) -> Result<Column, Invalid> {
        lock(&self.schema).checked(datum)
    }

    /// Puts a key into a map, in the place of the one of its namespace.
    fn put(&self, map: &mut Map, place: Place, column: Column) {
        let old = map.get(place).map(|old| &old.datum);
        let given = Arc::as_ptr(&column.datum);
        let first = with(old, column.datum);
        let column = if Arc::as_ptr(&first) == given {
            Column {
                datum: first,
                ..column
            }
        } else {
            self.surfaced(first)
        };
        map.insert(place.parent, column);
    }

    /// Takes the key of a namespace out of a map. The next one surfaces.
    pub fn take(&self, map: &mut Map, place: Place, namespace: Namespace) {
        let Some(old) = map.get(place).map(|old| &old.datum) else {
            return;
        };
        match without(Some(old), namespace) {
            None => {
                map.remove(place);
            }
            Some(first) if Arc::ptr_eq(&first, old) => {}
            Some(first) => map.insert(place.parent, self.surfaced(first)),
        }
    }

    /// A key that was checked when it came, with its type.
    fn surfaced(&self, datum: Arc<Datum>) -> Column {
        let checked = self.checked(datum.clone());
        checked.unwrap_or_else(|_| untyped(datum))
    }

    /// Publishes the user's key of a name that is no part of an array.
    pub fn publish_key(&self, place: Place, edit: Edit) -> (Published, Map) {
        let _order = lock(&self.writers);
        // Only writers change the root, so it is still this one at the swap.
        let mut root = self.state().live.root.clone();
        self.apply(&mut root, place, edit);
        let ours = root.clone();
        (self.publish_root(root, &[place.hash()]), ours)
    }

    /// Publishes what `make` finds to do about the keys as they are, if it is
    /// anything at all.
    ///
    /// # Errors
    ///
    /// As `make`, and where an array would be too short or too long. Nothing has
    /// changed then.
    pub fn publish_batch(
        &self,
        counts: Counts,
        make: impl FnOnce(&Map, &Schema) -> Result<Batch, Invalid>,
    ) -> Result<Option<Keys>, Invalid> {
        let _order = lock(&self.writers);
        let mut root = self.state().live.root.clone();
        let batch = make(&root, &lock(&self.schema))?;
        if batch.is_empty() {
            return Ok(None);
        }
        let hashes = self.apply_batch(&mut root, &batch);
        if let (Counts::Checked, Some(invalid)) = (counts, batch.check_counts(&root).pop()) {
            return Err(invalid);
        }
        let published = self.publish_root(root.clone(), &hashes);
        Ok(Some(Keys {
            published,
            root,
            batch,
            hashes,
        }))
    }

    /// Whether [`publish_batch`](Inner::publish_batch) would publish this,
    /// counting elements.
    ///
    /// # Errors
    ///
    /// As it.
    pub fn check_batch(
        &self,
        make: impl FnOnce(&Map, &Schema) -> Result<Batch, Invalid>,
    ) -> Result<(), Invalid> {
        let mut root = self.state().live.root.clone();
        let batch = make(&root, &lock(&self.schema))?;
        self.apply_batch(&mut root, &batch);
        batch.check_counts(&root).pop().map_or(Ok(()), Err)
    }

    /// Publishes a root. Called by writers, in their order, with the hash of
    /// every name whose first key is another one than before.
    pub fn publish_root(&self, root: Map, hashes: &[u64]) -> Published {
        let mut state = self.state();
        let generation = state.live.generation + 1;
        let old = std::mem::replace(&mut state.live.root, root);
        state.keys.push_all(generation, hashes);
        let pending = self.announce(state, generation);
        drop(old);
        Published {
            generation,
            pending,
            acting: false,
        }
    }

    /// Applies an edit to a map.
    pub fn apply(&self, map: &mut Map, place: Place, edit: Edit) {
        match edit {
            Edit::Put(column) => self.put(map, place, column),
            Edit::Take(namespace) => self.take(map, place, namespace),
        }
    }
}

impl Schema {
    /// A key that keeps the rules of every value with this name, with its type.
    pub fn checked(&self, datum: Arc<Datum>) -> Result<Column, Invalid> {
        let mut column = untyped(datum);
        let datum = column.datum.clone();
        for spec in self.values_of(&datum.name).filter(|spec| !spec.is_array()) {
            type_column(&mut column, spec)?;
        }
        let part = part_of(&datum.name).filter(|_| !self.arrays.is_empty());
        if let Some((name, part)) = part {
            ArrayKeys::find(&self.arrays, &name)
                .map_or(Ok(()), |array| array.check(part, &datum))?;
        }
        Ok(column)
    }
}

/// Gives a key the type of a value, whose rules it keeps.
pub fn type_column(column: &mut Column, spec: &ValueSpec) -> Result<(), Invalid> {
    column.cell = check(spec, &column.datum)?;
    column.tag = spec.tag;
    Ok(())
}

/// The cell of a key that keeps the rules.
pub fn check(spec: &ValueSpec, datum: &Datum) -> Result<Cell, Invalid> {
    checked(spec.kind, &spec.rules, &datum.text).map_err(|violation| Invalid {
        name: datum.name.to_string(),
        violation,
        origin: datum.origin.clone(),
    })
}
