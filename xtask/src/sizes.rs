//! `cargo xtask sizes`: what the library weighs, by what is left out of it.
//!
//! For each set of features three figures: the static library without debugging
//! information, the shared library that is linked from it, and a C++ program,
//! stripped. What the last one adds to the same program over a Rust library that
//! does next to nothing is what Milieu costs: the rest is the standard library
//! of Rust, which every Rust library brings.
//!
//! Libraries are built in several ways, of which one optimizes the standard
//! library along. There the two cannot be told apart, so that both figures are
//! given: above the program with the standard library as it comes, and above one
//! that is built in the same way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    /// Built in this way: unwind, unwind-std, abort, abort-std, silent-std.
    #[arg(long, default_value = BUILDS[0].name, value_name = "BUILD")]
    build: String,
    /// Print one JSON object a line; `value` is what the program grows by, in bytes.
    #[arg(long)]
    json: bool,
    /// Print the sets of features, and the builds.
    #[arg(long)]
    list: bool,
}

fn here() -> String {
    let here = targets::ALL.iter().find(|target| target.is_here());
    here.map_or("amd64", |target| target.name).to_owned()
}

/// A way to build.
struct Build {
    name: &'static str,
    what: &'static str,
    /// Whether panics unwind, and can be caught.
    unwinds: bool,
    /// Whether the standard library is built along, by the nightly toolchain.
    with_std: bool,
    /// Whether panics say what has happened.
    says_why: bool,
}

/// The first has the standard library as it comes, with all that it can do.
const BUILDS: &[Build] = &[
    Build {
        name: "unwind",
        what: "the profile small: panics are caught at every call",
        unwinds: true,
        with_std: false,
        says_why: true,
    },
    Build {
        name: "unwind-std",
        what: "the same as unwind, with the standard library built along (nightly); \
               messages of panics do not name places in the sources, and one while something \
               is dropped, or for more memory than there are addresses, ends the program",
        unwinds: true,
        with_std: true,
        says_why: true,
    },
    Build {
        name: "abort",
        what: "the profile tiny: a panic says why and ends the program",
        unwinds: false,
        with_std: false,
        says_why: true,
    },
    Build {
        name: "abort-std",
        what: "the same as abort, with the standard library built along (nightly)",
        unwinds: false,
        with_std: true,
        says_why: true,
    },
    Build {
        name: "silent-std",
        what: "the same as abort-std, but a panic does not say why",
        unwinds: false,
        with_std: true,
        says_why: false,
    },
];

/// What makes a library small whose panics are caught.
const UNWIND_STD: [&str; 8] = [
    // What is for whoever looks for a defect, and no message of an error has.
    "-Zlocation-detail=none",
    "-Zfmt-debug=shallow",
    // Nothing is done for a panic while something is dropped: it ends the program.
    "-Zpanic-in-drop=abort",
    // With a frame pointer, tables to unwind by need not follow the stack through each
    // function; those that call nobody are short.
    "-Zunstable-options",
    "-Cforce-frame-pointers=non-leaf",
    // A function that is not there has no entry in these tables. With less there are more
    // of them, and with more there is more code.
    "-Cllvm-args=-inline-threshold=8",
    // A function that is known not to unwind needs no entry in them.
    "-Cllvm-args=-force-remove-attribute=uwtable",
    // What is computed on one way to a place is not copied to the others.
    "-Cllvm-args=-enable-pre=false",
];

/// How the names end of those functions that panic where there is no memory, or would have to
/// be more than there are addresses. Whoever makes a list or a text longer calls one: were such
/// a panic to be caught, many functions would have to be unwound for nothing else.
const NO_MEMORY: [&str; 4] = [
    "5alloc18handle_alloc_error",
    "7raw_vec12handle_error",
    "7raw_vec17capacity_overflow",
    "11Fallibility17capacity_overflow",
];

/// What a toolchain has to have for the builds that want it.
const NIGHTLY: &str = "nightly";
const NIGHTLY_REMEDY: &str = "rustup toolchain install nightly --component rust-src";

