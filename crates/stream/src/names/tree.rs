//! The naming tree: what stands at which name, and who follows it.
//!
//! Property kept: between two steps nobody is told anything, and a step tells
//! each watch and each resolution what has changed since the one before, once.

mod bindings;
mod difference;
mod resolve;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use milieu_keys::Name;
use milieu_transfer::Time;

pub use bindings::Dependency;
pub use difference::Difference;
pub use step::{Change, News};

use super::entry::Entry;
use super::index::{Index, Waiting};
use super::layers::LayerValues;
use super::query::Query;
use super::refusal::{Refusal, Refusals, Why, quoted};
use super::rights::Rights;
use super::text;
use super::trie::{Id, Trie};
use super::walk::walk;

/// The names, each with what stands there; nodes without that lead to others.
type Names = Trie<Option<Entry>>;

/// A naming tree; see the [module](super).
#[derive(Debug)]
pub struct Tree {
    names: Names,
    entries: usize,
    leases: BTreeSet<(Time, Id)>,
    /// What stood at the names that have changed since the last step.
    before: BTreeMap<Id, Option<Entry>>,
    index: Index,
    watches: BTreeMap<u64, Watch>,
    /// Watches that have not been told yet what there is.
    fresh: BTreeSet<u64>,
    resolutions: BTreeMap<u64, Box<Resolution>>,
    /// Resolutions that have to be made anew as a whole.
    stale: BTreeSet<u64>,
    drives: BTreeMap<u64, (Box<str>, Query)>,
    /// The last number of a watch, a resolution or a drive.
    last: u64,
    limits: Limits,
    refusals: Refusals,
}

/// What a tree takes at most, so that no peer can fill the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Names with an entry.
    pub entries: usize,
    /// Watches, resolutions and drives together.
    pub queries: usize,
}

impl Default for Limits {
    /// A million entries, a hundred thousand queries.
    fn default() -> Limits {
        Limits {
            entries: 1_000_000,
            queries: 100_000,
        }
    }
}

/// A name with what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where.
    pub name: Name,
    /// What.
    pub entry: Entry,
}

/// Who is told which names come, go and change; unique in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(u64);

/// A query whose streams and services somebody follows; unique in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResolutionId(u64);

/// That a flow drives a layer; unique in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveId(u64);

#[derive(Debug)]
struct Watch {
    query: Query,
    rights: Arc<Rights>,
    place: Id,
}

#[derive(Debug)]
struct Resolution {
    query: Query,
    layers: Arc<LayerValues>,
    rights: Arc<Rights>,
    /// The layers that matter to it, in order.
    asked: Vec<Box<str>>,
    /// The nodes that it has, in order.
    members: Vec<Id>,
    /// Where it waits, in order: its query and what bindings make of it.
    places: Vec<Id>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new(Limits::default())
    }
}

impl Tree {
    /// An empty tree.
    #[must_use]
    pub fn new(limits: Limits) -> Tree {
        Tree {
            names: Trie::new(),
            entries: 0,
            leases: BTreeSet::new(),
            before: BTreeMap::new(),
            index: Index::new(),
            watches: BTreeMap::new(),
            fresh: BTreeSet::new(),
            resolutions: BTreeMap::new(),
            stale: BTreeSet::new(),
            drives: BTreeMap::new(),
            last: 0,
            limits,
            refusals: Refusals::default(),
        }
    }

    /// How many names have an entry.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether no name has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// How often something was refused.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Counts what was refused on behalf of this tree, such as a query that could
    /// not be read. What its own methods refuse is counted already.
    ///
    /// # Errors
    /// What was handed in.
    pub fn counted<T>(&mut self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        result.inspect_err(|refusal| self.refusals.count(refusal.why))
    }

