//! What the linker is told of the shared object, and what this compiler can do.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(has_naked_functions)");
    if has_naked_functions() {
        println!("cargo:rustc-cfg=has_naked_functions");
    }
    for argument in [
        // Its handlers and the threads that it began are there until the end.
        "-Wl,-z,nodelete",
        // A library that is called for the first time while it is loaded, or in a
        // signal handler, must not wait for the loader.
        "-Wl,-z,now",
        "-Wl,-soname,libmilieu_preload.so",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}

/// Whether functions can be written in assembly whole: since Rust 1.88, on machines for which
/// somebody has done it here.
fn has_naked_functions() -> bool {
    let variable = |name| env::var(name).unwrap_or_default();
    let said = Command::new(variable("RUSTC")).arg("--version").output();
    let version = said.map_or(String::new(), |it| {
        String::from_utf8_lossy(&it.stdout).into_owned()
    });
    // `rustc 1.88.0 (…)`
    let minor = version.split('.').nth(1).and_then(|it| it.parse().ok());
    let machines = ["x86_64", "x86", "aarch64", "riscv64", "arm"];
    minor.is_some_and(|it: u32| it >= 88)
        && machines.contains(&variable("CARGO_CFG_TARGET_ARCH").as_str())
}
