//! Builds the shared object and programs, and runs these with and without it.

#![allow(dead_code)] // Each test uses its own part.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use milieu_threads::run::LIBRARY;

/// The folder of this package.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for what a test makes.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("preload")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for what the test makes");
    folder
}

/// Says what is not tested, and why.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Whether a program can be started.
pub fn has(program: &str) -> bool {
    let started = Command::new(program).arg("--version").output();
    let is_here = started.is_ok_and(|output| output.status.success());
    if !is_here {
        skipped(&format!("{program} is not installed"));
    }
    is_here
}

/// A kind of programs: their compiler and the shared object for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// That of this test.
    Own,
    /// The same processor with 32 bits.
    Small,
}

impl Machine {
    /// How the C library of this machine calls its folder of libraries, in two ways.
    const LIB: [&'static str; 2] = ["lib", "lib64"];
    const LIB_SMALL: [&'static str; 2] = ["lib32", "lib/i386-linux-gnu"];

    pub fn compiler(self, own: &'static str) -> &'static str {
        match (self, own) {
            (Machine::Own, own) => own,
            (Machine::Small, "g++") => "i686-linux-gnu-g++",
            (Machine::Small, _) => "i686-linux-gnu-gcc",
        }
    }

    /// Builds the shared object; none if that cannot be done here.
    fn build(self) -> Option<PathBuf> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
        let target = target.expect("Cargo's folder");
        let mut cargo = Command::new(env!("CARGO"));
        for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(variable);
        }
        cargo
            .current_dir(package())
            .args(["build", "--profile", "preload", "-p", "milieu-preload"])
            .arg("--target-dir")
            .arg(target);
        let mut made = target.to_owned();
        if self == Machine::Small {
            const TARGET: &str = "i686-unknown-linux-gnu";
            if !cfg!(target_arch = "x86_64") {
                skipped("programs of 32 bits are those of another machine");
                return None;
            }
            let libraries = Command::new("rustc")
                .args(["--print", "target-libdir", "--target", TARGET])
                .output();
            let folder = libraries.ok().map(|it| said(&it.stdout).trim().to_owned());
            if !folder.is_some_and(|it| Path::new(&it).is_dir()) {
                skipped("rustup target add i686-unknown-linux-gnu was not run");
                return None;
            }
            cargo.args(["--target", TARGET]);
            // The system's compiler has no libraries for it, unless somebody asked for them.
            const LINKER: &str = "CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER";
            if std::env::var_os(LINKER).is_none() {
                cargo.env(LINKER, self.compiler("gcc"));
            }
            made.push(TARGET);
        }
        let output = cargo.output().expect("Cargo starts");
        assert!(output.status.success(), "{}", said(&output.stderr));
        Some(made.join("preload").join(LIBRARY))
    }
}

/// What the loader is told to load before a program, of whatever kind that is: `$LIB` is
/// what the program's own loader makes of it. The folder is laid out as it is installed.
pub fn preload() -> &'static str {
    static PRELOAD: OnceLock<String> = OnceLock::new();
    PRELOAD.get_or_init(|| {
        let folder = scratch(&format!("installed-{}", std::process::id()));
        for (machine, names) in [
            (Machine::Own, Machine::LIB),
            (Machine::Small, Machine::LIB_SMALL),
        ] {
            let Some(made) = machine.build() else {
                continue;
            };
            let triple = format!("lib/{}", own_triple());
            let own = (machine == Machine::Own).then_some(triple.as_str());
            for name in names.into_iter().chain(own) {
                let place = folder.join(name);
                fs::create_dir_all(&place).expect("a folder");
                fs::copy(&made, place.join(LIBRARY)).expect("the shared object was built");
            }
        }
        let folder = folder.to_str().expect("a path of letters");
        format!("{folder}/$LIB/{LIBRARY}")
    })
}

/// Whether there is a shared object for programs of 32 bits.
pub fn has_small_preload() -> bool {
    let places = Machine::LIB_SMALL.map(|it| preload().replace("$LIB", it));
    places.iter().any(|it| Path::new(it).exists())
}

