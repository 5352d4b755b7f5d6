//! Contexts do what a model does that is too simple to be wrong.
//!
//! Several contexts of one coordinator enter, switch, assign and synchronize at
//! random; after each step every value, name and active layer of every context
//! is what the model (`model/naive.rs`) finds by replaying its log: *a context
//! that synchronizes has exactly the layers and values it would have had, had
//! it executed every activation and assignment itself, in order.*
//!
//! The seeds are fixed. `MILIEU_ROUNDS` asks for more of them, `MILIEU_SEED`
//! for a single one; a failure prints its seed and what led to it.

#[path = "model/naive.rs"]
mod naive;
#[path = "support/random.rs"]
mod random;
mod support;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex},
};

use milieu_context::{
    Captured, Context, ContextOptions, Coordinator, Environment as _, Held, LayerSet, Named,
    Registration, Scope, Switch, SwitchError, ThreadLayer, Threads, each, value, without,
};
use naive::{Binding, Entry, Event, Id, Log, State, Twin, View, accepts, belonging, resolve};
use random::Random;
use support::*;

environment! { mod env;
    plain: i64 = "/m/plain";
    one: Text = "/m/%a%/one" { "default" = "d1" };
    again: Text = "/m/%a%/one" { "default" = "d1" };
    alias: Text = "/m/1/one" { "default" = "alias" };
    two: i32 = "/m/%a%/%b%/two" { "default" = "7", "check/range" = "0-100" };
    twice: Text = "/m/%a%/-%a%/twice";
    both: i32 = "/m/%a%%b%/both";
    group: Text = "/m/g/%a b c%/v" { "default" = "g" };
    mixed: f64 = "/m/%c%x%b%/ratio" { "default" = "1.5" };
    size: i32 = "/m/%a%/size" {
        "default" = "1", "override/#0" = "/m/%c%/policy",
        "fallback/#0" = "/m/size", "fallback/#1" = "/m/%b%/one"
    };
    lang: Text = "/m/%a%/lang" { "default" = "en" };
    hello: Text = "/m/%lang%/hello" { "default" = "Hello" };
    deep: Text = "/m/%hello%/%b%/deep";
    flag: bool = "/m/%pool%/flag";
    port: u16 = "/m/%tenant%/port" { "default" = "80" };
    w1: Text = "/m/%w2%/w1" { "default" = "x" };
    w2: Text = "/m/%w1%/w2" { "default" = "y" };
    limit: i64 = "/m/limit" {
        "default" = "3", "override/#0" = "/m/policy", "fallback/#0" = "/m/%b%/limits"
    };
}
use env::{Environment, at};

type Cx = Context<Environment>;

const LAYERS: [Id; 9] = ["a", "b", "c", "lang", "hello", "pool", "tenant", "w1", "w2"];
const LANG: usize = 10;
const HELLO: usize = 11;

/// Values of layers: two that meet often, and what could break a name.
fn layer_value(random: &mut Random) -> &'static str {
    const LONG: &str = "a value that is longer than the first chunk of the memory in which a \
        context keeps the texts of its layers, so that it needs another chunk";
    const ALL: [&str; 12] = [
        "1", "2", "1", "2", "1", "2", "", "x/y", "..", "%", "a\\", LONG,
    ];
    random.of(&ALL)
}

const TEXTS: [&str; 8] = ["1", "2", "de", "it", "", "Hallo", "Ciao", "x/y"];
const NUMBERS: [&str; 5] = ["0", "5", "77", "100", "500"];

macro_rules! input {
    (Text, $text:expr) => {
        $text
    };
    ($type:ident, $text:expr) => {
        $text.parse().unwrap()
    };
}

