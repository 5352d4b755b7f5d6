//! Schemas: what is one is written as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_transfer::Schema;

fuzz_target!(|input: &[u8]| {
    if let Ok(schema) = Schema::read(input) {
        assert_eq!(schema.bytes(), input);
        assert_eq!(Schema::read(schema.bytes()), Ok(schema));
    }
});
