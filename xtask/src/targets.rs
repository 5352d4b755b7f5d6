//! The machines that Milieu is built for, and what builds and runs for them here.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;

/// A kind of machine, named as Debian names it.
pub struct Target {
    /// `armhf`.
    pub name: &'static str,
    /// As Rust calls it.
    pub triple: &'static str,
    /// Before the names of compilers and tools, and of the folder with the C library.
    pub tools: &'static str,
    /// The emulator of a process, where this machine cannot run the program itself.
    pub emulator: &'static str,
    /// Debian's packages: C, C++.
    pub packages: &'static str,
}

/// Every machine, this one's kind first.
pub const ALL: &[Target] = &[
    Target {
        name: "amd64",
        triple: "x86_64-unknown-linux-gnu",
        tools: "x86_64-linux-gnu",
        emulator: "qemu-x86_64",
        packages: "gcc-x86-64-linux-gnu g++-x86-64-linux-gnu",
    },
    Target {
        name: "i386",
        triple: "i686-unknown-linux-gnu",
        tools: "i686-linux-gnu",
        emulator: "qemu-i386",
        packages: "gcc-i686-linux-gnu g++-i686-linux-gnu",
    },
    Target {
        name: "armhf",
        triple: "armv7-unknown-linux-gnueabihf",
        tools: "arm-linux-gnueabihf",
        emulator: "qemu-arm",
        packages: "gcc-arm-linux-gnueabihf g++-arm-linux-gnueabihf",
    },
    Target {
        name: "arm64",
        triple: "aarch64-unknown-linux-gnu",
        tools: "aarch64-linux-gnu",
        emulator: "qemu-aarch64",
        packages: "gcc-aarch64-linux-gnu g++-aarch64-linux-gnu",
    },
    Target {
        name: "riscv64",
        triple: "riscv64gc-unknown-linux-gnu",
        tools: "riscv64-linux-gnu",
        emulator: "qemu-riscv64",
        packages: "gcc-riscv64-linux-gnu g++-riscv64-linux-gnu",
    },
];

/// Has an emulator take memory from the C library and not from GLib's own allocator. In
/// a child of `fork`, which is what starting a program becomes under qemu 7.2, a
/// lock of that one is held for good if another thread had it; the C library's are free.
const ALLOCATOR: (&str, &str) = ("G_SLICE", "always-malloc");

/// The target of this name, Debian's or Rust's.
pub fn named(name: &str) -> Result<&'static Target> {
    let is_it = |target: &&Target| target.name == name || target.triple == name;
    match ALL.iter().find(is_it) {
        Some(target) => Ok(target),
        None => {
            let known: Vec<&str> = ALL.iter().map(|target| target.name).collect();
            bail!(
                "there is no target `{name}`; there are {}",
                known.join(", ")
            )
        }
    }
}

