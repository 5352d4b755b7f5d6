//! Values that would share a name and disagree on its type.

use super::says;
use crate::rules::{Rules, Type};
use crate::specification::{KeySpec, Specification};
use milieu_diagnostics::Diagnostic;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

pub(super) fn check(specification: &Specification, found: &mut Vec<Diagnostic>) {
    // Sorted, so that the diagnostics come in the same order each time.
    let mut buckets: BTreeMap<Ending<'_>, Vec<(&KeySpec, Kind)>> = BTreeMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for key in &specification.keys {
        // The same pattern twice is a duplicate, and said to be one.
        if key.is_removed() || !seen.insert(key.pattern.as_str()) {
            continue;
        }
        // Without rules there was an error already.
        let Some(kind) = Kind::of(key) else {
            continue;
        };
        // Only keys that end alike, or in a placeholder, can ever meet.
        let levels = key.pattern.level_patterns();
        let length = levels.len();
        let last = levels.last().and_then(|level| level.literal());
        let mut meet = |bucket: Option<&str>| {
            for (other, other_kind) in buckets.get(&(length, bucket)).into_iter().flatten() {
                report(other, other_kind, key, &kind, found);
            }
        };
        match last {
            Some(_) => {
                meet(last);
                meet(None);
            }
            None => {
                for (_, others) in buckets.iter().filter(|((count, _), _)| *count == length) {
                    for (other, other_kind) in others {
                        report(other, other_kind, key, &kind, found);
                    }
                }
            }
        }
        buckets.entry((length, last)).or_default().push((key, kind));
    }
}

/// How many levels a pattern has, and the last one unless it is contextual.
type Ending<'a> = (usize, Option<&'a str>);

/// What two values have to agree on.
#[derive(PartialEq)]
struct Kind {
    type_: Type,
    variants: Vec<String>,
}

impl Kind {
    fn of(key: &KeySpec) -> Option<Kind> {
        let rules: Vec<_> = key
            .borrowed()
            .into_iter()
            .filter(|(word, _)| *word == "type" || word.starts_with("check/enum"))
            .collect();
        let rules = Rules::from_metadata(&rules).ok()?;
        Some(Kind {
            type_: *rules.type_(),
            variants: rules.variants().to_vec(),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.type_ == Type::Enum {
            return write!(f, "one of {}", self.variants.join(", "));
        }
        write!(f, "{}", self.type_)
    }
}

fn report(
    one: &KeySpec,
    one_kind: &Kind,
    other: &KeySpec,
    other_kind: &Kind,
    found: &mut Vec<Diagnostic>,
) {
    let allowed = [one, other]
        .iter()
        .any(|key| says(&key.metadata, "allow/overlap"));
    if allowed || one_kind == other_kind || !one.pattern.unifies(&other.pattern) {
        return;
    }
    let (first, second) = (&one.pattern, &other.pattern);
    let same_type = one_kind.type_ == other_kind.type_;
    let difference = if same_type {
        "different variants".to_owned()
    } else {
        format!("the types {} and {}", one_kind.type_, other_kind.type_)
    };
    let remedy = match (one.get("type"), other.get("type")) {
        (Some(type_), None) => format!("say `type={type_}` for `{second}` too"),
        (None, Some(type_)) => format!("say `type={type_}` for `{first}` too"),
        _ if same_type => "give both the same variants".to_owned(),
        _ => "give both the same type".to_owned(),
    };
    found.push(
        Diagnostic::error(format!(
            "`{first}` and `{second}` can be the same name, with {difference}"
        ))
        .code("overlap")
        .label(other.span, other_kind.to_string())
        .label(one.span, one_kind.to_string())
        .help(remedy)
        .help("or rename a level, so that the names differ whatever the layers are")
        .help("or say `allow/overlap` in one of the sections, if no layers make them meet"),
    );
}
