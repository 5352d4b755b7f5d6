//! What Rust's test harness prints, counted, and what it says of tests that failed.

use super::Outcome;
use crate::process::{self, tail};

/// Follows what one harness after the other prints.
#[derive(Default)]
pub struct Harness {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    /// Whether the lines are those that a harness has kept of failed tests.
    tells: bool,
}

impl Harness {
    /// Takes the next line of standard output.
    pub fn line(&mut self, line: &str) {
        if let Some((passed, failed)) = process::test_counts(line) {
            self.passed += passed;
            self.failed += failed;
            self.tells = false;
        } else if line == "failures:" {
            // First comes what the tests printed, then their names alone.
            self.tells = !self.tells;
        } else if self.tells {
            self.told(line);
        }
    }

    fn told(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.failures.push(line.to_owned());
        } else if let Some(failure) = self.failures.last_mut() {
            failure.push('\n');
            failure.push_str(line);
        }
    }

    /// How the tests ended. What did not even build has failed too, without a test
    /// that says so; then `shown` is what is known of it.
    pub fn outcome(self, success: bool, shown: &str) -> Outcome {
        let mut failures: Vec<String> = self.failures.iter().map(|it| shortened(it)).collect();
        let untold = !success && self.failed == 0;
        if untold {
            failures.push(shown.trim_end().to_owned());
        }
        Outcome::Tests {
            passed: self.passed,
            failed: self.failed + u64::from(untold),
            failures,
        }
    }
}

/// The name of a test and the last lines of what it said.
fn shortened(failure: &str) -> String {
    let (name, said) = failure.split_once('\n').unwrap_or((failure, ""));
    format!("{name}\n{}", tail(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &[&str], success: bool) -> Outcome {
        let mut harness = Harness::default();
        for line in lines {
            harness.line(line);
        }
        harness.outcome(success, "cargo test: exit status: 101")
    }

    #[test]
    fn tests_are_counted_from_what_the_harness_prints() {
        let line = "test result: ok. 31 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.01s";
        assert_eq!(process::test_counts(line), Some((31, 0)));
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(process::test_counts(line), Some((3, 2)));
        assert_eq!(process::test_counts("running 3 tests"), None);
    }

    #[test]
    fn the_counts_of_several_harnesses_add_up() {
        let lines = [
            "running 2 tests",
            "test result: ok. 2 passed; 0 failed; 0 ignored",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
        ];
        assert_eq!(outcome(&lines, true), Outcome::counted(3, 0));
    }

    #[test]
    fn what_a_failed_test_said_is_kept_with_its_name() {
        let lines = [
            "test late ... FAILED",
            "",
            "failures:",
            "",
            "---- late stdout ----",
            "thread 'late' panicked at tests/clock.rs:7:5:",
            "too late",
            "",
            "---- never stdout ----",
            "",
            "failures:",
            "    late",
            "    never",
            "",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored",
            "running 1 test",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
        ];
        let said = "---- late stdout ----\nthread 'late' panicked at tests/clock.rs:7:5:\ntoo late";
        assert_eq!(
            outcome(&lines, false),
            Outcome::Tests {
                passed: 2,
                failed: 2,
                failures: vec![said.to_owned(), "---- never stdout ----\n".to_owned()],
            }
        );
    }

    #[test]
    fn what_ends_without_a_result_has_failed() {
        let Outcome::Tests {
            failed, failures, ..
        } = outcome(&["running 2 tests"], false)
        else {
            panic!("tests were run");
        };
        assert_eq!(failed, 1);
        assert_eq!(failures, ["cargo test: exit status: 101"]);
    }

    #[test]
    fn long_outputs_keep_their_end() {
        let lines: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let tail = tail(&lines.join("\n"));
        assert!(tail.starts_with("60\n") && tail.ends_with("\n99"), "{tail}");
    }
}
