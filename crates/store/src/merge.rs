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

use std::fmt;

use milieu_keys::{Name, sort};

use crate::error::Conflict;
use crate::format::{Document, Kind, Unwritable};

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

/// What becomes of a key that two writers changed differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The commit fails with this conflict.
    Refuse,
    /// The key gets what this commit wants.
    Ours,
    /// The key keeps what the others wrote.
    Theirs,
    /// The key gets another value; nothing removes it. One that the
    /// specification does not allow is an error, before anything is written.
    Value(Option<String>),
}

/// Decides conflicts: a [`Strategy`] for all of them, or a function that looks
/// at each, and may take its time: no file is locked while it runs. Should a
/// key have changed once more when it has decided, it is asked once more.
pub trait Resolve {
    /// What becomes of the key.
    fn resolve(&mut self, conflict: &Conflict) -> Resolution;
}

impl Resolve for Strategy {
    fn resolve(&mut self, _: &Conflict) -> Resolution {
        match self {
            Strategy::Refuse => Resolution::Refuse,
            Strategy::Ours => Resolution::Ours,
            Strategy::Theirs => Resolution::Theirs,
        }
    }
}

impl<F: FnMut(&Conflict) -> Resolution> Resolve for F {
    fn resolve(&mut self, conflict: &Conflict) -> Resolution {
        self(conflict)
    }
}

/// What a commit did.
///
/// `{:?}` does not show the values, of which some may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Every key that it changed, with the value that the file had before.
    pub replaced: Vec<(Name, Option<String>)>,
    /// The conflicts that were decided.
    pub conflicts: Vec<Conflict>,
    /// Why the history does not know of it, where it should: keys come first,
    /// and a history that cannot be written holds up no commit.
    pub unlogged: Option<String>,
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&Name> = self.replaced.iter().map(|(name, _)| name).collect();
        f.debug_struct("Commit")
            .field("replaced", &names)
            .field("conflicts", &self.conflicts)
            .field("unlogged", &self.unlogged)
            .finish()
    }
}

impl Commit {
    pub(crate) fn extend(&mut self, other: Commit) {
        self.replaced.extend(other.replaced);
        self.conflicts.extend(other.conflicts);
        self.unlogged = self.unlogged.take().or(other.unlogged);
    }
}

/// Conflicts and what was decided about them, valid for just these values.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Vec<(Conflict, Resolution)>);

impl Decisions {
    /// Asks about each conflict; gives back those that are refused.
    pub fn ask(&mut self, conflicts: Vec<Conflict>, resolve: &mut dyn Resolve) -> Vec<Conflict> {
        let mut refused = Vec::new();
        for conflict in conflicts {
            match resolve.resolve(&conflict) {
                Resolution::Refuse => refused.push(conflict),
                resolution => self.0.push((conflict, resolution)),
            }
        }
        refused
    }

    /// What was decided for in place of what both want. A value that stands in
    /// the file already is not written.
    pub fn values(&self) -> Vec<Change> {
        let value = |(conflict, resolution): &(Conflict, Resolution)| match resolution {
            Resolution::Value(value) if *value != conflict.theirs => Some(Change {
                name: conflict.name.clone(),
                value: value.clone(),
            }),
            _ => None,
        };
        self.0.iter().filter_map(value).collect()
    }

    fn of(&self, conflict: &Conflict) -> Option<&Resolution> {
        let same = |(known, _): &&(Conflict, Resolution)| {
            (&known.name, &known.base) == (&conflict.name, &conflict.base)
                && (&known.ours, &known.theirs) == (&conflict.ours, &conflict.theirs)
        };
        self.0.iter().find(same).map(|(_, resolution)| resolution)
    }
}

/// A change as it concerns one file.
#[derive(Debug)]
pub(crate) struct Edit<'a> {
    pub change: &'a Change,
    /// The name in the file.
    pub inner: Name,
    /// The name in the file of the key that becomes this one.
    pub from: Option<Name>,
    pub kind: Kind,
}

