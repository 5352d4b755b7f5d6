//! What readers are told: changes of keys and of files, the newest of each only.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use milieu_keys::key_set::compare;
use milieu_keys::{Key, Name, Namespace};

use crate::error::StoreError;
use crate::history::Author;
use crate::redact::shown;

/// What is new since a reader looked last.
///
/// What one commit wrote into one file is never spread over several.
#[derive(Debug, Clone, Default)]
pub struct News {
    /// The keys that have another value, by name, each once.
    pub changes: Vec<Change>,
    /// The files that became invalid or valid again.
    pub files: Vec<FileNews>,
}

/// A key that has another value.
///
/// `{:?}` does not show the values of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub name: Name,
    /// What the reader was told before; nothing if there was no such key. Its
    /// origin is where the value stood.
    pub old: Option<Key>,
    /// What is in force now; nothing if there is no such key. Its origin is the
    /// file and line of the value.
    pub new: Option<Key>,
    /// Who changed it last, where the history of the file knows: whoever edits
    /// a file by hand, or does not [sign](crate::Store::signed), leaves no word.
    pub by: Option<Author>,
    /// Whether the values are secret.
    pub secret: bool,
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("name", &self.name)
            .field("old", &shown(self.old.as_ref(), self.secret))
            .field("new", &shown(self.new.as_ref(), self.secret))
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// What happened to a file as a whole.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FileNews {
    /// The file cannot be read or understood, or has a value that the
    /// specification refuses. The keys that it had stay in force. Said once for
    /// each content of the file.
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why, where, and what to do about it.
        error: Arc<StoreError>,
    },
    /// A file that was invalid is so no longer: its keys are in force.
    Valid {
        /// The file.
        path: PathBuf,
    },
    /// The file can no longer be watched as it should. It is looked at in
    /// intervals if [`Pace::look`](super::Pace::look) says so.
    Unwatched {
        /// The file.
        path: PathBuf,
        /// Why, and what to do about it.
        error: Arc<StoreError>,
    },
}

/// Which changes a reader wants to know of.
///
/// ```
/// # use milieu_keys::{Name, Namespace};
/// # use milieu_store::watch::Filter;
/// let all = Filter::all();
/// let some = Filter::all().below(Name::parse("/sw/pi")?).in_namespace(Namespace::User);
/// # Ok::<(), milieu_keys::NameError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    below: Option<Name>,
    namespace: Option<Namespace>,
}

impl Filter {
    /// Every change of a value that a lookup finds, whatever namespace gives it.
    pub fn all() -> Filter {
        Filter::default()
    }

    /// Of these only changes of this key and of those below it.
    pub fn below(mut self, name: Name) -> Filter {
        self.below = Some(name);
        self
    }

    /// Changes in this namespace, whether or not another one wins over it.
    pub fn in_namespace(mut self, namespace: Namespace) -> Filter {
        self.namespace = Some(namespace);
        self
    }

    pub(super) fn namespace(&self) -> Option<Namespace> {
        self.namespace
    }

    pub(super) fn has(&self, name: &Name) -> bool {
        let below = self.below.as_ref();
        below.is_none_or(|below| name.is_below_or_same(below.as_str()))
    }
}

impl News {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.files.is_empty()
    }
}

impl FileNews {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            FileNews::Invalid { path, .. }
            | FileNews::Valid { path }
            | FileNews::Unwatched { path, .. } => path,
        }
    }

    fn is_of_content(&self) -> bool {
        !matches!(self, FileNews::Unwatched { .. })
    }
}

/// Whether a key has the same value, or is missing, both times.
pub(super) fn same(old: Option<&Key>, new: Option<&Key>) -> bool {
    old.map(Key::value) == new.map(Key::value)
}

/// News that a reader has not taken yet: of every key and file the newest. It
/// is therefore never more than what the reader knows and what there is now.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: HashMap<Name, Change>,
    files: Vec<FileNews>,
    /// The files of which the reader was told that they are invalid.
    invalid: BTreeSet<PathBuf>,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.files.is_empty()
    }

    /// A key has another value. What the reader does not know yet of it and is
    /// past already, it will never know.
    pub fn change(&mut self, mut change: Change) {
        if let Some(known) = self.changes.remove(&change.name) {
            change.old = known.old;
        }
        if !same(change.old.as_ref(), change.new.as_ref()) {
            self.changes.insert(change.name.clone(), change);
        }
    }

    /// The reader knows the value of this key.
    pub fn forget(&mut self, name: &Name) {
        self.changes.remove(name);
    }

    /// Something happened to a file.
    pub fn file(&mut self, news: FileNews) {
        let replaced = |other: &FileNews| {
            other.path() == news.path() && other.is_of_content() == news.is_of_content()
        };
        self.files.retain(|other| !replaced(other));
        let is_known = match &news {
            FileNews::Valid { path } => !self.invalid.contains(path),
            _ => false,
        };
        if !is_known {
            self.files.push(news);
        }
    }

    /// Takes everything.
    pub fn take(&mut self) -> News {
        let mut changes: Vec<Change> = self.changes.drain().map(|(_, change)| change).collect();
        changes.sort_unstable_by(|a, b| compare(a.name.as_str(), b.name.as_str()));
        let files = std::mem::take(&mut self.files);
        for news in &files {
            match news {
                FileNews::Invalid { path, .. } => self.invalid.insert(path.clone()),
                FileNews::Valid { path } => self.invalid.remove(path),
                FileNews::Unwatched { .. } => false,
            };
        }
        News { changes, files }
    }
}

