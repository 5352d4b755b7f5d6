//! Where output goes, and what is said when it cannot go there.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use milieu_diagnostics::{Diagnostic, Source, render, to_json};

/// The exit code of errors and wrong usage.
pub(crate) const ERROR: u8 = 2;

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    put(text.as_bytes())
}

/// Writes what need not be text to standard output.
pub(crate) fn put(content: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(content)?;
    out.flush()
}

/// Writes diagnostics to standard error, for people or as lines of JSON.
pub(crate) fn report(source: &Source, diagnostics: &[Diagnostic], json: bool) {
    let text = match json {
        true => json_lines(source, diagnostics),
        false => render(source, diagnostics, colour()),
    };
    // Nobody is left to be told that this failed.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Diagnostics as lines of JSON.
pub(crate) fn json_lines(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let line = |diagnostic| to_json(source, diagnostic) + "\n";
    diagnostics.iter().map(line).collect()
}

/// Ends the process as its output went: a reader that has left is no error.
pub(crate) fn finish(result: io::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let diagnostic = Diagnostic::error(format!("cannot write the result: {error}"));
            report(&Source::new("standard output", ""), &[diagnostic], false);
            ExitCode::from(ERROR)
        }
    }
}

/// Whether standard error shows colours and nobody asked to do without (<https://no-color.org>).
fn colour() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stderr().is_terminal() && !unwanted && !dumb
}
