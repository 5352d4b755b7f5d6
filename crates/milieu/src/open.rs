//! Opening: from files, options and variables to a coordinator.

use std::{
    collections::HashSet,
    ffi::OsString,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use milieu_context::{
    Allowed, Context, ContextOptions, Coordinator, Description, Descriptor, Difference,
    Environment, Erased, Identity, Invalid, Layout, OpenError, Policy, Threads,
};
use milieu_keys::{
    KeySet, Migration, Namespace, Options, Parsed, Secrets,
    migration::Notice,
    options::{DeclarationError, Program},
};
use milieu_store::{Author, Locations, Place, Store, StoreError, watch::FileNews};

use crate::{Error, required::missing};

/// A program's surroundings: the coordinator of its contexts, and the files
/// behind its key set.
pub struct Milieu {
    coordinator: Coordinator,
    app: String,
    /// All files in the order of the cascade.
    places: Vec<Place>,
    pub(crate) known: Arc<Known>,
    /// Who persists.
    pub(crate) author: Author,
    /// Environments of which every required key has a value.
    complete: Mutex<HashSet<Identity>>,
    #[cfg(feature = "stream")]
    pub(crate) kept: crate::streams::Kept,
}

impl fmt::Debug for Milieu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Milieu")
            .field("files", &self.places)
            .finish_non_exhaustive()
    }
}

/// How a program is to start.
#[derive(Debug)]
pub enum Start {
    /// To run.
    Run(Box<Milieu>),
    /// To print this and end: `--help` or `--version` was given.
    Say(String),
}

impl Milieu {
    /// Opens the settings of an application: the user's file, then those of
    /// the system (see [`Locations`]). The command line and variables are read
    /// by [`builder`](Milieu::builder), which is told what they mean.
    ///
    /// # Errors
    ///
    /// Fails where a file cannot be read or understood, and says which, where and why.
    pub fn open(app: &str) -> Result<Milieu, Error> {
        match Milieu::builder(app).start()? {
            Start::Run(milieu) => Ok(*milieu),
            Start::Say(_) => unreachable!("without options nobody asks for help"),
        }
    }

    /// Opens an application with its command line, or with other files.
    pub fn builder(app: &str) -> Builder {
        Builder {
            app: app.into(),
            locations: None,
            places: None,
            command: None,
            is_open: false,
        }
    }

    /// A context for this thread or task.
    ///
    /// # Errors
    ///
    /// Fails where the settings break the rules of the environment, or do not
    /// give a value that it requires; every offending key is named, with its
    /// place and the way out.
    pub fn context<E: Environment>(&self) -> Result<Context<E>, Error> {
        self.context_with::<E, Threads>(ContextOptions::new())
    }

    /// A context with a policy, a role, or both.
    ///
    /// # Errors
    ///
    /// As [`context`](Milieu::context).
    pub fn context_with<E: Environment, P: Policy>(
        &self,
        options: ContextOptions,
    ) -> Result<Context<E, P>, Error> {
        let environment = Description::of::<E>();
        self.adopt(&environment)?;
        let cx = self.coordinator.context_with(options)?;
        self.complete(&environment)?;
        Ok(cx)
    }

    /// A context over an environment that is described while the program runs.
    ///
    /// # Errors
    ///
    /// As [`context`](Milieu::context).
    pub fn erased(
        &self,
        layout: &'static Layout,
        options: ContextOptions,
        allowed: Allowed,
    ) -> Result<Erased, Error> {
        let environment = layout.description();
        self.adopt(&environment)?;
        let cx = self.coordinator.erased(layout, options, allowed)?;
        self.complete(&environment)?;
        Ok(cx)
    }

    /// Sees to it that somebody gives the values that somebody has to give.
    fn complete(&self, environment: &Description) -> Result<(), Error> {
        let complete = || lock(&self.complete);
        if complete().contains(&environment.identity()) {
            return Ok(());
        }
        let file = self
            .files_of(Namespace::User)
            .next()
            .map(|file| file.path.display().to_string());
        let missing = missing(environment, &self.coordinator, file.as_deref());
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        complete().insert(environment.identity());
        Ok(())
    }

    /// What files say under names that are others today, and keys that are no
    /// more: to be shown to those who wrote them, for example with
    /// [`diagnostics`](Notice::diagnostics). Environments know old names, so
    /// there are none before the first context.
    pub fn notices(&self) -> Vec<Notice> {
        lock(&self.known.told).notices.clone()
    }

    /// Learns what an environment says of old names and of secrets, and gives
    /// its keys their values from names of before.
    fn adopt(&self, environment: &Description) -> Result<(), Error> {
        if !self.known.learn(environment)? {
            return Ok(());
        }
        let keys = self.read(self.places.clone())?.into_keys();
        for namespace in [Namespace::User, Namespace::System] {
            let taken = self
                .known
                .take_over(&self.coordinator, namespace, keys.clone());
            taken.map_err(OpenError::Invalid)?;
        }
        Ok(())
    }

    /// All files as they are now, read as the environments want it.
    pub(crate) fn store(&self) -> Result<Store, Error> {
        Ok(self.prepared(self.read(self.places.clone())?))
    }

    /// The user's files alone.
    pub(crate) fn store_of_user(&self) -> Result<Store, Error> {
        let places = self.files_of(Namespace::User).cloned().collect();
        Ok(self.prepared(self.read(places)?))
    }

    /// Reads files; an error shows no line that may hold a secret.
    fn read(&self, places: Vec<Place>) -> Result<Store, StoreError> {
        Store::read(places).map_err(|error| shown(error, self.known.is_open()))
    }

