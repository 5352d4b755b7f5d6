//! How a source file opens, and how long it may become.

use super::{Finding, Repository};

/// Longer files are looked at twice.
const LINES_MAX: usize = 800;

/// Files that may be longer, and why each is one thing.
const LONGER: &[(&str, &str)] = &[(
    "crates/keys/tests/rules.rs",
    "a table: for each type and metadata key a value that is accepted and one that is refused",
)];

/// Every module says what it is and which properties it keeps.
pub fn openings(repository: &Repository) -> Vec<Finding> {
    repository
        .files_ending(&[".rs"])
        .filter(|file| is_source(&file.path) && !file.text.starts_with("//! "))
        .map(|file| {
            file.finding(
                1,
                "open with `//!`: what this is and the properties it keeps",
            )
        })
        .collect()
}

pub fn lengths(repository: &Repository) -> Vec<Finding> {
    lengths_but(repository, LONGER)
}

fn lengths_but(repository: &Repository, longer: &[(&str, &str)]) -> Vec<Finding> {
    let sources = [".rs", ".c", ".h", ".cpp", ".hpp", ".js", ".css", ".html"];
    let mut findings: Vec<Finding> = repository
        .files_ending(&sources)
        .filter(|file| !longer.iter().any(|(path, _)| *path == file.path))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(file, lines)| {
            let message = format!(
                "{lines} lines; divide it, or give the reason why it is one thing in \
                 xtask/src/tidy/modules.rs"
            );
            file.finding(0, message)
        })
        .collect();
    for (path, _) in longer {
        let is_long = repository
            .files
            .iter()
            .any(|file| file.path == *path && file.text.lines().count() > LINES_MAX);
        if !is_long {
            findings.push(Finding {
                path: (*path).to_owned(),
                line: 0,
                message: format!(
                    "is listed as longer than {LINES_MAX} lines in xtask/src/tidy/modules.rs and is not"
                ),
            });
        }
    }
    findings
}

/// Sources of packages, as against their tests, fixtures and generated code.
fn is_source(path: &str) -> bool {
    if path.ends_with("/tests.rs") {
        return false;
    }
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates" | "examples") => parts.nth(1) == Some("src"),
        Some("experiments") => path.contains("/src/"),
        Some("xtask") => parts.next() == Some("src"),
        Some("fuzz") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    #[test]
    fn a_module_that_does_not_say_what_it_is_is_found() {
        let found = openings(&repository(&[
            ("crates/keys/src/lib.rs", "//! Keys.\n"),
            ("crates/keys/src/name.rs", "use std::fmt;\n"),
            ("examples/hello/src/main.rs", "fn main() {}\n"),
            ("crates/spec/tests/golden/a.rs", "pub struct A;\n"),
            ("crates/keys/src/name/tests.rs", "use super::Name;\n"),
            ("fuzz/fuzz_targets/name.rs", "#![no_main]\n"),
        ]));
        let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "crates/keys/src/name.rs",
                "examples/hello/src/main.rs",
                "fuzz/fuzz_targets/name.rs"
            ]
        );
    }

    #[test]
    fn a_long_file_needs_a_reason_and_a_reason_a_long_file() {
        let long = "//! A.\n".repeat(LINES_MAX + 1);
        let repository = repository(&[
            ("crates/keys/src/lib.rs", &long),
            ("crates/keys/src/name.rs", "//! Names.\n"),
            ("crates/keys/README.md", &long),
        ]);
        let found = lengths_but(&repository, &[]);
        assert!(shown(&found).starts_with("crates/keys/src/lib.rs: 801 lines"));
        assert_eq!(found.len(), 1);
        let reason = "a table";
        assert_eq!(
            lengths_but(&repository, &[("crates/keys/src/lib.rs", reason)]),
            []
        );
        let stale = [
            ("crates/keys/src/lib.rs", reason),
            ("crates/keys/src/name.rs", reason),
        ];
        let found = lengths_but(&repository, &stale);
        assert!(shown(&found).contains("name.rs: is listed"), "{found:?}");
    }
}
