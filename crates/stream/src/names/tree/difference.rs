//! How the members of a subscription change in a step.

use std::collections::BTreeMap;

use super::resolve::{may_read, resolved};
use super::{Member, Names, Resolution, in_order, member};
use crate::names::entry::Entry;
use crate::names::index::{Index, Waiting};
use crate::names::trie::Id;

/// How the members of a subscription change, in one step. Who is in none of these
/// stays as it is, untouched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Members that are no longer there, as they were.
    pub left: Vec<Member>,
    /// Members that were not there. A stream whose publisher is another one has
    /// left and joined.
    pub joined: Vec<Member>,
    /// Services whose attributes or endpoint are others.
    pub changed: Vec<Member>,
}

impl Difference {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty() && self.joined.is_empty() && self.changed.is_empty()
    }

    fn in_order(self) -> Difference {
        Difference {
            left: in_order(self.left),
            joined: in_order(self.joined),
            changed: in_order(self.changed),
        }
    }
}

/// The nodes that have changed and what stood there.
pub(super) type Before = BTreeMap<Id, Option<Entry>>;

/// What has changed since the last step.
pub(super) struct Changes<'a> {
    pub names: &'a Names,
    pub before: &'a Before,
}

impl Changes<'_> {
    /// The difference between the members before and those after.
    pub fn between(&self, old: &[Id], new: &[Id]) -> Difference {
        let mut difference = Difference::default();
        for &node in old {
            let is = new.binary_search(&node).is_ok();
            self.settle(node, true, is, &mut difference);
        }
        for &node in only_in(new, old) {
            self.settle(node, false, true, &mut difference);
        }
        difference.in_order()
    }

    /// Looks at the nodes alone that have changed: none is a binding, so that the
    /// resolution waits for the same as before.
    pub fn adjust(&self, resolution: &mut Resolution, nodes: Vec<Id>) -> Difference {
        let mut difference = Difference::default();
        for node in nodes {
            let entry = self.names.content(node).as_ref();
            let is = entry.is_some_and(|entry| resolution.query.means(entry))
                && may_read(self.names, &resolution.rights, node);
            let found = resolution.members.binary_search(&node);
            match found {
                Ok(at) if !is => drop(resolution.members.remove(at)),
                Err(at) if is => resolution.members.insert(at, node),
                _ => {}
            }
            self.settle(node, found.is_ok(), is, &mut difference);
        }
        difference.in_order()
    }

    /// Notes how a node was and is a member.
    fn settle(&self, node: Id, was: bool, is: bool, out: &mut Difference) {
        let old = self.before.get(&node);
        let is_same = old.is_none();
        let new = self.names.content(node).as_ref();
        let old = old.map_or(new, Option::as_ref).filter(|_| was);
        let new = new.filter(|_| is);
        let member = |entry| member(self.names, node, entry);
        match (old, new) {
            (Some(_), Some(_)) if is_same => {}
            (Some(Entry::Service(_)), Some(entry @ Entry::Service(_))) => {
                out.changed.push(member(entry));
            }
            (old, new) => {
                out.left.extend(old.map(member));
                out.joined.extend(new.map(member));
            }
        }
    }
}

impl Resolution {
    /// Resolves as a whole, waits for what that depends on, and returns the
    /// members before.
    pub fn renew(&mut self, id: u64, names: &Names, index: &mut Index) -> Vec<Id> {
        let resolved = resolved(names, &self.query, &self.layers, &self.rights);
        let places = resolved.queries.iter().map(|query| index.place(query));
        let mut places: Vec<Id> = places.collect();
        places.sort_unstable();
        places.dedup();
        for &place in only_in(&places, &self.places) {
            index.wait(place, Waiting::Resolution(id));
        }
        for &place in only_in(&self.places, &places) {
            index.leave(place, Waiting::Resolution(id));
        }
        self.places = places;
        self.asked = resolved.asked;
        std::mem::replace(&mut self.members, resolved.members)
    }
}

/// Those of a sorted list that are not in the other one.
fn only_in<'a>(one: &'a [Id], other: &[Id]) -> impl Iterator<Item = &'a Id> {
    one.iter().filter(|id| other.binary_search(id).is_err())
}
