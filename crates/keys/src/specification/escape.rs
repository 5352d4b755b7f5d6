//! Escapes: characters that cannot stand where they are meant.

use crate::name::units;
use milieu_diagnostics::Span;
use std::fmt::Write;

/// A name as it stands in a text, with its escapes of this format undone. Those
/// of names remain.
#[derive(Debug)]
pub(super) struct Written {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// Places in `text` from which on the offset to the source is another one,
    /// and the place in the source.
    moved: Vec<(usize, usize)>,
}

impl Written {
    /// Reads the name that stands at `start` of a source.
    pub(super) fn new(raw: &str, start: usize) -> Written {
        let mut text = String::with_capacity(raw.len());
        let mut moved = Vec::new();
        let mut here = 0;
        while let Some(unit) = units(&raw[here..]).next() {
            let (decoded, length) = match unit {
                "\\n" | "\\r" | "\\t" | "\\u" => match decode(&raw[here..]) {
                    Some((c, length)) => (Some(c), length),
                    None => (None, unit.len()),
                },
                "\\]" => (Some(']'), 2),
                "\\=" => (Some('='), 2),
                // A character, or an escape of names.
                _ => (None, unit.len()),
            };
            here += length;
            match decoded {
                None => text.push_str(unit),
                Some(c) => {
                    text.push(c);
                    moved.push((text.len(), start + here));
                }
            }
        }
        Written {
            text,
            span: Span::new(start, start + raw.len()),
            moved,
        }
    }

    /// The place in the source of a range of bytes of the text.
    pub(super) fn span_of(&self, start: usize, end: usize) -> Span {
        Span::new(self.place(start), self.place(end))
    }

    fn place(&self, at: usize) -> usize {
        let after = self.moved.partition_point(|&(moved, _)| moved <= at);
        match after.checked_sub(1).map(|last| self.moved[last]) {
            None => self.span.start + at,
            Some((moved, source)) => source + (at - moved),
        }
    }
}

/// The escape that a text starts with: what it means and how long it is.
pub(super) fn decode(text: &str) -> Option<(char, usize)> {
    let mut chars = text.strip_prefix('\\')?.chars();
    let plain = match chars.next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '"' => '"',
        '\\' => '\\',
        'u' => {
            let inside = chars.as_str().strip_prefix('{')?;
            // Longer ones are no characters.
            let length = inside.bytes().take(7).position(|byte| byte == b'}')?;
            let digits = &inside[..length];
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
            return Some((char::from_u32(number)?, length + 4));
        }
        _ => return None,
    };
    Some((plain, 2))
}

/// Appends a name as a section has it.
pub(super) fn encode_name(name: &str, out: &mut String) {
    let trailing = name.trim_end_matches(' ').len();
    let mut here = 0;
    for unit in units(name) {
        match unit {
            "]" => out.push_str("\\]"),
            " " if here >= trailing => out.push_str("\\u{20}"),
            _ => match unit.chars().next() {
                Some(c) if c.is_control() => encode_control(c, out),
                _ => out.push_str(unit),
            },
        }
        here += unit.len();
    }
}

/// Appends a value, in quotes if it needs them.
pub(super) fn encode_value(value: &str, out: &mut String) {
    let plain = !value.starts_with(['"', ' ', '\t'])
        && !value.ends_with(['\\', ' ', '\t'])
        && !value.contains(char::is_control);
    if plain {
        out.push_str(value);
        return;
    }
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => encode_control(c, out),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn encode_control(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // Writing to a string cannot fail.
        c => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
    }
}
