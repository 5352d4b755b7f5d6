//! The whole compiler: parse → check → lower → back end.
//!
//! Each stage is a type that only the stage before it makes, so the compiler of
//! the host language sees to their order. All of them gather diagnostics; the
//! first stage that finds an error is the last one.

use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::Specification;

use crate::{
    backend::{Backend, Capabilities, File, Settings},
    ir::Environment,
    lower::lower,
};

/// What a run gives: files, unless there were errors, and what there is to say.
#[derive(Debug, Default)]
pub struct Output {
    /// The generated files.
    pub files: Vec<File>,
    /// Errors, warnings and notes, in the order of the stages.
    pub diagnostics: Vec<Diagnostic>,
}

/// Generates the files of one back end. Without errors there is at least one file.
#[must_use]
pub fn generate(source: &Source, backend: &dyn Backend, settings: &Settings) -> Output {
    run(source, backend, settings).unwrap_or_else(|diagnostics| Output {
        files: Vec::new(),
        diagnostics,
    })
}

/// Everything that can be wrong with a specification, whatever the target.
#[must_use]
pub fn check(source: &Source) -> Vec<Diagnostic> {
    let every_target = Capabilities {
        identifiers: true,
        inside_arrays: true,
    };
    match Parsed::new(source).check() {
        Ok(checked) => match checked.lower(every_target, &Settings::new("program")) {
            Ok(lowered) => lowered.diagnostics,
            Err(diagnostics) => diagnostics,
        },
        Err(diagnostics) => diagnostics,
    }
}

fn run(
    source: &Source,
    backend: &dyn Backend,
    settings: &Settings,
) -> Result<Output, Vec<Diagnostic>> {
    Parsed::new(source)
        .check()?
        .lower(backend.capabilities(), settings)?
        .generate(backend, settings)
}

/// A specification whose syntax was read.
struct Parsed<'s> {
    source: &'s Source,
    specification: Specification,
    diagnostics: Vec<Diagnostic>,
}

impl<'s> Parsed<'s> {
    fn new(source: &'s Source) -> Self {
        let (specification, diagnostics) = Specification::parse(source);
        Parsed {
            source,
            specification,
            diagnostics,
        }
    }

    /// Also checks what was read in spite of syntax errors: one run should
    /// show as much as it can.
    fn check(mut self) -> Result<Checked<'s>, Vec<Diagnostic>> {
        self.diagnostics
            .extend(self.specification.check(self.source));
        proceed(Checked(self), |checked| &mut checked.0.diagnostics)
    }
}

/// A specification that is right in itself.
struct Checked<'s>(Parsed<'s>);

impl Checked<'_> {
    fn lower(
        self,
        capabilities: Capabilities,
        settings: &Settings,
    ) -> Result<Lowered, Vec<Diagnostic>> {
        let Parsed {
            source,
            specification,
            mut diagnostics,
        } = self.0;
        let (environment, found) = lower(source, specification, capabilities, settings);
        diagnostics.extend(found);
        let lowered = Lowered {
            environment,
            diagnostics,
        };
        proceed(lowered, |lowered| &mut lowered.diagnostics)
    }
}

/// A specification that the target can express.
struct Lowered {
    environment: Environment,
    diagnostics: Vec<Diagnostic>,
}

impl Lowered {
    fn generate(
        mut self,
        backend: &dyn Backend,
        settings: &Settings,
    ) -> Result<Output, Vec<Diagnostic>> {
        match backend.generate(&self.environment, settings) {
            Ok(files) => Ok(Output {
                files,
                diagnostics: self.diagnostics,
            }),
            Err(found) => {
                self.diagnostics.extend(found);
                Err(self.diagnostics)
            }
        }
    }
}

/// The stage itself, or its diagnostics if one of them is an error.
fn proceed<S>(
    mut stage: S,
    diagnostics: impl Fn(&mut S) -> &mut Vec<Diagnostic>,
) -> Result<S, Vec<Diagnostic>> {
    let found = diagnostics(&mut stage);
    if found.iter().any(Diagnostic::is_error) {
        return Err(std::mem::take(found));
    }
    Ok(stage)
}
