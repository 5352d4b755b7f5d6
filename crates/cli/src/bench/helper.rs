//! What makes a program an application.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{Outcome, print};

/// Print the file that makes a C or Python program an application
///
/// The file is complete; its beginning shows how it is used. Rust programs use the
/// crate milieu-bench.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu bench helper python > milieu_bench.py
  milieu bench helper c > milieu_bench.h")]
pub(crate) struct Helper {
    /// The language of the program
    language: Language,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    C,
    Python,
}

impl Helper {
    pub(super) fn run(&self) -> Outcome {
        print(match self.language {
            Language::C => milieu_bench::HELPER_C,
            Language::Python => milieu_bench::HELPER_PYTHON,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
