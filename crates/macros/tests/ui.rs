//! What does not compile, and what the compiler says about it.
//!
//! The texts are those of the compiler that CI uses; `TRYBUILD=overwrite`
//! writes them anew.

#[test]
fn mistakes_are_reported_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
