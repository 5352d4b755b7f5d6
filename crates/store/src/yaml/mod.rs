//! YAML, which is written and not read.
//!
//! What is written is YAML 1.2 and means the same to readers of YAML 1.1: a text
//! that either could take for something else stands in double quotes, and so
//! does a number that they read differently. Objects, arrays and keys with a
//! value and keys below are as in [`format`](crate::format).

use crate::format::{Kind, Unwritable};
use crate::nested::number::{is_finite, is_whole};
use crate::nested::quote::quoted;
use crate::nested::{DEPTH_MAX, levels};
use crate::transfer::{Branch, Exported, Outline, TRUNK};

/// The longest name that YAML lets stand before a colon, in characters.
const IMPLICIT_KEY_MAX: usize = 1024;

/// The text of all keys.
pub(crate) fn write(outline: &Outline<'_>) -> Result<String, Unwritable> {
    let mut writer = Writer {
        outline,
        text: String::new(),
    };
    match outline.branch(TRUNK) {
        Branch {
            children,
            key: None,
            ..
        } if children.is_empty() => writer.text.push_str("{}\n"),
        Branch {
            children,
            key: Some(key),
            ..
        } if children.is_empty() => {
            writer.text.push_str(&scalar(key));
            writer.text.push('\n');
        }
        _ => writer.block(TRUNK, 0, false)?,
    }
    Ok(writer.text)
}

struct Writer<'a> {
    outline: &'a Outline<'a>,
    text: String,
}

impl Writer<'_> {
    /// Writes what is below a branch, each on lines of its own; the first goes
    /// on with the line that is there.
    fn block(&mut self, id: usize, depth: usize, goes_on: bool) -> Result<(), Unwritable> {
        if depth > DEPTH_MAX {
            return Err(Unwritable {
                message: format!("a name has more than {DEPTH_MAX} levels"),
                help: "use a shorter one".to_owned(),
            });
        }
        let branch = self.outline.branch(id);
        let mut goes_on = goes_on;
        if let Some(key) = &branch.key {
            self.begin(depth, &mut goes_on);
            self.text.push_str("\"\": ");
            self.text.push_str(&scalar(key));
            self.text.push('\n');
        }
        for &child in &branch.children {
            self.begin(depth, &mut goes_on);
            if branch.is_array {
                self.text.push('-');
            } else {
                let member = levels::member(self.outline.branch(child).level);
                self.member(&text(&member), depth);
            }
            self.item(child, depth, branch.is_array)?;
        }
        Ok(())
    }

    fn begin(&mut self, depth: usize, goes_on: &mut bool) {
        if !std::mem::take(goes_on) {
            self.text.extend(std::iter::repeat_n("  ", depth));
        }
    }

    fn member(&mut self, written: &str, depth: usize) {
        if written.chars().count() >= IMPLICIT_KEY_MAX {
            self.text.push_str("? ");
            self.text.push_str(written);
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n("  ", depth));
        } else {
            self.text.push_str(written);
        }
        self.text.push(':');
    }

    /// Writes what stands behind a dash or a colon.
    fn item(&mut self, id: usize, depth: usize, is_element: bool) -> Result<(), Unwritable> {
        let branch = self.outline.branch(id);
        match &branch.key {
            Some(key) if branch.children.is_empty() => {
                self.text.push(' ');
                self.text.push_str(&scalar(key));
                self.text.push('\n');
                Ok(())
            }
            _ => {
                self.text.push(if is_element { ' ' } else { '\n' });
                self.block(id, depth + 1, is_element)
            }
        }
    }
}

/// A value: a number or a boolean where it is one, or a text.
fn scalar(Exported { value, kind, .. }: &Exported<'_>) -> String {
    match (kind, *value) {
        (Kind::Text, value) => text(value),
        (Kind::Boolean, "1") => "true".to_owned(),
        (Kind::Boolean, "0") => "false".to_owned(),
        (Kind::Boolean | Kind::Unknown, value @ ("true" | "false")) => value.to_owned(),
        (Kind::Number | Kind::Unknown, value) if is_number(value) => value.to_owned(),
        (_, value) => text(value),
    }
}

/// Whether all readers take a text for the same number. Those of YAML 1.1 want
/// a point and a sign where there is an exponent.
fn is_number(value: &str) -> bool {
    if is_whole(value) {
        return value.parse::<i64>().is_ok();
    }
    let exponent_is_clear = match value.split_once(['e', 'E']) {
        Some((before, exponent)) => before.contains('.') && exponent.starts_with(['+', '-']),
        None => true,
    };
    is_finite(value) && exponent_is_clear
}

/// A text, in quotes unless everybody takes it for this text as it is.
fn text(value: &str) -> String {
    if is_plain(value) {
        value.to_owned()
    } else {
        quoted(value)
    }
}

fn is_plain(value: &str) -> bool {
    let begins = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || " _-./+@".contains(c);
    begins && !value.ends_with(' ') && value.chars().all(is_harmless) && !has_meaning(value)
}

/// Whether some reader takes a word for a boolean, for nothing or for a number.
fn has_meaning(word: &str) -> bool {
    const WORDS: [&str; 11] = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf",
    ];
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}
