//! The preload and its header.
//!
//! It stands where programs of its kind look for it: below `lib/milieu`, in the folder
//! that their loader puts in the place of `$LIB`, whose name differs between
//! distributions.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::tree::Staging;
use super::{Arguments, build};
use crate::{process, targets};

const PACKAGE: &str = "milieu-preload";
const FILE: &str = "libmilieu_preload.so";

/// Builds it and lays it out. It has a profile of its own, in which nobody builds it by
/// the way, so it is not taken from where the libraries and the command were built.
pub fn install(arguments: &Arguments, tree: &Staging, cc: &str) -> Result<()> {
    let include = crate::process::root().join("crates/preload/include");
    tree.copy_folder(&include, "include")?;
    let made = build::build_preload(arguments.target.as_deref(), cc, PACKAGE, FILE)?;
    let machine = arguments.target.as_deref();
    let machine = machine.unwrap_or(std::env::consts::ARCH);
    let places = Places::of(machine);
    let folder = arguments.libdir.join("milieu");
    tree.copy(&made, folder.join("lib").join(places.debian).join(FILE))?;
    for (place, target) in places.links() {
        tree.link(&target, folder.join(place))?;
    }
    if machine.starts_with("x86_64") {
        install_small(tree, &folder)?;
    }
    Ok(())
}

/// The one for programs of 32 bits, which run on the same machine; left out where it
/// cannot be built.
fn install_small(tree: &Staging, folder: &Path) -> Result<()> {
    let target = targets::named("i386")?;
    let mut libraries = process::command("rustc");
    libraries.args(["--print", "target-libdir", "--target", target.triple]);
    let libraries = process::output(libraries)?;
    let cc = target.tool("gcc");
    if !Path::new(libraries.trim()).is_dir() || !process::has_program(&cc) {
        eprintln!(
            "note: the preload for programs of 32 bits is left out; it takes `rustup target add \
             {}` and Debian's gcc-{}",
            target.triple, target.tools
        );
        return Ok(());
    }
    let made = build::build_preload(Some(target.triple), &cc, PACKAGE, FILE)?;
    let places = Places::of(target.triple);
    tree.copy(&made, folder.join("lib").join(places.debian).join(FILE))?;
    // What has no folder of its own is the larger one's.
    let [_, (place, to)] = places.links();
    tree.link(&to, folder.join(place))
}

/// What loaders put in the place of `$LIB`.
struct Places {
    /// Below `lib`, as in Debian.
    debian: &'static str,
    /// A folder beside `lib`, where programs of this size are not the only ones.
    beside: &'static str,
}

impl Places {
    fn of(target: &str) -> Places {
        let (debian, beside) = match target.split('-').next().unwrap_or_default() {
            "x86_64" => ("x86_64-linux-gnu", "lib64"),
            "i586" | "i686" | "x86" => ("i386-linux-gnu", "lib32"),
            "aarch64" => ("aarch64-linux-gnu", "lib64"),
            "riscv64gc" | "riscv64" => ("riscv64-linux-gnu", "lib64"),
            _ => ("arm-linux-gnueabihf", "lib32"),
        };
        Places { debian, beside }
    }

    fn links(&self) -> [(PathBuf, String); 2] {
        [
            (
                Path::new("lib").join(FILE),
                format!("{}/{FILE}", self.debian),
            ),
            (
                Path::new(self.beside).join(FILE),
                format!("../lib/{}/{FILE}", self.debian),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_file() {
        for target in [
            "x86_64-unknown-linux-gnu",
            "i686-unknown-linux-gnu",
            "aarch64-unknown-linux-gnu",
            "armv7-unknown-linux-gnueabihf",
            "riscv64gc-unknown-linux-gnu",
        ] {
            let places = Places::of(target);
            let [(short, to_short), (beside, to_beside)] = places.links();
            assert_eq!(short, Path::new("lib/libmilieu_preload.so"));
            assert_eq!(to_short, format!("{}/{FILE}", places.debian));
            assert!(beside.starts_with(places.beside));
            assert_eq!(to_beside, format!("../lib/{}/{FILE}", places.debian));
        }
    }
}