macro_rules! by_number {
    ($($number:literal $field:ident $type:ident;)*) => {
        fn read(cx: &Cx, value: usize) -> (String, String, bool) {
            match value {
                $($number => (
                    cx.$field.to_string(),
                    cx.name::<at::$field>(),
                    cx.is_default::<at::$field>(),
                ),)*
                _ => unreachable!(),
            }
        }
        fn set(cx: &mut Cx, value: usize, text: &str) -> bool {
            match value {
                $($number => cx.set::<at::$field>(input!($type, text)).is_ok(),)*
                _ => unreachable!(),
            }
        }
        fn unset(cx: &mut Cx, value: usize) {
            match value {
                $($number => cx.unset::<at::$field>(),)*
                _ => unreachable!(),
            }
        }
        const COUNT: usize = [$($number),*].len();
    };
}
by_number! {
    0 plain i64; 1 one Text; 2 again Text; 3 alias Text; 4 two i32; 5 twice Text; 6 both i32;
    7 group Text; 8 mixed f64; 9 size i32; 10 lang Text; 11 hello Text; 12 deep Text;
    13 flag bool; 14 port u16; 15 w1 Text; 16 w2 Text;
    17 limit i64;
}

struct Pool(&'static str);
impl ThreadLayer for Pool {
    const ID: &'static str = "pool";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        let active = scope.role().starts_with(self.0);
        if active { "active" } else { "" }.into()
    }
}

struct German;
impl ThreadLayer for German {
    const ID: &'static str = "pool";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        let active = scope.get("/m/%a%/lang") == Some("de");
        if active { "active" } else { "" }.into()
    }
    fn depends_on(&self) -> &[&'static str] {
        &["/m/%a%/lang"]
    }
}

struct Only(u64);
impl ThreadLayer for Only {
    const ID: &'static str = "pool";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        let active = scope.identity() == self.0;
        if active { "active" } else { "" }.into()
    }
}

/// What a frame is left with that a panic leaves.
struct Leaving;

/// Everything but the contexts, which are borrowed one frame at a time.
struct World {
    coordinator: Coordinator,
    log: Log,
    twins: Vec<Twin>,
    holds: Vec<Held>,
    captured: Option<(Captured, Vec<Entry>)>,
    ran: Arc<Mutex<Vec<String>>>,
    expected: Vec<String>,
    _actions: Vec<Registration>,
    random: Random,
    steps: usize,
    seed: u64,
    trace: Vec<String>,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("MILIEU_SEED={} repeats this; steps:", self.seed);
            for step in &self.trace {
                eprintln!("  {step}");
            }
        }
    }
}

impl World {
    fn new(seed: u64) -> World {
        let coordinator = Coordinator::new();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let mut actions = Vec::new();
        macro_rules! note {
            ($layer:ident) => {
                let (on, off) = (ran.clone(), ran.clone());
                actions.push(coordinator.on_activation::<$layer>(move |a| {
                    let text = format!("+{}={}", a.layer(), a.value());
                    on.lock().unwrap().push(text);
                }));
                actions.push(coordinator.on_deactivation::<$layer>(move |a| {
                    off.lock().unwrap().push(format!("-{}", a.layer()));
                }));
            };
        }
        note!(A);
        note!(B);
        note!(C);
        actions.push(coordinator.on_activation::<C>(|c| c.activate(B("2")).unwrap()));
        World {
            coordinator,
            log: Log::default(),
            twins: Vec::new(),
            holds: Vec::new(),
            captured: None,
            ran,
            expected: Vec::new(),
            _actions: actions,
            random: Random::new(seed),
            // An interpreter takes its time, so it gets what is about memory.
            steps: size(250, 60, 12),
            seed,
            trace: Vec::new(),
        }
    }

    fn note(&mut self, step: impl Into<String>) {
        self.trace.push(step.into());
    }

    fn open(&mut self) -> Cx {
        let role = self.random.of(&["", "/pool/1", "/pool/2", "/other"]);
        let options = ContextOptions::new().role(role);
        let cx: Cx = self
            .coordinator
            .context_with::<Environment, Threads>(options)
            .unwrap();
        self.note(format!("open {} as {role:?}", self.twins.len()));
        self.twins.push(Twin {
            seen: self.log.visible(),
            own: Vec::new(),
            frames: Vec::new(),
            role: role.into(),
            identity: cx.identity(),
        });
        cx
    }

