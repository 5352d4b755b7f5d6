//! What can be measured on this machine.

use std::process::ExitCode;

use clap::Args;
use milieu_bench::run::Measures;

use super::{Outcome, print};

/// Say what can be counted for single applications on this machine, and why not the rest
///
/// Results say the same of each host.
#[derive(Args)]
pub(crate) struct Doctor {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(&self) -> Outcome {
        let measures = Measures::here();
        print(&match self.json {
            true => format!(
                "{}\n",
                serde_json::json!({ "counts": measures.by, "lacks": measures.lacks })
            ),
            false => shown(&measures),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A line for each figure.
pub(super) fn shown(measures: &Measures) -> String {
    let counted = measures
        .by
        .iter()
        .map(|(figure, by)| format!("{figure}: {by}\n"));
    let lacks = measures
        .lacks
        .iter()
        .map(|(figure, why)| format!("not {figure}: {why}\n"));
    counted.chain(lacks).collect()
}
