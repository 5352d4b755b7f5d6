//! Cases beside flows, rehearsed in virtual time.

use std::path::{Path, PathBuf};

use clap::Args;
use milieu::diagnostics::Source;
use milieu::stream::operators;
use milieu::stream::rehearsal::{Case, cases, rehearse};

use serde_json::json;

use super::{Failure, Result, print};

/// Run cases: events that come in, and what a flow is to make of them
///
/// A case is a title, a flow, an empty line, and lines of what happens; three
/// dashes stand between cases. No time passes but that of the case:
///
///   # heat
///   /weather/temperature | filter value > 90
///
///   1 /weather/temperature 88.0
///   2 /weather/temperature 91.5
///   @2 91.5
///
/// SECOND NAME BODY is an event, @SECOND BODY what the flow publishes, clock
/// SECOND lets time pass.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Test {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print a line of JSON for each case
    #[arg(long)]
    pub(super) json: bool,
    /// Write what the flows publish into the files
    #[arg(long)]
    update: bool,
}

impl Test {
    pub(super) fn run(&self) -> Result {
        let (mut passed, mut failed) = (0, 0);
        for file in &self.files {
            let (right, wrong) = self.test(file)?;
            passed += right;
            failed += wrong;
        }
        if !self.json {
            print(&format!("{passed} passed, {failed} failed\n"))?;
        }
        match failed {
            0 => Ok(()),
            _ => Err(Failure::new(
                format!("{failed} cases failed"),
                "mend the flows, or accept what they do with --update",
            )),
        }
    }

    fn test(&self, file: &Path) -> Result<(u64, u64)> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::new(
                format!("{shown} cannot be read: {error}"),
                "is the path right?",
            )
        })?;
        let source = Source::new(shown.to_string(), text);
        let all = cases(&source).map_err(|found| Failure::Wrong(source.clone(), vec![found]))?;
        let catalogue = operators::catalogue();
        let (mut passed, mut failed) = (0, 0);
        let mut accepted = Vec::new();
        for case in &all {
            let found = rehearse(case, &catalogue).map_err(|wrong| {
                let (source, found) = case.placed(&source, wrong);
                Failure::Wrong(source, found)
            })?;
            let is_right = found == case.lines || self.update;
            match is_right {
                true => passed += 1,
                false => failed += 1,
            }
            if self.json {
                let expected = if self.update { &found } else { &case.lines };
                print(&line(file, case, expected, &found))?;
            } else if !is_right {
                let title = format!("{}: {}\n", file.display(), case.title);
                print(&(title + &case.difference(&found)))?;
            }
            if self.update && found != case.lines {
                accepted.push((case.start..case.start + case.lines.len(), found));
            }
        }
        if !accepted.is_empty() {
            let mut updated = source.text.clone();
            // From the last to the first, so that places stay what they are.
            for (place, found) in accepted.into_iter().rev() {
                updated.replace_range(place, &found);
            }
            std::fs::write(file, updated).map_err(|error| {
                Failure::new(
                    format!("{shown} cannot be written: {error}"),
                    "may you write it?",
                )
            })?;
        }
        Ok((passed, failed))
    }
}

/// A case and what came of it.
fn line(file: &Path, case: &Case, expected: &str, found: &str) -> String {
    let file = file.display().to_string();
    let passed = expected == found;
    let line = json!({"file": file, "case": case.title, "passed": passed, "expected": expected,
        "found": found});
    format!("{line}\n")
}
