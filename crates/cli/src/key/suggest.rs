//! What else might have been meant by a name that is not there.

use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::{Name, Namespace};
use milieu_store::{Store, ini};

use super::{Failure, NOT_FOUND, show};

/// The most names that are suggested.
const NAMES_MAX: usize = 3;

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
    Failure::Reported {
        source: Source::new(first, ""),
        diagnostics: vec![diagnostic],
        code: NOT_FOUND,
    }
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
    Failure::Reported {
        source: Source::new(show::origin(key), ""),
        diagnostics: vec![diagnostic],
        code: NOT_FOUND,
    }
}

/// The names that differ from this one by a slip or two, the nearest first.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let slips_max = 1 + name.chars().count() / 8;
    let mut near: Vec<(usize, &str)> = names
        .filter(|other| *other != name && other.len().abs_diff(name.len()) <= 4 * slips_max)
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|&(slips, _)| slips <= slips_max)
        .collect();
    near.sort();
    near.truncate(NAMES_MAX);
    near.into_iter().map(|(_, other)| other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognized_and_other_names_are_not() {
        let names = [
            "/sw/pi/anna/language",
            "/sw/pi/hanna/language",
            "/sw/pi/anna/volume",
            "/a",
        ];
        let of = |name| nearest(name, names.into_iter());
        assert_eq!(
            of("/sw/pi/ana/language"),
            ["/sw/pi/anna/language", "/sw/pi/hanna/language"]
        );
        assert_eq!(
            of("/sw/pi/anna/langauge"),
            ["/sw/pi/anna/language", "/sw/pi/hanna/language"]
        );
        assert_eq!(of("/b"), ["/a"]);
        assert_eq!(of("/hw/gpio"), Vec::<&str>::new());
    }
}
