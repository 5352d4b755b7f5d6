//! The files behind a key set, and what is known of the keys in them.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, Weak},
    time::SystemTime,
};

use milieu_context::{
    Coordinator, Description, Descriptor, Difference, Identity, Invalid, OpenError,
};
use milieu_keys::{
    KeySet, Migration, Namespace, Secrets, migration::Notice, options::DeclarationError,
};
use milieu_store::{Author, Place, Store, StoreError, watch::FileNews};

use crate::{Error, Milieu, open::lock};

/// The files of a program.
pub(crate) struct Files {
    /// All of them, in the order of the cascade.
    pub places: Vec<Place>,
    pub known: Arc<Known>,
    author: OnceLock<Author>,
    watches: Mutex<Vec<Weak<dyn Watches>>>,
}

/// What is told of what this program writes. A trait, so that programs that do
/// not watch their files have nothing of what watches them.
pub(crate) trait Watches: Send + Sync {
    /// Looks at the files of a namespace.
    fn look(&self, namespace: Namespace);
}

impl Files {
    /// Files that have been read, with these keys.
    pub fn new(places: Vec<Place>, keys: KeySet) -> Files {
        Files {
            places,
            known: Arc::new(Known {
                user: Mutex::new(of_user(keys)),
                told: Mutex::default(),
            }),
            author: OnceLock::new(),
            watches: Mutex::default(),
        }
    }

    /// Learns what an environment says of old names and of secrets, and gives
    /// its keys their values from names of before.
    pub fn adopt(&self, environment: &Description, coordinator: &Coordinator) -> Result<(), Error> {
        if !self.known.learn(environment)? {
            return Ok(());
        }
        let mut taking = self.known.taking();
        let keys = self.read(self.places.clone())?.into_keys();
        for namespace in [Namespace::User, Namespace::System] {
            let taken = taking.take_over(coordinator, namespace, keys.clone());
            taken.map_err(OpenError::Invalid)?;
        }
        Ok(())
    }

    /// All files as they are now, read as the environments want it.
    pub fn store(&self) -> Result<Store, Error> {
        Ok(self.prepared(self.read(self.places.clone())?))
    }

    /// The user's files alone.
    pub fn store_of_user(&self) -> Result<Store, Error> {
        let places = self.of(Namespace::User).cloned().collect();
        Ok(self.prepared(self.read(places)?))
    }

    /// Reads files; an error shows no line that may hold a secret.
    fn read(&self, places: Vec<Place>) -> Result<Store, StoreError> {
        Store::read(places).map_err(|error| shown(error, self.known.is_open()))
    }

    fn prepared(&self, store: Store) -> Store {
        let told = lock(&self.known.told);
        let store = match cfg!(feature = "history") {
            true => store.signed(self.author().clone(), SystemTime::now),
            false => store,
        };
        store.knowing(told.migration.clone(), told.secrets.clone())
    }

    /// Who persists.
    pub fn author(&self) -> &Author {
        self.author.get_or_init(Author::of_this_process)
    }

    /// From now on this watch is told of what the program writes.
    pub fn watched_by(&self, watch: Weak<dyn Watches>) {
        let mut watches = lock(&self.watches);
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(watch);
    }

    /// The program has written into the user's file: no watch takes for news
    /// what it has read before. Whoever drops the last of a watch waits for its
    /// thread, so they are to be kept for as long as that may wait for a lock.
    pub fn written(&self) -> Vec<Arc<dyn Watches>> {
        let watches = lock(&self.watches);
        let watches: Vec<_> = watches.iter().filter_map(Weak::upgrade).collect();
        for watch in &watches {
            watch.look(Namespace::User);
        }
        watches
    }

    /// The file that the user is to write into.
    pub fn of_user(&self) -> Option<String> {
        let path = self.path_of_user();
        path.map(|path| path.display().to_string())
    }

    /// The same as a path.
    pub fn path_of_user(&self) -> Option<&Path> {
        let file = self.of(Namespace::User).next();
        file.map(|file| file.path.as_path())
    }

    fn of(&self, namespace: Namespace) -> impl Iterator<Item = &Place> {
        let of = move |place: &&Place| place.namespace == namespace;
        self.places.iter().filter(of)
    }
}

impl Default for Files {
    /// None.
    fn default() -> Files {
        Files::new(Vec::new(), KeySet::new())
    }
}

impl Milieu {
    /// Reads files that the program brings along, the first of which wins.
    /// Their keys are the last of the cascade, as defaults of the specification
    /// are: what the command line or the user's or the system's file says
    /// instead counts. Nobody persists them. Those that were read before go.
    ///
    /// # Errors
    ///
    /// Fails where a file is not there, or cannot be read or understood, and
    /// where values break the rules of their keys. Nothing has changed then.
    pub fn defaults(&self, files: &[&Path]) -> Result<(), Error> {
        for file in files {
            fs::metadata(file).map_err(|cause| StoreError::Io {
                action: "read the file",
                path: file.to_path_buf(),
                cause,
            })?;
        }
        let place = |file: &&Path| Place::new(Namespace::Default, *file);
        let keys = self
            .files
            .read(files.iter().map(place).collect())?
            .into_keys();
        let replaced = self
            .coordinator()
            .replace(Namespace::Default, &KeySet::new(), &keys);
        replaced.map_err(OpenError::Invalid)?;
        Ok(())
    }

