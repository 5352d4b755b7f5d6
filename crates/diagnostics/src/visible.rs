//! Texts that a terminal shows and does not obey.

use std::borrow::Cow;

/// A text without control characters but line breaks.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || picture(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| if c == '\n' { c } else { picture(c) })
            .collect(),
    )
}

/// What to show for a character that a terminal would obey.
pub fn picture(c: char) -> char {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        // The directions of writing: text would not read as it is stored.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}
