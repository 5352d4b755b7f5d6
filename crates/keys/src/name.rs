//! Names: where a value stands in the hierarchy.
//!
//! A name is absolute and `/` separates its levels: `/sw/pi/language`. The root
//! is `/`. A backslash takes the meaning from the character behind it:
//!
//! | written     | means                                                      |
//! |-------------|------------------------------------------------------------|
//! | `\/`        | a slash inside a level                                     |
//! | `\\`        | a backslash                                                |
//! | `\%`        | a percent sign                                             |
//! | `\.`, `\..` | a level whose text is one dot or two                       |
//! | `%`         | the place of an inactive layer (CoElektra, II)             |
//!
//! Everything else stands for itself, control characters and spaces included;
//! file formats encode what they cannot write.
//!
//! Properties kept:
//! - a [`Name`] is canonical: two names are equal exactly if their texts are;
//! - no name climbs: `..` is an error, not a step up;
//! - a layer value never adds a level, climbs, or reads as inactive
//!   ([`escape_value`], [`seal_level`]), whatever text it is;
//! - different layer values give different levels.

use crate::rules::OneLine;
use std::borrow::{Borrow, Cow};
use std::fmt;

/// A canonical, absolute, escaped name such as `/sw/pi/%/language`.
///
/// ```
/// use milieu_keys::Name;
///
/// let name = Name::parse("/sw//pi/./and\\/or/").unwrap();
/// assert_eq!(name.as_str(), "/sw/pi/and\\/or");
/// assert_eq!(name.levels().collect::<Vec<_>>(), ["sw", "pi", "and\\/or"]);
/// assert!(name.is_below_or_same("/sw/pi"));
/// assert!(!name.is_below_or_same("/sw/p"));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// Reads a name and makes it canonical: empty levels and `.` go away,
    /// escapes that nothing needs are undone.
    ///
    /// # Errors
    /// If the text does not start with `/`, has a level `..`, or a backslash
    /// before a character that needs none.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        if !text.starts_with('/') {
            return Err(not_absolute(text));
        }
        if is_plain(text) {
            return Ok(Name(text.into()));
        }
        let mut canonical = String::with_capacity(text.len());
        for (at, level) in written_levels(text) {
            canonical_level(level, at, &mut canonical)?;
        }
        if canonical.is_empty() {
            canonical.push('/');
        }
        Ok(Name::from_canonical(canonical))
    }

    /// The root, `/`.
    #[must_use]
    pub fn root() -> Name {
        Name("/".into())
    }

    /// Takes a text that is canonical already, as patterns make it.
    pub(crate) fn from_canonical(text: String) -> Name {
        debug_assert!(text.starts_with('/'), "{text:?} is no name");
        Name(text.into_boxed_str())
    }

    /// The name as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `/`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// The levels from the top, escaped as they are written; none for the root.
    pub fn levels(&self) -> impl Iterator<Item = &str> + Clone {
        levels(&self.0)
    }

    /// Whether this name is `name` or stands below it. `name` is canonical too.
    #[must_use]
    pub fn is_below_or_same(&self, name: &str) -> bool {
        name == "/"
            || self
                .0
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The name one level up; none for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Name> {
        if self.is_root() {
            return None;
        }
        match split(&self.0) {
            ("", _) => Some(Name::root()),
            (parent, _) => Some(Name(parent.into())),
        }
    }

    /// The name that `inner` has where its root is mounted here:
    /// `/language` below `/sw/pi` is `/sw/pi/language`.
    #[must_use]
    pub fn mounted(&self, inner: &Name) -> Name {
        match (self.is_root(), inner.is_root()) {
            (true, _) => inner.clone(),
            (_, true) => self.clone(),
            _ => Name([&*self.0, &*inner.0].concat().into()),
        }
    }

    /// The name that this one has below `mount`, if it stands there: the
    /// reverse of [`mounted`](Name::mounted).
    #[must_use]
    pub fn below(&self, mount: &Name) -> Option<Name> {
        if mount.is_root() {
            return Some(self.clone());
        }
        match self.0.strip_prefix(&*mount.0)? {
            "" => Some(Name::root()),
            rest if rest.starts_with('/') => Some(Name(rest.into())),
            _ => None,
        }
    }

    /// The name one level below, where the level's text is `level`, unescaped.
    /// An empty text gives the level of an inactive layer, `%`.
    #[must_use]
    pub fn join(&self, level: &str) -> Name {
        let mut text = String::with_capacity(self.0.len() + 1 + level.len());
        if !self.is_root() {
            text.push_str(&self.0);
        }
        text.push('/');
        if level.is_empty() {
            text.push('%');
        }
        escape_value(level, &mut text);
        Name::from_canonical(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0.into_string()
    }
}

impl From<Name> for Box<str> {
    fn from(name: Name) -> Box<str> {
        name.0
    }
}

impl std::str::FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        Name::parse(text)
    }
}

