//! From a name back to what the placeholders of its pattern stood for.

use super::matching::level_matches;
use super::{LevelPattern, Pattern, Piece};
use crate::name::{levels, unescape, units};
use crate::rules::array_index;

/// What a name has in place of placeholders and indices.
#[derive(Debug, Default)]
pub(crate) struct Reading<'p, 'n> {
    /// Layers with their values, unescaped; empty for an inactive one.
    pub layers: Vec<(&'p str, String)>,
    /// What stands where the pattern has `#`: levels such as `#3`.
    pub indices: Vec<&'n str>,
}

/// What the canonical name says, if it is one of the pattern.
pub(super) fn read<'p, 'n>(pattern: &'p Pattern, name: &'n str) -> Option<Reading<'p, 'n>> {
    let mut reading = Reading::default();
    let mut texts = levels(name);
    for level in &pattern.levels {
        let text = texts.next()?;
        if level.literal() == Some("#") && (text == "#" || array_index(text).is_some()) {
            reading.indices.push(text);
        } else if let Some((before, layer, behind)) = around_placeholder(level) {
            let value = between(text, before, behind)?;
            match reading.layers.iter().find(|(known, _)| *known == layer) {
                Some((_, known)) if *known != value => return None,
                Some(_) => {}
                None => reading.layers.push((layer, value)),
            }
        } else if !level_matches(level, text) {
            return None;
        }
    }
    texts.next().is_none().then_some(reading)
}

/// Whether a name shows the values of all layers: of several in one level
/// nobody can tell where one ends.
pub(super) fn is_readable(pattern: &Pattern) -> bool {
    let is_readable =
        |level: &LevelPattern| level.literal().is_some() || around_placeholder(level).is_some();
    pattern.levels.iter().all(is_readable)
}

/// The only placeholder of a level, and the text around it.
fn around_placeholder(level: &LevelPattern) -> Option<(&str, &str, &str)> {
    match level.pieces() {
        [Piece::Layer(layer)] => Some(("", layer, "")),
        [Piece::Literal(before), Piece::Layer(layer)] => Some((before, layer, "")),
        [Piece::Layer(layer), Piece::Literal(behind)] => Some(("", layer, behind)),
        [
            Piece::Literal(before),
            Piece::Layer(layer),
            Piece::Literal(behind),
        ] => Some((before, layer, behind)),
        _ => None,
    }
}

/// What stands between two texts in a level, unescaped; empty for `%`.
fn between(level: &str, before: &str, behind: &str) -> Option<String> {
    let whole = before.is_empty() && behind.is_empty();
    // A level that is all dots is escaped as a whole, and not in its parts.
    let level = match level {
        "\\." | "\\.." if !whole => &level[1..],
        level => level,
    };
    let all: Vec<&str> = units(level).collect();
    let (before, behind): (Vec<&str>, Vec<&str>) =
        (units(before).collect(), units(behind).collect());
    let inside = all.strip_prefix(&*before)?.strip_suffix(&*behind)?;
    match inside {
        ["%"] => Some(String::new()),
        [] => None,
        inside if inside.contains(&"%") => None,
        inside => Some(unescape(&inside.concat()).into_owned()),
    }
}
