//! The programs in C and C++ that `crates/capi` tests itself with, compiled for
//! another machine and run there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use milieu_diagnostics::Source;
use milieu_spec::{Settings, backend, generate};

use crate::linker;
use crate::metadata::target_directory;
use crate::process;
use crate::targets::Target;

/// A program, and what it is compiled and run with.
struct Program {
    source: &'static str,
    /// What else it is made of.
    further: &'static [&'static str],
    /// From which headers are generated, below `crates/capi`.
    specifications: &'static [&'static str],
    arguments: &'static [Argument],
    /// Whether it executes itself once more, for which the kernel has to know the emulator.
    starts_itself: bool,
}

impl Program {
    /// One of a single source, and a single process.
    const fn new(
        source: &'static str,
        specifications: &'static [&'static str],
        arguments: &'static [Argument],
    ) -> Program {
        Program {
            source,
            further: &[],
            specifications,
            arguments,
            starts_itself: false,
        }
    }
}

enum Argument {
    /// An empty folder.
    Folder,
    /// Something of the repository.
    Path(&'static str),
}

/// Where the programs are.
const FOLDER: &str = "crates/capi/tests/programs";

const STATION: &[&str] = &["tests/programs/station.ini"];
const KINDS: &[&str] = &["tests/programs/kinds.ini"];
const FILES: &[&str] = &["tests/programs/files.ini"];
const CASES: &[&str] = &["../context/tests/cases/cases.ini"];
const LISTINGS: &[&str] = &[
    "../../examples/listings/algorithm.ini",
    "../../examples/listings/device.ini",
    "../../examples/listings/http.ini",
    "../../examples/listings/profile.ini",
    "../../examples/listings/server.ini",
    "../../examples/listings/value.ini",
    "../../examples/listings/version.ini",
    "../../examples/listings/watchdog.ini",
    "../../examples/listings/workers.ini",
];

const SETTINGS: &[Argument] = &[Argument::Folder];
const LAYERS: &[Argument] = &[
    Argument::Path("crates/context/tests/cases/layers.txt"),
    Argument::Folder,
];
const LISTED: &[Argument] = &[Argument::Folder, Argument::Path("examples/listings")];

const PROGRAMS: &[Program] = &[
    Program::new("context.c", STATION, SETTINGS),
    Program::new("context.cpp", STATION, SETTINGS),
    Program::new("layers.cpp", STATION, &[]),
    Program::new("exceptions.cpp", STATION, &[]),
    Program::new("misuse.c", STATION, &[]),
    Program::new("watch.c", STATION, SETTINGS),
    Program::new("reentrance.c", STATION, SETTINGS),
    Program::new("kinds.c", KINDS, &[]),
    Program::new("files.c", FILES, SETTINGS),
    Program::new("files.cpp", FILES, SETTINGS),
    Program::new("every.c", STATION, SETTINGS),
    Program::new("threads.c", STATION, SETTINGS),
    Program::new("threads.cpp", STATION, SETTINGS),
    Program::new("cases.c", CASES, LAYERS),
    Program::new("cases.cpp", CASES, LAYERS),
    Program::new("listings.cpp", LISTINGS, LISTED),
    Program::new("streams.c", &[], SETTINGS),
    Program::new("streams.cpp", &[], &[]),
    Program::new("streams_misuse.c", &[], &[]),
    Program::new("streams_fields.c", &[], &[]),
    Program::new("streams_more.c", &[], &[]),
    Program::new("streams_more.cpp", &[], &[]),
    Program::new("streams_flows.c", &[], &[]),
    Program::new("streams_flows.cpp", &[], &[]),
    Program::new("streams_operators.c", &[], &[]),
    Program::new("streams_operators.cpp", &[], &[]),
    Program::new("streams_terms.c", &[], &[]),
    Program::new("streams_terms.cpp", &[], &[]),
    Program::new("every_streams.c", &[], SETTINGS),
    Program {
        further: &["sensor.c"],
        ..Program::new("sensor.cpp", STATION, &[])
    },
    Program::new("links.c", &[], &[]),
    Program {
        starts_itself: true,
        ..Program::new("links.cpp", STATION, &[])
    },
    Program::new("every_links.c", &[], &[]),
    Program::new("modes.c", &[], &[]),
    Program::new("modes.cpp", &[], &[]),
    Program::new("every_modes.c", &[], &[]),
    Program::new("sources.c", &[], SETTINGS),
    Program::new("sources.cpp", &[], SETTINGS),
    Program::new("sources_own.c", &[], SETTINGS),
    Program::new("sources_own.cpp", &[], SETTINGS),
    Program::new("every_sources.c", &[], &[]),
];

/// What else is in the folder, and why it is not run on other machines.
#[cfg(test)]
const OTHERS: &[(&str, &str)] = &[
    ("every_foreign.c", FOREIGN),
    ("foreign.c", FOREIGN),
    ("foreign.cpp", FOREIGN),
    ("host.c", SHARED),
    ("plugin.c", SHARED),
    ("plugin.cpp", SHARED),
    ("policies.cpp", COMPILED),
    ("reads.cpp", COMPILED),
    ("race.c", SANITIZER),
    ("sanitizer.c", SANITIZER),
];

#[cfg(test)]
const FOREIGN: &str = "wants the features `http` and `mqtt`, which are no defaults";
#[cfg(test)]
const SHARED: &str = "loads the shared library, which is not linked here";
#[cfg(test)]
const COMPILED: &str = "is compiled and looked at, and not run";
#[cfg(test)]
const SANITIZER: &str = "wants a library that is built with the sanitizer for threads";

/// Builds the programs with the library that is there, and runs them unless told not
/// to. How many ended well, and how many did not; what cannot be run here is said.
pub fn run(target: &Target, no_run: bool) -> Result<(u64, u64)> {
    let folder = target_directory()?.join(target.folder());
    let library = folder.join("debug/libmilieu_capi.a");
    let linker = linker::fast();
    let lacks_start = target.lacks_start();
    let passes = |program: &Program| {
        let name = format!("{} on {}", program.source, target.name);
        let ended = build(target, program, &library, &linker).and_then(|built| {
            match lacks_start.as_ref().filter(|_| program.starts_itself) {
                _ if no_run => Ok(true),
                Some((lacks, remedy)) => {
                    eprintln!("{name}: not run, as {lacks}; this line does it: {remedy}");
                    Ok(false)
                }
                None => start(target, program, &built).map(|()| true),
            }
        });
        if let Err(error) = &ended {
            eprintln!("{name}: {error:#}");
        }
        ended
    };
    let ended = process::side_by_side(PROGRAMS, passes);
    let passed = ended.iter().filter(|it| matches!(it, Ok(true))).count();
    let failed = ended.iter().filter(|it| it.is_err()).count();
    Ok((passed as u64, failed as u64))
}

fn build(target: &Target, program: &Program, library: &Path, linker: &[String]) -> Result<PathBuf> {
    let folder = process::scratch("cross")?
        .join(target.name)
        .join(program.source);
    std::fs::create_dir_all(&folder)?;
    let (compiler, language, standard) = match program.source.ends_with(".c") {
        true => ("gcc", "c", "-std=c11"),
        false => ("g++", "cpp", "-std=c++17"),
    };
    let package = process::root().join("crates/capi");
    for specification in program.specifications {
        let path = package.join(specification);
        let stem = path.file_stem().context("a specification has a name")?;
        let source = Source {
            name: (*specification).into(),
            text: std::fs::read_to_string(&path)?,
        };
        let backend = backend::by_name(language).context("there is such a back end")?;
        let output = generate(&source, backend, &Settings::new(stem.to_string_lossy()));
        for file in output.files {
            std::fs::write(folder.join(&file.name), &file.text)?;
        }
    }
    let further = program.further.iter().map(|source| {
        let object = folder.join(source).with_extension("o");
        let mut compile = process::command(&target.tool("gcc"));
        compile
            .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-c"])
            .args(["-I", "crates/capi/include", "-o"])
            .arg(&object)
            .arg(process::root().join(FOLDER).join(source));
        process::output(compile).map(|_| object)
    });
    let further = further.collect::<Result<Vec<_>>>()?;
    let built = folder.join("program");
    let mut compile = process::command(&target.tool(compiler));
    compile
        .args([
            standard, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I",
        ])
        .arg(&folder)
        .args(["-I", "crates/capi/include", "-I", FOLDER])
        .arg(process::root().join(FOLDER).join(program.source))
        .args(further)
        .arg(library)
        .args(linker)
        // Where programs run as they are, the library of C++ may be missing.
        .args(["-static-libgcc", "-ldl", "-lm", "-o"])
        .arg(&built);
    if language == "cpp" {
        compile.arg("-static-libstdc++");
    }
    process::output(compile)?;
    Ok(built)
}

fn start(target: &Target, program: &Program, built: &Path) -> Result<()> {
    let mut command = target.start(built);
    if program.starts_itself && !target.runs_here() {
        // Where the emulator, which the kernel starts then, has the C library.
        command.env("QEMU_LD_PREFIX", format!("/usr/{}", target.tools));
    }
    let files = built.with_file_name("files");
    for argument in program.arguments {
        match argument {
            Argument::Folder => {
                let _ = std::fs::remove_dir_all(&files);
                std::fs::create_dir(&files)?;
                command.arg(&files);
            }
            Argument::Path(path) => {
                command.arg(process::root().join(path));
            }
        }
    }
    process::output(command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_run_or_it_is_said_why_not() {
        let files = std::fs::read_dir(process::root().join(FOLDER)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let is_source = |name: &String| name.ends_with(".c") || name.ends_with(".cpp");
        let mut there: Vec<String> = names.filter(is_source).collect();
        there.sort();
        let run = PROGRAMS.iter().flat_map(|it| {
            let further = it.further.iter().copied();
            further.chain([it.source])
        });
        let others = OTHERS.iter().map(|(source, _)| *source);
        let mut known: Vec<&str> = run.chain(others).collect();
        known.sort_unstable();
        assert_eq!(there, known);
    }
}
