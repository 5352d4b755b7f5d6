//! Programs of many threads. `cargo xtask ci --only threads` runs them, and all
//! others, with the sanitizer for threads in programs and library alike.

mod support;

use std::path::{Path, PathBuf};

use support::{
    Language, Program, Sanitizer, compilers, generate_into, observe, package, passes,
    sanitizer_of_library, scratch, skipped,
};

/// An empty folder for settings.
fn settings(folder: &Path) -> PathBuf {
    let files = folder.join("files");
    let _ = std::fs::remove_dir_all(&files);
    std::fs::create_dir(&files).expect("a folder for settings");
    files
}

#[test]
fn what_threads_of_c_do_at_once_is_all_there() {
    let folder = scratch("threads-c");
    generate_into(&folder, "tests/programs/station.ini", "c");
    passes(Language::C, "threads.c", &folder, || {
        vec![settings(&folder).into()]
    });
}

#[test]
fn what_threads_of_cpp_do_at_once_is_all_there() {
    let folder = scratch("threads-cpp");
    generate_into(&folder, "tests/programs/station.ini", "cpp");
    passes(Language::Cpp, "threads.cpp", &folder, || {
        vec![settings(&folder).into()]
    });
}

/// A race between a program and the library is seen, so that the silence about
/// all other programs means something.
#[test]
fn races_with_the_library_are_found() {
    if sanitizer_of_library() != Some(Sanitizer::Threads) {
        return skipped("the library is not built with the sanitizer for threads");
    }
    let folder = scratch("threads-race");
    generate_into(&folder, "tests/programs/station.ini", "c");
    for compiler in compilers(Language::C) {
        let program = Program {
            language: Language::C,
            compiler,
            source: package().join("tests/programs/race.c"),
            folder: &folder,
            flags: &[],
        };
        let program = program.compiled();
        for what in ["field", "text"] {
            let output = observe(&program, &[what.into()]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{compiler} {what}");
            assert!(
                said.contains("ThreadSanitizer: data race"),
                "{compiler} {what}:\n{said}"
            );
        }
        let output = observe(&program, &["none".into()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler}:\n{said}");
    }
}
