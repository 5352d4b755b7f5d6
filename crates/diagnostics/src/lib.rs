//! Source positions and labelled diagnostics shared by every compiler and checker of Milieu.
//!
//! A [`Diagnostic`] says what is wrong, points into a [`Source`] with labels
//! that say why, and shows ways out. It is a value: whoever finds a mistake
//! returns it, and only the command line prints it, as text ([`render`]) or as
//! a line of JSON ([`to_json`]).
//!
//! Properties kept:
//! - nothing here prints, reads files, or panics, whatever the spans are;
//! - what is rendered holds no control character of the source or of a message
//!   but line breaks, so that a hostile file cannot steer a terminal;
//! - rendering takes time proportional to the source once, and then to the
//!   lines between the labels of each diagnostic.
//!
//! ```
//! use milieu_diagnostics::{Diagnostic, Source, Span, render};
//!
//! let source = Source::new("station.ini", "[/sw/port]\ntype=lnog\n");
//! let found = Diagnostic::error("`lnog` is no type")
//!     .label(Span::new(16, 20), "there is no such type")
//!     .help("did you mean `long`?");
//! assert_eq!(
//!     render(&source, &[found], false),
//!     "\
//! error: `lnog` is no type
//!  --> station.ini:2:6
//!   |
//! 2 | type=lnog
//!   |      ^^^^ there is no such type
//!   |
//!   = help: did you mean `long`?
//! "
//! );
//! ```

mod json;
#[cfg(any(test, not(feature = "snippets")))]
mod plain;
#[cfg(feature = "snippets")]
mod render;
mod source;
mod visible;

pub use json::to_json;
#[cfg(not(feature = "snippets"))]
pub use plain::render;
#[cfg(feature = "snippets")]
pub use render::render;
pub use source::{Source, Span};

use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing can be made of the input as it is.
    Error,
    /// The input has a meaning, but probably not the intended one.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl fmt::Display for Diagnostic {
    /// The message and the ways out, without the places; [`render`] shows these.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place in the source and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What it has to do with the matter; may be empty.
    pub text: String,
}

/// Something that is wrong, doubtful or worth knowing, with its places and ways out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A short word for the kind of trouble, stable across versions.
    pub code: Option<&'static str>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Places that belong to it; the first is the primary one.
    pub labels: Vec<Label>,
    /// Ways out.
    pub help: Vec<String>,
    /// What else helps to understand.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic without places.
    #[must_use]
    pub fn new(severity: Severity, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            code: None,
            message: message.into(),
            labels: Vec::new(),
            help: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// An error without places.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, message)
    }

    /// A warning without places.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, message)
    }

    /// Sets the word for the kind of trouble.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Diagnostic {
        self.code = Some(code);
        self
    }

    /// Adds a place; the first one is the primary one.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        let text = text.into();
        self.labels.push(Label { span, text });
        self
    }

    /// Adds a way out.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// Adds a remark.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// The primary place.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }

    /// Whether this is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
