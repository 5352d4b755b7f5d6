//! Assignments (CoElektra, III-C).

use milieu_keys::{Namespace, Violation};

use crate::{
    Invalid,
    batch::{ArrayEdit, Batch, Edit},
    core::{Core, Pending},
    elements::ArrayKeys,
    map::{Column, Datum, Map, Place},
    publish::{Counts, Keys, datum},
    resolve::Layers,
    schema::{Schema, ValueSpec, checked},
    sync::lock,
};

/// How the name of a value that is assigned stands to those of others.
enum Company {
    /// It has the rules of its own value, and of others that were checked.
    Single,
    /// A layer's value has made it the name of a part of an array.
    Part,
}

impl Core {
    /// Assigns a value of this environment under its name as of now.
    ///
    /// # Errors
    ///
    /// Refuses what breaks the rules of the value; nothing has changed then.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes, and the value is
    /// no array.
    pub unsafe fn assign(
        &mut self,
        environment: *mut u8,
        index: usize,
        text: &str,
    ) -> Result<(), Invalid> {
        let spec = self.plan.values[index].spec.clone();
        let layers = Layers(&self.layers);
        let (place, name) = (spec.own.place(layers), spec.own.name(layers));
        let datum = datum(&name, text, Namespace::User, None);
        let invalid = |violation| Invalid {
            name: datum.name.to_string(),
            violation,
            origin: None,
        };
        let cell = checked(spec.kind, &spec.rules, &datum.text).map_err(invalid)?;
        if let Company::Part = self.check_others(&spec, &datum).map_err(invalid)? {
            let assign = |map: &Map, schema: &Schema| Batch::assign(map, schema, datum);
            // SAFETY: as the caller vouches.
            return unsafe { self.publish_batch(environment, Counts::Checked, assign) };
        }
        let column = Column {
            base: place.base,
            tag: spec.tag,
            cell,
            datum,
        };
        // SAFETY: as the caller vouches.
        unsafe { self.publish_value(environment, place, Some(column)) };
        Ok(())
    }

    /// Assigns all elements of an array of this environment, under its name as
    /// of now, in one publication.
    ///
    /// # Errors
    ///
    /// Refuses elements that break their rules, and too few or too many of them;
    /// nothing has changed then.
    ///
    /// # Safety
    ///
    /// As [`assign`](Core::assign), but that the value is an array.
    pub unsafe fn assign_all<'a>(
        &mut self,
        environment: *mut u8,
        index: usize,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<(), Invalid> {
        let name = self.name_of(index);
        let assign = |_: &Map, schema: &Schema| match ArrayKeys::find(&schema.arrays, &name) {
            Some(array) => Ok(Batch::of(ArrayEdit::assigned(array, schema, texts)?)),
            None => unreachable!("the array was registered with its environment"),
        };
        // SAFETY: as the caller vouches.
        unsafe { self.publish_batch(environment, Counts::Checked, assign) }
    }

    /// Checks the rules of other values that have the same name right now and
    /// read what is assigned as it is.
    fn check_others(&self, spec: &ValueSpec, datum: &Datum) -> Result<Company, Violation> {
        let schema = lock(&self.inner.schema);
        if is_part(&schema, &datum.name) {
            return Ok(Company::Part);
        }
        if !schema.meeting {
            return Ok(Company::Single);
        }
        let mut others = schema.values_of(&datum.name);
        others.try_for_each(|other| match other.tag == spec.tag {
            true => checked(other.kind, &other.rules, &datum.text).map(|_| ()),
            false => Ok(()),
        })?;
        Ok(Company::Single)
    }

