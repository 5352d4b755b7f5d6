//! The store: the files of one application as one key set.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf, sort};

use crate::before::{Before, Today};
use crate::error::StoreError;
use crate::format::Document;
use crate::history::{self, Author, Changed};
use crate::locations::{Locations, Place};
use crate::read;
use crate::schema::Schema;

/// How long a commit waits for other writers, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files of one application, read into one key set, and the way back.
///
/// A store is a snapshot: it shows what the files held when it was opened, with
/// its own commits and what others had written by then. Several processes may
/// have the same files open.
///
/// ```
/// use milieu_keys::{Name, Namespace};
/// use milieu_store::{Change, Locations, Store, Strategy};
/// # let folder = std::env::temp_dir().join(format!("milieu-store-doc-{}", std::process::id()));
/// # let home = folder.clone();
/// let locations = Locations::from_environment(|name| (name == "XDG_CONFIG_HOME").then(|| home.clone().into()));
///
/// let mut store = Store::open("weather-station", &locations)?;
/// let language = Name::parse("/sw/pi/anna/language")?;
/// store.commit(Namespace::User, &[Change::set(language, "de")], Strategy::Refuse)?;
///
/// let key = store.keys().lookup("/sw/pi/anna/language").expect("it was just set");
/// assert_eq!(key.value(), "de");
/// assert!(key.origin().to_string().ends_with("weather-station.ini:2"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    /// In the order of the cascade.
    pub(crate) files: Vec<FileOf>,
    pub(crate) keys: KeySet,
    /// Keys that another file of the same namespace wins over.
    pub(crate) shadowed: Vec<Key>,
    /// Keys of files that stand below the mount point of another file.
    hidden: Vec<Key>,
    pub(crate) schema: Option<Schema>,
    pub(crate) before: Arc<Before>,
    /// The keys under the names of today, where files use others.
    pub(crate) today: Option<Today>,
    pub(crate) patience: Duration,
    pub(crate) author: Option<(Author, Clock)>,
}

/// Tells the time of a commit, for its history.
pub type Clock = fn() -> SystemTime;

/// A file of the store as it was seen last.
#[derive(Debug, Clone)]
pub(crate) struct FileOf {
    pub place: Place,
    /// What the origin of every key from this file shares.
    pub source: Arc<SourceOf>,
    pub exists: bool,
    /// Mount points further down, whose keys are not this file's.
    pub hides: Vec<Name>,
    /// The fingerprint of the text that the keys are from.
    pub seen: Option<u64>,
}

