//! Builds programs in C and C++ from an installed tree.
//!
//! What is not installed is left out, and said on standard error.

#![allow(dead_code)] // Each test uses its own part.

#[path = "../../src/linker.rs"]
mod linker;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

/// Whether all of these can be started; says which cannot.
pub fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let started = Command::new(program).arg("--version").output();
        !started.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        eprintln!("skipped: {program} is not installed");
    }
    missing.is_none()
}

/// An empty folder for what a test makes.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(env!("CARGO_CRATE_NAME"))
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for what the test makes");
    folder
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the root of the repository")
}

/// What the programs write who ran before; all of it is in the message if they failed.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}:\n{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All that a program has written.
pub fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

/// Lays out a tree of what the tests of the whole workspace are built with, without
/// optimization, so that nothing is built twice.
pub fn dist(dest: &Path, arguments: &[&str]) -> Command {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(["dist", "--dest"]).arg(dest);
    xtask.arg("--built").arg(built()).args(arguments);
    xtask
}

/// Where Cargo has built this test.
pub fn target() -> &'static Path {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target.expect("Cargo's folder")
}

/// Where the command and the libraries are, with all their features.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(root())
            .args([
                "build",
                "--workspace",
                "--all-features",
                "--lib",
                "--bins",
                "--examples",
            ])
            .arg("--target-dir")
            .arg(target());
        succeed(&mut cargo);
        target().join("debug")
    })
}

/// The tree that most tests only read.
pub fn tree() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let tree = scratch("tree");
        succeed(&mut dist(&tree, &[]));
        tree
    })
}

/// Lets CMake look at a project, to be linked in less time than the system's linker
/// takes. Without `LDFLAGS` in the environment of the command it is that one.
pub fn configure(source: &Path, build: &Path, arguments: &[&str]) -> Command {
    let mut cmake = Command::new("cmake");
    cmake
        .arg("-S")
        .arg(source)
        .arg("-B")
        .arg(build)
        .args(arguments)
        .env("LDFLAGS", linker::fast().join(" "));
    cmake
}

/// Lets CMake build it.
pub fn build(folder: &Path) -> String {
    succeed(Command::new("cmake").arg("--build").arg(folder))
}

/// A path for CMake.
pub fn defined(name: &str, value: &Path) -> String {
    format!("-D{name}={}", value.display())
}
