//! Back ends: each turns one checked environment into files.
//!
//! A back end reads the [intermediate representation](crate::ir), returns text
//! and diagnostics, and writes nothing itself. What its target cannot express
//! stands in its [`Capabilities`], so that lowering says so at the place in the
//! specification, instead of the target's compiler at a place in its output.

pub mod c;
pub mod cpp;
pub mod ini;
pub mod man;
pub mod markdown;
pub mod rust;

use milieu_diagnostics::Diagnostic;

use crate::ir::Environment;

/// A generator for one target.
pub trait Backend {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// What the target can express.
    fn capabilities(&self) -> Capabilities;

    /// The files for this environment, or why there are none.
    fn generate(
        &self,
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Vec<File>, Vec<Diagnostic>>;
}

/// All back ends, in the order in which help lists them.
#[must_use]
pub fn all() -> [&'static dyn Backend; 6] {
    [
        &rust::Rust,
        &cpp::Cpp,
        &c::C,
        &markdown::Markdown,
        &man::Man,
        &ini::Ini,
    ]
}

/// The back end that the command line calls `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Backend> {
    all().into_iter().find(|backend| backend.name() == name)
}

/// What a target can express. Lowering reports what it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The target names values by identifiers, which must not collide.
    pub identifiers: bool,
    /// The target has a place for the several values of an array's elements.
    pub inside_arrays: bool,
}

/// What the caller may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The program that the specification describes, as its user calls it.
    pub program: String,
    /// The branch to generate as the whole environment; everything, if absent.
    pub root: Option<String>,
    /// Where generated Rust finds the facade.
    pub crate_path: String,
}

impl Settings {
    /// Everything, for a program of this name.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        Settings {
            program: program.into(),
            root: None,
            crate_path: "::milieu".to_owned(),
        }
    }
}

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its usual name, without folders: `weather-station.5`.
    pub name: String,
    /// Its content.
    pub text: String,
}
