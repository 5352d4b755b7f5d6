//! Events and values in XML: nothing that is read is lost when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::transfer::check;
use milieu_transfer::Xml;

fuzz_target!(|input: &[u8]| check(&Xml, input));
