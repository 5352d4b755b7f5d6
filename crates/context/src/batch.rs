//! Keys that change together, in one publication.
//!
//! A batch says what happens and not what comes of it: applied to the snapshot
//! of a context, it does there what it did to the key set.

use std::sync::Arc;

use milieu_keys::Namespace;

use crate::{
    Invalid,
    cascade::{with, without},
    coordinator::Inner,
    elements::{ArrayKeys, Part, keys_of},
    map::{Column, Datum, Map, Place},
    publish::datum,
    schema::Schema,
};

/// What happens to the key of a name in one namespace.
#[derive(Clone)]
pub enum Edit {
    Put(Column),
    Take(Namespace),
}

/// What happens to an array.
pub struct ArrayEdit {
    pub array: ArrayKeys,
    /// Whether everything that the user has of it goes first.
    pub cleared: bool,
    pub elements: Vec<(usize, Edit)>,
    /// The key of the array itself.
    pub itself: Option<Edit>,
}

/// See the [module](self).
#[derive(Default)]
pub struct Batch {
    pub keys: Vec<(Place, Edit)>,
    pub arrays: Vec<Arc<ArrayEdit>>,
}

impl ArrayEdit {
    pub fn new(array: ArrayKeys) -> Self {
        ArrayEdit {
            array,
            cleared: false,
            elements: Vec::new(),
            itself: None,
        }
    }

    /// Nothing is left of what the user has of it.
    pub fn cleared(array: ArrayKeys) -> Self {
        ArrayEdit {
            cleared: true,
            ..ArrayEdit::new(array)
        }
    }

    pub fn add(&mut self, part: Part, edit: Edit) {
        match part {
            Part::Element(index) => self.elements.push((index, edit)),
            Part::Itself => self.itself = Some(edit),
            Part::Misnamed(_) => {}
        }
    }

    /// Whether nothing happens.
    pub fn is_empty(&self) -> bool {
        !self.cleared && self.elements.is_empty() && self.itself.is_none()
    }

    /// The places of the keys that are edited.
    fn places(&self) -> impl Iterator<Item = Place> {
        let elements = self.elements.iter();
        let elements = elements.map(|(index, _)| self.array.element(*index));
        elements.chain(self.itself.iter().map(|_| self.array.place))
    }

    /// The elements that the program assigns in the place of all others.
    pub fn assigned<'a>(
        array: ArrayKeys,
        schema: &Schema,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Invalid> {
        let mut edit = ArrayEdit::cleared(array);
        let key = |name: &str, text: &str| {
            let column = schema.checked(datum(name, text, Namespace::User, None));
            Ok(Edit::Put(column?))
        };
        for (index, text) in texts.enumerate() {
            let element = key(&edit.array.element_name(index), text)?;
            edit.elements.push((index, element));
        }
        if edit.elements.is_empty() {
            edit.itself = Some(key(&edit.array.name, "")?);
        }
        Ok(edit)
    }

    /// What an assignment of one element comes to: where others give the array,
    /// the program takes it over as it is, with this element.
    fn joined(
        array: ArrayKeys,
        index: usize,
        map: &Map,
        schema: &Schema,
        column: Column,
    ) -> Result<Self, Invalid> {
        let itself = array.there(map).itself;
        if let Some(force) = array.in_force(map, itself.as_ref()) {
            let is_ours = force.giver.namespace == Namespace::User && !force.elements.is_empty();
            if !is_ours && index <= force.elements.len() {
                let text = &column.datum.text;
                let mut texts: Vec<&str> = force.elements.iter().map(|d| &*d.text).collect();
                texts.truncate(index);
                texts.push(text);
                let behind = force.elements.iter().skip(index + 1);
                texts.extend(behind.map(|datum| &*datum.text));
                return ArrayEdit::assigned(array, schema, texts.into_iter());
            }
        }
        let mut edit = ArrayEdit::new(array);
        edit.elements.push((index, Edit::Put(column)));
        Ok(edit)
    }
}

impl Batch {
    /// One array.
    pub fn of(edit: ArrayEdit) -> Self {
        Batch {
            keys: Vec::new(),
            arrays: vec![edit.into()],
        }
    }

