//! The store: the files of one application as one key set.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use milieu_keys::{Key, KeySet, Namespace, Origin, SourceOf};

use crate::disk::{Disk, SystemDisk};
use crate::error::StoreError;
use crate::ini::{self, Document};
use crate::locations::{Locations, Place};
use crate::lock::Lock;
use crate::merge::{self, Change, Commit, Strategy};
use crate::read;
use crate::replace::{self, Audience};
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
#[derive(Debug, Clone)]
pub struct Store {
    /// In the order of the cascade.
    pub(crate) files: Vec<FileOf>,
    keys: KeySet,
    /// Keys that another file of the same namespace wins over.
    pub(crate) shadowed: Vec<Key>,
    pub(crate) schema: Option<Schema>,
    patience: Duration,
}

/// A file of the store as it was seen last.
#[derive(Debug, Clone)]
pub(crate) struct FileOf {
    pub place: Place,
    /// What the origin of every key from this file shares.
    pub source: Arc<SourceOf>,
    pub exists: bool,
}

impl Store {
    /// Reads all files of an application.
    ///
    /// # Errors
    /// A file that is there and cannot be read or understood. None is skipped:
    /// a program that runs with half of its settings surprises more than one
    /// that says what to mend.
    pub fn open(app: &str, locations: &Locations) -> Result<Store, StoreError> {
        Store::read(locations.places(app)?)
    }

