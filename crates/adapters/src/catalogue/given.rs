//! Parameters of a source, read from text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use milieu_stream::Kind;
use milieu_transfer::Span;

use super::Definition;
use crate::failure::{Failure, shortened};

/// The parameters that were given to a source; they are known ones, and those
/// that must be given are there.
pub(super) struct Given<'a> {
    definition: &'a Definition,
    values: &'a [(&'a str, &'a str)],
}

impl<'a> Given<'a> {
    pub(super) fn new(
        definition: &'a Definition,
        values: &'a [(&'a str, &'a str)],
    ) -> Result<Given<'a>, Failure> {
        let given = Given { definition, values };
        for (name, value) in values {
            let declared = definition.parameters.iter().find(|it| it.name == *name);
            let Some(declared) = declared else {
                let known: Vec<&str> = definition.parameters.iter().map(|it| it.name).collect();
                let known = known.join("`, `");
                let reason = format!("there is no such parameter; there are `{known}`");
                return Err(given.failure(name, reason));
            };
            if let Kind::Choice(words) = declared.kind {
                if !words.contains(value) {
                    let words = words.join("`, `");
                    let reason = format!("`{}` is not one of `{words}`", shortened(value));
                    return Err(given.failure(name, reason));
                }
            }
        }
        for declared in definition.parameters {
            if declared.default.is_none() && given.said(declared.name).is_none() {
                let reason = format!("this must be given: {}", declared.summary);
                return Err(given.failure(declared.name, reason));
            }
        }
        Ok(given)
    }

    pub(super) fn failure(&self, parameter: &str, reason: impl fmt::Display) -> Failure {
        let name = self.definition.name;
        Failure::new(format_args!("`{name}`, parameter `{parameter}`"), reason)
    }

    fn said(&self, name: &str) -> Option<&'a str> {
        let mut values = self.values.iter().rev();
        values
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// What was given, or what holds otherwise; an empty text is nothing.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        let declared = self.definition.parameters.iter().find(|it| it.name == name);
        let default = declared.and_then(|declared| declared.default);
        self.said(name).or(default).filter(|text| !text.is_empty())
    }

    /// A text that must be given.
    pub(super) fn needed(&self, name: &str) -> Result<&'a str, Failure> {
        let text = self.text(name);
        text.ok_or_else(|| self.failure(name, "this may not be empty"))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.text(name) {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(other) => {
                let reason = format!("`{}` is neither `true` nor `false`", shortened(other));
                Err(self.failure(name, reason))
            }
        }
    }

    /// A value of a type that is read from text.
    pub(super) fn parsed<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let parsed = text.parse().map_err(|_| {
            let reason = format!("`{}` is not {what}", shortened(text));
            self.failure(name, reason)
        });
        parsed.map(Some)
    }

    pub(super) fn span(&self, name: &str) -> Result<Option<Duration>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let span = span(text).ok_or_else(|| {
            let text = shortened(text);
            let reason = format!("`{text}` is no span; `250ms`, `1.5s` and `1h30m` are");
            self.failure(name, reason)
        });
        span.map(Some)
    }

    /// What stands between commas.
    pub(super) fn list(&self, name: &str) -> Vec<&'a str> {
        let parts = self.text(name).into_iter().flat_map(|text| text.split(','));
        parts
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect()
    }

    /// A failure of a source that cannot be had at all.
    #[cfg(not(feature = "gpio"))]
    pub(super) fn refuse(&self, reason: &str) -> Failure {
        Failure::new(format_args!("`{}`", self.definition.name), reason)
    }
}

/// `250ms`, `1.5s`, `1h30m`, `2d`; none is negative.
fn span(text: &str) -> Option<Duration> {
    let span = Span::from_units(text.trim())?;
    u64::try_from(span.nanoseconds())
        .ok()
        .map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_units() {
        for (text, milliseconds) in [
            ("250ms", 250),
            ("1.5s", 1500),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
        ] {
            assert_eq!(
                span(text),
                Some(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in [
            "", "5", "s", "5 s", "1.2.3s", "-1s", "5parsecs", "1e9s", "9é",
        ] {
            assert_eq!(span(text), None, "{text}");
        }
    }
}
