//! The files of a store as a watch knows them, and what becomes of it when one
//! is looked at again.
//!
//! ```text
//!            understood                        for `grace` not understood
//!   valid ◀───────────── suspect ─────────────────────────────────────▶ invalid
//!     └─────────────────▶   ▲                                              │
//!        not understood     └──────────────────────────────────────────────┘
//!                                        has another content
//! ```
//!
//! Whatever a file is, its keys in force are those of the last content that was
//! understood.

use std::hash::RandomState;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use milieu_keys::{Key, KeySet, Name, Namespace, Secrets, SourceOf};

use super::changes::{Own, Queue, Turned};
use super::load;
use super::news::{FileNews, Filter, same};
use crate::before::Before;
use crate::error::StoreError;
use crate::history;
use crate::locations::Place;
use crate::schema::Schema;
use crate::store::Store;

/// What a watch knows.
pub(super) struct State {
    files: Vec<FileOf>,
    /// Keys that come from no file, such as the defaults of the specification.
    fixed: KeySet,
    schema: Option<Schema>,
    before: Arc<Before>,
    /// How long a file may be not understood before it is called invalid.
    grace: Duration,
    readers: Vec<Weak<Queue>>,
    hasher: RandomState,
}

struct FileOf {
    place: Place,
    /// Mount points of other files inside what this one holds.
    hides: Vec<Name>,
    /// By which it is watched.
    path: PathBuf,
    source: Arc<SourceOf>,
    /// The keys in force.
    keys: KeySet,
    /// What was seen last, understood or not.
    print: Option<u64>,
    /// The last record of the history that was there then.
    noted: u64,
    health: Health,
}

enum Health {
    Valid,
    /// Not understood since then.
    Suspect(Instant),
    Invalid(Arc<StoreError>),
}

/// What a look at files led to.
#[derive(Default)]
pub(super) struct Outcome {
    /// Who is to be woken once no lock is held.
    pub wakers: Vec<Waker>,
    /// Files that have to be looked at again after some time.
    pub again: Vec<(PathBuf, Duration)>,
}

impl State {
    /// What the store knows, whose keys are in force until a file is looked at.
    pub fn of(store: &Store, grace: Duration) -> State {
        let file = |file: &crate::store::FileOf| FileOf {
            place: file.place.clone(),
            hides: file.hides.clone(),
            path: std::path::absolute(&file.place.path).unwrap_or_else(|_| file.place.path.clone()),
            source: Arc::clone(&file.source),
            keys: KeySet::new(),
            print: None,
            noted: file
                .seen
                .map_or(0, |seen| history::noted(&file.place.path, seen)),
            health: Health::Valid,
        };
        let mut state = State {
            files: store.files.iter().map(file).collect(),
            fixed: KeySet::new(),
            schema: store.schema().cloned(),
            before: Arc::clone(&store.before),
            grace,
            readers: Vec::new(),
            hasher: RandomState::new(),
        };
        for key in store.keys().iter().chain(store.shadowed()) {
            let keys = match store.index_of(key) {
                Some(index) => &mut state.files[index].keys,
                None => &mut state.fixed,
            };
            keys.insert(key.clone());
        }
        state
    }

    /// All keys in force.
    pub fn keys(&self) -> KeySet {
        let mut keys = self.fixed.clone();
        // From the last to the first, so that each replaces the one it wins over.
        for file in self.files.iter().rev() {
            keys.extend(file.keys.iter().cloned());
        }
        keys
    }

    /// The files at these paths.
    pub fn at<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Vec<usize> {
        let place = |path: &Path| self.files.iter().position(|file| file.path == path);
        paths.filter_map(place).collect()
    }

    /// All files.
    pub fn all(&self) -> Vec<usize> {
        (0..self.files.len()).collect()
    }

