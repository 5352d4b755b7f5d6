//! An environment that is new to a coordinator: the keys that are loaded get its
//! types, or are refused.

use std::sync::Arc;

use milieu_keys::sort;

use crate::{
    Description, Invalid, OpenError,
    coordinator::Inner,
    elements::{ArrayKeys, Part, There, keys_of, part_of},
    map::{Column, Datum, Map, Place},
    publish::{check, type_column},
    resolve::Slot,
    schema::{Plan, ValueSpec},
    sync::lock,
};

impl Inner {
    /// The plan of an environment, registering it when it is new.
    pub fn plan(&self, environment: &Description) -> Result<Arc<Plan>, OpenError> {
        let known = lock(&self.schema).known_plan(environment);
        if let Some(plan) = known {
            return Ok(plan);
        }
        let _order = lock(&self.writers);
        let (specs, arrays, layer_count) = {
            let mut schema = lock(&self.schema);
            let specs = schema.describe(environment)?;
            (specs, schema.arrays.clone(), schema.layer_count())
        };
        let news = News::new(&specs, arrays);
        let (live, frozen) = {
            let state = self.state();
            let frozen = state.frozen.as_ref();
            let frozen = frozen.map(|view| (view.generation, view.root.clone()));
            (state.live.root.clone(), frozen)
        };
        let Typed {
            root,
            replaced,
            mut invalid,
        } = news.typed(&live);
        if !invalid.is_empty() {
            sort::by(&mut invalid, |a, b| a.name.cmp(&b.name));
            return Err(OpenError::Invalid(invalid));
        }
        // A key that breaks a rule there has been replaced meanwhile.
        let frozen = frozen.map(|(at, frozen)| (at, news.typed(&frozen).root));
        let plan = lock(&self.schema).remember(environment, specs);
        if layer_count > 0 {
            let last = self.layer_id(Slot::try_from(layer_count - 1).expect("counted above"));
            self.slot(&last);
        }
        self.show_typed(&root, frozen);
        if !replaced.is_empty() {
            self.publish_root(root, &replaced);
        }
        Ok(plan)
    }

    /// Lets contexts that are opened from now on start with these roots, in
    /// which types are the only difference.
    fn show_typed(&self, live: &Map, frozen: Option<(u64, Map)>) {
        let mut state = self.state();
        let generation = state.live.generation;
        let old = std::mem::replace(&mut state.live.root, live.clone());
        let old_frozen = state.frozen.as_mut().map(|held| {
            // A hold that has begun meanwhile holds what is live.
            let typed = match frozen {
                Some((at, typed)) if at == held.generation => typed,
                _ => live.clone(),
            };
            std::mem::replace(&mut held.root, typed)
        });
        if old_frozen.is_some() {
            // Elements that changed since were not known to be such then.
            state.keys.forget_until(generation);
        }
        drop(state);
        drop((old, old_frozen));
    }
}

/// What an environment says that nobody has said before.
struct News<'a> {
    /// All its values.
    specs: &'a [Arc<ValueSpec>],
    /// The arrays among them that are new.
    new: Vec<Arc<ValueSpec>>,
    /// All arrays.
    arrays: Vec<Arc<ValueSpec>>,
}

/// A root with types.
struct Typed {
    root: Map,
    /// The hashes of the arrays of others that it makes anew.
    replaced: Vec<u64>,
    /// The keys that break a rule, in force or not.
    invalid: Vec<Invalid>,
}

impl<'a> News<'a> {
    fn new(specs: &'a [Arc<ValueSpec>], mut arrays: Vec<Arc<ValueSpec>>) -> Self {
        let is_new = |spec: &&Arc<ValueSpec>| {
            spec.is_array() && !arrays.iter().any(|known| Arc::ptr_eq(known, spec))
        };
        let new: Vec<_> = specs.iter().filter(is_new).cloned().collect();
        arrays.extend(new.iter().cloned());
        News { specs, new, arrays }
    }

    fn typed(&self, root: &Map) -> Typed {
        let mut typed = Typed {
            root: root.clone(),
            replaced: Vec::new(),
            invalid: Vec::new(),
        };
        self.type_keys(root, &mut typed);
        if !self.new.is_empty() {
            self.make_arrays(root, &mut typed);
        }
        typed
    }

    /// Types every key that is a value of the environment.
    fn type_keys(&self, root: &Map, typed: &mut Typed) {
        let mut apply = |spec: &ValueSpec, column: &Column| {
            let mut of_type = column.clone();
            match type_column(&mut of_type, spec) {
                Ok(()) => {
                    let parent = Place::of(&column.datum.name).parent;
                    typed.root.insert(parent, of_type);
                }
                Err(error) => typed.invalid.push(error),
            }
            let hidden = column.datum.candidates().skip(1);
            let refused = hidden.filter_map(|datum| check(spec, datum).err());
            typed.invalid.extend(refused);
        };
        let single = self.specs.iter().filter(|spec| !spec.is_array());
        let (contextual, plain): (Vec<_>, Vec<_>) =
            single.partition(|spec| spec.pattern.is_contextual());
        for spec in plain {
            if let Some(column) = root.get(Place::of(spec.pattern.as_str())) {
                apply(spec, column);
            }
        }
        if contextual.is_empty() {
            return;
        }
        root.for_each(|column| {
            if column.datum.elements.is_some() {
                return;
            }
            for spec in &contextual {
                if spec.pattern.matches(&column.datum.name) {
                    apply(spec, column);
                }
            }
        });
    }

    /// Makes the column of every array that is new.
    fn make_arrays(&self, root: &Map, typed: &mut Typed) {
        let mut found: Vec<(String, Part, &Arc<Datum>)> = Vec::new();
        root.for_each(|column| {
            if let Some((keys, (name, part))) = keys_of(column).zip(part_of(&column.datum.name)) {
                found.push((name, part, keys));
            }
        });
        sort::by(&mut found, |a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        for parts in found.chunk_by(|a, b| a.0 == b.0) {
            let name = &parts[0].0;
            let is_new = ArrayKeys::find(&self.new, name).is_some();
            let array = ArrayKeys::find(&self.arrays, name).filter(|_| is_new);
            if let Some(array) = array {
                make_array(&array, parts, root, typed);
            }
        }
    }
}

/// Makes the column of an array that has these parts, in their order.
fn make_array(
    array: &ArrayKeys,
    parts: &[(String, Part, &Arc<Datum>)],
    root: &Map,
    typed: &mut Typed,
) {
    let mut there = There::default();
    for (_, part, keys) in parts {
        match part {
            Part::Element(index) => there.indices.push(*index),
            Part::Itself => there.itself = Some((*keys).clone()),
            Part::Misnamed(_) => {}
        }
        let check = |datum: &Arc<Datum>| array.check(*part, datum).err();
        typed.invalid.extend(keys.candidates().filter_map(check));
    }
    typed.invalid.extend(array.check_count(root).err());
    if array.is_made(root) {
        return;
    }
    // Contexts point into the column of another environment's array.
    let known = root.get(array.place);
    if known.is_some_and(|column| column.datum.elements.is_some()) {
        typed.replaced.push(array.place.hash());
    }
    array.rebuild(&mut typed.root, there);
}
