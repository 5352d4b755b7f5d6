//! What may be the text of a name in the tree, and of a query.
//!
//! Names are those of [`milieu_keys`], and stricter: peers write them, other
//! systems read them, and what is a wildcard there or here must not stand in
//! them. Only canonical texts are taken, so that no two texts are one name.

use milieu_keys::{Name, name::levels};

use super::refusal::{Refusal, Why, quoted};

/// Most bytes that the text of a name or a query may have.
pub const BYTES_MAX: usize = 1024;

/// Most levels that a name or a query may have.
pub const LEVELS_MAX: usize = 63;

/// Reads bytes that a peer sent as text.
///
/// # Errors
/// If they are no UTF-8.
pub fn utf8(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let end = at + error.error_len().unwrap_or(bytes.len() - at);
        let message = format!("the byte {:#04x} is no UTF-8", bytes[at]);
        Refusal::new(Why::Text, message, "encode names as UTF-8").at(at, end)
    })
}

/// Reads the name of an entry. As a query it means itself and nothing else.
///
/// ```
/// use milieu_stream::names::name;
///
/// assert!(name("/labs/005/temperature").is_ok());
/// for text in ["labs", "/labs//005", "/labs/../x", "/labs/*", "/labs/#", "/labs\n", "/"] {
///     assert!(name(text).is_err(), "{text:?}");
/// }
/// ```
///
/// # Errors
/// If the text is not the canonical text of a name, is too long, has a
/// wildcard, a `?`, a placeholder or a control character; or is `/`.
pub fn name(text: &str) -> Result<Name, Refusal> {
    if is_plain(text) {
        return Ok(Name::parse(text)?);
    }
    check_size(text)?;
    check_characters(text)?;
    if let Some(at) = text.find('?') {
        let help = "leave it out: behind `?` stand the attributes of a query";
        return Err(Refusal::new(Why::Text, "a name has no `?`", help).at(at, at + 1));
    }
    let name = Name::parse(text)?;
    check_canonical(text, name.as_str())?;
    for (at, level) in places(text) {
        check_level(at, level, false)?;
        if let Some(percent) = percent_beside_text(level) {
            let at = at + percent;
            let message = "a `%` stands alone in its level, for an inactive layer";
            let help = "put in the layer's value, or write `\\%` for a percent sign";
            return Err(Refusal::new(Why::Text, message, help).at(at, at + 1));
        }
    }
    Ok(name)
}

/// Whether a text is a name that needs no closer look, as almost all are.
fn is_plain(text: &str) -> bool {
    let (mut slashes, mut previous) = (0, 0);
    for &byte in text.as_bytes() {
        match byte {
            b'/' if previous == b'/' => return false,
            b'/' => slashes += 1,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b':' => {}
            _ => return false,
        }
        previous = byte;
    }
    text.starts_with('/') && previous != b'/' && slashes <= LEVELS_MAX && text.len() <= BYTES_MAX
}

/// Each level with the byte where it starts.
pub(super) fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    levels(text).map(move |level| {
        at += 1;
        let start = at;
        at += level.len();
        (start, level)
    })
}

/// Looks at lengths first, so that nothing is done with what is too long.
pub(super) fn check_size(text: &str) -> Result<(), Refusal> {
    if text.len() > BYTES_MAX {
        let message = format!("{} bytes are too many for a name", text.len());
        let help = format!("use {BYTES_MAX} bytes at most");
        return Err(Refusal::new(Why::Size, message, help).at(floor(text, BYTES_MAX), text.len()));
    }
    if let Some((at, _)) = text.match_indices('/').nth(LEVELS_MAX) {
        // Escaped slashes count as well: nobody needs that many of either.
        let message = format!("more than {LEVELS_MAX} slashes are too many for a name");
        let help = format!("use {LEVELS_MAX} levels at most");
        return Err(Refusal::new(Why::Size, message, help).at(at, text.len()));
    }
    Ok(())
}

/// No control characters, and nothing else that starts a new line.
pub(super) fn check_characters(text: &str) -> Result<(), Refusal> {
    match text.char_indices().find(|&(_, c)| is_forbidden(c)) {
        None => Ok(()),
        Some((at, c)) => {
            let message = format!("{} cannot be in a name", quoted(&c.to_string()));
            let help = "leave out control characters and line breaks";
            Err(Refusal::new(Why::Text, message, help).at(at, at + c.len_utf8()))
        }
    }
}

fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a text could be a level of an entry's name: what the value of a layer
/// must be like to name anything.
pub(super) fn is_level(text: &str) -> bool {
    !text.contains(|c| is_forbidden(c) || matches!(c, '*' | '?'))
        && !matches!(text, "#" | "+")
        && percent_beside_text(text).is_none()
}

/// Where a level has a bare `%`, if it has something else too.
fn percent_beside_text(level: &str) -> Option<usize> {
    let mut escaped = false;
    let bare = |byte| {
        let bare = byte == b'%' && !escaped;
        escaped = byte == b'\\' && !escaped;
        bare
    };
    level.bytes().position(bare).filter(|_| level.len() > 1)
}

/// Refuses texts that have another, canonical one.
pub(super) fn check_canonical(text: &str, canonical: &str) -> Result<(), Refusal> {
    if canonical == "/" {
        let help = "write `/**` for all names";
        return Err(Refusal::new(Why::Text, "the root is no name", help).at(0, text.len()));
    }
    if text == canonical {
        return Ok(());
    }
    let same = text.bytes().zip(canonical.bytes());
    let at = floor(text, same.take_while(|(a, b)| a == b).count());
    let message = "the name has an empty level, or more than it needs";
    let help = format!("write {}", quoted(canonical));
    Err(Refusal::new(Why::Text, message, help).at(at, text.len()))
}

/// The last place up to this one where a character starts.
fn floor(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// Refuses wildcards in places where they are none.
pub(super) fn check_level(at: usize, level: &str, in_query: bool) -> Result<(), Refusal> {
    let wrong = |message: String, help: &str| {
        Err(Refusal::new(Why::Text, message, help).at(at, at + level.len()))
    };
    match level {
        "*" | "**" if in_query => Ok(()),
        "#" | "+" => wrong(
            format!("`{level}` is a wildcard elsewhere, and nothing here"),
            "in a query write `*` for one level and `**` for any number of levels",
        ),
        _ if level.contains('*') && in_query => wrong(
            format!("{} mixes a wildcard with text", quoted(level)),
            "write `*` or `**` as a whole level",
        ),
        _ if level.contains('*') => wrong(
            format!("{} has a wildcard, and a name has none", quoted(level)),
            "write the name of one entry",
        ),
        _ => Ok(()),
    }
}
