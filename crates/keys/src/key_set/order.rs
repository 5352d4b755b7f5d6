//! The order of names in the hierarchy.
//!
//! Bytewise order with `/` as the smallest byte is the order by levels: what is
//! below a name begins with its text and goes on with `/`, so it directly
//! follows the name. An escaped slash comes after a backslash, which is in the
//! same level already and larger than `/`.

use super::Key;
use std::cmp::Ordering;

/// Compares two names: by levels, a name before what is below it, and both
/// before its siblings.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let at = shared_start(a, b);
    match (a.get(at), b.get(at)) {
        (Some(b'/'), Some(_)) => Ordering::Less,
        (Some(_), Some(b'/')) => Ordering::Greater,
        (x, y) => x.cmp(&y),
    }
}

/// How many bytes at the start are equal.
fn shared_start(a: &[u8], b: &[u8]) -> usize {
    let shared = a.len().min(b.len());
    let mut at = 0;
    // Names of one set begin alike, so the shared start is passed in words.
    while at + 8 <= shared && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < shared && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Whether `name` is `ancestor` or below it, both canonical.
pub(super) fn is_below_or_same(name: &str, ancestor: &str) -> bool {
    ancestor == "/"
        || name
            .strip_prefix(ancestor)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Eight bytes of a name as a number that compares as they do. Where the name
/// has ended there are zeros.
fn head(name: &[u8], at: usize) -> u64 {
    let bytes = name.get(at..).unwrap_or_default();
    let mut head = 0;
    for index in 0..8 {
        // UTF-8 has no byte above 0xF4, which leaves room for the end.
        let symbol = match bytes.get(index) {
            None => 0,
            Some(b'/') => 1,
            Some(&byte) if byte < b'/' => byte + 2,
            Some(&byte) => byte + 1,
        };
        head = head << 8 | u64::from(symbol);
    }
    head
}

/// Sorts the ids of keys by name, then namespace.
///
/// Names share long starts, so comparing whole names again and again would pass
/// the same bytes many times. Instead each group of names that begin alike is
/// sorted by its next eight bytes, which are fetched once.
pub(super) fn sort(keys: &[Key], ids: &mut [u32]) {
    let name = |id: u32| keys[id as usize].name().as_bytes();
    let mut entries: Vec<(u64, u32)> = ids.iter().map(|&id| (0, id)).collect();
    let mut groups = vec![(0..ids.len(), 0)];
    while let Some((group, mut at)) = groups.pop() {
        let start = group.start;
        let group = &mut entries[group];
        let first = name(group[0].1);
        at += group[1..]
            .iter()
            .map(|&(_, id)| shared_start(&first[at..], &name(id)[at..]))
            .min()
            .unwrap_or(0);
        for (bytes, id) in group.iter_mut() {
            *bytes = head(name(*id), at);
        }
        group.sort_unstable_by_key(|&(bytes, _)| bytes);
        let mut end = 0;
        for alike in group.chunk_by_mut(|a, b| a.0 == b.0) {
            let begin = end;
            end += alike.len();
            if alike.len() == 1 {
                continue;
            }
            if alike[0].0 & 0xFF == 0 {
                // All these names have ended: they are the same.
                alike.sort_unstable_by_key(|&(_, id)| keys[id as usize].namespace());
            } else {
                groups.push((start + begin..start + end, at + 8));
            }
        }
    }
    for (id, (_, sorted)) in ids.iter_mut().zip(entries) {
        *id = sorted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_set::{Namespace, Origin, SourceOf};
    use crate::name::Name;

    const SORTED: [&str; 11] = [
        "/",
        "/a",
        "/a/b",
        "/a/b/c",
        "/a/b%",
        "/a ",
        "/a-b",
        "/a.b",
        "/ab",
        "/ab/a-name-longer-than-eight-bytes/x",
        "/ab/a-name-longer-than-eight-bytes/y",
    ];

    #[test]
    fn below_comes_before_beside() {
        for (index, a) in SORTED.iter().enumerate() {
            for b in &SORTED[index + 1..] {
                assert_eq!(compare(a, b), Ordering::Less, "{a} {b}");
                assert_eq!(compare(b, a), Ordering::Greater, "{b} {a}");
            }
            assert_eq!(compare(a, a), Ordering::Equal);
        }
    }

    #[test]
    fn sorting_by_words_agrees_with_comparing() {
        let origin = Origin::new(SourceOf::Program);
        let key = |ns, name: &str| Key::new(ns, &Name::parse(name).unwrap(), "", origin.clone());
        let mut keys = Vec::new();
        for (index, name) in SORTED.iter().enumerate() {
            keys.insert(index / 2, key(Namespace::Default, name));
            keys.insert(index / 3, key(Namespace::Proc, name));
        }
        let mut ids: Vec<u32> = (0..keys.len() as u32).collect();
        sort(&keys, &mut ids);
        let sorted: Vec<&Key> = ids.iter().map(|&id| &keys[id as usize]).collect();
        assert!(sorted.is_sorted_by(|a, b| a.order(b) == Ordering::Less));
    }
}
