//! The process between the harness and an application.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use milieu_bench::run::minder;

use super::{Failure, Outcome};

/// Run a command, leave nothing of it running, and write what it used
#[derive(Args)]
pub(crate) struct Mind {
    /// A control group that is made for it
    #[arg(long, value_name = "PATH")]
    group: Vec<PathBuf>,
    /// Where the report goes
    report: PathBuf,
    /// The program
    program: String,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Mind {
    pub(super) fn run(&self) -> Outcome {
        minder::mind(&self.program, &self.arguments, &self.report, &self.group)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| {
                let report = self.report.display();
                let message = format!("the report {report} cannot be written: {error}");
                Failure::new(
                    message,
                    "this is for `milieu bench run`, which gives a path",
                )
            })
    }
}
