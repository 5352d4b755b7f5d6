//! The programs of experiments in C and C++: what stands in `experiments/PAPER/programs`.
//!
//! ```text
//! NAME.cpp, NAME.c   a program
//! NAME.ini           a specification: NAME.hpp and NAME.h, for the programs beside it
//! ```
//!
//! They are linked with the static library of `crates/capi`, and have
//! `milieu_bench.h` to measure with. A line `// pkg-config: NAME` in a program says which
//! library of the system it takes besides. Beside them are then their specifications and
//! the shared library, `libmilieu.so`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// How programs of an extension are compiled.
const COMPILERS: [(&str, &str, &str); 2] = [("cpp", "c++", "-std=c++17"), ("c", "cc", "-std=c11")];

/// What is not on this machine and has to be, to build the programs in a folder.
pub fn missing(folder: &Path) -> Result<Option<String>> {
    for (extension, compiler, _) in COMPILERS {
        let sources = files(folder, extension)?;
        if !sources.is_empty() && !process::has_program(compiler) {
            return Ok(Some(compiler.into()));
        }
        for source in sources {
            for package in packages(&source)? {
                if !process::has_program("pkg-config") {
                    return Ok(Some("pkg-config".into()));
                }
                let mut exists = process::command("pkg-config");
                exists.args(["--exists", &package]);
                if !process::succeeds_silently(exists) {
                    return Ok(Some(format!("the library {package}")));
                }
            }
        }
    }
    Ok(None)
}

/// The libraries of the system that a program takes.
fn packages(source: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(source)?;
    let named = text
        .lines()
        .filter_map(|line| line.strip_prefix("// pkg-config: "));
    Ok(named.map(str::to_owned).collect())
}

/// What `pkg-config` says of the libraries of a program.
fn options(source: &Path, of: &str) -> Result<Vec<String>> {
    let packages = packages(source)?;
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = process::command("pkg-config");
    command.arg(of).args(packages);
    let said = process::output(command)?;
    Ok(said.split_whitespace().map(str::to_owned).collect())
}

/// Builds the programs in a folder; where they are then.
pub fn build(folder: &Path, milieu: &Path, library: &Path) -> Result<PathBuf> {
    let paper = folder.parent().and_then(Path::file_name);
    let paper = paper.context("programs of no paper")?.to_string_lossy();
    let kind = library.parent().and_then(Path::file_name);
    let kind = kind.context("a library in no folder")?.to_string_lossy();
    let made = process::scratch(&format!("experiments/{paper}/programs-{kind}"))?;
    // Apart, as a program may be called what a header of the system is.
    let headers = made.join("include");
    std::fs::create_dir_all(&headers)?;
    let generate = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(milieu);
        command.args(arguments);
        process::output(command)
    };
    for specification in files(folder, "ini")? {
        let (from, to) = (path(&specification)?, path(&headers)?);
        let kept = made.join(specification.file_name().unwrap_or_default());
        std::fs::copy(&specification, kept)?;
        for language in ["cpp", "c"] {
            generate(&["spec", "generate", from, "--lang", language, "--out", to])?;
        }
    }
    let helper = generate(&["bench", "helper", "c"])?;
    std::fs::write(headers.join("milieu_bench.h"), helper)?;
    let mut programs = Vec::new();
    for (extension, compiler, standard) in COMPILERS {
        for source in files(folder, extension)? {
            let cflags = options(&source, "--cflags")?;
            let libs = options(&source, "--libs")?;
            programs.push((source, compiler, standard, cflags, libs));
        }
    }
    let built = process::side_by_side(&programs, |(source, compiler, standard, cflags, libs)| {
        let mut command = process::command(compiler);
        command
            .args([*standard, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(["-ffunction-sections", "-Wl,--gc-sections"])
            .args(["-I", "crates/capi/include", "-I"])
            .arg(&headers)
            .args(cflags)
            .arg(source)
            .arg(library)
            .args(libs)
            .args(["-ldl", "-lm", "-o"])
            .arg(made.join(source.file_stem().unwrap_or_default()));
        command.status()
    });
    for (status, (source, ..)) in built.into_iter().zip(&programs) {
        if !status?.success() {
            bail!("{} does not compile", source.display());
        }
    }
    link(library, &made.join("libmilieu.so"))?;
    Ok(made)
}

/// The shared library, of which experiments say how large it is.
fn link(library: &Path, shared: &Path) -> Result<()> {
    let mut command = process::command("cc");
    command
        .arg("@crates/capi/shared.flags")
        .arg("-Wl,--version-script=crates/capi/milieu.map")
        .arg("-Wl,--whole-archive")
        .arg(library)
        .arg("-Wl,--no-whole-archive")
        .args(["-ldl", "-lm", "-o"])
        .arg(shared);
    match command.status()?.success() {
        true => Ok(()),
        false => bail!("the shared library is not linked"),
    }
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a folder whose name is no text")
}

/// The files of an extension, by name.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
