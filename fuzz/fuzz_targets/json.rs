//! JSON documents: nothing is lost that was not changed. Plain JSON is read as
//! another reader reads it.
//!
//! The input is that of `formats::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::{formats, texts};
use milieu_store::Format;
use milieu_store::json::Json;
use serde_json::Value;

fuzz_target!(|input: &str| {
    formats::check(&Json, input);
    let [text, _]: [&str; 2] = texts(input);
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let (document, diagnostics) = Json.parse(text);
        // The other one takes the last of several members, and counts levels differently.
        let strict = |message: &str| message.contains("twice") || message.contains("deeper");
        assert!(
            diagnostics.iter().all(|found| strict(&found.message)),
            "{diagnostics:?}"
        );
        if let (Value::String(value), true) = (&value, diagnostics.is_empty()) {
            assert_eq!(document.get("/").as_deref(), Some(&**value));
        }
    }
});
