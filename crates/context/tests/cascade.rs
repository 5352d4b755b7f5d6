//! Keys of several namespaces do what a list of them does that is too simple to
//! be wrong.
//!
//! Two contexts assign and remove, files and options are replaced, the key set
//! is held; after each step every value and every origin is what the model
//! finds by replaying its log. `MILIEU_ROUNDS` and `MILIEU_SEED` are those of
//! `tests/model.rs`.

#[path = "support/random.rs"]
mod random;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use milieu_context::{Context, Coordinator, Held};
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use random::Random;
use support::*;

environment! { mod env;
    number: i32 = "/n/number" { "default" = "1", "check/range" = "0-9" };
    text: Text = "/n/text" { "default" = "none" };
    one: Text = "/n/%a%/one";
    either: i32 = "/n/either" { "fallback/#0" = "/n/number" };
}
use env::{Environment, at};

type Cx = Context<Environment>;

const NAMES: [&str; 5] = ["/n/number", "/n/text", "/n/1/one", "/n/%/one", "/n/either"];

/// Who gave a text: the program, or a namespace's source with this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Giver {
    Program,
    Source(Namespace, u32),
}

impl Giver {
    fn namespace(self) -> Namespace {
        match self {
            Giver::Program => Namespace::User,
            Giver::Source(namespace, _) => namespace,
        }
    }

    fn origin(self) -> Option<Origin> {
        match self {
            Giver::Program => None,
            Giver::Source(namespace, line) => {
                let source = SourceOf::File(namespace.as_str().into());
                Some(Origin::at(&source.into(), line))
            }
        }
    }
}

/// What was published. `Replace` makes no generation where nothing differs.
#[derive(Clone, Debug)]
enum Event {
    Put(&'static str, String, Giver),
    Remove(&'static str),
    Replace(Namespace, Source, Source),
}

/// What a source says: texts and lines.
type Source = BTreeMap<&'static str, (String, u32)>;

/// The keys of each name.
#[derive(Clone, Default, PartialEq, Debug)]
struct State(BTreeMap<&'static str, Vec<(Giver, String)>>);

impl State {
    fn first(&self, name: &str) -> Option<&(Giver, String)> {
        self.0.get(name)?.iter().min()
    }

    fn of(&self, name: &str, namespace: Namespace) -> Option<&(Giver, String)> {
        let mut keys = self.0.get(name)?.iter();
        keys.find(|(giver, _)| giver.namespace() == namespace)
    }

    fn remove(&mut self, name: &str, namespace: Namespace) {
        if let Some(keys) = self.0.get_mut(name) {
            keys.retain(|(giver, _)| giver.namespace() != namespace);
        }
    }

    fn put(&mut self, name: &'static str, text: String, giver: Giver) {
        self.remove(name, giver.namespace());
        self.0.entry(name).or_default().push((giver, text));
    }

    fn sorted(mut self) -> State {
        self.0.values_mut().for_each(|keys| keys.sort());
        self.0.retain(|_, keys| !keys.is_empty());
        self
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Put(name, text, giver) => self.put(name, text.clone(), *giver),
            Event::Remove(name) => self.remove(name, Namespace::User),
            Event::Replace(namespace, known, keys) => {
                for name in NAMES {
                    self.replace(name, *namespace, known.get(name), keys.get(name));
                }
            }
        }
    }

    fn replace(
        &mut self,
        name: &'static str,
        namespace: Namespace,
        known: Option<&(String, u32)>,
        now: Option<&(String, u32)>,
    ) {
        let here = self.of(name, namespace).cloned();
        let text = |said: Option<&(String, u32)>| said.map(|(text, _)| text.clone());
        match (here, now) {
            (None, Some(_)) if text(known) == text(now) => {}
            (Some((Giver::Program, here)), _) => {
                let option = self.of(name, Namespace::Proc).is_some();
                if text(now) == Some(here.clone()) && !option {
                    let line = now.map_or(0, |(_, line)| *line);
                    self.put(name, here, Giver::Source(namespace, line));
                }
            }
            (_, Some((text, line))) => {
                self.put(name, text.clone(), Giver::Source(namespace, *line));
            }
            (_, None) => self.remove(name, namespace),
        }
    }
}

/// What the model knows of a context.
#[derive(Clone, Default)]
struct Twin {
    seen: usize,
    generation: u64,
    own: Vec<usize>,
}

struct World {
    coordinator: Coordinator,
    random: Random,
    /// Each event with the generation that it made.
    log: Vec<(Event, u64)>,
    twins: Vec<Twin>,
    held: Option<(Held, usize)>,
    known: BTreeMap<Namespace, Source>,
    trace: Vec<String>,
    seed: u64,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("MILIEU_SEED={} repeats this; steps:", self.seed);
            self.trace.iter().for_each(|step| eprintln!("  {step}"));
        }
    }
}

