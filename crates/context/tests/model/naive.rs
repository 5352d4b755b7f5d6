//! The model: one log of everything that was published, and contexts that
//! replay it from its beginning whenever somebody asks.
//!
//! It has no snapshots, no hashes, no saved values and no names kept from
//! before, so there is little in it that could be wrong.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use milieu_context::{Descriptor, Kind};

pub type Id = &'static str;

/// How a layer gets its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A fixed value; empty is inactive.
    Text(String),
    /// The text of a contextual value, by its position.
    Value(usize),
    /// Active in contexts whose role begins so.
    Pool(&'static str),
    /// Active where the language is German.
    German,
    /// Active in one context.
    Only(u64),
}

impl Binding {
    pub const INACTIVE: Binding = Binding::Text(String::new());

    /// Whether both are the same fixed value, so that switching is no change.
    pub fn same_fixed(&self, other: &Binding) -> bool {
        matches!((self, other), (Binding::Text(a), Binding::Text(b)) if a == b)
    }
}

/// Something that everybody learns of.
#[derive(Clone, Debug)]
pub enum Event {
    Switch(Id, Binding),
    Key(String, Option<String>),
}

/// Everything that was published, in order.
#[derive(Default)]
pub struct Log {
    pub events: Vec<Event>,
    /// How much of it others may see while the key set is held.
    pub held: Option<usize>,
}

impl Log {
    pub fn visible(&self) -> usize {
        self.held.unwrap_or(self.events.len())
    }

    /// What the first `count` events come to.
    pub fn first(&self, count: usize) -> State {
        let mut state = State::default();
        self.events[..count].iter().for_each(|e| state.apply(e));
        state
    }

    /// What all of it comes to.
    pub fn all(&self) -> State {
        self.first(self.events.len())
    }
}

/// Global layers and the key set.
#[derive(Clone, Default)]
pub struct State {
    pub layers: BTreeMap<Id, Binding>,
    pub keys: BTreeMap<String, String>,
}

impl State {
    fn apply(&mut self, event: &Event) {
        match event.clone() {
            Event::Switch(id, binding) => {
                self.layers.insert(id, binding);
            }
            Event::Key(name, Some(text)) => {
                self.keys.insert(name, text);
            }
            Event::Key(name, None) => {
                self.keys.remove(&name);
            }
        }
    }

    pub fn global(&self, id: &str) -> Binding {
        self.layers.get(id).cloned().unwrap_or(Binding::INACTIVE)
    }
}

/// A layer entered in a frame, and whether forks keep it.
pub type Entry = (Id, Binding, bool);

/// What the model knows of one context.
#[derive(Clone)]
pub struct Twin {
    /// How much of the log it had seen when it last synchronized.
    pub seen: usize,
    /// What it has published itself since.
    pub own: Vec<usize>,
    pub frames: Vec<Vec<Entry>>,
    pub role: String,
    pub identity: u64,
}

impl Twin {
    pub fn synchronize(&mut self, log: &Log) {
        let visible = log.visible();
        self.seen = visible;
        self.own.retain(|event| *event >= visible);
    }

    pub fn replay(&self, log: &Log) -> State {
        let mut state = log.first(self.seen);
        for &event in &self.own {
            state.apply(&log.events[event]);
        }
        state
    }

    /// What a frame has entered for a layer, the innermost one's last.
    pub fn entered(&self, id: &str) -> Option<&Entry> {
        let entries = self.frames.iter().rev();
        entries
            .flat_map(|frame| frame.iter().rev())
            .find(|entry| entry.0 == id)
    }

    /// Every layer that a frame has entered, as it is in force.
    pub fn local(&self) -> Vec<Entry> {
        let all = super::LAYERS.iter();
        all.filter_map(|id| self.entered(id).cloned()).collect()
    }
}

/// A context as it is now.
pub struct View<'a> {
    state: &'a State,
    twin: &'a Twin,
    values: &'a [Descriptor],
    /// Layers asked for before, so that tests don't take too long.
    known: RefCell<BTreeMap<String, String>>,
}

impl<'a> View<'a> {
    pub fn new(state: &'a State, twin: &'a Twin, values: &'a [Descriptor]) -> Self {
        View {
            state,
            twin,
            values,
            known: RefCell::default(),
        }
    }

    pub fn layer(&self, id: &str) -> String {
        let known = self.known.borrow().get(id).cloned();
        known.unwrap_or_else(|| {
            let text = self.find_layer(id);
            self.known.borrow_mut().insert(id.into(), text.clone());
            text
        })
    }

    fn find_layer(&self, id: &str) -> String {
        let binding = match self.twin.entered(id) {
            Some((_, binding, _)) => binding.clone(),
            None => self.state.global(id),
        };
        let active = |yes: bool| if yes { "active".into() } else { String::new() };
        match binding {
            Binding::Text(text) => text,
            Binding::Value(value) => self.text(value),
            Binding::Pool(prefix) => active(self.twin.role.starts_with(prefix)),
            Binding::German => active(self.text(super::LANG) == "de"),
            Binding::Only(identity) => active(self.twin.identity == identity),
        }
    }

