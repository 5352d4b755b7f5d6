//! `cargo xtask sizes`: what the library weighs, by what is left out of it.
//!
//! For each set of features three figures: the static library without debugging
//! information, the shared library that is linked from it, and a C++ program,
//! stripped. What the last one adds to the same program over a Rust library that
//! does next to nothing is what Milieu costs: the rest is the standard library
//! of Rust, which every Rust library brings.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use milieu_diagnostics::Source;
use milieu_spec::{Settings, backend, generate};

use crate::metadata::target_directory;
use crate::process;
use crate::table::{self, Align};
use crate::targets::{self, Target};

/// Measure the libraries, and programs that link them, by set of features.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these sets of features.
    #[arg(value_name = "SET")]
    sets: Vec<String>,
    /// For this machine: amd64, i386, armhf, arm64, riscv64.
    #[arg(long, default_value_t = here(), value_name = "MACHINE")]
    target: String,
    /// Print one JSON object a line; `value` is what the program grows by, in bytes.
    #[arg(long)]
    json: bool,
    /// Print the sets of features.
    #[arg(long)]
    list: bool,
}

fn here() -> String {
    let here = targets::ALL.iter().find(|target| target.is_here());
    here.map_or("amd64", |target| target.name).to_owned()
}

/// Features that are built together.
struct Set {
    name: &'static str,
    /// Of `milieu-capi`.
    features: &'static str,
    /// Whether the program has its settings in files.
    files: bool,
}

const SETS: &[Set] = &[
    Set {
        name: "context",
        features: "",
        files: false,
    },
    Set {
        name: "context-floats",
        features: "floats",
        files: false,
    },
    Set {
        name: "context-checks",
        features: "checks",
        files: false,
    },
    Set {
        name: "store",
        features: "store",
        files: true,
    },
    Set {
        name: "store-history",
        features: "history,store",
        files: true,
    },
    Set {
        name: "store-options",
        features: "options,store",
        files: true,
    },
    Set {
        name: "store-formats",
        features: "formats,store",
        files: true,
    },
    Set {
        name: "all",
        features: "default",
        files: true,
    },
];

/// Sizes of others, in bytes: amd64, armhf.
const OTHERS: &[(&str, [u64; 2])] = &[
    ("libelektra-core 0.8.10, the paper's", [109_912, 98_456]),
    ("libelektra-ini, the paper's", [22_760, 0]),
    ("libelektra-resolver, the paper's", [47_560, 0]),
    ("libxml2 2.8.0, the paper's", [1_436_984, 1_196_108]),
];

/// What was measured of a set, in bytes.
struct Sizes {
    set: &'static str,
    library_static: u64,
    library_shared: u64,
    program: u64,
    /// What the program is larger by than the trivial one.
    added: u64,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let target = targets::named(&arguments.target)?;
    let known = |name: &String| SETS.iter().any(|set| set.name == *name);
    if let Some(unknown) = arguments.sets.iter().find(|name| !known(name)) {
        let names: Vec<&str> = SETS.iter().map(|set| set.name).collect();
        bail!(
            "there is no set `{unknown}`; there are {}",
            names.join(", ")
        );
    }
    if arguments.list {
        for set in SETS {
            process::print(&format!("{:<16}{}\n", set.name, set.features))?;
        }
        return Ok(true);
    }
    if let Some((lacks, remedy)) = target.lacks(true) {
        bail!("{lacks}; this line does it: {remedy}");
    }
    let chosen = |set: &&Set| {
        let sets = &arguments.sets;
        sets.is_empty() || sets.iter().any(|name| name == set.name)
    };
    let workshop = Workshop::new(target)?;
    let trivial = workshop.trivial()?;
    let mut all = Vec::new();
    for set in SETS.iter().filter(chosen) {
        eprintln!("measuring: {} on {}", set.name, target.name);
        let sizes = workshop.measure(set, trivial)?;
        if arguments.json {
            process::print(&format!("{}\n", sizes.json(target)))?;
        }
        all.push(sizes);
    }
    if !arguments.json {
        process::print(&shown(target, trivial, &all))?;
    }
    Ok(true)
}

impl Sizes {
    fn json(&self, target: &Target) -> serde_json::Value {
        serde_json::json!({
            "name": self.set,
            "target": target.name,
            "value": self.added,
            "program": self.program,
            "static": self.library_static,
            "shared": self.library_shared,
        })
    }
}

fn shown(target: &Target, trivial: u64, all: &[Sizes]) -> String {
    let columns = [
        (target.name, Align::Left),
        ("adds", Align::Right),
        ("program", Align::Right),
        ("shared", Align::Right),
        ("static", Align::Right),
    ];
    let bytes = |bytes: u64| match bytes {
        0 => String::new(),
        #[allow(clippy::cast_precision_loss)] // Nobody has libraries of petabytes.
        bytes => table::number(bytes as f64),
    };
    let mut rows: Vec<Vec<String>> = all
        .iter()
        .map(|sizes| {
            vec![
                sizes.set.to_owned(),
                bytes(sizes.added),
                bytes(sizes.program),
                bytes(sizes.library_shared),
                bytes(sizes.library_static),
            ]
        })
        .collect();
    let row = |name: &str, program, shared| {
        vec![name.into(), String::new(), bytes(program), bytes(shared)]
    };
    rows.push(row("trivial", trivial, 0));
    let others = OTHERS.iter().filter_map(|(name, [amd64, armhf])| {
        let size = match target.name {
            "amd64" => *amd64,
            "armhf" => *armhf,
            _ => 0,
        };
        (size > 0).then(|| row(name, 0, size))
    });
    rows.extend(others);
    table::render(&columns, &rows)
}

