//! A step: everything that has changed since the last one, told at once.

use std::collections::BTreeMap;

use milieu_keys::Name;
use milieu_transfer::Time;

use super::difference::{Before, Changes, Difference};
use super::resolve::may_read;
use super::{Member, ResolutionId, Tree, WatchId, member, name_of};
use crate::names::entry::Entry;
use crate::names::index::Waiting;
use crate::names::trie::Id;

/// What a step tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// For each watch that something concerns what that is, in the order of the
    /// names.
    pub watches: Vec<(WatchId, Vec<Change>)>,
    /// For each subscription that something concerns how its members change.
    pub resolutions: Vec<(ResolutionId, Difference)>,
}

/// What has become of a name that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Something stands there that was not there, or was not meant.
    Joined(Member),
    /// What stood there has gone, or is no longer meant.
    Left(Name),
    /// Something else stands there, or it has other attributes.
    Changed(Member),
}

impl News {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty() && self.resolutions.is_empty()
    }
}

impl Change {
    /// The name that has changed.
    #[must_use]
    pub fn name(&self) -> &Name {
        match self {
            Change::Joined(member) | Change::Changed(member) => &member.name,
            Change::Left(name) => name,
        }
    }
}

impl Tree {
    /// Ends the leases that have run out, and tells every watch and every
    /// subscription what has changed since the last step. What came and went
    /// meanwhile is not told; what went and came back has changed, if it has.
    pub fn step(&mut self, now: Time) -> News {
        self.end_leases(now);
        let mut before = std::mem::take(&mut self.before);
        let same = |id, old: &Option<Entry>| match (old, self.names.content(id)) {
            (Some(old), Some(new)) => old.says_the_same(new),
            (None, None) => true,
            _ => false,
        };
        let mut unchanged = Vec::new();
        before.retain(|&id, old| {
            let same = same(id, old);
            if same {
                unchanged.push(id);
            }
            !same
        });
        let mut watches = BTreeMap::new();
        let mut touched: BTreeMap<u64, Vec<Id>> = BTreeMap::new();
        for (&id, old) in &before {
            self.tell(id, old.as_ref(), &mut watches, &mut touched);
        }
        // In place of changes that these have not seen the beginning of.
        for id in std::mem::take(&mut self.fresh) {
            watches.insert(id, self.first(id));
        }
        let news = News {
            watches: in_order(watches),
            resolutions: self.differences(&before, touched),
        };
        for id in before.into_keys().chain(unchanged) {
            self.prune(id);
        }
        news
    }

    fn end_leases(&mut self, now: Time) {
        while let Some(&(until, id)) = self.leases.first() {
            if until > now {
                break;
            }
            self.set(id, None);
        }
    }

    /// Finds out whom a change concerns.
    fn tell(
        &mut self,
        id: Id,
        old: Option<&Entry>,
        watches: &mut BTreeMap<u64, Vec<Change>>,
        touched: &mut BTreeMap<u64, Vec<Id>>,
    ) {
        let new = self.names.content(id).as_ref();
        let leads_on = [old, new].into_iter().flatten().any(Entry::is_binding);
        for waiting in self.index.concerned(&self.names.name(id)) {
            match waiting {
                Waiting::Watch(watch) => {
                    let change = self.change(watch, id, old, new);
                    watches.entry(watch).or_default().extend(change);
                }
                Waiting::Resolution(resolution) if leads_on => {
                    self.stale.insert(resolution);
                }
                Waiting::Resolution(resolution) => touched.entry(resolution).or_default().push(id),
            }
        }
    }

    /// What a watch sees of a change.
    fn change(
        &self,
        watch: u64,
        id: Id,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Option<Change> {
        let watch = self.watches.get(&watch)?;
        let was_seen = old.is_some_and(|entry| watch.query.means(entry));
        let seen = new.filter(|entry| watch.query.means(entry));
        if !may_read(&self.names, &watch.rights, id) {
            return None;
        }
        match (was_seen, seen) {
            (false, None) => None,
            (false, Some(entry)) => Some(Change::Joined(member(&self.names, id, entry))),
            (true, Some(entry)) => Some(Change::Changed(member(&self.names, id, entry))),
            (true, None) => Some(Change::Left(name_of(&self.names, id))),
        }
    }

    /// What a watch sees at first.
    fn first(&self, watch: u64) -> Vec<Change> {
        let watch = self.watches.get(&watch);
        let members = watch.map(|watch| self.list(&watch.query, &watch.rights));
        members.into_iter().flatten().map(Change::Joined).collect()
    }

    fn differences(
        &mut self,
        before: &Before,
        touched: BTreeMap<u64, Vec<Id>>,
    ) -> Vec<(ResolutionId, Difference)> {
        let changes = Changes {
            names: &self.names,
            before,
        };
        let mut all = BTreeMap::new();
        for id in std::mem::take(&mut self.stale) {
            if let Some(resolution) = self.resolutions.get_mut(&id) {
                let old = resolution.renew(id, &self.names, &mut self.index);
                all.insert(id, changes.between(&old, &resolution.members));
            }
        }
        for (id, nodes) in touched {
            let resolution = self.resolutions.get_mut(&id);
            if let Some(resolution) = resolution.filter(|_| !all.contains_key(&id)) {
                all.insert(id, changes.adjust(resolution, nodes));
            }
        }
        let told = all
            .into_iter()
            .filter(|(_, difference)| !difference.is_empty());
        told.map(|(id, difference)| (ResolutionId(id), difference))
            .collect()
    }
}

fn in_order(watches: BTreeMap<u64, Vec<Change>>) -> Vec<(WatchId, Vec<Change>)> {
    let told = watches
        .into_iter()
        .filter(|(_, changes)| !changes.is_empty());
    told.map(|(id, mut changes)| {
        changes.sort_unstable_by(|one, other| one.name().cmp(other.name()));
        (WatchId(id), changes)
    })
    .collect()
}
