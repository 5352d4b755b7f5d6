//! What became of a key that a file has and the program does not know so.

use crate::key_set::{Key, SourceOf};
use crate::name::Name;
use crate::rules::Violation;
use milieu_diagnostics::{Diagnostic, Source, Span};
use std::fmt;

/// A key as a file has it, and what became of it.
#[derive(Clone)]
pub struct Notice {
    /// The key, under its old name and with its old value.
    pub key: Key,
    /// What became of it.
    pub fate: Fate,
    /// Whether its value must not be shown.
    pub secret: bool,
}

/// The name and the place: the values may be secrets.
impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notice({}, {})", self.key.name(), self.key.origin())
    }
}

/// What became of a key of before.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It has another name today, or several.
    Renamed(Vec<Target>),
    /// Nothing reads it any more; why.
    Removed(String),
    /// It still counts; why it should not be used, and what instead.
    Deprecated(String),
}

/// A key of today, and what it has of the old one.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name.
    pub name: Name,
    /// Whether it has its value from the old one.
    pub outcome: Outcome,
}

/// Whether a key of today has its value from the old one.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It has: this is the key, with the origin of the old one.
    Taken(Key),
    /// It has not: this one is preferred, under the name of today, or under
    /// another old one if its value is refused.
    Outranked(Key),
    /// It has not: the value is not allowed today. The key stays as it is.
    Refused(Violation),
}

impl Target {
    /// Whether the value is not allowed today.
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }

    /// Whether the key of today has a value, so that the old one can go.
    pub fn is_settled(&self) -> bool {
        match &self.outcome {
            Outcome::Taken(_) => true,
            Outcome::Outranked(by) => by.name() == self.name.as_str(),
            Outcome::Refused(_) => false,
        }
    }
}

/// How to be rid of a line.
const REMOVE: &str = "remove it, or run `milieu key migrate`";

impl Notice {
    /// Whether the program goes without a value that somebody meant to give it.
    pub fn is_error(&self) -> bool {
        match &self.fate {
            Fate::Renamed(targets) => targets.iter().any(Target::is_refused),
            Fate::Removed(_) | Fate::Deprecated(_) => false,
        }
    }

    /// The place of the key, as a text for diagnostics that point nowhere in it.
    pub fn source(&self) -> Source {
        Source::new(self.key.origin().to_string(), "")
    }

    /// What to tell those who wrote the file, without places in its text: to be
    /// shown with [`source`](Self::source).
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.diagnostics_at(&|_| None)
    }

    /// As [`diagnostics`](Self::diagnostics), where somebody knows which place
    /// the value of a key has in the text of its file.
    pub fn diagnostics_at(&self, place_of: &dyn Fn(&Key) -> Option<Span>) -> Vec<Diagnostic> {
        let old = self.key.name();
        let label = |diagnostic: Diagnostic, key: &Key, text: &str| match place_of(key) {
            Some(span) => diagnostic.label(span, text),
            None => diagnostic,
        };
        let warn = |code, message: String| Diagnostic::warning(message).code(code);
        let targets = match &self.fate {
            Fate::Renamed(targets) => targets,
            Fate::Removed(reason) => {
                let found = warn(
                    "removed",
                    format!("`{old}` does nothing any more: {reason}"),
                );
                return vec![label(found, &self.key, "").help(REMOVE)];
            }
            Fate::Deprecated(advice) => {
                let found = warn("deprecated", format!("`{old}` is deprecated: {advice}"));
                return vec![label(found, &self.key, "")];
            }
        };
        let mut found = Vec::new();
        found.extend(self.taken(targets).map(|taken| label(taken, &self.key, "")));
        for target in targets {
            let name = &target.name;
            match &target.outcome {
                Outcome::Taken(_) => {}
                Outcome::Outranked(by) if !target.is_settled() => {
                    let by_name = by.name();
                    let message = format!(
                        "`{old}` does nothing beside `{by_name}`, a later name of `{name}`"
                    );
                    let outranked = label(warn("renamed", message), &self.key, "the older name");
                    let help = format!("mend or remove `{by_name}` first");
                    found.push(label(outranked, by, "this one is refused").help(help));
                }
                Outcome::Outranked(by) => {
                    let message =
                        format!("`{old}` does nothing beside `{name}`, as it is called now");
                    let outranked = label(warn("renamed", message), &self.key, "the old name");
                    found.push(match place_of(by) {
                        Some(span) => outranked.label(span, "this one counts").help(REMOVE),
                        None => outranked
                            .note(format!("{} counts", by.origin()))
                            .help(REMOVE),
                    });
                }
                Outcome::Refused(violation) => {
                    let message = format!("`{old}` cannot be taken as `{name}`: {violation}");
                    let refused = Diagnostic::error(message).code("renamed");
                    let help = format!("remove it, and give `{name}` a value that is allowed");
                    found.push(label(refused, &self.key, "this value").help(help));
                }
            }
        }
        found
    }

    /// The warning about those targets that have their values from here.
    fn taken(&self, targets: &[Target]) -> Option<Diagnostic> {
        let taken: Vec<&Key> = targets
            .iter()
            .filter_map(|target| match &target.outcome {
                Outcome::Taken(key) => Some(key),
                _ => None,
            })
            .collect();
        let names: Vec<String> = taken
            .iter()
            .map(|key| format!("`{}`", key.name()))
            .collect();
        if names.is_empty() {
            return None;
        }
        let old = self.key.name();
        let mut found = Diagnostic::warning(format!("`{old}` is now {}", names.join(" and ")))
            .code("renamed")
            .help("rename it, or run `milieu key migrate`");
        for key in taken.iter().filter(|key| key.value() != self.key.value()) {
            found = found.note(match self.secret {
                true => format!("`{}` gets the value in another form", key.name()),
                false => format!("`{}` gets the value `{}`", key.name(), key.value()),
            });
        }
        Some(found)
    }

    /// What notices are sorted by: the file and the line.
    pub(super) fn place(&self) -> (&str, u32) {
        let origin = self.key.origin();
        let file = match &*origin.source {
            SourceOf::File(path) => path.as_str(),
            _ => "",
        };
        (file, origin.line)
    }
}
