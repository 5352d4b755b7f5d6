//! A source that says something new: all keys of one namespace at once.

use std::{fmt, sync::Arc};

use milieu_keys::{Key, KeySet, Namespace, Origin, rules::REDACTED, sort};

use crate::{
    Coordinator, Invalid,
    batch::{ArrayEdit, Batch, Edit},
    elements::{ArrayKeys, Part, keys_of},
    map::{Datum, Map, Place},
    publish::datum,
    schema::Schema,
    sync::lock,
};

/// A key with another value in force than before.
///
/// `{:?}` does not show the texts of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Difference {
    /// The canonical name.
    pub name: String,
    /// What was in force; absent where no key was.
    pub before: Option<Content>,
    /// What is; absent where no key is.
    pub after: Option<Content>,
    /// Whether an environment calls the key a secret.
    pub secret: bool,
}

impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |content: &Option<Content>| {
            content.clone().map(|content| Content {
                text: match self.secret {
                    true => REDACTED.into(),
                    false => content.text,
                },
                ..content
            })
        };
        f.debug_struct("Difference")
            .field("name", &self.name)
            .field("before", &shown(&self.before))
            .field("after", &shown(&self.after))
            .finish_non_exhaustive()
    }
}

/// The text of a key, and who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The value's text.
    pub text: String,
    /// Who said so; absent where the program assigned it.
    pub origin: Option<Origin>,
}

impl Coordinator {
    /// Replaces the keys of one namespace by those of that namespace in `keys`,
    /// all in one publication, and returns the keys whose value in force is
    /// another one: a file was edited, or a whole set of them is loaded.
    ///
    /// Two things of the program stay as they are. What it has assigned stays in
    /// force; a source that says the same makes it the source's. And what it has
    /// removed stays removed, unless the source says something else than it did:
    /// `known` is what the source said when it was read before, or an empty key
    /// set where that does not matter. An array is assigned, and removed, as a
    /// whole.
    ///
    /// # Errors
    ///
    /// Every key that breaks a rule, in force or not. Nothing has changed then.
    pub fn replace(
        &self,
        namespace: Namespace,
        known: &KeySet,
        keys: &KeySet,
    ) -> Result<Vec<Difference>, Vec<Invalid>> {
        let _order = lock(&self.inner.writers);
        let old = self.inner.state().live.root.clone();
        let source = Source {
            namespace,
            known,
            keys,
        };
        let batch = Comparison::of(&source, &old, &lock(&self.inner.schema))?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut root = old.clone();
        let hashes = self.inner.apply_batch(&mut root, &batch);
        let invalid = batch.check_counts(&root);
        if !invalid.is_empty() {
            return Err(invalid);
        }
        let key = |map: &Map, place| map.get(place).and_then(keys_of).cloned();
        let differences = batch.places().filter_map(|place| {
            let (before, after) = (key(&old, place), key(&root, place));
            Difference::of(before.as_deref(), after.as_deref())
        });
        let mut differences: Vec<Difference> = differences.collect();
        let schema = lock(&self.inner.schema);
        for difference in &mut differences {
            difference.secret = schema.is_secret(&difference.name);
        }
        drop(schema);
        sort::by(&mut differences, |a, b| {
            a.name.split('/').cmp(b.name.split('/'))
        });
        // Also those whose text is the same: it lies somewhere else now, and
        // the fields of contexts point to it.
        self.inner.publish_root(root, &hashes);
        Ok(differences)
    }
}

/// A source, what it said before, and what it says now.
struct Source<'a> {
    namespace: Namespace,
    known: &'a KeySet,
    keys: &'a KeySet,
}

/// A part of an array by the array's name, and what the source says of it now.
type PartOf<'a> = (Box<str>, Part, Option<&'a Key>);

/// What a source says, compared with what is there.
struct Comparison<'a> {
    source: &'a Source<'a>,
    schema: &'a Schema,
    batch: Batch,
    /// Of the arrays that the source says something of, or did.
    parts: Vec<PartOf<'a>>,
    invalid: Vec<Invalid>,
}

#[derive(Clone, Copy, PartialEq)]
enum Decision {
    /// It is so already, or the program has removed it.
    Nothing,
    /// An assignment hides it; it has to keep the rules all the same.
    Check,
    Put,
}

