//! The names that a query means, as an automaton of at most 64 states.
//!
//! State `i` has seen what the first `i` levels mean. A set of states is a word,
//! so that a level of a name costs one pass over the states that are reached,
//! and nothing is tried twice however many `**` there are.
//!
//! Property kept: no two `**` are neighbours, so that one shift passes over
//! those that mean no level.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::Level;

/// How many sets of states [`Language::contains`] looks at for one level before it
/// gives up and says no, which is always safe.
const SETS_MAX: usize = 4096;

/// The levels of a query.
#[derive(Clone, Debug)]
pub(in crate::names) struct Language {
    levels: Box<[Level]>,
    /// Which of them are [`Level::Any`].
    any: u64,
    /// Which of them are [`Level::One`].
    one: u64,
}

/// What the next level of a name may be.
pub(in crate::names) enum Next<'a> {
    /// There is none.
    Nothing,
    /// This text alone.
    Text(&'a str),
    /// One of many.
    Several,
}

impl Language {
    pub(super) fn new(levels: Vec<Level>) -> Language {
        debug_assert!(levels.len() < 64, "there is a bit for each state");
        let places = |wanted: &Level| {
            let places = levels.iter().enumerate();
            places.fold(0, |all, (i, level)| all | u64::from(level == wanted) << i)
        };
        Language {
            any: places(&Level::Any),
            one: places(&Level::One),
            levels: levels.into(),
        }
    }

    pub(in crate::names) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The states before the first level of a name.
    pub(in crate::names) fn start(&self) -> u64 {
        self.close(1)
    }

    /// The states after a level with this text.
    pub(in crate::names) fn step(&self, states: u64, text: &str) -> u64 {
        let mut next = self.step_any(states);
        for i in self.particular(states) {
            if self.levels[i].fits(text) {
                next |= 2 << i;
            }
        }
        self.close(next)
    }

    /// The states after a level of which nothing is known.
    fn step_any(&self, states: u64) -> u64 {
        states & self.any | (states & self.one) << 1
    }

    /// Whether the levels so far are a name that is meant.
    pub(in crate::names) fn accepts(&self, states: u64) -> bool {
        states >> self.levels.len() & 1 == 1
    }

    /// The states that wait for a text or a placeholder.
    fn particular(&self, states: u64) -> impl Iterator<Item = usize> {
        let end = 1 << self.levels.len();
        let mut left = states & !self.any & !self.one & (end - 1);
        std::iter::from_fn(move || {
            let i = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (i < 64).then_some(i)
        })
    }

    /// What the next level of a name may be.
    pub(in crate::names) fn next(&self, states: u64) -> Next<'_> {
        // Only `**` leads to several states, and it stays among them.
        match self.levels.get(states.trailing_zeros() as usize) {
            None => Next::Nothing,
            Some(Level::Text(text)) => Next::Text(text),
            Some(_) => Next::Several,
        }
    }

    fn close(&self, states: u64) -> u64 {
        states | (states & self.any) << 1
    }

    pub(super) fn matches<'a>(&self, name: impl Iterator<Item = &'a str>) -> bool {
        let mut states = self.start();
        for level in name {
            states = self.step(states, level);
            if states == 0 {
                return false;
            }
        }
        self.accepts(states)
    }

    /// Whether some name is meant by both.
    pub(super) fn intersects(&self, other: &Language) -> bool {
        // `row` has the states of `other` that some name reaches together with
        // state `i` of this one.
        let mut row = 1;
        for level in &self.levels {
            row = other.close(row);
            row = match level {
                Level::Any => other.everything_from(row),
                Level::One => {
                    other.step_any(row) | other.particular(row).fold(0, |n, i| n | 2 << i)
                }
                level => other.step_level(row, level, Level::unifies),
            };
            if row == 0 {
                return false;
            }
        }
        other.accepts(other.close(row))
    }

    /// The states that any number of levels lead to: all from the first one on.
    fn everything_from(&self, states: u64) -> u64 {
        let all = u64::MAX >> (63 - self.levels.len());
        all & !(states & states.wrapping_neg()).wrapping_sub(1)
    }

    fn step_level(&self, states: u64, level: &Level, fit: fn(&Level, &Level) -> bool) -> u64 {
        let mut next = self.step_any(states);
        for i in self.particular(states) {
            if fit(&self.levels[i], level) {
                next |= 2 << i;
            }
        }
        next
    }

    /// Whether every name that `other` means is meant by this one.
    pub(super) fn contains(&self, other: &Language) -> bool {
        // The sets of states that names of `other` lead to. A level of which
        // nothing is known is the worst that a wildcard can stand for.
        let mut sets = BTreeSet::from([self.start()]);
        for level in &other.levels {
            let mut next = BTreeSet::new();
            for states in sets {
                match level {
                    Level::Any => {
                        let mut states = states;
                        while next.insert(states) {
                            states = self.close(self.step_any(states));
                        }
                    }
                    Level::One => drop(next.insert(self.close(self.step_any(states)))),
                    level => {
                        let after = self.step_level(states, level, Level::contains);
                        next.insert(self.close(after));
                    }
                }
            }
            if next.contains(&0) || next.len() > SETS_MAX {
                return false;
            }
            sets = next;
        }
        sets.into_iter().all(|states| self.accepts(states))
    }
}

impl Level {
    /// Whether a level of a name may be this.
    fn fits(&self, text: &str) -> bool {
        match self {
            Level::Text(wanted) => **wanted == *text,
            Level::Placeholder(pattern) => pattern.matches(text),
            Level::One | Level::Any => true,
        }
    }

    fn unifies(&self, other: &Level) -> bool {
        match (self, other) {
            (Level::Text(text), level) | (level, Level::Text(text)) => level.fits(text),
            (Level::Placeholder(one), Level::Placeholder(other)) => one.unifies(other),
            _ => true,
        }
    }

    fn contains(&self, other: &Level) -> bool {
        match other {
            Level::Text(text) => self.fits(text),
            other => self == other,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for level in &self.levels {
            f.write_char('/')?;
            match level {
                Level::Text(text) => f.write_str(text)?,
                Level::Placeholder(pattern) => write_placeholder(pattern, f)?,
                Level::One => f.write_char('*')?,
                Level::Any => f.write_str("**")?,
            }
        }
        Ok(())
    }
}

fn write_placeholder(
    pattern: &milieu_keys::pattern::LevelPattern,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    use milieu_keys::Piece;
    for piece in pattern.pieces() {
        match piece {
            Piece::Literal(text) => f.write_str(text)?,
            Piece::Layer(layer) => write!(f, "%{layer}%")?,
            Piece::Group(layers) => write!(f, "%{}%", layers.join(" "))?,
        }
    }
    Ok(())
}
