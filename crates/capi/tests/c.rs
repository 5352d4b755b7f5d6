//! Programs in C.

mod support;

use support::{Language, generate_into, passes, scratch};

#[test]
fn contexts_work_from_c() {
    let folder = scratch("c-context");
    generate_into(&folder, "tests/programs/station.ini", "c");
    passes(Language::C, "context.c", &folder, || {
        let files = folder.join("files");
        let _ = std::fs::remove_dir_all(&files);
        std::fs::create_dir(&files).expect("a folder for settings");
        vec![files.into()]
    });
}

#[test]
fn what_others_write_is_told_in_c() {
    let folder = scratch("c-watch");
    generate_into(&folder, "tests/programs/station.ini", "c");
    passes(Language::C, "watch.c", &folder, || {
        let files = folder.join("files");
        let _ = std::fs::remove_dir_all(&files);
        std::fs::create_dir(&files).expect("a folder for settings");
        vec![files.into()]
    });
}

#[test]
fn what_c_gets_wrong_is_told() {
    let folder = scratch("c-misuse");
    generate_into(&folder, "tests/programs/station.ini", "c");
    passes(Language::C, "misuse.c", &folder, Vec::new);
}

/// Callbacks call whatever they like, and are told what they cannot have.
#[test]
fn callbacks_call_the_library_in_c() {
    let folder = scratch("c-reentrance");
    generate_into(&folder, "tests/programs/station.ini", "c");
    passes(Language::C, "reentrance.c", &folder, || {
        let files = folder.join("files");
        let _ = std::fs::remove_dir_all(&files);
        std::fs::create_dir(&files).expect("a folder for settings");
        vec![files.into()]
    });
}

/// Each setter with each type of values.
#[test]
fn what_is_not_of_a_type_is_refused_in_c() {
    let folder = scratch("c-kinds");
    generate_into(&folder, "tests/programs/kinds.ini", "c");
    passes(Language::C, "kinds.c", &folder, Vec::new);
}

/// Conflicts, keys of before, and who has written what.
#[cfg(all(feature = "checks", feature = "history"))]
#[test]
fn files_are_looked_into_from_c() {
    let folder = scratch("c-files");
    generate_into(&folder, "tests/programs/files.ini", "c");
    passes(Language::C, "files.c", &folder, || {
        let files = folder.join("files");
        let _ = std::fs::remove_dir_all(&files);
        std::fs::create_dir(&files).expect("a folder for settings");
        vec![files.into()]
    });
}
