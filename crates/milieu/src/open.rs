//! Opening: from files, options and variables to a coordinator.

use std::{
    any::TypeId,
    collections::HashSet,
    ffi::OsString,
    fmt,
    sync::{Mutex, PoisonError},
};

use milieu_context::{Context, ContextOptions, Coordinator, Environment, Policy, Threads};
use milieu_keys::{
    KeySet, Namespace, Options, Parsed,
    options::{DeclarationError, Program},
};
use milieu_store::{Locations, Place, Store};

use crate::{Error, required::missing};

/// A program's surroundings: the coordinator of its contexts, and the files
/// behind its key set.
pub struct Milieu {
    coordinator: Coordinator,
    /// The user's files, the first of which wins.
    pub(crate) files: Vec<Place>,
    /// The user's keys as this program has read or written them last.
    pub(crate) known: Mutex<KeySet>,
    /// Environments of which every required key has a value.
    complete: Mutex<HashSet<TypeId>>,
}

impl fmt::Debug for Milieu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Milieu")
            .field("files", &self.files)
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
        let cx = self.coordinator.context_with(options)?;
        let complete = || self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        if !complete().contains(&TypeId::of::<E>()) {
            let file = self
                .files
                .first()
                .map(|file| file.path.display().to_string());
            let missing = missing::<E>(&self.coordinator, file.as_deref());
            if !missing.is_empty() {
                return Err(Error::Missing(missing));
            }
            complete().insert(TypeId::of::<E>());
        }
        Ok(cx)
    }

    /// What all contexts share: actions, and the lock of the key set.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
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
        mut self,
        program: Program,
        arguments: Vec<OsString>,
        variable: impl Fn(&str) -> Option<OsString> + 'static,
    ) -> Self {
        self.command = Some(Box::new(move || {
            let options = options_of::<E>(program)?;
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
            Some(places) => Store::read(places)?,
            None => {
                let locations = self
                    .locations
                    .unwrap_or_else(|| Locations::from_environment(|name| std::env::var_os(name)));
                Store::open(&self.app, &locations)?
            }
        };
        let of_user = |place: &&Place| place.namespace == Namespace::User;
        let files = store.places().filter(of_user).cloned().collect();
        let mut keys = store.into_keys();
        keys.merge(given);
        let coordinator = Coordinator::with_keys(&keys);
        keys.retain(|key| key.namespace() == Namespace::User);
        Ok(Start::Run(Box::new(Milieu {
            coordinator,
            files,
            known: Mutex::new(keys),
            complete: Mutex::default(),
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
    Options::new(
        program,
        E::VALUES
            .iter()
            .map(|value| (value.pattern, value.metadata)),
    )
}
