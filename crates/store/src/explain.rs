//! Why a key has the value that it has.

use std::fmt;
use std::sync::Arc;

use milieu_keys::{Key, Name, Namespace, SourceOf};

use crate::redact::shown;
use crate::store::Store;

/// Every place that could give a key its value, in the order in which they are asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The key.
    pub name: Name,
    /// The candidates; the first one with a value wins.
    pub candidates: Vec<Candidate>,
    /// Options and variables of the specification: when a program is started
    /// with one, that wins over everything but overrides.
    pub inputs: Vec<SourceOf>,
}

/// One place that could give a key its value.
#[derive(Clone, PartialEq)]
pub struct Candidate {
    /// The name that is looked up there.
    pub name: Name,
    /// Why that name is looked up.
    pub via: Via,
    /// The namespace of the place.
    pub namespace: Namespace,
    /// The place.
    pub source: Arc<SourceOf>,
    /// Whether there is such a file.
    pub exists: bool,
    /// The key, if the place has it.
    pub key: Option<Key>,
    /// Whether its value is secret; `{:?}` does not show it then.
    pub secret: bool,
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("name", &self.name)
            .field("via", &self.via)
            .field("namespace", &self.namespace)
            .field("source", &self.source)
            .field("exists", &self.exists)
            .field("key", &shown(self.key.as_ref(), self.secret))
            .finish_non_exhaustive()
    }
}

/// Why a name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// It is the name that was asked for.
    Name,
    /// The specification says that this other name comes first (`override/#`).
    Override,
    /// The specification says that this other name comes next (`fallback/#`).
    Fallback,
}

impl Explanation {
    /// The candidate that wins, if any has a value.
    pub fn winner(&self) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.key.is_some())
    }
}

impl Store {
    /// Shows the cascade of a name: overrides, the name itself in each file,
    /// fallbacks, the default of the specification.
    pub fn explain(&self, name: &Name) -> Explanation {
        let mut candidates = Vec::new();
        let (overrides, fallbacks) = match self.schema() {
            Some(schema) => (
                schema.links(name, "override"),
                schema.links(name, "fallback"),
            ),
            None => Default::default(),
        };
        for other in &overrides {
            self.candidates(other, Via::Override, &mut candidates);
        }
        self.candidates(name, Via::Name, &mut candidates);
        for other in &fallbacks {
            self.candidates(other, Via::Fallback, &mut candidates);
        }
        if let Some(schema) = self.schema() {
            candidates.push(Candidate {
                name: name.clone(),
                via: Via::Name,
                namespace: Namespace::Default,
                source: Arc::clone(schema.origin()),
                exists: true,
                key: schema.default_of(name),
                secret: schema.is_secret(name.as_str()),
            });
        }
        let inputs = self
            .schema()
            .map_or_else(Vec::new, |schema| schema.inputs(name));
        Explanation {
            name: name.clone(),
            candidates,
            inputs,
        }
    }

    /// The key that gives a name its value, by the whole cascade: in contrast
    /// to a lookup in [`Store::keys`], with the overrides, fallbacks and
    /// defaults for contextual names of the specification.
    pub fn lookup(&self, name: &Name) -> Option<Key> {
        let explanation = self.explain(name);
        explanation
            .candidates
            .into_iter()
            .find_map(|candidate| candidate.key)
    }

    /// What each file says about a name.
    fn candidates(&self, name: &Name, via: Via, candidates: &mut Vec<Candidate>) {
        for (index, file) in self.files.iter().enumerate() {
            let namespace = file.place.namespace;
            let winner = self.keys().get(namespace, name.as_str());
            let of_name = self
                .shadowed()
                .iter()
                .filter(|key| key.namespace() == namespace && key.name() == name.as_str());
            let key = winner
                .into_iter()
                .chain(of_name)
                .find(|key| self.index_of(key) == Some(index));
            candidates.push(Candidate {
                name: name.clone(),
                via,
                namespace,
                source: Arc::clone(&file.source),
                exists: file.exists,
                key: key.cloned(),
                secret: self.before.secrets.contains(name.as_str()),
            });
        }
    }
}
