//! What may be shown where there are secrets.
//!
//! A key does not know that its value is a secret; its declaration does. So a
//! text, an error or a list of keys is redacted here, where both are known, on
//! its way to whoever shows it.

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_keys::Key;
use milieu_keys::rules::REDACTED;
use milieu_keys::sort;

use crate::before::Before;
use crate::error::{Conflict, StoreError};
use crate::format::Entry;
use crate::merge::Change;
use crate::schema::Schema;
use crate::store::Store;

impl Schema {
    /// Whether the value of a key must not be shown: the specification calls it
    /// a secret, under its name of today or an old one.
    pub fn is_secret(&self, name: &str) -> bool {
        self.secrets().contains(name)
    }

    /// Whether the value of a key stays hidden in the text of a file: it is a
    /// secret, or it may be one, since its name has perhaps a slip.
    pub(crate) fn hides(&self, name: &str) -> bool {
        self.is_secret(name) || (self.has_secrets() && !self.knows(name))
    }

    /// Whether there are secrets at all, so that files may have some.
    pub fn has_secrets(&self) -> bool {
        !self.secrets().is_empty()
    }

    /// Whether these changes write a secret, so that nobody else may read the
    /// file that they go to.
    pub fn writes_secret(&self, changes: &[Change]) -> bool {
        let mut written = changes.iter().filter(|change| change.value.is_some());
        written.any(|change| self.is_secret(change.name.as_str()))
    }

    /// The error as it may be shown: in conflicts without the values of
    /// secrets, and without the lines of a file that cannot be understood, where
    /// nobody knows which of them are secrets.
    #[must_use]
    pub fn redact(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Conflict { path, conflicts } => StoreError::Conflict {
                path,
                conflicts: conflicts
                    .into_iter()
                    .map(|c| self.redact_conflict(c))
                    .collect(),
            },
            error if self.has_secrets() => error.without_lines(),
            error => error,
        }
    }

    /// What may be shown of an error: as [`StoreError::diagnostics`], of the
    /// error that [`redact`](Schema::redact) gives.
    #[must_use]
    pub fn diagnostics(&self, error: &StoreError) -> (Source, Vec<Diagnostic>) {
        let redacted = match error {
            StoreError::Conflict { path, conflicts } => self.redact(StoreError::Conflict {
                path: path.clone(),
                conflicts: conflicts.clone(),
            }),
            StoreError::Text {
                source,
                diagnostics,
            } => self.redact(StoreError::Text {
                source: source.clone(),
                diagnostics: diagnostics.clone(),
            }),
            error => return error.diagnostics(),
        };
        redacted.diagnostics()
    }

    /// The conflict without the values of a secret.
    #[must_use]
    pub fn redact_conflict(&self, mut conflict: Conflict) -> Conflict {
        if self.is_secret(conflict.name.as_str()) {
            conflict.secret = true;
            for value in [&mut conflict.base, &mut conflict.ours, &mut conflict.theirs] {
                if value.is_some() {
                    *value = Some(REDACTED.to_owned());
                }
            }
        }
        conflict
    }
}

impl Store {
    /// The error as it may be shown: without lines of a file that may have secrets.
    pub(crate) fn redact(&self, error: StoreError) -> StoreError {
        self.before.redact(error)
    }
}

impl Before {
    /// As [`Store::redact`].
    pub fn redact(&self, error: StoreError) -> StoreError {
        match self.secrets.is_empty() {
            true => error,
            false => error.without_lines(),
        }
    }
}

/// A key as `{:?}` shows it: without its value if that is secret.
pub(crate) fn shown(key: Option<&Key>, secret: bool) -> Option<Key> {
    key.map(|key| match secret {
        true => key.with_value(REDACTED, key.origin().clone()),
        false => key.clone(),
    })
}