    pub fn name(&self, value: usize) -> String {
        resolve(self.values[value].pattern, |id| self.layer(id))
    }

    /// The key that gives a value its content.
    fn key(&self, value: usize) -> Option<&String> {
        let descriptor = &self.values[value];
        let [overrides, own, fallbacks] = [
            alternates(descriptor, "override/#"),
            vec![descriptor.pattern],
            alternates(descriptor, "fallback/#"),
        ];
        let mut names = overrides.into_iter().chain(own).chain(fallbacks);
        names.find_map(|pattern| self.state.keys.get(&resolve(pattern, |id| self.layer(id))))
    }

    /// The text of a value, and whether no key gives it.
    pub fn read(&self, value: usize) -> (String, bool) {
        let descriptor = &self.values[value];
        match self.key(value) {
            Some(text) if accepts(descriptor, text) => (text.clone(), false),
            key => (default(descriptor), key.is_none()),
        }
    }

    pub fn text(&self, value: usize) -> String {
        self.read(value).0
    }
}

fn alternates(descriptor: &Descriptor, prefix: &str) -> Vec<&'static str> {
    let all = descriptor.metadata.iter();
    all.filter(|(key, _)| key.starts_with(prefix))
        .map(|(_, name)| *name)
        .collect()
}

fn metadata(descriptor: &Descriptor, name: &str) -> Option<&'static str> {
    let mut all = descriptor.metadata.iter();
    all.find(|(key, _)| *key == name).map(|(_, text)| *text)
}

fn default(descriptor: &Descriptor) -> String {
    let zero = match descriptor.kind {
        Kind::Text => "",
        Kind::Bool => "false",
        _ => "0",
    };
    metadata(descriptor, "default").unwrap_or(zero).into()
}

/// Whether a text is one of this value's.
pub fn accepts(descriptor: &Descriptor, text: &str) -> bool {
    match descriptor.kind {
        Kind::Text => true,
        Kind::Bool => text == "true" || text == "false",
        Kind::F64 => text.parse::<f64>().is_ok(),
        Kind::U16 => text.parse::<u16>().is_ok(),
        Kind::I32 => match (text.parse::<i32>(), metadata(descriptor, "check/range")) {
            (Ok(number), Some("0-100")) => (0..=100).contains(&number),
            (Ok(_), None) => true,
            _ => false,
        },
        Kind::I64 => text.parse::<i64>().is_ok(),
        other => panic!("the model does not know {other:?}"),
    }
}

/// The name that a pattern has under these layers.
pub fn resolve(pattern: &str, layer: impl Fn(&str) -> String) -> String {
    let levels = pattern.split('/').skip(1);
    let levels = levels.map(|level| {
        let mut text = String::new();
        for (at, piece) in level.split('%').enumerate() {
            if at % 2 == 0 {
                text.push_str(piece);
                continue;
            }
            let ids: Vec<&str> = piece.split(' ').collect();
            let values: Vec<String> = ids.iter().map(|id| escape(&layer(id))).collect();
            match &values[..] {
                [one] if one.is_empty() => text.push('%'),
                [one] => text.push_str(one),
                [first, ..] if first.is_empty() => text.push('%'),
                _ => {
                    for value in values.iter().take_while(|value| !value.is_empty()) {
                        text.push('%');
                        text.push_str(value);
                    }
                }
            }
        }
        match text.as_str() {
            "." | ".." => format!("/\\{text}"),
            _ => format!("/{text}"),
        }
    });
    levels.collect()
}

fn escape(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        if matches!(c, '/' | '\\' | '%') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The names that belong to a value of a layer: some layers, this one with this
/// value, make them of a pattern that depends on it.
pub fn belonging(
    values: &[Descriptor],
    id: &str,
    text: &str,
    universe: &[&str],
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for descriptor in values {
        let pieces = descriptor.pattern.split('%').skip(1).step_by(2);
        let mut ids: Vec<&str> = pieces.flat_map(|piece| piece.split(' ')).collect();
        if !ids.contains(&id) {
            continue;
        }
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|other| *other != id);
        let count = universe.len().pow(u32::try_from(ids.len()).unwrap());
        for mut choice in 0..count {
            let mut chosen = BTreeMap::from([(id, text)]);
            for other in &ids {
                chosen.insert(other, universe[choice % universe.len()]);
                choice /= universe.len();
            }
            let name = resolve(descriptor.pattern, |id| chosen[id].into());
            // A group that stops before the layer does not depend on it.
            chosen.insert(id, "something else");
            if name != resolve(descriptor.pattern, |id| chosen[id].into()) {
                names.insert(name);
            }
        }
    }
    names
}
