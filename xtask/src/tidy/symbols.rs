//! Only `capi` and `preload` export C symbols: a symbol that another crate
//! exports would stand in every program that links it.

use super::{Finding, Repository};

/// The last is what C++ programs of `cargo xtask sizes` are compared with; no
/// crate is built of it.
const EXPORTING: &[&str] = &["crates/capi/", "crates/preload/", "xtask/sizes/"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files_ending(&[".rs"]) {
        if EXPORTING.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for (number, line) in file.lines() {
            let line = line.trim_start();
            let is_attribute = line.starts_with("#[") || line.starts_with("#![");
            if is_attribute && (line.contains("no_mangle") || line.contains("export_name")) {
                findings.push(file.finding(
                    number,
                    "only crates/capi and crates/preload export C symbols; move it there",
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::example::{repository, shown};
    use super::*;

    #[test]
    fn an_exported_symbol_elsewhere_is_found() {
        let text = "//! A.\n    #[unsafe(no_mangle)]\npub extern \"C\" fn a() {}\n";
        let found = check(&repository(&[
            ("crates/capi/src/lib.rs", text),
            ("crates/keys/src/lib.rs", text),
            ("crates/keys/src/name.rs", "// no_mangle is not for us\n"),
        ]));
        assert_eq!(found.len(), 1);
        assert!(shown(&found).starts_with("crates/keys/src/lib.rs:2: only"));
        let named = "#[unsafe(export_name = \"malloc\")]\n";
        assert_eq!(check(&repository(&[("xtask/src/a.rs", named)])).len(), 1);
    }
}
