//! What Cargo knows about the workspace, read from `cargo metadata`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;

/// The workspace's own packages; dependencies from elsewhere are not listed.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub target_directory: PathBuf,
}

/// One package of the workspace.
#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub manifest_path: PathBuf,
    pub targets: Vec<Target>,
    pub dependencies: Vec<Dependency>,
    pub features: std::collections::BTreeMap<String, Vec<String>>,
    pub rust_version: Option<String>,
    /// The table `[package.metadata]`, free for tools to use.
    #[serde(default)]
    pub metadata: serde_json::Value,
}

/// A library, program, example, test or benchmark of a package.
#[derive(Deserialize)]
pub struct Target {
    pub name: String,
    pub kind: Vec<String>,
    pub src_path: PathBuf,
}

/// A dependency as the manifest states it.
#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
}

impl Metadata {
    /// Asks Cargo.
    pub fn read() -> Result<Self> {
        let text = process::output(process::cargo([
            "metadata",
            "--format-version=1",
            "--no-deps",
        ]))?;
        serde_json::from_str(&text).context("`cargo metadata` printed something unexpected")
    }
}

impl Package {
    /// The package's folder below the root, as `crates/keys`.
    pub fn folder(&self) -> &Path {
        let folder = self.manifest_path.parent().unwrap_or(&self.manifest_path);
        folder.strip_prefix(process::root()).unwrap_or(folder)
    }

    /// The last part of the folder: `keys` for `crates/keys`.
    pub fn part(&self) -> &str {
        self.folder()
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(&self.name)
    }

    /// Whether the package lies in this folder of the root.
    pub fn is_in(&self, folder: &str) -> bool {
        self.folder().starts_with(folder)
    }

    /// The targets of one kind: `bin`, `example`, `test`, `bench`.
    pub fn targets_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Target> {
        self.targets
            .iter()
            .filter(move |target| target.kind.iter().any(|other| other == kind))
    }

    /// Whether the package has a library that programs or the compiler load.
    pub fn has_library(&self) -> bool {
        ["lib", "rlib", "cdylib", "staticlib", "proc-macro"]
            .iter()
            .any(|kind| self.targets_of(kind).next().is_some())
    }
}

/// Where Cargo puts what it builds.
pub fn target_directory() -> Result<PathBuf> {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    if let Some(directory) = DIRECTORY.get() {
        return Ok(directory.clone());
    }
    let directory = Metadata::read()?.target_directory;
    Ok(DIRECTORY.get_or_init(|| directory).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_knows_this_package() {
        let metadata = Metadata::read().unwrap();
        let xtask = metadata
            .packages
            .iter()
            .find(|package| package.name == "xtask")
            .unwrap();
        assert_eq!(xtask.folder(), Path::new("xtask"));
        assert_eq!(xtask.targets_of("bin").count(), 1);
        assert!(!xtask.has_library());
    }
}