    /// Reads these files, the first of which wins. A file that is named twice
    /// counts where it is named first.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn read(places: Vec<Place>) -> Result<Store, StoreError> {
        let mut files: Vec<FileOf> = Vec::new();
        for place in places {
            if files.iter().all(|file| file.place.path != place.path) {
                let source = Arc::new(SourceOf::File(place.path.display().to_string()));
                files.push(FileOf {
                    place,
                    source,
                    exists: false,
                });
            }
        }
        let mut store = Store {
            files,
            keys: KeySet::new(),
            shadowed: Vec::new(),
            schema: None,
            patience: PATIENCE,
        };
        // From the last to the first, so that each key replaces the one it wins over.
        for file in store.files.iter_mut().rev() {
            let Some(content) = read::text(&file.place.path)? else {
                continue;
            };
            file.exists = true;
            if store.keys.is_empty() {
                // Growing by doubling would be a fifth of the work.
                store.keys = KeySet::with_capacity(ini::keys_max(&content.text));
            }
            read::keys(&file.place.path, &content.text, |name, value, line| {
                let origin = Origin::at(&file.source, line);
                let replaced =
                    store
                        .keys
                        .insert(Key::new(file.place.namespace, name, value, origin));
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
        self.schema = Some(schema);
        self
    }

    /// Waits for other writers at most so long, instead of 10 s.
    pub fn with_patience(mut self, patience: Duration) -> Store {
        self.patience = patience;
        self
    }

    /// All keys. A lookup in them is a cascading one.
    pub fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// Gives up the store for its keys.
    pub fn into_keys(self) -> KeySet {
        self.keys
    }

    /// The specification that was given.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The files in the order of the cascade, whether they exist or not.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.files.iter().map(|file| &file.place)
    }

    /// The file that new keys of a namespace go to: the first that exists, or
    /// the first that could.
    pub fn target(&self, namespace: Namespace) -> Option<&Path> {
        self.target_index(namespace)
            .map(|index| self.files[index].place.path.as_path())
    }

    /// Writes changes of single keys into the files of a namespace.
    ///
    /// A key that has a value already is changed in the file that gives it; a
    /// new one goes to [`Store::target`]. Each file is changed whole or not at
    /// all, and holds everything that other processes wrote meanwhile. Of keys
    /// in several files those of the first are written first. When this
    /// returns, the changes survive a loss of power, and the keys of this store
    /// are what the files hold.
    ///
    /// # Errors
    /// The files are as they were, except for [`StoreError::Unsettled`], and
    /// for files that come before the one that failed.
    pub fn commit(
        &mut self,
        namespace: Namespace,
        changes: &[Change],
        strategy: Strategy,
    ) -> Result<Commit, StoreError> {
        self.commit_on(&SystemDisk, namespace, changes, strategy)
    }

    pub(crate) fn commit_on(
        &mut self,
        disk: &dyn Disk,
        namespace: Namespace,
        changes: &[Change],
        strategy: Strategy,
    ) -> Result<Commit, StoreError> {
        let changes = merge::last_of_each(changes);
        if let Some(schema) = &self.schema {
            schema.check_all(&changes)?;
        }
        let mut of_file: Vec<Vec<&Change>> = vec![Vec::new(); self.files.len()];
        for change in changes {
            let holder = self
                .keys
                .get(namespace, change.name.as_str())
                .and_then(|key| self.index_of(key));
            let index = holder
                .or_else(|| self.target_index(namespace))
                .ok_or(StoreError::NoFile { namespace })?;
            of_file[index].push(change);
        }
        let mut commit = Commit::default();
        for (index, changes) in of_file
            .iter()
            .enumerate()
            .filter(|(_, changes)| !changes.is_empty())
        {
            let part = self.commit_file(disk, index, changes, strategy)?;
            commit.replaced.extend(part.replaced);
            commit.conflicts.extend(part.conflicts);
        }
        Ok(commit)
    }

    fn commit_file(
        &mut self,
        disk: &dyn Disk,
        index: usize,
        changes: &[&Change],
        strategy: Strategy,
    ) -> Result<Commit, StoreError> {
        let Place { namespace, path } = self.files[index].place.clone();
        let audience = if namespace == Namespace::System {
            Audience::Public
        } else {
            Audience::Private
        };
        let (target, _lock) = self.lock(disk, &path, audience)?;
        let old = read::text(&target)?;
        let mut document = match &old {
            Some(content) => read::document(&target, &content.text)?,
            None => Document::new(),
        };
        let base = |name: &str| self.keys.get(namespace, name).map(Key::value);
        let commit = merge::apply(&mut document, changes, base, strategy).map_err(|conflicts| {
            StoreError::Conflict {
                path: target.clone(),
                conflicts,
            }
        })?;
        let text = document.to_string();
        let mut settled = Ok(());
        if text != old.as_ref().map_or("", |content| &content.text) {
            let metadata = old.as_ref().map(|content| &content.metadata);
            settled = replace::replace(disk, &target, &text, metadata, audience);
            match settled {
                Ok(()) | Err(StoreError::Unsettled { .. }) => {}
                Err(error) => return Err(error),
            }
            self.files[index].exists = true;
        }
        self.refresh(index, &document);
        settled.map(|()| commit)
    }

    /// Locks the file that the path leads to.
    fn lock(
        &self,
        disk: &dyn Disk,
        path: &Path,
        audience: Audience,
    ) -> Result<(PathBuf, Lock), StoreError> {
        loop {
            let target = replace::follow(path)?;
            // Where a symbolic link leads to a folder that is missing, something
            // is not mounted, and a folder made here would only hide that.
            if target == path {
                replace::make_folders(disk, replace::folder(&target), audience)?;
            }
            let lock = Lock::take(&target, audience.file_mode_of(&target), self.patience)?;
            // The link may have been turned to another file meanwhile.
            if replace::follow(path)? == target {
                return Ok((target, lock));
            }
        }
    }

    /// Takes over what a file holds now.
    fn refresh(&mut self, index: usize, document: &Document) {
        let source = Arc::clone(&self.files[index].source);
        let namespace = self.files[index].place.namespace;
        let others = |key: &Key| !Arc::ptr_eq(&key.origin().source, &source);
        self.keys.retain(others);
        self.shadowed.retain(others);
        for key in keys_of(&self.files[index], document) {
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
        shadowed.sort_by_key(|key| self.index_of(key));
        for key in shadowed {
            if self.keys.get(key.namespace(), key.name()).is_some() {
                self.shadowed.push(key);
            } else {
                self.keys.insert(key);
            }
        }
    }

    /// Which file a key came from.
    pub(crate) fn index_of(&self, key: &Key) -> Option<usize> {
        self.files
            .iter()
            .position(|file| Arc::ptr_eq(&file.source, &key.origin().source))
    }

    fn target_index(&self, namespace: Namespace) -> Option<usize> {
        let mut of_namespace =
            (0..self.files.len()).filter(|&index| self.files[index].place.namespace == namespace);
        let first = of_namespace.clone().next();
        of_namespace
            .find(|&index| self.files[index].exists)
            .or(first)
    }
}

fn keys_of<'a>(file: &'a FileOf, document: &'a Document) -> impl Iterator<Item = Key> + 'a {
    document.keys().map(|entry| {
        Key::new(
            file.place.namespace,
            entry.name,
            &entry.value,
            Origin::at(&file.source, entry.line),
        )
    })
}