    fn fork(&mut self, i: usize, cx: &Cx) -> Cx {
        let mut twin = self.twins[i].clone();
        let copy = if self.random.once_in(2) {
            twin.role = "/pool/fork".into();
            cx.fork_as("/pool/fork")
        } else {
            cx.fork()
        };
        twin.identity = copy.identity();
        let kept = twin.local().into_iter().filter(|entry| entry.2).collect();
        twin.frames = vec![kept];
        self.note(format!("fork {i} to {}", self.twins.len()));
        self.twins.push(twin);
        copy
    }

    /// An event that context `i` publishes.
    fn publish(&mut self, i: usize, event: Event) {
        let twin = &mut self.twins[i];
        let number = self.log.events.len();
        if self.log.held.is_none() && twin.seen == number {
            twin.seen += 1;
        } else {
            twin.own.push(number);
        }
        self.log.events.push(event);
    }

    fn switch(&mut self, i: usize, id: Id, binding: &Binding) -> Result<(), ()> {
        self.twins[i].synchronize(&self.log);
        let here = self.twins[i].replay(&self.log);
        let live = self.log.all().global(id);
        if here.global(id).same_fixed(binding) && live.same_fixed(binding) {
            return Ok(());
        }
        // The only cycle there can be leads through these two.
        let other = BTreeMap::from([("w1", "w2"), ("w2", "w1")]).remove(id);
        if let (Some(other), Binding::Value(_)) = (other, binding) {
            let states = [&here, &self.log.all()];
            let bound = |state: &&State| matches!(state.global(other), Binding::Value(_));
            if states.iter().any(bound) {
                return Err(());
            }
        }
        self.publish(i, Event::Switch(id, binding.clone()));
        if live.same_fixed(binding) {
            return Ok(());
        }
        if let ("a" | "b" | "c", Binding::Text(text)) = (id, binding) {
            self.expected.push(match text.as_str() {
                "" => format!("-{id}"),
                text => format!("+{id}={text}"),
            });
            if id == "c" && !text.is_empty() {
                return self.switch(i, "b", &Binding::Text("2".into()));
            }
        }
        Ok(())
    }

    fn activate(&mut self, list: &mut [&mut Cx], i: usize, id: Id, b: &Binding, s: impl Switch) {
        self.note(format!("activate {id} {b:?} in {i}"));
        let expected = self.switch(i, id, b);
        let result = list[i].activate(s);
        assert_eq!(result.is_ok(), expected.is_ok(), "{result:?}");
    }

    fn deactivate(
        &mut self,
        list: &mut [&mut Cx],
        i: usize,
        id: Id,
        f: impl FnOnce(&mut Cx) -> Result<(), SwitchError>,
    ) {
        self.note(format!("deactivate {id} in {i}"));
        self.switch(i, id, &Binding::INACTIVE).unwrap();
        f(list[i]).unwrap();
    }

    fn check(&mut self, list: &[&mut Cx]) {
        (0..list.len()).for_each(|i| self.check_one(i, list[i]));
        assert_eq!(*self.ran.lock().unwrap(), self.expected, "actions");
    }

    fn check_one(&self, i: usize, cx: &Cx) {
        let twin = &self.twins[i];
        let state = twin.replay(&self.log);
        let view = View::new(&state, twin, Environment::VALUES);
        for value in 0..COUNT {
            let (text, default) = view.read(value);
            let expected = (text, view.name(value), default);
            let pattern = Environment::VALUES[value].pattern;
            assert_eq!(read(cx, value), expected, "{pattern} in context {i}");
        }
        let mut layers = cx.layers();
        layers.sort();
        let active = LAYERS.iter().map(|id| (Arc::from(*id), view.layer(id)));
        let mut active: Vec<(Arc<str>, String)> =
            active.filter(|(_, text)| !text.is_empty()).collect();
        active.sort();
        assert_eq!(layers, active, "layers of context {i}");
        let news = self.log.visible() != twin.seen;
        assert_eq!(cx.has_news(), news, "news for context {i}");
    }

