//! Nothing unfinished and nothing switched off stays in the repository.

use super::{Finding, Repository};

/// Words that no Rust source has; split here, so that this file has none.
const IN_RUST: &[(&str, &str)] = &[
    (concat!("to", "do!"), "write it, or leave it out"),
    (concat!("unimple", "mented!"), "write it, or leave it out"),
    (concat!("#[ig", "nore"), "mend the test, or strike it"),
    (concat!("assert!(", "true"), "a test must be able to fail"),
];

/// Words that no text has.
const ANYWHERE: &[(&str, &str)] = &[
    (concat!("FIX", "ME"), "mend it"),
    (concat!("XX", "X"), "mend it"),
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        if file.path.starts_with("fuzz/seeds/") || file.path.ends_with(".lock") {
            continue;
        }
        let in_rust = IN_RUST.iter().filter(|_| file.path.ends_with(".rs"));
        let words: Vec<_> = ANYWHERE.iter().chain(in_rust).collect();
        for (number, line) in file.lines() {
            for (word, remedy) in words.iter().filter(|(word, _)| has(line, word)) {
                findings.push(file.finding(number, format!("`{word}`: {remedy}")));
            }
        }
    }
    findings
}

/// Whether the line has the word, not as the end or the start of a longer one.
fn has(line: &str, word: &str) -> bool {
    let continues = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let ends_in_letter = word.ends_with(char::is_alphanumeric);
        !(continues(before) || ends_in_letter && continues(after))
    })
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    #[test]
    fn every_word_is_found_where_it_must_not_be() {
        for (word, _) in IN_RUST.iter().chain(ANYWHERE) {
            let text = format!("//! A.\n    {word} b\n");
            let found = check(&repository(&[("crates/keys/src/lib.rs", &text)]));
            assert_eq!(found.len(), 1, "{word}");
            assert!(shown(&found).starts_with("crates/keys/src/lib.rs:2: "));
        }
        for (word, _) in ANYWHERE {
            assert_eq!(
                check(&repository(&[("README.md", word)])).len(),
                1,
                "{word}"
            );
        }
    }

    #[test]
    fn longer_words_are_others() {
        let text = format!("//! mkstemp: a{}X, {}, {}s\n", "XX", "XXXX", "FIXMEA");
        assert_eq!(check(&repository(&[("crates/keys/src/lib.rs", &text)])), []);
    }
}
