//! `cargo xtask tidy`: the rules of the repository that no compiler knows.
//!
//! A rule looks at the repository's files as text and at what Cargo knows of
//! its packages, and returns what it found, each with a way out. Every rule has
//! a test that shows it failing on a bad example. Files that git ignores are
//! not looked at.

mod dependencies;
mod goals;
mod integration;
mod libraries;
mod manifests;
mod markdown;
mod modules;
mod symbols;
mod text;
mod unfinished;
mod unsafe_code;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::process;

/// Check the rules of the repository that no compiler knows.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these rules.
    #[arg(value_name = "RULE")]
    rules: Vec<String>,
    /// Print the rules and what they ask for.
    #[arg(long)]
    list: bool,
}

/// What the rules look at.
#[derive(Default)]
pub struct Repository {
    /// The text files, in the order of their paths.
    files: Vec<File>,
    /// Every file and folder, as `crates/keys/src`.
    paths: BTreeSet<String>,
    packages: Vec<Package>,
}

/// A file of UTF-8 text.
pub struct File {
    path: String,
    text: String,
}

/// A package of the workspace and the packages it is built from.
pub struct Package {
    name: String,
    folder: String,
    has_library: bool,
    /// Names of what it depends on outside its tests.
    dependencies: Vec<String>,
    features: Vec<String>,
}

/// What a rule found: where, what, and how to mend it.
#[derive(Debug, PartialEq)]
pub struct Finding {
    path: String,
    /// Counted from 1; 0 for the file as a whole.
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// One rule of the repository.
struct Rule {
    name: &'static str,
    asks: &'static str,
    check: fn(&Repository) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "dependencies",
        asks: "compilers and run times share only `keys` and `diagnostics`; `threads` depends on no Milieu crate and has no feature `std`",
        check: dependencies::check,
    },
    Rule {
        name: "symbols",
        asks: "only `capi` and `preload` export C symbols",
        check: symbols::check,
    },
    Rule {
        name: "unsafe",
        asks: "unsafe code of libraries stands where it is tested as such, and nowhere else",
        check: unsafe_code::check,
    },
    Rule {
        name: "paths",
        asks: "every path that a Markdown file names exists",
        check: markdown::paths,
    },
    Rule {
        name: "samples",
        asks: "every Rust sample of the README stands in an example that is compiled and run",
        check: markdown::samples,
    },
    Rule {
        name: "modules",
        asks: "every module opens with `//!` and what it is",
        check: modules::openings,
    },
    Rule {
        name: "lengths",
        asks: "no source file is longer than 800 lines without a stated reason",
        check: modules::lengths,
    },
    Rule {
        name: "libraries",
        asks: "libraries neither print nor exit; `keys` and `diagnostics` do no I/O at all",
        check: libraries::check,
    },
    Rule {
        name: "manifests",
        asks: "every package has the workspace's lints, version, licence and a description",
        check: manifests::check,
    },
    Rule {
        name: "tests",
        asks: "every file of integration tests is run",
        check: integration::check,
    },
    Rule {
        name: "blanks",
        asks: "no tabs, no blanks at the end of a line, one line break at the end of a file",
        check: text::check,
    },
    Rule {
        name: "unfinished",
        asks: "nothing unfinished or switched off",
        check: unfinished::check,
    },
    Rule {
        name: "goals",
        asks: "every row of goals.toml is complete",
        check: goals::check,
    },
];

/// Checks the rules and prints what they found on standard error.
pub fn run(arguments: &Arguments) -> Result<bool> {
    if let Some(unknown) = arguments
        .rules
        .iter()
        .find(|name| !RULES.iter().any(|rule| rule.name == name.as_str()))
    {
        let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        bail!(
            "there is no rule `{unknown}`; there are {}",
            known.join(", ")
        );
    }
    let chosen = RULES.iter().filter(|rule| {
        arguments.rules.is_empty() || arguments.rules.iter().any(|name| name == rule.name)
    });
    if arguments.list {
        for rule in chosen {
            process::print(&format!("{:<14}{}\n", rule.name, rule.asks))?;
        }
        return Ok(true);
    }
    let (_, broken) = report(chosen)?;
    Ok(broken == 0)
}

/// Checks all rules for `cargo xtask ci`: how many are kept, how many broken.
pub fn outcome() -> Result<(u64, u64)> {
    report(RULES.iter())
}

