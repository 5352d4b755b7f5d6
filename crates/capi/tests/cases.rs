//! The cases of `crates/context/tests/cases/layers.txt` in C and in C++: the same
//! description that `crates/milieu/tests/cases.rs` runs in Rust.

mod support;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use support::{
    Language, Program, compilers, generate_into, package, passes, sanitizer_of_library, scratch,
    skipped,
};

#[path = "../../context/tests/cases/broken.rs"]
mod broken;

fn description() -> PathBuf {
    package().join("../context/tests/cases/layers.txt")
}

/// Where the cases of one run write their files.
fn empty(folder: &Path) -> PathBuf {
    let files = folder.join("files");
    let _ = fs::remove_dir_all(&files);
    fs::create_dir(&files).expect("a folder for files");
    files
}

/// A folder with the header of the cases' environment.
fn with_header(name: &str, language: Language) -> (PathBuf, &'static str) {
    let folder = scratch(name);
    let (backend, source) = match language {
        Language::C => ("c", "cases.c"),
        Language::Cpp => ("cpp", "cases.cpp"),
    };
    generate_into(&folder, "../context/tests/cases/cases.ini", backend);
    (folder, source)
}

fn as_in_rust(name: &str, language: Language) {
    let (folder, source) = with_header(name, language);
    passes(language, source, &folder, || {
        vec![description().into(), empty(&folder).into()]
    });
}

#[test]
fn layers_mean_in_c_what_they_mean_in_rust() {
    as_in_rust("cases-c", Language::C);
}

#[test]
fn layers_mean_in_cpp_what_they_mean_in_rust() {
    as_in_rust("cases-cpp", Language::Cpp);
}

/// Whatever is expected, something else in its place is noticed, at its line.
fn noticed(name: &str, language: Language) {
    if sanitizer_of_library().is_some() {
        return skipped("a sanitizer has nothing to see in what ends at the first wrong line");
    }
    let Some(compiler) = compilers(language).into_iter().next() else {
        return;
    };
    let (folder, source) = with_header(name, language);
    let program = Program {
        language,
        compiler,
        source: package().join("tests/programs").join(source),
        folder: &folder,
        flags: &[],
    };
    let program = program.compiled();
    let cases = fs::read_to_string(description()).expect("the cases can be read");
    let broken = broken::broken(&cases);
    assert!(broken.len() > 200, "all that is expected");
    let file = folder.join("broken.txt");
    for (line, text) in broken {
        fs::write(&file, text).expect("the cases can be written");
        let arguments: [OsString; 2] = [file.clone().into(), empty(&folder).into()];
        let output = Command::new(&program).args(arguments).output();
        let output = output.expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        let place = format!("line {line}: ");
        assert_eq!(output.status.code(), Some(1), "line {line}: {said}");
        assert!(said.starts_with(&place), "line {line}: found as {said}");
    }
}

#[test]
fn what_is_not_as_described_is_noticed_in_c() {
    noticed("broken-c", Language::C);
}

#[test]
fn what_is_not_as_described_is_noticed_in_cpp() {
    noticed("broken-cpp", Language::Cpp);
}