impl<'a> Comparison<'a> {
    /// What is to be done.
    fn of(source: &'a Source<'a>, map: &Map, schema: &'a Schema) -> Result<Batch, Vec<Invalid>> {
        let mut comparison = Comparison {
            source,
            schema,
            batch: Batch::default(),
            parts: Vec::new(),
            invalid: Vec::new(),
        };
        comparison.add_said(map);
        comparison.add_gone(map);
        let mut parts = std::mem::take(&mut comparison.parts);
        sort::by(&mut parts, |a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        for of_one in parts.chunk_by(|a, b| a.0 == b.0) {
            if let Some(array) = ArrayKeys::find(&schema.arrays, &of_one[0].0) {
                comparison.decide_array(array, of_one, map);
            }
        }
        match comparison.invalid.is_empty() {
            true => Ok(comparison.batch),
            false => Err(comparison.invalid),
        }
    }

    /// What the source says.
    fn add_said(&mut self, map: &Map) {
        let namespace = self.source.namespace;
        for key in self.source.keys {
            if key.namespace() != namespace {
                continue;
            }
            if let Some((array, part)) = ArrayKeys::of(&self.schema.arrays, key.name()) {
                self.parts.push((array.name, part, Some(key)));
                continue;
            }
            let place = Place::of(key.name());
            let first = map.get(place).and_then(keys_of);
            let here = first.and_then(|first| first.of(namespace));
            let hidden = first.is_some_and(|first| first.of(Namespace::Proc).is_some());
            let edit = self.edit(key, self.decide(here, key, hidden));
            self.batch.keys.extend(edit.map(|edit| (place, edit)));
        }
    }

    /// What it says no more.
    fn add_gone(&mut self, map: &Map) {
        let namespace = self.source.namespace;
        map.for_each(|column| {
            let here = keys_of(column).and_then(|first| first.of(namespace));
            let is_gone = |here: &&Arc<Datum>| {
                !here.is_assigned() && self.source.keys.get(namespace, &here.name).is_none()
            };
            let Some(here) = here.filter(is_gone) else {
                return;
            };
            match ArrayKeys::of(&self.schema.arrays, &here.name) {
                Some((array, part)) => self.parts.push((array.name, part, None)),
                None => {
                    let place = Place::of(&here.name);
                    self.batch.keys.push((place, Edit::Take(namespace)));
                }
            }
        });
    }

    /// What to do about a key, of which `here` is in the map, perhaps hidden by
    /// an option.
    fn decide(&self, here: Option<&Arc<Datum>>, key: &Key, hidden: bool) -> Decision {
        match here {
            None if self.said_before(key.name()) == Some(key.value()) => Decision::Nothing,
            None => Decision::Put,
            // Below an option, the same text would not be in force any more.
            Some(here) if here.is_assigned() => match *here.text == *key.value() && !hidden {
                true => Decision::Put,
                false => Decision::Check,
            },
            Some(here) => {
                let same = here.origin.as_ref() == Some(key.origin());
                match same && *here.text == *key.value() {
                    true => Decision::Nothing,
                    false => Decision::Put,
                }
            }
        }
    }

    fn said_before(&self, name: &str) -> Option<&'a str> {
        let key = self.source.known.get(self.source.namespace, name);
        key.map(Key::value)
    }

    fn decide_array(&mut self, array: ArrayKeys, parts: &[PartOf<'a>], map: &Map) {
        let namespace = self.source.namespace;
        let here = array.keys_in(map, namespace);
        let said = parts.iter();
        let now: Vec<(Part, &Key)> = said.filter_map(|it| Some((it.1, it.2?))).collect();
        let common = if here.iter().any(|(_, here)| here.is_assigned()) {
            let before = here.iter().map(|(part, here)| (*part, &*here.text));
            let same = before.eq(now.iter().map(|(part, now)| (*part, now.value())));
            match same && array.keys_in(map, Namespace::Proc).is_empty() {
                true => Some(Decision::Put),
                false => Some(Decision::Check),
            }
        } else if here.is_empty() {
            // The program has removed it, or nobody has ever said it.
            match self.said_all_before(&array, &now) {
                true => Some(Decision::Nothing),
                false => Some(Decision::Put),
            }
        } else {
            None
        };
        let mut edit = ArrayEdit::new(array);
        for (part, key) in &now {
            let own = || self.decide(find(&here, *part), key, false);
            let put = self.edit(key, common.unwrap_or_else(own));
            put.into_iter().for_each(|put| edit.add(*part, put));
        }
        if common.is_none() {
            for (part, _) in here.iter().filter(|it| find(&now, it.0).is_none()) {
                edit.add(*part, Edit::Take(namespace));
            }
        }
        if !edit.is_empty() {
            self.batch.arrays.push(edit.into());
        }
    }

    /// Whether the source has said the very same of an array before.
    fn said_all_before(&self, array: &ArrayKeys, now: &[(Part, &Key)]) -> bool {
        let same = |(part, key): &(Part, &Key)| {
            self.said_before(&array.part_name(*part)) == Some(key.value())
        };
        let next = (0..).find(|index| find(now, Part::Element(*index)).is_none());
        let more = next.and_then(|next| self.said_before(&array.element_name(next)));
        more.is_none() && now.iter().all(same)
    }

    /// The edit that a decision comes to, of a key that keeps the rules.
    fn edit(&mut self, key: &Key, decision: Decision) -> Option<Edit> {
        if decision == Decision::Nothing {
            return None;
        }
        let origin = Some(key.origin().clone());
        let datum = datum(key.name(), key.value(), key.namespace(), origin);
        match self.schema.checked(datum) {
            Ok(column) => (decision == Decision::Put).then_some(Edit::Put(column)),
            Err(error) => {
                self.invalid.push(error);
                None
            }
        }
    }
}

/// What is known of a part, in a list by parts.
fn find<T>(parts: &[(Part, T)], part: Part) -> Option<&T> {
    let at = parts.binary_search_by_key(&part, |(part, _)| *part).ok()?;
    Some(&parts[at].1)
}

impl Difference {
    /// The difference between two keys of a name, if their texts differ.
    fn of(before: Option<&Datum>, after: Option<&Datum>) -> Option<Self> {
        if before.map(|datum| &datum.text) == after.map(|datum| &datum.text) {
            return None;
        }
        let content = |datum: &Datum| Content {
            text: datum.text.as_ref().into(),
            origin: datum.origin.clone(),
        };
        Some(Difference {
            name: before.or(after)?.name.as_ref().into(),
            before: before.map(content),
            after: after.map(content),
            secret: false,
        })
    }
}
