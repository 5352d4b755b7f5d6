//! The diagnostics of one text.

use milieu_diagnostics::Diagnostic;

/// After so many diagnostics the rest is only counted: a file of another format
/// must not cost more memory than its text.
const DIAGNOSTICS_MAX: usize = 100;

/// What is wrong with a text, in the order of the text as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
    more: usize,
}

impl Report {
    pub fn add(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic());
        } else {
            self.more += 1;
        }
    }

    /// All diagnostics, with a last one that counts those that were not kept.
    pub fn finish(mut self, format: &str) -> Vec<Diagnostic> {
        if self.more > 0 {
            let message = format!("{} more mistakes", self.more);
            let help = format!("make sure that this is a {format} file");
            self.diagnostics.push(Diagnostic::error(message).help(help));
        }
        self.diagnostics
    }
}
