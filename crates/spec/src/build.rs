//! For build scripts: from a specification to a file in `OUT_DIR`.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), milieu_spec::build::BuildError> {
//!     milieu_spec::build::Builder::new("weather.ini").generate()
//! }
//! ```
//!
//! The program then includes what was generated:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/weather.rs"));
//! ```
//!
//! This module is the one place of the crate with effects: it reads the
//! specification, writes the output and prints directives for Cargo.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use milieu_diagnostics::{Diagnostic, Severity, Source, render};

use crate::{
    backend::{Backend, Settings, rust::Rust},
    pipeline,
};

/// One specification to compile while Cargo builds.
#[derive(Clone, Debug)]
pub struct Builder {
    specification: PathBuf,
    settings: Settings,
    out_dir: Option<PathBuf>,
}

impl Builder {
    /// Compiles the file at `specification`, relative to the package.
    #[must_use]
    pub fn new(specification: impl Into<PathBuf>) -> Self {
        let specification = specification.into();
        let program = specification
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Builder {
            specification,
            settings: Settings::new(program),
            out_dir: None,
        }
    }

    /// Generates only this branch, as the environment: `/sw/pi`.
    #[must_use]
    pub fn root(mut self, root: impl Into<String>) -> Self {
        self.settings.root = Some(root.into());
        self
    }

    /// Where the generated code finds the facade; `::milieu` unless said otherwise.
    #[must_use]
    pub fn crate_path(mut self, path: impl Into<String>) -> Self {
        self.settings.crate_path = path.into();
        self
    }

    /// The folder to write to; `OUT_DIR` unless said otherwise.
    #[must_use]
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Writes `<name of the specification>.rs`, and has Cargo repeat this when
    /// the specification changes.
    ///
    /// # Errors
    ///
    /// The specification cannot be read or has errors, or the output cannot be
    /// written. The error's text points into the specification.
    pub fn generate(&self) -> Result<(), BuildError> {
        self.generate_with(&Rust)
    }

    /// As [`generate`](Self::generate), by another back end.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn generate_with(&self, backend: &dyn Backend) -> Result<(), BuildError> {
        let path = &self.specification;
        println!("cargo:rerun-if-changed={}", path.display());
        let text =
            fs::read_to_string(path).map_err(|error| BuildError::file("read", path, &error))?;
        let source = Source {
            name: path.display().to_string(),
            text,
        };
        let output = pipeline::generate(&source, backend, &self.settings);
        let (errors, others): (Vec<_>, Vec<_>) = output
            .diagnostics
            .into_iter()
            .partition(|found| found.severity == Severity::Error);
        warn(&source, &others);
        if !errors.is_empty() {
            return Err(BuildError(render(&source, &errors, false)));
        }
        let folder = match &self.out_dir {
            Some(folder) => folder.clone(),
            None => std::env::var_os("OUT_DIR")
                .map(PathBuf::from)
                .ok_or_else(|| {
                    BuildError(
                        "OUT_DIR is not set: call this from a build script, or say out_dir".into(),
                    )
                })?,
        };
        for file in &output.files {
            let path = folder.join(&file.name);
            write_if_changed(&path, &file.text)
                .map_err(|error| BuildError::file("write", &path, &error))?;
        }
        Ok(())
    }
}

/// Warnings go where Cargo shows them; a directive is one line.
fn warn(source: &Source, diagnostics: &[Diagnostic]) {
    if diagnostics.is_empty() {
        return;
    }
    for line in render(source, diagnostics, false).lines() {
        println!("cargo:warning={line}");
    }
}

/// An output that stays the same keeps its time, so that nothing is recompiled.
fn write_if_changed(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text)
}

/// Why a build script cannot go on.
///
/// `Debug` prints the same text as `Display`: a build script that returns the
/// error from `main` shows it readably.
pub struct BuildError(String);

impl BuildError {
    fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        let hint = if error.kind() == io::ErrorKind::NotFound {
            "; paths are relative to the folder of Cargo.toml"
        } else {
            ""
        };
        BuildError(format!("cannot {what} `{}`: {error}{hint}", path.display()))
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for BuildError {}
