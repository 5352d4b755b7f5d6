//! What else might have been meant by a name that is not there.

use milieu_diagnostics::Diagnostic;
use milieu_keys::{Name, Namespace};
use milieu_store::{Schema, Store, ini};

use super::failure::{Failure, NOT_FOUND};
use super::show;
use crate::nearest::nearest;

/// The answer to a name that no key has: where it was looked for, and what was perhaps meant.
pub(super) fn not_found(name: &Name, store: &Store) -> Failure {
    let shown = ini::encode_name(name.as_str());
    let mut diagnostic = Diagnostic::error(format!("there is no key `{shown}`"));
    let mut places = store.places().map(|place| place.path.display().to_string());
    let first = places
        .next()
        .unwrap_or_else(|| "the environment".to_owned());
    for place in places {
        diagnostic = diagnostic.note(format!("nor is it in {place}"));
    }
    if store.places().all(|place| !place.path.exists()) {
        diagnostic = diagnostic.help("none of the files exists: is this the right application?");
    }
    if let Some(old_names) = store.schema().map(Schema::old_names) {
        for today in old_names.names(name.as_str()) {
            let today = ini::encode_name(today.as_str()).into_owned();
            diagnostic = diagnostic.help(format!("it is called `{today}` today"));
        }
        if let Some(reason) = old_names.removed(name.as_str()) {
            diagnostic = diagnostic.note(format!("there is no such key any more: {reason}"));
        }
    }
    let below = store
        .keys()
        .below(name.as_str())
        .filter(|key| key.name() != name.as_str())
        .count();
    if below > 0 {
        let keys = if below == 1 {
            "1 key is".to_owned()
        } else {
            format!("{below} keys are")
        };
        diagnostic = diagnostic.help(format!(
            "{keys} below it: `milieu key ls {shown}` lists them"
        ));
    }
    for nearest in nearest(
        name.as_str(),
        store.keys().effective().map(|key| key.name()),
    ) {
        diagnostic = diagnostic.help(format!("did you mean `{}`?", ini::encode_name(nearest)));
    }
    Failure::new(first, diagnostic, NOT_FOUND)
}

/// The answer to a name that no key of one namespace has, though another namespace may.
pub(super) fn not_found_in(namespace: Namespace, name: &Name, store: &Store) -> Failure {
    let Some(key) = store.keys().lookup(name.as_str()) else {
        return not_found(name, store);
    };
    let shown = ini::encode_name(name.as_str());
    let diagnostic = Diagnostic::error(format!("there is no key `{shown}` of the {namespace}"));
    let diagnostic = match key.namespace() {
        Namespace::Default => diagnostic.help("its value is the default of the specification"),
        other => diagnostic.help(format!("the {other} has it: use `--{other}`")),
    };
    Failure::new(show::origin(key), diagnostic, NOT_FOUND)
}
