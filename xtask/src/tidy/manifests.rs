//! What every package states the same way, so that no lint is lost in one of them.

use toml::Table;

use super::{Finding, Repository};

/// Fields that come from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &repository.packages {
        let path = format!("{}/Cargo.toml", package.folder);
        let Some(file) = repository.files.iter().find(|file| file.path == path) else {
            continue;
        };
        let manifest: Table = match file.text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(file.finding(0, error.to_string()));
                continue;
            }
        };
        let inherits = |table: Option<&toml::Value>, field: Option<&str>| {
            let value = match field {
                Some(field) => table.and_then(|table| table.get(field)),
                None => table,
            };
            value.and_then(|value| value.get("workspace")) == Some(&toml::Value::Boolean(true))
        };
        let table = manifest.get("package");
        for field in INHERITED {
            if !inherits(table, Some(field)) {
                findings.push(file.finding(0, format!("write `{field}.workspace = true`")));
            }
        }
        if !inherits(manifest.get("lints"), None) {
            findings.push(file.finding(0, "write `workspace = true` below `[lints]`"));
        }
        let description = table
            .and_then(|table| table.get("description"))
            .and_then(toml::Value::as_str);
        if description.is_none_or(str::is_empty) {
            findings.push(file.finding(0, "say in `description` what the package is"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::example::{package, repository, shown};
    use super::*;

    const GOOD: &str = r#"
[package]
name = "milieu-keys"
description = "Names."
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true

[lints]
workspace = true
"#;

    fn findings(text: &str) -> Vec<Finding> {
        check(&Repository {
            packages: vec![package("crates/keys", &[])],
            ..repository(&[("crates/keys/Cargo.toml", text)])
        })
    }

    #[test]
    fn every_missing_field_is_found() {
        assert_eq!(findings(GOOD), []);
        for (line, complaint) in [
            ("description = \"Names.\"", "`description`"),
            ("version.workspace = true\ne", "`version.workspace"),
            ("rust-version.workspace = true", "`rust-version.workspace"),
            ("license.workspace = true", "`license.workspace"),
            ("[lints]\nworkspace = true", "`[lints]`"),
        ] {
            let keep = if line.ends_with("\ne") { "e" } else { "" };
            let found = findings(&GOOD.replacen(line, keep, 1));
            assert!(shown(&found).contains(complaint), "{line}: {found:?}");
        }
    }
}
