//! TOML documents: nothing is lost that was not changed. What is TOML is read,
//! and nothing else.
//!
//! The input is that of `formats::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::{formats, texts};
use milieu_store::Format;
use milieu_store::toml::Toml;

fuzz_target!(|input: &str| {
    formats::check(&Toml, input);
    let [text, _]: [&str; 2] = texts(input);
    let (_, diagnostics) = Toml.parse(text);
    match toml::de::DeTable::parse(text) {
        // A backslash and nothing are one level, where both are tables.
        Ok(_) => {
            let strict = |message: &str| message.contains("128 bits") || text.contains('\\');
            assert!(
                diagnostics.iter().all(|found| strict(&found.message)),
                "{diagnostics:?}"
            );
        }
        // The other one has fewer levels.
        Err(error) => assert!(
            !diagnostics.is_empty() || error.message().contains("recur"),
            "{error}"
        ),
    }
});
