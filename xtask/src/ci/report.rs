//! What `cargo xtask ci` says of the steps that have ended.

use super::{Ended, Outcome};
use crate::table::{self, Align};

/// How many tests and steps failed.
pub fn failed(ended: &[Ended]) -> u64 {
    counts(ended).1
}

/// One step in one line.
pub fn line(step: &Ended) -> String {
    format!(
        "{}: {}, {:.1} s",
        step.name,
        verdict(&step.outcome),
        step.took.as_secs_f64()
    )
}

/// A table of the steps, what failed and how to repeat it, and the counts.
pub fn summary(ended: &[Ended]) -> String {
    let rows: Vec<Vec<String>> = ended
        .iter()
        .map(|step| {
            let seconds = format!("{:.1}", step.took.as_secs_f64());
            vec![step.name.to_owned(), seconds, verdict(&step.outcome)]
        })
        .collect();
    let columns = [
        ("step", Align::Left),
        ("seconds", Align::Right),
        ("", Align::Left),
    ];
    let mut text = table::render(&columns, &rows);
    for step in ended {
        match &step.outcome {
            Outcome::NotRun { remedy, .. } => {
                text.push_str(&format!("{} is run after: {remedy}\n", step.name));
            }
            Outcome::Tests { failed: 0, .. } => {}
            Outcome::Tests { failures, .. } => {
                text.push_str(&format!(
                    "{} failed; repeat it alone with: cargo xtask ci --only {}\n",
                    step.name, step.name
                ));
                for line in failures.iter().flat_map(|failure| failure.lines()) {
                    text.push_str(format!("  {line}").trim_end());
                    text.push('\n');
                }
            }
        }
    }
    let (passed, failed) = counts(ended);
    text.push_str(&format!("{passed} passed, {failed} failed"));
    text
}

fn verdict(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Tests {
            passed, failed: 0, ..
        } => format!("{passed} passed"),
        Outcome::Tests { passed, failed, .. } => format!("{passed} passed, {failed} FAILED"),
        Outcome::NotRun { lacks, .. } => format!("not run: {lacks}"),
    }
}

fn counts(ended: &[Ended]) -> (u64, u64) {
    ended.iter().fold((0, 0), |(all_passed, all_failed), step| {
        match step.outcome {
            Outcome::Tests { passed, failed, .. } => (all_passed + passed, all_failed + failed),
            Outcome::NotRun { .. } => (all_passed, all_failed),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ended(name: &'static str, outcome: Outcome) -> Ended {
        Ended {
            name,
            outcome,
            took: Duration::from_millis(1500),
        }
    }

    #[test]
    fn the_summary_says_how_to_go_on_and_ends_with_the_counts() {
        let steps = [
            ended("format", Outcome::of(true)),
            ended(
                "test",
                Outcome::Tests {
                    passed: 40,
                    failed: 2,
                    failures: vec!["---- one ----\n\nno".into(), "two".into()],
                },
            ),
            ended(
                "miri",
                Outcome::NotRun {
                    lacks: "there is no nightly toolchain".into(),
                    remedy: "rustup toolchain install nightly".into(),
                },
            ),
        ];
        assert_eq!(
            summary(&steps),
            "step    seconds\n\
             format      1.5  1 passed\n\
             test        1.5  40 passed, 2 FAILED\n\
             miri        1.5  not run: there is no nightly toolchain\n\
             test failed; repeat it alone with: cargo xtask ci --only test\n\
             \x20 ---- one ----\n\
             \n\
             \x20 no\n\
             \x20 two\n\
             miri is run after: rustup toolchain install nightly\n\
             41 passed, 2 failed"
        );
        assert_eq!(failed(&steps), 2);
    }
}
