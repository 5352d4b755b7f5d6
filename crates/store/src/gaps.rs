//! Elements that are no part of their array, because one before them is missing.
//!
//! An array is a whole: all its elements are those of one namespace, in
//! whichever of its files, up to the first gap. Where elements have keys of
//! their own, `/hosts/#1/port`, each of these is looked up for itself, so that
//! those of all namespaces count.

use std::collections::{BTreeSet, HashMap, HashSet};

use milieu_diagnostics::Diagnostic;
use milieu_keys::rules::{array_index, array_level};
use milieu_keys::{Namespace, split};

use crate::format::Entry;
use crate::ini;
use crate::redact::Redacted;

/// A key that is an element or stands below one.
struct Element {
    name: String,
    namespace: Namespace,
    /// Which of the files has it.
    file: usize,
    /// What is to be said if it stands behind a gap, but for its message.
    told: Diagnostic,
}

/// An array, and the namespace that it has to be whole in, if it is one.
type Array<'n> = (Option<Namespace>, &'n str);

/// The elements of all files.
#[derive(Default)]
pub(crate) struct Elements(Vec<Element>);

impl Elements {
    /// Remembers the keys of a file that are elements or stand below one.
    pub fn add(
        &mut self,
        namespace: Namespace,
        file: usize,
        entries: &[&Entry<'_>],
        redacted: &Redacted,
    ) {
        let elements = entries
            .iter()
            .filter(|entry| entry.name.as_str().contains("/#"));
        self.0.extend(elements.map(|entry| Element {
            name: entry.name.as_str().to_owned(),
            namespace,
            file,
            told: redacted.label(Diagnostic::warning("").code("gap"), entry, "behind the gap"),
        }));
    }

    /// A warning for the first element behind a gap of each array, for each file
    /// that has some, with the number of the file.
    pub fn gaps(&self) -> Vec<(usize, Diagnostic)> {
        let mut indices: HashMap<Array<'_>, BTreeSet<usize>> = HashMap::new();
        for element in &self.0 {
            for ((whole, array), index) in arrays(element) {
                indices.entry((whole, array)).or_default().insert(index);
                indices.entry((None, array)).or_default().insert(index);
            }
        }
        let first_missing =
            |indices: &BTreeSet<usize>| (0..).find(|index| !indices.contains(index));
        let mut told = HashSet::new();
        let mut gaps = Vec::new();
        for element in &self.0 {
            for (array, index) in arrays(element) {
                let missing = first_missing(&indices[&array]).unwrap_or(usize::MAX);
                if index > missing && told.insert((element.file, array.1)) {
                    gaps.push((element.file, warning(element, array.1, missing)));
                }
            }
        }
        gaps
    }
}

fn warning(element: &Element, array: &str, missing: usize) -> Diagnostic {
    let shown = ini::encode_name(&element.name);
    let missing = format!("{array}/{}", array_level(missing));
    let missing = ini::encode_name(&missing);
    let mut told = element.told.clone();
    told.message = format!("`{shown}` is no part of its array, which ends before `{missing}`");
    told.help(format!(
        "set `{missing}`, or number the elements without a gap"
    ))
}

/// The arrays that a key is in, outermost first, with the indices that it has there.
fn arrays(element: &Element) -> impl Iterator<Item = (Array<'_>, usize)> {
    let name = element.name.as_str();
    let ends = name.match_indices('/').map(|(at, _)| at).skip(1);
    let prefixes = ends.chain([name.len()]).map(|end| &name[..end]);
    prefixes.filter_map(move |prefix| {
        let (array, level) = split(prefix);
        let whole = (prefix.len() == name.len()).then_some(element.namespace);
        Some(((whole, array), array_index(level)?))
    })
}
