//! Two results, compared.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use milieu_bench::compare::{Change, Difference, Verdict, compare, differences};

use super::run::shown;
use super::{Outcome, print, results};

/// Say what changed between two results, beyond noise
///
/// All comparisons together raise a false alarm once in twenty times, however many
/// they are. Points need two repetitions at least. What differs in hosts, versions
/// and descriptions is said, too.
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
        let (old, new) = (results(&self.old)?, results(&self.new)?);
        for difference in differences(&old, &new) {
            match self.json {
                true => print(&(serde_json::json!(difference).to_string() + "\n"))?,
                false => eprintln!("{}", shown(&told(&difference))),
            }
        }
        let changes = compare(&old, &new, self.margin);
        let is_shown = |change: &&Change| self.all || change.verdict != Verdict::Same;
        for change in changes.iter().filter(is_shown) {
            let line = match self.json {
                true => serde_json::json!(change).to_string(),
                false => shown(&text(change)),
            };
            print(&(line + "\n"))?;
        }
        let count = |verdict| changes.iter().filter(|it| it.verdict == verdict).count();
        let (gone, added) = (count(Verdict::Gone), count(Verdict::New));
        if !self.json {
            let once = match (gone, added) {
                (0, 0) => String::new(),
                _ => format!("; {added} new, {gone} gone"),
            };
            eprintln!(
                "{} compared: {} larger, {} smaller, {} the same, {} with too few rounds{once}",
                changes.len() - gone - added,
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

fn told(difference: &Difference) -> String {
    let value = |value: &Option<serde_json::Value>| {
        let value = value.as_ref();
        value.map_or("not there".to_owned(), ToString::to_string)
    };
    let (old, new) = (value(&difference.old), value(&difference.new));
    format!("{} differs: {old}, now {new}", difference.differs)
}

fn text(change: &Change) -> String {
    let values: Vec<String> = change
        .variables
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let what = format!("{} [{}] {}", change.test, values.join(", "), change.metric);
    let ratio = match (&change.ratio, change.old, change.new) {
        (Some(ratio), _, _) => {
            let interval = ratio.confidence.map_or(String::new(), |(low, high)| {
                format!(" ({low:.3} to {high:.3})")
            });
            format!(": {:.3} times{interval}", ratio.ratio)
        }
        (None, Some(old), Some(new)) => format!(": {old}, now {new}"),
        _ => String::new(),
    };
    let verdict = match change.verdict {
        Verdict::Smaller => "smaller",
        Verdict::Larger => "larger",
        Verdict::Same => "the same",
        Verdict::Unknown => "too few rounds",
        Verdict::Gone => "gone",
        Verdict::New => "new",
    };
    format!("{what}{ratio}, {verdict}")
}