    /// What the assignment of a key by its name comes to.
    pub fn assign(map: &Map, schema: &Schema, datum: Arc<Datum>) -> Result<Self, Invalid> {
        let column = schema.checked(datum)?;
        let datum = &column.datum;
        let place = Place::of(&datum.name);
        let edit = match ArrayKeys::of(&schema.arrays, &datum.name) {
            None => {
                return Ok(Batch {
                    keys: vec![(place, Edit::Put(column))],
                    arrays: Vec::new(),
                });
            }
            Some((array, Part::Element(index))) if datum.is_assigned() => {
                ArrayEdit::joined(array, index, map, schema, column)?
            }
            Some((array, Part::Itself)) if datum.is_assigned() => {
                ArrayEdit::assigned(array, schema, std::iter::empty())?
            }
            Some((array, part)) => {
                let mut edit = ArrayEdit::new(array);
                edit.add(part, Edit::Put(column));
                edit
            }
        };
        Ok(Batch::of(edit))
    }

    /// What the removal of the user's key by its name comes to.
    pub fn remove(schema: &Schema, name: &str) -> Self {
        let edit = Edit::Take(Namespace::User);
        match ArrayKeys::of(&schema.arrays, name) {
            None => Batch {
                keys: vec![(Place::of(name), edit)],
                arrays: Vec::new(),
            },
            Some((array, part)) => {
                let mut array = ArrayEdit::new(array);
                array.add(part, edit);
                Batch::of(array)
            }
        }
    }

    /// Adds the removal of the user's key with this name, if there is one; of an
    /// array, that of all its elements.
    pub fn remove_all(&mut self, map: &Map, schema: &Schema, name: &str) {
        let is_users = |datum: &Arc<Datum>| datum.of(Namespace::User).is_some();
        let key = |place| map.get(place).and_then(keys_of).is_some_and(is_users);
        match ArrayKeys::of(&schema.arrays, name) {
            Some((array, Part::Itself)) => {
                let there = array.there(map);
                let mut elements = there.indices.iter().map(|index| array.element(*index));
                if key(array.place) || elements.any(key) {
                    self.arrays.push(ArrayEdit::cleared(array).into());
                }
            }
            _ if key(Place::of(name)) => {
                let Batch { keys, arrays } = Batch::remove(schema, name);
                self.keys.extend(keys);
                self.arrays.extend(arrays);
            }
            _ => {}
        }
    }

    /// Whether nothing happens.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.arrays.is_empty()
    }

    /// The places of the keys that are edited, where no array is cleared.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let keys = self.keys.iter().map(|(place, _)| *place);
        keys.chain(self.arrays.iter().flat_map(|edit| edit.places()))
    }

    /// Checks that no array has become too short or too long.
    pub fn check_counts(&self, map: &Map) -> Vec<Invalid> {
        let check = |edit: &Arc<ArrayEdit>| edit.array.check_count(map).err();
        self.arrays.iter().filter_map(check).collect()
    }
}

impl Inner {
    /// Applies a batch to a map; returns the hashes of the names whose first key
    /// may be another one now.
    pub fn apply_batch(&self, map: &mut Map, batch: &Batch) -> Vec<u64> {
        let mut hashes = Vec::new();
        for (place, edit) in &batch.keys {
            self.apply(map, *place, edit.clone());
            hashes.push(place.hash());
        }
        for edit in &batch.arrays {
            self.apply_array(map, edit, &mut hashes);
        }
        hashes
    }

    /// Applies what happens to an array, and makes its column anew.
    pub fn apply_array(&self, map: &mut Map, edit: &ArrayEdit, hashes: &mut Vec<u64>) {
        let array = &edit.array;
        let mut there = array.there(map);
        if edit.cleared {
            for index in &there.indices {
                let place = array.element(*index);
                self.take(map, place, Namespace::User);
                hashes.push(place.hash());
            }
            there.itself = without(there.itself.as_ref(), Namespace::User);
        }
        for (index, edit) in &edit.elements {
            let place = array.element(*index);
            self.apply(map, place, edit.clone());
            there.add_element(*index);
            hashes.push(place.hash());
        }
        let itself = there.itself.as_ref();
        match &edit.itself {
            None => {}
            Some(Edit::Put(column)) => there.itself = Some(with(itself, column.datum.clone())),
            Some(Edit::Take(namespace)) => there.itself = without(itself, *namespace),
        }
        array.rebuild(map, there);
        hashes.push(array.place.hash());
    }
}
