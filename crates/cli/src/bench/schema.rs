//! Schemas of descriptions and results.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{Outcome, print};

/// Print a schema of descriptions or results
///
/// Editors complete and check descriptions with it, and other programs know what
/// a result has.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu bench schema json > description.json      # for descriptions in TOML
  milieu bench schema json --result > result.json
  milieu bench schema xml > test-group.xsd         # for both
  xmllint --noout --schema test-group.xsd results.xml")]
pub(crate) struct Schema {
    /// The language of the schema: JSON Schema for TOML and JSON, XML Schema for XML
    language: Language,
    /// The schema of results; that of XML has both
    #[arg(long)]
    result: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    Json,
    Xml,
}

impl Schema {
    pub(super) fn run(&self) -> Outcome {
        print(match (self.language, self.result) {
            (Language::Json, false) => milieu_bench::schema::DESCRIPTION,
            (Language::Json, true) => milieu_bench::schema::RESULT,
            (Language::Xml, _) => milieu_bench::schema::XML,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
