//! Blanks that nobody sees and that every later change would touch.

use super::{Finding, Repository};

/// Files whose blanks are what they are about.
const FREE: &[&str] = &["fuzz/seeds/", "fuzz/dictionaries/"];

/// Formats that come from elsewhere, or have blanks of their own.
const FREE_ENDINGS: &[&str] = &[".csv", ".svg", ".lock", ".stderr"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        let is_fixture = file.path.contains("/tests/") && !file.path.ends_with(".rs");
        if is_fixture
            || FREE.iter().any(|folder| file.path.starts_with(folder))
            || FREE_ENDINGS
                .iter()
                .any(|ending| file.path.ends_with(ending))
        {
            continue;
        }
        for (number, line) in (1..).zip(file.text.split('\n')) {
            if line.contains('\t') {
                findings.push(file.finding(number, "a tab; write blanks, or `\\t` in a string"));
            }
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(file.finding(number, "blanks at the end of the line"));
            }
        }
        let ends_well = file.text.ends_with('\n') && !file.text.ends_with("\n\n");
        if !file.text.is_empty() && !ends_well {
            findings.push(file.finding(0, "a file ends with one line break"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    #[test]
    fn tabs_and_blanks_at_the_end_are_found() {
        for (text, place) in [
            ("a\n\tb\n", "a.md:2: a tab"),
            ("a \n", "a.md:1: blanks"),
            ("a\r\nb\n", "a.md:1: blanks"),
            ("a", "a.md: a file ends"),
            ("a\n\n", "a.md: a file ends"),
        ] {
            let found = check(&repository(&[("a.md", text)]));
            assert_eq!(found.len(), 1, "{text:?}");
            assert!(shown(&found).starts_with(place), "{found:?}");
        }
    }

    #[test]
    fn fixtures_keep_their_blanks() {
        let text = "key =\tvalue \n";
        assert_eq!(
            check(&repository(&[
                ("fuzz/seeds/ini/tabs", text),
                ("crates/store/tests/files/tabs.ini", text),
                ("a.md", "a\n"),
                ("empty", ""),
            ])),
            []
        );
        assert_eq!(
            check(&repository(&[("crates/store/tests/a.rs", text)])).len(),
            2
        );
    }
}