#[cfg(test)]
mod tests {
    use milieu_keys::{Origin, SourceOf};
    use rustix::io::Errno;

    use super::*;

    fn key(name: &str, value: &str) -> Key {
        let name = Name::parse(name).unwrap();
        Key::new(
            Namespace::User,
            &name,
            value,
            Origin::new(SourceOf::Program),
        )
    }

    fn change(pending: &mut Pending, name: &str, old: Option<&str>, new: Option<&str>) {
        let of = |value: Option<&str>| value.map(|value| key(name, value));
        pending.change(Change {
            name: Name::parse(name).unwrap(),
            old: of(old),
            new: of(new),
            by: None,
            secret: false,
        });
    }

    fn taken(pending: &mut Pending) -> Vec<String> {
        let shown = |change: Change| {
            let value = |key: Option<Key>| key.map_or("-".to_owned(), |key| key.value().to_owned());
            format!(
                "{} {} {}",
                change.name,
                value(change.old),
                value(change.new)
            )
        };
        pending.take().changes.into_iter().map(shown).collect()
    }

    #[test]
    fn of_each_key_the_first_old_and_the_last_new_value_count() {
        let mut pending = Pending::default();
        change(&mut pending, "/b", Some("1"), Some("2"));
        change(&mut pending, "/a", None, Some("x"));
        change(&mut pending, "/b", Some("2"), Some("3"));
        assert_eq!(taken(&mut pending), ["/a - x", "/b 1 3"]);
        assert!(pending.is_empty());
        change(&mut pending, "/b", Some("3"), None);
        assert_eq!(taken(&mut pending), ["/b 3 -"]);
    }

    #[test]
    fn what_came_and_went_is_no_news() {
        let mut pending = Pending::default();
        for turn in 0..1000 {
            let name = format!("/passing/{turn}");
            change(&mut pending, &name, None, Some("1"));
            change(&mut pending, &name, Some("1"), None);
        }
        change(&mut pending, "/a", Some("1"), Some("2"));
        change(&mut pending, "/a", Some("2"), Some("1"));
        assert!(pending.is_empty());
    }

    #[test]
    fn files_are_told_of_by_what_the_reader_knows() {
        let path = PathBuf::from("/f");
        let invalid = |text: &'static str| FileNews::Invalid {
            path: PathBuf::from("/f"),
            error: Arc::new(StoreError::io(text, Path::new("/f"), Errno::IO)),
        };
        let valid = || FileNews::Valid { path: path.clone() };
        let shown = |pending: &mut Pending| -> Vec<String> {
            let shown = |news: &FileNews| match news {
                FileNews::Invalid { error, .. } => error.to_string(),
                other => format!("{other:?}"),
            };
            pending.take().files.iter().map(shown).collect()
        };
        let mut pending = Pending::default();
        pending.file(valid());
        assert!(pending.is_empty(), "it was never invalid");
        pending.file(invalid("one"));
        pending.file(valid());
        assert!(pending.is_empty(), "it is valid again");
        pending.file(invalid("one"));
        pending.file(invalid("two"));
        let told = shown(&mut pending);
        assert!(
            told.len() == 1 && told[0].contains("cannot two"),
            "{told:?}"
        );
        pending.file(invalid("three"));
        pending.file(valid());
        assert_eq!(shown(&mut pending), ["Valid { path: \"/f\" }"]);
        pending.file(valid());
        assert!(pending.is_empty(), "that was said");
    }

    #[test]
    fn a_filter_takes_a_name_and_what_is_below_it() {
        let name = |text| Name::parse(text).unwrap();
        let filter = Filter::all().below(name("/sw/pi"));
        assert!(filter.has(&name("/sw/pi")) && filter.has(&name("/sw/pi/a/b")));
        assert!(!filter.has(&name("/sw/pie")) && !filter.has(&name("/sw")));
        assert!(
            Filter::all().has(&name("/sw")) && Filter::all().below(Name::root()).has(&name("/sw"))
        );
    }
}
