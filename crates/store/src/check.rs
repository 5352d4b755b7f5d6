//! All that is wrong or doubtful with a file, by a specification.

use std::collections::HashMap;
use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_keys::migration::{Fate, Outcome};
use milieu_keys::rules::nearest;
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, Pattern, SourceOf};

use crate::format::Entry;
use crate::ini;
use crate::redact::Redacted;
use crate::schema::Schema;

/// So many unknown keys get a suggestion; finding one costs a look at all keys.
const SUGGESTIONS_MAX: usize = 50;

impl Schema {
    /// Checks a file, whose keys are given under their whole names: values that
    /// the rules refuse, also after a conversion, are errors; keys that the
    /// specification does not have, and such as were renamed, removed or
    /// deprecated, are warnings. The diagnostics come in the order of the text.
    ///
    /// They are to be shown with the text that is returned: it is that of the
    /// file without its secrets.
    pub fn check_file<'e>(
        &self,
        source: &Source,
        entries: impl IntoIterator<Item = Entry<'e>>,
    ) -> (Source, Vec<Diagnostic>) {
        let entries: Vec<Entry<'e>> = entries.into_iter().collect();
        let redacted = self.redacted(source, &entries);
        let found = self.found(&redacted, &entries);
        (redacted.source, found)
    }

    /// The text of a file without its secrets.
    pub(crate) fn redacted(&self, source: &Source, entries: &[Entry<'_>]) -> Redacted {
        let secrets = entries
            .iter()
            .filter(|entry| self.hides(entry.name.as_str()));
        Redacted::new(source, secrets.filter_map(|entry| entry.span))
    }

    /// All that is wrong or doubtful with these keys of a file.
    pub(crate) fn found(&self, redacted: &Redacted, entries: &[Entry<'_>]) -> Vec<Diagnostic> {
        let file = File {
            schema: self,
            entries,
            redacted,
        };
        let mut found = file.migration();
        let mut suggestions = SUGGESTIONS_MAX;
        found.extend(
            entries
                .iter()
                .filter_map(|entry| file.entry(entry, &mut suggestions)),
        );
        found.sort_by_key(|diagnostic: &Diagnostic| diagnostic.span().map(|span| span.start));
        found
    }

    /// Whether the specification has a key of that name, or had one.
    pub(crate) fn knows(&self, name: &str) -> bool {
        let old_names = self.old_names();
        self.find(name).is_some()
            || old_names.removed(name).is_some()
            || !old_names.names(name).is_empty()
    }

    /// The name that may have been meant by one that the specification does not
    /// have: one of its own, with the values that the name has for its layers.
    pub(crate) fn suggestion(&self, name: &str) -> Option<String> {
        let candidates: Vec<String> = self.patterns().map(|pattern| like(pattern, name)).collect();
        nearest(name, candidates.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// What a pattern is where its placeholders are filled from a name.
fn like(pattern: &Pattern, name: &str) -> String {
    let name = Name::parse(name).unwrap_or_else(|_| Name::root());
    let levels: Vec<&str> = name.levels().collect();
    if levels.len() != pattern.level_patterns().len() {
        return pattern.resolve(|_| None).to_string();
    }
    let levels = pattern.level_patterns().iter().zip(levels);
    levels
        .map(|(pattern, level)| format!("/{}", pattern.literal().unwrap_or(level)))
        .collect()
}

/// A file and where its keys stand.
struct File<'f> {
    schema: &'f Schema,
    entries: &'f [Entry<'f>],
    redacted: &'f Redacted,
}

impl File<'_> {
    /// What there is to say about keys of before.
    fn migration(&self) -> Vec<Diagnostic> {
        let origin = Arc::new(SourceOf::File(self.redacted.source.name.clone()));
        let key = |entry: &Entry<'_>| {
            let origin = Origin::at(&origin, entry.line);
            Key::new(Namespace::User, &entry.name, &entry.value, origin)
        };
        let keys: KeySet = self.entries.iter().map(key).collect();
        let (_, notices) = self.schema.migrate(keys);
        let lines = self.lines();
        let place_of = |key: &Key| self.place_of(key, lines.get(&key.origin().line)?);
        let mut found = Vec::new();
        for notice in &notices {
            let place = place_of(&notice.key);
            found.extend(notice.diagnostics_at(&place_of));
            let Fate::Renamed(targets) = &notice.fate else {
                continue;
            };
            for target in targets {
                let Outcome::Taken(key) = &target.outcome else {
                    continue;
                };
                found.extend(self.schema.refusal(key.name(), key.value()).map(
                    |refusal| match place {
                        Some(span) => refusal.label(span, "this value"),
                        None => refusal,
                    },
                ));
            }
        }
        found
    }

    fn entry(&self, entry: &Entry<'_>, suggestions: &mut usize) -> Option<Diagnostic> {
        let name = entry.name.as_str();
        if self.schema.knows(name) {
            let refusal = self.schema.refusal(name, &entry.value)?;
            return Some(self.redacted.label(refusal, entry, "this value"));
        }
        let message = format!("the specification has no key `{}`", ini::encode_name(name));
        let unknown = Diagnostic::warning(message).code("unknown-key");
        let unknown = self.redacted.label(unknown, entry, "nothing reads this");
        let meant = match suggestions.checked_sub(1) {
            Some(left) => {
                *suggestions = left;
                self.schema.suggestion(name)
            }
            None => None,
        };
        Some(match meant {
            Some(meant) => unknown.help(format!("did you mean `{}`?", ini::encode_name(&meant))),
            None => unknown.help("mend the name, or remove the line"),
        })
    }

    /// What stands in each line, which may be several keys.
    fn lines(&self) -> HashMap<u32, Vec<&Entry<'_>>> {
        let mut lines: HashMap<u32, Vec<&Entry<'_>>> = HashMap::new();
        for entry in self.entries {
            lines.entry(entry.line).or_default().push(entry);
        }
        lines
    }

    /// Where the value of a key stands, which may have come from an old name.
    fn place_of(&self, key: &Key, line: &[&Entry<'_>]) -> Option<Span> {
        let named = |entry: &&&Entry<'_>| entry.name.as_str() == key.name();
        let was = |entry: &&&Entry<'_>| self.schema.was(entry.name.as_str(), key.name());
        let entry = line.iter().find(named).or_else(|| line.iter().find(was))?;
        Some(self.redacted.place(entry.span?))
    }
}
