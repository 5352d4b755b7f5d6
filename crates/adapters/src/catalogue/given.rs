//! Parameters of a source, read from text.

use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use milieu_stream::Kind;
use milieu_transfer::Span;

use super::{Definition, With, all};
use crate::failure::{Failure, shortened};
use crate::format::Format;
use crate::replay::{Replay, RowType};

/// What was given to a source: parameters that are known ones, those that must be
/// given among them, and what the program gives it besides, which it has a use for.
pub(super) struct Given<'a> {
    definition: &'a Definition,
    values: &'a [(&'a str, &'a str)],
    format: Cell<Option<Format>>,
    content: Option<Arc<[u8]>>,
    rows: Option<RowType>,
}

impl<'a> Given<'a> {
    pub(super) fn new(
        definition: &'a Definition,
        values: &'a [(&'a str, &'a str)],
        with: With,
    ) -> Result<Given<'a>, Failure> {
        let has_format = with.format.is_some();
        let given = Given {
            definition,
            values,
            format: Cell::new(with.format),
            content: with.content,
            rows: with.rows,
        };
        given.check_use(has_format)?;
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
            let is_named = declared.name == "path" && given.content.is_some();
            let must_be_given = declared.default.is_none() && !is_named;
            if must_be_given && given.said(declared.name).is_none() {
                let reason = format!("this must be given: {}", declared.summary);
                return Err(given.failure(declared.name, reason));
            }
        }
        Ok(given)
    }

    /// Whether the source has a use for what the program gives it.
    fn check_use(&self, has_format: bool) -> Result<(), Failure> {
        let refuse = |why: &str, has_use: fn(&Definition) -> bool| {
            let others: Vec<&str> = all().filter(|it| has_use(it)).map(|it| it.name).collect();
            let reason = format!("{why}; there are {}", others.join(", "));
            Failure::new(format_args!("`{}`", self.definition.name), reason)
        };
        if has_format && !self.definition.reads_texts() {
            let why = "it reads no texts, of which a format makes events";
            return Err(refuse(why, Definition::reads_texts));
        }
        if has_format && self.said("format").is_some() {
            let reason = "the program has a format of its own; leave one of them out";
            return Err(self.failure("format", reason));
        }
        if self.content.is_some() && !self.definition.is_recording() {
            let why = "it replays no recording, which could lie in memory";
            return Err(refuse(why, Definition::is_recording));
        }
        if self.rows.is_some() && !self.definition.has_rows() {
            let why = "it replays no rows, of which a type could be made";
            return Err(refuse(why, Definition::has_rows));
        }
        Ok(())
    }

    /// The format of the program, once, if it has one.
    pub(super) fn format(&self) -> Option<Format> {
        self.format.take()
    }

    /// A recording of this kind, in its file or in memory.
    pub(super) fn recording(&self, kind: fn(PathBuf) -> Replay) -> Result<Replay, Failure> {
        let replay = match &self.content {
            None => kind(self.needed("path")?.into()),
            Some(content) => {
                let name = self.text("path").unwrap_or("recording");
                kind(name.into()).content(Arc::clone(content))
            }
        };
        Ok(match &self.rows {
            None => replay,
            Some(rows) => replay.rows(rows.clone()),
        })
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
