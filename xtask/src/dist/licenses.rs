//! The licences of what is linked into the libraries and the command.
//!
//! Rust links everything statically, so whoever hands the tree on hands on these
//! packages, too, and most licences ask that their text goes along.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::tree::Staging;
use crate::process;

/// A package from elsewhere.
struct Package {
    name: String,
    version: String,
    /// An SPDX expression, as its manifest has it.
    license: String,
    /// Its files that are licences, by their names.
    texts: BTreeMap<String, PathBuf>,
}

/// Writes a list of all packages, and their licences beside it.
pub fn write(tree: &Staging, folder: &Path, roots: &[&str], target: Option<&str>) -> Result<()> {
    let mut list = String::from(
        "# Licences\n\nMilieu is under either of MIT and Apache 2.0, as you choose. Its libraries and its \
         command contain these packages, under licences of their own:\n\n| Package | Version | Licence |\n|---|---|---|\n",
    );
    for package in packages(roots, target)? {
        let Package {
            name,
            version,
            license,
            texts,
        } = package;
        list += &format!("| {name} | {version} | {license} |\n");
        for (file, text) in texts {
            tree.copy(
                &text,
                folder
                    .join("licenses")
                    .join(format!("{name}-{version}"))
                    .join(file),
            )?;
        }
    }
    tree.write(folder.join("LICENSES.md"), &list)
}

/// What the packages `roots` are linked with, their own workspace aside.
fn packages(roots: &[&str], target: Option<&str>) -> Result<Vec<Package>> {
    let host = crate::fuzz::host()?;
    let mut cargo = process::cargo(["metadata", "--format-version=1", "--all-features"]);
    cargo.args(["--filter-platform", target.unwrap_or(&host)]);
    let metadata: Value = serde_json::from_str(&process::output(cargo)?)
        .context("`cargo metadata` printed something unexpected")?;
    let linked = linked(&metadata, roots);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut found: Vec<Package> = packages
        .filter(|package| linked.contains(text(&package["id"])) && !package["source"].is_null())
        .map(package)
        .collect::<Result<_>>()?;
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found)
}

/// The ids of packages that others need when they run. What needs them while it
/// is built or tested does not count, nor do macros, which run in the compiler.
fn linked<'a>(metadata: &'a Value, roots: &[&str]) -> BTreeSet<&'a str> {
    let list = |value: &'a Value| value.as_array().into_iter().flatten();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let is_macro = |package: &Value| {
        let kind = &package["targets"][0]["kind"][0];
        kind == "proc-macro"
    };
    let macros: BTreeSet<&str> = list(&metadata["packages"])
        .filter(|package| is_macro(package))
        .map(|package| text(&package["id"]))
        .collect();
    let mut open: Vec<&str> = list(&metadata["packages"])
        .filter(|package| roots.contains(&text(&package["name"])))
        .map(|package| text(&package["id"]))
        .collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if macros.contains(id) || !linked.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        for dependency in list(&node["deps"]) {
            if list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()) {
                open.push(text(&dependency["pkg"]));
            }
        }
    }
    linked
}

fn package(package: &Value) -> Result<Package> {
    let manifest = Path::new(text(&package["manifest_path"]));
    let folder = manifest.parent().unwrap_or(manifest);
    let mut texts = BTreeMap::new();
    for entry in
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_license(&name) && entry.path().is_file() {
            texts.insert(name, entry.path());
        }
    }
    Ok(Package {
        name: text(&package["name"]).to_owned(),
        version: text(&package["version"]).to_owned(),
        license: package["license"]
            .as_str()
            .unwrap_or("see its text")
            .to_owned(),
        texts,
    })
}

fn is_license(name: &str) -> bool {
    let name = name.to_uppercase();
    let starts = [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
        "UNLICENSE",
    ];
    starts.iter().any(|start| name.starts_with(start))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_linked_is_what_programs_need_when_they_run() {
        let needs = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                {"name": "a", "id": "a1"},
                {"name": "b", "id": "b1"},
                {"name": "derive", "id": "d1", "targets": [{"kind": ["proc-macro"]}]},
            ],
            "resolve": {"nodes": [
                {"id": "a1", "deps": [
                    needs("b1", json!(null)), needs("built", json!("build")), needs("tried", json!("dev")),
                ]},
                {"id": "b1", "deps": [needs("a1", json!(null)), needs("c1", json!(null)), needs("d1", json!(null))]},
            ]},
        });
        assert_eq!(
            linked(&metadata, &["a"]),
            BTreeSet::from(["a1", "b1", "c1"])
        );
    }

    #[test]
    fn every_package_says_under_which_licence_it_is() {
        let packages = packages(&["milieu-capi"], None).unwrap();
        assert!(packages.iter().any(|package| package.name == "libc"));
        for package in &packages {
            assert_ne!(package.license, "see its text", "{}", package.name);
        }
    }

    #[test]
    fn licences_are_known_by_their_names() {
        for name in [
            "LICENSE-MIT",
            "license.txt",
            "COPYING",
            "NOTICE",
            "UNLICENSE",
        ] {
            assert!(is_license(name), "{name}");
        }
        assert!(!is_license("README.md") && !is_license("Cargo.toml"));
    }
}