/// Where things are built for one target.
struct Workshop {
    target: &'static Target,
    folder: PathBuf,
}

impl Workshop {
    fn new(target: &'static Target) -> Result<Self> {
        let folder = process::scratch("sizes")?.join(target.name);
        std::fs::create_dir_all(&folder)?;
        let file = process::root().join("xtask/sizes/station.ini");
        let source = Source {
            name: "station.ini".into(),
            text: std::fs::read_to_string(file)?,
        };
        let backend = backend::by_name("cpp").context("there is a back end for C++")?;
        let output = generate(&source, backend, &Settings::new("station"));
        for file in output.files {
            std::fs::write(folder.join(&file.name), &file.text)?;
        }
        Ok(Workshop { target, folder })
    }

    /// The size of the program over a library that does next to nothing.
    fn trivial(&self) -> Result<u64> {
        let library = self.folder.join("libtrivial.a");
        let mut rustc = process::command("rustc");
        rustc
            .args(["--crate-type=staticlib", "--edition=2024", "-Copt-level=z"])
            .args(["-Clto=fat", "-Ccodegen-units=1", "-Cpanic=unwind"])
            .args(["--target", self.target.triple, "-o"])
            .arg(&library)
            .arg("xtask/sizes/trivial.rs");
        process::output(rustc)?;
        self.program("trivial.cpp", &library, &[], "trivial")
    }

    fn measure(&self, set: &Set, trivial: u64) -> Result<Sizes> {
        let library = self.library(set)?;
        let flags: &[&str] = if set.files { &["-DFILES"] } else { &[] };
        let program = self.program("context.cpp", &library, flags, set.name)?;
        if !set.files {
            self.try_out(set)?;
        }
        let shared = self.folder.join(format!("libmilieu-{}.so", set.name));
        self.link_shared(&library, &shared)?;
        Ok(Sizes {
            set: set.name,
            library_static: size(&library)?,
            library_shared: size(&shared)?,
            program,
            added: program.saturating_sub(trivial),
        })
    }

    /// A program that does not work has no size. Those with files would write
    /// into the settings of whoever measures.
    fn try_out(&self, set: &Set) -> Result<()> {
        let said = process::output(self.target.start(&self.folder.join(set.name)));
        match &*said? {
            "tampered with\nen 65\n" => Ok(()),
            other => bail!("the program of the set `{}` says {other:?}", set.name),
        }
    }

    /// The static library with these features, without debugging information.
    fn library(&self, set: &Set) -> Result<PathBuf> {
        let mut cargo = process::cargo(["rustc", "-p", "milieu-capi", "--profile", "small"]);
        // Together with a library for Rust there would be no optimization over crates.
        cargo.args([
            "--lib",
            "--crate-type",
            "staticlib",
            "--no-default-features",
        ]);
        cargo.args(["--features", set.features]);
        self.target.build_with(&mut cargo);
        process::output(cargo)?;
        let folder = target_directory()?.join(self.target.folder());
        let built = folder.join("small/libmilieu_capi.a");
        let library = self.folder.join(format!("libmilieu-{}.a", set.name));
        let mut strip = process::command(&self.target.tool("strip"));
        strip.args(["--strip-debug", "-o"]).args([&library, &built]);
        process::output(strip)?;
        Ok(library)
    }

    fn program(&self, source: &str, library: &Path, flags: &[&str], name: &str) -> Result<u64> {
        let program = self.folder.join(name);
        let mut compiler = self.compiler();
        compiler
            .args([
                "-std=c++17",
                "-Os",
                "-ffunction-sections",
                "-fdata-sections",
            ])
            .args(flags)
            .args(["-I", "crates/capi/include", "-I"])
            .arg(&self.folder)
            .arg(Path::new("xtask/sizes").join(source))
            .arg(library);
        self.link(compiler, &program)?;
        size(&program)
    }

    /// The shared library, linked as it is installed.
    fn link_shared(&self, library: &Path, shared: &Path) -> Result<()> {
        let mut compiler = self.compiler();
        compiler
            .args(["-shared", "-Wl,--whole-archive"])
            .arg(library)
            .args(["-Wl,--no-whole-archive", "-Wl,-z,nodelete"])
            .arg("-Wl,--version-script=crates/capi/milieu.map");
        self.link(compiler, shared)
    }

    fn compiler(&self) -> Command {
        process::command(&self.target.tool("g++"))
    }

    fn link(&self, mut compiler: Command, output: &Path) -> Result<()> {
        compiler
            .args(["-Wl,--gc-sections", "-pthread", "-ldl", "-lm", "-o"])
            .arg(output);
        process::output(compiler)?;
        let mut strip = process::command(&self.target.tool("strip"));
        strip.arg(output);
        process::output(strip).map(drop)
    }
}

fn size(file: &Path) -> Result<u64> {
    let metadata = std::fs::metadata(file);
    let metadata = metadata.with_context(|| format!("{} was not made", file.display()))?;
    Ok(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_papers_figures_where_there_are_some() {
        let sizes = [Sizes {
            set: "context",
            library_static: 3,
            library_shared: 2000,
            program: 1001,
            added: 1,
        }];
        let text = shown(targets::named("armhf").unwrap(), 1000, &sizes);
        assert!(text.contains("context"), "{text}");
        assert!(
            text.contains("98,456") && text.contains("1,196,108"),
            "{text}"
        );
        assert!(!text.contains("resolver"), "{text}");
    }
}
