//! Arrays do what lists of their elements do that are too simple to be wrong.
//!
//! Contexts assign and remove whole arrays, tools single elements, files and
//! options are replaced, the key set is held; after each step every array is
//! what the model finds by replaying its log. `MILIEU_ROUNDS` and `MILIEU_SEED`
//! are those of `tests/model.rs`.

#[path = "support/random.rs"]
mod random;
mod support;

use std::collections::BTreeMap;

use milieu_context::{Context, Coordinator, Held};
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf, rules::array_level};
use random::Random;
use support::*;

environment! { mod env;
    numbers: Array<i32> = "/n/%a%/#" { "check/range" = "0-9", "array/max" = "3" };
    texts: Array<Text> = "/t/#" { "check/length" = "0-3", "array/min" = "2" };
    either: Array<Text> = "/e/%a%/#" { "fallback/#0" = "/t/#" };
    one: Text = "/t/#1";
}
use env::{Environment, at};

type Cx = Context<Environment>;

/// What the elements stand below.
const ARRAYS: [&str; 5] = ["/n/%", "/n/1", "/t", "/e/%", "/e/1"];
const TEXTS: usize = 2;

/// An element by its index, and the array itself as the last.
type Part = usize;
const ITSELF: Part = 9;

fn name(array: usize, part: Part) -> String {
    match part {
        ITSELF => format!("{}/#", ARRAYS[array]),
        index => format!("{}/{}", ARRAYS[array], array_level(index)),
    }
}

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

/// What a source says: texts and lines.
type Source = BTreeMap<(usize, Part), (String, u32)>;

#[derive(Clone, Debug)]
enum Event {
    /// All elements, by the program.
    Assign(usize, Vec<String>),
    /// The user has none any more.
    Clear(Vec<usize>),
    Put(usize, Part, String, Giver),
    Remove(usize, Part),
    Replace(Namespace, Source, Source),
}

/// The keys by namespace, array and part.
#[derive(Clone, Default, PartialEq, Debug)]
struct State(BTreeMap<(Namespace, usize, Part), (Giver, String)>);

impl State {
    fn of(&self, namespace: Namespace, array: usize) -> BTreeMap<Part, (Giver, String)> {
        let keys = self.0.iter();
        let of = keys.filter(|((n, a, _), _)| (*n, *a) == (namespace, array));
        of.map(|((_, _, part), key)| (*part, key.clone())).collect()
    }

    /// What a namespace gives: the first key, and the elements up to a gap.
    fn given(&self, namespace: Namespace, array: usize) -> Option<(Giver, Vec<String>)> {
        let keys = self.of(namespace, array);
        if let Some((giver, _)) = keys.get(&ITSELF) {
            return Some((*giver, Vec::new()));
        }
        let (giver, _) = keys.get(&0)?;
        let elements = (0..ITSELF).map_while(|index| Some(keys.get(&index)?.1.clone()));
        Some((*giver, elements.collect()))
    }

    fn in_force(&self, array: usize) -> Option<(Giver, Vec<String>)> {
        let all = Namespace::ALL.iter();
        all.filter_map(|namespace| self.given(*namespace, array))
            .min_by_key(|(giver, _)| *giver)
    }

    fn clear(&mut self, array: usize) {
        self.0
            .retain(|(n, a, _), _| (*n, *a) != (Namespace::User, array));
    }

    fn put(&mut self, array: usize, part: Part, text: String, giver: Giver) {
        self.0
            .insert((giver.namespace(), array, part), (giver, text));
    }

    fn assign(&mut self, array: usize, texts: Vec<String>) {
        self.clear(array);
        if texts.is_empty() {
            self.put(array, ITSELF, String::new(), Giver::Program);
        }
        for (index, text) in texts.into_iter().enumerate() {
            self.put(array, index, text, Giver::Program);
        }
    }

