//! Everything that can go wrong between a program and its surroundings.

use std::fmt;

use milieu_context::{Invalid, KeyError, OpenError, SwitchError, UnknownLayer};
use milieu_keys::NameError;
#[cfg(feature = "options")]
use milieu_keys::OptionError;
#[cfg(feature = "store")]
use milieu_keys::options::DeclarationError;
#[cfg(feature = "store")]
use milieu_store::StoreError;

use crate::required::Missing;

/// What went wrong. The text names place and remedy.
///
/// `Debug` prints the same text as `Display`, so that a program whose `main`
/// returns the error shows it as a person should read it.
#[non_exhaustive]
pub enum Error {
    /// The files, reading or writing them.
    #[cfg(feature = "store")]
    Store(StoreError),
    /// The command line, or an environment variable.
    #[cfg(feature = "options")]
    Options(OptionError),
    /// The metadata of the environment.
    #[cfg(feature = "store")]
    Rules(DeclarationError),
    /// The environment and the keys do not fit.
    Open(Box<OpenError>),
    /// Nobody gives a value to keys that somebody has to give one (`require`).
    Missing(Vec<Missing>),
    /// A layer was not switched.
    Switch(SwitchError),
    /// A layer that somebody named is not known.
    Layer(UnknownLayer),
    /// A value was refused.
    Invalid(Box<Invalid>),
    /// A key was refused.
    Key(Box<KeyError>),
    /// A name is not one.
    Name(NameError),
    /// A flow cannot be run; the text shows where it is wrong.
    #[cfg(feature = "stream")]
    Flow(String),
    /// Something cannot be published or put at a name.
    #[cfg(feature = "stream")]
    Naming(String),
    /// What streams remember could not be taken from this file.
    #[cfg(feature = "stream")]
    Snapshot(std::path::PathBuf, milieu_stream::CannotRestore),
    /// The system has no thread or descriptor left.
    #[cfg(any(feature = "stream", feature = "threads"))]
    System(std::io::Error),
    /// A role, a priority or a size of a stack is none.
    #[cfg(feature = "threads")]
    Attributes(crate::threads::Invalid),
    /// Threads cannot be served in the way that was asked for.
    #[cfg(feature = "threads")]
    Mediator(crate::threads::StartError),
    /// No value of an environment says what threads of a role are for.
    #[cfg(feature = "threads")]
    Role(crate::threads::NoValues),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "store")]
            Error::Store(error) => error.fmt(f),
            #[cfg(feature = "options")]
            Error::Options(error) => error.fmt(f),
            #[cfg(feature = "store")]
            Error::Rules(error) => error.fmt(f),
            Error::Open(error) => error.fmt(f),
            Error::Missing(all) => {
                for (i, missing) in all.iter().enumerate() {
                    if i > 0 {
                        writeln!(f)?;
                    }
                    missing.fmt(f)?;
                }
                Ok(())
            }
            Error::Switch(error) => error.fmt(f),
            Error::Layer(error) => error.fmt(f),
            Error::Invalid(error) => error.fmt(f),
            Error::Key(error) => error.fmt(f),
            Error::Name(error) => error.fmt(f),
            #[cfg(feature = "stream")]
            Error::Flow(text) | Error::Naming(text) => f.write_str(text),
            #[cfg(feature = "stream")]
            Error::Snapshot(path, cause) => write!(f, "{}: {cause}", path.display()),
            #[cfg(any(feature = "stream", feature = "threads"))]
            Error::System(error) => error.fmt(f),
            #[cfg(feature = "threads")]
            Error::Attributes(error) => error.fmt(f),
            #[cfg(feature = "threads")]
            Error::Mediator(error) => error.fmt(f),
            #[cfg(feature = "threads")]
            Error::Role(error) => error.fmt(f),
        }
    }
}

/// As `Display`. A text of several lines begins on a line of its own, since
/// `main` has printed `Error: ` before it.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        if text.contains('\n') {
            f.write_str("\n")?;
        }
        f.write_str(&text)
    }
}

impl std::error::Error for Error {}

macro_rules! from {
    ($($(#[$gate:meta])? $variant:ident($error:ty)),* $(,)?) => {$(
        $(#[$gate])?
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error.into())
            }
        }
    )*};
}
from! {
    #[cfg(feature = "store")]
    Store(StoreError),
    #[cfg(feature = "options")]
    Options(OptionError),
    #[cfg(feature = "store")]
    Rules(DeclarationError),
    Open(OpenError),
    Switch(SwitchError),
    Layer(UnknownLayer),
    Invalid(Invalid),
    Key(KeyError),
    Name(NameError),
    #[cfg(feature = "threads")]
    Attributes(crate::threads::Invalid),
    #[cfg(feature = "threads")]
    Mediator(crate::threads::StartError),
    #[cfg(feature = "threads")]
    Role(crate::threads::NoValues),
}

/// Of a whole set of keys, those that were refused.
impl From<Vec<Invalid>> for Error {
    fn from(invalid: Vec<Invalid>) -> Self {
        OpenError::Invalid(invalid).into()
    }
}
