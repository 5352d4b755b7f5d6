//! The second disk of the machine: programs that are built here, at the paths below the
//! folder of the build that they have here, and `xtask/boot`, which runs them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::built;
use crate::metadata::{Metadata, target_directory};
use crate::process;

/// Its name.
pub const DISK: &str = "tests.ext2";

/// Packages whose test programs are of interest there, with one test of each, or all.
const TESTS: &[(&str, Option<&str>)] = &[
    ("milieu-threads", None),
    ("milieu-cli", Some("thread_mediate")),
];

/// What is about groups: alone in a short round. It is also run by a user who may do
/// nothing else.
const ABOUT_GROUPS: &[&str] = &["version_2", "program"];

/// Tests that say nothing there, and what leaves them out, if not all of the program.
const SKIPS: &[(&str, &str)] = &[
    // It reads the unit in the sources; the machine has it installed.
    ("thread_mediate", "--skip systemd_understands_the_unit"),
    // It asks compilers, which the machine has not.
    ("stack_emit", ""),
];

/// Builds everything and lays it out on a disk.
pub fn make(folder: &Path, short: bool) -> Result<()> {
    let target = target_directory()?;
    let tree = folder.join("tests");
    let _ = fs::remove_dir_all(&tree);
    let guest = tree.join("guest");
    fs::create_dir_all(&guest)?;
    let mut list = String::new();
    for (name, program) in tests(short)? {
        let is_about_groups = ABOUT_GROUPS.contains(&name.as_str());
        let skip = SKIPS.iter().find(|it| it.0 == name).map(|it| it.1);
        if skip == Some("") || (short && !is_about_groups) {
            continue;
        }
        let skip = skip.unwrap_or_default();
        let place = program.strip_prefix(&target).context("it is elsewhere")?;
        put(&program, &tree.join(place))?;
        let is_by_user = is_about_groups || name == "milieu_threads";
        let by_user = is_by_user.then_some("user");
        for who in ["root"].into_iter().chain(by_user) {
            list += &format!("{who} {} {skip}\n", place.display());
        }
    }
    fs::write(guest.join("tests.list"), list)?;
    fs::write(guest.join("target"), target.to_string_lossy().as_bytes())?;

    put(&target.join("debug/milieu"), &tree.join("debug/milieu"))?;
    let mut preload = process::cargo(["build", "--profile", "preload", "-p", "milieu-preload"]);
    must(&mut preload)?;
    let library = "preload/libmilieu_preload.so";
    put(&target.join(library), &tree.join(library))?;
    let sources = process::root().join("crates/preload");
    let mut compile = process::command("gcc");
    compile.args(["-std=c11", "-O1", "-D_GNU_SOURCE", "-pthread", "-I"]);
    compile.arg(sources.join("include"));
    compile.arg(sources.join("tests/programs/regions.c"));
    must(compile.arg("-o").arg(guest.join("regions")))?;

    let unit = "crates/device/install/milieu-mediator.service";
    fs::copy(
        process::root().join(unit),
        guest.join("milieu-mediator.service"),
    )?;
    for file in ["all", "groups", "unit", "tests"] {
        fs::copy(
            process::root().join("xtask/boot").join(file),
            guest.join(file),
        )?;
    }
    let disk = folder.join(DISK);
    let _ = fs::remove_file(&disk);
    let mut make = process::command("genext2fs");
    let blocks = bytes_in(&tree)? / 4096 + 16384;
    make.args([
        "-B",
        "4096",
        "-N",
        "4096",
        "-b",
        &blocks.to_string(),
        "-U",
        "-d",
    ]);
    must(make.arg(&tree).arg(&disk))
}

/// The test programs by their names.
fn tests(short: bool) -> Result<Vec<(String, PathBuf)>> {
    let metadata = Metadata::read()?;
    // With the features of all packages, as the tests of this machine are built. The
    // command itself is built with its test.
    let mut cargo = process::cargo(["test"]);
    cargo.args(["--workspace", "--all-features"]);
    let mut wanted = Vec::new();
    for (name, only) in TESTS {
        let package = metadata.packages.iter().find(|it| it.name == *name);
        let package = package.with_context(|| format!("there is no package `{name}`"))?;
        for target in package.targets_of("test") {
            let is_wanted = match only {
                Some(test) => target.name == *test,
                None => !short || ABOUT_GROUPS.contains(&target.name.as_str()),
            };
            if is_wanted {
                cargo.args(["--test", &target.name]);
                wanted.push((&package.manifest_path, target.name.clone()));
            }
        }
        if only.is_none() && !short {
            cargo.arg("--lib");
            wanted.push((&package.manifest_path, name.replace('-', "_")));
        }
    }
    let is_wanted = |it: &built::Program| {
        let mut wanted = wanted.iter();
        wanted.any(|(manifest, name)| **manifest == it.manifest_path && *name == it.name)
    };
    let built = built::tests(cargo)?.into_iter().filter(is_wanted);
    Ok(built.map(|it| (it.name, it.path)).collect())
}

/// Puts a program there, without what only debuggers read.
fn put(program: &Path, place: &Path) -> Result<()> {
    fs::create_dir_all(place.parent().context("it has a folder")?)?;
    let mut strip = process::command("strip");
    must(strip.args(["--strip-debug", "-o"]).arg(place).arg(program))
}

fn must(command: &mut std::process::Command) -> Result<()> {
    let shown = process::display(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("`{shown}` failed ({status})"),
        Err(error) => bail!("`{shown}` does not start: {error}"),
    }
}

fn bytes_in(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += match about.is_dir() {
            true => bytes_in(&entry.path())?,
            // A part of a block takes a whole one.
            false => about.len() + 8192,
        };
    }
    Ok(bytes)
}
