//! Which nodes of the tree a query means.
//!
//! The states of the query go down with the nodes: a branch that no name of the
//! query leads into is not entered, and a level that is known is looked up.

use super::query::{Language, Next};
use super::trie::{Id, ROOT, Trie};

/// Visits the nodes that a query means, in no particular order, each once.
pub(super) fn walk<T: Default>(trie: &Trie<T>, language: &Language, visit: &mut impl FnMut(Id)) {
    descend(trie, language, ROOT, language.start(), visit);
}

// As deep as a name has levels at most.
fn descend<T: Default>(
    trie: &Trie<T>,
    language: &Language,
    node: Id,
    states: u64,
    visit: &mut impl FnMut(Id),
) {
    if language.accepts(states) {
        visit(node);
    }
    let mut enter = |child| {
        let next = language.step(states, trie.text(child));
        if next != 0 {
            descend(trie, language, child, next, visit);
        }
    };
    match language.next(states) {
        Next::Nothing => {}
        Next::Text(text) => trie.child(node, text).into_iter().for_each(enter),
        Next::Several => trie.children(node).for_each(&mut enter),
    }
}
