//! Events and values in MessagePack: nothing that is read is lost when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::transfer::check;
use milieu_transfer::MessagePack;

fuzz_target!(|input: &[u8]| check(&MessagePack, input));
