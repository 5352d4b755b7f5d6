//! Sources by name, as files and the command line have them.
//!
//! ```
//! use milieu_adapters::catalogue;
//!
//! let load = catalogue::make("machine.load", &[("every", "10s")])?;
//! for source in catalogue::all() {
//!     let line = format!("{}: {}", source.name, source.summary);
//! }
//! # Ok::<(), milieu_adapters::Failure>(())
//! ```

mod given;
mod table;

use milieu_stream::{Declared, Source};

use crate::failure::Failure;
use given::Given;

/// A source that has a name: what it takes and what it publishes.
pub struct Definition {
    /// Its name: `machine.load`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The types of its events.
    pub events: &'static str,
    /// What the process needs besides an ordinary user's rights; nothing where
    /// that suffices.
    pub needs: &'static str,
    /// What it is told. A parameter whose default is empty may be left out.
    pub parameters: &'static [Declared],
    make: fn(&Given<'_>) -> Result<Box<dyn Source>, Failure>,
}

/// All sources: those of the machine, and then the others by name.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    table::MACHINE.iter().chain(table::OTHERS)
}

/// The source of a name.
#[must_use]
pub fn get(name: &str) -> Option<&'static Definition> {
    all().find(|source| source.name == name)
}

/// Makes the source of a name, with parameters as texts: spans are `250ms`,
/// `1.5s`, `1h30m`; flags `true` and `false`; lists have commas.
///
/// # Errors
/// If there is no such source or parameter, a parameter is missing, or is not
/// what it should be.
pub fn make(name: &str, given: &[(&str, &str)]) -> Result<Box<dyn Source>, Failure> {
    let Some(definition) = get(name) else {
        let known: Vec<&str> = all().map(|source| source.name).collect();
        let reason = format!("there is no such source; there are {}", known.join(", "));
        return Err(Failure::new(format_args!("`{name}`"), reason));
    };
    definition.make(given)
}

impl Definition {
    /// Makes one; see [`make`].
    ///
    /// # Errors
    /// As [`make`].
    pub fn make(&self, given: &[(&str, &str)]) -> Result<Box<dyn Source>, Failure> {
        let given = Given::new(self, given)?;
        (self.make)(&given)
    }
}