    /// What stands at a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.names.content(self.names.find(name)?).as_ref()
    }

    /// Puts an entry at a name, in place of what stands there, which is returned.
    ///
    /// Whether somebody has the right to is asked before: `rights.publish`.
    ///
    /// # Errors
    /// If the text is no name, the tree is full, or a binding would lead to
    /// itself or make a flow depend on the layer that it drives.
    pub fn put(&mut self, name: &str, entry: impl Into<Entry>) -> Result<Option<Entry>, Refusal> {
        let put = self.try_put(name, entry.into());
        self.counted(put)
    }

    fn try_put(&mut self, name: &str, entry: Entry) -> Result<Option<Entry>, Refusal> {
        let name = text::name(name)?;
        if self.entries >= self.limits.entries && self.get(name.as_str()).is_none() {
            let message = format!("the tree has {} entries and takes no more", self.entries);
            return Err(Refusal::new(
                Why::Full,
                message,
                "remove some, or raise the limit",
            ));
        }
        if let Entry::Binding(binding) = &entry {
            self.check_binding(&name, binding)?;
        }
        let id = self.names.find_or_new(name.as_str());
        Ok(self.set(id, Some(entry)))
    }

    /// Removes what stands at a name, and returns it. Whoever follows the name
    /// keeps following it, and gets what is put there next.
    pub fn remove(&mut self, name: &str) -> Option<Entry> {
        let id = self.names.find(name)?;
        self.names.content(id).as_ref()?;
        self.set(id, None)
    }

    fn set(&mut self, id: Id, entry: Option<Entry>) -> Option<Entry> {
        let until = lease(entry.as_ref());
        self.entries += usize::from(entry.is_some());
        let old = std::mem::replace(self.names.content_mut(id), entry);
        self.entries -= usize::from(old.is_some());
        if let Some(until) = lease(old.as_ref()) {
            self.leases.remove(&(until, id));
        }
        self.leases.extend(until.map(|until| (until, id)));
        self.before.entry(id).or_insert_with(|| old.clone());
        old
    }

    /// Prolongs the lease of a service. Nobody is told.
    ///
    /// # Errors
    /// If there is no service of this name: its lease has ended.
    pub fn renew(&mut self, name: &str, until: Time) -> Result<(), Refusal> {
        let id = self.names.find(name);
        let service = id.and_then(|id| match self.names.content_mut(id) {
            Some(Entry::Service(service)) => Some((id, service)),
            _ => None,
        });
        let Some((id, service)) = service else {
            let message = format!("there is no service {}", quoted(name));
            let refusal = Refusal::new(Why::Unknown, message, "put it there again");
            return self.counted(Err(refusal));
        };
        let old = service.until();
        Arc::make_mut(service).renew(until);
        self.leases.remove(&(old, id));
        if until != Time::MAX {
            self.leases.insert((until, id));
        }
        Ok(())
    }

    /// When the next lease ends: [`step`](Tree::step) by then.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.leases.first().map(|(until, _)| *until)
    }

    /// What stands at the names that a query means and that may be read, in
    /// order. Bindings are shown as such, not followed. A placeholder in the
    /// query stands for every value.
    #[must_use]
    pub fn list(&self, query: &Query, rights: &Rights) -> Vec<Member> {
        let mut members = Vec::new();
        walk(&self.names, query.language(), &mut |id| {
            let entry = self.names.content(id).as_ref();
            if let Some(entry) = entry.filter(|entry| query.means(entry)) {
                members.push(member(&self.names, id, entry));
            }
        });
        members.retain(|member| rights.read.allows(member.name.as_str()));
        in_order(members)
    }

    /// Tells which names that a query means come, go and change, beginning with
    /// those that are there.
    ///
    /// # Errors
    /// If nothing that the query means may be read, it has placeholders, or there
    /// are too many.
    pub fn watch(&mut self, query: Query, rights: Arc<Rights>) -> Result<WatchId, Refusal> {
        let possible = self.check_query(&query, &rights).and_then(|()| {
            let Some(layer) = query.layers().next() else {
                return Ok(());
            };
            let message = format!("{} follows the layer `{layer}`", quoted(query.as_str()));
            let help = "resolve the query with the layers of whoever watches first";
            Err(Refusal::new(Why::Text, message, help))
        });
        self.counted(possible)?;
        let id = self.number();
        let place = self.index.place(&query);
        self.index.wait(place, Waiting::Watch(id));
        self.fresh.insert(id);
        let watch = Watch {
            query,
            rights,
            place,
        };
        self.watches.insert(id, watch);
        Ok(WatchId(id))
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, WatchId(id): WatchId) {
        if let Some(watch) = self.watches.remove(&id) {
            self.index.leave(watch.place, Waiting::Watch(id));
            self.fresh.remove(&id);
        }
    }

    /// Follows the streams and services that a query leads to, through bindings,
    /// under the layers of whoever reads. The next step tells those that are
    /// there.
    ///
    /// # Errors
    /// If nothing that the query means may be read, or there are too many.
    pub fn subscribe(
        &mut self,
        query: Query,
        layers: Arc<LayerValues>,
        rights: Arc<Rights>,
    ) -> Result<ResolutionId, Refusal> {
        let possible = self.check_query(&query, &rights);
        self.counted(possible)?;
        let id = self.number();
        let resolution = Resolution {
            query,
            layers,
            rights,
            asked: Vec::new(),
            members: Vec::new(),
            places: Vec::new(),
        };
        self.resolutions.insert(id, Box::new(resolution));
        self.stale.insert(id);
        Ok(ResolutionId(id))
    }

    /// Ends a subscription; nothing more is told.
    pub fn unsubscribe(&mut self, ResolutionId(id): ResolutionId) {
        if let Some(resolution) = self.resolutions.remove(&id) {
            for place in resolution.places {
                self.index.leave(place, Waiting::Resolution(id));
            }
            self.stale.remove(&id);
        }
    }

    /// The layers of whoever reads have other values now. The next step tells
    /// what that changes.
    pub fn set_layers(&mut self, ResolutionId(id): ResolutionId, layers: Arc<LayerValues>) {
        if let Some(resolution) = self.resolutions.get_mut(&id) {
            let old = std::mem::replace(&mut resolution.layers, layers);
            let new = &resolution.layers;
            if resolution
                .asked
                .iter()
                .any(|layer| old.get(layer) != new.get(layer))
            {
                self.stale.insert(id);
            }
        }
    }

    /// What a subscription has, as of the last step, in order.
    #[must_use]
    pub fn members(&self, ResolutionId(id): ResolutionId) -> Vec<Member> {
        let resolution = self.resolutions.get(&id);
        let ids = resolution.map_or(&[][..], |resolution| &resolution.members);
        self.members_of(ids, |id| self.entry_at_last_step(id))
    }

    fn check_query(&self, query: &Query, rights: &Rights) -> Result<(), Refusal> {
        rights.read.check(query)?;
        self.check_queries()
    }

    fn check_queries(&self) -> Result<(), Refusal> {
        let count = self.watches.len() + self.resolutions.len() + self.drives.len();
        if count < self.limits.queries {
            return Ok(());
        }
        let message = format!("{count} queries are followed, and no more are taken");
        Err(Refusal::new(
            Why::Full,
            message,
            "end some, or raise the limit",
        ))
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// What stood at a node when the last step ended.
    fn entry_at_last_step(&self, id: Id) -> Option<&Entry> {
        let before = self.before.get(&id);
        before.unwrap_or_else(|| self.names.content(id)).as_ref()
    }

    fn members_of<'a>(&self, ids: &[Id], entry: impl Fn(Id) -> Option<&'a Entry>) -> Vec<Member> {
        let with_entry = ids
            .iter()
            .filter_map(|&id| Some(member(&self.names, id, entry(id)?)));
        in_order(with_entry.collect())
    }

    /// Forgets a node that has no entry, unless a step has yet to tell so.
    fn prune(&mut self, id: Id) {
        let before = &self.before;
        let is_needed = |id, entry: &Option<Entry>| entry.is_some() || before.contains_key(&id);
        self.names.prune(id, is_needed, |_, _| {});
    }
}

fn member(names: &Names, id: Id, entry: &Entry) -> Member {
    Member {
        name: name_of(names, id),
        entry: entry.clone(),
    }
}

fn name_of(names: &Names, id: Id) -> Name {
    let name = Name::parse(&names.name(id));
    name.expect("only names have been put")
}

fn in_order(mut members: Vec<Member>) -> Vec<Member> {
    members.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    members
}

/// When the lease of an entry ends, if it does.
fn lease(entry: Option<&Entry>) -> Option<Time> {
    match entry {
        Some(Entry::Service(service)) => Some(service.until()).filter(|&until| until != Time::MAX),
        _ => None,
    }
}
