//! Running the examples: whoever copies one shall find that it works.
//!
//! An example runs without arguments and ends by itself. One that serves until
//! it is told to stop names, in its `Cargo.toml`, arguments with which it ends:
//!
//! ```toml
//! [package.metadata.xtask]
//! run = ["--help"]
//! ```

use std::process::Stdio;
use std::time::Duration;

use anyhow::Result;

use super::Outcome;
use crate::metadata::{Metadata, Package};
use crate::process;

/// Long enough for a busy machine; an example is a matter of milliseconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Builds all examples, then runs each.
pub fn run(metadata: &Metadata) -> Result<Outcome> {
    let built = process::cargo([
        "build",
        "--workspace",
        "--all-features",
        "--examples",
        "--bins",
    ])
    .status()?
    .success();
    if !built {
        return Ok(Outcome::of(false));
    }
    let mut passed = 0;
    let mut failures = Vec::new();
    for example in examples(metadata) {
        if one(&example)? {
            passed += 1;
        } else {
            failures.push(example.program);
        }
    }
    Ok(Outcome::named(passed, failures))
}

/// A program and the arguments with which it ends.
#[derive(Debug, PartialEq)]
struct Example {
    /// Below the folder of the build, `examples/wait`.
    program: String,
    arguments: Vec<String>,
}

fn examples(metadata: &Metadata) -> Vec<Example> {
    let mut examples = Vec::new();
    for package in &metadata.packages {
        if package.is_in("examples") {
            examples.extend(package.targets_of("bin").map(|target| Example {
                program: target.name.clone(),
                arguments: arguments(package),
            }));
        }
        examples.extend(package.targets_of("example").map(|target| Example {
            program: format!("examples/{}", target.name),
            arguments: Vec::new(),
        }));
    }
    examples
}

fn arguments(package: &Package) -> Vec<String> {
    package.metadata["xtask"]["run"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|argument| argument.as_str().map(str::to_owned))
        .collect()
}

fn one(example: &Example) -> Result<bool> {
    let program = crate::metadata::target_directory()?
        .join("debug")
        .join(&example.program);
    let mut command = process::command(&program.to_string_lossy());
    // Examples keep their settings below a home of their own, new each time.
    let home = process::scratch("home")?;
    std::fs::remove_dir_all(&home)?;
    std::fs::create_dir_all(&home)?;
    command
        .args(&example.arguments)
        .env("HOME", &home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_STATE_HOME", home.join("state"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .stdin(Stdio::null());
    eprintln!(
        "example: {} {}",
        example.program,
        example.arguments.join(" ")
    );
    let mut child = command.spawn()?;
    Ok(match process::wait_at_most(&mut child, LIMIT)? {
        Some(status) => {
            if !status.success() {
                eprintln!("{} failed ({status})", example.program);
            }
            status.success()
        }
        None => {
            eprintln!(
                "{} does not end by itself; name arguments with which it does in its Cargo.toml: \
                 [package.metadata.xtask] run = [\"--help\"]",
                example.program
            );
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn programs_below_examples_and_examples_of_crates_are_run() {
        let root = process::root();
        let target = |name: &str, kind: &str| json!({"name": name, "kind": [kind], "src_path": ""});
        let package = |folder: &str, targets: serde_json::Value, metadata: serde_json::Value| {
            json!({
                "name": folder, "version": "0.1.0", "manifest_path": root.join(folder).join("Cargo.toml"),
                "targets": targets, "dependencies": [], "features": {}, "metadata": metadata,
            })
        };
        let metadata: Metadata = serde_json::from_value(json!({
            "target_directory": "target",
            "packages": [
                package("examples/hello", json!([target("hello", "bin")]), json!(null)),
                package(
                    "examples/station",
                    json!([target("station", "bin"), target("page", "test")]),
                    json!({"xtask": {"run": ["--help"]}}),
                ),
                package("crates/context", json!([target("wait", "example")]), json!(null)),
                package("crates/cli", json!([target("milieu", "bin")]), json!(null)),
            ],
        }))
        .unwrap();
        let example = |program: &str, arguments: &[&str]| Example {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
        };
        assert_eq!(
            examples(&metadata),
            [
                example("hello", &[]),
                example("station", &["--help"]),
                example("examples/wait", &[]),
            ]
        );
    }
}
