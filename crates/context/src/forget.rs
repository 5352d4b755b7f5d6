//! Forgetting: what belongs to one value of a layer goes.
//!
//! A key belongs to it where some layers, this one with this value among them,
//! make its name of a pattern. Most patterns mention one layer, and then there
//! is one name; the others are found among the keys. An inactive layer has no
//! value, so nothing belongs to it: what all have in common is never forgotten.

use milieu_keys::{Pattern, Piece, escape_value, pattern::LevelPattern, sort};

use crate::{
    batch::Batch,
    core::Core,
    elements::part_of,
    layer::{Id, LayerCell},
    map::Map,
    publish::Counts,
    resolve::{Layers, split_levels},
    schema::Schema,
};

impl Core {
    /// Removes every key of the user, of those of this environment, whose name
    /// depends on a layer having this value, whichever context assigned it.
    ///
    /// # Safety
    ///
    /// As [`assign`](Core::assign).
    pub unsafe fn forget(&mut self, environment: *mut u8, id: Id<'_>, value: &str) {
        if value.is_empty() {
            return;
        }
        let slot = self.slot(id);
        let (Id::Static(id) | Id::Dynamic(id)) = id;
        let mut cells = self.layers.clone();
        // SAFETY: `value` outlives the cells, which are dropped with this call.
        cells[slot as usize] = unsafe { LayerCell::new(value.as_ptr(), value.len()) };
        let mut belonging = Belonging {
            bound: Bound::new(id, value),
            names: Vec::new(),
            patterns: Vec::new(),
        };
        let plan = self.plan.clone();
        for planned in &plan.values {
            let own = &planned.spec.own;
            let slots = own.slots();
            if slots == [slot] {
                // Only this layer makes the name, so the name is known.
                belonging.names.push(own.name(Layers(&cells)));
            } else if slots.contains(&slot) {
                belonging.patterns.push(&planned.spec.pattern);
            }
        }
        let make = |map: &Map, schema: &Schema| Ok(belonging.batch(map, schema));
        if let Ok(Some(keys)) = self.inner.publish_batch(Counts::Any, make) {
            // SAFETY: as the caller vouches.
            unsafe { self.take_over(environment, keys) };
        }
    }
}

/// The names that belong to a value of a layer.
struct Belonging<'a> {
    names: Vec<String>,
    /// Which make further names, together with other layers.
    patterns: Vec<&'a Pattern>,
    bound: Bound<'a>,
}

impl Belonging<'_> {
    /// The removal of the user's keys with these names.
    fn batch(mut self, map: &Map, schema: &Schema) -> Batch {
        if !self.patterns.is_empty() {
            map.for_each(|column| {
                let name = &column.datum.name;
                let array = part_of(name).map(|(array, _)| array);
                for name in [Some(name.to_string()), array].into_iter().flatten() {
                    let mut patterns = self.patterns.iter();
                    if patterns.any(|pattern| self.bound.makes(pattern, &name)) {
                        self.names.push(name);
                    }
                }
            });
        }
        sort::by(&mut self.names, Ord::cmp);
        self.names.dedup();
        let mut batch = Batch::default();
        for name in &self.names {
            batch.remove_all(map, schema, name);
        }
        batch
    }
}

/// A layer with a value, asked which names it can be part of.
struct Bound<'a> {
    id: &'a str,
    /// The value as a level of its own, and as a part of one.
    level: String,
    part: String,
}

/// How a place in a level was reached: not at all, or without and with the
/// layer on the way there, or both.
type Reached = Vec<u8>;
const WITHOUT: u8 = 1;
const WITH: u8 = 2;

impl<'a> Bound<'a> {
    fn new(id: &'a str, value: &str) -> Self {
        let mut level = String::new();
        escape_value(value, &mut level);
        let part = without_dot_escape(&level).to_owned();
        Bound { id, level, part }
    }

    /// Whether the layer with its value, and others, make this name of the pattern.
    fn makes(&self, pattern: &Pattern, name: &str) -> bool {
        let mut how = WITHOUT;
        // Layers that stand in several levels are compared by `matches`.
        pattern.matches(name)
            && split_levels(name)
                .iter()
                .skip(1)
                .zip(pattern.level_patterns())
                .all(|(text, level)| {
                    let reached = self.makes_level(level, text);
                    how |= reached;
                    reached != 0
                })
            && how & WITH != 0
    }

    fn makes_level(&self, level: &LevelPattern, text: &str) -> u8 {
        match level.layer() {
            Some(id) if id == self.id => return if text == self.level { WITH } else { 0 },
            // That it fits at all, `matches` has found already.
            Some(_) => return WITHOUT,
            None => {}
        }
        let text = units(without_dot_escape(text));
        let mut reached = vec![0; text.len() + 1];
        reached[0] = WITHOUT;
        for piece in level.pieces() {
            reached = match piece {
                Piece::Literal(literal) => past(&reached, &text, literal, 0),
                Piece::Layer(id) if **id == *self.id => past(&reached, &text, &self.part, WITH),
                Piece::Layer(_) => {
                    let inactive = past(&reached, &text, "%", 0);
                    join(past_value(&reached, &text), &inactive)
                }
                Piece::Group(ids) => self.past_group(&reached, &text, ids),
            };
        }
        reached[text.len()]
    }

