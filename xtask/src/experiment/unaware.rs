//! Programs that know nothing of Milieu, or only a header of it, in C, and the preload
//! that serves them: what stands in `experiments/PAPER/unaware`.
//!
//! ```text
//! NAME.c      a program: `NAME`, and `NAME-32` for the same machine with 32 bits
//! ```
//!
//! They are linked with the C library alone. `milieu thread run` finds the preload for
//! both as it does where Milieu is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process;

/// What the preload is called.
const PRELOAD: &str = "libmilieu_preload.so";

/// Where `milieu thread run` is told to look for it.
pub const FOLDER_VARIABLE: &str = "MILIEU_PRELOAD_DIR";

/// The same machine with 32 bits, as Rust calls it.
const SMALL_TARGET: &str = "i686-unknown-linux-gnu";

/// A kind of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Machine {
    /// Those of this machine.
    #[serde(rename = "own")]
    Own,
    /// Those of the same with 32 bits.
    #[serde(rename = "32-bit")]
    Small,
}

/// The programs of a machine and the preload for them, or why they cannot be had.
pub type Made = Result<Folders, String>;

/// Where they are.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The programs.
    pub programs: PathBuf,
    /// The preload, in folders that loaders put in the place of `$LIB`.
    pub preload: PathBuf,
}

impl Machine {
    fn compiler(self) -> &'static str {
        match self {
            Machine::Own => "cc",
            Machine::Small => "i686-linux-gnu-gcc",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Machine::Own => "",
            Machine::Small => "-32",
        }
    }

    /// What loaders put in the place of `$LIB`.
    fn places(self) -> Vec<String> {
        match self {
            Machine::Own => {
                let machine = std::env::consts::ARCH;
                vec![format!("lib/{machine}-linux-gnu"), "lib64".into()]
            }
            Machine::Small => vec!["lib/i386-linux-gnu".into(), "lib32".into()],
        }
    }

    /// Why programs of it cannot be built here.
    fn lacks(self) -> Option<String> {
        if self == Machine::Small {
            if !cfg!(target_arch = "x86_64") {
                return Some("programs of 32 bits are those of another machine here".into());
            }
            let mut rustc = process::command("rustc");
            rustc
                .args(["--print", "target-libdir", "--target", SMALL_TARGET])
                .stderr(Stdio::null());
            let library = process::output(rustc).unwrap_or_default();
            if !Path::new(library.trim()).is_dir() {
                return Some(format!("`rustup target add {SMALL_TARGET}` was not run"));
            }
        }
        let compiler = self.compiler();
        (!process::has_program(compiler)).then(|| format!("{compiler} is not installed"))
    }
}

/// Builds the programs in a folder for a machine, and the preload that serves them.
pub fn build(folder: &Path, machine: Machine) -> Result<Made> {
    if let Some(why) = machine.lacks() {
        return Ok(Err(why));
    }
    let paper = folder.parent().and_then(Path::file_name);
    let paper = paper.context("programs of no paper")?.to_string_lossy();
    let programs = process::scratch(&format!("experiments/{paper}/unaware"))?;
    for source in super::native::files(folder, "c")? {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let program = programs.join(format!("{stem}{}", machine.suffix()));
        let mut compiler = process::command(machine.compiler());
        compiler
            .args(["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"])
            .arg("-I")
            .arg(process::root().join("crates/preload/include"))
            .args(["-pthread", "-Wl,--build-id", "-o"])
            .args([&program, &source]);
        if !compiler.status()?.success() {
            bail!("{} does not compile", source.display());
        }
        // It says what it can do, and nothing else, where the kernel executes it.
        if !process::succeeds_silently(Command::new(&program)) {
            let shown = program.display();
            return Ok(Err(format!(
                "{shown} does not run: is there a loader for it?"
            )));
        }
    }
    let preload = programs.join("preload");
    install(machine, &preload)?;
    Ok(Ok(Folders { programs, preload }))
}

/// Builds the preload for a machine and lays it out as it is installed.
fn install(machine: Machine, folder: &Path) -> Result<()> {
    let mut cargo = process::cargo([
        "build",
        "-q",
        "--profile",
        "preload",
        "-p",
        "milieu-preload",
    ]);
    let mut made = crate::metadata::target_directory()?;
    if machine == Machine::Small {
        cargo.args(["--target", SMALL_TARGET]);
        // The system's own has no libraries for it, unless somebody asked for them.
        process::link_with(&mut cargo, SMALL_TARGET, machine.compiler());
        made.push(SMALL_TARGET);
    }
    if !cargo.status()?.success() {
        bail!("the preload does not build");
    }
    for place in machine.places() {
        let place = folder.join(place);
        std::fs::create_dir_all(&place)?;
        // Aside first: programs that still run have the old one mapped.
        let (new, there) = (place.join("new"), place.join(PRELOAD));
        std::fs::copy(made.join("preload").join(PRELOAD), &new)?;
        std::fs::rename(new, there)?;
    }
    Ok(())
}
