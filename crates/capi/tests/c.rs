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
