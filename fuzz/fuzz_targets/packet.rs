//! What programs and the mediator of a whole device tell each other: what is understood is
//! said again, and understood as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_threads::packet::{Answer, Packet};

fuzz_target!(|input: &[u8]| {
    if let Some(packet) = Packet::read(input) {
        let text = packet.text();
        assert_eq!(Packet::read(text.as_bytes()), Some(packet));
    }
    if let Some(answer) = Answer::read(input) {
        let text = answer.text();
        assert!(matches!(answer, Answer::No(_)) || Answer::read(text.as_bytes()) == Some(answer));
    }
});
