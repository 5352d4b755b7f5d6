//! Which names a pattern can resolve to, and which patterns can meet.
//!
//! Both questions are answered level by level. A level that mixes text and
//! placeholders is matched by the set of places that its pieces can reach:
//! nothing is tried twice, however many placeholders there are.

use super::{LevelPattern, Pattern, Piece};
use crate::name::{levels, units};
use crate::sort;

pub(super) fn matches(pattern: &Pattern, name: &str) -> bool {
    if !name.starts_with('/') {
        return false;
    }
    let mut rest = levels(name);
    let fits = pattern
        .levels
        .iter()
        .all(|level| rest.next().is_some_and(|text| level_matches(level, text)));
    fits && rest.next().is_none() && (!pattern.repeats || repeats_agree(pattern, name))
}

/// Whether layers that fill whole levels have the same value in all of them.
fn repeats_agree(pattern: &Pattern, name: &str) -> bool {
    let mut values: Vec<(&str, &str)> = pattern
        .levels
        .iter()
        .zip(levels(name))
        .filter_map(|(level, text)| Some((level.layer()?, text)))
        .collect();
    sort::by(&mut values, Ord::cmp);
    values
        .windows(2)
        .all(|pair| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1)
}

pub(super) fn level_matches(level: &LevelPattern, text: &str) -> bool {
    if let Some(literal) = level.literal() {
        return literal == text;
    }
    if level.layer().is_some() {
        return text == "%" || !units(text).any(|unit| unit == "%");
    }
    let text: Vec<&str> = units(without_dot_escape(text)).collect();
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for piece in &level.pieces {
        reached = match piece {
            Piece::Literal(literal) => past_literal(&reached, &text, literal),
            Piece::Layer(_) => {
                let mut after = past_value(&reached, &text);
                join(&mut after, &past_percent(&reached, &text));
                after
            }
            Piece::Group(layers) => past_group(&reached, &text, layers.len()),
        };
    }
    reached[text.len()]
}

fn past_literal(reached: &[bool], text: &[&str], literal: &str) -> Vec<bool> {
    let wanted: Vec<&str> = units(literal).collect();
    let mut after = vec![false; reached.len()];
    for (at, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        if text[at..].starts_with(&wanted) {
            after[at + wanted.len()] = true;
        }
    }
    after
}

/// Past one or more characters that are no bare `%`.
fn past_value(reached: &[bool], text: &[&str]) -> Vec<bool> {
    let mut after = vec![false; reached.len()];
    for (at, unit) in text.iter().enumerate() {
        after[at + 1] = *unit != "%" && (reached[at] || after[at]);
    }
    after
}

fn past_percent(reached: &[bool], text: &[&str]) -> Vec<bool> {
    let mut after = vec![false; reached.len()];
    for (at, unit) in text.iter().enumerate() {
        after[at + 1] = *unit == "%" && reached[at];
    }
    after
}

/// Past `%`, or past `%` and a value, once to `count` times.
fn past_group(reached: &[bool], text: &[&str], count: usize) -> Vec<bool> {
    let mut after = past_percent(reached, text);
    let mut last = reached.to_vec();
    // Each round consumes two characters at least.
    for _ in 0..count.min(text.len() / 2) {
        last = past_value(&past_percent(&last, text), text);
        join(&mut after, &last);
    }
    after
}

fn join(all: &mut [bool], more: &[bool]) {
    for (one, other) in all.iter_mut().zip(more) {
        *one |= other;
    }
}

/// `\.` and `\..` are the only levels whose dots are escaped; parts are not.
fn without_dot_escape(level: &str) -> &str {
    match level {
        "\\." | "\\.." => &level[1..],
        _ => level,
    }
}

pub(super) fn unify(one: &Pattern, other: &Pattern) -> bool {
    one.levels.len() == other.levels.len()
        && one
            .levels
            .iter()
            .zip(&other.levels)
            .all(|(one, other)| levels_unify(one, other))
}

pub(super) fn levels_unify(one: &LevelPattern, other: &LevelPattern) -> bool {
    match (one.literal(), other.literal()) {
        (Some(one), Some(other)) => one == other,
        (Some(text), None) => level_matches(other, text),
        (None, Some(text)) => level_matches(one, text),
        (None, None) => {
            // What stands before the first placeholder and behind the last one
            // cannot be changed by any value.
            let before = (text_of(one.pieces.first()), text_of(other.pieces.first()));
            let behind = (text_of(one.pieces.last()), text_of(other.pieces.last()));
            (before.0.starts_with(before.1) || before.1.starts_with(before.0))
                && (behind.0.ends_with(behind.1) || behind.1.ends_with(behind.0))
        }
    }
}

fn text_of(piece: Option<&Piece>) -> &str {
    match piece {
        Some(Piece::Literal(text)) => text,
        _ => "",
    }
}
