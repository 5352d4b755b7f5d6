//! Subscriptions in XML: reading, showing what is wrong, and
//! writing in every language.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::subscriptions;
use milieu_stream::language::Language;

fuzz_target!(|text: &str| subscriptions::check(Language::Xml, text));
