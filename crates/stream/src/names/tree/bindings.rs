//! What names depend on through bindings: other names, and layers.
//!
//! Looked at is what could be, whatever the values of layers are: a placeholder
//! stands for every value. So nothing that is accepted here turns into a circle
//! when a layer changes.

use std::collections::{BTreeSet, HashSet, VecDeque};

use milieu_keys::Name;

use super::{DriveId, Tree, walk};
use crate::names::entry::{Binding, Entry};
use crate::names::query::Query;
use crate::names::refusal::{Refusal, Why, quoted};
use crate::names::trie::Id;

/// That a query depends on a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The layer.
    pub layer: Box<str>,
    /// From the query, by names of bindings and what they stand for, to the one
    /// that has the placeholder.
    pub path: Vec<Box<str>>,
}

/// A query that was reached, and how.
struct Visit<'a> {
    query: &'a Query,
    /// The visit whose query means a binding to this one, and that binding.
    from: Option<(usize, Id)>,
}

/// How many bindings are shown between the two ends of a path.
const PATH_SHOWN: usize = 16;

impl Tree {
    /// The layers that a query depends on, directly or through bindings, each
    /// once by the shortest path.
    #[must_use]
    pub fn layers_of(&self, query: &Query) -> Vec<Dependency> {
        let mut layers = BTreeSet::new();
        let mut found = Vec::new();
        let visits = self.reach([query]);
        for (at, visit) in visits.iter().enumerate() {
            for layer in visit.query.layers() {
                if layers.insert(layer) {
                    let layer = Box::from(layer);
                    let path = self.path(&visits, at);
                    found.push(Dependency { layer, path });
                }
            }
        }
        found
    }

    /// A flow that reads a query drives a layer: activates it, and gives it values.
    ///
    /// A flow with several inputs says so for each of them, and also for those of
    /// the flows that publish them in this program. As long as that holds, no
    /// binding is accepted that would close a circle.
    ///
    /// # Errors
    /// If the query depends on the layer, by itself, through bindings, or through
    /// layers that other flows drive; the refusal names the path. Or if there are
    /// too many.
    pub fn drive(&mut self, layer: &str, query: Query) -> Result<DriveId, Refusal> {
        let possible = self
            .check_queries()
            .and_then(|()| self.check_drive(layer, &query));
        self.counted(possible)?;
        let id = self.number();
        self.drives.insert(id, (layer.into(), query));
        Ok(DriveId(id))
    }

    /// The flow drives the layer no more.
    pub fn undrive(&mut self, DriveId(id): DriveId) {
        self.drives.remove(&id);
    }

    fn check_drive(&self, layer: &str, query: &Query) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        let mut waiting = VecDeque::from([(query, Vec::new())]);
        while let Some((query, before)) = waiting.pop_front() {
            for dependency in self.layers_of(query) {
                let mut path: Vec<Box<str>> = before.clone();
                path.extend(dependency.path);
                if *dependency.layer == *layer {
                    let message = format!(
                        "the flow would drive the layer {} through a name that depends on it: {}",
                        quoted(layer),
                        shown(&path)
                    );
                    let help = "read a name that does not follow the layer";
                    return Err(Refusal::new(Why::Cycle, message, help));
                }
                if seen.insert(dependency.layer.clone()) {
                    path.push(format!("%{}%", dependency.layer).into());
                    let drives = self.drives.values();
                    let of_layer = drives.filter(|(layer, _)| *layer == dependency.layer);
                    waiting.extend(of_layer.map(|(_, query)| (query, path.clone())));
                }
            }
        }
        Ok(())
    }

    /// Whether a binding may be put at a name.
    pub(super) fn check_binding(&mut self, name: &Name, binding: &Binding) -> Result<(), Refusal> {
        self.check_circle(
            name.as_str(),
            binding.targets(),
            "bind to the names at the end of the path",
        )?;
        if self.drives.is_empty() {
            return Ok(());
        }
        // Whether a flow would depend on what it drives shows when it stands there.
        let id = self.names.find_or_new(name.as_str());
        let entry = Some(Entry::from(binding.clone()));
        let old = std::mem::replace(self.names.content_mut(id), entry);
        let drives = &mut self.drives.values();
        let checked = drives.try_for_each(|(layer, query)| self.check_drive(layer, query));
        *self.names.content_mut(id) = old;
        self.prune(id);
        checked
    }

    /// Refuses queries that lead to a name.
    pub(crate) fn check_circle<'a>(
        &'a self,
        name: &str,
        queries: impl IntoIterator<Item = &'a Query>,
        help: &str,
    ) -> Result<(), Refusal> {
        let visits = self.reach(queries);
        let found = visits.iter().position(|visit| visit.query.matches(name));
        let Some(at) = found else {
            return Ok(());
        };
        let mut path = vec![Box::from(name)];
        path.extend(self.path(&visits, at));
        if visits[at].query.as_str() != name {
            path.push(name.into());
        }
        let message = format!("the name would lead to itself: {}", shown(&path));
        Err(Refusal::new(Why::Cycle, message, help))
    }

    /// The queries that these lead to through bindings, nearest first.
    fn reach<'a>(&'a self, queries: impl IntoIterator<Item = &'a Query>) -> Vec<Visit<'a>> {
        let root = |query| Visit { query, from: None };
        let mut visits: Vec<Visit<'a>> = queries.into_iter().map(root).collect();
        let mut entered = HashSet::new();
        let mut at = 0;
        while let Some(visit) = visits.get(at) {
            walk(&self.names, visit.query.language(), &mut |id| {
                let Some(Entry::Binding(binding)) = self.names.content(id) else {
                    return;
                };
                if entered.insert(id) {
                    let from = Some((at, id));
                    visits.extend(binding.targets().iter().map(|query| Visit { query, from }));
                }
            });
            at += 1;
        }
        visits
    }

    /// The queries and names on the way to a visit, its own query last.
    fn path(&self, visits: &[Visit<'_>], mut at: usize) -> Vec<Box<str>> {
        let mut path = vec![Box::from(visits[at].query.as_str())];
        while let Some((from, binding)) = visits[at].from {
            path.push(self.names.name(binding).into());
            path.push(visits[from].query.as_str().into());
            at = from;
        }
        path.reverse();
        path.dedup();
        path
    }
}

/// A path as messages show it; a long one without its middle.
fn shown(path: &[Box<str>]) -> String {
    let left_out = path.len().saturating_sub(PATH_SHOWN);
    let mut texts: Vec<String> = path.iter().map(|name| quoted(name)).collect();
    if left_out > 0 {
        texts.splice(PATH_SHOWN / 2..PATH_SHOWN / 2 + left_out, ["…".to_owned()]);
    }
    texts.join(" → ")
}
