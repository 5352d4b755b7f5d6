//! Assignments (CoElektra, III-C).

use std::sync::Arc;

use milieu_keys::Violation;

use crate::{
    Invalid,
    core::{Core, Pending},
    map::{Column, Datum, Map, Place},
    resolve::Layers,
    schema::{ValueSpec, checked},
    sync::lock,
};

impl Core {
    /// Assigns a value of this environment under its name as of now.
    ///
    /// # Errors
    ///
    /// Refuses what breaks the rules of the value; nothing has changed then.
    ///
    /// # Safety
    ///
    /// `environment` is the environment that `plan` describes.
    pub unsafe fn assign(
        &mut self,
        environment: *mut u8,
        index: usize,
        text: &str,
    ) -> Result<(), Invalid> {
        let spec = self.plan.values[index].spec.clone();
        let layers = Layers(&self.layers);
        let (place, name) = (spec.own.place(layers), spec.own.name(layers));
        let datum = Arc::new(Datum {
            name: name.into(),
            text: text.into(),
            origin: None,
        });
        let invalid = |violation| Invalid {
            name: datum.name.to_string(),
            violation,
            origin: None,
        };
        let cell = checked(spec.kind, &spec.rules, &datum.text).map_err(invalid)?;
        self.check_others(&spec, &datum).map_err(invalid)?;
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

    /// Checks the rules of other values that have the same name right now and
    /// read what is assigned as it is.
    fn check_others(&self, spec: &ValueSpec, datum: &Datum) -> Result<(), Violation> {
        let schema = lock(&self.inner.schema);
        if !schema.meeting {
            return Ok(());
        }
        let mut others = schema.values_of(&datum.name);
        others.try_for_each(|other| match other.tag == spec.tag {
            true => checked(other.kind, &other.rules, &datum.text).map(|_| ()),
            false => Ok(()),
        })
    }

    /// Removes a value of this environment under its name as of now; its
    /// default, or a fallback, is then in force.
    ///
    /// # Safety
    ///
    /// As [`assign`](Core::assign).
    pub unsafe fn unset(&mut self, environment: *mut u8, index: usize) {
        let place = self.plan.values[index].spec.own.place(Layers(&self.layers));
        // SAFETY: as the caller vouches.
        unsafe { self.publish_value(environment, place, None) };
    }

    /// Publishes the value at a place, or that it has none, and evaluates what is here.
    ///
    /// # Safety
    ///
    /// As [`assign`](Core::assign).
    pub unsafe fn publish_value(
        &mut self,
        environment: *mut u8,
        place: Place,
        column: Option<Column>,
    ) {
        let current = self.seen;
        let (published, root) = self.inner.publish_key(place, column.clone());
        self.published(published, || Pending::Key(place, column.clone()));
        // Where nothing of others lies between, the published root is ours;
        // elsewhere theirs has to wait for the next synchronization.
        let old = if self.seen != current {
            std::mem::replace(&mut self.root, root)
        } else {
            let old = self.root.clone();
            Core::put(&mut self.root, place, column);
            old
        };
        self.epoch += 1;
        // SAFETY: as the caller vouches.
        unsafe {
            self.evaluate_keys(environment, &[place.hash()]);
            if self.complex {
                self.reevaluate(environment, &mut Vec::new(), false);
            }
        }
        drop(old);
        self.settle();
    }

    /// Puts a value into a map, or takes it out.
    pub fn put(map: &mut Map, place: Place, column: Option<Column>) {
        match column {
            Some(column) => map.insert(place.parent, column),
            None => {
                map.remove(place);
            }
        }
    }
}
