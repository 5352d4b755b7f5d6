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
//!
//! What no text says, a program brings along: a format of its own, a recording that
//! lies in memory, the type of its rows.
//!
//! ```
//! use milieu_adapters::catalogue::{self, With};
//!
//! let with = With {
//!     content: Some("time,degrees\n2013-01-01T00:00:00Z,3.5\n".as_bytes().into()),
//!     ..With::default()
//! };
//! let made = catalogue::make_with("replay.csv", &[("pace", "60")], with)?;
//! if let Some(control) = made.control {
//!     control.pause();
//! }
//! # Ok::<(), milieu_adapters::Failure>(())
//! ```

mod given;
mod table;

use std::fmt;
use std::sync::Arc;

use milieu_stream::{Declared, Source};

use crate::failure::Failure;
use crate::format::Format;
use crate::replay::{Control, RowType};
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
    make: fn(&Given<'_>) -> Result<Made, Failure>,
}

/// What a program gives a source beside its parameters.
#[derive(Debug, Default)]
pub struct With {
    /// What texts become, in the place of the parameter `format`: of lines of
    /// programs and serial lines, of what is in files.
    pub format: Option<Format>,
    /// A recording that lies in memory. Its `path` is then only what it is called,
    /// and need not be given.
    pub content: Option<Arc<[u8]>>,
    /// What rows of a recording become, in the place of values with their fields.
    pub rows: Option<RowType>,
}

/// A source that was made.
pub struct Made {
    /// The source.
    pub source: Box<dyn Source>,
    /// What stops a recording and moves within it; other sources have none.
    pub control: Option<Control>,
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
    make_with(name, given, With::default()).map(|made| made.source)
}

/// Makes the source of a name as [`make`] does, with what the program gives it.
///
/// # Errors
/// As [`make`]; and if there is a format for a source that reads no texts, or
/// besides the parameter `format`, a recording for a source that replays none, or a
/// type of rows for one whose events are no rows.
pub fn make_with(name: &str, given: &[(&str, &str)], with: With) -> Result<Made, Failure> {
    let Some(definition) = get(name) else {
        let known: Vec<&str> = all().map(|source| source.name).collect();
        let reason = format!("there is no such source; there are {}", known.join(", "));
        return Err(Failure::new(format_args!("`{name}`"), reason));
    };
    definition.make_with(given, with)
}

impl Definition {
    /// Makes one; see [`make`].
    ///
    /// # Errors
    /// As [`make`].
    pub fn make(&self, given: &[(&str, &str)]) -> Result<Box<dyn Source>, Failure> {
        self.make_with(given, With::default())
            .map(|made| made.source)
    }

    /// Makes one with what the program gives it; see [`make_with`].
    ///
    /// # Errors
    /// As [`make_with`].
    pub fn make_with(&self, given: &[(&str, &str)], with: With) -> Result<Made, Failure> {
        let given = Given::new(self, given, with)?;
        (self.make)(&given)
    }

    /// Whether it reads texts, which become what a format says.
    fn reads_texts(&self) -> bool {
        self.parameters.iter().any(|it| it.name == "format")
    }

    /// Whether it replays a recording, which is stopped and moved within.
    fn is_recording(&self) -> bool {
        self.name.starts_with("replay.")
    }

    /// Whether its events are rows, which may have a type of the program.
    fn has_rows(&self) -> bool {
        self.is_recording() && self.parameters.iter().any(|it| it.name == "time")
    }
}

impl Made {
    /// A source that only goes on.
    fn of(source: impl Source + 'static) -> Made {
        Made {
            source: Box::new(source),
            control: None,
        }
    }
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut made = f.debug_struct("Made");
        made.field("control", &self.control).finish_non_exhaustive()
    }
}
