//! Programs in C and C++ that use streams.

#![cfg(feature = "stream")]

mod support;

use support::{Language, passes, scratch};

#[test]
fn streams_work_from_cpp() {
    let folder = scratch("cpp-streams");
    passes(Language::Cpp, "streams.cpp", &folder, Vec::new);
}

#[test]
fn streams_work_from_c() {
    let folder = scratch("c-streams");
    passes(Language::C, "streams.c", &folder, || {
        let kept = folder.join("files");
        let _ = std::fs::remove_dir_all(&kept);
        std::fs::create_dir(&kept).expect("a folder for what is kept");
        vec![kept.into()]
    });
}

#[test]
fn what_c_gets_wrong_with_streams_is_told() {
    let folder = scratch("c-streams-misuse");
    passes(Language::C, "streams_misuse.c", &folder, Vec::new);
}
