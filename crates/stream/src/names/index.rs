//! Who waits for changes at which names.
//!
//! The queries of those who wait are themselves a tree of levels, in which `*`
//! and `**` are levels like others: no name has such a level. A name that has
//! changed goes down all branches that mean it at once.
//!
//! Property kept: what a name costs depends on the branches that mean its first
//! levels, not on how many others there are.

use milieu_keys::name::levels;

use super::query::{Level, Query};
use super::trie::{Id, ROOT, Trie};

const ONE: &str = "*";
const ANY: &str = "**";

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiting {
    Watch(u64),
    Resolution(u64),
}

/// The queries of those who wait.
#[derive(Debug)]
pub(super) struct Index {
    queries: Trie<Place>,
}

/// A place in the tree of queries.
#[derive(Debug, Default)]
struct Place {
    waiting: Vec<Waiting>,
    /// The levels `*` and `**` below, which every name looks for.
    one: Option<Id>,
    any: Option<Id>,
}

impl Index {
    pub fn new() -> Index {
        Index {
            queries: Trie::new(),
        }
    }

    /// The place of a query without placeholders; its conditions are not looked
    /// at. Whoever asks [waits](Index::wait) there.
    pub fn place(&mut self, query: &Query) -> Id {
        query.levels().iter().fold(ROOT, |id, level| {
            let text = match level {
                Level::Text(text) => text,
                Level::One => ONE,
                Level::Any => ANY,
                Level::Placeholder(_) => unreachable!("queries are resolved before they wait"),
            };
            let below = self.queries.child_or_new(id, text);
            let place = self.queries.content_mut(id);
            match level {
                Level::One => place.one = Some(below),
                Level::Any => place.any = Some(below),
                _ => {}
            }
            below
        })
    }

    pub fn wait(&mut self, place: Id, who: Waiting) {
        let waiting = &mut self.queries.content_mut(place).waiting;
        // At most names one waits, and nobody else.
        waiting.reserve_exact(usize::from(waiting.is_empty()));
        waiting.push(who);
    }

    pub fn leave(&mut self, place: Id, who: Waiting) {
        let waiting = &mut self.queries.content_mut(place).waiting;
        if let Some(at) = waiting.iter().position(|&other| other == who) {
            waiting.swap_remove(at);
        }
        let is_needed = |_, place: &Place| !place.waiting.is_empty();
        self.queries.prune(place, is_needed, |place, gone| {
            for wildcard in [&mut place.one, &mut place.any] {
                wildcard.take_if(|id| *id == gone);
            }
        });
    }

    /// Those whom a change at a name concerns, in order and each once.
    pub fn concerned(&self, name: &str) -> Vec<Waiting> {
        let mut reached = Vec::new();
        self.enter(ROOT, &mut reached);
        for level in levels(name) {
            let mut next = Vec::new();
            for place in reached {
                if self.queries.text(place) == ANY {
                    next.push(place);
                }
                let below = self.queries.child(place, level);
                for below in below.into_iter().chain(self.queries.content(place).one) {
                    self.enter(below, &mut next);
                }
            }
            // `**` reaches places again that it has reached already.
            next.sort_unstable();
            next.dedup();
            reached = next;
        }
        let mut concerned: Vec<Waiting> = Vec::new();
        for place in reached {
            concerned.extend(&self.queries.content(place).waiting);
        }
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }

    /// Reaches a place, and the `**` behind it that means no level.
    fn enter(&self, place: Id, reached: &mut Vec<Id>) {
        reached.push(place);
        reached.extend(self.queries.content(place).any);
    }
}

#[cfg(test)]
mod tests {
    //! Those who wait are found, and only those.

    use super::*;

    #[test]
    fn places_that_have_gone_are_not_entered() {
        let mut index = Index::new();
        let wait = |index: &mut Index, text: &str, number| {
            let query = Query::parse(text).expect("a query");
            let place = index.place(&query);
            index.wait(place, Waiting::Watch(number));
            place
        };
        wait(&mut index, "/a/b", 1);
        for wildcard in ["/a/*", "/a/**"] {
            let gone = wait(&mut index, wildcard, 2);
            assert_eq!(index.concerned("/a/c"), [Waiting::Watch(2)]);
            index.leave(gone, Waiting::Watch(2));
            assert_eq!(index.concerned("/a/c"), []);
            // Takes the place of the wildcard that has gone.
            let new = wait(&mut index, "/x", 3);
            assert_eq!(new, gone);
            assert_eq!(index.concerned("/a/c"), []);
            index.leave(new, Waiting::Watch(3));
        }
        assert_eq!(index.concerned("/a/b"), [Waiting::Watch(1)]);
    }

    #[test]
    fn everybody_is_found_once() {
        let mut index = Index::new();
        for text in ["/**/a/**/a/**", "/a/*/a", "/**", "/a/a/a"] {
            let place = index.place(&Query::parse(text).expect("a query"));
            index.wait(place, Waiting::Resolution(7));
        }
        assert_eq!(index.concerned("/a/a/a"), [Waiting::Resolution(7)]);
    }
}
