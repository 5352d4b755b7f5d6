//! Why a source sees nothing.

use std::error::Error;
use std::fmt;

/// What is wrong, and where; the reason ends with the way out if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A file, a device, a program, an address.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Failure {
    pub(crate) fn new(place: impl fmt::Display, reason: impl fmt::Display) -> Failure {
        Failure {
            place: place.to_string(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl Error for Failure {}

/// The first characters of a text, so that a strange one fills no page.
pub(crate) fn shortened(text: &str) -> &str {
    let end = text.char_indices().nth(40);
    end.map_or(text, |(end, _)| &text[..end])
}