impl Build {
    fn named(name: &str) -> Result<&'static Build> {
        match BUILDS.iter().find(|build| build.name == name) {
            Some(build) => Ok(build),
            None => {
                let names: Vec<&str> = BUILDS.iter().map(|build| build.name).collect();
                bail!("there is no build `{name}`; there are {}", names.join(", "))
            }
        }
    }

    fn profile(&self) -> &'static str {
        match self.unwinds {
            true => "small",
            false => "tiny",
        }
    }

    /// Cargo, as it has to be called, but for what is to be built. No panic of the functions
    /// `that_end` is caught.
    fn cargo(&self, target: &Target, that_end: &[String]) -> Command {
        let first = ["rustc", "--profile", self.profile(), "--lib"];
        if !self.with_std {
            let mut cargo = process::cargo(first);
            target.build_with(&mut cargo);
            return cargo;
        }
        let mut cargo = process::cargo_of(NIGHTLY, first);
        target.build_with(&mut cargo);
        if target.is_here() {
            cargo.args(["--target", target.triple]);
        }
        if self.unwinds {
            // Named, as the list takes the place of the usual one; what prints backtraces
            // is left out, as it is where nothing unwinds.
            cargo.arg("-Zbuild-std=std,panic_unwind");
            cargo.arg("-Zbuild-std-features=panic-unwind,optimize_for_size");
            let forced = |name| format!("-Cllvm-args=-force-attribute={name}:nounwind");
            let flags = UNWIND_STD.map(str::to_owned).into_iter();
            let flags: Vec<String> = flags.chain(that_end.iter().map(forced)).collect();
            cargo.env("RUSTFLAGS", flags.join(" "));
            return cargo;
        }
        cargo.arg("-Zbuild-std=std,panic_abort");
        cargo.arg("-Zbuild-std-features=optimize_for_size");
        let panics = match self.says_why {
            true => "",
            false => " -Zunstable-options -Cpanic=immediate-abort",
        };
        cargo.env("RUSTFLAGS", format!("-Cforce-unwind-tables=no{panics}"));
        cargo
    }

    /// Where below Cargo's folder the libraries come out.
    fn folder(&self, target: &Target) -> PathBuf {
        let machine = match self.with_std {
            true => target.triple,
            false => target.folder(),
        };
        Path::new(machine).join(self.profile())
    }
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
        name: "store-snippets",
        features: "snippets,store",
        files: true,
    },
    Set {
        name: "streams",
        features: "stream",
        files: true,
    },
    Set {
        name: "streams-links",
        features: "links",
        files: true,
    },
    Set {
        name: "streams-sources",
        features: "sources",
        files: true,
    },
    Set {
        name: "streams-gpio",
        features: "gpio",
        files: true,
    },
    Set {
        name: "streams-http",
        features: "http",
        files: true,
    },
    Set {
        name: "streams-mqtt",
        features: "mqtt",
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
    /// What the program is larger by than the trivial one with the standard
    /// library as it comes; with a standard library that is built along it may
    /// be smaller.
    added: i64,
    /// What it is larger by than the trivial one that is built in the same way.
    added_alike: i64,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let target = targets::named(&arguments.target)?;
    let build = Build::named(&arguments.build)?;
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
        for build in BUILDS {
            process::print(&format!("--build {:<12}{}\n", build.name, build.what))?;
        }
        return Ok(true);
    }
    if let Some((lacks, remedy)) = target.lacks(true) {
        bail!("{lacks}; this line does it: {remedy}");
    }
    if build.with_std && !process::has_source(NIGHTLY) {
        bail!(
            "the build {} wants the standard library as source; this line installs it: \
             {NIGHTLY_REMEDY}",
            build.name
        );
    }
    let chosen = |set: &&Set| {
        let sets = &arguments.sets;
        sets.is_empty() || sets.iter().any(|name| name == set.name)
    };
    let trivial = Workshop::new(target, &BUILDS[0])?.trivial()?;
    let mut workshop = Workshop::new(target, build)?;
    if build.unwinds && build.with_std {
        workshop.that_end = workshop.without_memory(&SETS[0])?;
    }
    let alike = match build.name == BUILDS[0].name {
        true => trivial,
        false => workshop.trivial()?,
    };
    let mut all = Vec::new();
    for set in SETS.iter().filter(chosen) {
        eprintln!("measuring: {} on {}", set.name, target.name);
        let sizes = workshop.measure(set, trivial, alike)?;
        if arguments.json {
            process::print(&format!("{}\n", sizes.json(target, build)))?;
        }
        all.push(sizes);
    }
    if !arguments.json {
        process::print(&shown(target, trivial, alike, &all))?;
    }
    Ok(true)
}

impl Sizes {
    fn json(&self, target: &Target, build: &Build) -> serde_json::Value {
        serde_json::json!({
            "name": self.set,
            "target": target.name,
            "build": build.name,
            "value": self.added,
            "alike": self.added_alike,
            "program": self.program,
            "static": self.library_static,
            "shared": self.library_shared,
        })
    }
}