impl World {
    fn generation(&self, count: usize) -> u64 {
        self.log[..count]
            .last()
            .map_or(0, |(_, generation)| *generation)
    }

    fn first(&self, count: usize) -> State {
        let mut state = State::default();
        self.log[..count]
            .iter()
            .for_each(|(event, _)| state.apply(event));
        state
    }

    fn all(&self) -> State {
        self.first(self.log.len())
    }

    fn visible(&self) -> usize {
        self.held
            .as_ref()
            .map_or(self.log.len(), |(_, count)| *count)
    }

    fn state(&self, twin: &Twin) -> State {
        let mut state = self.first(twin.seen);
        twin.own.iter().for_each(|at| state.apply(&self.log[*at].0));
        state
    }

    fn publish(&mut self, event: Event) {
        let (before, generation) = (self.all().sorted(), self.generation(self.log.len()));
        let silent = matches!(event, Event::Replace(..));
        self.log.push((event, generation));
        if !silent || self.all().sorted() != before {
            self.log.last_mut().expect("pushed just now").1 += 1;
        }
    }

    fn publish_of(&mut self, i: usize, event: Event) {
        let number = self.log.len();
        let follows = self.twins[i].generation == self.generation(number);
        self.publish(event);
        let generation = self.generation(self.log.len());
        let held = self.held.is_some();
        let twin = &mut self.twins[i];
        if follows && !held {
            (twin.seen, twin.generation) = (self.log.len(), generation);
            twin.own.clear();
        } else {
            twin.own.push(number);
        }
    }

    fn synchronize(&mut self, i: usize) {
        let visible = self.visible();
        let generation = self.generation(visible);
        let twin = &mut self.twins[i];
        if twin.generation != generation {
            (twin.seen, twin.generation) = (visible, generation);
            twin.own.retain(|at| *at >= visible);
        }
    }

    fn text(&mut self, name: &str) -> String {
        let texts: &[&str] = match name {
            "/n/number" | "/n/either" => &["0", "1", "5", "9"],
            _ => &["de", "it", ""],
        };
        self.random.of(texts).into()
    }

    fn some_source(&mut self, before: &Source) -> Source {
        let mut source = before.clone();
        for name in NAMES {
            match self.random.below(6) {
                0 => {
                    source.remove(name);
                }
                1 | 2 => {
                    let text = self.text(name);
                    source.insert(name, (text, 0));
                }
                _ => {}
            }
        }
        let shift = u32::from(self.random.once_in(3));
        for ((_, line), number) in source.values_mut().zip(1..) {
            *line = number + shift;
        }
        source
    }
}

fn key_set(namespace: Namespace, source: &Source) -> KeySet {
    let key = |(name, (text, line)): (&&str, &(String, u32))| {
        let origin = Giver::Source(namespace, *line).origin().unwrap();
        Key::new(namespace, &Name::parse(name).unwrap(), text, origin)
    };
    source.iter().map(key).collect()
}

