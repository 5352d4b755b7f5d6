//! Parameters that several operators have.

use milieu_diagnostics::Diagnostic;
use milieu_transfer::Span;

use crate::catalogue::{Arguments, Declared, Kind};

/// A parameter that may be left out.
pub(crate) const fn optional(name: &'static str, kind: Kind, summary: &'static str) -> Declared {
    defaulting(name, kind, "", summary)
}

/// A parameter with a default.
pub(crate) const fn defaulting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    summary: &'static str,
) -> Declared {
    Declared {
        name,
        kind,
        positional: false,
        default: Some(default),
        summary,
    }
}

/// A parameter that comes first, and has to be given.
pub(crate) const fn required(name: &'static str, kind: Kind, summary: &'static str) -> Declared {
    Declared {
        name,
        kind,
        positional: true,
        default: None,
        summary,
    }
}

pub(crate) const OF: Declared =
    defaulting("of", Kind::Expression, "value", "The number that counts.");

pub(crate) const BY: Declared = optional(
    "by",
    Kind::Expression,
    "What tells groups apart, each of which is treated for itself.",
);

pub(crate) const LATENESS: Declared = defaulting(
    "lateness",
    Kind::Span,
    "1s",
    "How long to wait for what comes late.",
);

pub(crate) const AHEAD: Declared = defaulting(
    "ahead",
    Kind::Span,
    "1s",
    "How far in the future an event may lie, as clocks differ.",
);

pub(crate) const OFFSET: Declared = defaulting(
    "offset",
    Kind::Span,
    "0s",
    "How far the local clock is ahead of UTC; of windows of a week, `3d` lets them begin on Mondays.",
);

pub(crate) const GROUPS: Declared = defaulting(
    "groups",
    Kind::Integer,
    "10000",
    "How many groups there may be at a time.",
);

pub(crate) const FORGET: Declared = defaulting(
    "forget",
    Kind::Span,
    "1d",
    "After what time without events a group is forgotten.",
);

/// How many groups there may be.
pub(crate) fn groups(arguments: &Arguments<'_>) -> Result<usize, Diagnostic> {
    let most = arguments.count(GROUPS.name, 10_000_000)?;
    Ok(most.expect("it has a default"))
}

/// After what time a group is forgotten.
pub(crate) fn forget(arguments: &Arguments<'_>) -> Result<Span, Diagnostic> {
    arguments.waiting(FORGET.name)
}