    fn prepared(&self, store: Store) -> Store {
        let told = lock(&self.known.told);
        store
            .signed(self.author.clone(), SystemTime::now)
            .knowing(told.migration.clone(), told.secrets.clone())
    }

    fn files_of(&self, namespace: Namespace) -> impl Iterator<Item = &Place> {
        let of = move |place: &&Place| place.namespace == namespace;
        self.places.iter().filter(of)
    }

    /// The application's name, as it was opened.
    #[must_use]
    pub fn app(&self) -> &str {
        &self.app
    }

    /// What all contexts share: actions, and the lock of the key set.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
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
    environments: HashSet<Identity>,
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
        if !told.environments.insert(environment.identity()) {
            return Ok(false);
        }
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

    /// Publishes what the files say of a namespace.
    pub fn take_over(
        &self,
        coordinator: &Coordinator,
        namespace: Namespace,
        keys: KeySet,
    ) -> Result<Vec<Difference>, Vec<Invalid>> {
        let (keys, notices) = lock(&self.told).migration.apply(keys);
        let mut known = lock(&self.user);
        let differences = coordinator.replace(namespace, &known, &keys)?;
        if namespace == Namespace::User {
            *known = of_user(keys);
        }
        lock(&self.told).notices = notices;
        Ok(differences)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keys of the user among these.
fn of_user(mut keys: KeySet) -> KeySet {
    keys.retain(|key| key.namespace() == Namespace::User);
    keys
}

/// An error as it may be shown: with lines of a file only where there are no secrets.
fn shown(error: StoreError, is_open: bool) -> StoreError {
    match is_open {
        true => error,
        false => error.without_lines(),
    }
}

type Parse = Box<dyn FnOnce() -> Result<Parsed, Error>>;

/// What to open, and with which command line.
#[must_use = "nothing is opened before `start`"]
pub struct Builder {
    app: String,
    locations: Option<Locations>,
    places: Option<Vec<Place>>,
    command: Option<Parse>,
    /// Whether it is known that there are no secrets.
    is_open: bool,
}

impl Builder {
    /// Other folders than those of this process's environment, for tests.
    pub fn locations(mut self, locations: Locations) -> Self {
        self.locations = Some(locations);
        self
    }

    /// Exactly these files, in the order of the cascade.
    pub fn files(mut self, places: Vec<Place>) -> Self {
        self.places = Some(places);
        self
    }

    /// This process's command line and variables, as the environment `E`
    /// specifies them (`opt`, `opt/long`, `args`, `env`).
    pub fn command_line<E: Environment>(self, program: Program) -> Self {
        self.arguments::<E>(program, std::env::args_os().skip(1).collect(), |name| {
            std::env::var_os(name)
        })
    }

    /// As [`command_line`](Builder::command_line), with arguments and variables handed in.
    pub fn arguments<E: Environment>(
        self,
        program: Program,
        arguments: Vec<OsString>,
        variable: impl Fn(&str) -> Option<OsString> + 'static,
    ) -> Self {
        self.arguments_of(Description::of::<E>(), program, arguments, variable)
    }

    /// As [`arguments`](Builder::arguments), as the environment with this
    /// description specifies them.
    pub fn arguments_of(
        mut self,
        environment: Description,
        program: Program,
        arguments: Vec<OsString>,
        variable: impl Fn(&str) -> Option<OsString> + 'static,
    ) -> Self {
        self.is_open = Secrets::new(metadata_of(environment)).is_empty();
        self.command = Some(Box::new(move || {
            let options = Options::new(program, metadata_of(environment))?;
            Ok(options.parse(arguments, variable)?)
        }));
        self
    }

    /// Reads everything.
    ///
    /// # Errors
    ///
    /// Fails where the command line or a file is not as it should be.
    pub fn start(self) -> Result<Start, Error> {
        let given = match self.command.map(|parse| parse()).transpose()? {
            None => KeySet::new(),
            Some(Parsed::Keys(keys)) => keys,
            Some(Parsed::Help(text) | Parsed::Version(text)) => return Ok(Start::Say(text)),
        };
        let store = match self.places {
            Some(places) => Store::read(places),
            None => {
                let locations = self
                    .locations
                    .unwrap_or_else(|| Locations::from_environment(|name| std::env::var_os(name)));
                Store::open(&self.app, &locations)
            }
        };
        let store = store.map_err(|error| shown(error, self.is_open))?;
        let places = store.places().cloned().collect();
        let mut keys = store.into_keys();
        keys.merge(given);
        let coordinator = Coordinator::with_keys(&keys);
        Ok(Start::Run(Box::new(Milieu {
            coordinator,
            app: self.app,
            places,
            known: Arc::new(Known {
                user: Mutex::new(of_user(keys)),
                told: Mutex::default(),
            }),
            author: Author::of_this_process(),
            complete: Mutex::default(),
            #[cfg(feature = "stream")]
            kept: crate::streams::Kept::default(),
        })))
    }
}

/// The command line of a program, as an environment specifies it: for help
/// texts and for programs that start in ways of their own.
///
/// # Errors
///
/// Fails where two values claim one option.
pub fn options_of<E: Environment>(program: Program) -> Result<Options, DeclarationError> {
    Options::new(program, metadata_of(Description::of::<E>()))
}

type Metadata = &'static [(&'static str, &'static str)];

/// What an environment's specification says of each value, by its pattern.
fn metadata_of(environment: Description) -> impl Iterator<Item = (&'static str, Metadata)> {
    let values = environment.values().iter();
    values.map(|value| (value.pattern, value.metadata))
}
