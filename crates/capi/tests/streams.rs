//! Programs in C and C++ that use streams.

#![cfg(feature = "stream")]

mod support;

use support::{Language, passes, scratch};

#[test]
fn streams_work_from_cpp() {
    let folder = scratch("cpp-streams");
    passes(Language::Cpp, "streams.cpp", &folder, Vec::new);
}