    /// What files say under names that are others today, and keys that are no
    /// more: to be shown to those who wrote them, for example with
    /// [`diagnostics`](Notice::diagnostics). Environments know old names, so
    /// there are none before the first context.
    pub fn notices(&self) -> Vec<Notice> {
        lock(&self.files.known.told).notices.clone()
    }
}

/// What is known of files and of the keys in them.
#[derive(Default)]
pub(crate) struct Known {
    /// The user's keys as this program has read or written them last.
    pub user: Mutex<KeySet>,
    /// What the environments say of old names and of secrets.
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// A handful, so that looking through them takes no time.
    environments: Vec<Identity>,
    values: Vec<&'static Descriptor>,
    /// Keys that are no more, and why.
    removed: Vec<(String, &'static str)>,
    migration: Migration,
    secrets: Secrets,
    notices: Vec<Notice>,
}

impl Known {
    /// Learns what an environment says; whether that is something new.
    fn learn(&self, environment: &Description) -> Result<bool, DeclarationError> {
        let says = |value: &&Descriptor| {
            let words = ["was/", "removed", "deprecated", "secret"];
            let mut metadata = value.metadata.iter();
            metadata.any(|(key, _)| words.iter().any(|word| key.starts_with(word)))
        };
        let mut told = lock(&self.told);
        if told.environments.contains(&environment.identity()) {
            return Ok(false);
        }
        told.environments.push(environment.identity());
        let removed = environment.removed();
        if removed.is_empty() && !environment.values().iter().any(|v| says(&v)) {
            return Ok(false);
        }
        told.values.extend(environment.values());
        told.removed.extend(removed);
        let told = &mut *told;
        let values = || told.values.iter().map(|v| (v.pattern, v.metadata));
        let removed = told.removed.iter();
        let removed: Vec<_> = removed
            .map(|(name, why)| (&**name, [("removed", *why)]))
            .collect();
        let removed = removed.iter().map(|(name, says)| (*name, &says[..]));
        told.migration = Migration::new(values().chain(removed))?;
        told.secrets = Secrets::new(values());
        Ok(!told.migration.is_empty())
    }

    /// Whether it is known that no value is a secret.
    fn is_open(&self) -> bool {
        let told = lock(&self.told);
        !told.environments.is_empty() && told.secrets.is_empty()
    }

    /// What happened to a file, without lines that may hold a secret.
    pub fn shown(&self, news: FileNews) -> FileNews {
        match news {
            FileNews::Invalid { path, error } => {
                let error = match &*error {
                    // An environment may have come after the watch.
                    StoreError::Text {
                        source,
                        diagnostics,
                    } => {
                        let (source, diagnostics) = (source.clone(), diagnostics.clone());
                        let text = StoreError::Text {
                            source,
                            diagnostics,
                        };
                        shown(text, self.is_open()).into()
                    }
                    _ => error,
                };
                FileNews::Invalid { path, error }
            }
            news => news,
        }
    }

    /// What this program knows of a namespace: of the user's keys what it has
    /// read or written, of others what was read just now.
    pub fn read(&self, namespace: Namespace, keys: &KeySet) -> KeySet {
        match namespace {
            Namespace::User => lock(&self.user).clone(),
            _ => keys.clone(),
        }
    }

    /// Keeps this program from writing, so that what files say can be taken
    /// over: what was asked for before would undo what was written since.
    pub fn taking(&self) -> Taking<'_> {
        Taking {
            told: &self.told,
            known: lock(&self.user),
        }
    }
}

/// Files are taken over; nobody of this program writes meanwhile.
pub struct Taking<'a> {
    told: &'a Mutex<Told>,
    known: MutexGuard<'a, KeySet>,
}

impl Taking<'_> {
    /// Publishes what the files say of a namespace, as asked for since this is
    /// there.
    pub fn take_over(
        &mut self,
        coordinator: &Coordinator,
        namespace: Namespace,
        keys: KeySet,
    ) -> Result<Vec<Difference>, Vec<Invalid>> {
        let (keys, notices) = lock(self.told).migration.apply(keys);
        let differences = coordinator.replace(namespace, &self.known, &keys)?;
        if namespace == Namespace::User {
            *self.known = of_user(keys);
        }
        lock(self.told).notices = notices;
        Ok(differences)
    }
}

/// The keys of the user among these.
fn of_user(mut keys: KeySet) -> KeySet {
    keys.retain(|key| key.namespace() == Namespace::User);
    keys
}

/// An error as it may be shown: with lines of a file only where there are no secrets.
pub(crate) fn shown(error: StoreError, is_open: bool) -> StoreError {
    match is_open {
        true => error,
        false => error.without_lines(),
    }
}
