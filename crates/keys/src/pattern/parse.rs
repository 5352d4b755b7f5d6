//! Reads patterns, level by level.

use super::{LevelPattern, Pattern, Piece};
use crate::name::{NameError, check_level, not_absolute, seal_level, units, written_levels};

pub(super) fn pattern(text: &str) -> Result<Pattern, NameError> {
    if !text.starts_with('/') {
        return Err(not_absolute(text));
    }
    let mut levels = Vec::new();
    for (at, level) in written_levels(text) {
        check_level(level, at)?;
        if !matches!(level, "" | ".") {
            let pieces = level_pieces(text, level, at)?;
            levels.push(LevelPattern { pieces });
        }
    }
    Ok(assemble(levels.into()))
}

/// The pieces of the level at byte `at` of `text`.
fn level_pieces(text: &str, level: &str, at: usize) -> Result<Box<[Piece]>, NameError> {
    // Most levels stand as they are written.
    if level == "%" || !level.contains(['%', '\\']) {
        return Ok([Piece::Literal(level.into())].into());
    }
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut here = 0;
    while let Some(unit) = units(&level[here..]).next() {
        here += unit.len();
        if unit != "%" {
            literal.push_str(unit);
            continue;
        }
        let rest = &level[here..];
        let Some(length) = rest.find('%') else {
            return Err(not_closed(text, level, at, here - 1));
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(part(&literal)));
            literal.clear();
        }
        pieces.push(placeholder(&rest[..length], at + here)?);
        here += length + 1;
    }
    if pieces.is_empty() {
        seal_level(&mut literal, 0);
        pieces.push(Piece::Literal(literal.into()));
    } else if !literal.is_empty() {
        pieces.push(Piece::Literal(part(&literal)));
    }
    Ok(pieces.into())
}

/// Text that shares its level with placeholders: its dots need no escape.
fn part(literal: &str) -> Box<str> {
    units(literal)
        .map(|unit| if unit == "\\." { "." } else { unit })
        .collect::<String>()
        .into()
}

/// What stands between two percent signs, the first character at byte `at`.
fn placeholder(inside: &str, at: usize) -> Result<Piece, NameError> {
    let wrong = |(offset, c): (usize, char)| {
        NameError::new(
            at + offset,
            at + offset + c.len_utf8(),
            &format!("`{}` cannot be in the name of a layer", c.escape_default()),
            "use letters, digits, `_` and `-`; a space between two layers makes a group",
        )
    };
    let bad = |c: char| c == '\\' || (c != ' ' && (c.is_control() || c.is_whitespace()));
    if let Some(found) = inside.char_indices().find(|&(_, c)| bad(c)) {
        return Err(wrong(found));
    }
    let mut layers: Vec<Box<str>> = inside.split_ascii_whitespace().map(Box::from).collect();
    match layers.len() {
        0 => Err(NameError::new(
            at - 1,
            at + inside.len() + 1,
            "the placeholder is empty",
            "write the name of a layer between the percent signs, as in `%session%`, or `\\%` for each percent sign that is meant as one",
        )),
        1 => Ok(Piece::Layer(layers.remove(0))),
        _ => Ok(Piece::Group(layers)),
    }
}

/// The trouble with a placeholder that opens at byte `open` of `level`.
fn not_closed(text: &str, level: &str, at: usize, open: usize) -> NameError {
    let (before, after) = (&level[..open], &level[open + 1..]);
    let below = &text[at + level.len()..];
    let help = if after.is_empty() && open > 0 {
        let apart = format!("{}{before}/%{below}", &text[..at]);
        let named = format!("{}{before}/%layer%{below}", &text[..at]);
        format!(
            "write `{apart}` (an inactive layer is a level of its own), `{named}`, or `\\%` for a percent sign"
        )
    } else if below.contains('%') {
        format!("close it before the slash: `%{after}%`, or write `\\%` for a percent sign")
    } else {
        format!("close it: `%{after}%`, or write `\\%` for a percent sign")
    };
    NameError::new(
        at + open,
        at + level.len(),
        "the placeholder is not closed in its level",
        &help,
    )
}

fn assemble(levels: Box<[LevelPattern]>) -> Pattern {
    let mut text = String::new();
    let mut pieces = Vec::new();
    let mut literal = String::new();
    for level in &levels {
        literal.push('/');
        for piece in &level.pieces {
            if let Piece::Literal(part) = piece {
                literal.push_str(part);
                continue;
            }
            if !literal.is_empty() {
                text.push_str(&literal);
                pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
            }
            write_placeholder(piece, &mut text);
            pieces.push(piece.clone());
        }
    }
    if levels.is_empty() {
        literal.push('/');
    }
    if !literal.is_empty() {
        text.push_str(&literal);
        pieces.push(Piece::Literal(literal.into()));
    }
    let (layers, repeats) = layers_of(&pieces);
    Pattern {
        text: text.into(),
        pieces: pieces.into(),
        levels,
        layers,
        repeats,
    }
}

fn write_placeholder(piece: &Piece, text: &mut String) {
    text.push('%');
    match piece {
        Piece::Literal(_) => {}
        Piece::Layer(layer) => text.push_str(layer),
        Piece::Group(layers) => text.push_str(&layers.join(" ")),
    }
    text.push('%');
}

/// Each layer once, and whether one appeared again.
fn layers_of(pieces: &[Piece]) -> (Box<[Box<str>]>, bool) {
    let all = || {
        pieces.iter().flat_map(|piece| match piece {
            Piece::Literal(_) => &[][..],
            Piece::Layer(layer) => std::slice::from_ref(layer),
            Piece::Group(layers) => layers,
        })
    };
    let mut layers: Vec<Box<str>> = Vec::new();
    for layer in all() {
        if !layers.contains(layer) {
            layers.push(layer.clone());
        }
    }
    let repeats = layers.len() < all().count();
    (layers.into(), repeats)
}