/// The places of diagnostics in a text without a word in it: a label points to
/// its line and column, where nothing stands.
pub(crate) fn wordless(source: &Source, diagnostics: &mut [Diagnostic]) -> Source {
    if source.text.trim().is_empty() {
        return source.clone();
    }
    let places = diagnostics.iter().flat_map(|found| &found.labels);
    let places: Vec<(usize, usize)> = places
        .map(|label| source.line_column(label.span.start))
        .collect();
    let width = |line| {
        let of_line = places.iter().filter(|place| place.0 == line);
        of_line.map(|place| place.1).max().unwrap_or(0)
    };
    let last = places.iter().map(|place| place.0).max().unwrap_or(0);
    let mut text = String::new();
    let mut starts = Vec::with_capacity(last);
    for line in 1..=last {
        starts.push(text.len());
        text.extend(std::iter::repeat_n(' ', width(line)));
        text.push('\n');
    }
    let labels = diagnostics.iter_mut().flat_map(|found| &mut found.labels);
    for (label, (line, column)) in labels.zip(&places) {
        let start = starts[line - 1] + column - 1;
        label.span = Span::new(start, start + 1);
    }
    for found in diagnostics
        .iter_mut()
        .filter(|found| !found.labels.is_empty())
    {
        let why = "the lines are not shown, since the file may hold secrets";
        found.notes.push(why.to_owned());
    }
    Source::new(source.name.clone(), text)
}

/// A text without its secrets, and where everything is in it now.
pub(crate) struct Redacted {
    pub source: Source,
    /// Each secret's place in the original and in the new text, in order.
    moved: Vec<(Span, Span)>,
}

impl Redacted {
    pub(crate) fn new(source: &Source, secrets: impl IntoIterator<Item = Span>) -> Redacted {
        let mut secrets: Vec<Span> = secrets.into_iter().collect();
        sort::by(&mut secrets, Ord::cmp);
        let mut text = String::with_capacity(source.text.len());
        let mut moved = Vec::new();
        let mut copied = 0;
        for span in secrets {
            let before = source.text.get(copied..span.start);
            let (Some(before), Some(_)) = (before, source.text.get(span.start..span.end)) else {
                continue;
            };
            text.push_str(before);
            let start = text.len();
            text.push_str(REDACTED);
            moved.push((span, Span::new(start, text.len())));
            copied = span.end;
        }
        text.push_str(&source.text[copied..]);
        Redacted {
            source: Source::new(source.name.clone(), text),
            moved,
        }
    }

    /// Where a place of the original is.
    pub(crate) fn place(&self, span: Span) -> Span {
        Span::new(self.offset(span.start), self.offset(span.end))
    }

    /// The diagnostic with the place of a value.
    pub(crate) fn label(&self, found: Diagnostic, entry: &Entry<'_>, text: &str) -> Diagnostic {
        match entry.span {
            Some(span) => found.label(self.place(span), text),
            None => found.note(format!("it stands in line {}", entry.line)),
        }
    }

    fn offset(&self, offset: usize) -> usize {
        let before = self.moved.partition_point(|(old, _)| old.end <= offset);
        if let Some((old, new)) = self.moved.get(before).filter(|(old, _)| old.start < offset) {
            // In the middle of a secret: nobody may say how far.
            debug_assert!(old.end > offset);
            return new.start;
        }
        match before.checked_sub(1).map(|last| self.moved[last]) {
            None => offset,
            Some((old, new)) => new.end + (offset - old.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_move_with_the_text() {
        let source = Source::new("a.ini", "a = x\npin = 4711\nb = y\nq = ä\nc = z\n");
        let at = |text: &str| {
            let start = source.text.find(text).unwrap();
            Span::new(start, start + text.len())
        };
        let secrets = [at("ä"), at("4711")];
        let redacted = Redacted::new(&source, secrets);
        assert_eq!(
            redacted.source.text,
            "a = x\npin = (secret)\nb = y\nq = (secret)\nc = z\n"
        );
        for text in ["a = x", "pin = ", "b = y", "c = z", "\n"] {
            assert_eq!(redacted.source.slice(redacted.place(at(text))), text);
        }
        for secret in secrets {
            assert_eq!(redacted.source.slice(redacted.place(secret)), "(secret)");
        }
        assert!(redacted.place(at("71")).is_empty());
        let end = Span::new(source.text.len(), source.text.len());
        assert_eq!(redacted.place(end).end, redacted.source.text.len());
    }
}
