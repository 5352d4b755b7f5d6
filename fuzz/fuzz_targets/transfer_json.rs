//! Events and values in JSON: nothing that is read is lost when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::transfer::check;
use milieu_transfer::Json;

fuzz_target!(|input: &[u8]| check(&Json, input));
