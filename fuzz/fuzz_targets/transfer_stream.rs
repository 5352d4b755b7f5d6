//! Frames in data-stream and delta mode, for receivers that have the type and
//! for those that do not.
//!
//! The input is frames, each after its length in two bytes, the lower first.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_fuzz::transfer::{Everything, LIMITS, again};
use milieu_transfer::{DataStream, Decode, Delta, Rights, Type};

fuzz_target!(|input: &[u8]| {
    let stream = DataStream::default();
    let delta = Delta::default();
    let receivers = [
        stream.receiver(LIMITS, Rights::ALL),
        delta.receiver(LIMITS, Rights::ALL),
        delta.receiver(LIMITS, Rights::NONE),
    ];
    for mut untyped in receivers {
        each(input, |frame| {
            if let Ok(event) = untyped.decode(frame) {
                again(&stream, &event);
                again(&delta, &event);
            }
        });
    }
    for rights in [Rights::ALL, Rights::NONE] {
        let mut typed = delta.receiver(LIMITS, rights);
        typed.expect(Type::of::<Everything>());
        each(input, |frame| {
            if let Ok(event) = typed.decode(frame) {
                again(&stream, &event);
            }
        });
    }
});

fn each(mut input: &[u8], mut run: impl FnMut(&[u8])) {
    while let Some((length, rest)) = input.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        run(frame);
        input = rest;
    }
}
