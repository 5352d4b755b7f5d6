//! Flows from one language to another.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use milieu::diagnostics::Source;
use milieu::stream::language::{self, Language};
use milieu::stream::operators;

use super::{Failure, Result, print};

/// Check a file of subscriptions, and write it in another language
///
/// The ending of its name says in which language a file is: .flow, .toml, .xml.
#[derive(Args)]
pub(crate) struct Convert {
    /// The file
    file: PathBuf,
    /// The language to write it in
    #[arg(long, value_enum)]
    to: To,
}

#[derive(Clone, Copy, ValueEnum)]
enum To {
    /// One line a subscription
    Pipeline,
    Toml,
    Xml,
    /// Calls of the builder
    Rust,
}

impl Convert {
    pub(super) fn run(&self) -> Result {
        let shown = self.file.display();
        let Some(from) = Language::of_file(&self.file) else {
            let message = format!("{shown} is in no language that is known");
            return Err(Failure::new(
                message,
                "its name ends with .flow, .toml or .xml",
            ));
        };
        let text = std::fs::read_to_string(&self.file).map_err(|error| {
            Failure::new(
                format!("{shown} cannot be read: {error}"),
                "is the path right?",
            )
        })?;
        let catalogue = operators::catalogue();
        let source = Source::new(shown.to_string(), text);
        let document = from.parse(&source, &catalogue);
        let document = document.map_err(|wrong| Failure::Wrong(source, wrong))?;
        print(&match self.to {
            To::Pipeline => Language::Pipeline.write(&document, &catalogue),
            To::Toml => Language::Toml.write(&document, &catalogue),
            To::Xml => Language::Xml.write(&document, &catalogue),
            To::Rust => language::write_rust(&document, &catalogue),
        })
    }
}
