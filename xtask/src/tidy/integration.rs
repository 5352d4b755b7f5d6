//! Whether every file of tests is run.
//!
//! Where most integration tests are modules of one program, `tests/main.rs`, Cargo finds
//! none by itself (`autotests = false`), and a file that is named nowhere is no test.

use toml::{Table, Value};

use super::{Finding, Repository};

pub fn check(repository: &Repository) -> Vec<Finding> {
    let text_of = |path: &str| {
        let file = repository.files.iter().find(|file| file.path == path);
        file.map_or("", |file| file.text.as_str())
    };
    let mut findings = Vec::new();
    for package in &repository.packages {
        let folder = format!("{}/tests/", package.folder);
        let program = text_of(&format!("{folder}main.rs"));
        if program.is_empty() {
            continue;
        }
        let programs = programs(text_of(&format!("{}/Cargo.toml", package.folder)));
        for file in &repository.files {
            let name = file.path.strip_prefix(&folder);
            let Some(name) = name.and_then(|name| name.strip_suffix(".rs")) else {
                continue;
            };
            let module = format!("mod {name};");
            let is_run = name == "main"
                || name.contains('/')
                || program.lines().any(|line| line == module)
                || programs.iter().any(|it| it == name);
            if !is_run {
                let message = format!(
                    "is not run; write `mod {name};` into {folder}main.rs, or `[[test]]` with \
                     this name into Cargo.toml if it needs a process of its own"
                );
                findings.push(file.finding(0, message));
            }
        }
    }
    findings
}

/// The test programs that a manifest names. That it can be read is another rule's.
fn programs(manifest: &str) -> Vec<String> {
    let manifest: Table = manifest.parse().unwrap_or_default();
    let tests = manifest.get("test").and_then(Value::as_array);
    let names = tests.into_iter().flatten().filter_map(|it| it.get("name"));
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{package, repository, shown};
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<Finding> {
        check(&Repository {
            packages: vec![package("crates/keys", &[])],
            ..repository(files)
        })
    }

    #[test]
    fn a_file_of_tests_that_is_named_nowhere_is_found() {
        let found = findings(&[
            (
                "crates/keys/Cargo.toml",
                "[[test]]\nname = \"memory\"\n[[bench]]\nname = \"migration\"\n",
            ),
            ("crates/keys/tests/main.rs", "mod rules;\nmod support;\n"),
            ("crates/keys/tests/memory.rs", ""),
            ("crates/keys/tests/migration.rs", ""),
            ("crates/keys/tests/rules.rs", ""),
            ("crates/keys/tests/support/mod.rs", ""),
        ]);
        assert_eq!(found.len(), 1, "{}", shown(&found));
        assert!(shown(&found).contains("tests/migration.rs: is not run; write `mod migration;`"));
    }

    #[test]
    fn without_such_a_program_cargo_finds_them() {
        assert_eq!(findings(&[("crates/keys/tests/migration.rs", "")]), []);
    }
}