/// Why a text is no name or no pattern, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// Where the trouble starts, in bytes from the start of the text.
    pub at: usize,
    /// Where it ends.
    pub end: usize,
    /// What is wrong, without a place.
    pub message: String,
    /// How to mend it; may be empty.
    pub help: String,
}

impl NameError {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(at: usize, end: usize, message: &str, help: &str) -> NameError {
        NameError {
            at,
            end,
            message: message.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {})", self.message, self.at)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for NameError {}

/// Splits a name into its parent and its last level: `/a/b\/c` into `/a` and
/// `b\/c`, `/a` into nothing and `a`. Escaped slashes do not split.
///
/// ```
/// assert_eq!(milieu_keys::split("/a/b\\/c"), ("/a", "b\\/c"));
/// assert_eq!(milieu_keys::split("/a"), ("", "a"));
/// ```
#[must_use]
pub fn split(name: &str) -> (&str, &str) {
    let bytes = name.as_bytes();
    let mut end = bytes.len();
    while let Some(slash) = bytes[..end].iter().rposition(|&byte| byte == b'/') {
        let backslashes = bytes[..slash]
            .iter()
            .rev()
            .take_while(|&&byte| byte == b'\\')
            .count();
        if backslashes % 2 == 0 {
            return (&name[..slash], &name[slash + 1..]);
        }
        end = slash;
    }
    ("", name)
}

/// Appends a layer value so that it is one whole level, or part of one.
///
/// Slashes, backslashes and percent signs are escaped, and so are the dots if
/// the value is exactly `.` or `..`. Whoever puts several parts into one level
/// calls [`seal_level`] on the whole. An empty value appends nothing: it means
/// that the layer is inactive, and the caller writes `%`.
///
/// ```
/// let mut level = String::new();
/// milieu_keys::escape_value("a/b%", &mut level);
/// assert_eq!(level, "a\\/b\\%");
/// ```
pub fn escape_value(value: &str, out: &mut String) {
    if is_dots(value) {
        out.push('\\');
        out.push_str(value);
    } else {
        escape_part(value, out);
    }
}

/// Appends a part of a level; only the whole level knows whether dots matter.
pub(crate) fn escape_part(value: &str, out: &mut String) {
    let mut copied = 0;
    for (at, byte) in value.bytes().enumerate() {
        if matches!(byte, b'/' | b'\\' | b'%') {
            out.push_str(&value[copied..at]);
            out.push('\\');
            copied = at;
        }
    }
    out.push_str(&value[copied..]);
}

/// Makes the level that starts at byte `start` of `text` and ends with it
/// canonical, when it was put together from parts: two parts `.` and `.` are
/// the level `\..`, and a part `\.` before `x` is `.x`.
///
/// ```
/// let mut name = String::from("/\\.\\.");
/// milieu_keys::name::seal_level(&mut name, 1);
/// assert_eq!(name, "/\\..");
/// ```
pub fn seal_level(text: &mut String, start: usize) {
    let level = &text[start..];
    if is_dots(level) {
        text.insert(start, '\\');
    } else if level.contains('\\') {
        let plain: String = units(level)
            .map(|unit| if unit == "\\." { "." } else { unit })
            .collect();
        text.truncate(start);
        if is_dots(&plain) {
            text.push('\\');
        }
        text.push_str(&plain);
    }
}

/// The text of a level without its escapes.
///
/// ```
/// assert_eq!(milieu_keys::name::unescape("and\\/or"), "and/or");
/// ```
#[must_use]
pub fn unescape(level: &str) -> Cow<'_, str> {
    if !level.contains('\\') {
        return Cow::Borrowed(level);
    }
    Cow::Owned(
        units(level)
            .map(|unit| unit.strip_prefix('\\').unwrap_or(unit))
            .collect(),
    )
}

/// The levels of a canonical name, escaped as they are written; none for the root.
///
/// ```
/// let levels: Vec<&str> = milieu_keys::name::levels("/a/b\\/c").collect();
/// assert_eq!(levels, ["a", "b\\/c"]);
/// ```
pub fn levels(name: &str) -> impl Iterator<Item = &str> + Clone {
    written_levels(name)
        .map(|(_, level)| level)
        .filter(|level| !level.is_empty())
}

/// The levels as written, empty ones too, each with the byte where it starts.
pub(crate) fn written_levels(name: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let mut at = usize::from(name.starts_with('/'));
    std::iter::from_fn(move || {
        let rest = name.get(at..)?;
        let (start, length) = (at, level_length(rest));
        // One past the end when this was the last level, so that `get` fails.
        at += length + 1;
        Some((start, &name[start..start + length]))
    })
}

fn level_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'/' => return at,
            _ => {}
        }
    }
    rest.len()
}

