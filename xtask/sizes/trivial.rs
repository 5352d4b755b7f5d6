//! A library that does next to nothing: a call that can panic, and a panic that
//! is caught, as every library with a C interface has to. What it weighs is the
//! standard library.

use std::panic::catch_unwind;

/// How often a number goes into a hundred.
#[unsafe(no_mangle)]
pub extern "C" fn trivial(number: u32) -> u32 {
    catch_unwind(|| 100 / number).unwrap_or(0)
}
