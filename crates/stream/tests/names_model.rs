//! The naming tree does what a model does that is too simple to be wrong.
//!
//! The model keeps names in a map, and after each step resolves every query anew,
//! by trying every name. What the tree tells is applied to what was known before;
//! the result must be what the model finds, and nothing may be told that has not
//! changed.
//!
//! The seeds are fixed. `MILIEU_ROUNDS` asks for more of them, `MILIEU_SEED` for a
//! single one; a failure prints its seed and what led to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::random::Random;
use milieu_stream::names::{
    Binding, Change, Difference, DriveId, Entry, LayerValues, Limits, Publisher, Query,
    ResolutionId, Rights, Scope, Service, Tree, WatchId, Why,
};
use milieu_transfer::Time;

type Names = BTreeMap<String, Entry>;

/// A subscription, and what it has been told.
struct Subscription {
    query: Query,
    layers: Arc<LayerValues>,
    rights: Arc<Rights>,
    told: Names,
}

struct Watch {
    query: Query,
    rights: Arc<Rights>,
    told: Names,
}

struct World {
    random: Random,
    log: String,
    now: i64,
    tree: Tree,
    names: Names,
    subscriptions: BTreeMap<ResolutionId, Subscription>,
    watches: BTreeMap<WatchId, Watch>,
    drives: BTreeMap<DriveId, (String, Query)>,
    refusals: u64,
}

const LAYERS: [&str; 3] = ["room", "who", "mode"];
const VALUES: [&str; 9] = ["", "a", "b", "5", "*", "**", "..", "x/y", "a\nb"];
const ENTRIES_MAX: usize = 20;

fn means(query: &Query, entry: &Entry) -> bool {
    match entry {
        Entry::Service(service) => query.holds(service),
        _ => query.conditions().is_empty(),
    }
}

/// Follows bindings, every one in full.
fn collect(
    names: &Names,
    query: &Query,
    subscription: &Subscription,
    out: &mut Names,
    depth: usize,
) {
    assert!(depth < 40, "a circle was accepted");
    let Some(query) = query.resolve(&subscription.layers) else {
        return;
    };
    for (name, entry) in names {
        if !query.matches(name) || !subscription.rights.read.allows(name) {
            continue;
        }
        match entry {
            Entry::Binding(binding) => {
                for target in binding.targets() {
                    collect(names, target, subscription, out, depth + 1);
                }
            }
            _ if means(&subscription.query, entry) => {
                out.insert(name.clone(), entry.clone());
            }
            _ => {}
        }
    }
}

/// Every path of bindings from a query: whether it comes back to `to`, and the
/// layers on the way.
fn paths(
    names: &Names,
    query: &Query,
    to: &str,
    layers: &mut BTreeSet<String>,
    depth: usize,
) -> bool {
    layers.extend(query.layers().map(str::to_owned));
    let mut back = query.matches(to);
    if depth == 0 {
        return back;
    }
    for (name, entry) in names {
        if let Entry::Binding(binding) = entry {
            if query.matches(name) {
                for target in binding.targets() {
                    back |= paths(names, target, to, layers, depth - 1);
                }
            }
        }
    }
    back
}

fn layers_of(names: &Names, query: &Query) -> BTreeSet<String> {
    let mut layers = BTreeSet::new();
    paths(names, query, "", &mut layers, 6);
    layers
}

/// Whether some flow drives a layer that its name depends on, also through
/// layers that others drive.
fn drives_itself<'a>(names: &Names, drives: impl Iterator<Item = &'a (String, Query)>) -> bool {
    let mut on: Vec<(String, BTreeSet<String>)> = drives
        .map(|(layer, query)| (layer.clone(), layers_of(names, query)))
        .collect();
    for _ in 0..on.len() {
        let known = on.clone();
        for (_, layers) in &mut on {
            for (driven, more) in &known {
                if layers.contains(driven) {
                    layers.extend(more.iter().cloned());
                }
            }
        }
    }
    on.iter().any(|(layer, layers)| layers.contains(layer))
}

impl World {
    fn new(seed: u64) -> World {
        World {
            random: Random::new(seed),
            log: String::new(),
            now: 0,
            tree: Tree::new(Limits {
                entries: ENTRIES_MAX,
                queries: 30,
            }),
            names: Names::new(),
            subscriptions: BTreeMap::new(),
            watches: BTreeMap::new(),
            drives: BTreeMap::new(),
            refusals: 0,
        }
    }