impl Target {
    /// Whether it is the kind of machine that this program was built for.
    pub fn is_here(&self) -> bool {
        let here = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "x86" => "i386",
            "arm" => "armhf",
            "aarch64" => "arm64",
            other => other,
        };
        self.name == here
    }

    /// One of the C tools for it: `gcc`, `g++`, `strip`.
    pub fn tool(&self, tool: &str) -> String {
        match self.is_here() {
            true => tool.to_owned(),
            false => format!("{}-{tool}", self.tools),
        }
    }

    /// Whether programs for it run here as they are. An x86-64 kernel runs those
    /// for i386 if it was built to, and if their C library is found.
    pub fn runs_here(&self) -> bool {
        let of_other = || {
            let mut loader = process::command("/lib/ld-linux.so.2");
            loader.arg("--version");
            // Rust's programs want this library besides.
            let unwinder = Path::new("/usr/lib32/libgcc_s.so.1");
            self.name == "i386" && unwinder.exists() && process::succeeds_silently(loader)
        };
        self.is_here() || of_other()
    }

    /// What runs a program for it, before the program; nothing where it runs as it is.
    pub fn runner(&self) -> String {
        match self.runs_here() {
            true => String::new(),
            false => format!("{} -L /usr/{}", self.emulator, self.tools),
        }
    }

    /// A command that runs a program for it.
    pub fn start(&self, program: &Path) -> Command {
        let runner = self.runner();
        let mut words = runner.split_whitespace();
        let Some(emulator) = words.next() else {
            return process::command(&program.to_string_lossy());
        };
        let mut command = process::command(emulator);
        command
            .args(words)
            .arg(program)
            .env(ALLOCATOR.0, ALLOCATOR.1);
        command
    }

    /// Tells Cargo to build for it.
    pub fn build_with(&self, cargo: &mut Command) {
        if self.is_here() {
            return;
        }
        let variable = self.triple.to_uppercase().replace('-', "_");
        cargo
            .args(["--target", self.triple])
            .env(format!("CARGO_TARGET_{variable}_LINKER"), self.tool("gcc"));
        if !self.runs_here() {
            cargo
                .env(format!("CARGO_TARGET_{variable}_RUNNER"), self.runner())
                // For programs that others start.
                .env("QEMU_LD_PREFIX", format!("/usr/{}", self.tools))
                .env(ALLOCATOR.0, ALLOCATOR.1);
        }
    }

    /// What keeps programs for it from starting others for it, with the command that
    /// mends it: the kernel has to know the emulator.
    pub fn lacks_start(&self) -> Option<(String, String)> {
        let known = Path::new("/proc/sys/fs/binfmt_misc").join(self.emulator);
        if self.runs_here() || known.exists() {
            return None;
        }
        Some((
            format!("the kernel does not start {} for programs", self.emulator),
            "sudo apt-get install -y --no-install-recommends qemu-user-binfmt binfmt-support && \
             sudo mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && \
             sudo update-binfmts --enable"
                .to_owned(),
        ))
    }

    /// The folder of the build's output that has what is for it.
    pub fn folder(&self) -> &'static str {
        match self.is_here() {
            true => "",
            false => self.triple,
        }
    }

    /// What is missing here to build for it, and to run that if `to_run`, with
    /// the command that installs it.
    pub fn lacks(&self, to_run: bool) -> Option<(String, String)> {
        if self.is_here() {
            return None;
        }
        let mut rustc = process::command("rustc");
        rustc.args(["--print", "target-libdir", "--target", self.triple]);
        let library = process::output(rustc).unwrap_or_default();
        if !Path::new(library.trim()).is_dir() {
            let lacks = format!("the standard library for {} is not installed", self.name);
            return Some((lacks, format!("rustup target add {}", self.triple)));
        }
        let compiler = |tool| !process::has_program(&self.tool(tool));
        let missing = match () {
            () if compiler("gcc") || compiler("g++") => self.packages,
            () if to_run && !self.runs_here() && !process::has_program(self.emulator) => {
                "qemu-user"
            }
            () => return None,
        };
        Some((
            format!("{missing} is not installed"),
            format!("sudo apt-get install -y --no-install-recommends {missing}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_known_by_both_names() {
        assert_eq!(
            named("armhf").unwrap().triple,
            "armv7-unknown-linux-gnueabihf"
        );
        assert_eq!(
            named("riscv64gc-unknown-linux-gnu").unwrap().name,
            "riscv64"
        );
        let error = named("arm").err().unwrap().to_string();
        assert!(error.contains("there are amd64, i386, armhf"), "{error}");
    }

    #[test]
    fn cargo_is_told_compiler_and_emulator() {
        let other = ALL.iter().find(|target| !target.is_here()).unwrap();
        let mut cargo = process::cargo(["test"]);
        other.build_with(&mut cargo);
        let shown = process::display(&cargo);
        assert!(
            shown.contains(&format!("_LINKER={}-gcc", other.tools)),
            "{shown}"
        );
        assert!(
            shown.contains(&format!("--target {}", other.triple)),
            "{shown}"
        );
    }

    #[test]
    fn emulators_take_no_memory_from_behind_a_lock_that_a_fork_leaves_held() {
        let variable = |command: &Command| {
            let mut variables = command.get_envs();
            variables.any(|(name, value)| {
                name == ALLOCATOR.0 && value.is_some_and(|value| value == ALLOCATOR.1)
            })
        };
        for target in ALL {
            let mut cargo = process::cargo(["test"]);
            target.build_with(&mut cargo);
            let emulated = !target.runs_here();
            assert_eq!(variable(&cargo), emulated, "{}", target.name);
            let started = target.start(Path::new("program"));
            assert_eq!(variable(&started), emulated, "{}", target.name);
        }
    }
}
