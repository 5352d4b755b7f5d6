//! Keys as people and programs read them: one line each, nothing that steers a
//! terminal, and no secrets.

use std::fmt::Write;

use milieu_keys::rules::REDACTED;
use milieu_keys::{Key, Namespace, Origin, SourceOf};
use milieu_store::{Author, Candidate, Explanation, Schema, Store, Via, ini};

use super::json::Object;

/// Shows keys to whoever may not see secrets.
#[derive(Clone, Copy)]
pub(super) struct View<'s>(Option<&'s Schema>);

impl<'s> View<'s> {
    pub(super) fn of(store: &'s Store) -> View<'s> {
        View(store.schema())
    }

    pub(super) fn new(schema: Option<&'s Schema>) -> View<'s> {
        View(schema)
    }

    pub(super) fn is_secret(&self, name: &str) -> bool {
        self.0.is_some_and(|schema| schema.is_secret(name))
    }

    /// The value of a key, or what is said instead.
    pub(super) fn value<'v>(&self, name: &str, value: &'v str) -> &'v str {
        if self.is_secret(name) {
            REDACTED
        } else {
            value
        }
    }

    /// `/sw/pi/anna/language = de`
    pub(super) fn key(&self, name: &str, value: &str) -> String {
        let value = ini::encode_value(self.value(name, value));
        format!("{} = {value}", ini::encode_name(name))
    }

    /// `user     /sw/pi/anna/language = de  (station.ini:2)`
    pub(super) fn long(&self, key: &Key) -> String {
        let (namespace, place) = (key.namespace().as_str(), origin(key));
        let key = self.key(key.name(), key.value());
        format!("{namespace:8} {key}  ({place})\n")
    }

    /// The name, value, namespace and origin of a key.
    pub(super) fn object(&self, key: &Key) -> Object {
        let name = key.name();
        Object::new()
            .text("name", name)
            .text("value", self.value(name, key.value()))
            .text("namespace", key.namespace().as_str())
            .origin(&key.origin().source, key.origin().line)
            .flag("secret", self.is_secret(name))
    }

    /// `/sw/pi/anna/language = de  (was en; station.ini:2)`
    pub(super) fn change(
        &self,
        name: &str,
        old: Option<&str>,
        new: Option<&str>,
        place: Option<&str>,
    ) -> String {
        let was = match old {
            Some(old) => format!("was {}", ini::encode_value(self.value(name, old))),
            None => "new".to_owned(),
        };
        let place = place.map_or_else(String::new, |place| format!("; {place}"));
        match new {
            Some(new) => format!("{}  ({was}{place})\n", self.key(name, new)),
            None => format!("{} removed  ({was}{place})\n", ini::encode_name(name)),
        }
    }

    /// What a key was and is.
    pub(super) fn change_object(&self, name: &str, old: Option<&str>, new: Option<&str>) -> Object {
        Object::new()
            .text("name", name)
            .optional("old", old.map(|old| self.value(name, old)))
            .optional("new", new.map(|new| self.value(name, new)))
            .flag("secret", self.is_secret(name))
    }
}

/// Where a value came from, as something that can be opened.
pub(super) fn origin(key: &Key) -> String {
    let origin = key.origin();
    match &*origin.source {
        SourceOf::Specification(path) if origin.line > 0 => format!("{path}:{}", origin.line),
        SourceOf::Specification(path) => path.clone(),
        _ => origin.to_string(),
    }
}

/// `weather-station (4711)`
pub(super) fn program(author: &Author) -> String {
    format!(
        "{} ({})",
        ini::encode_value(&author.program),
        author.process
    )
}

/// Why a key has its value, and by which layers it has its name.
pub(super) struct Explained<'s> {
    view: View<'s>,
    explanation: &'s Explanation,
    /// The pattern that declares it, where it has placeholders or elements.
    pattern: Option<&'s str>,
    layers: Vec<(&'s str, String)>,
    /// Old names under which files have values of it.
    store: &'s Store,
}

