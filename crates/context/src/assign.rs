//! Assignments (CoElektra, III-C).

use std::sync::Arc;

use milieu_keys::{Pattern, Piece, escape_value};

use crate::{
    Invalid, Layer,
    core::{Core, Pending},
    layer::{Id, LayerCell},
    map::{Column, Datum, Map, Place},
    resolve::Layers,
    schema::checked,
};

/// The pattern with one of its layers replaced by a value.
fn bound_to(pattern: &Pattern, layer: &str, value: &str) -> Option<Pattern> {
    let mut text = String::new();
    for piece in pattern.pieces() {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Layer(id) if **id == *layer => escape_value(value, &mut text),
            Piece::Layer(id) => text.extend(["%", id, "%"]),
            Piece::Group(ids) => text.extend(["%", &ids.join(" "), "%"]),
        }
    }
    Pattern::parse(&text).ok()
}

fn layer_id<L: Layer>(_: &L) -> &'static str {
    L::ID
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
        let cell = checked(spec.kind, &spec.rules, &datum.text).map_err(|violation| Invalid {
            name: datum.name.to_string(),
            violation,
            origin: None,
        })?;
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

    unsafe fn publish_value(&mut self, environment: *mut u8, place: Place, column: Option<Column>) {
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

    /// Removes every stored key of this environment whose name depends on
    /// `layer` having its value.
    ///
    /// # Safety
    ///
    /// As [`assign`](Core::assign).
    pub unsafe fn forget(&mut self, environment: *mut u8, layer: &impl Layer) {
        let slot = self.slot(Id::Static(layer_id(layer)));
        let value = layer.value();
        let plan = self.plan.clone();
        let touched = plan
            .values
            .iter()
            .filter(|v| v.spec.own.slots().contains(&slot));
        let mut places: Vec<Place> = Vec::new();
        let mut cells = self.layers.clone();
        // SAFETY: `value` outlives the cells, which are dropped with this call.
        cells[slot as usize] = unsafe { LayerCell::new(value.as_ptr(), value.len()) };
        let mut patterns = Vec::new();
        for planned in touched {
            let spec = &planned.spec;
            if spec.own.slots() == [slot] {
                // Only this layer makes the name, so the name is known.
                places.push(spec.own.place(Layers(&cells)));
            } else {
                patterns.extend(bound_to(&spec.pattern, layer_id(layer), &value));
            }
        }
        if !patterns.is_empty() {
            self.root.for_each(|column| {
                let name = &column.datum.name;
                if patterns.iter().any(|pattern| pattern.matches(name)) {
                    places.push(Place::of(name));
                }
            });
        }
        places.retain(|place| self.root.get(*place).is_some());
        for place in places {
            // SAFETY: as the caller vouches.
            unsafe { self.publish_value(environment, place, None) };
        }
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