fn shown(target: &Target, trivial: u64, alike: u64, all: &[Sizes]) -> String {
    let columns = [
        (target.name, Align::Left),
        ("adds", Align::Right),
        ("alike", Align::Right),
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
                difference(sizes.added),
                difference(sizes.added_alike),
                bytes(sizes.program),
                bytes(sizes.library_shared),
                bytes(sizes.library_static),
            ]
        })
        .collect();
    let row = |name: &str, program, shared| {
        let none = String::new();
        vec![
            name.into(),
            none.clone(),
            none,
            bytes(program),
            bytes(shared),
        ]
    };
    rows.push(row("trivial", trivial, 0));
    if alike != trivial {
        rows.push(row("trivial, built alike", alike, 0));
    }
    let others = OTHERS.iter().filter_map(|(name, [amd64, armhf])| {
        let size = match target.name {
            "amd64" => *amd64,
            "armhf" => *armhf,
            _ => 0,
        };
        (size > 0).then(|| row(name, 0, size))
    });
    rows.extend(others);
    if let Some((name, size)) = installed(target) {
        rows.push(row(&format!("{name}, as it is installed here"), 0, size));
    }
    table::render(&columns, &rows)
}

/// The library of others that is installed, and its size: distributions strip it.
fn installed(target: &Target) -> Option<(String, u64)> {
    let folder = Path::new("/usr/lib").join(target.tools);
    let file = folder.join("libxml2.so.2").canonicalize().ok()?;
    let size = std::fs::metadata(&file).ok()?.len();
    Some((file.file_name()?.to_str()?.to_owned(), size))
}

fn above(program: u64, trivial: u64) -> i64 {
    let signed = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    signed(program) - signed(trivial)
}

#[allow(clippy::cast_precision_loss)] // As for libraries, above.
fn difference(bytes: i64) -> String {
    table::number(bytes as f64)
}

/// Where things are built for one target, in one way.
struct Workshop {
    target: &'static Target,
    build: &'static Build,
    folder: PathBuf,
    /// Functions whose panics end the program, as the linker calls them.
    that_end: Vec<String>,
}

impl Workshop {
    fn new(target: &'static Target, build: &'static Build) -> Result<Self> {
        let folder = process::scratch("sizes")?
            .join(target.name)
            .join(build.name);
        std::fs::create_dir_all(&folder)?;
        generate_into(&folder, "xtask/sizes/station.ini")?;
        Ok(Workshop {
            target,
            build,
            folder,
            that_end: Vec::new(),
        })
    }

    /// The functions of [`NO_MEMORY`]. What they are called differs from compiler to compiler
    /// and is in a library that was built before.
    fn without_memory(&self, set: &Set) -> Result<Vec<String>> {
        let mut nm = process::command(&self.target.tool("nm"));
        nm.args(["--defined-only", "--format=just-symbols"]);
        nm.arg(self.library(set)?);
        let names = process::output(nm)?;
        let names: Vec<String> = names
            .lines()
            .filter(|name| NO_MEMORY.iter().any(|end| name.ends_with(end)))
            .map(str::to_owned)
            .collect();
        match names.is_empty() {
            true => bail!("this compiler has other names for functions that run out of memory"),
            false => Ok(names),
        }
    }

    /// The size of the program over a library that does next to nothing.
    fn trivial(&self) -> Result<u64> {
        let library = self.folder.join("libtrivial.a");
        let source = process::root().join("xtask/sizes/trivial.rs");
        let package = self.folder.join("trivial");
        std::fs::create_dir_all(&package)?;
        let manifest = package.join("Cargo.toml");
        std::fs::write(&manifest, trivial_manifest(&source))?;
        let mut cargo = self.build.cargo(self.target, &self.that_end);
        let output = package.join("target");
        cargo.arg("--manifest-path").arg(&manifest);
        cargo.arg("--target-dir").arg(&output);
        process::output(cargo)?;
        let built = output.join(self.build.folder(self.target));
        self.strip(&built.join("libtrivial.a"), &library)?;
        let bytes = self.program("trivial.cpp", &library, &[], "trivial-program")?;
        if self.build.unwinds {
            self.try_panic()?;
        }
        Ok(bytes)
    }

    fn measure(&self, set: &Set, trivial: u64, alike: u64) -> Result<Sizes> {
        let library = self.library(set)?;
        let flags: &[&str] = if set.files { &["-DFILES"] } else { &[] };
        let program = self.program("context.cpp", &library, flags, set.name)?;
        if !set.files {
            self.try_out(set)?;
        }
        if set.features == "default" && self.build.name != BUILDS[0].name {
            self.try_failures(&library)?;
        }
        let shared = self.folder.join(format!("libmilieu-{}.so", set.name));
        self.link_shared(&library, &shared)?;
        Ok(Sizes {
            set: set.name,
            library_static: size(&library)?,
            library_shared: size(&shared)?,
            program,
            added: above(program, trivial),
            added_alike: above(program, alike),
        })
    }

