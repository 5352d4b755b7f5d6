//! The linker that Rust brings along: programs with Milieu's libraries as they are
//! without optimization are linked in a fraction of the time that the system's takes.
//!
//! Tests of other packages have this file, too.

use std::path::Path;
use std::process::Command;

/// What tells a compiler of C to link with it. Nothing, where it is not.
pub fn fast() -> Vec<String> {
    let asked = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output();
    let said = asked.map_or_else(|_| Vec::new(), |it| it.stdout);
    let libraries = String::from_utf8_lossy(&said);
    let folder = Path::new(libraries.trim()).with_file_name("bin/gcc-ld");
    match folder.join("ld.lld").exists() {
        true => vec![format!("-B{}", folder.display()), "-fuse-ld=lld".to_owned()],
        false => Vec::new(),
    }
}
