//! Arrays in the key set: beside the elements, one column with all of them.
//!
//! ```text
//!   row of "/hosts":  "#0": a │ "#1": b │ "#3": d │ "#": a b ─▶ slice, text
//! ```
//!
//! The column at `#` is made anew whenever an element changes, so that contexts
//! evaluate an array as they evaluate any value: one lookup, one cell. It has
//! the key `/hosts/#`, if there is one, below it.
//!
//! An array is a whole: all its elements are those of one namespace, the first
//! in the cascade that has the element `#0`, up to the first gap. So a short
//! list of the user hides a long one of the system, and what surfaces is a list
//! that somebody wrote. An empty key `/hosts/#` says that there are no elements.

use std::sync::Arc;

use milieu_keys::{
    Namespace, Violation,
    rules::{array_index, array_level},
    split,
};

use crate::{
    Invalid,
    field::Cell,
    hash::Hash,
    map::{Column, Datum, Map, Place, Tag},
    schema::{ValueSpec, checked},
    slice::Slice,
};

/// The tag of a column at `#` where no array is in force: no value has it.
pub const NONE: Tag = Tag(u32::MAX);

/// What the column of an array owns, beside the text.
#[derive(Debug)]
pub struct Elements {
    /// The indices of all keys of elements in their order, those behind a gap as well.
    indices: Vec<usize>,
    /// The cell points here.
    _slice: Slice,
}

/// What a key is to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The element of this index.
    Element(usize),
    /// It would be the element of this index if it were called `#_10` and not `#10`.
    Misnamed(usize),
    /// The array itself.
    Itself,
}

impl Part {
    fn is_used(self) -> bool {
        !matches!(self, Part::Misnamed(_))
    }
}

/// The name of the array that a key of this name would be a part of.
pub fn part_of(name: &str) -> Option<(String, Part)> {
    let (parent, level) = split(name);
    let part = match (level, array_index(level)) {
        ("#", _) => Part::Itself,
        (_, Some(index)) if level == array_level(index) => Part::Element(index),
        (_, index) => Part::Misnamed(index?),
    };
    Some((format!("{parent}/#"), part))
}

/// The keys of a column's name, also of one that an array has made.
pub fn keys_of(column: &Column) -> Option<&Arc<Datum>> {
    match column.datum.elements {
        Some(_) => column.datum.below.as_ref(),
        None => Some(&column.datum),
    }
}

/// The keys of an array, by its name: `/rooms/kitchen/hosts/#`.
#[derive(Debug)]
pub struct ArrayKeys {
    pub name: Box<str>,
    pub place: Place,
    /// Whose rules the elements keep, whoever gives them. None, where the array
    /// is an override or a fallback of others only, and need not keep theirs.
    own: Vec<Arc<ValueSpec>>,
    /// Whose type it has.
    spec: Arc<ValueSpec>,
}

/// What is there of an array in a map.
#[derive(Default)]
pub struct There {
    /// The indices of its elements, in their order.
    pub indices: Vec<usize>,
    /// The keys of the array itself.
    pub itself: Option<Arc<Datum>>,
}

impl There {
    /// Notes that there is an element.
    pub fn add_element(&mut self, index: usize) {
        if let Err(at) = self.indices.binary_search(&index) {
            self.indices.insert(at, index);
        }
    }
}

/// An array in force.
pub struct InForce {
    /// Its first element, or the key that says that there is none.
    pub giver: Arc<Datum>,
    pub elements: Vec<Arc<Datum>>,
}

impl ArrayKeys {
    /// The array with this name, among those that `specs` describe.
    pub fn find(specs: &[Arc<ValueSpec>], name: &str) -> Option<ArrayKeys> {
        let own = specs.iter().filter(|spec| spec.pattern.matches(name));
        let own: Vec<_> = own.cloned().collect();
        let alternate = |spec: &&Arc<ValueSpec>| {
            let mut patterns = spec.alternates.iter();
            patterns.any(|pattern| pattern.matches(name))
        };
        let spec = own.first().or_else(|| specs.iter().find(alternate))?;
        Some(ArrayKeys {
            name: name.into(),
            place: Place::of(name),
            spec: spec.clone(),
            own,
        })
    }

    /// The array that a key is a part of.
    pub fn of(specs: &[Arc<ValueSpec>], name: &str) -> Option<(ArrayKeys, Part)> {
        if specs.is_empty() {
            return None;
        }
        let (array, part) = part_of(name).filter(|(_, part)| part.is_used())?;
        Some((ArrayKeys::find(specs, &array)?, part))
    }

    /// The place of an element.
    pub fn element(&self, index: usize) -> Place {
        place_of(self.place.parent, index)
    }

    /// The name of an element.
    pub fn element_name(&self, index: usize) -> String {
        let (parent, _) = split(&self.name);
        format!("{parent}/{}", array_level(index))
    }

    /// The name of a part.
    pub fn part_name(&self, part: Part) -> String {
        match part {
            Part::Element(index) | Part::Misnamed(index) => self.element_name(index),
            Part::Itself => self.name.to_string(),
        }
    }