/// The files, and not the keys, of which some may be secrets.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<&Path> = self.places().map(|place| &*place.path).collect();
        f.debug_struct("Store")
            .field("files", &files)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Reads all files of an application, those of its mount tables included.
    ///
    /// # Errors
    /// A file that is there and cannot be read or understood. None is skipped:
    /// a program that runs with half of its settings surprises more than one
    /// that says what to mend.
    pub fn open(app: &str, locations: &Locations) -> Result<Store, StoreError> {
        Store::read(locations.mounted_places(app)?)
    }

    /// Reads these files, the first of which wins. A file that is named twice
    /// counts where it is named first.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn read(places: Vec<Place>) -> Result<Store, StoreError> {
        let mut files: Vec<FileOf> = Vec::new();
        for place in places {
            let same = |file: &FileOf| {
                (&file.place.path, &file.place.mount) == (&place.path, &place.mount)
            };
            if !files.iter().any(same) {
                let source = Arc::new(SourceOf::File(place.path.display().to_string()));
                files.push(FileOf {
                    place,
                    source,
                    exists: false,
                    hides: Vec::new(),
                    seen: None,
                });
            }
        }
        let places: Vec<Place> = files.iter().map(|file| file.place.clone()).collect();
        for file in &mut files {
            file.hides = further_down(&file.place, &places);
        }
        let mut store = Store {
            files,
            keys: KeySet::new(),
            shadowed: Vec::new(),
            hidden: Vec::new(),
            schema: None,
            before: Arc::default(),
            today: None,
            patience: PATIENCE,
            author: None,
        };
        // From the last to the first, so that each key replaces the one it wins over.
        for file in store.files.iter_mut().rev() {
            let place = &file.place;
            let Some(content) = read::text(&place.path)? else {
                continue;
            };
            file.exists = true;
            file.seen = Some(history::fingerprint(&content.text));
            if store.keys.is_empty() {
                // Growing by doubling would be a fifth of the work.
                store.keys = KeySet::with_capacity(place.format.keys_max(&content.text));
            }
            read::keys(place, &content.text, |name, value, line| {
                let origin = Origin::at(&file.source, line);
                let key = Key::new(place.namespace, name, value, origin);
                if file
                    .hides
                    .iter()
                    .any(|mount| name.is_below_or_same(mount.as_str()))
                {
                    store.hidden.push(key);
                    return true;
                }
                let replaced = store.keys.insert(key);
                let unique = replaced
                    .as_ref()
                    .is_none_or(|key| !Arc::ptr_eq(&key.origin().source, &file.source));
                store.shadowed.extend(replaced);
                unique
            })?;
        }
        Ok(store)
    }

    /// Checks commits against a specification from now on, and takes its
    /// defaults into the namespace `default`.
    pub fn with_schema(mut self, schema: Schema) -> Store {
        self.keys.extend(schema.defaults());
        let (migration, secrets) = (schema.old_names().clone(), schema.secrets().clone());
        self.schema = Some(schema);
        self.knowing(migration, secrets)
    }

    /// Waits for other writers at most so long, instead of 10 s.
    pub fn with_patience(mut self, patience: Duration) -> Store {
        self.patience = patience;
        self
    }

    /// Notes who commits, and when, in the history of each file from now on.
    pub fn signed(mut self, author: Author, clock: Clock) -> Store {
        self.author = Some((author, clock));
        self
    }

    /// All keys, under the names of today. A lookup in them is a cascading one.
    pub fn keys(&self) -> &KeySet {
        self.today.as_ref().map_or(&self.keys, |today| &today.keys)
    }

    /// Gives up the store for its keys.
    pub fn into_keys(self) -> KeySet {
        self.today.map_or(self.keys, |today| today.keys)
    }

    /// The specification that was given.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The files in the order of the cascade, whether they exist or not.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.files.iter().map(|file| &file.place)
    }

    /// Keys that stand in a file and do not count, because another file is
    /// mounted over them.
    pub fn hidden(&self) -> &[Key] {
        &self.hidden
    }

    /// The file that a new key goes to: of those mounted closest above it the
    /// first that exists, or the first that could.
    pub fn target(&self, namespace: Namespace, name: &Name) -> Option<&Path> {
        self.target_index(namespace, name)
            .map(|index| self.files[index].place.path.as_path())
    }

    /// Takes over what a file holds now.
    pub(crate) fn refresh(&mut self, index: usize, document: &dyn Document) {
        let source = Arc::clone(&self.files[index].source);
        let namespace = self.files[index].place.namespace;
        let others = |key: &Key| !Arc::ptr_eq(&key.origin().source, &source);
        self.keys.retain(others);
        self.shadowed.retain(others);
        self.hidden.retain(others);
        for key in keys_of(&self.files[index], document) {
            let hides = &self.files[index].hides;
            if hides
                .iter()
                .any(|mount| is_below_or_same(key.name(), mount))
            {
                self.hidden.push(key);
                continue;
            }
            let winner = self
                .keys
                .get(namespace, key.name())
                .and_then(|other| self.index_of(other));
            if winner.is_some_and(|winner| winner < index) {
                self.shadowed.push(key);
            } else {
                self.shadowed.extend(self.keys.insert(key));
            }
        }
        // A key that is gone lets the next one come forward.
        let mut shadowed = std::mem::take(&mut self.shadowed);
        sort::by(&mut shadowed, |a, b| {
            self.index_of(a).cmp(&self.index_of(b))
        });
        for key in shadowed {
            if self.keys.get(key.namespace(), key.name()).is_some() {
                self.shadowed.push(key);
            } else {
                self.keys.insert(key);
            }
        }
        self.look_back();
    }

    /// Takes over new values of keys whose places have not changed.
    pub(crate) fn refresh_values(&mut self, namespace: Namespace, changed: &[Changed]) {
        for change in changed {
            let key = self.keys.get(namespace, change.name.as_str());
            if let (Some(key), Some(value)) = (key, &change.new) {
                let key = key.with_value(value, key.origin().clone());
                self.keys.insert(key);
            }
        }
        self.look_back();
    }

    /// The file that gives a key.
    pub fn path_of(&self, key: &Key) -> Option<&Path> {
        let index = self.index_of(key)?;
        Some(&self.files[index].place.path)
    }

    /// Which file a key came from.
    pub(crate) fn index_of(&self, key: &Key) -> Option<usize> {
        self.files
            .iter()
            .position(|file| Arc::ptr_eq(&file.source, &key.origin().source))
    }

    pub(crate) fn target_index(&self, namespace: Namespace, name: &Name) -> Option<usize> {
        let holds = |&index: &usize| {
            let place = &self.files[index].place;
            place.namespace == namespace && name.is_below_or_same(place.mount.as_str())
        };
        let depth = |&index: &usize| self.files[index].place.mount.levels().count();
        let candidates = (0..self.files.len()).filter(holds);
        let deepest = candidates.clone().map(|index| depth(&index)).max()?;
        let mut closest = candidates.filter(|index| depth(index) == deepest);
        let first = closest.clone().next();
        closest.find(|&index| self.files[index].exists).or(first)
    }
}

/// The mount points of other files inside what this one holds.
pub(crate) fn further_down(place: &Place, places: &[Place]) -> Vec<Name> {
    let inside = |other: &&Place| {
        other.namespace == place.namespace
            && other.mount != place.mount
            && other.mount.is_below_or_same(place.mount.as_str())
    };
    let mounts = places.iter().filter(inside);
    mounts.map(|other| other.mount.clone()).collect()
}

fn is_below_or_same(name: &str, mount: &Name) -> bool {
    let rest = name.strip_prefix(mount.as_str());
    mount.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn keys_of<'a>(file: &'a FileOf, document: &'a dyn Document) -> impl Iterator<Item = Key> + 'a {
    document.keys().map(|entry| {
        Key::new(
            file.place.namespace,
            &file.place.mount.mounted(&entry.name),
            &entry.value,
            Origin::at(&file.source, entry.line),
        )
    })
}