/// The characters of a level, where a backslash and what it escapes are one.
pub(crate) fn units(level: &str) -> impl Iterator<Item = &str> + Clone {
    let mut rest = level;
    std::iter::from_fn(move || {
        let mut chars = rest.chars();
        let first = chars.next()?;
        if first == '\\' {
            chars.next();
        }
        let (unit, after) = rest.split_at(rest.len() - chars.as_str().len());
        rest = after;
        Some(unit)
    })
}

pub(crate) fn is_dots(level: &str) -> bool {
    matches!(level, "." | "..")
}

/// Appends `/` and the canonical form of a level that stands at byte `at` of
/// its name; nothing for levels that go away.
fn canonical_level(level: &str, at: usize, out: &mut String) -> Result<(), NameError> {
    check_level(level, at)?;
    if matches!(level, "" | ".") {
        return Ok(());
    }
    out.push('/');
    let start = out.len();
    out.push_str(level);
    if level.contains('\\') {
        seal_level(out, start);
    }
    Ok(())
}

/// Whether a level may stand as it is written.
pub(crate) fn check_level(level: &str, at: usize) -> Result<(), NameError> {
    if level == ".." {
        return Err(NameError::new(
            at,
            at + 2,
            "`..` would climb to the level above",
            "write the name it leads to, or `\\..` for a level that is two dots",
        ));
    }
    // What follows is about escapes, which few levels have.
    if !level.contains('\\') {
        return Ok(());
    }
    let mut here = at;
    for unit in units(level) {
        let end = here + unit.len();
        if unit == "\\" {
            return Err(NameError::new(
                here,
                end,
                "the name ends in a backslash that escapes nothing",
                "write `\\\\` for a backslash",
            ));
        }
        if unit.starts_with('\\') && !matches!(unit, "\\/" | "\\\\" | "\\%" | "\\.") {
            let escaped = OneLine(&unit[1..]);
            return Err(NameError::new(
                here,
                end,
                &format!("`\\{escaped}` is no escape"),
                "write `\\\\` for a backslash; only `/`, `\\`, `%` and `.` can be escaped",
            ));
        }
        here = end;
    }
    Ok(())
}

/// Whether nothing in a text that starts with a slash can need a change: it has
/// no escape, no empty level, and none that starts with a dot.
fn is_plain(text: &str) -> bool {
    let mut after_slash = false;
    for &byte in text.as_bytes() {
        if byte == b'\\' || (after_slash && matches!(byte, b'/' | b'.')) {
            return false;
        }
        after_slash = byte == b'/';
    }
    !after_slash || text.len() == 1
}

/// The trouble with a name that does not start with a slash.
pub(crate) fn not_absolute(text: &str) -> NameError {
    let before = text
        .split_once(':')
        .filter(|(_, rest)| rest.starts_with('/'));
    match before.map(|(namespace, _)| namespace) {
        _ if text.is_empty() => NameError::new(0, 0, "the name is empty", "write `/` for the root"),
        Some(namespace) if namespace.chars().all(|c| c.is_ascii_alphabetic()) => NameError::new(
            0,
            namespace.len() + 1,
            &format!("the namespace `{namespace}:` is not part of a name"),
            &format!("start with the slash: `{}`", &text[namespace.len() + 1..]),
        ),
        _ => NameError::new(
            0,
            text.chars().next().map_or(0, char::len_utf8),
            "a name starts with `/`",
            &format!("write `/{text}`"),
        ),
    }
}

#[cfg(test)]
mod tests;
