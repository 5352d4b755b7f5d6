//! What all languages of subscriptions keep.

use milieu_diagnostics::Source;
use milieu_stream::language::{Language, write_rust};
use milieu_stream::operators;

use crate::can_be_shown;

/// What is read is written in every language, and read as the same again; what
/// is not read has mistakes that can be shown.
///
/// # Panics
/// If that is not so.
pub fn check(language: Language, text: &str) {
    let catalogue = operators::catalogue();
    let document = match language.parse(&Source::new("fuzz", text), &catalogue) {
        Ok(document) => document,
        Err(found) => {
            assert!(!found.is_empty());
            return can_be_shown(text, &found);
        }
    };
    for language in Language::ALL {
        let written = Source::new("written", language.write(&document, &catalogue));
        let read = language.parse(&written, &catalogue);
        assert_eq!(read.as_ref(), Ok(&document), "{}", written.text);
    }
    assert!(write_rust(&document, &catalogue).ends_with("}\n"));
}
