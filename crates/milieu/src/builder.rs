//! Opening: from files, options and variables to a coordinator.

#[cfg(feature = "options")]
use std::ffi::OsString;

use milieu_context::Coordinator;
#[cfg(feature = "options")]
use milieu_context::{Description, Environment};
#[cfg(feature = "options")]
use milieu_keys::{
    KeySet, Options, Parsed, Secrets,
    options::{DeclarationError, Program},
};
use milieu_store::{Locations, Place, Store};

use crate::{
    Error, Milieu,
    files::{Files, shown},
};

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
            #[cfg(feature = "options")]
            command: None,
            is_open: false,
        }
    }
}

#[cfg(feature = "options")]
type Parse = Box<dyn FnOnce() -> Result<Parsed, Error>>;

/// What to open, and with which command line.
#[must_use = "nothing is opened before `start`"]
pub struct Builder {
    app: String,
    locations: Option<Locations>,
    places: Option<Vec<Place>>,
    #[cfg(feature = "options")]
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
    #[cfg(feature = "options")]
    pub fn command_line<E: Environment>(self, program: Program) -> Self {
        self.arguments::<E>(program, std::env::args_os().skip(1).collect(), |name| {
            std::env::var_os(name)
        })
    }

    /// As [`command_line`](Builder::command_line), with arguments and variables handed in.
    #[cfg(feature = "options")]
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
    #[cfg(feature = "options")]
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
        #[cfg(feature = "options")]
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
        let keys = store.into_keys();
        #[cfg(feature = "options")]
        let keys = {
            let mut keys = keys;
            keys.merge(given);
            keys
        };
        let coordinator = Coordinator::with_keys(&keys);
        let files = Files::new(places, keys);
        Ok(Start::Run(Box::new(Milieu::new(
            self.app,
            coordinator,
            files,
        ))))
    }
}

/// The command line of a program, as an environment specifies it: for help
/// texts and for programs that start in ways of their own.
///
/// # Errors
///
/// Fails where two values claim one option.
#[cfg(feature = "options")]
pub fn options_of<E: Environment>(program: Program) -> Result<Options, DeclarationError> {
    Options::new(program, metadata_of(Description::of::<E>()))
}

#[cfg(feature = "options")]
type Metadata = &'static [(&'static str, &'static str)];

/// What an environment's specification says of each value, by its pattern.
#[cfg(feature = "options")]
fn metadata_of(environment: Description) -> impl Iterator<Item = (&'static str, Metadata)> {
    let values = environment.values().iter();
    values.map(|value| (value.pattern, value.metadata))
}
