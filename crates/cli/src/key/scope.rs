//! Which files a verb is about, and how it writes to them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::{Name, Namespace};
use milieu_store::{
    Author, Change, Commit, HostFiles, Locations, Place, Resolve, Schema, Store, ini,
};

use super::Failure;
use super::failure;
use crate::terminal;

/// Which files are meant, and how results are printed.
#[derive(Args)]
#[command(next_help_heading = "Options of every verb")]
pub(super) struct Scope {
    /// The application whose settings are meant
    #[arg(long, value_name = "NAME", default_value = "milieu")]
    pub(super) app: String,
    /// Only the settings of the user
    #[arg(long)]
    pub(super) user: bool,
    /// Only the settings of the system
    #[arg(long, conflicts_with = "user")]
    pub(super) system: bool,
    /// Only this file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["user", "system", "app"])]
    pub(super) file: Option<PathBuf>,
    /// Check values against this specification, and take its defaults
    ///
    /// Without this option the environment variable MILIEU_SPEC names it.
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Print results as lines of JSON, and errors too
    #[arg(long)]
    pub(super) json: bool,
}

impl Scope {
    /// Says how the verb went.
    pub(super) fn end(&self, result: Result<(), Failure>) -> ExitCode {
        failure::end(result, self.json, || self.schema().ok().flatten())
    }

    /// Opens the files that are meant.
    pub(super) fn open(&self) -> Result<Store, Failure> {
        let schema = self.schema()?;
        let places = match &self.file {
            Some(path) => vec![Place::new(Namespace::User, path.clone())],
            None => {
                let mut places = locations().mounted_places(&self.app)?;
                places.retain(|place| self.has(place.namespace));
                places
            }
        };
        let store = signed(Store::read(places)?);
        Ok(match schema {
            Some(schema) => store.with_schema(schema),
            None => store,
        })
    }

    /// The specification that is given.
    pub(super) fn schema(&self) -> Result<Option<Schema>, Failure> {
        let Some(path) = specification(self.spec.clone()) else {
            return Ok(None);
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Ok(Some(Schema::read(&path)?.with_files(HostFiles { home })))
    }

    /// Whether the files of a namespace are meant.
    pub(super) fn has(&self, namespace: Namespace) -> bool {
        match namespace {
            Namespace::User => !self.system,
            _ => !self.user,
        }
    }

    /// The namespace that is written to.
    pub(super) fn namespace(&self) -> Namespace {
        namespace(self.system)
    }

    /// Writes changes.
    pub(super) fn commit(
        &self,
        store: &mut Store,
        changes: &[Change],
        resolve: impl Resolve,
    ) -> Result<Commit, Failure> {
        let commit = store.commit(self.namespace(), changes, resolve)?;
        self.tell_if_unlogged(&commit);
        Ok(commit)
    }

    /// Says so where the history does not know of a commit.
    pub(super) fn tell_if_unlogged(&self, commit: &Commit) {
        if let Some(why) = &commit.unlogged {
            let warning = Diagnostic::warning("the change is made, but not in the history");
            let place = Source::new("the history", "");
            terminal::report(&place, &[warning.note(why)], self.json);
        }
    }
}

/// The file of the specification: the one that is given, or that of the variable.
pub(super) fn specification(given: Option<PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os("MILIEU_SPEC").map(PathBuf::from);
    // An empty variable is one that is not set.
    given.or_else(|| variable().filter(|path| !path.as_os_str().is_empty()))
}

/// Where this user's and this machine's settings lie.
pub(super) fn locations() -> Locations {
    Locations::from_environment(|name| std::env::var_os(name))
}

/// The store with this process as the author of its commits.
pub(super) fn signed(store: Store) -> Store {
    store.signed(Author::of_this_process(), SystemTime::now)
}

pub(super) fn namespace(system: bool) -> Namespace {
    if system {
        Namespace::System
    } else {
        Namespace::User
    }
}

/// Reads a name from the command line, written as in a file.
pub(super) fn name(text: &str) -> Result<Name, Failure> {
    let refused = |diagnostic| Failure::Reported {
        source: Source::new("the command line", text),
        diagnostics: vec![diagnostic],
        code: terminal::ERROR,
    };
    let decoded = ini::decode_name(text).map_err(|error| {
        refused(
            Diagnostic::error(error.to_string())
                .label(error.span.clone().into(), "here")
                .help(error.help()),
        )
    })?;
    Name::parse(&decoded).map_err(|error| {
        // The place is known where decoding moved nothing.
        let place = if decoded == text {
            error.at..error.end
        } else {
            0..text.len()
        };
        let diagnostic = Diagnostic::error(error.message).label(place.into(), "here");
        refused(if error.help.is_empty() {
            diagnostic
        } else {
            diagnostic.help(error.help)
        })
    })
}

/// Reads the name that may be given; the root where none is.
pub(super) fn prefix(text: Option<&str>) -> Result<Name, Failure> {
    text.map_or_else(|| Ok(Name::root()), name)
}
