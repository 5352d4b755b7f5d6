//! INI: the specification itself, in the one form that all tools write.
//!
//! Of use to export one branch, and to bring a file into order.

use milieu_diagnostics::Diagnostic;

use crate::{
    backend::{Backend, Capabilities, File, Settings},
    ir::Environment,
};

/// The back end that exports specifications.
#[derive(Clone, Copy, Debug)]
pub struct Ini;

impl Backend for Ini {
    fn name(&self) -> &'static str {
        "ini"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identifiers: false,
            inside_arrays: true,
        }
    }

    fn generate(
        &self,
        environment: &Environment,
        settings: &Settings,
    ) -> Result<Vec<File>, Vec<Diagnostic>> {
        Ok(vec![File {
            name: format!("{}.ini", settings.program),
            text: environment.specification.to_ini(),
        }])
    }
}
