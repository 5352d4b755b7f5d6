//! Two results, compared.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use milieu_bench::compare::{Change, Verdict, compare};

use super::{Outcome, print, results};

/// Say what changed between two results, beyond noise
///
/// All comparisons together raise a false alarm once in twenty times, however many
/// they are. Points need two repetitions at least.
#[derive(Args)]
pub(crate) struct Compare {
    /// The result before
    old: PathBuf,
    /// The result after
    new: PathBuf,
    /// Differences below this share do not count
    #[arg(long, default_value_t = 0.01, value_name = "SHARE")]
    margin: f64,
    /// Print what is the same, too
    #[arg(long)]
    all: bool,
    /// Print lines of JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Compare {
    pub(super) fn run(&self) -> Outcome {
        let changes = compare(&results(&self.old)?, &results(&self.new)?, self.margin);
        let shown = |change: &&Change| self.all || change.verdict != Verdict::Same;
        for change in changes.iter().filter(shown) {
            let line = match self.json {
                true => serde_json::json!(change).to_string(),
                false => text(change),
            };
            print(&(line + "\n"))?;
        }
        let count = |verdict| changes.iter().filter(|it| it.verdict == verdict).count();
        if !self.json {
            eprintln!(
                "{} compared: {} larger, {} smaller, {} the same, {} with too few values",
                changes.len(),
                count(Verdict::Larger),
                count(Verdict::Smaller),
                count(Verdict::Same),
                count(Verdict::Unknown)
            );
        }
        let changed = count(Verdict::Larger) + count(Verdict::Smaller);
        Ok(ExitCode::from(u8::from(changed > 0)))
    }
}

fn text(change: &Change) -> String {
    let values: Vec<String> = change
        .variables
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let what = format!("{} [{}] {}", change.test, values.join(", "), change.metric);
    let ratio = change.ratio.as_ref().map_or(String::new(), |ratio| {
        let interval = ratio.confidence.map_or(String::new(), |(low, high)| {
            format!(" ({low:.3} to {high:.3})")
        });
        format!(": {:.3} times{interval}", ratio.ratio)
    });
    let verdict = match change.verdict {
        Verdict::Smaller => "smaller",
        Verdict::Larger => "larger",
        Verdict::Same => "the same",
        Verdict::Unknown => "too few values",
        Verdict::Gone => "gone",
        Verdict::New => "new",
    };
    format!("{what}{ratio}, {verdict}")
}