/// How Debian calls this machine.
fn own_triple() -> String {
    let libc = match env::consts::ARCH {
        "arm" => "gnueabihf",
        _ => "gnu",
    };
    let processor = match env::consts::ARCH {
        "x86" => "i386",
        other => other,
    };
    format!("{processor}-linux-{libc}")
}

/// The shared object of this machine's programs.
pub fn library() -> PathBuf {
    let triple = format!("lib/{}", own_triple());
    PathBuf::from(preload().replace("$LIB", &triple))
}

pub fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles a program of `tests/programs`; none if the compiler is not here, or cannot.
pub fn compile(compiler: &str, source: &str, into: &Path, flags: &[&str]) -> Option<PathBuf> {
    if !has(compiler) {
        return None;
    }
    let source = package().join("tests/programs").join(source);
    let stem = source.file_stem().expect("a name").to_string_lossy();
    let kind: String = flags
        .iter()
        .filter(|it| !it.contains('/'))
        // What has such a sign is a variable for `env`.
        .map(|it| it.replace('=', "-"))
        .collect();
    let program = into.join(format!("{stem}-{compiler}{kind}"));
    let standard = match source.extension() {
        Some(it) if it == "cpp" => "-std=c++20",
        _ => "-std=c11",
    };
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-O1"])
        .args(["-D_GNU_SOURCE", "-pthread", "-Wl,--build-id", "-I"])
        .arg(package().join("include"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(flags)
        .output()
        .expect("the compiler was found before");
    assert!(
        output.status.success(),
        "{compiler} does not compile {}:\n{}",
        source.display(),
        said(&output.stderr)
    );
    Some(program)
}

/// A program with or without the shared object.
pub struct World<'w> {
    /// Settings, if it is served.
    pub settings: Option<&'w str>,
    /// What is to be loaded before the shared object.
    pub first: &'w str,
    /// What starts the program, with its arguments.
    pub starter: &'w [&'w str],
}

pub const NATIVE: World<'_> = World {
    settings: None,
    first: "",
    starter: &[],
};

impl<'w> World<'w> {
    pub fn served(settings: &'w str) -> World<'w> {
        World {
            settings: Some(settings),
            ..NATIVE
        }
    }

    /// The program, which ends after five minutes if it hangs.
    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["300"]).args(self.starter).arg("env");
        match self.settings {
            Some(settings) => {
                let first = self.first;
                let separator = if first.is_empty() { "" } else { ":" };
                command.arg(format!("LD_PRELOAD={first}{separator}{}", preload()));
                command.arg(format!("MILIEU_THREADS={settings}"));
            }
            None => {
                command.args(["-u", "LD_PRELOAD", "-u", "MILIEU_THREADS"]);
            }
        }
        command.arg(program).args(arguments);
        command
    }

    /// How the program ended, and what it said.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> Run {
        let output = self.command(program, arguments).output();
        Run::of(&output.expect("it starts"))
    }
}

/// How a program ended, and what it said.
#[derive(PartialEq, Eq, Debug)]
pub struct Run {
    pub status: String,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    fn of(output: &Output) -> Run {
        Run {
            status: output.status.to_string(),
            stdout: said(&output.stdout),
            stderr: said(&output.stderr),
        }
    }

    /// What it said, if all is well.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(self.status, "exit status: 0", "{self:?}");
        self.stdout
    }
}

/// The names of a program's cases, which it tells without an argument.
pub fn cases(program: &Path) -> Vec<String> {
    let told = NATIVE.run(program, &[]).well();
    told.lines().map(str::to_owned).collect()
}

/// Runs cases natively and in worlds, and finds them the same.
#[track_caller]
pub fn is_the_same(program: &Path, cases: &[String], worlds: &[World<'_>]) {
    for case in cases {
        let native = NATIVE.run(program, &[case]);
        for world in worlds {
            let served = world.run(program, &[case]);
            assert_eq!(served, native, "{case} with {:?}", world.settings);
        }
    }
}
