//! Reads queries and writes their canonical text.

use milieu_keys::{Pattern, Piece};

use super::{Condition, Level, Query};
use crate::names::refusal::{Refusal, Why, quoted};
use crate::names::text::{check_canonical, check_characters, check_level, check_size, places};

/// Most attributes that a query may ask for.
const CONDITIONS_MAX: usize = 16;

pub(super) fn query(text: &str) -> Result<Query, Refusal> {
    check_size(text)?;
    check_characters(text)?;
    let (path, conditions) = match text.split_once('?') {
        Some((path, after)) => (path, conditions(after, path.len() + 1)?),
        None => (text, Vec::new()),
    };
    let pattern = Pattern::parse(path)?;
    check_canonical(path, pattern.as_str())?;
    let mut levels = Vec::new();
    for ((at, written), level) in places(path).zip(pattern.level_patterns()) {
        check_level(at, written, true)?;
        if level.pieces().iter().any(|p| matches!(p, Piece::Group(_))) {
            let message = format!("{} puts several layers into one level", quoted(written));
            let help = "write a level for each layer: `%building%/%room%`";
            return Err(Refusal::new(Why::Text, message, help).at(at, at + written.len()));
        }
        levels.push(match level.literal() {
            Some("*") => Level::One,
            Some("**") => Level::Any,
            Some(text) => Level::Text(text.into()),
            None => Level::Placeholder(level.clone()),
        });
    }
    Ok(Query::new(canonical(levels), conditions))
}

/// In a run of wildcards only their number matters, and whether there may be
/// more: `*` come first, and one `**` last.
fn canonical(levels: Vec<Level>) -> Vec<Level> {
    let mut out = Vec::with_capacity(levels.len());
    let mut any = false;
    for level in levels {
        match level {
            Level::Any => any = true,
            Level::One => out.push(level),
            level => {
                if std::mem::take(&mut any) {
                    out.push(Level::Any);
                }
                out.push(level);
            }
        }
    }
    if any {
        out.push(Level::Any);
    }
    out
}

/// The conditions that start at byte `at`, in order and each once.
fn conditions(text: &str, at: usize) -> Result<Vec<Condition>, Refusal> {
    let mut conditions = Vec::new();
    let mut start = 0;
    for part in split(text, '&') {
        let place = (at + start, at + start + part.len());
        start += part.len() + 1;
        conditions.push(condition(part).map_err(|refusal| refusal.at(place.0, place.1))?);
    }
    conditions.sort();
    conditions.dedup();
    // What is asked twice: `colour` says nothing beside `colour=red`, and two
    // values are asked for in vain.
    let mut i = 1;
    while i < conditions.len() {
        if conditions[i - 1].attribute != conditions[i].attribute {
            i += 1;
        } else if conditions[i - 1].value.is_none() {
            conditions.remove(i - 1);
        } else {
            let attribute = quoted(&conditions[i].attribute);
            let message = format!("{attribute} cannot have two values");
            let help = "ask for one of them; two queries ask for either";
            return Err(Refusal::new(Why::Text, message, help).at(at, at + text.len()));
        }
    }
    if conditions.len() > CONDITIONS_MAX {
        let message = format!("{} attributes are too many", conditions.len());
        let help = format!("ask for {CONDITIONS_MAX} at most");
        return Err(Refusal::new(Why::Size, message, help).at(at, at + text.len()));
    }
    Ok(conditions)
}

fn condition(part: &str) -> Result<Condition, Refusal> {
    let mut sides = split(part, '=');
    let attribute = unescape(sides.next().unwrap_or_default())?;
    let value = sides.next().map(unescape).transpose()?;
    let wrong = |message, help| Err(Refusal::new(Why::Text, message, help));
    if attribute.is_empty() {
        return wrong(
            "an attribute has no name",
            "write `?colour=red&kind=printer`",
        );
    }
    if sides.next().is_some() {
        return wrong(
            "there is a second `=`",
            "write `\\=` for one that is part of the value",
        );
    }
    Ok(Condition {
        attribute: attribute.into(),
        value: value.map(String::into),
    })
}

/// The parts between separators that no backslash escapes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let here = !escaped && c == separator;
        escaped = !escaped && c == '\\';
        here
    })
}

fn unescape(text: &str) -> Result<String, Refusal> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let plain = if c == '\\' { chars.next() } else { Some(c) };
        match plain {
            Some(plain) if c != '\\' || matches!(plain, '&' | '=' | '\\') => out.push(plain),
            _ => {
                let message = "the backslash escapes nothing";
                let help = "write `\\\\` for a backslash; only `&`, `=` and `\\` can be escaped";
                return Err(Refusal::new(Why::Text, message, help));
            }
        }
    }
    Ok(out)
}

/// Appends the conditions as they are written.
pub(super) fn write_conditions(conditions: &[Condition], out: &mut String) {
    let mut separator = '?';
    for condition in conditions {
        out.push(separator);
        separator = '&';
        escape(&condition.attribute, out);
        if let Some(value) = &condition.value {
            out.push('=');
            escape(value, out);
        }
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '&' | '=' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
}