    /// The keys that a namespace has of it, by their parts.
    pub fn keys_in(&self, map: &Map, namespace: Namespace) -> Vec<(Part, Arc<Datum>)> {
        let there = self.there(map);
        let element = |index: &usize| {
            let first = &map.get(self.element(*index))?.datum;
            Some((Part::Element(*index), first.of(namespace)?.clone()))
        };
        let itself = there.itself.as_ref().and_then(|first| first.of(namespace));
        let itself = itself.map(|datum| (Part::Itself, datum.clone()));
        there
            .indices
            .iter()
            .filter_map(element)
            .chain(itself)
            .collect()
    }

    /// What is there of it.
    pub fn there(&self, map: &Map) -> There {
        let column = map.get(self.place);
        let indices = column.and_then(|column| Some(&column.datum.elements.as_ref()?.indices));
        let is_there = |index: &usize| map.get(self.element(*index)).is_some();
        There {
            indices: match indices {
                Some(indices) => indices.clone(),
                None => (0..).take_while(is_there).collect(),
            },
            itself: column.and_then(keys_of).cloned(),
        }
    }

    /// The array in force, where `itself` are the keys of the array itself.
    pub fn in_force<'m>(&self, map: &'m Map, itself: Option<&'m Arc<Datum>>) -> Option<InForce> {
        in_force(map, self.place.parent, itself)
    }

    /// Whether its column is there, with its type.
    pub fn is_made(&self, map: &Map) -> bool {
        let column = map.get(self.place);
        column.is_some_and(|column| column.tag == self.spec.tag)
    }

    /// Makes the column of this array anew.
    pub fn rebuild(&self, map: &mut Map, mut there: There) {
        let is_there = |index: &usize| map.get(self.element(*index)).is_some();
        there.indices.retain(is_there);
        if there.indices.is_empty() && there.itself.is_none() {
            map.remove(self.place);
            return;
        }
        let column = self.column(map, there);
        map.insert(self.place.parent, column);
    }

    fn column(&self, map: &Map, there: There) -> Column {
        let force = self.in_force(map, there.itself.as_ref());
        let giver = force.as_ref().map(|force| &force.giver);
        let elements = force.as_ref().map_or(&[][..], |force| &force.elements);
        let texts: Vec<&str> = elements.iter().map(|datum| &*datum.text).collect();
        let mut datum = Arc::new(Datum {
            name: self.name.clone(),
            text: texts.join("\n").into(),
            origin: giver.and_then(|giver| giver.origin.clone()),
            namespace: giver.map_or(Namespace::Default, |giver| giver.namespace),
            below: there.itself,
            elements: None,
        });
        let slice = self.slice(&datum.text, &texts);
        let tag = match &slice {
            Some(_) if force.is_some() => self.spec.tag,
            _ => NONE,
        };
        let slice = slice.unwrap_or_default();
        let cell = Cell::slice(slice.start(), elements.len());
        let owned = Elements {
            indices: there.indices,
            _slice: slice,
        };
        if let Some(datum) = Arc::get_mut(&mut datum) {
            datum.elements = Some(Box::new(owned));
        }
        Column {
            base: self.place.base,
            cell,
            tag,
            datum,
        }
    }

    /// The elements as their type; nothing, where one of them is not of it.
    /// Their texts are those in `joined`, where they stay.
    fn slice(&self, joined: &str, texts: &[&str]) -> Option<Slice> {
        let kind = self.spec.kind.element()?;
        let mut rest = joined;
        let cells = texts.iter().map(|text| {
            let (text, behind) = rest.split_at(text.len());
            rest = behind.strip_prefix('\n').unwrap_or(behind);
            checked(kind, &self.spec.rules, text).ok()
        });
        let cells: Vec<Cell> = cells.collect::<Option<_>>()?;
        // SAFETY: `checked` has made the cells for this kind.
        Some(unsafe { Slice::new(kind, &cells) })
    }

    /// Checks a key as a part of this array.
    pub fn check(&self, part: Part, datum: &Datum) -> Result<(), Invalid> {
        let refused = |violation| Invalid {
            name: datum.name.to_string(),
            violation,
            origin: datum.origin.clone(),
        };
        for spec in &self.own {
            check_part(spec, part, datum).map_err(refused)?;
        }
        Ok(())
    }

    /// Checks that no namespace gives too few elements, or too many.
    pub fn check_count(&self, map: &Map) -> Result<(), Invalid> {
        let itself = map.get(self.place).and_then(keys_of);
        let first = map.get(self.element(0)).map(|column| &column.datum);
        for namespace in Namespace::ALL {
            let (giver, count) = match (itself.and_then(|d| d.of(namespace)), first) {
                (Some(none), _) => (none, 0),
                (None, first) => match first.and_then(|first| first.of(namespace)) {
                    None => continue,
                    Some(first) => {
                        let elements = elements_of(map, self.place.parent, namespace);
                        (first, elements.len())
                    }
                },
            };
            for spec in &self.own {
                check_count(spec, count).map_err(|violation| Invalid {
                    name: self.name.to_string(),
                    violation,
                    origin: giver.origin.clone(),
                })?;
            }
        }
        Ok(())
    }
}