    /// Where panics are to be caught, the trivial program does so: it divides by zero.
    fn try_panic(&self) -> Result<()> {
        let mut program = self.target.start(&self.folder.join("trivial-program"));
        program.stderr(Stdio::null());
        match &*process::output(program)? {
            "0\n" => Ok(()),
            other => bail!(
                "the build {} does not catch a panic: {other:?}",
                self.build.name
            ),
        }
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

    /// Callbacks that fail are heard of where nothing unwinds as they are where
    /// something does: the same program passes, which throws out of all of them.
    fn try_failures(&self, library: &Path) -> Result<()> {
        let programs = "crates/capi/tests/programs";
        let folder = self.folder.join("failures");
        let files = folder.join("files");
        if files.exists() {
            std::fs::remove_dir_all(&files)?;
        }
        std::fs::create_dir_all(&files)?;
        generate_into(&folder, &format!("{programs}/station.ini"))?;
        let mut compiler = self.compiler();
        compiler
            .args(["-std=c++17", "-I", "crates/capi/include", "-I"])
            .arg(&folder)
            .args(["-I", programs])
            .arg(Path::new(programs).join("context.cpp"))
            .arg(library);
        let program = folder.join("context");
        self.link(compiler, &program)?;
        let mut started = self.target.start(&program);
        started.arg(files);
        process::output(started).map(drop)
    }

    /// The static library with these features, without debugging information.
    fn library(&self, set: &Set) -> Result<PathBuf> {
        let mut cargo = self.build.cargo(self.target, &self.that_end);
        // Together with a library for Rust there would be no optimization over crates.
        cargo.args(["-p", "milieu-capi", "--crate-type", "staticlib"]);
        cargo.args(["--no-default-features", "--features", set.features]);
        process::output(cargo)?;
        let folder = target_directory()?.join(self.build.folder(self.target));
        let library = self.folder.join(format!("libmilieu-{}.a", set.name));
        self.strip(&folder.join("libmilieu_capi.a"), &library)?;
        Ok(library)
    }

    /// Takes debugging information out of a library and, where nothing unwinds,
    /// the tables for that, which the compiler makes as long as parts of the
    /// standard library have debugging information.
    fn strip(&self, built: &Path, library: &Path) -> Result<()> {
        let mut objcopy = process::command(&self.target.tool("objcopy"));
        objcopy.arg("--strip-debug");
        if !self.build.unwinds {
            objcopy.arg("--wildcard");
            objcopy.args(TABLES.iter().flat_map(|name| ["--remove-section", name]));
        }
        objcopy.args([built, library]);
        process::output(objcopy).map(drop)
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

/// Writes what a specification generates for C++ into a folder.
fn generate_into(folder: &Path, specification: &str) -> Result<()> {
    let source = Source {
        name: specification.into(),
        text: std::fs::read_to_string(process::root().join(specification))?,
    };
    let backend = backend::by_name("cpp").context("there is a back end for C++")?;
    let output = generate(&source, backend, &Settings::new("station"));
    for file in output.files {
        std::fs::write(folder.join(&file.name), &file.text)?;
    }
    Ok(())
}

/// What there is to unwind by, of x86 and ARM, and the relocations of that.
const TABLES: &[&str] = &[
    ".eh_frame*",
    ".gcc_except_table*",
    ".ARM.ex*",
    ".rel*.eh_frame*",
    ".rel*.gcc_except_table*",
    ".rel.ARM.ex*",
];

/// A package of its own, so that Cargo can build the standard library along.
fn trivial_manifest(source: &Path) -> String {
    format!(
        "[package]\nname = \"trivial\"\nedition = \"2024\"\n\n\
         [lib]\npath = {source:?}\ncrate-type = [\"staticlib\"]\n\n\
         [profile.small]\ninherits = \"release\"\nopt-level = \"z\"\nlto = \"fat\"\n\
         codegen-units = 1\n\n\
         [profile.tiny]\ninherits = \"small\"\npanic = \"abort\"\n\n\
         [workspace]\n"
    )
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
            added_alike: -7,
        }];
        let text = shown(targets::named("armhf").unwrap(), 1000, 1008, &sizes);
        assert!(text.contains("context"), "{text}");
        assert!(
            text.contains("98,456") && text.contains("1,196,108"),
            "{text}"
        );
        assert!(!text.contains("resolver"), "{text}");
        assert!(
            text.contains("built alike") && text.contains("-7"),
            "{text}"
        );
    }
}