    fn name(&mut self) -> String {
        let count = 1 + self.random.below(3);
        let mut level = || format!("/{}", self.random.of(&["a", "b", "5", "%", "\\.."]));
        (0..count).map(|_| level()).collect()
    }

    fn query(&mut self) -> Query {
        let exact = self.random.below(3) == 0;
        let mut text = if exact {
            self.name()
        } else {
            let levels = ["a", "b", "5", "*", "*", "**", "%room%", "%who%", "x-%mode%"];
            let count = 1 + self.random.below(3);
            (0..count)
                .map(|_| format!("/{}", self.random.of(&levels)))
                .collect()
        };
        if self.random.below(5) == 0 {
            text += self
                .random
                .of(&["?kind", "?kind=lamp", "?colour&kind=lamp"]);
        }
        Query::parse(&text).expect("a query")
    }

    fn target(&mut self) -> Query {
        let query = self.query();
        Query::parse(query.path()).expect("a query")
    }

    fn rights(&mut self) -> Arc<Rights> {
        let read = match self.random.below(3) {
            0 => Scope::parse(["/a/**", "/*/5"]),
            _ => Ok(Scope::all()),
        };
        let read = read.expect("a right");
        Arc::new(Rights {
            read,
            ..Rights::default()
        })
    }

    fn layers(&mut self) -> Arc<LayerValues> {
        let of = |layer| (layer, self.random.of(&VALUES));
        Arc::new(LAYERS.map(of).into_iter().collect())
    }

    fn entry(&mut self) -> Entry {
        match self.random.below(5) {
            0 | 1 => Publisher(self.random.below(4) as u64).into(),
            2 => {
                let attributes = [("kind", "lamp"), ("colour", "red")];
                let count = self.random.below(3);
                let endpoint = self.random.of(&["one", "other"]);
                let until = self.until();
                Service::new(endpoint, attributes[..count].iter().copied(), until)
                    .expect("a service")
                    .into()
            }
            _ => {
                let count = self.random.below(4);
                let targets: Vec<Query> = (0..count).map(|_| self.target()).collect();
                Binding::new(targets).expect("a binding").into()
            }
        }
    }

    fn until(&mut self) -> Time {
        match self.random.below(4) {
            0 => Time::MAX,
            ahead => Time::from_nanoseconds(self.now + ahead as i64 * 3),
        }
    }

    fn act(&mut self) {
        match self.random.below(16) {
            0..=5 => self.put(),
            6 | 7 => {
                let name = self.name();
                writeln!(self.log, "remove {name}").expect("text");
                assert_eq!(self.tree.remove(&name), self.names.remove(&name));
            }
            8 => self.renew(),
            9 | 10 => self.subscribe(),
            11 => {
                let layers = self.layers();
                let known: Vec<ResolutionId> = self.subscriptions.keys().copied().collect();
                if !known.is_empty() {
                    let id = self.random.of(&known);
                    writeln!(self.log, "layers of {id:?}: {layers:?}").expect("text");
                    self.tree.set_layers(id, Arc::clone(&layers));
                    self.subscriptions.get_mut(&id).expect("is known").layers = layers;
                }
            }
            12 => self.watch(),
            13 => self.drive(),
            14 => self.end(),
            _ => self.step(),
        }
    }

    fn put(&mut self) {
        let (name, entry) = (self.name(), self.entry());
        writeln!(self.log, "put {name} {entry:?}").expect("text");
        let mut with = self.names.clone();
        let old = with.insert(name.clone(), entry.clone());
        let put = self.tree.put(&name, entry.clone());
        let is_full = with.len() > ENTRIES_MAX;
        let is_circle = match &entry {
            Entry::Binding(binding) if !is_full => {
                let back = |target| paths(&with, target, &name, &mut BTreeSet::new(), 6);
                binding.targets().iter().any(back) || drives_itself(&with, self.drives.values())
            }
            _ => false,
        };
        match put {
            Ok(replaced) => {
                assert!(!is_full && !is_circle, "was accepted");
                assert_eq!(replaced, old);
                self.names = with;
            }
            Err(refusal) => {
                self.refusals += 1;
                assert_eq!(refusal.why == Why::Full, is_full, "{refusal}");
                assert_eq!(refusal.why == Why::Cycle, is_circle, "{refusal}");
                assert!(!is_circle || refusal.message.contains(" → "), "{refusal}");
            }
        }
    }

