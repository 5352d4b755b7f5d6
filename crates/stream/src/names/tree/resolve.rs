//! From a query to the streams and services that it leads to.

use std::collections::{BTreeSet, HashSet};

use super::{Member, Names, Tree, walk};
use crate::names::entry::Entry;
use crate::names::layers::LayerValues;
use crate::names::query::Query;
use crate::names::rights::Rights;
use crate::names::trie::Id;

/// What a query leads to, and what that depends on.
pub(super) struct Resolved {
    /// Nodes of streams and services, in order.
    pub members: Vec<Id>,
    /// The query and the targets of the bindings on the way, without placeholders.
    pub queries: Vec<Query>,
    /// The layers that they depend on, in order.
    pub asked: Vec<Box<str>>,
}

impl Tree {
    /// The streams and services that a query leads to, through bindings, under
    /// the layers of whoever reads; those that may be read, in order.
    #[must_use]
    pub fn resolve(&self, query: &Query, layers: &LayerValues, rights: &Rights) -> Vec<Member> {
        let resolved = resolved(&self.names, query, layers, rights);
        self.members_of(&resolved.members, |id| self.names.content(id).as_ref())
    }
}

/// Every binding is entered once, so that this ends whatever there is.
pub(super) fn resolved(
    names: &Names,
    query: &Query,
    layers: &LayerValues,
    rights: &Rights,
) -> Resolved {
    let mut members = Vec::new();
    let mut queries = Vec::new();
    let mut asked = BTreeSet::new();
    let mut entered = HashSet::new();
    // One name is found as fast as it is seen that it has been looked for.
    let mut wildcards = HashSet::new();
    let mut waiting = vec![query.clone()];
    while let Some(query) = waiting.pop() {
        asked.extend(query.layers().map(Box::from));
        let Some(query) = query.resolve(layers) else {
            continue;
        };
        if !query.is_exact() && !wildcards.insert(query.clone()) {
            continue;
        }
        walk(names, query.language(), &mut |id| {
            let Some(entry) = names.content(id).as_ref() else {
                return;
            };
            if !may_read(names, rights, id) {
                return;
            }
            match entry {
                Entry::Binding(binding) if entered.insert(id) => {
                    waiting.extend(binding.targets().iter().cloned());
                }
                Entry::Binding(_) => {}
                _ => members.push(id),
            }
        });
        queries.push(query);
    }
    let is_meant = |id: &Id| {
        let entry = names.content(*id).as_ref();
        entry.is_some_and(|entry| query.means(entry))
    };
    members.retain(is_meant);
    members.sort_unstable();
    members.dedup();
    Resolved {
        members,
        queries,
        asked: asked.into_iter().collect(),
    }
}

pub(super) fn may_read(names: &Names, rights: &Rights, id: Id) -> bool {
    rights.read.is_all() || rights.read.allows(&names.name(id))
}
