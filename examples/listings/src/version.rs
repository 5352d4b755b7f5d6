//! III-G: `main`, which takes its values from the command line and from files,
//! and gets an environment in which nothing can be assigned.
//!
//! One value is read-only in the specification, in whatever environment:
//!
//! ```compile_fail,E0277
//! use listings::specifications::version::{Environment, at};
//! use milieu::Context;
//!
//! fn assign(cx: &mut Context<Environment>) {
//!     cx.set::<at::version>(true);
//! }
//! ```

use std::ffi::OsString;

use milieu::{Context, ContextOptions, Error, Milieu, ReadOnly, Start, keys::options::Program};

use crate::specifications::version::{Environment, at};

/// The listing, with the arguments handed in. A real `main` calls
/// `command_line::<Environment>(program)`, which takes those of the process,
/// and leaves out `files`, which here keeps this machine's out of it.
fn main(argv: &[&str]) -> Result<String, Error> {
    let program = Program::new("version").description("Says which version it is.");
    let arguments = argv.iter().map(OsString::from).collect();
    let milieu = Milieu::builder("version")
        .files(Vec::new())
        .arguments::<Environment>(program, arguments, |_| None)
        .start()?;
    let milieu = match milieu {
        Start::Run(milieu) => milieu,
        Start::Say(text) => return Ok(text),
    };
    let env: Context<Environment, ReadOnly> = milieu.context_with(ContextOptions::new())?;
    Ok(match env.origin::<at::version>() {
        Some(origin) => format!("version is {}, by {origin}", env.version),
        None => format!("version is {}", env.version),
    })
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    assert_eq!(main(&[])?, "version is false");
    let help = main(&["--help"])?;
    assert!(help.starts_with("Usage: version [OPTION]...\n"), "{help}");
    let error = main(&["--verison"]).err().map(|error| error.to_string());
    assert!(error.is_some_and(|text| text.contains("--verison")));
    main(&["-V"])
}