    fn check_keys(&self) {
        let Some(held) = self.holds.last() else {
            return;
        };
        let count = self.log.held.unwrap();
        let keys: BTreeMap<String, String> = held
            .entries()
            .iter()
            .map(|entry| (entry.name.into(), entry.text.into()))
            .collect();
        assert_eq!(keys, self.log.first(count).keys, "the held key set");
    }

    fn hold(&mut self) {
        self.note("hold");
        self.log.held.get_or_insert(self.log.events.len());
        self.holds.push(self.coordinator.require_lock());
        self.check_keys();
    }

    fn release(&mut self) {
        self.check_keys();
        self.note("release");
        self.holds.pop();
        if self.holds.is_empty() {
            self.log.held = None;
        }
    }

    /// A name that some layers make of some value's pattern: those of a
    /// context, whose values it then changes, or any.
    fn some_name(&mut self) -> (String, &'static str) {
        let patterns = Environment::VALUES.iter().map(|value| value.pattern);
        let mut patterns: Vec<&str> = patterns.collect();
        // Names that no value has as its own.
        let others = ["/m/%c%/policy", "/m/size", "/m/policy", "/m/%b%/limits"];
        patterns.extend(others.repeat(4));
        let pattern = self.random.of(&patterns);
        let number = self.random.below(self.twins.len());
        let twin = &self.twins[number];
        let state = twin.replay(&self.log);
        let view = View::new(&state, twin, Environment::VALUES);
        if self.random.once_in(2) {
            return (resolve(pattern, |id| view.layer(id)), pattern);
        }
        let layers = LAYERS.map(|id| match id {
            "pool" => (id, self.random.of(&["active", ""])),
            "lang" | "hello" | "w1" | "w2" => (id, self.random.of(&TEXTS)),
            _ => (id, layer_value(&mut self.random)),
        });
        let layers = BTreeMap::from(layers);
        (resolve(pattern, |id| layers[id].into()), pattern)
    }

    fn some_text(&mut self, value: usize) -> &'static str {
        let descriptor = &Environment::VALUES[value];
        match descriptor.kind {
            milieu_context::Kind::Bool => self.random.of(&["true", "false"]),
            milieu_context::Kind::F64 => self.random.of(&["0.25", "2.5"]),
            milieu_context::Kind::Text => self.random.of(&TEXTS),
            _ => self.random.of(&NUMBERS),
        }
    }
}

fn fixed(id: Id, text: &str) -> Entry {
    (id, Binding::Text(text.into()), id == "tenant")
}

/// Steps at random until the block is left.
fn run(world: &mut World, list: &mut [&mut Cx]) {
    while world.steps > 0 {
        world.steps -= 1;
        let i = world.random.below(list.len());
        match world.random.below(100) {
            0..24 => enter(world, list, i),
            24..34 => switch(world, list, i),
            34..40 => off(world, list, i),
            40..54 => assign(world, list, i),
            54..62 => assign_by_name(world),
            62..74 => {
                world.note(format!("sync {i}"));
                world.twins[i].synchronize(&world.log);
                list[i].sync();
            }
            74..78 => further(world, list, i),
            78..80 => {
                world.note(format!("capture {i}"));
                world.captured = Some((list[i].capture(), world.twins[i].local()));
            }
            80..83 => world.hold(),
            83..88 if world.holds.is_empty() => {}
            83..88 => world.release(),
            88..90 if cfg!(miri) => {}
            88..90 => forget(world, list, i),
            90..92 => part(world, list, i),
            // More at once than contexts can tell apart, so they refresh whole.
            92 if cfg!(miri) => {}
            92 => (0..40).for_each(|_| assign_by_name(world)),
            93 => to_and_fro(world, list),
            _ => break,
        }
        if world.random.once_in(size(4, 20, 20)) {
            world.check(list);
        } else if world.steps % size(1, 1, 5) == 0 {
            world.check_one(i, list[i]);
        }
    }
}