    fn renew(&mut self) {
        let (name, until) = (self.name(), self.until());
        writeln!(self.log, "renew {name} {until:?}").expect("text");
        let renewed = self.tree.renew(&name, until);
        if let Some(Entry::Service(service)) = self.names.get(&name) {
            assert_eq!(renewed, Ok(()));
            let attributes: Vec<_> = service.attributes().collect();
            let service = Service::new(service.endpoint(), attributes, until).expect("as before");
            self.names.insert(name, service.into());
        } else {
            self.refusals += 1;
            assert_eq!(renewed.expect_err("no service").why, Why::Unknown);
        }
    }

    fn subscribe(&mut self) {
        let (query, layers, rights) = (self.query(), self.layers(), self.rights());
        writeln!(self.log, "subscribe {query} {layers:?} {rights:?}").expect("text");
        let subscribed =
            self.tree
                .subscribe(query.clone(), Arc::clone(&layers), Arc::clone(&rights));
        let Ok(id) = subscribed else {
            self.refusals += 1;
            return;
        };
        let subscription = Subscription {
            query,
            layers,
            rights,
            told: Names::new(),
        };
        self.subscriptions.insert(id, subscription);
    }

    fn watch(&mut self) {
        let (query, rights) = (self.query(), self.rights());
        writeln!(self.log, "watch {query} {rights:?}").expect("text");
        let Ok(id) = self.tree.watch(query.clone(), Arc::clone(&rights)) else {
            self.refusals += 1;
            return;
        };
        assert!(!query.is_contextual());
        self.watches.insert(
            id,
            Watch {
                query,
                rights,
                told: Names::new(),
            },
        );
    }

    fn drive(&mut self) {
        let (layer, query) = (self.random.of(&LAYERS), self.query());
        writeln!(self.log, "drive {layer} by {query}").expect("text");
        let new = (layer.to_owned(), query.clone());
        let is_circle = drives_itself(&self.names, self.drives.values().chain([&new]));
        match self.tree.drive(layer, query) {
            Ok(id) => {
                assert!(!is_circle, "was accepted");
                self.drives.insert(id, new);
            }
            Err(refusal) => {
                self.refusals += 1;
                assert!(refusal.why == Why::Full || is_circle, "{refusal}");
            }
        }
    }

    fn end(&mut self) {
        match self.random.below(3) {
            0 => {
                let ended = self.subscriptions.pop_first();
                ended
                    .into_iter()
                    .for_each(|(id, _)| self.tree.unsubscribe(id));
            }
            1 => {
                let ended = self.watches.pop_first();
                ended.into_iter().for_each(|(id, _)| self.tree.unwatch(id));
            }
            _ => {
                let ended = self.drives.pop_first();
                ended.into_iter().for_each(|(id, _)| self.tree.undrive(id));
            }
        }
    }