fn replace(world: &mut World) {
    let namespace = world.random.of(&Namespace::ALL);
    let known = world.known.get(&namespace).cloned().unwrap_or_default();
    let mut now = world.some_source(&known);
    let old = key_set(namespace, &known);
    if world.random.once_in(4) {
        let mut wrong = now.clone();
        let mut names = BTreeSet::new();
        for name in ["/n/number", "/n/either"] {
            let text = world.random.of(&["12", "many"]);
            wrong.insert(name, (text.into(), 7));
            names.insert(name.to_owned());
        }
        // Which breaks no rule of the second name.
        wrong.insert("/n/either", ("12".into(), 7));
        names.remove("/n/either");
        world.trace.push(format!("refuse {namespace} {wrong:?}"));
        let refused = world
            .coordinator
            .replace(namespace, &old, &key_set(namespace, &wrong))
            .unwrap_err();
        let refused: BTreeSet<String> = refused.into_iter().map(|error| error.name).collect();
        assert_eq!(refused, names);
        now = wrong;
        now.remove("/n/number");
        now.remove("/n/either");
    }
    world
        .trace
        .push(format!("replace {namespace} {known:?} by {now:?}"));
    let before = world.all();
    let changed = world
        .coordinator
        .replace(namespace, &old, &key_set(namespace, &now))
        .unwrap();
    world.publish(Event::Replace(namespace, known, now.clone()));
    let after = world.all();
    let changed = changed.into_iter().map(|difference| {
        let content = |content: milieu_context::Content| (content.text, content.origin);
        let (before, after) = (
            difference.before.map(content),
            difference.after.map(content),
        );
        (difference.name, before, after)
    });
    let expected = NAMES.iter().filter_map(|name| {
        let content = |state: &State| {
            let (giver, text) = state.first(name)?;
            Some((text.clone(), giver.origin()))
        };
        let (before, after) = (content(&before), content(&after));
        let text = |content: &Option<(String, _)>| Some(content.as_ref()?.0.clone());
        (text(&before) != text(&after)).then(|| ((*name).to_owned(), before, after))
    });
    let sorted = |mut all: Vec<_>| {
        all.sort_by(|a: &(String, _, _), b| a.0.cmp(&b.0));
        all
    };
    assert_eq!(sorted(changed.collect()), sorted(expected.collect()));
    world.known.insert(namespace, now);
}

fn assign(world: &mut World, cx: &mut Cx, i: usize) {
    let name = world.random.of(&NAMES);
    let text = world.text(name);
    if world.random.once_in(3) {
        world.trace.push(format!("unset {name} in {i}"));
        world.publish_of(i, Event::Remove(name));
        match name {
            "/n/number" => cx.unset::<at::number>(),
            "/n/text" => cx.unset::<at::text>(),
            "/n/either" => cx.unset::<at::either>(),
            "/n/%/one" => cx.unset::<at::one>(),
            _ => cx.with(A("1"), |cx| cx.unset::<at::one>()),
        }
        return;
    }
    world.trace.push(format!("set {name} = {text:?} in {i}"));
    world.publish_of(i, Event::Put(name, text.clone(), Giver::Program));
    match name {
        "/n/number" => cx.set::<at::number>(text.parse().unwrap()),
        "/n/text" => cx.set::<at::text>(&text),
        "/n/either" => cx.set::<at::either>(text.parse().unwrap()),
        "/n/%/one" => cx.set::<at::one>(&text),
        _ => cx.with(A("1"), |cx| cx.set::<at::one>(&text)),
    }
    .unwrap();
}

fn by_name(world: &mut World) {
    let name = world.random.of(&NAMES);
    let text = world.text(name);
    match world.random.below(3) {
        0 => {
            world.trace.push(format!("remove {name}"));
            world.coordinator.remove(name).unwrap();
            world.publish(Event::Remove(name));
        }
        given => {
            let giver = match given {
                1 => Giver::Program,
                _ => Giver::Source(Namespace::User, 3),
            };
            world
                .trace
                .push(format!("assign {name} = {text:?} by {giver:?}"));
            let assigned = world.coordinator.assign(name, &text, giver.origin());
            assigned.unwrap();
            world.publish(Event::Put(name, text, giver));
        }
    }
}

