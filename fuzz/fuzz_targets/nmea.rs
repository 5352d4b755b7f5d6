//! Sentences of receivers: what is understood is a place on Earth, and the
//! moments of a receiver do not depend on how often it is asked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_adapters::nmea::Receiver;

fuzz_target!(|text: &str| {
    let mut receiver = Receiver::default();
    let mut lines = 0;
    let mut positions = 0;
    for line in text.lines() {
        // Most inputs have no checksum that is right, so they are given one.
        let sum = line.bytes().fold(0, |sum, byte| sum ^ byte);
        for line in [line.to_owned(), format!("${line}*{sum:02X}")] {
            lines += 1;
            let _ = receiver.sentence(&line, |position| {
                positions += 1;
                assert!(position.latitude_degrees.abs() <= 90.0, "{line}");
                assert!(position.longitude_degrees.abs() <= 180.0, "{line}");
            });
        }
    }
    receiver.finish(|_| positions += 1);
    assert!(positions <= lines);
});