    fn step(&mut self) {
        self.now += self.random.below(4) as i64;
        let now = Time::from_nanoseconds(self.now);
        writeln!(self.log, "step {}", self.now).expect("text");
        self.names.retain(|_, entry| match entry {
            Entry::Service(service) => service.until() > now,
            _ => true,
        });
        let news = self.tree.step(now);
        assert_eq!(self.tree.len(), self.names.len());
        assert!(self.tree.due().is_none_or(|due| due > now));
        let mut differences: BTreeMap<ResolutionId, Difference> =
            news.resolutions.into_iter().collect();
        for (id, subscription) in &mut self.subscriptions {
            let mut wanted = Names::new();
            collect(
                &self.names,
                &subscription.query,
                subscription,
                &mut wanted,
                0,
            );
            let difference = differences.remove(id);
            assert!(
                difference
                    .as_ref()
                    .is_none_or(|difference| !difference.is_empty())
            );
            apply(
                &mut subscription.told,
                difference.unwrap_or_default(),
                &wanted,
            );
            let (query, layers, rights) = (
                &subscription.query,
                &subscription.layers,
                &subscription.rights,
            );
            for members in [
                self.tree.members(*id),
                self.tree.resolve(query, layers, rights),
            ] {
                let members = members
                    .into_iter()
                    .map(|m| (m.name.as_str().to_owned(), m.entry));
                assert_eq!(
                    members.collect::<Vec<_>>(),
                    wanted.clone().into_iter().collect::<Vec<_>>()
                );
            }
        }
        assert!(differences.is_empty(), "told to nobody");
        let mut changes: BTreeMap<WatchId, Vec<Change>> = news.watches.into_iter().collect();
        for (id, watch) in &mut self.watches {
            watched(watch, &self.names, changes.remove(id).unwrap_or_default());
            let listed = self.tree.list(&watch.query, &watch.rights).into_iter();
            let listed: Names = listed
                .map(|m| (m.name.as_str().to_owned(), m.entry))
                .collect();
            assert_eq!(listed, watch.told);
        }
        assert!(changes.is_empty(), "told to nobody");
        let again = self.tree.step(now);
        assert!(again.is_empty(), "told twice: {again:?}");
        assert_eq!(self.tree.refusals().total(), self.refusals);
        let query = self.query();
        let found = self
            .tree
            .layers_of(&query)
            .into_iter()
            .map(|found| found.layer.into());
        assert_eq!(
            found.collect::<BTreeSet<String>>(),
            layers_of(&self.names, &query)
        );
    }
}

fn same(one: &Entry, other: &Entry) -> bool {
    match (one, other) {
        (Entry::Service(one), Entry::Service(other)) => {
            one.endpoint() == other.endpoint() && one.attributes().eq(other.attributes())
        }
        _ => one == other,
    }
}

/// What is told leads from what was to what is, and says nothing else.
fn apply(told: &mut Names, difference: Difference, wanted: &Names) {
    for member in difference.left {
        let name = member.name.as_str();
        let old = told.remove(name).expect("what has left was there");
        assert!(same(&old, &member.entry), "{name} left as it was");
        assert!(
            wanted.get(name).is_none_or(|new| !same(&old, new)),
            "{name} stayed"
        );
    }
    for member in difference.joined {
        let old = told.insert(member.name.as_str().to_owned(), member.entry);
        assert_eq!(old, None, "{} was not there", member.name);
    }
    for member in difference.changed {
        let old = told.insert(member.name.as_str().to_owned(), member.entry.clone());
        let old = old.expect("what has changed was there");
        assert!(!same(&old, &member.entry), "{} has changed", member.name);
        assert_eq!((old.kind(), member.entry.kind()), ("service", "service"));
    }
    compare(told, wanted);
}

/// Leases go on without anybody being told.
fn compare(told: &mut Names, wanted: &Names) {
    assert_eq!(
        told.keys().collect::<Vec<_>>(),
        wanted.keys().collect::<Vec<_>>()
    );
    for (name, entry) in told {
        assert!(same(entry, &wanted[name]), "{name}");
        entry.clone_from(&wanted[name]);
    }
}

fn watched(watch: &mut Watch, names: &Names, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Joined(member) => {
                let old = watch
                    .told
                    .insert(member.name.as_str().to_owned(), member.entry);
                assert_eq!(old, None);
            }
            Change::Changed(member) => {
                let old = watch
                    .told
                    .insert(member.name.as_str().to_owned(), member.entry.clone());
                assert!(!same(&old.expect("was there"), &member.entry));
            }
            Change::Left(name) => assert!(watch.told.remove(name.as_str()).is_some()),
        }
    }
    let is_seen = |(name, entry): &(&String, &Entry)| {
        watch.query.matches(name) && means(&watch.query, entry) && watch.rights.read.allows(name)
    };
    let wanted = names
        .iter()
        .filter(is_seen)
        .map(|(name, entry)| (name.clone(), entry.clone()));
    compare(&mut watch.told, &wanted.collect());
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn a_tree_does_what_the_model_does() {
    let seeds = match number("MILIEU_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MILIEU_ROUNDS").unwrap_or(60),
    };
    for seed in seeds {
        let mut world = World::new(seed);
        let run = catch_unwind(AssertUnwindSafe(|| (0..300).for_each(|_| world.act())));
        if let Err(panic) = run {
            eprintln!("MILIEU_SEED={seed}\n{}", world.log);
            resume_unwind(panic);
        }
    }
}
