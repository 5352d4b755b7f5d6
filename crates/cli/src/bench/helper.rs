//! What makes a program an application, or is a report.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{Outcome, print};

/// Print a file that makes a program an application, or is a report
///
/// c and python make a program an application; Rust programs use the crate
/// milieu-bench. pgfplots is a report for `milieu bench report --with`: figures
/// for LaTeX. Each file is complete; its beginning shows how it is used.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu bench helper python > milieu_bench.py
  milieu bench helper c > milieu_bench.h
  milieu bench helper pgfplots > milieu_pgfplots.py && chmod +x milieu_pgfplots.py")]
pub(crate) struct Helper {
    /// The language of the program, or the report
    file: File,
}

#[derive(Clone, Copy, ValueEnum)]
enum File {
    C,
    Python,
    Pgfplots,
}

impl Helper {
    pub(super) fn run(&self) -> Outcome {
        print(match self.file {
            File::C => milieu_bench::HELPER_C,
            File::Python => milieu_bench::HELPER_PYTHON,
            File::Pgfplots => milieu_bench::HELPER_PGFPLOTS,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
