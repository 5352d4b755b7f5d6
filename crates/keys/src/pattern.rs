//! Patterns: names with placeholders, resolved by the active layers.
//!
//! `/sw/pi/%session%/language` stands for one name in every session. A
//! placeholder is a layer's name between percent signs, inside one level:
//!
//! | in a pattern | `a` is `x`, `b` is `y` | only `a` is active | none is |
//! |--------------|------------------------|--------------------|---------|
//! | `%a%`        | `x`                    | `x`                | `%`     |
//! | `pre-%a%`    | `pre-x`                | `pre-x`            | `pre-%` |
//! | `%a%%b%`     | `xy`                   | `x%`               | `%%`    |
//! | `%a b%`      | `%x%y`                 | `%x`               | `%`     |
//!
//! The last one is a *group*: it stops at its first inactive layer. A level
//! `%` alone is the literal place of an inactive layer. Everything else is as
//! in a [`Name`], escapes included.
//!
//! Properties kept:
//! - a resolution has as many levels as its pattern, whatever the values are;
//! - resolving gives a canonical [`Name`] and allocates its text only;
//! - in patterns with at most one placeholder a level, different values give
//!   different names.

mod matching;
mod parse;
mod reading;

pub(crate) use reading::Reading;

use crate::name::{Name, NameError, escape_part, levels, seal_level, unescape};
use crate::rules::array_index;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// Text, escaped as in a name.
    Literal(Box<str>),
    /// The value of one layer.
    Layer(Box<str>),
    /// The values of several layers up to the first inactive one, each after a `%`.
    Group(Vec<Box<str>>),
}

/// One level of a pattern: its pieces, none of which holds a separating slash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LevelPattern {
    pieces: Box<[Piece]>,
}

/// A name with placeholders.
///
/// ```
/// use milieu_keys::Pattern;
///
/// let pattern = Pattern::parse("/sw/pi/%session%/language")?;
/// assert_eq!(pattern.resolve(|_| Some("anna")).as_str(), "/sw/pi/anna/language");
/// assert_eq!(pattern.resolve(|_| Some("../x")).as_str(), "/sw/pi/..\\/x/language");
/// assert_eq!(pattern.resolve(|_| None).as_str(), "/sw/pi/%/language");
/// assert_eq!(pattern.identifiers(), ["sw", "pi", "language"]);
/// # Ok::<(), milieu_keys::NameError>(())
/// ```
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    pieces: Box<[Piece]>,
    levels: Box<[LevelPattern]>,
    /// Each layer once, in the order of first appearance.
    layers: Box<[Box<str>]>,
    /// Whether some layer appears more than once.
    repeats: bool,
}

impl Pattern {
    /// Reads a pattern and makes its text canonical.
    ///
    /// # Errors
    /// Whatever makes a name wrong, a placeholder that is empty or not closed
    /// in its level, and a character that layers cannot have in their names.
    pub fn parse(text: &str) -> Result<Pattern, NameError> {
        parse::pattern(text)
    }

    /// The pattern as it is written, canonical.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pieces in order. Literals keep their slashes, so the text of the
    /// pattern is the concatenation of the pieces' texts.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The levels from the top, each with its pieces; none for the root.
    #[must_use]
    pub fn level_patterns(&self) -> &[LevelPattern] {
        &self.levels
    }

