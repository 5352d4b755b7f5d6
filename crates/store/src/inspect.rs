//! All files of an application, and everything that is wrong or doubtful with them.
//!
//! Reading stops at the first file that cannot be understood, since nothing can
//! run without it. Whoever mends files wants to know of all.

use std::borrow::Cow;
use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::{KeySpec, Name};

use crate::error::StoreError;
use crate::format::Entry;
use crate::gaps::Elements;
use crate::ini;
use crate::locations::Place;
use crate::read::{self, Content};
use crate::redact::Redacted;
use crate::schema::Schema;
use crate::store::further_down;

/// The permissions of others than the owner to read.
const OF_OTHERS: u32 = 0o044;

/// What there is to say about the files of an application.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The files that exist, in the order of the cascade.
    pub files: Vec<Inspected>,
    /// What there is to say about the specification in view of the files:
    /// warnings about keys that somebody has to give a value and that none of
    /// the files has. Options and variables may give it when a program starts.
    pub missing: Vec<Diagnostic>,
}

/// What there is to say about a file.
#[derive(Debug)]
pub struct Inspected {
    /// The file.
    pub place: Place,
    /// How many keys it has; nothing if it cannot be read or understood.
    pub keys: Option<usize>,
    /// Its name, and its text as far as it may be shown: without secrets.
    pub source: Source,
    /// What is wrong or doubtful, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Looks at files: whether they can be read and understood, all that the
/// specification says about them ([`Schema::check_file`]), keys that another
/// file is mounted over, elements of arrays that one is missing before, and
/// secrets that others may read.
///
/// Files that do not exist are left out.
#[must_use]
pub fn inspect(places: &[Place], schema: Option<&Schema>) -> Inspection {
    let mut inspection = Inspection::default();
    let mut seen = Seen::default();
    for (at, place) in places.iter().enumerate() {
        let same = |other: &Place| (&other.path, &other.mount) == (&place.path, &place.mount);
        if places[..at].iter().any(same) {
            continue;
        }
        let found = match read::text(&place.path) {
            Ok(None) => continue,
            Ok(Some(content)) => look(
                place,
                places,
                &content,
                schema,
                (&mut seen, inspection.files.len()),
            ),
            Err(error) => Err(error),
        };
        inspection.files.push(found.unwrap_or_else(|error| {
            let (source, diagnostics) = match schema {
                Some(schema) => schema.diagnostics(&error),
                None => error.diagnostics(),
            };
            Inspected {
                place: place.clone(),
                keys: None,
                source,
                diagnostics,
            }
        }));
    }
    for (file, gap) in seen.elements.gaps() {
        inspection.files[file].diagnostics.push(gap);
    }
    for file in &mut inspection.files {
        file.diagnostics
            .sort_by_key(|found| found.span().map(|span| span.start));
    }
    let is_whole = inspection.files.iter().all(|file| file.keys.is_some());
    if let Some(schema) = schema.filter(|_| is_whole) {
        let missing = schema.missing(seen.names.iter().map(Name::as_str));
        let warn = |key: &KeySpec| {
            let name = ini::encode_name(key.pattern.as_str());
            let message = format!("no file gives `{name}` a value, and somebody has to");
            Diagnostic::warning(message)
                .code("missing")
                .label(key.span, "rule require")
        };
        inspection.missing = missing.map(warn).collect();
    }
    inspection
}

/// What all files have together.
#[derive(Default)]
struct Seen {
    names: HashSet<Name>,
    elements: Elements,
}

/// Looks at a file, the one of this number, and adds to what was seen.
fn look(
    place: &Place,
    places: &[Place],
    content: &Content,
    schema: Option<&Schema>,
    (seen, file): (&mut Seen, usize),
) -> Result<Inspected, StoreError> {
    let document = read::document(place, &content.text)?;
    let whole = |entry: Entry<'_>| Entry {
        name: Cow::Owned(place.mount.mounted(&entry.name)),
        value: Cow::Owned(entry.value.into_owned()),
        ..entry
    };
    let entries: Vec<Entry<'_>> = document.keys().map(whole).collect();
    let source = Source::new(place.path.display().to_string(), &*content.text);
    let redacted = match schema {
        Some(schema) => schema.redacted(&source, &entries),
        None => Redacted::new(&source, []),
    };
    let mut diagnostics = Vec::new();
    if let Some(schema) = schema {
        let secret = entries
            .iter()
            .find(|entry| schema.is_secret(entry.name.as_str()));
        let mode = content.metadata.permissions().mode();
        let exposed = secret.filter(|_| mode & OF_OTHERS != 0);
        diagnostics.extend(exposed.map(|secret| expose(place, secret, &redacted)));
    }
    let over = further_down(place, places);
    let hidden = |entry: &&Entry<'_>| over.iter().any(|mount| is_in(entry, mount));
    let (hidden, counting): (Vec<_>, Vec<_>) = entries.iter().partition(hidden);
    for entry in hidden {
        let others = places.iter().filter(|other| is_in(entry, &other.mount));
        // The one furthest down has the key.
        if let Some(other) = others.max_by_key(|other| other.mount.levels().count()) {
            diagnostics.push(hide(entry, other, &redacted));
        }
    }
    let (names, elements) = (&mut seen.names, &mut seen.elements);
    names.extend(counting.iter().map(|entry| entry.name.clone().into_owned()));
    elements.add(place.namespace, file, &counting, &redacted);
    if let Some(schema) = schema {
        let old_names = schema.old_names();
        let today = counting
            .iter()
            .flat_map(|entry| old_names.names(entry.name.as_str()));
        names.extend(today);
        let counting: Vec<Entry<'_>> = counting.into_iter().cloned().collect();
        diagnostics.extend(schema.found(&redacted, &counting));
    }
    Ok(Inspected {
        place: place.clone(),
        keys: Some(entries.len()),
        source: redacted.source,
        diagnostics,
    })
}

fn is_in(entry: &Entry<'_>, mount: &Name) -> bool {
    entry.name.is_below_or_same(mount.as_str())
}

/// What is to be said about a key that another file is mounted over.
fn hide(entry: &Entry<'_>, other: &Place, redacted: &Redacted) -> Diagnostic {
    let (name, mount) = (
        ini::encode_name(entry.name.as_str()),
        ini::encode_name(other.mount.as_str()),
    );
    let message = format!("`{name}` does nothing: another file is mounted at `{mount}`");
    let diagnostic = Diagnostic::warning(message).code("hidden");
    redacted
        .label(diagnostic, entry, "nothing reads this")
        .note(format!("{mount} is in {}", other.path.display()))
        .help("move the key there, or remove it here")
}

/// What is to be said about a file with a secret that others may read.
fn expose(place: &Place, secret: &Entry<'_>, redacted: &Redacted) -> Diagnostic {
    let name = ini::encode_name(secret.name.as_str());
    let message = format!("others than its owner may read the file, and `{name}` is secret");
    let diagnostic = Diagnostic::warning(message).code("exposed");
    redacted
        .label(diagnostic, secret, "the secret")
        .help(format!("`chmod 600 {}`", place.path.display()))
}