    /// Removes the user's value under its name as of now, of an array all
    /// elements; what is below it in the cascade is then in force.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    pub unsafe fn unset(&mut self, environment: *mut u8, index: usize) {
        let spec = &self.plan.values[index].spec;
        let name = self.name_of(index);
        if !is_part(&lock(&self.inner.schema), &name) {
            let place = spec.own.place(Layers(&self.layers));
            // SAFETY: as the caller vouches.
            return unsafe { self.publish_value(environment, place, None) };
        }
        let is_array = spec.is_array();
        let remove = |_: &Map, schema: &Schema| match ArrayKeys::find(&schema.arrays, &name) {
            Some(array) if is_array => Ok(Batch::of(ArrayEdit::cleared(array))),
            _ => Ok(Batch::remove(schema, &name)),
        };
        // SAFETY: as the caller vouches.
        let removed = unsafe { self.publish_batch(environment, Counts::Any, remove) };
        debug_assert!(removed.is_ok(), "nothing is checked");
    }

    /// The name of a value as of now.
    pub fn name_of(&self, index: usize) -> String {
        let spec = &self.plan.values[index].spec;
        spec.own.name(Layers(&self.layers))
    }

    /// The stored value in force; `None` where the default is.
    pub fn column_of(&self, index: usize) -> Option<&Column> {
        let spec = &self.plan.values[index].spec;
        spec.find(&self.root, Layers(&self.layers))
    }

    /// Publishes the user's key of a place, or that it has none, and evaluates
    /// what is here.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes, and the name is
    /// no part of an array.
    unsafe fn publish_value(&mut self, environment: *mut u8, place: Place, column: Option<Column>) {
        let current = self.seen;
        let assigned = column.is_some();
        let edit = |column: Option<Column>| match column {
            Some(column) => Edit::Put(column),
            None => Edit::Take(Namespace::User),
        };
        let (published, root) = self.inner.publish_key(place, edit(column));
        // What the program assigns is in force, so it is what is there.
        let again = || edit(root.get(place).filter(|_| assigned).cloned());
        self.published(published, || [Pending::Key(place, again())]);
        // Where nothing of others lies between, the published root is ours;
        // elsewhere theirs has to wait for the next synchronization.
        let old = if self.seen != current {
            std::mem::replace(&mut self.root, root)
        } else {
            let old = self.root.clone();
            self.inner.apply(&mut self.root, place, again());
            old
        };
        // SAFETY: as the caller vouches.
        unsafe { self.keys_changed(environment, &[place.hash()]) };
        drop(old);
        self.settle();
    }

    /// Publishes what `make` finds to do, and evaluates what is here.
    ///
    /// # Errors
    ///
    /// As `make` and the counts; nothing has changed then.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    unsafe fn publish_batch(
        &mut self,
        environment: *mut u8,
        counts: Counts,
        make: impl FnOnce(&Map, &Schema) -> Result<Batch, Invalid>,
    ) -> Result<(), Invalid> {
        if let Some(keys) = self.inner.publish_batch(counts, make)? {
            // SAFETY: as the caller vouches.
            unsafe { self.take_over(environment, keys) };
        }
        Ok(())
    }

    /// Takes over what this context has published, as
    /// [`publish_value`](Core::publish_value) does.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    pub unsafe fn take_over(&mut self, environment: *mut u8, keys: Keys) {
        let Keys {
            published,
            root,
            batch,
            mut hashes,
        } = keys;
        let current = self.seen;
        self.published(published, || {
            let keys = batch.keys.iter().cloned();
            let keys = keys.map(|(place, edit)| Pending::Key(place, edit));
            let arrays = batch.arrays.iter().cloned().map(Pending::Array);
            keys.chain(arrays).collect::<Vec<_>>()
        });
        let old = if self.seen != current {
            std::mem::replace(&mut self.root, root)
        } else {
            let old = self.root.clone();
            hashes = self.inner.apply_batch(&mut self.root, &batch);
            old
        };
        // SAFETY: as the caller vouches.
        unsafe { self.keys_changed(environment, &hashes) };
        drop(old);
        self.settle();
    }

    /// Evaluates what the keys with these hashes touch. What the fields point to
    /// has to stay until then.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    unsafe fn keys_changed(&mut self, environment: *mut u8, hashes: &[u64]) {
        self.epoch += 1;
        // SAFETY: as the caller vouches.
        unsafe {
            self.evaluate_keys(environment, hashes);
            if self.complex {
                self.reevaluate(environment, &mut Vec::new(), false);
            }
        }
    }
}

/// Whether a key of this name is a part of an array.
fn is_part(schema: &Schema, name: &str) -> bool {
    ArrayKeys::of(&schema.arrays, name).is_some()
}
