//! `milieu key`: reads and writes the settings of an application.

mod json;
mod show;
mod suggest;
mod verbs;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::{Name, Namespace};
use milieu_store::{HostFiles, Locations, Place, Schema, Store, StoreError, ini};

use crate::terminal;

/// The exit code when the key is not there.
const NOT_FOUND: u8 = 1;
/// The exit code when the specification does not allow a value.
const REFUSED: u8 = 3;

/// Read and write the settings of an application
///
/// Settings are keys such as /sw/pi/anna/language, kept in INI files: those of
/// the user in ~/.config/APP/APP.ini, which win, and those of the system in
/// /etc/xdg/APP/APP.ini and /etc/APP.ini. The variables XDG_CONFIG_HOME and
/// XDG_CONFIG_DIRS move them.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Exit codes:
  0  done
  1  the key is not there
  2  an error, or wrong usage
  3  the specification does not allow a value"
)]
pub(crate) struct Key {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Get(Get),
    Set(Set),
    Rm(Rm),
    Ls(Ls),
    Explain(Explain),
}

/// Print the value of a key
///
/// The value that is printed is the one that the application gets: the first
/// of those of the user, of the system, and of the specification.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key get --app weather-station /sw/pi/anna/language
  milieu key get --file station.ini /sw/pi/anna/language
  milieu key get --system --json /sw/pi/%/language")]
struct Get {
    /// The key, for example /sw/pi/anna/language
    name: String,
    #[command(flatten)]
    scope: Scope,
}

/// Give a key a value
///
/// Only the line of the key changes; comments, order and everything that
/// others write at the same time stay. A value that begins with a dash goes
/// behind `--`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key set --app weather-station /sw/pi/anna/language de
  milieu key set --file station.ini --spec station.spec.ini /sw/pi/port 8080
  milieu key set --app weather-station -v /sw/pi/anna/motto -- '--help'")]
struct Set {
    /// The key, for example /sw/pi/anna/language
    name: String,
    /// Its value
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// Print what was replaced
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Remove keys
///
/// Either all are removed or none. What the system or the specification says
/// comes into force where the user's key is gone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key rm --app weather-station /sw/pi/anna/language
  milieu key rm --app weather-station --recursive /sw/pi/anna")]
struct Rm {
    /// The keys, for example /sw/pi/anna/language
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Remove what is below the keys as well
    #[arg(short, long)]
    recursive: bool,
    /// Print what was removed
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    scope: Scope,
}

/// List the names of keys
///
/// One name a line, written as in a file: control characters are escaped.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu key ls --app weather-station
  milieu key ls --app weather-station --long /sw/pi
  milieu key ls --app weather-station --json | jq -r .value")]
struct Ls {
    /// List this key and those below it only
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,
    /// Show namespace, value and origin as well
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    scope: Scope,
}

/// Show why a key has its value
///
/// Every place that could give it one is listed in the order in which they are
/// asked, with its file and line; the first that has a value wins.
#[derive(Args)]
#[command(after_help = "\
Example:
  milieu key explain --app weather-station /sw/pi/anna/language")]
struct Explain {
    /// The key, for example /sw/pi/anna/language
    name: String,
    #[command(flatten)]
    scope: Scope,
}

/// Which files are meant, and how results are printed.
#[derive(Args)]
struct Scope {
    /// The application whose settings are meant
    #[arg(long, value_name = "NAME", default_value = "milieu")]
    app: String,
    /// Only the settings of the user
    #[arg(long)]
    user: bool,
    /// Only the settings of the system
    #[arg(long, conflicts_with = "user")]
    system: bool,
    /// Only this file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["user", "system", "app"])]
    file: Option<PathBuf>,
    /// Check values against this specification, and take its defaults
    ///
    /// Without this option the environment variable MILIEU_SPEC names it.
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Print results as lines of JSON, and errors too
    #[arg(long)]
    json: bool,
}

/// Why a verb ends early.
enum Failure {
    /// The diagnostics are to be printed, the code returned.
    Reported {
        source: Source,
        diagnostics: Vec<Diagnostic>,
        code: u8,
    },
    Store(StoreError),
    Output(io::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl Key {
    pub(crate) fn run(&self) -> ExitCode {
        let (scope, result) = match &self.verb {
            Verb::Get(get) => (&get.scope, get.run()),
            Verb::Set(set) => (&set.scope, set.run()),
            Verb::Rm(rm) => (&rm.scope, rm.run()),
            Verb::Ls(ls) => (&ls.scope, ls.run()),
            Verb::Explain(explain) => (&explain.scope, explain.run()),
        };
        let (source, diagnostics, code) = match result {
            Ok(()) => return ExitCode::SUCCESS,
            Err(Failure::Output(error)) => return terminal::finish(Err(error)),
            Err(Failure::Reported {
                source,
                diagnostics,
                code,
            }) => (source, diagnostics, code),
            Err(Failure::Store(error)) => {
                let code = if matches!(error, StoreError::Refused { .. }) {
                    REFUSED
                } else {
                    terminal::ERROR
                };
                let (source, diagnostics) = error.diagnostics();
                (source, diagnostics, code)
            }
        };
        terminal::report(&source, &diagnostics, scope.json);
        ExitCode::from(code)
    }
}

impl Scope {
    /// Opens the files that are meant.
    fn open(&self) -> Result<Store, Failure> {
        let places = match &self.file {
            Some(path) => vec![Place {
                namespace: Namespace::User,
                path: path.clone(),
            }],
            None => {
                let locations = Locations::from_environment(|name| std::env::var_os(name));
                let mut places = locations.places(&self.app)?;
                places.retain(|place| match place.namespace {
                    Namespace::User => !self.system,
                    _ => !self.user,
                });
                places
            }
        };
        let store = Store::read(places)?;
        Ok(match self.schema()? {
            Some(schema) => store.with_schema(schema),
            None => store,
        })
    }

    fn schema(&self) -> Result<Option<Schema>, Failure> {
        // An empty variable is one that is not set.
        let variable = || {
            std::env::var_os("MILIEU_SPEC")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let Some(path) = self.spec.clone().or_else(variable) else {
            return Ok(None);
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Ok(Some(Schema::read(&path)?.with_files(HostFiles { home })))
    }

    /// The namespace that is written to.
    fn namespace(&self) -> Namespace {
        if self.system {
            Namespace::System
        } else {
            Namespace::User
        }
    }
}

/// Reads a name from the command line, written as in a file.
fn name(text: &str) -> Result<Name, Failure> {
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