fn report<'a>(rules: impl Iterator<Item = &'a Rule>) -> Result<(u64, u64)> {
    let repository = Repository::read()?;
    let (mut kept, mut broken) = (0, 0);
    for rule in rules {
        let findings = (rule.check)(&repository);
        if findings.is_empty() {
            kept += 1;
            continue;
        }
        broken += 1;
        eprintln!("{}: {}", rule.name, rule.asks);
        for finding in findings {
            eprintln!("  {finding}");
        }
    }
    process::print(&format!("tidy: {kept} rules kept, {broken} broken\n"))?;
    Ok((kept, broken))
}

impl Repository {
    /// The repository as it lies on the disk, without what git ignores.
    fn read() -> Result<Self> {
        let listing = process::output({
            let mut git = process::command("git");
            git.args(["ls-files", "--cached", "--others", "--exclude-standard"])
                .args(["-z"]);
            git
        })?;
        let mut repository = Self::default();
        for path in listing
            .trim_end()
            .split('\0')
            .filter(|path| !path.is_empty())
        {
            let full = process::root().join(path);
            // A link may point out of the repository; git may list what is deleted.
            if !full.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                continue;
            }
            let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
            let text = String::from_utf8(bytes).ok();
            repository.add(path, text.filter(|text| !text.contains('\0')));
        }
        repository
            .files
            .sort_by(|left, right| left.path.cmp(&right.path));
        repository.packages = packages(&Metadata::read()?);
        Ok(repository)
    }

    /// Adds a file and the folders it lies in; without text it is a binary file.
    fn add(&mut self, path: &str, text: Option<String>) {
        for folder in Path::new(path).ancestors() {
            self.paths.insert(folder.to_string_lossy().into_owned());
        }
        if let Some(text) = text {
            let path = path.to_owned();
            self.files.push(File { path, text });
        }
    }

    /// The text files whose names end so.
    fn files_ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = &'a File> {
        self.files
            .iter()
            .filter(|file| endings.iter().any(|ending| file.path.ends_with(ending)))
    }
}

impl File {
    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }

    /// The lines with their numbers, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

fn packages(metadata: &Metadata) -> Vec<Package> {
    metadata
        .packages
        .iter()
        .map(|package| Package {
            name: package.name.clone(),
            folder: package.folder().to_string_lossy().into_owned(),
            has_library: package.has_library(),
            dependencies: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind.as_deref() != Some("dev"))
                .map(|dependency| dependency.name.clone())
                .collect(),
            features: package.features.keys().cloned().collect(),
        })
        .collect()
}

/// Repositories made of literals, for the tests of the rules.
#[cfg(test)]
mod example {
    use super::{Package, Repository};

    pub fn repository(files: &[(&str, &str)]) -> Repository {
        let mut repository = Repository::default();
        for (path, text) in files {
            repository.add(path, Some((*text).to_owned()));
        }
        repository
    }

    pub fn package(folder: &str, dependencies: &[&str]) -> Package {
        let part = folder.rsplit('/').next().unwrap();
        Package {
            name: if part == "milieu" {
                part.to_owned()
            } else {
                format!("milieu-{part}")
            },
            folder: folder.to_owned(),
            has_library: true,
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
            features: Vec::new(),
        }
    }

    /// The places and messages of what a rule found, one a line.
    pub fn shown(findings: &[super::Finding]) -> String {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_knows_files_folders_and_packages() {
        let repository = Repository::read().unwrap();
        assert!(repository.paths.contains("xtask/src/tidy.rs"));
        assert!(repository.paths.contains("xtask/src"));
        assert!(
            !repository
                .paths
                .iter()
                .any(|path| path.starts_with("target"))
        );
        let xtask = repository
            .packages
            .iter()
            .find(|package| package.name == "xtask")
            .unwrap();
        assert!(xtask.dependencies.contains(&"clap".to_owned()));
    }

    #[test]
    fn a_finding_names_its_place() {
        let file = File {
            path: "docs/a.md".into(),
            text: "one\n".into(),
        };
        assert_eq!(file.finding(7, "bad").to_string(), "docs/a.md:7: bad");
        assert_eq!(file.finding(0, "bad").to_string(), "docs/a.md: bad");
    }
}