fn check_part(spec: &ValueSpec, part: Part, datum: &Datum) -> Result<(), Violation> {
    let violation = |value: &str, message: String| {
        Err(Violation {
            rule: "array".into(),
            value: value.into(),
            message,
        })
    };
    match part {
        Part::Element(_) => {
            let kind = spec.kind.element().unwrap_or(spec.kind);
            checked(kind, &spec.rules, &datum.text).map(|_| ())
        }
        Part::Misnamed(index) => {
            let (_, level) = split(&datum.name);
            let message = format!(
                "is not what this element is called; call it `{}`",
                array_level(index)
            );
            violation(level, message)
        }
        Part::Itself if datum.text.is_empty() => Ok(()),
        Part::Itself => violation(
            &datum.text,
            "stands at the array itself; number the elements, `#0`, `#1`, or leave this empty \
             to say that there are none"
                .into(),
        ),
    }
}

/// Checks how many elements somebody gives.
fn check_count(spec: &ValueSpec, count: usize) -> Result<(), Violation> {
    let violation = |rule, limit: u32, message| {
        Err(Violation {
            rule: format!("array/{rule}={limit}"),
            value: count.to_string(),
            message,
        })
    };
    match spec.rules.array() {
        (Some(least), _) if count < least as usize => violation(
            "min",
            least,
            format!("is too small a number of elements; give {least} or more, or remove them all"),
        ),
        (_, Some(most)) if count > most as usize => violation(
            "max",
            most,
            format!("is too great a number of elements; give {most} or fewer"),
        ),
        _ => Ok(()),
    }
}

/// The array in force below a parent, where `itself` are the keys of the array.
pub fn in_force<'m>(map: &'m Map, parent: Hash, itself: Option<&'m Arc<Datum>>) -> Option<InForce> {
    let first = map.get(place_of(parent, 0)).map(|column| &column.datum);
    let givers = Namespace::ALL.iter().filter_map(|namespace| {
        let of = |first: Option<&'m Arc<Datum>>| first?.of(*namespace);
        // Who says that there are none has none.
        let (none, first) = (of(itself), of(first));
        Some((none.or(first)?, none.is_none()))
    });
    let (giver, has_elements) = givers.reduce(|one, other| match other.0.precedes(one.0) {
        true => other,
        false => one,
    })?;
    let elements = match has_elements {
        true => elements_of(map, parent, giver.namespace),
        false => Vec::new(),
    };
    Some(InForce {
        giver: giver.clone(),
        elements,
    })
}

/// The texts of the elements in force below the name of a parent.
pub fn texts<'m>(map: &'m Map, parent: &str) -> Vec<&'m str> {
    let place = Place::of(&format!("{parent}/#"));
    let itself = map.get(place).and_then(keys_of);
    let Some(InForce { giver, elements }) = in_force(map, place.parent, itself) else {
        return Vec::new();
    };
    let text = |index| {
        let column = map.get(place_of(place.parent, index))?;
        Some(&*column.datum.of(giver.namespace)?.text)
    };
    (0..elements.len()).map_while(text).collect()
}

/// The elements that a namespace gives, up to the first gap.
fn elements_of(map: &Map, parent: Hash, namespace: Namespace) -> Vec<Arc<Datum>> {
    let element = |index| {
        let column = map.get(place_of(parent, index))?;
        column.datum.of(namespace).cloned()
    };
    (0..).map_while(element).collect()
}

fn place_of(parent: Hash, index: usize) -> Place {
    Place {
        parent,
        base: level(index),
    }
}

/// The hash of an element's level. There are many of them, so no text is made.
fn level(index: usize) -> Hash {
    const DIGITS: usize = 20;
    let mut text = [b'_'; 2 * DIGITS];
    let (mut start, mut rest) = (text.len(), index);
    loop {
        start -= 1;
        text[start] = b"0123456789"[rest % 10];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // As many underscores as there are digits more than one.
    let start = start - (text.len() - start);
    text[start] = b'#';
    match std::str::from_utf8(&text[start..]) {
        Ok(level) => Hash::level(level),
        Err(_) => unreachable!("these are ASCII"),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_their_names() {
        for index in [0, 1, 9, 10, 99, 100, 12_345, 1 << 31] {
            let name = array_level(index);
            assert_eq!(level(index), Hash::level(&name), "{name}");
            assert_eq!(
                part_of(&format!("/x/{name}")),
                Some(("/x/#".into(), Part::Element(index)))
            );
        }
        assert_eq!(level(usize::MAX), Hash::level(&array_level(usize::MAX)));
        assert_eq!(part_of("/x/#10"), Some(("/x/#".into(), Part::Misnamed(10))));
        assert_eq!(part_of("/x/#"), Some(("/x/#".into(), Part::Itself)));
        assert!(part_of("/x/#a").is_none() && part_of("/x/1").is_none());
    }
}