/// Why changes cannot be applied.
#[derive(Debug)]
pub(crate) enum Unapplied {
    /// Nobody has decided these conflicts.
    Conflicts(Vec<Conflict>),
    /// The format of the file cannot say it.
    Unwritable(Name, Unwritable),
}

/// Of several changes to one key the last one counts.
pub(crate) fn last_of_each(changes: &[Change]) -> Vec<&Change> {
    let name = |index: usize| changes[index].name.as_str();
    let mut by_name: Vec<usize> = (0..changes.len()).collect();
    sort::by(&mut by_name, |&a, &b| name(a).cmp(name(b)));
    let mut counts = vec![true; changes.len()];
    for pair in by_name.windows(2) {
        counts[pair[0]] = name(pair[0]) != name(pair[1]);
    }
    let counted = changes.iter().zip(counts).filter(|(_, counts)| *counts);
    counted.map(|(change, _)| change).collect()
}

/// Applies the changes to what the file holds now.
///
/// # Errors
/// The document is then half changed and good for nothing.
pub(crate) fn apply<'a>(
    document: &mut dyn Document,
    edits: &[Edit<'_>],
    base: impl Fn(&str) -> Option<&'a str>,
    decisions: &Decisions,
) -> Result<Commit, Unapplied> {
    let mut commit = Commit::default();
    let mut undecided = Vec::new();
    for edit in edits {
        if let Some(from) = &edit.from {
            document.moving(from.as_str(), &edit.inner);
        }
    }
    for Edit {
        change,
        inner,
        kind,
        ..
    } in edits
    {
        let theirs = document.get(inner.as_str());
        if theirs.as_deref() == change.value.as_deref() {
            continue;
        }
        let base = base(change.name.as_str());
        let mut value = change.value.clone();
        if theirs.as_deref() != base {
            let conflict = Conflict {
                name: change.name.clone(),
                base: base.map(str::to_owned),
                ours: change.value.clone(),
                theirs: theirs.as_deref().map(str::to_owned),
                by: None,
                secret: false,
            };
            let resolution = decisions.of(&conflict);
            match resolution {
                None | Some(Resolution::Refuse) => {
                    undecided.push(conflict);
                    continue;
                }
                Some(_) => commit.conflicts.push(conflict),
            }
            match resolution {
                Some(Resolution::Theirs) => continue,
                Some(Resolution::Value(other)) if theirs.as_deref() == other.as_deref() => continue,
                Some(Resolution::Value(other)) => value = other.clone(),
                _ => {}
            }
        }
        drop(theirs);
        let replaced = match &value {
            Some(value) => document.set(inner, value, *kind),
            None => document.remove(inner.as_str()),
        };
        let unwritable = |cause| Unapplied::Unwritable(change.name.clone(), cause);
        let replaced = replaced.map_err(unwritable)?;
        commit.replaced.push((change.name.clone(), replaced));
    }
    document.moved();
    if undecided.is_empty() {
        Ok(commit)
    } else {
        Err(Unapplied::Conflicts(undecided))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ini;

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
        let mut document = ini::Document::new();
        document.set(&name("/other"), "theirs");
        if let Some(value) = theirs {
            document.set(&name("/key"), value);
        }
        let change = Change {
            name: name("/key"),
            value: ours.map(str::to_owned),
        };
        let edits = [Edit {
            change: &change,
            inner: name("/key"),
            from: None,
            kind: Kind::Unknown,
        }];
        let mut strategy = strategy;
        let mut decisions = Decisions::default();
        let commit = loop {
            match apply(&mut document, &edits, |_| base, &decisions) {
                Err(Unapplied::Conflicts(conflicts)) => {
                    let refused = decisions.ask(conflicts, &mut strategy);
                    if !refused.is_empty() {
                        return Err(refused);
                    }
                }
                result => break result.expect("everything can be written"),
            }
        };
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
                        by: None,
                        secret: false,
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
