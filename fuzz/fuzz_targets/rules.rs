//! Types and checks made of whatever metadata, and values checked by them.
//!
//! The lines of the first text are metadata, `key=value`; those of the second
//! are values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::texts;
use milieu_keys::Rules;

fuzz_target!(|input: &str| {
    let [metadata, values] = texts(input);
    let metadata: Vec<(&str, &str)> = metadata
        .lines()
        .map(|line| line.split_once('=').unwrap_or((line, "")))
        .collect();
    let rules = match Rules::from_metadata(&metadata) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    if let Some(default) = rules.default() {
        assert!(
            rules.check(default).is_ok(),
            "the default {default:?} breaks a rule"
        );
    }
    for value in values.lines() {
        match rules.check(value) {
            Ok(_) => settled(&rules, value),
            Err(violation) => assert_eq!(violation.to_string().lines().count(), 1),
        }
    }
});

/// The canonical text of a value is accepted, means the same, and is its own.
fn settled(rules: &Rules, value: &str) {
    let canonical = rules.canonical(value).expect("the value was accepted");
    let again = rules
        .canonical(&canonical)
        .expect("its canonical text is accepted");
    assert_eq!(canonical, again);
}