fn enter(world: &mut World, list: &mut [&mut Cx], i: usize) {
    let x = layer_value(&mut world.random);
    let y = layer_value(&mut world.random);
    let lang = || ("lang", Binding::Value(LANG), false);
    let hello = || ("hello", Binding::Value(HELLO), false);
    match world.random.below(18) {
        0..2 => inside(world, list, i, vec![fixed("a", x)], A(x)),
        2 => inside(world, list, i, vec![fixed("b", x)], B(x)),
        3 => inside(world, list, i, vec![fixed("c", x)], Named("c", x)),
        4 => inside(world, list, i, vec![fixed("a", "")], without::<A>()),
        5 => {
            let entries = vec![fixed("a", x), fixed("b", y)];
            inside(world, list, i, entries, (A(x), B(y)));
        }
        6 => {
            let entries = vec![fixed("a", x), fixed("a", y)];
            inside(world, list, i, entries, (A(x), A(y)));
        }
        7 => {
            let entries = vec![fixed("b", x), fixed("a", ""), fixed("c", y)];
            inside(world, list, i, entries, (B(x), without::<A>(), C(y)));
        }
        8 => inside(world, list, i, vec![lang()], value::<at::lang>()),
        9 => {
            let entries = vec![hello(), lang(), fixed("a", x)];
            let layers = (value::<at::hello>(), value::<at::lang>(), A(x));
            inside(world, list, i, entries, layers);
        }
        10 => {
            let text = world.random.of(&TEXTS);
            let entries = vec![lang(), fixed("lang", text)];
            let layers = (value::<at::lang>(), Named("lang", text));
            inside(world, list, i, entries, layers);
        }
        11 => {
            let entries = vec![fixed("tenant", "x/y")];
            inside(world, list, i, entries, Tenant("x/y"));
        }
        12 => {
            let entries = vec![fixed("tenant", ""), fixed("tenant", "1")];
            inside(world, list, i, entries, (without::<Tenant>(), Tenant("1")));
        }
        13 => {
            let entries = vec![("pool", Binding::Pool("/pool"), false)];
            inside(world, list, i, entries, each(Pool("/pool")));
        }
        14 => {
            let entries = vec![("pool", Binding::German, false), fixed("a", x)];
            inside(world, list, i, entries, (each(German), A(x)));
        }
        15 => inside(
            world,
            list,
            i,
            vec![fixed("pool", "active")],
            Named("pool", "active"),
        ),
        _ => {
            if let Some((captured, entries)) = world.captured.clone() {
                inside(world, list, i, entries, &captured);
            }
        }
    }
}

/// Runs on with layers entered in context `i`; leaves by return or by panic.
fn inside(
    world: &mut World,
    list: &mut [&mut Cx],
    i: usize,
    entries: Vec<Entry>,
    layers: impl LayerSet,
) {
    world.note(format!("enter {entries:?} in {i}"));
    world.twins[i].frames.push(entries);
    let panics = world.random.once_in(6);
    let block = catch_unwind(AssertUnwindSafe(|| {
        let (before, rest) = list.split_at_mut(i);
        let Some((cx, behind)) = rest.split_first_mut() else {
            return;
        };
        let mut guard = cx.enter(layers);
        let others = before.iter_mut().map(|cx| &mut **cx);
        let mut inner: Vec<&mut Cx> = others.chain([&mut *guard]).collect();
        inner.extend(behind.iter_mut().map(|cx| &mut **cx));
        world.check(&inner);
        run(world, &mut inner);
        if panics {
            resume_unwind(Box::new(Leaving));
        }
    }));
    if let Err(payload) = block {
        if !payload.is::<Leaving>() {
            resume_unwind(payload);
        }
    }
    world.note(format!("leave in {i}"));
    world.twins[i].frames.pop();
}