impl<'s> Explained<'s> {
    pub(super) fn new(store: &'s Store, explanation: &'s Explanation) -> Explained<'s> {
        let name = explanation.name.as_str();
        let declared = store.schema().and_then(|schema| schema.find(name));
        let pattern = declared.map(|declared| &declared.pattern);
        let layers = pattern.and_then(|pattern| pattern.layers_of(name));
        Explained {
            view: View::of(store),
            explanation,
            pattern: pattern.map(|pattern| pattern.as_str()),
            layers: layers.unwrap_or_default(),
            store,
        }
    }

    /// The cascade as a table, the key and its value above it.
    pub(super) fn text(&self) -> String {
        let Explanation {
            name,
            candidates,
            inputs,
        } = self.explanation;
        let mut out = match self.winner() {
            Some(key) => self.view.key(name.as_str(), key.value()) + "\n",
            None => format!("{} has no value\n", ini::encode_name(name.as_str())),
        };
        if let Some(pattern) = self.pattern.filter(|pattern| *pattern != name.as_str()) {
            row(&mut out, "pattern", ini::encode_name(pattern));
        }
        for (layer, value) in &self.layers {
            let value = match value.as_str() {
                "" => "is inactive".to_owned(),
                value => format!("= {}", ini::encode_value(value)),
            };
            row(&mut out, "layer", format!("{layer} {value}"));
        }
        let values: Vec<String> = candidates.iter().map(|of| self.value(of)).collect();
        let width = values.iter().map(|value| value.chars().count()).max();
        let width = width.unwrap_or(0);
        for input in inputs {
            let origin = Origin::new(input.clone());
            row(
                &mut out,
                "proc",
                format!("{:8} {:width$}  {origin}", "at run", ""),
            );
        }
        for (candidate, value) in candidates.iter().zip(&values) {
            let (state, place) = (self.state(candidate), self.place(candidate));
            let namespace = candidate.namespace.as_str();
            row(
                &mut out,
                namespace,
                format!("{state:8} {value:width$}  {place}"),
            );
        }
        out
    }

    /// The cascade as lines of JSON, one for each candidate. What a program is
    /// told when it starts is not known here and left out.
    pub(super) fn json(&self) -> String {
        let lines = self.explanation.candidates.iter().map(|candidate| {
            let via = match candidate.via {
                Via::Name => "name",
                Via::Override => "override",
                Via::Fallback => "fallback",
            };
            let name = candidate.name.as_str();
            let value = |key: &'s Key| self.view.value(name, key.value());
            let line = candidate.key.as_ref().map_or(0, |key| key.origin().line);
            let layers = self.layers.iter();
            Object::new()
                .text("name", name)
                .optional("pattern", self.pattern)
                .texts("layers", layers.map(|(layer, value)| (*layer, &**value)))
                .text("via", via)
                .text("namespace", candidate.namespace.as_str())
                .text("state", self.state(candidate))
                .optional("value", candidate.key.as_ref().map(value))
                .origin(&candidate.source, line)
                .flag("secret", self.view.is_secret(name))
                .line()
        });
        lines.collect()
    }

    fn winner(&self) -> Option<&'s Key> {
        self.explanation.winner()?.key.as_ref()
    }

    fn state(&self, candidate: &Candidate) -> &'static str {
        let wins = |key| {
            self.winner()
                .is_some_and(|winner| std::ptr::eq(winner, key))
        };
        match &candidate.key {
            Some(key) if wins(key) => "wins",
            Some(_) => "loses",
            None if candidate.exists || candidate.namespace == Namespace::Default => "unset",
            None => "no file",
        }
    }

    fn value(&self, candidate: &Candidate) -> String {
        let shown = |key: &Key| {
            self.view
                .value(candidate.name.as_str(), key.value())
                .to_owned()
        };
        let value = candidate.key.as_ref().map(shown);
        value.map_or_else(String::new, |value| ini::encode_value(&value).into_owned())
    }

    /// Where a candidate stands, and under which name if that is another one.
    fn place(&self, candidate: &Candidate) -> String {
        let mut place = match (&candidate.key, &*candidate.source) {
            (Some(key), _) => origin(key),
            (None, SourceOf::File(path) | SourceOf::Specification(path)) => path.clone(),
            (None, _) => String::new(),
        };
        let name = ini::encode_name(candidate.name.as_str());
        let written = match candidate.via {
            Via::Name => write!(place, ""),
            Via::Override => write!(place, "  (override {name})"),
            Via::Fallback => write!(place, "  (fallback {name})"),
        };
        written.expect("memory");
        if let Some(old) = candidate.key.as_ref().and_then(|key| self.old_name(key)) {
            write!(place, "  (as {})", ini::encode_name(old)).expect("memory");
        }
        place
    }

    /// The name that a key has in its file, if that is not today's.
    fn old_name(&self, key: &Key) -> Option<&'s str> {
        let notices = self.store.notices().iter();
        let mut old = notices.map(|notice| &notice.key);
        let is_it = |old: &&Key| old.origin() == key.origin() && old.name() != key.name();
        old.find(is_it).map(Key::name)
    }
}

fn row(out: &mut String, what: &str, text: impl std::fmt::Display) {
    writeln!(out, "  {what:8} {text}").expect("memory");
}
