//! Descriptions, checked.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use milieu_bench::description::{Language, write};
use milieu_bench::plan::Plan;

use super::{Applications, Outcome, describe, print};

/// Check a description, and say what would run
///
/// With a catalogue, kinds and parameters are checked too: one that no application
/// takes is an error, as is a value that cannot be converted.
#[derive(Args)]
pub(crate) struct Check {
    /// The description, .toml or .xml
    file: PathBuf,
    #[command(flatten)]
    applications: Applications,
    /// Print the description in this language instead
    #[arg(long, value_enum)]
    to: Option<To>,
    /// Print lines of JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum To {
    Toml,
    Xml,
}

impl Check {
    pub(super) fn run(&self) -> Outcome {
        let catalogue = self.applications.catalogue()?;
        let group = describe(&self.file, &catalogue, self.json)?;
        let language = self.to.map(|to| match to {
            To::Toml => Language::Toml,
            To::Xml => Language::Xml,
        });
        if let Some(language) = language {
            print(&write(language, &group))?;
            return Ok(ExitCode::SUCCESS);
        }
        for test in &group.tests {
            let plan = Plan::new(test);
            let applications: usize = test.servers.iter().map(|it| it.applications.len()).sum();
            let line = match self.json {
                true => serde_json::json!({
                    "test": test.name,
                    "points": plan.points(),
                    "steps": plan.steps_max(),
                    "servers": test.servers.len(),
                    "applications": applications,
                })
                .to_string(),
                false => format!(
                    "{}: {} points, {}{} steps; {applications} applications on {} servers",
                    test.name,
                    plan.points(),
                    if plan.searched().is_some() {
                        "at most "
                    } else {
                        ""
                    },
                    plan.steps_max(),
                    test.servers.len()
                ),
            };
            print(&(line + "\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