    fn apply(&mut self, event: &Event) {
        match event.clone() {
            Event::Assign(array, texts) => self.assign(array, texts),
            Event::Clear(arrays) => arrays.into_iter().for_each(|array| self.clear(array)),
            Event::Put(array, ITSELF, _, Giver::Program) => self.assign(array, Vec::new()),
            Event::Put(array, index, text, Giver::Program) => {
                let (giver, mut texts) = match self.in_force(array) {
                    Some((giver, texts)) => (Some(giver.namespace()), texts),
                    None => (None, Vec::new()),
                };
                let ours = giver == Some(Namespace::User) && !texts.is_empty();
                if giver.is_none() || ours || index > texts.len() {
                    return self.put(array, index, text, Giver::Program);
                }
                texts.truncate(texts.len().max(index));
                match texts.get_mut(index) {
                    Some(there) => *there = text,
                    None => texts.push(text),
                }
                self.assign(array, texts);
            }
            Event::Put(array, part, text, giver) => self.put(array, part, text, giver),
            Event::Remove(array, part) => {
                self.0.remove(&(Namespace::User, array, part));
            }
            Event::Replace(namespace, known, now) => {
                for array in 0..ARRAYS.len() {
                    let of = |source: &Source| -> BTreeMap<Part, (String, u32)> {
                        let of = source.iter().filter(|((a, _), _)| *a == array);
                        of.map(|((_, part), said)| (*part, said.clone())).collect()
                    };
                    self.replace(namespace, array, &of(&known), &of(&now));
                }
            }
        }
    }

    fn replace(
        &mut self,
        namespace: Namespace,
        array: usize,
        known: &BTreeMap<Part, (String, u32)>,
        now: &BTreeMap<Part, (String, u32)>,
    ) {
        let here = self.of(namespace, array);
        let texts = |said: &BTreeMap<Part, (String, u32)>| -> Vec<(Part, String)> {
            said.iter()
                .map(|(part, (text, _))| (*part, text.clone()))
                .collect()
        };
        let mine = here.values().any(|(giver, _)| *giver == Giver::Program);
        if mine {
            let here: Vec<_> = here
                .iter()
                .map(|(p, (_, text))| (*p, text.clone()))
                .collect();
            if here != texts(now) || !self.of(Namespace::Proc, array).is_empty() {
                return;
            }
        } else if here.is_empty() && texts(known) == texts(now) {
            return;
        }
        for part in 0..=ITSELF {
            let text = |said: &BTreeMap<Part, (String, u32)>| Some(said.get(&part)?.0.clone());
            let removed = !here.contains_key(&part) && text(known) == text(now);
            match now.get(&part) {
                Some(_) if removed && !here.is_empty() && !mine => {}
                Some((text, line)) => {
                    self.put(array, part, text.clone(), Giver::Source(namespace, *line));
                }
                None => {
                    self.0.remove(&(namespace, array, part));
                }
            }
        }
    }

    /// Whether some namespace gives a number of elements that is not allowed.
    fn is_refused(&self) -> bool {
        let count = |array| {
            let given = Namespace::ALL.map(|namespace| self.given(namespace, array));
            given.into_iter().flatten().map(|(_, texts)| texts.len())
        };
        (0..2).flat_map(count).any(|count| count > 3) || count(TEXTS).any(|count| count < 2)
    }
}

