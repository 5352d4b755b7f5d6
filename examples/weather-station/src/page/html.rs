//! Writing HTML: what comes from outside is escaped.

use std::fmt;

/// A text that is safe in HTML, between tags and within double quotes.
pub(crate) struct Escaped<T>(pub(crate) T);

impl<T: AsRef<str>> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.as_ref();
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            let entity = match byte {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                b'\'' => "&#39;",
                _ => continue,
            };
            f.write_str(&text[from..at])?;
            f.write_str(entity)?;
            from = at + 1;
        }
        f.write_str(&text[from..])
    }
}

/// `write!` into a `String`, which cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        // Writing to a string always succeeds.
        let _ = std::fmt::Write::write_fmt(&mut *$out, format_args!($($arguments)*));
    };
}
pub(crate) use put;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            Escaped("<a href=\"x\">'&é").to_string(),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;é"
        );
    }
}
