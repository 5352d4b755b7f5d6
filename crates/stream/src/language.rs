//! The languages that subscriptions are written in.
//!
//! | language | for | module |
//! |----------|-----|--------|
//! | pipeline | people and command lines | [`Language::Pipeline`] |
//! | TOML     | files beside other settings | [`Language::Toml`] |
//! | XML      | exchange, with a schema | [`Language::Xml`] |
//! | Rust     | programs | [`build`] |
//!
//! All of them say the same: a [`Document`]. What one reads any can write, so
//! that each converts into each other; Rust is written as source text and read
//! by running it.
//!
//! ```text
//!  text ──▶ Draft ──────────────▶ Document ──▶ Outline ──▶ text
//!   (each     (lower: catalogue,     (equal whatever     (each
//!  language)   names, limits)         it came from)     language)
//! ```
//!
//! The languages know no operator: what one takes they look up in the
//! [`Catalogue`]. What is done with a flow (`subscribe`, `publish`, `bind`,
//! `activate`, `set`) is declared in the same way. Whoever can do nothing but
//! subscribe reads [one subscription](Language::subscription), or
//! [one flow](Language::flow), and the rest is a mistake.
//!
//! Properties kept:
//! - what is written reads as the same document;
//! - no input panics, recurses deeper than [`NESTING_MAX`] or stands for more
//!   operators than memory holds;
//! - every mistake has a place in the text.

pub mod build;
mod draft;
mod expression;
mod lower;
mod one;
mod outline;
mod parameter;
mod pipeline;
mod quotes;
mod rust;
mod scan;
mod sinks;
mod toml;
mod xml;

use std::path::Path;

use milieu_diagnostics::{Diagnostic, Source, Span};

use crate::catalogue::Catalogue;
use crate::subscription::Document;

/// How deeply flows may be written within each other.
pub const NESTING_MAX: usize = 32;

/// What was read, or a mistake after which nothing can be made of it.
type Read<T> = Result<T, Diagnostic>;

/// A language of subscriptions that is read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// `/weather/temperature | filter value > 32`
    Pipeline,
    /// Tables of TOML.
    Toml,
    /// Elements of XML.
    Xml,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 3] = [Language::Pipeline, Language::Toml, Language::Xml];

    /// How the names of its files end.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Language::Pipeline => "flow",
            Language::Toml => "toml",
            Language::Xml => "xml",
        }
    }

    /// The language of a file, by the ending of its name.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Language> {
        let ending = path.extension()?;
        let mut all = Language::ALL.into_iter();
        all.find(|language| ending.eq_ignore_ascii_case(language.ending()))
    }

    /// Reads subscriptions. Places of mistakes are those in the source.
    ///
    /// # Errors
    /// All mistakes that were found; where there is one, nothing of the text is
    /// to be used.
    pub fn parse(
        self,
        source: &Source,
        catalogue: &Catalogue,
    ) -> Result<Document, Vec<Diagnostic>> {
        let (draft, diagnostics) = self.draft(source, catalogue);
        lower::whole(&draft, diagnostics, catalogue)
    }

    /// What a text says, as far as it can be read, and what cannot.
    fn draft(self, source: &Source, catalogue: &Catalogue) -> (draft::Draft, Vec<Diagnostic>) {
        let text = &source.text;
        match self {
            Language::Pipeline => pipeline::parse(text, catalogue),
            Language::Toml => toml::parse(text),
            Language::Xml => xml::parse(text),
        }
    }

    /// Writes subscriptions. What is written reads as the same document, if
    /// the catalogue has its operators.
    #[must_use]
    pub fn write(self, document: &Document, catalogue: &Catalogue) -> String {
        match self {
            Language::Pipeline => pipeline::write(document, catalogue),
            Language::Toml => toml::write(document, catalogue),
            Language::Xml => xml::write(document, catalogue),
        }
    }
}

/// The schema of [`Language::Xml`] with the operators of a catalogue, as XML
/// Schema 1.0. What it refuses is refused by [`Language::parse`] too, which also
/// reads expressions and looks up names.
#[must_use]
pub fn schema(catalogue: &Catalogue) -> String {
    xml::schema(catalogue)
}

/// Writes subscriptions as Rust: a function that says them to a
/// [`Builder`](build::Builder). What it needs besides is in the crate
/// `milieu_stream`.
#[must_use]
pub fn write_rust(document: &Document, catalogue: &Catalogue) -> String {
    rust::write(document, catalogue)
}

/// A value as expressions write it: a text in quotes, with what would mean something
/// else in it escaped. Numbers that are none, or that have no end, they cannot write.
#[must_use]
pub fn literal(value: &milieu_transfer::Value) -> String {
    milieu_expressions::literal(value)
}

/// The trouble with what lies too deep.
fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error("flows lie too deep in each other")
        .code("limit")
        .label(span, format!("this is more than {NESTING_MAX} levels deep"))
        .help("give a name to an inner one by `let`, and use that")
}

/// What holds where a parameter is not given, if the declaration says so in a value.
pub(crate) fn default(declared: &crate::catalogue::Declared) -> Option<crate::flow::Parameter> {
    parameter::default(declared)
}

/// A parameter as it is shown to people.
pub(crate) fn shown(parameter: &crate::flow::Parameter) -> String {
    parameter::write(parameter)
}
