//! The C compiler's part: the shared library is linked from the static one.
//!
//! Cargo can make a shared library, too, but not with a version script of ours:
//! rustc hands the linker one of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// What the linker is told of the library, whoever links it.
const FLAGS: &str = "crates/capi/shared.flags";

/// Which symbols are exported, in which version.
const SCRIPT: &str = "crates/capi/milieu.map";

/// The C compiler for a target: the one that was named, else `CC`, else the usual one.
pub fn compiler(named: Option<&str>, target: Option<&str>) -> Result<String> {
    let chosen = match (named, std::env::var("CC"), target) {
        (Some(named), _, _) => named.to_owned(),
        (None, Ok(variable), _) if !variable.is_empty() => variable,
        (None, _, Some(target)) if target != crate::fuzz::host()? => cross_compiler(target),
        (None, _, _) => "cc".to_owned(),
    };
    if !process::has_program(&chosen) {
        bail!("there is no C compiler `{chosen}`; install it, or name one with --cc");
    }
    Ok(chosen)
}

/// What distributions call the compiler for a target of Rust.
fn cross_compiler(target: &str) -> String {
    let mut parts = target.split('-');
    let processor = match parts.next().unwrap_or_default() {
        "i586" => "i686",
        arm if arm.starts_with("arm") => "arm",
        riscv if riscv.starts_with("riscv64") => "riscv64",
        other => other,
    };
    let rest: Vec<&str> = parts.filter(|part| *part != "unknown").collect();
    format!("{processor}-{}-gcc", rest.join("-"))
}

/// The name by which programs ask for the library, as the linker is told.
pub fn soname() -> Result<String> {
    let flags = std::fs::read_to_string(process::root().join(FLAGS))?;
    let name = flags
        .lines()
        .find_map(|line| line.strip_prefix("-Wl,-soname,"));
    Ok(name
        .with_context(|| format!("{FLAGS} has no -soname"))?
        .to_owned())
}

/// Links the shared library from the static one.
pub fn shared(cc: &str, archive: &Path, shared: &Path, system: &[String]) -> Result<()> {
    let mut link = process::command(cc);
    link.arg(format!("@{FLAGS}"))
        .arg(format!("-Wl,--version-script={SCRIPT}"))
        .arg("-o")
        .arg(shared)
        .arg("-Wl,--whole-archive")
        .arg(archive)
        .arg("-Wl,--no-whole-archive")
        .args(system.iter().map(|name| format!("-l{name}")));
    succeed(link)?;
    strip(cc, "--strip-unneeded", shared)
}

/// Removes what linking and running need not, which is larger than all else.
pub fn strip(cc: &str, what: &str, file: &Path) -> Result<()> {
    let mut asked = process::command(cc);
    asked.arg("-print-prog-name=strip");
    let program = process::output(asked)?;
    let mut strip = process::command(program.trim());
    strip.arg(what).arg(file);
    succeed(strip)
}

fn succeed(mut command: Command) -> Result<()> {
    let shown = process::display(&command);
    let output = command
        .output()
        .with_context(|| format!("`{shown}` does not start"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}):\n{said}", output.status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_for_other_machines_have_their_usual_names() {
        for (target, compiler) in [
            ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
            ("armv7-unknown-linux-gnueabihf", "arm-linux-gnueabihf-gcc"),
            ("i686-unknown-linux-gnu", "i686-linux-gnu-gcc"),
            ("riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu-gcc"),
        ] {
            assert_eq!(cross_compiler(target), compiler);
        }
    }

    #[test]
    fn a_compiler_that_is_not_here_is_told_with_the_way_out() {
        let error = compiler(Some("no-such-cc"), None).unwrap_err().to_string();
        assert!(error.contains("`no-such-cc`; install it, or name one with --cc"));
    }

    #[test]
    fn the_shared_library_has_a_name() {
        assert!(soname().unwrap().starts_with("libmilieu.so."));
    }
}
