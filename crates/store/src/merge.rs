//! Changes of single keys, and what happens when others change them as well.
//!
//! A commit knows three values of each key: the one it read (`base`), the one
//! it wants (`ours`), and the one in the file now (`theirs`). Only its own keys
//! count, so writers of different keys never disturb each other.
//!
//! | in the file now        | what happens                         |
//! |------------------------|--------------------------------------|
//! | `theirs` = `ours`      | nothing: all agree                   |
//! | `theirs` = `base`      | `ours` is written                    |
//! | anything else          | a conflict: the [`Strategy`] decides |

use std::collections::HashMap;

use milieu_keys::Name;

use crate::error::Conflict;
use crate::ini::Document;

/// A key and the value that it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub name: Name,
    /// Its new value; nothing removes the key.
    pub value: Option<String>,
}

impl Change {
    /// Gives a key a value.
    pub fn set(name: Name, value: impl Into<String>) -> Change {
        Change {
            name,
            value: Some(value.into()),
        }
    }

    /// Removes a key.
    pub fn remove(name: Name) -> Change {
        Change { name, value: None }
    }
}

/// Who is right where two writers changed the same key differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Nobody: the commit fails with all conflicts, and nothing is written.
    #[default]
    Refuse,
    /// This commit.
    Ours,
    /// The others: the rest of the commit is written.
    Theirs,
}

/// What a commit did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Every key that it changed, with the value that the file had before.
    pub replaced: Vec<(Name, Option<String>)>,
    /// The conflicts that the strategy decided.
    pub conflicts: Vec<Conflict>,
}

/// Of several changes to one key the last one counts.
pub(crate) fn last_of_each(changes: &[Change]) -> Vec<&Change> {
    let mut last = HashMap::new();
    for (index, change) in changes.iter().enumerate() {
        last.insert(change.name.as_str(), index);
    }
    let counts = |&(index, change): &(usize, &Change)| last[change.name.as_str()] == index;
    changes
        .iter()
        .enumerate()
        .filter(counts)
        .map(|(_, change)| change)
        .collect()
}

/// Applies the changes to what the file holds now.
///
/// # Errors
/// With [`Strategy::Refuse`], all conflicts. The document is then half changed
/// and good for nothing.
pub(crate) fn apply<'a>(
    document: &mut Document,
    changes: &[&Change],
    base: impl Fn(&str) -> Option<&'a str>,
    strategy: Strategy,
) -> Result<Commit, Vec<Conflict>> {
    let mut commit = Commit::default();
    for change in changes {
        let theirs = document.get(change.name.as_str());
        if theirs.as_deref() == change.value.as_deref() {
            continue;
        }
        let base = base(change.name.as_str());
        if theirs.as_deref() != base {
            commit.conflicts.push(Conflict {
                name: change.name.clone(),
                base: base.map(str::to_owned),
                ours: change.value.clone(),
                theirs: theirs.map(|value| value.into_owned()),
            });
            if strategy != Strategy::Ours {
                continue;
            }
        }
        let replaced = match &change.value {
            Some(value) => document.set(&change.name, value),
            None => document.remove(change.name.as_str()),
        };
        commit.replaced.push((change.name.clone(), replaced));
    }
    if strategy == Strategy::Refuse && !commit.conflicts.is_empty() {
        return Err(commit.conflicts);
    }
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    /// What the file holds after ours, with `base` read and `theirs` in the file.
    fn merged(
        base: Option<&'static str>,
        theirs: Option<&str>,
        ours: Option<&str>,
        strategy: Strategy,
    ) -> Result<(Option<String>, Commit), Vec<Conflict>> {
        let mut document = Document::new();
        document.set(&name("/other"), "theirs");
        if let Some(value) = theirs {
            document.set(&name("/key"), value);
        }
        let change = Change {
            name: name("/key"),
            value: ours.map(str::to_owned),
        };
        let commit = apply(&mut document, &[&change], |_| base, strategy)?;
        assert_eq!(document.get("/other").as_deref(), Some("theirs"));
        Ok((document.get("/key").map(|value| value.into_owned()), commit))
    }

    #[test]
    fn every_combination_of_the_three_values_follows_the_table() {
        let values = [None, Some("a"), Some("b"), Some("c")];
        for base in values {
            for theirs in values {
                for ours in values {
                    let expected_conflict = theirs != ours && theirs != base;
                    let owned = |value: Option<&str>| value.map(str::to_owned);
                    let conflict = Conflict {
                        name: name("/key"),
                        base: owned(base),
                        ours: owned(ours),
                        theirs: owned(theirs),
                    };
                    let conflicts = if expected_conflict {
                        vec![conflict]
                    } else {
                        vec![]
                    };

                    let refused = merged(base, theirs, ours, Strategy::Refuse);
                    if expected_conflict {
                        assert_eq!(refused.unwrap_err(), conflicts);
                    } else {
                        assert_eq!(refused.unwrap().0, owned(ours));
                    }
                    let (value, commit) = merged(base, theirs, ours, Strategy::Ours).unwrap();
                    assert_eq!((value, &commit.conflicts), (owned(ours), &conflicts));
                    let (value, commit) = merged(base, theirs, ours, Strategy::Theirs).unwrap();
                    let expected = if expected_conflict { theirs } else { ours };
                    assert_eq!((value, &commit.conflicts), (owned(expected), &conflicts));
                }
            }
        }
    }

    #[test]
    fn the_last_change_of_a_key_counts() {
        let changes = [
            Change::set(name("/a"), "1"),
            Change::set(name("/b"), "2"),
            Change::remove(name("/a")),
        ];
        assert_eq!(last_of_each(&changes), [&changes[1], &changes[2]]);
    }
}
