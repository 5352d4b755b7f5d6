//! What does not compile, and what the compiler says about it.
//!
//! The texts are those of the compiler that CI uses; `TRYBUILD=overwrite`
//! writes them anew.

#![cfg(not(miri))]

#[test]
fn mistakes_are_found_when_the_program_is_compiled() {
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*.rs");
}
