//! Who may do what: tokens and the rights that go with them.

use std::fmt;
use std::hint::black_box;

use milieu_stream::names::Rights;

/// A secret text that a client shows. It is compared in a time that does not
/// depend on it.
#[derive(Clone)]
pub struct Token(Box<str>);

/// A text that is too easily guessed, or cannot be sent in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakToken;

/// Fewer could be guessed over a network.
const CHARACTERS_MIN: usize = 16;
const CHARACTERS_MAX: usize = 512;

impl Token {
    /// A token of 16 to 512 letters, digits, `-`, `.`, `_` and `~`, which need no
    /// quoting anywhere. It should come from a source of randomness:
    /// `openssl rand -hex 32`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn new(text: &str) -> Result<Token, WeakToken> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let fits = (CHARACTERS_MIN..=CHARACTERS_MAX).contains(&text.len());
        if fits && text.bytes().all(plain) {
            Ok(Token(text.into()))
        } else {
            Err(WeakToken)
        }
    }

    /// Takes as long for every text of one length.
    fn is(&self, given: &[u8]) -> bool {
        let known = self.0.as_bytes();
        let mut different = u8::from(known.len() != given.len());
        for (byte, known) in given.iter().zip(known.iter().cycle()) {
            different = black_box(different | (byte ^ known));
        }
        black_box(different) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl fmt::Display for WeakToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a token has {CHARACTERS_MIN} to {CHARACTERS_MAX} letters, digits, `-`, `.`, `_` and \
             `~`; make one by `openssl rand -hex 32`"
        )
    }
}

impl std::error::Error for WeakToken {}

/// What whoever has a token may do.
#[derive(Clone, Debug)]
pub struct Access {
    token: Token,
    pub(super) rights: Rights,
    pub(super) measures: bool,
}

impl Access {
    /// These rights, and no metrics.
    #[must_use]
    pub fn new(token: Token, rights: Rights) -> Access {
        Access {
            token,
            rights,
            measures: false,
        }
    }

    /// Metrics too. They tell the names of all streams, whatever the rights.
    #[must_use]
    pub fn measuring(mut self) -> Access {
        self.measures = true;
        self
    }
}

/// The access that a token gives. All are compared, whichever it is.
pub(super) fn find<'a>(all: &'a [Access], given: &[u8]) -> Option<&'a Access> {
    let mut found = None;
    for access in all {
        if access.token.is(given) {
            found = Some(access);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_plain() {
        for text in [
            "",
            "short",
            "0123456789abcde",
            "0123456789abcdef=",
            "0123456789 abcdef",
        ] {
            assert_eq!(Token::new(text).err(), Some(WeakToken), "{text:?}");
        }
        assert!(Token::new("0123456789abcdef").is_ok());
        assert!(Token::new(&"a".repeat(513)).is_err());
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for other in [
            "",
            "0123456789abcde",
            "0123456789abcdeF",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert!(!token.is(other.as_bytes()), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