    /// The layers that the pattern depends on, each once, in order of appearance.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.layers.iter().map(|layer| &**layer)
    }

    /// Whether there is a placeholder.
    #[must_use]
    pub fn is_contextual(&self) -> bool {
        !self.layers.is_empty()
    }

    /// The name under the layers that `value_of` tells: raw values, where
    /// nothing or an empty text is an inactive layer.
    pub fn resolve<'a>(&self, value_of: impl FnMut(&str) -> Option<&'a str>) -> Name {
        let mut text = String::with_capacity(self.text.len() + 16);
        self.resolve_into(value_of, &mut text);
        Name::from_canonical(text)
    }

    /// Appends what [`resolve`](Self::resolve) gives, into a text that the
    /// caller may use again.
    pub fn resolve_into<'a>(
        &self,
        mut value_of: impl FnMut(&str) -> Option<&'a str>,
        out: &mut String,
    ) {
        if self.levels.is_empty() {
            out.push('/');
        }
        for level in &self.levels {
            out.push('/');
            level.resolve_into(&mut value_of, out);
        }
    }

    /// Whether the canonical name `name` could be a resolution of this pattern.
    ///
    /// A placeholder stands for `%` or for a part of its level that holds no
    /// bare `%`. A layer that fills several levels must have one value in all of
    /// them; that is not asked of layers that share a level with something else.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        matching::matches(self, name)
    }

    /// As [`matches`](Self::matches), where a level `#` of this pattern stands
    /// for any element of an array: `/hosts/#` declares `/hosts/#0`.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        // Hardly any name is that of an element.
        let mut levels = name.split('/').skip(1);
        self.matches(name)
            || (levels.any(|level| level.starts_with('#')) && self.matches(&of_elements(name)))
    }

    /// The layers that a canonical name was resolved with, each with its raw
    /// value: what [`resolve`](Self::resolve) was told. An inactive one has an
    /// empty value. Nothing if the name is none of this pattern; where that has
    /// the level `#`, the name may be that of an element, `#3`.
    ///
    /// Layers that share a level with others are left out, since nobody can tell
    /// where the value of one ends.
    ///
    /// ```
    /// use milieu_keys::Pattern;
    ///
    /// let pattern = Pattern::parse("/sw/pi/%session%/hosts/#")?;
    /// let layers = pattern.layers_of("/sw/pi/a\\/b/hosts/#3");
    /// assert_eq!(layers, Some(vec![("session", "a/b".to_owned())]));
    /// assert_eq!(pattern.layers_of("/sw/pi"), None);
    /// # Ok::<(), milieu_keys::NameError>(())
    /// ```
    #[must_use]
    pub fn layers_of(&self, name: &str) -> Option<Vec<(&str, String)>> {
        Some(self.read(name)?.layers)
    }

    /// As [`layers_of`](Self::layers_of), with the indices of elements.
    pub(crate) fn read<'p, 'n>(&'p self, name: &'n str) -> Option<Reading<'p, 'n>> {
        reading::read(self, name)
    }

    /// Whether names of the pattern show the value of every layer.
    pub(crate) fn is_readable(&self) -> bool {
        reading::is_readable(self)
    }

    /// Whether there may be a name that both patterns resolve to, under layers
    /// of any value each.
    ///
    /// A no is certain. A yes may be wrong where levels mix text and several
    /// placeholders, or where a layer appears twice.
    #[must_use]
    pub fn unifies(&self, other: &Pattern) -> bool {
        matching::unify(self, other)
    }

    /// The texts of the levels that have no placeholder, unescaped: what remains
    /// for the identifier in generated code.
    #[must_use]
    pub fn identifiers(&self) -> Vec<String> {
        self.levels
            .iter()
            .filter_map(LevelPattern::literal)
            .filter(|level| *level != "%")
            .map(|level| unescape(level).into_owned())
            .collect()
    }
}

impl LevelPattern {
    /// The pieces of the level; never none.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The level's escaped text, if it has no placeholder.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match &*self.pieces {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it is `#`, which stands for the number of an array's element.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.literal() == Some("#")
    }

    /// The layer whose value is the whole level, if it is one placeholder alone.
    #[must_use]
    pub fn layer(&self) -> Option<&str> {
        match &*self.pieces {
            [Piece::Layer(layer)] => Some(layer),
            _ => None,
        }
    }

    /// Whether the level of a canonical name could be a resolution of this one.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        matching::level_matches(self, text)
    }

    /// Whether there may be a level that both resolve to; as sure as
    /// [`Pattern::unifies`].
    #[must_use]
    pub fn unifies(&self, other: &LevelPattern) -> bool {
        matching::levels_unify(self, other)
    }

    /// Appends the canonical text of the level; values as in [`Pattern::resolve`].
    pub fn resolve_into<'a>(
        &self,
        mut value_of: impl FnMut(&str) -> Option<&'a str>,
        out: &mut String,
    ) {
        let start = out.len();
        if let Some(text) = self.literal() {
            out.push_str(text);
            return;
        }
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Layer(layer) => match value_of(layer) {
                    None | Some("") => out.push('%'),
                    Some(value) => escape_part(value, out),
                },
                Piece::Group(layers) => {
                    let before = out.len();
                    for layer in layers {
                        match value_of(layer) {
                            None | Some("") => break,
                            Some(value) => {
                                out.push('%');
                                escape_part(value, out);
                            }
                        }
                    }
                    if out.len() == before {
                        out.push('%');
                    }
                }
            }
        }
        // No part holds an escaped dot, so this only looks for `.` and `..`
        // where the level is short enough to be one of them.
        if out.len() - start <= 2 {
            seal_level(out, start);
        }
    }
}

/// The name with `#` for every index.
fn of_elements(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for level in levels(name) {
        let is_index = array_index(level).is_some();
        text.push('/');
        text.push_str(if is_index { "#" } else { level });
    }
    text
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl std::str::FromStr for Pattern {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Pattern, NameError> {
        Pattern::parse(text)
    }
}

#[cfg(test)]
mod tests;
