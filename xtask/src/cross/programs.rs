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
    /// From which headers are generated, below `crates/capi`.
    specifications: &'static [&'static str],
    arguments: &'static [Argument],
}

enum Argument {
    /// An empty folder.
    Folder,
    /// Something of the repository.
    Path(&'static str),
}

const STATION: &str = "tests/programs/station.ini";
const CASES: &str = "../context/tests/cases/cases.ini";
const LAYERS: &str = "crates/context/tests/cases/layers.txt";

const PROGRAMS: &[Program] = &[
    Program {
        source: "context.c",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "misuse.c",
        specifications: &[STATION],
        arguments: &[],
    },
    Program {
        source: "watch.c",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "reentrance.c",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "kinds.c",
        specifications: &["tests/programs/kinds.ini"],
        arguments: &[],
    },
    Program {
        source: "every.c",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "threads.c",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "threads.cpp",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "context.cpp",
        specifications: &[STATION],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "cases.c",
        specifications: &[CASES],
        arguments: &[Argument::Path(LAYERS), Argument::Folder],
    },
    Program {
        source: "cases.cpp",
        specifications: &[CASES],
        arguments: &[Argument::Path(LAYERS), Argument::Folder],
    },
    Program {
        source: "streams.c",
        specifications: &[],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "streams.cpp",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "streams_misuse.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "streams_fields.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "streams_more.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "streams_more.cpp",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "every_streams.c",
        specifications: &[],
        arguments: &[Argument::Folder],
    },
    Program {
        source: "streams_flows.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "streams_operators.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "streams_terms.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "links.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "every_links.c",
        specifications: &[],
        arguments: &[],
    },
    Program {
        source: "listings.cpp",
        specifications: &[
            "../../examples/listings/algorithm.ini",
            "../../examples/listings/device.ini",
            "../../examples/listings/http.ini",
            "../../examples/listings/profile.ini",
            "../../examples/listings/server.ini",
            "../../examples/listings/value.ini",
            "../../examples/listings/version.ini",
            "../../examples/listings/watchdog.ini",
            "../../examples/listings/workers.ini",
        ],
        arguments: &[Argument::Folder, Argument::Path("examples/listings")],
    },
];

/// Builds the programs with the library that is there, and runs them unless told not
/// to. How many ended well, and how many did not.
pub fn run(target: &Target, no_run: bool) -> Result<(u64, u64)> {
    let folder = target_directory()?.join(target.folder());
    let library = folder.join("debug/libmilieu_capi.a");
    let linker = linker::fast();
    let passes = |program: &Program| {
        let ended = build(target, program, &library, &linker).and_then(|built| match no_run {
            true => Ok(()),
            false => start(target, program, &built),
        });
        if let Err(error) = &ended {
            eprintln!("{} on {}: {error:#}", program.source, target.name);
        }
        ended.is_ok()
    };
    let ended = process::side_by_side(PROGRAMS, passes);
    let passed = ended.iter().filter(|passed| **passed).count();
    Ok((passed as u64, (ended.len() - passed) as u64))
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
    let built = folder.join("program");
    let mut compile = process::command(&target.tool(compiler));
    compile
        .args([
            standard, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I",
        ])
        .arg(&folder)
        .args([
            "-I",
            "crates/capi/include",
            "-I",
            "crates/capi/tests/programs",
        ])
        .arg(package.join("tests/programs").join(program.source))
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
