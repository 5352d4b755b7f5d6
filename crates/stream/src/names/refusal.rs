//! Why something was refused, and how often that has happened.
//!
//! Properties kept:
//! - a refusal names the place and the way out, and changes nothing;
//! - what a peer wrote is quoted with its control characters escaped and cut
//!   short, so that it can neither steer a terminal nor fill a log.

use std::fmt;

use milieu_diagnostics::Span;
use milieu_keys::NameError;

/// Why a name, a query or a change of the tree was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Of which kind it is; what is counted.
    pub why: Why,
    /// Where in the text that was handed in, where there is one.
    pub span: Option<Span>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The text is no name, or no query.
    Text,
    /// The text, or what it describes, is larger than the tree takes.
    Size,
    /// The tree is full.
    Full,
    /// There is no right to it.
    Right,
    /// A name would lead to itself, or a flow would drive what it depends on.
    Cycle,
    /// Nothing has that name.
    Unknown,
}

impl Why {
    /// All kinds.
    pub const ALL: [Why; 6] = [
        Why::Text,
        Why::Size,
        Why::Full,
        Why::Right,
        Why::Cycle,
        Why::Unknown,
    ];

    /// One word, as metrics have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Why::Text => "text",
            Why::Size => "size",
            Why::Full => "full",
            Why::Right => "right",
            Why::Cycle => "cycle",
            Why::Unknown => "unknown",
        }
    }
}

impl Refusal {
    pub(super) fn new(why: Why, message: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal {
            why,
            span: None,
            message: message.into(),
            help: help.into(),
        }
    }

    pub(super) fn at(mut self, start: usize, end: usize) -> Refusal {
        self.span = Some(Span::new(start, end));
        self
    }
}

impl From<NameError> for Refusal {
    fn from(error: NameError) -> Refusal {
        Refusal::new(Why::Text, error.message, error.help).at(error.at, error.end)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(span) = self.span {
            write!(f, " (byte {})", span.start)?;
        }
        write!(f, "; {}", self.help)
    }
}

impl std::error::Error for Refusal {}

/// How many refusals there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Why::ALL.len()]);

impl Refusals {
    /// How many of this kind.
    #[must_use]
    pub fn of(&self, why: Why) -> u64 {
        self.0[why as usize]
    }

    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn count(&mut self, why: Why) {
        self.0[why as usize] += 1;
    }
}

/// A text as messages quote it.
pub(super) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(CHARS_MAX).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("`{}{more}`", shown.escape_debug())
}