fn is_wrong(array: usize, part: Part, text: &str) -> bool {
    match (array, part) {
        (_, ITSELF) => !text.is_empty(),
        (0 | 1, _) => !text
            .parse()
            .is_ok_and(|number: i32| (0..=9).contains(&number)),
        (TEXTS, _) => text.len() > 3,
        _ => false,
    }
}

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

    fn after(&self, event: &Event) -> State {
        let mut state = self.all();
        state.apply(event);
        state
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
        let silent = matches!(event, Event::Replace(..)) && self.after(&event) == self.all();
        let generation = self.generation(self.log.len()) + u64::from(!silent);
        self.log.push((event, generation));
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

    fn text(&mut self, array: usize, part: Part) -> String {
        let texts: &[&str] = match (array, part) {
            (_, ITSELF) => &["", "", "", "x"],
            (0 | 1, _) => &["0", "1", "5", "9", "9", "10"],
            _ => &["a", "bc", "", "\n", "a\nb", "long"],
        };
        self.random.of(texts).into()
    }

    fn part(&mut self) -> Part {
        self.random.of(&[0, 0, 1, 1, 2, 3, ITSELF])
    }

    fn some_source(&mut self, before: &Source) -> Source {
        let mut source = before.clone();
        for array in 0..ARRAYS.len() {
            match self.random.below(5) {
                0 => source.retain(|(a, _), _| *a != array),
                1 => {
                    for index in 0..self.random.below(4) {
                        let text = self.text(array, index);
                        source.insert((array, index), (text, 0));
                    }
                }
                2 => {
                    let part = self.part();
                    let text = self.text(array, part);
                    source.insert((array, part), (text, 0));
                }
                3 => {
                    let part = self.part();
                    source.remove(&(array, part));
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
    let key = |((array, part), (text, line)): (&(usize, Part), &(String, u32))| {
        let origin = Giver::Source(namespace, *line).origin().unwrap();
        let name = Name::parse(&name(*array, *part)).unwrap();
        Key::new(namespace, &name, text, origin)
    };
    source.iter().map(key).collect()
}

fn replace(world: &mut World) {
    let namespace = world.random.of(&Namespace::ALL);
    let known = world.known.get(&namespace).cloned().unwrap_or_default();
    let now = world.some_source(&known);
    let wrong = now.iter().any(|((a, p), (text, _))| is_wrong(*a, *p, text));
    let event = Event::Replace(namespace, known.clone(), now.clone());
    let accepted = !wrong && !world.after(&event).is_refused();
    world.trace.push(format!(
        "replace ({accepted}) {namespace} {known:?} by {now:?}"
    ));
    let (old, new) = (key_set(namespace, &known), key_set(namespace, &now));
    let changed = world.coordinator.replace(namespace, &old, &new);
    assert_eq!(changed.is_ok(), accepted, "{changed:?}");
    if accepted {
        world.publish(event);
        world.known.insert(namespace, now);
    }
}

fn assign(world: &mut World, cx: &mut Cx, i: usize) {
    let array = world.random.below(ARRAYS.len());
    if world.random.once_in(3) {
        world.trace.push(format!("unset {array} in {i}"));
        world.publish_of(i, Event::Clear(vec![array]));
        match array {
            0 => cx.unset::<at::numbers>(),
            1 => cx.with(A("1"), |cx| cx.unset::<at::numbers>()),
            TEXTS => cx.unset::<at::texts>(),
            3 => cx.unset::<at::either>(),
            _ => cx.with(A("1"), |cx| cx.unset::<at::either>()),
        }
        return;
    }
    let count = world.random.below(5);
    let texts: Vec<String> = (0..count).map(|index| world.text(array, index)).collect();
    let wrong = texts.iter().any(|text| is_wrong(array, 0, text));
    let event = Event::Assign(array, texts.clone());
    let accepted = !wrong && !world.after(&event).is_refused();
    world
        .trace
        .push(format!("set ({accepted}) {array} = {texts:?} in {i}"));
    if accepted {
        world.publish_of(i, event);
    }
    let numbers: Vec<i32> = texts
        .iter()
        .map(|text| text.parse().unwrap_or(-1))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let result = match array {
        0 => cx.set::<at::numbers>(&numbers),
        1 => cx.with(A("1"), |cx| cx.set::<at::numbers>(&numbers)),
        TEXTS => cx.set::<at::texts>(&texts),
        3 => cx.set::<at::either>(&texts),
        _ => cx.with(A("1"), |cx| cx.set::<at::either>(&texts)),
    };
    assert_eq!(result.is_ok(), accepted, "{result:?}");
}

fn by_name(world: &mut World) {
    let array = world.random.below(ARRAYS.len());
    let part = world.part();
    let text = world.text(array, part);
    let event = match world.random.below(4) {
        0 => Event::Remove(array, part),
        1 => Event::Put(array, part, text, Giver::Source(Namespace::User, 3)),
        _ => Event::Put(array, part, text, Giver::Program),
    };
    let wrong = match &event {
        Event::Put(_, _, text, _) => is_wrong(array, part, text),
        _ => false,
    };
    let accepted = !wrong && !world.after(&event).is_refused();
    world.trace.push(format!("by name ({accepted}) {event:?}"));
    let name = name(array, part);
    let result = match &event {
        Event::Put(_, _, text, giver) => world.coordinator.assign(&name, text, giver.origin()),
        _ => world.coordinator.remove(&name),
    };
    assert_eq!(result.is_ok(), accepted, "{result:?}");
    if accepted {
        world.publish(event);
    }
}

/// What the user has below the layer goes, in one publication.
fn forget(world: &mut World, cx: &mut Cx, i: usize) {
    world.trace.push(format!("forget 1 in {i}"));
    let all = world.all();
    let of_user: Vec<usize> = [1, 4]
        .into_iter()
        .filter(|array| !all.of(Namespace::User, *array).is_empty())
        .collect();
    if !of_user.is_empty() {
        world.publish_of(i, Event::Clear(of_user));
    }
    cx.forget(A("1"));
}

fn check(world: &World, contexts: &mut [Cx]) {
    for (twin, cx) in world.twins.iter().zip(contexts) {
        let state = world.state(twin);
        let content = |array| {
            let (giver, texts) = state.in_force(array)?;
            Some((texts, giver.origin()))
        };
        macro_rules! assert_is {
            ($cx:ident.$field:ident, $expected:expr) => {
                let texts = $cx.$field.iter().map(ToString::to_string).collect();
                let given = !$cx.is_default::<at::$field>();
                let read = given.then(|| (texts, $cx.origin::<at::$field>().cloned()));
                assert_eq!(read, $expected, stringify!($field));
            };
        }
        assert_is!(cx.numbers, content(0));
        assert_is!(cx.texts, content(TEXTS));
        assert_is!(cx.either, content(3).or(content(TEXTS)));
        let elements = content(TEXTS).unwrap_or_default().0;
        assert_eq!(cx.elements("/t/#").unwrap(), elements);
        let first = |part| {
            let all = Namespace::ALL.iter();
            let keys = all.filter_map(|n| state.0.get(&(*n, TEXTS, part)));
            keys.min().map(|(_, text)| text.clone())
        };
        assert_eq!(*cx.one, *first(1).unwrap_or_default());
        {
            let cx = cx.enter(A("1"));
            assert_is!(cx.numbers, content(1));
            assert_is!(cx.either, content(4).or(content(TEXTS)));
        }
        assert_eq!(
            cx.has_news(),
            twin.generation != world.generation(world.visible())
        );
    }
    if let Some((held, count)) = &world.held {
        let state = world.first(*count);
        for namespace in Namespace::ALL {
            let entries = held.in_namespace(namespace);
            let held: BTreeMap<_, _> = entries
                .iter()
                .map(|entry| (entry.name.to_owned(), entry.text.to_owned()))
                .collect();
            let keys = state.0.iter().filter(|((n, ..), _)| *n == namespace);
            let expected =
                keys.map(|((_, array, part), (_, text))| (name(*array, *part), text.clone()));
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
    let steps = size(120, 40, 20);
    for step in 1..=steps {
        let i = world.random.below(contexts.len());
        match world.random.below(20) {
            0..6 => assign(&mut world, &mut contexts[i], i),
            6..11 => by_name(&mut world),
            11..14 => replace(&mut world),
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
fn arrays_agree_with_lists_of_their_elements() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    if let Some(seed) = number("MILIEU_SEED") {
        return round(seed);
    }
    let rounds = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => size(0, 2, 1),
        (_, true) => 20,
        _ => 400,
    };
    (0..number("MILIEU_ROUNDS").unwrap_or(rounds)).for_each(round);
}
