//! Test programs, as Cargo has built them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use serde::Deserialize;

use crate::metadata::Package;
use crate::process;

/// One test program.
pub struct Program {
    /// Of its target: `queues`, `milieu_stream`.
    pub name: String,
    /// Of its package.
    pub manifest_path: PathBuf,
    /// Its first source.
    pub source: PathBuf,
    pub path: PathBuf,
}

/// What Cargo tells of something that it has built.
#[derive(Deserialize)]
struct Built {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Has `cargo test`, with these arguments, build its programs and names them.
pub fn tests(mut cargo: Command) -> Result<Vec<Program>> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    eprintln!("$ {}", process::display(&cargo));
    Ok(programs(&process::output(cargo)?))
}

fn programs(said: &str) -> Vec<Program> {
    let built = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    built
        .filter(|it: &Built| it.profile.test)
        .filter_map(|it| {
            Some(Program {
                name: it.target.name,
                manifest_path: it.manifest_path,
                source: it.target.src_path,
                path: it.executable?,
            })
        })
        .collect()
}

impl Program {
    /// The program as `cargo test` starts it, in a package of the workspace. The path of
    /// libraries is the one that Cargo has given to us.
    pub fn start(&self, package: &Package) -> Command {
        let folder = package.manifest_path.parent().unwrap_or(process::root());
        let mut command = process::command(&self.path.to_string_lossy());
        command
            .current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder)
            .env("CARGO_PKG_NAME", &package.name)
            .env("CARGO_PKG_VERSION", &package.version);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_built_tests_are_programs() {
        let built = |test: bool, executable: &str| {
            format!(
                "{{\"reason\": \"compiler-artifact\", \"manifest_path\": \"/w/a/Cargo.toml\", \
                  \"target\": {{\"name\": \"queues\", \"src_path\": \"/w/a/tests/queues.rs\"}}, \
                  \"profile\": {{\"test\": {test}}}, \"executable\": {executable}}}\n"
            )
        };
        let said = [
            "{\"reason\": \"build-finished\", \"success\": true}\n",
            &built(false, "\"/w/target/debug/a\""),
            &built(true, "null"),
            &built(true, "\"/w/target/debug/deps/queues-1\""),
        ];
        let found = programs(&said.concat());
        let paths: Vec<_> = found.iter().map(|it| it.path.to_string_lossy()).collect();
        assert_eq!(paths, ["/w/target/debug/deps/queues-1"]);
        assert_eq!(found[0].name, "queues");
    }
}