    /// Where the files are.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.place.path)
    }

    /// The files of a namespace.
    pub fn of_namespace(&self, namespace: Namespace) -> Vec<usize> {
        let all = 0..self.files.len();
        all.filter(|index| self.files[*index].place.namespace == namespace)
            .collect()
    }

    /// Reads these files and tells the readers what has changed. Of what this
    /// process wrote itself they are not told.
    pub fn look(
        &mut self,
        files: &[usize],
        troubles: Vec<FileNews>,
        own: Option<&Own<'_>>,
        now: Instant,
    ) -> Outcome {
        let mut turned = Vec::new();
        let mut news = troubles;
        let mut outcome = Outcome::default();
        for &index in files {
            let file = &mut self.files[index];
            let (schema, before) = (self.schema.as_ref(), &*self.before);
            match file.look(schema, before, &self.hasher, self.grace, now) {
                Look::Nothing => {}
                Look::Again(after) => outcome.again.push((file.path.clone(), after)),
                Look::Invalid(error) => news.push(file.invalid(&error)),
                Look::Keys(keys, valid) => {
                    news.extend(valid);
                    self.take_over(index, keys, &mut turned);
                }
            }
        }
        if !turned.is_empty() || !news.is_empty() {
            let readers = self.readers();
            let pushed = readers.map(|reader| reader.push(&turned, &news, own));
            outcome.wakers = pushed.flatten().collect();
        }
        outcome
    }

    /// Adds a reader who knows these keys, and tells what is different by now.
    pub fn add(&mut self, reader: &Arc<Queue>, known: &KeySet) {
        let secrets = &self.before.secrets;
        let files = self.files.iter().filter_map(|file| match &file.health {
            Health::Invalid(error) => Some(file.invalid(error)),
            _ => None,
        });
        let files: Vec<FileNews> = files.collect();
        let turned = differences(known, &self.keys(), reader.filter(), secrets);
        // Nobody can wait for it yet.
        let _ = reader.push(&turned, &files, None);
        self.readers.retain(|reader| reader.strong_count() > 0);
        self.readers.push(Arc::downgrade(reader));
    }

    /// All readers.
    pub fn readers(&self) -> impl Iterator<Item = Arc<Queue>> {
        self.readers.iter().filter_map(Weak::upgrade)
    }

    /// Puts the keys of a file in force.
    fn take_over(&mut self, index: usize, keys: KeySet, turned: &mut Vec<Turned>) {
        let file = &self.files[index];
        let namespace = file.place.namespace;
        let of_both = |old: &KeySet, new: &KeySet| -> Vec<Name> {
            let differs = |key: &&Key| {
                let other = new.get(namespace, key.name());
                !same(Some(key), other)
            };
            let is_new = |key: &&Key| old.get(namespace, key.name()).is_none();
            let keys = old.iter().filter(differs).chain(new.iter().filter(is_new));
            keys.map(name_of).collect()
        };
        let names = of_both(&file.keys, &keys);
        let records = match names.is_empty() {
            true => Vec::new(),
            false => history::since(&file.place.path, file.noted),
        };
        let view = |state: &State, name: &Name| {
            let effective = state.winner(None, name.as_str()).cloned();
            (
                effective,
                state.winner(Some(namespace), name.as_str()).cloned(),
            )
        };
        let before: Vec<_> = names.iter().map(|name| view(self, name)).collect();
        if let Some(last) = records.last() {
            self.files[index].noted = last.id;
        }
        self.files[index].keys = keys;
        for (name, before) in names.into_iter().zip(before) {
            let after = view(self, &name);
            let now = self.files[index].keys.get(namespace, name.as_str());
            let by = history::author_of(&records, &name, now.map(Key::value));
            let secret = self.before.secrets.contains(name.as_str());
            turned.push(Turned {
                name,
                namespace,
                effective: [before.0, after.0],
                in_namespace: [before.1, after.1],
                by,
                secret,
            });
        }
    }

    /// The key that a lookup finds, in one namespace or in all.
    fn winner(&self, namespace: Option<Namespace>, name: &str) -> Option<&Key> {
        let files = self.files.iter();
        let files = files.filter_map(|file| file.keys.get(file.place.namespace, name));
        let fixed = match namespace {
            Some(namespace) => self.fixed.get(namespace, name),
            None => self.fixed.lookup(name),
        };
        // Of several in one namespace the first file wins.
        let candidates = files.chain(fixed);
        candidates
            .filter(|key| namespace.is_none_or(|namespace| key.namespace() == namespace))
            .min_by_key(|key| key.namespace())
    }
}

/// What a look at a file showed.
enum Look {
    /// What was known already.
    Nothing,
    /// It is not understood, which may pass.
    Again(Duration),
    Invalid(Arc<StoreError>),
    /// Its keys, and that it is valid again if it was not.
    Keys(KeySet, Option<FileNews>),
}

impl FileOf {
    fn look(
        &mut self,
        schema: Option<&Schema>,
        before: &Before,
        hasher: &RandomState,
        grace: Duration,
        now: Instant,
    ) -> Look {
        let text = load::text(&self.place);
        let print = Some(load::print(hasher, &text));
        let is_suspect = matches!(self.health, Health::Suspect(_));
        if print == self.print && !is_suspect {
            return Look::Nothing;
        }
        self.print = print;
        let keys = load::keys(&self.place, &self.hides, &self.source, text, before)
            .and_then(|keys| load::check(keys, schema, &self.keys));
        match keys {
            Ok(keys) => {
                let before = std::mem::replace(&mut self.health, Health::Valid);
                let valid = || FileNews::Valid {
                    path: self.place.path.clone(),
                };
                let was_valid = matches!(before, Health::Valid);
                Look::Keys(keys, (!was_valid).then(valid))
            }
            Err(error) => {
                let since = match self.health {
                    Health::Suspect(since) => since,
                    _ => now,
                };
                let waited = now.saturating_duration_since(since);
                if waited < grace {
                    self.health = Health::Suspect(since);
                    return Look::Again(grace - waited);
                }
                let error = Arc::new(before.redact(error));
                self.health = Health::Invalid(Arc::clone(&error));
                Look::Invalid(error)
            }
        }
    }

    fn invalid(&self, error: &Arc<StoreError>) -> FileNews {
        FileNews::Invalid {
            path: self.place.path.clone(),
            error: Arc::clone(error),
        }
    }
}

/// The keys of which one set has another value than the other, as far as the filter wants them.
fn differences(old: &KeySet, new: &KeySet, filter: &Filter, secrets: &Secrets) -> Vec<Turned> {
    let found = |keys: &KeySet, name: &str| match filter.namespace() {
        Some(namespace) => keys.get(namespace, name).cloned(),
        None => keys.lookup(name).cloned(),
    };
    let is_new = |key: &&Key| old.lookup(key.name()).is_none();
    let names = old.effective().chain(new.effective().filter(is_new));
    let turned = names.map(|key| {
        let both = [found(old, key.name()), found(new, key.name())];
        Turned {
            name: name_of(key),
            namespace: filter.namespace().unwrap_or(key.namespace()),
            effective: both.clone(),
            in_namespace: both,
            by: None,
            secret: secrets.contains(key.name()),
        }
    });
    turned.collect()
}

fn name_of(key: &Key) -> Name {
    Name::parse(key.name()).expect("the name of a key is a name")
}
