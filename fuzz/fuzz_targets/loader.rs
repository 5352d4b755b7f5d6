//! The beginning of a program, of which nobody knows who has written it: what is found is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_threads::loader::{Image, image};

fuzz_target!(|head: &[u8]| {
    if let Image::Loaded(name) | Image::Script(name) = image(head) {
        assert!(name.is_empty() || head.windows(name.len()).any(|it| it == name));
    }
});
