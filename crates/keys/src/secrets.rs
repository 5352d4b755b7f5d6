//! Which names have values that nobody but the program may see.

use crate::pattern::Pattern;
use crate::rules::{self, Metadata, array_index};

/// The keys with the metadata `secret`, under the names of today and of before.
///
/// A [`Key`](crate::Key) does not know its metadata. Whoever shows keys that may
/// be any asks here, and says [`REDACTED`](crate::rules::REDACTED) instead of
/// the value.
///
/// ```
/// use milieu_keys::Secrets;
///
/// let metadata = [("secret", ""), ("was/#0", "/mail/%account%")];
/// let secrets = Secrets::new([("/sw/mail/%account%/password", &metadata[..])]);
/// assert!(secrets.contains("/sw/mail/anna/password"));
/// assert!(secrets.contains("/mail/anna"));
/// assert!(!secrets.contains("/sw/mail/anna"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    patterns: Vec<Pattern>,
}

impl Secrets {
    /// Reads the metadata of all keys of a program. Names that are none are
    /// passed over: no key has them.
    pub fn new<'a>(keys: impl IntoIterator<Item = (&'a str, Metadata<'a>)>) -> Secrets {
        let mut patterns = Vec::new();
        for (pattern, metadata) in keys {
            let says =
                |(key, value): &(&str, &str)| *key == "secret" && rules::flag(value) == Some(true);
            if !metadata.iter().any(says) {
                continue;
            }
            let is_old = |key: &str| {
                key.strip_prefix("was/")
                    .is_some_and(|at| array_index(at).is_some())
            };
            let old = metadata
                .iter()
                .filter(|(key, _)| is_old(key))
                .map(|(_, name)| *name);
            patterns.extend(std::iter::once(pattern).chain(old).flat_map(Pattern::parse));
        }
        Secrets { patterns }
    }

    /// Whether a key of that canonical name has a secret for its value.
    pub fn contains(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.declares(name))
    }

    /// Whether there is no secret at all.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }
}
