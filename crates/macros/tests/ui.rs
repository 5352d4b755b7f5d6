//! What does not compile, and what the compiler says about it.
//!
//! `TRYBUILD=overwrite cargo test -p milieu-macros --test ui` writes the texts
//! anew.

use std::process::Command;

/// The compiler whose words are recorded; another one says the same otherwise.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn mistakes_are_reported_where_they_are() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.expect("the compiler that built this test says its version");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.starts_with(COMPILER) {
        eprintln!("skipped: the texts are those of {COMPILER}x, this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