fn switch(world: &mut World, list: &mut [&mut Cx], i: usize) {
    let x = layer_value(&mut world.random);
    let text = Binding::Text(x.into());
    match world.random.below(11) {
        0..3 => world.activate(list, i, "a", &text, A(x)),
        3 => world.activate(list, i, "b", &text, Named("b", x)),
        4 => world.activate(list, i, "c", &text, C(x)),
        5 => world.activate(list, i, "lang", &Binding::Value(LANG), value::<at::lang>()),
        6 => {
            let binding = Binding::Value(HELLO);
            world.activate(list, i, "hello", &binding, value::<at::hello>());
        }
        7 => world.activate(list, i, "w1", &Binding::Value(15), value::<at::w1>()),
        8 => world.activate(list, i, "w2", &Binding::Value(16), value::<at::w2>()),
        9 => world.activate(list, i, "tenant", &text, Named("tenant", x)),
        _ => match world.random.below(3) {
            0 => world.activate(
                list,
                i,
                "pool",
                &Binding::Pool("/pool/1"),
                each(Pool("/pool/1")),
            ),
            1 => world.activate(list, i, "pool", &Binding::German, each(German)),
            _ => {
                let identity = world.twins[world.random.below(world.twins.len())].identity;
                let binding = Binding::Only(identity);
                world.activate(list, i, "pool", &binding, each(Only(identity)));
            }
        },
    }
}

fn off(world: &mut World, list: &mut [&mut Cx], i: usize) {
    match world.random.below(4) {
        0 => world.deactivate(list, i, "a", |cx| cx.deactivate::<A>()),
        1 => world.deactivate(list, i, "c", |cx| cx.deactivate::<C>()),
        _ => {
            let id = world.random.of(&LAYERS);
            world.deactivate(list, i, id, |cx| cx.deactivate_named(id));
        }
    }
}

/// Whoever it is switches a layer between two values, mostly with nothing else
/// meanwhile, and others look now and then.
fn to_and_fro(world: &mut World, list: &mut [&mut Cx]) {
    let values = [
        layer_value(&mut world.random),
        layer_value(&mut world.random),
    ];
    if world.random.once_in(2) {
        // What each context evaluates for itself would be in the way.
        for id in ["lang", "hello", "w1", "w2", "pool"] {
            world.deactivate(list, 0, id, |cx| cx.deactivate_named(id));
        }
    }
    for turn in 0..size(12, 8, 4) {
        let (i, value) = (world.random.below(list.len()), values[turn % 2]);
        let layer = Named("a", value);
        world.activate(list, i, "a", &Binding::Text(value.into()), layer);
        if world.random.once_in(8) {
            assign_by_name(world);
        }
        for (j, cx) in list.iter_mut().enumerate() {
            if world.random.once_in(2) {
                world.note(format!("sync {j}"));
                world.twins[j].synchronize(&world.log);
                cx.sync();
                world.check_one(j, cx);
            }
        }
    }
}

fn assign(world: &mut World, list: &mut [&mut Cx], i: usize) {
    let value = world.random.below(COUNT);
    let twin = &world.twins[i];
    let state = twin.replay(&world.log);
    let view = View::new(&state, twin, Environment::VALUES);
    let name = view.name(value);
    if world.random.once_in(4) {
        world.note(format!("unset {name} in {i}"));
        world.publish(i, Event::Key(name, None));
        unset(list[i], value);
        return;
    }
    let text = world.some_text(value);
    world.note(format!("set {name} = {text:?} in {i}"));
    let accepted = accepts(&Environment::VALUES[value], text);
    if accepted {
        world.publish(i, Event::Key(name, Some(text.into())));
    }
    assert_eq!(set(list[i], value, text), accepted);
}

