//! Whole sets of keys as texts of other formats, and texts as sets of keys.
//!
//! [`import`] of what [`Target::export`] wrote gives the same keys with the same values,
//! in every format: names that mean something else there are escaped, a key
//! with a value and keys below it is written as the format can, and elements
//! that are no array, because one is missing or because there are other keys
//! beside them, are members of that name.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_keys::rules::array_level;

use crate::format::{self, Format, Kind, Unwritable};
use crate::yaml;

/// What a set of keys can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A format, which can be read again.
    Format(&'static dyn Format),
    /// YAML, which is only written.
    Yaml,
}

impl Target {
    /// The target of this name: that of a format, or `yaml`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Target> {
        match name {
            "yaml" => Some(Target::Yaml),
            name => format::by_name(name).map(Target::Format),
        }
    }

    /// The target that the ending of a file speaks for.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Target> {
        let ending = path.extension().and_then(OsStr::to_str);
        match ending {
            Some("yaml" | "yml") => Some(Target::Yaml),
            _ => format::of_path(path).map(Target::Format),
        }
    }

    /// All targets.
    pub fn all() -> impl Iterator<Item = Target> {
        let formats = format::all().iter().copied();
        formats.map(Target::Format).chain([Target::Yaml])
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Target::Format(format) => format.name(),
            Target::Yaml => "yaml",
        }
    }

    /// The text of these keys, each of which comes once. Their order is that of
    /// the text where the target leaves a choice.
    ///
    /// ```
    /// use milieu_keys::Name;
    /// use milieu_store::{Kind, transfer::Target};
    ///
    /// let names = ["/sw/pi/hosts/#0", "/sw/pi/hosts/#1"].map(|name| Name::parse(name).unwrap());
    /// let keys = || names.iter().zip(["a", "b"]).map(|(name, value)| (name, value, Kind::Unknown));
    /// assert_eq!(
    ///     Target::Yaml.export(keys())?,
    ///     "sw:\n  pi:\n    hosts:\n      - a\n      - b\n"
    /// );
    /// # Ok::<(), milieu_store::Unwritable>(())
    /// ```
    ///
    /// # Errors
    /// A name that the target has no way to say, such as one of too many levels.
    pub fn export<'a>(
        &self,
        keys: impl IntoIterator<Item = (&'a Name, &'a str, Kind)>,
    ) -> Result<String, Unwritable> {
        let outline = Outline::of(keys);
        match self {
            Target::Format(format) => export(*format, &outline),
            Target::Yaml => yaml::write(&outline),
        }
    }
}

fn export(format: &dyn Format, outline: &Outline<'_>) -> Result<String, Unwritable> {
    let (mut document, _) = format.parse("");
    for key in outline.in_order() {
        document.set(key.name, key.value, key.kind)?;
    }
    Ok(document.text())
}

/// The keys of a text with their values, in its order.
///
/// # Errors
/// Everything in the text that is not as its format has it.
pub fn import(format: &dyn Format, text: &str) -> Result<Vec<(Name, String)>, Vec<Diagnostic>> {
    let (document, diagnostics) = format.parse(text);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let keys = document
        .keys()
        .map(|entry| (entry.name.into_owned(), entry.value.into_owned()));
    Ok(keys.collect())
}

/// Keys as a tree.
pub(crate) struct Outline<'a> {
    branches: Vec<Branch<'a>>,
}

/// One level, with the key that ends there and those below.
#[derive(Default)]
pub(crate) struct Branch<'a> {
    pub level: &'a str,
    pub key: Option<Exported<'a>>,
    pub children: Vec<usize>,
    /// Whether the children are all elements of an array and nothing else.
    pub is_array: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Exported<'a> {
    pub name: &'a Name,
    pub value: &'a str,
    pub kind: Kind,
}

/// The branch that everything is below.
pub(crate) const TRUNK: usize = 0;

impl<'a> Outline<'a> {
    fn of(keys: impl IntoIterator<Item = (&'a Name, &'a str, Kind)>) -> Outline<'a> {
        let mut branches = vec![Branch::default()];
        let mut known: HashMap<(usize, &str), usize> = HashMap::new();
        for (name, value, kind) in keys {
            let mut branch = TRUNK;
            for level in name.levels() {
                branch = *known.entry((branch, level)).or_insert_with(|| {
                    let id = branches.len();
                    branches[branch].children.push(id);
                    branches.push(Branch {
                        level,
                        ..Branch::default()
                    });
                    id
                });
            }
            branches[branch].key = Some(Exported { name, value, kind });
        }
        for (id, branch) in branches.iter_mut().enumerate() {
            let elements = (0..branch.children.len()).map(|index| {
                let level = array_level(index);
                known.get(&(id, &*level)).copied()
            });
            let elements: Option<Vec<usize>> = elements.collect();
            let is_alone = !branch.children.is_empty() && branch.key.is_none();
            if let Some(elements) = elements.filter(|_| is_alone) {
                branch.is_array = true;
                branch.children = elements;
            }
        }
        Outline { branches }
    }

    pub fn branch(&self, id: usize) -> &Branch<'a> {
        &self.branches[id]
    }

    /// The keys in an order in which they can be set one after the other: the
    /// first below a level decides whether it is an array, so that of a level
    /// that is none it is not `#0`.
    fn in_order(&self) -> impl Iterator<Item = Exported<'a>> {
        let mut stack = vec![(TRUNK, false)];
        std::iter::from_fn(move || {
            while let Some((id, key_only)) = stack.pop() {
                let branch = self.branch(id);
                if key_only || branch.children.is_empty() {
                    return branch.key;
                }
                let is_first =
                    |&&child: &&usize| branch.is_array || self.branch(child).level != "#0";
                let (first, last): (Vec<&usize>, Vec<&usize>) =
                    branch.children.iter().partition(is_first);
                // The value of a table follows its keys, so that they can be its header's.
                let own = branch.key.map(|_| (id, true));
                let children =
                    |ids: Vec<&usize>| ids.into_iter().map(|&id| (id, false)).collect::<Vec<_>>();
                let mut order = children(first);
                order.extend(own);
                order.extend(children(last));
                stack.extend(order.into_iter().rev());
            }
            None
        })
        .fuse()
    }
}
