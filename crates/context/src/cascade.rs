//! The keys of one name: which is in force, and which comes next.
//!
//! A name has at most one key in each namespace. The map shows the first of
//! them, and each knows the one below it:
//!
//! ```text
//!   assigned ─▶ proc ─▶ system ─▶ default      and without an assignment
//!               proc ─▶ user ─▶ system ─▶ default
//! ```
//!
//! What the program assigns is the user's key from then on, and precedes even
//! the command line for as long as it is there. Only the first one is typed;
//! the others were checked when they came, and are typed when they surface.

use std::sync::Arc;

use milieu_keys::Namespace;

use crate::map::Datum;

impl Datum {
    /// Whether the program has assigned it.
    pub fn is_assigned(&self) -> bool {
        self.origin.is_none()
    }

    /// The place in the cascade; the least is in force.
    fn rank(&self) -> u8 {
        match self.is_assigned() {
            true => 0,
            false => 1 + self.namespace as u8,
        }
    }

    /// Whether it would be in force rather than the other one.
    pub fn precedes(&self, other: &Datum) -> bool {
        self.rank() < other.rank()
    }

    /// The same key above another one.
    fn above(&self, below: Option<Arc<Datum>>) -> Arc<Datum> {
        Arc::new(Datum {
            name: self.name.clone(),
            text: self.text.clone(),
            origin: self.origin.clone(),
            namespace: self.namespace,
            below,
            elements: None,
        })
    }

    /// This key, and those below it in their order.
    pub fn candidates(self: &Arc<Datum>) -> impl Iterator<Item = &Arc<Datum>> {
        std::iter::successors(Some(self), |datum| datum.below.as_ref())
    }

    /// The key of a namespace among these.
    pub fn of(self: &Arc<Datum>, namespace: Namespace) -> Option<&Arc<Datum>> {
        self.candidates().find(|datum| datum.namespace == namespace)
    }
}

/// The keys without that of a namespace. What need not be copied is not.
pub fn without(first: Option<&Arc<Datum>>, namespace: Namespace) -> Option<Arc<Datum>> {
    let first = first?;
    if first.namespace == namespace {
        return first.below.clone();
    }
    let below = without(first.below.as_ref(), namespace);
    if same(below.as_ref(), first.below.as_ref()) {
        return Some(first.clone());
    }
    Some(first.above(below))
}

/// The keys with another one, in the place of that of its namespace.
pub fn with(first: Option<&Arc<Datum>>, new: Arc<Datum>) -> Arc<Datum> {
    insert(without(first, new.namespace), new)
}

fn insert(first: Option<Arc<Datum>>, mut new: Arc<Datum>) -> Arc<Datum> {
    match first {
        Some(first) if first.rank() < new.rank() => {
            let below = insert(first.below.clone(), new);
            first.above(Some(below))
        }
        below if same(below.as_ref(), new.below.as_ref()) => new,
        below => match Arc::get_mut(&mut new) {
            Some(alone) => {
                alone.below = below;
                new
            }
            None => new.above(below),
        },
    }
}

/// Whether both are the same key, and not just alike.
fn same(one: Option<&Arc<Datum>>, other: Option<&Arc<Datum>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}