fn forget(world: &mut World, cx: &mut Cx, i: usize) {
    world.trace.push(format!("forget 1 in {i}"));
    if world.all().of("/n/1/one", Namespace::User).is_some() {
        world.publish_of(i, Event::Remove("/n/1/one"));
    }
    cx.forget(A("1"));
}

fn check(world: &World, contexts: &mut [Cx]) {
    for (twin, cx) in world.twins.iter().zip(contexts) {
        let state = world.state(twin);
        let content = |name| {
            let (giver, text) = state.first(name)?;
            Some((text.clone(), giver.origin()))
        };
        let read = |text: String, default: bool, origin: Option<&Origin>| {
            (!default).then(|| (text, origin.cloned()))
        };
        macro_rules! assert_is {
            ($cx:ident.$field:ident, $expected:expr) => {
                let default = $cx.is_default::<at::$field>();
                let read = read($cx.$field.to_string(), default, $cx.origin::<at::$field>());
                assert_eq!(read, $expected, stringify!($field));
            };
        }
        assert_is!(cx.number, content("/n/number"));
        assert_is!(cx.text, content("/n/text"));
        assert_is!(cx.one, content("/n/%/one"));
        assert_is!(cx.either, content("/n/either").or(content("/n/number")));
        {
            let cx = cx.enter(A("1"));
            assert_is!(cx.one, content("/n/1/one"));
        }
        assert_eq!(
            cx.has_news(),
            twin.generation != world.generation(world.visible())
        );
    }
    if let Some((held, count)) = &world.held {
        let state = world.first(*count);
        for namespace in Namespace::ALL {
            let held: BTreeMap<_, _> = held
                .in_namespace(namespace)
                .iter()
                .map(|entry| {
                    (
                        entry.name.to_owned(),
                        (entry.text.to_owned(), entry.origin.cloned()),
                    )
                })
                .collect();
            let expected = NAMES.iter().filter_map(|name| {
                let (giver, text) = state.of(name, namespace)?;
                Some(((*name).to_owned(), (text.clone(), giver.origin())))
            });
            assert_eq!(held, expected.collect(), "{namespace}");
        }
    }
}

fn round(seed: u64) {
    let coordinator = Coordinator::new();
    let mut contexts: [Cx; 3] = std::array::from_fn(|_| coordinator.context().unwrap());
    let mut world = World {
        coordinator,
        random: Random::new(seed),
        log: Vec::new(),
        twins: vec![Twin::default(); 3],
        held: None,
        known: BTreeMap::new(),
        trace: Vec::new(),
        seed,
    };
    let steps = size(150, 40, 20);
    for step in 1..=steps {
        let i = world.random.below(contexts.len());
        match world.random.below(20) {
            0..6 => assign(&mut world, &mut contexts[i], i),
            6..10 => by_name(&mut world),
            10..14 => replace(&mut world),
            14 => forget(&mut world, &mut contexts[i], i),
            15 if world.held.is_none() => {
                world.trace.push("hold".into());
                let count = world.log.len();
                world.held = Some((world.coordinator.require_lock(), count));
            }
            15 | 16 => {
                world.trace.push("release".into());
                world.held = None;
            }
            _ => {
                world.trace.push(format!("sync {i}"));
                world.synchronize(i);
                contexts[i].sync();
            }
        }
        if step % size(1, 1, 5) == 0 {
            check(&world, &mut contexts);
        }
    }
}

#[test]
fn keys_of_several_namespaces_agree_with_a_list_of_them() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    if let Some(seed) = number("MILIEU_SEED") {
        return round(seed);
    }
    let rounds = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => size(0, 2, 1),
        (_, true) => 100,
        _ => 1000,
    };
    (0..number("MILIEU_ROUNDS").unwrap_or(rounds)).for_each(round);
}
