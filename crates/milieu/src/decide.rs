//! Conflicts with what others have written, decided while nothing is locked.
//!
//! ```text
//!   attempt, by what is decided so far ──▶ done
//!      ▲              │
//!      │              ▼ conflicts that nobody has decided
//!      └── whoever decides: a strategy, or the program's function
//! ```
//!
//! Neither the files nor what is known of them is locked while somebody
//! decides, so that a function may do whatever a program may: assign, persist,
//! make contexts, end a watch.

use milieu_context::{Coordinator, KeyError};
use milieu_keys::{Key, KeySet, Namespace, Origin, SourceOf};
use milieu_store::{Conflict, Resolution, Resolve, StoreError};

use crate::Error;

/// Whoever decides, and what is decided.
pub(crate) struct Decisions<'a, R> {
    resolve: R,
    coordinator: &'a Coordinator,
    decided: Vec<(Conflict, Resolution)>,
}

/// What is decided so far; everything else is refused.
#[derive(Clone, Copy)]
pub(crate) struct Decided<'a>(&'a [(Conflict, Resolution)]);

impl<'a, R: Resolve> Decisions<'a, R> {
    pub fn new(resolve: R, coordinator: &'a Coordinator) -> Self {
        Decisions {
            resolve,
            coordinator,
            decided: Vec::new(),
        }
    }

    /// Attempts to write until it succeeds or a conflict is refused.
    pub fn settle<T>(
        &mut self,
        mut attempt: impl FnMut(Decided<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            match attempt(Decided(&self.decided)) {
                Err(Error::Store(StoreError::Conflict { path, conflicts })) => {
                    let refused = self.ask(conflicts)?;
                    if !refused.is_empty() {
                        let conflicts = refused;
                        return Err(StoreError::Conflict { path, conflicts }.into());
                    }
                }
                done => return done,
            }
        }
    }

    /// Asks about each of them; gives back those that are refused.
    fn ask(&mut self, conflicts: Vec<Conflict>) -> Result<Vec<Conflict>, KeyError> {
        let mut refused = Vec::new();
        let mut wrong = Ok(());
        for conflict in conflicts {
            match self.resolve.resolve(&conflict) {
                Resolution::Refuse => refused.push(conflict),
                resolution => {
                    wrong = wrong.and(self.check(&conflict, &resolution));
                    self.decided.push((conflict, resolution));
                }
            }
        }
        wrong.map(|()| refused)
    }

    /// Whether the rules allow what was decided for.
    fn check(&self, conflict: &Conflict, resolution: &Resolution) -> Result<(), KeyError> {
        match resolution {
            // What stands there already is not written.
            Resolution::Value(value) if *value != conflict.theirs => {
                let name = conflict.name.as_str();
                self.coordinator.check(name, value.as_deref())
            }
            _ => Ok(()),
        }
    }

    /// What was decided, of each key the last time.
    pub fn into_conflicts(self) -> Vec<Conflict> {
        let mut conflicts: Vec<Conflict> = Vec::new();
        for (conflict, _) in self.decided {
            conflicts.retain(|other| other.name != conflict.name);
            conflicts.push(conflict);
        }
        conflicts
    }
}

impl Decided<'_> {
    /// What was known when each decision was asked for. A watch may have learned
    /// of the others' values since, and without a conflict no decision would count.
    pub fn since(&self, known: &KeySet) -> KeySet {
        let mut since = known.clone();
        for (Conflict { name, base, .. }, _) in self.0 {
            match base {
                Some(value) => {
                    let origin = Origin::new(SourceOf::Program);
                    since.insert(Key::new(Namespace::User, name, value, origin));
                }
                None => {
                    since.remove(Namespace::User, name.as_str());
                }
            }
        }
        since
    }
}

impl Resolve for Decided<'_> {
    fn resolve(&mut self, conflict: &Conflict) -> Resolution {
        let is_it = |(known, resolution): &&(Conflict, Resolution)| {
            // Of several files one may have been written before.
            let is_there = matches!(resolution, Resolution::Value(v) if *v == conflict.theirs);
            (&known.name, &known.base, &known.ours)
                == (&conflict.name, &conflict.base, &conflict.ours)
                && (known.theirs == conflict.theirs || is_there)
        };
        let decided = self.0.iter().rfind(is_it);
        decided.map_or(Resolution::Refuse, |(_, resolution)| resolution.clone())
    }
}
