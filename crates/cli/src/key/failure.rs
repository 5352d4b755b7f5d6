//! Why a verb ends early, what is said about it, and with which code.

use std::io;
use std::process::ExitCode;

use milieu_diagnostics::{Diagnostic, Source};
use milieu_store::{Schema, StoreError};

use crate::terminal;

/// The exit code when the key is not there, or did not change in time.
pub(super) const NOT_FOUND: u8 = 1;
/// The exit code when the specification does not allow a value.
pub(super) const REFUSED: u8 = 3;
/// The exit code when others have changed the same keys, and nobody has decided.
pub(super) const CONFLICT: u8 = 4;

/// Why a verb ends early.
pub(super) enum Failure {
    /// The diagnostics are to be printed, the code returned.
    Reported {
        source: Source,
        diagnostics: Vec<Diagnostic>,
        code: u8,
    },
    /// Everything is said; the code is to be returned.
    Ended(u8),
    Store(StoreError),
    Output(io::Error),
}

impl Failure {
    /// One thing to say about a place that has no lines to show.
    pub(super) fn new(place: impl Into<String>, diagnostic: Diagnostic, code: u8) -> Failure {
        Failure::Reported {
            source: Source::new(place, ""),
            diagnostics: vec![diagnostic],
            code,
        }
    }

    /// A text that could not be read.
    pub(super) fn unreadable((source, diagnostic): (Source, Diagnostic)) -> Failure {
        Failure::new(source.name, diagnostic, terminal::ERROR)
    }
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

/// Says why a verb failed, if it did. The specification, if there is one, knows
/// what of it must not be shown.
pub(super) fn end(
    result: Result<(), Failure>,
    json: bool,
    schema: impl FnOnce() -> Option<Schema>,
) -> ExitCode {
    let (source, diagnostics, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Output(error)) => return terminal::finish(Err(error)),
        Err(Failure::Ended(code)) => return ExitCode::from(code),
        Err(Failure::Reported {
            source,
            diagnostics,
            code,
        }) => (source, diagnostics, code),
        Err(Failure::Store(error)) => {
            let (source, diagnostics) = shown(&error, schema().as_ref());
            (source, diagnostics, code_of(&error))
        }
    };
    terminal::report(&source, &diagnostics, json);
    ExitCode::from(code)
}

/// What may be shown of an error.
pub(super) fn shown(error: &StoreError, schema: Option<&Schema>) -> (Source, Vec<Diagnostic>) {
    match schema {
        Some(schema) => schema.diagnostics(error),
        None => error.diagnostics(),
    }
}

fn code_of(error: &StoreError) -> u8 {
    match error {
        StoreError::Refused { .. } => REFUSED,
        StoreError::Conflict { .. } => CONFLICT,
        _ => terminal::ERROR,
    }
}
