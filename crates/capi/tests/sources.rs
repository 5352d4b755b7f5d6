//! Programs in C and C++ that use sources by their names.

#![cfg(feature = "sources")]

mod support;

use std::{ffi::OsString, fs, path::Path};

use support::{Language, passes, scratch};

/// An empty folder for what the sources of a program read.
fn empty(folder: &Path) -> Vec<OsString> {
    let seen = folder.join("seen");
    let _ = fs::remove_dir_all(&seen);
    fs::create_dir(&seen).expect("a folder for what sources read");
    vec![seen.into()]
}

#[test]
fn sources_that_have_names_work_from_c() {
    let folder = scratch("c-sources");
    passes(Language::C, "sources.c", &folder, || empty(&folder));
}

#[test]
fn sources_that_have_names_work_from_cpp() {
    let folder = scratch("cpp-sources");
    passes(Language::Cpp, "sources.cpp", &folder, || empty(&folder));
}

#[test]
fn sources_take_what_a_program_in_c_brings_along() {
    let folder = scratch("c-sources-own");
    passes(Language::C, "sources_own.c", &folder, || empty(&folder));
}

#[test]
fn sources_take_what_a_program_in_cpp_brings_along() {
    let folder = scratch("cpp-sources-own");
    passes(Language::Cpp, "sources_own.cpp", &folder, || empty(&folder));
}