    /// Past a group, which stops at an inactive layer and so never at ours.
    fn past_group(&self, reached: &Reached, text: &[&str], ids: &[Box<str>]) -> Reached {
        let may_stop = |next: usize| ids.get(next).is_none_or(|id| **id != *self.id);
        let mut behind = vec![0; reached.len()];
        if may_stop(0) {
            behind = past(reached, text, "%", 0);
        }
        let mut last = reached.clone();
        for (at, id) in ids.iter().enumerate() {
            last = past(&last, text, "%", 0);
            last = if **id == *self.id {
                past(&last, text, &self.part, WITH)
            } else {
                past_value(&last, text)
            };
            if may_stop(at + 1) {
                behind = join(behind, &last);
            }
        }
        behind
    }
}

/// Past a text; what it is says how the place behind it is reached.
fn past(reached: &Reached, text: &[&str], wanted: &str, how: u8) -> Reached {
    let wanted = units(wanted);
    let mut behind = vec![0; reached.len()];
    for (at, before) in reached
        .iter()
        .enumerate()
        .filter(|(_, before)| **before != 0)
    {
        if text[at..].starts_with(&wanted) {
            behind[at + wanted.len()] |= if how == 0 { *before } else { how };
        }
    }
    behind
}

/// Past one or more characters that are no bare `%`.
fn past_value(reached: &Reached, text: &[&str]) -> Reached {
    let mut behind = vec![0; reached.len()];
    for (at, unit) in text.iter().enumerate() {
        if *unit != "%" {
            behind[at + 1] = reached[at] | behind[at];
        }
    }
    behind
}

fn join(mut one: Reached, other: &Reached) -> Reached {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one |= other);
    one
}

/// The characters of a level, each with its escape.
fn units(level: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let mut rest = level;
    while !rest.is_empty() {
        let escaped = rest.starts_with('\\');
        let mut ends = rest.char_indices().skip(1 + usize::from(escaped));
        let (unit, behind) = rest.split_at(ends.next().map_or(rest.len(), |(at, _)| at));
        units.push(unit);
        rest = behind;
    }
    units
}

/// `\.` and `\..` are escaped as whole levels only, not as parts of one.
fn without_dot_escape(level: &str) -> &str {
    match level {
        "\\." | "\\.." => &level[1..],
        _ => level,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn belongs(pattern: &str, id: &str, value: &str, name: &str) -> bool {
        Bound::new(id, value).makes(&Pattern::parse(pattern).unwrap(), name)
    }

    #[test]
    fn a_name_belongs_to_the_values_that_made_it_and_to_no_others() {
        let two = "/x/%a%/%b%/v";
        assert!(belongs(two, "a", "1", "/x/1/2/v") && belongs(two, "a", "1", "/x/1/%/v"));
        assert!(!belongs(two, "a", "1", "/x/2/1/v") && !belongs(two, "a", "1", "/x/%/1/v"));
        assert!(belongs("/x/%a%%b%/v", "a", "1", "/x/12/v"));
        assert!(belongs("/x/%a%%b%/v", "a", "..", "/x/..%/v"));
        assert!(belongs("/x/%a%%b%/v", "a", ".", "/x/\\../v"));
        assert!(!belongs("/x/%a%%b%/v", "a", "1", "/x/%1/v"));
        assert!(belongs("/x/a%a%b%b%/v", "b", "x/y", "/x/a%bx\\/y/v"));
    }

    #[test]
    fn a_group_depends_on_the_layers_before_its_first_inactive_one() {
        let group = "/g/%a b c%/v";
        assert!(belongs(group, "a", "1", "/g/%1/v") && belongs(group, "a", "1", "/g/%1%2%3/v"));
        assert!(belongs(group, "b", "2", "/g/%1%2/v"));
        for (id, value) in [("a", "3"), ("b", "1"), ("b", "3"), ("c", "2"), ("c", "3")] {
            assert!(!belongs(group, id, value, "/g/%1%2/v"), "{id}={value}");
        }
        assert!(!belongs(group, "a", "1", "/g/%/v"));
        // The group stops before the layer, which stands elsewhere too.
        let both = "/g/%a b%/%b%/v";
        assert!(belongs(both, "b", "2", "/g/%/2/v") && belongs(both, "b", "2", "/g/%1%2/2/v"));
        assert!(
            !belongs(both, "b", "2", "/g/%1/2/v"),
            "with `b` active it goes on"
        );
    }
}
