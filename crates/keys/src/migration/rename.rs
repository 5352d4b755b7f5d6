//! From an old name to today's: what the placeholders stood for, put into the
//! new pattern.

use crate::name::Name;
use crate::pattern::{Pattern, Reading};

/// The name that the pattern has under the layers and indices of an old one. A
/// layer that the old name did not have is inactive.
pub(super) fn renamed(reading: &Reading<'_, '_>, pattern: &Pattern) -> Name {
    let value_of = |layer: &str| {
        let known = reading.layers.iter().find(|(known, _)| *known == layer);
        known.map(|(_, value)| value.as_str())
    };
    let mut indices = reading.indices.iter();
    let mut text = String::new();
    for level in pattern.level_patterns() {
        text.push('/');
        match (level.literal(), indices.clone().next()) {
            (Some("#"), Some(index)) => {
                text.push_str(index);
                indices.next();
            }
            _ => level.resolve_into(value_of, &mut text),
        }
    }
    if text.is_empty() {
        text.push('/');
    }
    Name::from_canonical(text)
}

/// What every name of a pattern begins with.
pub(super) fn start(pattern: &Pattern) -> Box<str> {
    let levels = pattern.level_patterns().iter();
    let fixed = levels.map_while(|level| level.literal().filter(|text| *text != "#"));
    fixed.map(|text| format!("/{text}")).collect()
}

/// The first layer of a pattern that another one lacks.
pub(crate) fn lacking<'p>(of: &'p Pattern, other: &Pattern) -> Option<&'p str> {
    of.layers()
        .find(|layer| other.layers().all(|known| known != *layer))
}