/// As a tool does that knows no context.
fn assign_by_name(world: &mut World) {
    let (name, pattern) = world.some_name();
    if world.random.once_in(4) {
        world.note(format!("remove {name}"));
        world.coordinator.remove(&name).unwrap();
        world.log.events.push(Event::Key(name, None));
        return;
    }
    let descriptor = Environment::VALUES
        .iter()
        .position(|v| v.pattern == pattern);
    let text = match descriptor {
        Some(value) => world.some_text(value),
        None => world.random.of(&["3", "4", "5", "many"]),
    };
    world.note(format!("assign {name} = {text:?}"));
    let accepted = descriptor.is_none_or(|value| accepts(&Environment::VALUES[value], text));
    let result = world.coordinator.assign(&name, text, None);
    assert_eq!(result.is_ok(), accepted, "{result:?}");
    if accepted {
        world.log.events.push(Event::Key(name, Some(text.into())));
    }
}

/// Runs on with one context more.
fn further(world: &mut World, list: &mut [&mut Cx], i: usize) {
    let mut more = if world.random.once_in(3) {
        world.open()
    } else {
        world.fork(i, list[i])
    };
    let mut inner: Vec<&mut Cx> = list.iter_mut().map(|cx| &mut **cx).collect();
    inner.push(&mut more);
    world.check(&inner);
    run(world, &mut inner);
    world.note(format!("drop {}", world.twins.len() - 1));
    world.twins.pop();
}

fn forget(world: &mut World, list: &mut [&mut Cx], i: usize) {
    let text = layer_value(&mut world.random);
    let id = world.random.of(&["a", "b", "c"]);
    world.note(format!("forget {id} = {text:?} in {i}"));
    if !text.is_empty() {
        let mut universe: Vec<&str> = (0..60).map(|_| layer_value(&mut world.random)).collect();
        universe.extend(TEXTS);
        universe.extend(["Hello", "en"]);
        universe.sort_unstable();
        universe.dedup();
        let mut names: Vec<String> = world.log.all().keys.into_keys().collect();
        let belonging = belonging(Environment::VALUES, id, text, &universe);
        names.retain(|name| belonging.contains(name));
        for name in names {
            world.note(format!("  {name}"));
            world.publish(i, Event::Key(name, None));
        }
    }
    match id {
        "a" => list[i].forget(A(text)),
        "b" => list[i].forget(B(text)),
        _ => list[i].forget(C(text)),
    }
}

/// A function that knows a part does what one with the whole does.
fn part(world: &mut World, list: &mut [&mut Cx], i: usize) {
    let text = layer_value(&mut world.random);
    world.note(format!("part with a = {text:?} in {i}"));
    let mut part = list[i].part(|e| &e.one);
    part.sync();
    world.twins[i].synchronize(&world.log);
    world.twins[i].frames.push(vec![fixed("a", text)]);
    let twin = &world.twins[i];
    let state = twin.replay(&world.log);
    let view = View::new(&state, twin, Environment::VALUES);
    let (inner, back) = (view.text(1), part.to_string());
    assert_eq!(part.with(A(text), |part| part.to_string()), inner);
    assert_eq!(part.to_string(), back);
    world.twins[i].frames.pop();
}

fn round(seed: u64) {
    let mut world = World::new(seed);
    let mut contexts: Vec<Cx> = (0..3).map(|_| world.open()).collect();
    let mut list: Vec<&mut Cx> = contexts.iter_mut().collect();
    world.trace.clear();
    while world.steps > 0 {
        to_and_fro(&mut world, &mut list);
        run(&mut world, &mut list);
    }
    while !world.holds.is_empty() {
        world.release();
    }
    for (i, cx) in list.iter_mut().enumerate() {
        world.twins[i].synchronize(&world.log);
        cx.sync();
    }
    world.check(&list);
    world.hold();
}

#[test]
fn contexts_agree_with_the_model() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    if let Some(seed) = number("MILIEU_SEED") {
        return round(seed);
    }
    let rounds = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 1,
        (_, true) => 60,
        _ => 400,
    };
    (0..number("MILIEU_ROUNDS").unwrap_or(rounds)).for_each(round);
}
